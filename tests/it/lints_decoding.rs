//! Lints of decoding, of programs built by hand, and `check` from outside.

use crate::common;

use std::process::Command;

use crate::common::lints::{at, bare, embedded, found, grave, looks_ahead};
use tui_transformer::debug::cache;
use tui_transformer::debug::causality;
use tui_transformer::debug::lints::{self, Decoding, Facts};
use tui_transformer::model::generate::{Barred, Calls, Choice};
use tui_transformer::program::composite::{self, Norm, Shift};
use tui_transformer::program::{Affine, Binary, Builder, Constant, NodeId, Program, ScopeKind};
use tui_transformer::program::{BuildError, reason};
use tui_transformer::scenario::lint::{Lint, Severity};
use tui_transformer::tensor::{Axis, Real, Shape, Tensor, Value};
use tui_transformer::trace::{AnyTrace, Flow, Sink, run};

/// Puts the rows of a cache one place off.
struct OneOff(&'static str);

impl<T: Real> Sink<T> for OneOff {
    fn node(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        if &*program.node(id).path != self.0 {
            return Flow::Go;
        }
        let t = value.float();
        let d = t.shape().dims();
        let mut data = t.data().to_vec();
        for head in data.chunks_mut(d[2] * d[3]) {
            head.rotate_right(d[3]);
        }
        Flow::Replace(Value::Float(Tensor::new(*t.shape(), data)))
    }
}

#[test]
fn a_cache_off_by_one() {
    let s = embedded("modern_decoder", bare);
    let run = s.run_named("greedy").unwrap();
    let calls = Calls::Free { from: vec![0, 2, 3], max_new: 4, choice: Choice::Greedy, barred: Barred::default() };
    let report = cache::compare(&s, run, &calls, &mut ()).unwrap();
    assert_eq!(Decoding::of_cache(&s, run, &report), None);
    let path = "gen.2.decoder.1.self_attn.v_cache";
    let report = cache::compare(&s, run, &calls, &mut OneOff(path)).unwrap();
    let f = Decoding::of_cache(&s, run, &report).unwrap();
    assert_eq!((f.lint, f.severity, &*f.path), (Lint::CacheDiffers, Severity::Error, path));
    assert_eq!(f.cell, [0, 0, 0, 0]);
    // The step of that call that shows the cache, or what is computed from it.
    let step = f.step(&s).unwrap();
    let steps = s.steps_of(run);
    let step = &steps.list()[steps.position(step[0]).unwrap()];
    let program = &s.runs[run].program;
    let shows = |v: &tui_transformer::walkthrough::View| program.node(v.node).path.starts_with("gen.2.decoder.1.");
    assert!(step.views.iter().any(shows));
}

#[test]
fn a_later_token_that_arrives_without_weights() {
    // Linear attention without a mask has no weights at all: only changing tokens shows what it sees.
    let s = embedded("gpt_block", |s| {
        bare(s);
        s.model.attention = ron::from_str("(kind: Linear)").unwrap();
        looks_ahead(s);
    });
    let found = found(&s);
    let path = "decoder.0.self_attn.key_value";
    let leak = found.iter().find(|f| f.lint == Lint::FutureLeak).unwrap();
    assert!(leak.severity == Severity::Error && leak.run == Some(0));
    assert!(leak.step(&s).is_some());
    let ids = s.runs[0].program.find("embed.target.ids").unwrap();
    let report = causality::check(s.trace(0).unwrap(), ids, s.target_words.len());
    let expected = Decoding::of_causality(&s, 0, &report).unwrap();
    assert_eq!((&leak.path, &leak.msg), (&expected.path, &expected.msg));
    // All tokens are summed there; the context is the first that has rows again.
    assert_ne!(leak.path, path);
    assert_eq!(leak.path, "decoder.0.self_attn.unnormalised");
}

/// A program over inputs `x` `[1, 4, 6]`, computed in f64.
fn by_hand(build: impl FnOnce(&mut Builder, NodeId) -> Result<NodeId, BuildError>) -> AnyTrace {
    let mut b = Builder::new();
    let shape = Shape::named(&[(Axis::Batch, 1), (Axis::Token, 4), (Axis::DModel, 6)]);
    let numbers = (0..24).map(|i| f64::from(i * 37 % 11) / 5.0 - 1.0);
    let x = b.constant("x", shape, Constant::Float(numbers.collect())).unwrap();
    build(&mut b, x).unwrap();
    let trace = run::<f64>(&b.finish().into(), &tui_transformer::trace::Bindings::new()).unwrap();
    AnyTrace::F64(trace)
}

fn places(trace: &AnyTrace) -> Vec<common::lints::Place> {
    grave(&lints::of_trace(trace, &Facts::default()))
}

fn causal(b: &mut Builder) -> Result<NodeId, BuildError> {
    let shape = Shape::named(&[(Axis::One, 1), (Axis::Query, 4), (Axis::Key, 4)]);
    let reasons = (0..16).map(|i| u8::from(i % 4 > i / 4) * reason::CAUSAL);
    b.mask("mask", shape, reasons.collect())
}

#[test]
fn attention_built_by_hand() {
    let attention = |how: &'static str| {
        by_hand(move |b, x| {
            b.scope("decoder.0.self_attn", ScopeKind::Attention, |b| {
                let raw = b.matmul_bt("scores_raw", x, x)?;
                b.name_axes(raw, &[Axis::Batch, Axis::Query, Axis::Key]);
                let root = if how == "scale" { 4.0 } else { 6f64.sqrt() };
                let mut scores = b.affine("scores", Affine::Div(root), raw)?;
                let mask = causal(b)?;
                let after = how.ends_with("after");
                if !after {
                    scores = b.mask_fill("masked_scores", scores, mask, f64::NEG_INFINITY)?;
                }
                let mut w = composite::softmax(b, "weights", scores, Shift::WhenNeeded, !after)?;
                if how == "filled after" {
                    w = b.mask_fill("masked", w, mask, 0.0)?;
                }
                if how == "added after" {
                    let shape = b.shape(mask);
                    let zero = b.constant("zero", shape, Constant::Filled(0.0))?;
                    let bias = b.mask_fill("bias", zero, mask, -1e9)?;
                    w = b.binary("masked", Binary::Add, w, bias)?;
                }
                if how == "doubled" {
                    w = b.affine("doubled", Affine::Mul(2.0), w)?;
                }
                b.matmul("context", w, x)
            })
        })
    };
    assert_eq!(places(&attention("good")), []);
    let base = |name: &str| format!("decoder.0.self_attn.{name}");
    assert_eq!(places(&attention("scale")), [at("attention_scale", &base("scores"), &[])]);
    for how in ["filled after", "added after"] {
        let found = places(&attention(how));
        // The softmax sees later keys, and the sums no longer hold once they are taken away.
        let lints: Vec<(&str, &str)> = found.iter().map(|p| (p.0, p.1.as_str())).collect();
        assert_eq!(
            lints,
            [
                ("future_attention", &*base("weights")),
                ("softmax_row_sum", &base("masked")),
                ("mask_after_softmax", &base("masked")),
            ],
            "{how}"
        );
    }
    assert_eq!(places(&attention("doubled")), [at("softmax_row_sum", &base("doubled"), &[0, 0, 0])]);
}

