//! Runs in a smaller number type: every rounding is the cast of PyTorch, every number of a rounded run is one of its
//! type, and the report names where that matters.

use std::fs;
use std::process::{Command, Output};
use std::sync::Arc;

use rstest::rstest;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use tempfile::TempDir;
use tui_transformer::debug::numerics::Lens;
use tui_transformer::program::Op;
use tui_transformer::scenario::syntax;
use tui_transformer::session::{self, Options, Session};
use tui_transformer::tensor::{DType, NumberType};
use tui_transformer::trace::Rounding;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(arguments).output().expect("it runs")
}

fn json(out: &Output) -> Json {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)))
}

fn opened(text: &str) -> Session {
    session::open(syntax::read("test", text).expect("a scenario"), None, Options::default()).expect("opens")
}

fn shipped(name: &str) -> String {
    fs::read_to_string(format!("scenarios/{name}.ron")).expect("readable")
}

/// `tests/data/casts.safetensors` was written by `Tensor.to` of PyTorch.
#[test]
fn roundings_are_the_casts_of_pytorch() {
    let bytes = fs::read("tests/data/casts.safetensors").expect("readable");
    let file = SafeTensors::deserialize(&bytes).expect("tensors");
    let read = |name: &str| -> Vec<f32> {
        let data = file.tensor(name).expect("there").data().to_vec();
        data.chunks(4).map(|b| f32::from_le_bytes(b.try_into().expect("4 bytes"))).collect()
    };
    let from = read("x");
    assert!(from.len() > 5000);
    for t in [NumberType::Bf16, NumberType::F16, NumberType::Fp8E4m3, NumberType::Fp8E5m2] {
        for (x, y) in from.iter().zip(read(t.name())) {
            let ours = t.round(f64::from(*x)) as f32;
            assert!(ours.to_bits() == y.to_bits() || ours.is_nan() && y.is_nan(), "{t}: {x:e}: {ours:e}, not {y:e}");
        }
    }
    for x in [465.0, 1e9, f64::INFINITY] {
        assert_eq!(NumberType::Fp8E4m3.round(x), 448.0);
    }
    // 10 bits of mantissa in the range of binary32: the nearest, of two the even one.
    let tf32 = NumberType::Tf32;
    for x in from {
        let kept = f64::from(f32::from_bits(x.to_bits() & !0x1fff));
        let next = f64::from(f32::from_bits((x.to_bits() & !0x1fff) + 0x2000));
        let y = tf32.round(f64::from(x));
        if next.is_finite() && f64::from(x) != kept {
            let (down, up) = ((f64::from(x) - kept).abs(), (next - f64::from(x)).abs());
            let nearest = if down < up || down == up && x.to_bits() & 0x2000 == 0 { kept } else { next };
            assert_eq!(y.to_bits(), nearest.to_bits(), "{x:e}");
        }
        assert_eq!(tf32.round(y).to_bits(), y.to_bits());
    }
}

/// Parameters, activations and what is only moved: all are numbers of the type, and what computes them reads such.
#[rstest]
fn every_number_of_a_rounded_run_is_of_its_type(
    #[values("water_class", "encoder_decoder", "gpt_block")] name: &str,
    #[values(NumberType::Bf16, NumberType::F16, NumberType::Fp8E4m3, NumberType::Fp8E5m2, NumberType::Tf32)]
    t: NumberType,
) {
    let session = opened(&shipped(name));
    let trace = session.rounded(0, Rounding::Type(t)).expect("runs");
    let program = trace.program();
    let mut seen = 0;
    for (id, node) in program.nodes().filter(|(id, n)| n.dtype == DType::Float && !n.inline && trace.reached(*id)) {
        let value = trace.value(id);
        for i in 0..value.shape().len() {
            let x = value.get(i);
            seen += 1;
            assert!(x.is_nan() || t.round(x).to_bits() == x.to_bits(), "{t}: {}[{i}] = {x:e}", node.path);
        }
        let lost = trace.lost(id);
        let wide = matches!(t, NumberType::Bf16 | NumberType::Tf32);
        assert!(!wide || lost.overflow == 0, "{t}: {} overflows {} times", node.path, lost.overflow);
    }
    assert!(seen > 1000);
    // A mask hides as before: no row is NaN.
    let weights = program.nodes().filter(|(_, n)| n.dtype == DType::Float && !matches!(n.op, Op::Leaf(_)));
    assert!(weights.into_iter().all(|(id, _)| {
        let value = trace.value(id);
        (0..value.shape().len()).all(|i| !value.get(i).is_nan())
    }));
}

