//! Runs of a few well-known shapes, to be timed.

use std::hint::black_box;
use std::sync::Arc;

use rayon::prelude::*;
use tui_transformer::model::config::ModelConfig;
use tui_transformer::model::generate::{Barred, Calls, Choice, Part, generate};
use tui_transformer::model::loss::Loss;
use tui_transformer::model::params::{VocabSizes, parameters};
use tui_transformer::model::{Forward, ModelBuilder, Sequences, forward};
use tui_transformer::program::optimiser::{Optimiser, OptimiserKind};
use tui_transformer::program::{BuildError, Program};
use tui_transformer::tensor::{Real, Tensor, Value};
use tui_transformer::trace::train::{Retention, State, TrainStep, Trainer};
use tui_transformer::trace::{Bindings, Keep, Settings, run_with};

/// BERT-base without its vocabulary's tail and heads.
const BERT: &str = "(d_model: 768, heads: 12, d_ff: 3072, positions: Learned(max_len: 512),
    norm: (kind: LayerNorm, position: Post, eps: 1e-12), attention: (qkv_bias: true, out_bias: true),
    ffn: (activation: Gelu, bias: true), output: (none: true), encoder: (layers: [(repeat: 12)]))";

/// GPT-2 small.
const GPT2: &str = "(d_model: 768, heads: 12, d_ff: 3072, positions: Learned(max_len: 1024),
    norm: (kind: LayerNorm, position: Pre, eps: 1e-5), attention: (qkv_bias: true, out_bias: true),
    ffn: (activation: GeluTanh, bias: true), output: (tied: true), decoder: (layers: [(repeat: 12)], final_norm: true))";

/// A small model to train.
const SMALL: &str = "(d_model: 256, heads: 4, d_ff: 1024, positions: Learned(max_len: 64),
    norm: (kind: LayerNorm, position: Pre, eps: 1e-5), attention: (qkv_bias: true, out_bias: true),
    ffn: (activation: Gelu, bias: true), decoder: (layers: [(repeat: 6)], final_norm: true))";

fn model(text: &str) -> ModelConfig {
    ron::Options::default()
        .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
        .from_str(text)
        .expect("a configuration")
}

/// Small numbers without pattern; what they are does not matter here.
fn weights<T: Real>(config: &ModelConfig, vocab: VocabSizes) -> Bindings<T> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        T::from_f64(((state >> 40) as f64 / (1_u64 << 24) as f64 - 0.5) * 0.08)
    };
    let one = |spec: tui_transformer::model::params::ParamSpec| {
        let data: Vec<T> = (0..spec.shape.len()).map(|_| next()).collect();
        (Arc::from(&*spec.path), Value::Float(Tensor::new(spec.shape, data)))
    };
    parameters(config, vocab).expect("a model").into_iter().map(one).collect()
}

/// A case: runs once.
pub type Case = Box<dyn FnMut()>;

fn forward_case<T: Real>(tokens: usize) -> Case {
    let config = model(BERT);
    let vocab = VocabSizes { source: 1000, target: 1000 };
    let bindings = weights::<T>(&config, vocab);
    let source = Sequences::one((0..tokens as i64).map(|i| i * 7 % 1000).collect());
    let (program, _) = forward(&Forward {
        loss: &Loss::MeanCrossEntropy,
        config: &config,
        vocab,
        source: Some(&source),
        target: None,
        labels: None,
        training: false,
    })
    .expect("builds");
    let program = Arc::new(program);
    let settings = Settings { timed: false, ..Settings::default() };
    Box::new(move || drop(run_with(&program, &bindings, &settings, &mut ()).expect("runs")))
}

fn decode_case(tokens: usize) -> Case {
    let config = model(GPT2);
    let vocab = VocabSizes { source: 50257, target: 50257 };
    let bindings = weights::<f32>(&config, vocab);
    let calls = Calls::Free { from: vec![1], max_new: tokens, choice: Choice::Greedy, barred: Barred::default() };
    let build = ModelBuilder::new(&config, vocab, false);
    let program: Arc<Program> =
        Arc::new(generate(build, None, &calls, &Part::whole(&calls), None, true).expect("builds"));
    // As `generate` runs: what was chosen stays, the rest goes after its last reader.
    let keep = Keep::only(&program, |id| program.node(id).path.ends_with(".next.id"));
    let settings = Settings { keep, timed: false, ..Settings::default() };
    Box::new(move || drop(run_with(&program, &bindings, &settings, &mut ()).expect("runs")))
}

fn train_case() -> Case {
    let config = model(SMALL);
    let vocab = VocabSizes { source: 1000, target: 1000 };
    let parameters = weights::<f32>(&config, vocab);
    let ids: Vec<i64> = (0..8 * 64).map(|i| i * 37 % 1000).collect();
    let labels: Vec<i64> = ids.iter().map(|id| (id + 37) % 1000).collect();
    let target = Sequences { ids, batch: 8, ..Sequences::default() };
    let (program, outputs) = forward(&Forward {
        loss: &Loss::MeanCrossEntropy,
        config: &config,
        vocab,
        source: None,
        target: Some(&target),
        labels: Some(&labels),
        training: true,
    })
    .expect("builds");
    let rule = Optimiser { kind: OptimiserKind::Adam, lr: 1e-4, ..Optimiser::default() };
    let step = Arc::new(TrainStep::new(program, outputs.loss.expect("it has labels"), &rule).expect("builds"));
    let train_steps = move |_: u64| -> Result<Arc<TrainStep>, BuildError> { Ok(Arc::clone(&step)) };
    let mut trainer = Trainer::new(rule, train_steps, State::new(parameters), Vec::new(), Retention::default());
    Box::new(move || {
        trainer.step().expect("numbers stay finite");
    })
}

/// Bytes that the case `read` reads: more than any cache holds.
pub const READ: usize = 512 << 20;

/// Reads memory once, as fast as all threads together can.
fn read_case() -> Case {
    let data = vec![1_u64; READ / 8];
    Box::new(move || {
        let sum =
            data.par_chunks(1 << 16).map(|part| part.iter().fold(0_u64, |sum, x| sum.wrapping_add(*x))).sum::<u64>();
        black_box(sum);
    })
}

/// Names and what they are.
pub const CASES: [(&str, &str); 6] = [
    ("forward-128-f32", "BERT-base's shape, 128 tokens, every value recorded"),
    ("forward-512-f32", "the same with 512 tokens"),
    ("forward-128-f64", "the same with 128 tokens in f64"),
    ("decode-64", "GPT-2 small's shape, 64 tokens with KV cache"),
    ("train", "an update of 6 layers of 256, 8 × 64 tokens, Adam"),
    ("read", "512 MiB of memory, read once"),
];

/// The case of a name.
pub fn case(name: &str) -> Option<Case> {
    Some(match name {
        "forward-128-f32" => forward_case::<f32>(128),
        "forward-512-f32" => forward_case::<f32>(512),
        "forward-128-f64" => forward_case::<f64>(128),
        "decode-64" => decode_case(64),
        "train" => train_case(),
        "read" => read_case(),
        _ => return None,
    })
}