#[test]
fn norms_built_by_hand() {
    let norm = |unbiased: bool| {
        by_hand(move |b, x| {
            let how = Norm { eps: 1e-5, inside_root: true, unbiased, gamma: None, beta: None, unit_offset: false };
            composite::layer_norm(b, "norm", x, &how)
        })
    };
    assert_eq!(places(&norm(false)), []);
    let found = places(&norm(true));
    assert_eq!(found, [at("variance_unbiased", "norm.var", &[0, 0, 0])]);
}

#[test]
fn a_softmax_over_the_wrong_axis() {
    let trace = by_hand(|b, x| {
        let exp = b.unary("exp", tui_transformer::program::Unary::Exp, x)?;
        let sum = b.reduce("sum", tui_transformer::program::Reduction::Sum, 1, exp)?;
        b.binary("weights", Binary::Div, exp, sum)
    });
    let found = places(&trace);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0, &*found[0].1), ("softmax_row_sum", "weights"));
}

fn check(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["--lang", "en", "check"])
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), text)
}

/// A scenario in a file: `gpt_block` with `from` replaced.
fn file(folder: &std::path::Path, name: &str, from: &str, to: &str) -> String {
    let text = tui_transformer::scenario::EMBEDDED.iter().find(|e| e.0 == "gpt_block").unwrap().1;
    assert!(text.contains(from));
    let path = folder.join(name);
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn exit_codes_and_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let labels = "labels: Shifted,";
    let wrong = file(folder.path(), "wrong.ron", labels, "labels: Unshifted,");
    let (code, text) = check(&[&wrong]);
    assert_eq!(code, 1);
    for line in [
        "error: labels_unshifted: run training, step 23: loss.labels[0][0]: position 0 reads once and must predict once",
        "    why: The answer is the input",
        "    mend: Labels are the decoder's input moved by one",
        "  lints: 1 errors, 0 warnings, 0 remarks",
        "something does not hold",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let allowing = "labels: Unshifted, allow: [labels_unshifted],";
    let (code, text) = check(&[&file(folder.path(), "allowed.ron", labels, allowing)]);
    assert!(text.contains("info (allowed by the scenario): labels_unshifted"), "{text}");
    assert_eq!(code, 0);
    let slip = "labels: Shifted, allow: [labels_unshiftet],";
    let (code, text) = check(&[&file(folder.path(), "slip.ron", labels, slip)]);
    assert_eq!(code, 2);
    assert!(text.contains("slip.ron:28:30") && text.contains("labels_unshifted"), "{text}");
    // A warning fails only where it is requested to.
    let scale = "attention: (scale: SqrtDModel, qkv_bias: true,";
    let scaled = file(folder.path(), "scale.ron", "attention: (qkv_bias: true,", scale);
    let (code, text) = check(&[&scaled]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("warning: attention_scale: run training, step "), "{text}");
    let (code, _) = check(&[&scaled, "--strict"]);
    assert_eq!(code, 1);
}

#[test]
fn json_of_lints_and_expected_values() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = file(folder.path(), "wrong.ron", "values: [1, 0, 0", "values: [1, 0.25, 0");
    let (code, text) = check(&[&wrong, "--json"]);
    assert_eq!(code, 1);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["good"], false);
    let expected = &json["expected"][0];
    assert_eq!(expected["run"], "training");
    assert_eq!(expected["path"], "decoder.0.self_attn.weights");
    assert_eq!((&expected["wrong"], &expected["largest_difference"]), (&1.into(), &0.25.into()));
    assert_eq!(json["lints"], serde_json::json!([]));
    let (code, text) = check(&["water_class", "--json"]);
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let lints = json["lints"].as_array().unwrap();
    let labels = lints.iter().find(|l| l["lint"] == "labels_unshifted").unwrap();
    for (key, value) in [
        ("severity", serde_json::json!("info")),
        ("allowed", true.into()),
        ("run", "training".into()),
        ("step", 89.into()),
        ("path", "loss.labels".into()),
        ("cell", serde_json::json!([0, 0])),
        ("value", 4.0.into()),
        ("count", 4.into()),
    ] {
        assert_eq!(labels[key], value, "{key}");
    }
    for key in ["message", "why", "mend"] {
        assert!(labels[key].as_str().is_some_and(|t| t.len() > 20), "{key}");
    }
}
