//! What a run needs, counted before it is built.

use tui_transformer::model::Sequences;
use tui_transformer::model::limits::{self, Extent};
use tui_transformer::model::params::VocabSizes;
use tui_transformer::program::Op;
use tui_transformer::scenario;
use tui_transformer::session::{self, RunKind};

/// Before a run is built, its numbers are counted in the program of one token: exactly those of
/// its own program then where nothing is masked, dropped or learned from.
#[test]
fn a_run_is_counted_before_it_is_built() {
    let mut exact = 0;
    for (name, _) in scenario::EMBEDDED.iter().chain(scenario::LESSONS) {
        let s = session::open(
            scenario::load(std::path::Path::new(name)).expect("embedded").scenario,
            None,
            session::Options::default(),
        );
        let s = s.expect(name);
        let vocab = VocabSizes { source: s.source_words.len(), target: s.target_words.len() };
        for run in s.runs.iter().filter(|r| matches!(r.kind, RunKind::Forward | RunKind::Encode | RunKind::Training)) {
            let model = s.scenario.runs.iter().find(|r| r.name() == run.name).and_then(|r| r.with().model.as_ref());
            let model = model.unwrap_or(&s.scenario.model);
            let side = |of: &Option<Sequences>| of.as_ref().map_or((0, 1), |s| (s.tokens(), s.batch));
            let ((source, a), (target, b)) = (side(&run.inputs.source), side(&run.inputs.target));
            let target = if run.kind == RunKind::Encode { 0 } else { target };
            let extent = Extent { batch: a.max(b), source, target, calls: 1, cached: false };
            let counted = limits::cells(model, vocab, &extent);
            let built: u128 = run
                .program
                .nodes()
                .map(|n| n.1)
                .filter(|n| !matches!(n.op, Op::Leaf(_) | Op::Reshape))
                .map(|n| n.shape.len() as u128)
                .sum();
            // Padding hides scores, dropout and a loss are nodes more; the program of one token has none of them.
            assert!(counted.abs_diff(built) * 5 <= built, "{name} {}: {counted} of {built}", run.name);
            exact += usize::from(counted == built);
        }
    }
    assert!(exact > 15, "{exact}");
}
