//! Building, running and recording: the hand calculation, and a forward pass of BERT-base's shape.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use tui_transformer::model::config::ModelConfig;
use tui_transformer::model::params::{VocabSizes, parameters};
use tui_transformer::model::{Forward, Sequences, forward};
use tui_transformer::program::NodeId;
use tui_transformer::scenario::schema::{Init, InitRule, Weights};
use tui_transformer::scenario::weights;
use tui_transformer::session::{Options, open};
use tui_transformer::tensor::{Tensor, Value};
use tui_transformer::trace::{Edit, Keep, Pinned, Settings, derive::Cell, rerun, run_with};

fn water_class(c: &mut Criterion) {
    let loaded = tui_transformer::scenario::load(Path::new("water_class")).expect("embedded");
    c.bench_function("water_class: build, run, record", |b| {
        b.iter(|| {
            let session = open(loaded.scenario.clone(), None, Options::default()).expect("opens");
            black_box(session.trace(0).expect("runs").bytes())
        });
    });
}

/// 12 layers, 768, 12 heads, 3072.
fn bert_base() -> ModelConfig {
    let text = "(d_model: 768, heads: 12, d_ff: 3072, positions: Learned(max_len: 512),
        norm: (kind: LayerNorm, position: Post, eps: 1e-12), attention: (qkv_bias: true, out_bias: true),
        ffn: (activation: Gelu, bias: true), output: (none: true), encoder: (layers: [(repeat: 12)]))";
    ron::Options::default()
        .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
        .from_str(text)
        .expect("a configuration")
}

fn bert(c: &mut Criterion) {
    let config = bert_base();
    let vocab = VocabSizes { source: 1000, target: 1000 };
    let given = Weights {
        init: vec![InitRule { paths: "*".into(), with: Init::Normal { mean: 0.0, std: 0.02 } }],
        ..Weights::default()
    };
    let (bindings, _) = weights::load::<f32>(
        &given,
        &parameters(&config, vocab).expect("a model"),
        &|_| unreachable!("no files"),
        &|_| None,
    )
    .expect("weights");
    let source = Sequences::one((0..128).map(|i| i * 7 % 1000).collect());
    let (program, outputs) = forward(&Forward {
        loss: &tui_transformer::model::loss::Loss::MeanCrossEntropy,
        config: &config,
        vocab,
        source: Some(&source),
        target: None,
        labels: None,
        training: false,
    })
    .expect("builds");
    let program = Arc::new(program);
    let last = outputs.hidden.expect("hidden states");
    let mut group = c.benchmark_group("BERT-base shape, 128 tokens, f32");
    group.sample_size(10);
    let output_only = Settings { keep: Keep::only(&program, |id| id == last), timed: false, ..Settings::default() };
    group.bench_function("output only", |b| {
        b.iter(|| black_box(run_with(&program, &bindings, &output_only, &mut ()).expect("runs")));
    });
    let fresh = || Settings { timed: false, ..Settings::default() };
    group.bench_function("recorded into fresh memory", |b| {
        b.iter(|| black_box(run_with(&program, &bindings, &fresh(), &mut ()).expect("runs")));
    });
    let reused = fresh();
    group.bench_function("recorded into reused memory", |b| {
        b.iter(|| black_box(run_with(&program, &bindings, &reused, &mut ()).expect("runs")));
    });
    let trace = run_with(&program, &bindings, &fresh(), &mut ()).expect("runs");
    for (name, path) in [("first", "encoder.0.ffn.out"), ("last", "encoder.11.ffn.out")] {
        let cell = Cell { node: program.find(path).expect("there"), flat: 5 };
        group.bench_function(format!("what-if in the {name} layer"), |b| {
            b.iter(|| black_box(trace.what_if(&[Edit { cell, value: 1.0 }])));
        });
    }
    // One weight of the first layer, in the parameters themselves: every layer after it depends on it.
    let path = "encoder.0.ffn.w2.weight";
    let table = bindings[path].float();
    let mut data = table.data().to_vec();
    data[7] += 0.5;
    let mut edited = bindings.clone();
    let value = Value::Float(Tensor::new(*table.shape(), data));
    edited.insert(path.into(), value);
    let none = Arc::new(Pinned::default());
    group.bench_function("what-if of a weight in the first layer", |b| {
        b.iter(|| black_box(rerun(&program, &edited, &none, &fresh(), &[&trace], &mut ()).expect("runs")));
    });
    // A head of the last layer: its part of `context [batch, head, token, d_v]` is 0.
    let node = program.find("encoder.11.self_attn.context").expect("there");
    let mut held = Pinned::default();
    for flat in 3 * 128 * 64..4 * 128 * 64 {
        let cell = Cell { node, flat };
        held.hold(Edit { cell, value: 0.0 });
    }
    let held = Arc::new(held);
    group.bench_function("what-if without a head of the last layer", |b| {
        b.iter(|| black_box(rerun(&program, &bindings, &held, &fresh(), &[&trace], &mut ()).expect("runs")));
    });
    let without = rerun(&program, &bindings, &held, &fresh(), &[&trace], &mut ()).expect("runs");
    group.bench_function("undoing it", |b| {
        b.iter(|| {
            let donors = [&without, &trace];
            black_box(rerun(&program, &bindings, &none, &fresh(), &donors, &mut ()).expect("runs"))
        });
    });
    let computed = |t: &tui_transformer::trace::Trace<f32>| {
        let own = |id: &NodeId| !t.value(*id).shares_memory_with(&trace.value(*id));
        program.nodes().map(|n| n.0).filter(own).count()
    };
    println!(
        "of {} nodes, {} are computed again for the weight, {} for the head",
        program.len(),
        computed(&rerun(&program, &edited, &none, &fresh(), &[&trace], &mut ()).expect("runs")),
        computed(&without),
    );
    group.finish();
}

criterion_group!(benches, water_class, bert);
criterion_main!(benches);