/// A small model with a large number in its table.
fn edited(value: f64) -> String {
    let edit = format!("edits: [Cell(path: \"embed.weight\", at: [1, 1], value: {value:?})],\n    runs:");
    let text = shipped("gpt_block").replacen("runs:", &edit, 1);
    assert!(text.contains("edits:"));
    text
}

/// An embedding that is too large for binary16 is where it overflows first, and bf16 holds it.
#[test]
fn overflow_is_counted_where_it_is() {
    let session = opened(&edited(200_000.0));
    let lens = Lens::of(&session, 0, Rounding::Type(NumberType::F16), true).expect("runs");
    let first = lens.first_overflow().expect("it overflows");
    assert_eq!((first.path.as_str(), first.lost.overflow), ("embed.weight", 1));
    assert!(first.not_finite == 1 && lens.first() == Some(first));
    // A type without infinity has its largest number there, which is as lost.
    let e4m3 = Lens::of(&session, 0, Rounding::Type(NumberType::Fp8E4m3), false).expect("runs");
    let weight = e4m3.nodes.iter().find(|n| n.path == "embed.weight").expect("shown");
    assert_eq!((weight.lost.overflow, weight.not_finite), (1, 0));
    let bf16 = Lens::of(&session, 0, Rounding::Type(NumberType::Bf16), false).expect("runs");
    assert_eq!(bf16.lost().overflow, 0);
}

/// What is named to keep in f32 is what makes the error of the result smallest, and each kind was tried.
#[test]
fn each_kind_of_operation_is_tried_in_f32() {
    let session = opened(&shipped("gpt_block"));
    let lens = Lens::of(&session, 0, Rounding::Type(NumberType::Bf16), true).expect("runs");
    assert!(lens.kept.len() >= 5, "{:?}", lens.kept);
    assert!(lens.kept.windows(2).all(|k| k[0].rms <= k[1].rms));
    assert!(lens.kept[0].rms < lens.result_rms());
    // bf16 has 8 bits: the error of a few steps lies between one rounding and a hundred.
    let u = NumberType::Bf16.roundoff();
    assert!(lens.result_rms() > 0.1 * u && lens.result_rms() < 100.0 * u, "{}", lens.result_rms());
    let exact = session.trace(0).expect("runs");
    let rounded = session.rounded(0, Rounding::Type(NumberType::Bf16)).expect("runs");
    // The error of a node is that of its numbers.
    let node = lens.nodes.iter().find(|n| n.node == lens.result).expect("the result is shown");
    let (a, b) = (exact.value(node.node), rounded.value(node.node));
    let sum = |f: &dyn Fn(usize) -> f64| (0..a.shape().len()).map(f).sum::<f64>().sqrt();
    let rms = sum(&|i| (a.get(i) - b.get(i)).powi(2)) / sum(&|i| a.get(i).powi(2));
    assert!((rms - node.rms).abs() < 1e-12 * rms);
}

