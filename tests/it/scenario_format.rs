//! The format of scenarios: its reference, the scenarios that `new` writes, and what a model may be alone.

use std::process::{Command, Output, Stdio};

use tui_transformer::scenario::{reference, syntax};
use tui_transformer::session::{self, Options, Session, view};
use tui_transformer::text::Lang;

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    command.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C").env_remove("LANGUAGE");
    command.output().expect("the binary runs")
}

fn open(text: &str) -> Session {
    let scenario = syntax::read("a.ron", text).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
    session::open(scenario, None, Options::default()).unwrap_or_else(|p| panic!("{p:?}"))
}

fn values(s: &Session, path: &str) -> Vec<f64> {
    let view = view(s, 0, "", path, "").unwrap_or_else(|p| panic!("{path}: {p:?}"));
    let value = s.trace(0).expect("runs").value(view.node);
    view.cells.flats().map(|i| value.get(i)).collect()
}

fn near(s: &Session, path: &str, theirs: &[f64]) {
    let ours = values(s, path);
    assert_eq!(ours.len(), theirs.len(), "{path}");
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= 1e-12, "{path}[{i}]: {a} for {b}");
    }
}

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scenario.md");
    std::fs::read_to_string(path).expect("docs/scenario.md")
}

#[test]
fn the_page_is_the_reference_that_the_binary_prints() {
    let page = page();
    let (_, printed) = page.split_once("A test compares. -->\n\n").expect("the mark");
    assert_eq!(printed, reference::markdown(Lang::En), "help scenario --markdown");
    let output = run(&["help", "scenario", "model.norm.eps"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("NormConfig.eps: number"));
    let schema = run(&["help", "scenario", "--json-schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).expect("JSON");
    assert!(schema["$defs"]["ModelConfig"]["properties"]["d_model"].is_object());
    assert_eq!(run(&["help", "scenario", "no_such_thing"]).status.code(), Some(2));
    assert_eq!(run(&["help", "steps", "model"]).status.code(), Some(2));
}

#[test]
fn the_examples_of_the_page_open() {
    let page = page();
    let mut opened = 0;
    for block in page.split("```ron\n").skip(1) {
        let text = block.split("```").next().expect("an end");
        let s = open(text);
        s.trace(0).expect("runs");
        opened += 1;
    }
    assert_eq!(opened, 2);
}

#[test]
fn what_new_writes_passes_check_without_a_warning() {
    let dir = tempfile::tempdir().expect("a folder");
    for kind in ["attention", "encoder", "decoder", "encoder-decoder", "gpt", "llama", "training"] {
        let file = dir.path().join(format!("{kind}.ron"));
        let file = file.to_str().expect("text");
        assert_eq!(run(&["new", kind, "-o", file]).status.code(), Some(0), "{kind}");
        let checked = run(&["check", "--json", file]);
        let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.code(), Some(0), "{kind}: {said}");
        assert!(!said.contains("\"warning\"") && !said.contains("\"error\""), "{kind}: {said}");
    }
    // Nothing is overwritten.
    let there = dir.path().join("gpt.ron");
    assert_eq!(run(&["new", "gpt", "-o", there.to_str().expect("text")]).status.code(), Some(2));
}

#[test]
fn a_value_of_the_wrong_type_is_answered_with_what_fits() {
    for (text, wanted) in [
        ("(name: \"a\", model: 3, runs: [])", "d_model, heads"),
        ("(name: \"a\", model: (d_model: 2, heads: 1, d_ff: 1, norm: true), runs: [])", "kind, position, eps"),
        ("(name: \"a\", model: (d_model: 2, heads: 1, d_ff: 1, attention: (scale: 2.0)), runs: [])", "By(…)"),
        ("(name: \"a\", model: (d_model: \"2\", heads: 1, d_ff: 1), runs: [])", "is written like 4"),
        ("(name: \"a\", model: (d_model: 2, heads: 1, d_ff: 1), source: (vectors: 1), runs: [])", "[[[0.5, …], …], …]"),
    ] {
        let reported = syntax::read("a.ron", text).expect_err("wrong").render(Lang::En);
        assert!(reported.contains(wanted), "{text}: {reported}");
    }
    let reported = syntax::read("a.ron", "(name: \"a\", model: (d_model: 2, heads: 1, d_ff: 1), runs: [Encode()])");
    let problems = session::open(reported.expect("reads"), None, Options::default()).expect_err("no vocabulary");
    assert_eq!(problems[0].msg.key, "scenario.no_vocabulary");
}

/// Numbers of torch 2: `F.scaled_dot_product_attention`, `F.linear`, `F.layer_norm`, in f64.
#[test]
fn a_model_may_be_one_block_over_given_vectors() {
    let qkv = |heads: usize, rest: &str| {
        format!(
            "(name: \"a\", model: (d_model: 4, heads: {heads}, d_ff: 1, norm: (kind: None),
              attention: (projections: false, out_projection: false{rest}),
              encoder: (layers: [(has_ffn: false, residual: false)])),
              source: (qkv: (q: [{Q}], k: [{K}], v: [{V}])), runs: [Encode()])"
        )
    };
    near(&open(&qkv(1, "")), "encoder.0.self_attn.out", &ONE_HEAD);
    near(&open(&qkv(2, "")), "encoder.0.self_attn.out", &TWO_HEADS);
    near(&open(&qkv(2, ", causal: true")), "encoder.0.self_attn.out", &CAUSAL);
    let alone = |model: &str, weights: &str| {
        open(&format!(
            "(name: \"a\", model: (d_model: 4, heads: 1, d_ff: 3, {model}), source: (vectors: [{Q}]),
              weights: (values: {{ {weights} }}), runs: [Encode()])"
        ))
    };
    let ffn = "\"encoder.0.ffn.w1.weight\": OutIn([[1, -1, 0.5, 0], [0.25, 2, 0, -1], [-1, 0, 1, 1]]),
               \"encoder.0.ffn.w2.weight\": OutIn([[1, 0, 2], [0, 1, -1], [0.5, 0.5, 0], [1, 1, 1]])";
    let s = alone("norm: (kind: None), encoder: (layers: [(has_attention: false, residual: false)])", ffn);
    near(&s, "encoder.0.ffn.out", &FFN);
    let s = alone("norm: (kind: None), encoder: (layers: [(has_attention: false)])", ffn);
    near(&s, "encoder.0.residual1", &FFN_RESIDUAL);
    let gamma =
        "\"encoder.final_norm.gamma\": Vector([1, 2, 1, 0.5]), \"encoder.final_norm.beta\": Vector([0, 1, 0, -1])";
    let s = alone("encoder: (layers: [], final_norm: true)", gamma);
    near(&s, "encoder.final_norm.out", &NORM);
}

