//! Tokens per second with and without KV cache, against length: a decoder as built today, 12 layers of 768, 12 query
//! heads over 4 key/value heads, in f32. Not a criterion bench: one long generation is the sample, and what matters
//! is how the cost of a token grows along it.
//!
//! ```text
//! cargo bench --bench generation            cached up to 512 tokens, uncached up to 64
//! cargo bench --bench generation -- 1024 128
//! ```

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tui_transformer::model::ModelBuilder;
use tui_transformer::model::config::ModelConfig;
use tui_transformer::model::generate::{Barred, Calls, Choice, Part, generate};
use tui_transformer::model::params::{VocabSizes, parameters};
use tui_transformer::program::{NodeId, Program};
use tui_transformer::session::generation::frame_flops;
use tui_transformer::tensor::{Precision, Tensor, Value};
use tui_transformer::trace::{Bindings, Flow, Keep, Settings, run_with};

const WORDS: usize = 4096;

fn config() -> ModelConfig {
    ron::Options::default()
        .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
        .from_str(
            "(d_model: 768, heads: 12, kv_heads: 4, d_ff: 2048, positions: Rotary(),
              norm: (kind: RmsNorm, position: Pre, eps: 1e-6),
              ffn: (activation: Silu, gated: true), output: (tied: true),
              decoder: (layers: [(repeat: 12)], final_norm: true))",
        )
        .unwrap()
}

/// Small numbers without pattern; what they are does not matter here.
fn weights(config: &ModelConfig, vocab: VocabSizes) -> Bindings<f32> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5) * 0.08
    };
    parameters(config, vocab)
        .expect("a model")
        .into_iter()
        .map(|spec| {
            let data: Vec<f32> = (0..spec.shape.len()).map(|_| next()).collect();
            let value = Value::Float(Tensor::new(spec.shape, data));
            (Arc::from(&*spec.path), value)
        })
        .collect::<HashMap<_, _>>()
}

/// When each token came.
fn times(program: &Arc<Program>, bindings: &Bindings<f32>, tokens: usize) -> Vec<Duration> {
    let ends: Vec<NodeId> = (0..tokens).map(|i| program.find(&format!("gen.{i}.next.id")).unwrap()).collect();
    let mut came = Vec::new();
    let settings = Settings { keep: Keep::only(program, |_| false), timed: false, ..Settings::default() };
    let start = Instant::now();
    let mut sink = |_: &Program, id: NodeId, _: &Value<f32>| {
        if ends.get(came.len()) == Some(&id) {
            came.push(start.elapsed());
        }
        Flow::Go
    };
    black_box(run_with(program, bindings, &settings, &mut sink).unwrap());
    came
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let cached = numbers.first().copied().unwrap_or(512);
    let uncached = numbers.get(1).copied().unwrap_or(64);
    let config = config();
    let vocab = VocabSizes { source: WORDS, target: WORDS };
    let bindings = weights(&config, vocab);
    for (name, tokens, cache) in [("cached", cached, true), ("uncached", uncached, false)] {
        let calls = Calls::Free { from: vec![1], max_new: tokens, choice: Choice::Greedy, barred: Barred::default() };
        let built = Instant::now();
        let m = ModelBuilder::new(&config, vocab, false);
        let program = Arc::new(generate(m, None, &calls, &Part::whole(&calls), None, cache).unwrap());
        let flops = frame_flops(&program, Precision::F32);
        println!("{name}: {} nodes, built in {:.2} s", program.len(), built.elapsed().as_secs_f64());
        let came = times(&program, &bindings, tokens);
        println!("   tokens   ms/token   tokens/s   MFLOP/token");
        let step = (tokens / 8).max(1);
        for end in (step..=tokens).step_by(step) {
            // The median: other programs on the machine slow single tokens down.
            let mut each: Vec<f64> = (end - step..end)
                .map(|i| {
                    let before = i.checked_sub(1).map_or(0.0, |b| came[b].as_secs_f64());
                    came[i].as_secs_f64() - before
                })
                .collect();
            each.sort_by(f64::total_cmp);
            let each = each[each.len() / 2];
            println!("{end:>9} {:>10.2} {:>10.2} {:>13.1}", each * 1e3, 1.0 / each, flops[end - 1] as f64 / 1e6);
        }
    }
}