/// One option for every command that computes.
#[test]
fn the_option_of_every_command() {
    let dir = TempDir::new().expect("a folder");
    let is_bf16 = |x: f64| NumberType::Bf16.round(x).to_bits() == x.to_bits();
    let steps = json(&run(&["steps", "water_class", "--round", "bf16", "--json"]));
    let with_error = steps.as_array().expect("a list").iter().filter(|s| s["rounding"]["rms"].as_f64() > Some(0.0));
    assert!(with_error.count() > 20);
    let doc = json(&run(&["export", "water_class", "--step", "5", "--format", "json", "--round", "bf16"]));
    let text = doc.to_string();
    assert!(text.contains("exact"), "{text}");
    let check = run(&["check", "gpt_block", "--round", "bf16", "--json"]);
    let lens = &json(&check)["numerics"][0];
    assert_eq!((check.status.code(), &lens["round"], &lens["overflow"]), (Some(0), &"bf16".into(), &0.into()));
    assert!(lens["kept"].as_array().is_some_and(|k| k.len() > 4));
    let compare = run(&["compare", "gpt_block", "--round", "fp8_e5m2", "--json"]);
    assert_eq!(json(&compare)["first"].is_null(), compare.status.success());
    let said = String::from_utf8_lossy(&run(&["play", "gpt_block", "-e", "round bf16", "-e", "numerics f16"]).stdout)
        .into_owned();
    assert!(said.contains("rounding bf16") && said.contains("f16: "), "{said}");
    let screen = run(&["snapshot", "gpt_block", "--step", "2", "--round", "bf16"]);
    assert!(String::from_utf8_lossy(&screen.stdout).contains("every number in bf16"));
    // What is kept is rounded, and its derivations replay with it.
    let (file, folder) = (dir.path().join("x.npz"), dir.path().join("trace"));
    let (file, folder) = (file.to_str().expect("a name"), folder.to_str().expect("a name"));
    assert!(run(&["record", "gpt_block", "--round", "bf16", "-o", file]).status.success());
    assert!(run(&["record", "gpt_block", "--round", "bf16", "-o", folder]).status.success());
    let out = run(&["check", folder]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    let (session, _) = session::open_trace(folder.as_ref(), Options::default()).expect("opens");
    let trace = session.trace(0).expect("there");
    for (id, _) in trace.program().nodes().filter(|(_, n)| n.dtype == DType::Float && !n.inline) {
        let value = trace.value(id);
        assert!(value.shape().is_empty() || is_bf16(value.get(0)), "{}", trace.program().node(id).path);
    }
    assert!(run(&["compare", folder, file]).status.success());
    // Tokens are chosen from rounded logits.
    let generated = |round: &str| {
        let out = run(&["generate", "encoder_decoder", "--max-new", "2", "--round", round, "--json"]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        json(&out).to_string()
    };
    assert_ne!(generated("fp8_e4m3"), generated("exact"));
    let wrong = run(&["steps", "water_class", "--round", "f8"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("fp8_e4m3"));
    let nothing = run(&["compare", file, "--round", "bf16"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("--model"));
}

/// What-if of a rounded run is the rounded run of the edited scenario.
#[test]
fn edits_of_a_rounded_run_round() {
    let options = Options { rounding: Some(Rounding::Type(NumberType::Bf16)), ..Options::default() };
    let plain = syntax::read("test", &shipped("gpt_block")).expect("a scenario");
    let edited = syntax::read("test", &edited(0.5)).expect("a scenario");
    let base = Arc::new(session::open(plain, None, options).expect("opens"));
    base.trace(0).expect("runs");
    let after = session::open(edited, None, options).expect("opens");
    let (a, b) = (after.trace(0).expect("runs"), base.trace(0).expect("runs"));
    let program = a.program();
    let id = program.find("embed.weight").expect("there");
    let width = program.node(id).shape.dims()[1];
    let cell = tui_transformer::trace::derive::Cell { node: id, flat: width + 1 };
    let what_if = b.what_if(&[tui_transformer::trace::Edit { cell, value: 0.5 }]);
    for (id, node) in program.nodes() {
        let (x, y) = (a.value(id), what_if.value(id));
        assert!((0..x.shape().len()).all(|i| x.bits(i) == y.bits(i)), "{}", node.path);
    }
}
