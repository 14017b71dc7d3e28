//! Models of PyTorch and of transformers, run under `assets/tt_record.py`, compared with the same models here; and with
//! models that are wrong in one thing, which the comparison must name.

use std::path::PathBuf;

use rstest::rstest;
use tui_transformer::debug::compare::{Mode, Options, Reference, Report, State, compare};
use tui_transformer::model::config::{Activation, EpsAt, NormPosition, PairLayout, Positions, RotaryScaling, Scale};
use tui_transformer::scenario::schema::Scenario;
use tui_transformer::scenario::syntax;
use tui_transformer::session;

/// The comparison of `model`, changed so, with what was recorded of it.
fn compared(model: &str, change: fn(&mut Scenario), mode: Mode) -> Report {
    let file = PathBuf::from(format!("tests/data/recorded/{model}.ron"));
    let text = std::fs::read_to_string(&file).expect("readable");
    let mut scenario = syntax::read(model, &text).expect("a scenario");
    change(&mut scenario);
    let session = session::open(scenario, Some(&file), session::Options::default()).expect("opens");
    let recorded = file.with_extension("recorded.safetensors");
    let bytes = std::fs::read(&recorded).expect("readable");
    let name = recorded.display().to_string();
    let reference = Reference::from_file(&name, &bytes).expect("a recording");
    let options = Options { mode, ..Options::default() };
    compare(&session, 0, &reference, &options).expect("compares")
}

/// Every tensor of the recording is a node here (but those said), and all are the same.
#[rstest]
#[case("bert", 49, &[])]
#[case("gpt2", 41, &[])]
#[case("llama", 46, &[])]
#[case("plain", 30, &["padding"])]
fn a_recorded_model_matches(
    #[case] model: &str,
    #[case] nodes: usize,
    #[case] not_ours: &[&str],
    #[values(Mode::Isolated, Mode::Cumulative)] mode: Mode,
) {
    let report = compared(model, |_| (), mode);
    assert_eq!(report.differences, []);
    let matched = report.nodes.iter().filter(|c| c.state == State::Match);
    assert_eq!(matched.count(), nodes);
    assert_eq!(report.count(State::Drift), 0);
    assert_eq!(report.unmatched, not_ours);
}

/// A model, what is wrong in it, the first node that differs, and the last one before it that agrees (none before what
/// is given).
type Fault = (&'static str, fn(&mut Scenario), &'static str, &'static str);

const FAULTS: &[Fault] = &[
    // Another ε; the other GELU; padding that is seen; another scale, with the type's least number in hidden cells.
    ("bert", |s| s.model.norm.eps = 1e-5, "embed.source.norm.out", "embed.source.summed"),
    ("bert", |s| s.model.ffn.activation = Activation::GeluTanh, "encoder.0.ffn.act", "encoder.0.ffn.hidden"),
    ("bert", everything_is_real, "encoder.0.self_attn.mask", ""),
    (
        "bert",
        |s| s.model.attention.scale = Scale::SqrtDModel,
        "encoder.0.self_attn.masked_scores",
        "encoder.0.self_attn.k",
    ),
    // The other GELU; a future that is seen; dropped biases.
    ("gpt2", |s| s.model.ffn.activation = Activation::Gelu, "decoder.0.ffn.act", "decoder.0.ffn.hidden"),
    ("gpt2", |s| s.model.attention.causal = Some(false), "decoder.0.self_attn.scores", "decoder.0.self_attn.k"),
    ("gpt2", |s| s.model.attention.qkv_bias = false, "decoder.0.self_attn.q", "decoder.0.norm1.out"),
    ("gpt2", |s| s.model.attention.out_bias = false, "decoder.0.self_attn.out", "decoder.0.self_attn.weights"),
    // Rotary pairs side by side; another ε; GELU for SiLU.
    ("llama", interleaved, "decoder.0.self_attn.q_rotated", "decoder.0.self_attn.q"),
    ("llama", |s| s.model.norm.eps = 1e-5, "decoder.0.norm1.out", "embed.target.out"),
    ("llama", |s| s.model.ffn.activation = Activation::Gelu, "decoder.0.ffn.activated", "decoder.0.ffn.hidden"),
    // Variance over n − 1; ε next to σ; no scale; the norm after the sublayer.
    ("plain", |s| s.model.norm.unbiased = true, "encoder.0.norm1.out", "embed.source.out"),
    ("plain", |s| s.model.norm.eps_at = EpsAt::BesideSigma, "encoder.0.norm1.out", "embed.source.out"),
    ("plain", |s| s.model.attention.scale = Scale::None, "encoder.0.self_attn.masked_scores", "encoder.0.norm1.out"),
    (
        "plain",
        |s| s.model.norm.position = NormPosition::Post,
        "encoder.0.self_attn.masked_scores",
        "embed.source.lookup",
    ),
];

#[rstest]
fn a_fault_is_named(#[values(Mode::Isolated, Mode::Cumulative)] mode: Mode) {
    for (i, &(model, change, at, last)) in FAULTS.iter().enumerate() {
        let report = compared(model, change, mode);
        let which = format!("fault {i}, of {model}");
        let verdict = report.verdict().expect(&which);
        assert_eq!(verdict.place.path, at, "{which}");
        let before = verdict.last_match.as_ref().map_or("", |p| &p.path);
        assert_eq!(before, last, "{which}");
        assert!(verdict.place.step.is_some(), "{which}");
        assert!(!verdict.carried, "{which}");
        if mode == Mode::Isolated {
            // What follows is computed from the reference again: each other difference is the fault in its own place.
            assert!(report.differences.iter().all(|d| !d.carried), "{which}");
        }
    }
}

fn everything_is_real(s: &mut Scenario) {
    let source = s.source.as_mut().expect("one");
    source.real = Some(vec![vec![true; 6]; 2]);
}

fn interleaved(s: &mut Scenario) {
    s.model.positions =
        Positions::Rotary { layout: PairLayout::Interleaved, base: 10_000.0, dim: None, scaling: RotaryScaling::None };
}
