//! 200 updates of the hand calculation's model, by each optimiser.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use tui_transformer::program::optimiser::{Optimiser, OptimiserKind};
use tui_transformer::scenario;
use tui_transformer::session::training::TrainSteps;
use tui_transformer::session::{self, AnyBindings};
use tui_transformer::trace::train::{Retention, State};

fn updates(c: &mut Criterion) {
    let loaded = scenario::load(Path::new("water_class")).expect("embedded");
    let session = session::open(loaded.scenario, None, session::Options::default()).expect("good");
    let run = session.training_run().expect("it has a loss");
    let AnyBindings::F64(parameters) = &session.params else {
        panic!("toy scenarios run in f64");
    };
    let mut group = c.benchmark_group("water_class, 200 updates");
    group.sample_size(10);
    let kinds = [OptimiserKind::Sgd, OptimiserKind::Adam, OptimiserKind::AdamW];
    for (kind, momentum) in kinds.map(|kind| (kind, 0.0)).into_iter().chain([(OptimiserKind::Sgd, 0.9)]) {
        let rule = Optimiser { kind, momentum, lr: 0.01, ..Optimiser::default() };
        group.bench_function(format!("{} {momentum}", kind.name()), |b| {
            b.iter(|| {
                let train_steps = TrainSteps::new(&session, run, rule.clone(), None, 0);
                let state = State::new(parameters.clone());
                let mut trainer = train_steps.trainer(state, Vec::new(), Retention::default());
                for _ in 0..200 {
                    trainer.step().expect("all numbers stay finite");
                }
                black_box(trainer.losses().len())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, updates);
criterion_main!(benches);