const Q: &str = "[[0.5, -1, 2, 0.25], [1, 0, -0.5, 1.5], [-2, 1, 0.75, 0]]";
const K: &str = "[[1, 0.5, -1, 0], [0.25, 1, 1, -1], [0, -0.5, 2, 1]]";
const V: &str = "[[1, 2, 3, 4], [-1, 0, 1, 0.5], [0.5, -2, 0, 1]]";

#[rustfmt::skip]
const ONE_HEAD: [f64; 12] = [0.3311215251641968, -1.6393054703921126, 0.20938795690969017, 1.0259891360210136, 0.6134677185024308, 0.4363536695011797, 1.7726719692158228, 2.6088921204856375, -0.1872212534645335, -0.6893284126463495, 0.7398450614055979, 1.0103691740766783];

#[rustfmt::skip]
const TWO_HEADS: [f64; 12] = [0.3960590355109627, -0.2863005961156714, 0.17487772933672943, 0.9583741774302288, 0.3161807093655977, 0.4870875089020633, 1.4606779628584776, 2.3427118514339105, -0.29394839530135397, -0.287932329395764, 0.6693593814478049, 1.176865054132934];

#[rustfmt::skip]
const CAUSAL: [f64; 12] = [1.0, 2.0, 3.0, 4.0, 0.25912019193928293, 1.259120191939283, 2.708359500012761, 3.489629125022333, -0.29394839530135397, -0.287932329395764, 0.6693593814478049, 1.176865054132934];

#[rustfmt::skip]
const FFN: [f64; 12] = [6.0, -1.75, 1.25, 4.25, 0.75, 0.0, 0.375, 0.75, 5.5, -1.25, 0.75, 4.25];

#[rustfmt::skip]
const FFN_RESIDUAL: [f64; 12] = [6.5, -2.75, 3.25, 4.5, 1.75, 0.0, -0.125, 2.25, 3.5, -0.25, 1.5, 4.25];

#[rustfmt::skip]
const NORM: [f64; 12] = [0.05862078032576702, -1.6965558949852806, 1.465519508144174, -1.0879311704886505, 0.6324504724501345, -0.26490094490026905, -1.264900944900269, -0.3675495275498655, -1.6453032341959912, 2.8045261278278613, 0.6899658724047705, -0.973462851061355];

/// A scenario whose published figures have one decimal, one of them wrong.
fn published(printed: f64) -> String {
    format!(
        r#"(
    name: "published", digits: 1,
    model: (
        d_model: 2, heads: 1, d_ff: 1, norm: (kind: None),
        attention: (projections: false, out_projection: false),
        encoder: (layers: [(has_ffn: false, residual: false)]),
    ),
    source: (qkv: (q: [[[1, 0]]], k: [[[1, 0], [0, 1]]], v: [[[1, 2], [3, 4]]])),
    runs: [Encode()],
    expected: [(
        path: "encoder.0.self_attn.context", values: [1.7, 2.7], printed: 1,
        misprints: [(at: 1, printed: {printed}, note: (en: "the sum was forgotten", zh: "漏了求和"))],
    )],
)"#
    )
}

#[test]
fn misprints_are_listed_and_a_scenario_says_how_many_decimals_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("published.ron");
    let path = file.to_str().expect("text");
    std::fs::write(&file, published(2.0)).expect("written");
    let output = run(&["check", path]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("published as 2.0, which is wrong: 2.66") && text.contains("the sum was forgotten"),
        "{text}"
    );
    // A figure that is right is no misprint.
    std::fs::write(&file, published(2.7)).expect("written");
    let output = run(&["check", path]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the published figure is right"), "{text}");

    let shown = |more: &[&str]| {
        let arguments = [&["export", path, "--step", "all", "--format", "text"], more].concat();
        String::from_utf8_lossy(&run(&arguments).stdout).into_owned()
    };
    assert!(shown(&[]).contains(" 2.7") && !shown(&[]).contains("2.66"), "{}", shown(&[]));
    assert!(shown(&["--digits", "3"]).contains("2.66"));
    let output = run(&["play", path, "-e", "go encoder.0.self_attn.context[0,0,0,1]"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("= 2.7"), "{text}");
}
