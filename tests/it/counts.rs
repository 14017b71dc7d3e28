//! Parameters, arithmetic and memory, counted from shapes.

use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;
use tui_transformer::debug::counts::{Counts, Kind, Wanted};
use tui_transformer::scenario::load;
use tui_transformer::session::{Options, Session, open};

fn shapes(name: &str) -> Session {
    let loaded = load(Path::new(name)).expect("a scenario");
    open(loaded.scenario, None, Options { shapes: true, ..Options::default() }).expect("opens")
}

#[test]
fn bert_base_has_the_parameters_that_its_paper_and_torch_count() {
    let output = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["counts", "bert_base", "--lengths", "16,32", "--json"])
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let counts: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    // sum(p.numel() for p in transformers.BertModel(transformers.BertConfig()).parameters())
    assert_eq!(counts["parameters"]["all"], 109_482_240);
    let module = |path: &str| {
        let modules = counts["parameters"]["modules"].as_array().expect("a list");
        modules.iter().find(|m| m["module"] == path).unwrap_or_else(|| panic!("{path}: {modules:?}")).clone()
    };
    let attention = module("encoder.0.self_attn");
    assert_eq!((&attention["each"], &attention["times"]), (&Json::from(2_362_368), &Json::from(12)));
    assert_eq!(module("encoder.0.ffn")["each"], 4_722_432);
    let words = module("embed.weight");
    assert_eq!(words["tensors"][0]["shape"], serde_json::json!([30522, 768]));
    assert_eq!(words["all"], 23_440_896);
    // 13 tokens in two sentences against 2 × 128: nearly 20 times the work.
    let padding = &counts["padding"];
    assert_eq!(padding["lengths"], serde_json::json!([5, 8]));
    let ratio = padding["flops_padded"].as_f64().expect("a number") / padding["flops"].as_f64().expect("a number");
    assert!((19.6..20.5).contains(&ratio), "{ratio}");
}

#[test]
fn banded_attention_costs_what_its_window_costs() {
    let s = shapes("local_and_linear_attention");
    let wanted = Wanted { lengths: vec![64, 128, 256, 512], window: Some(8), pad: 16 };
    let counts = Counts::of(&s, 0, &wanted).expect("counts");
    let curve = |kind: Kind| &counts.curves.iter().find(|c| c.kind == kind).expect("a curve").points;
    let growth = |kind: Kind| {
        let points = curve(kind);
        (points[3].flops as f64 / points[2].flops as f64, points[3].kept as f64 / points[2].kept as f64)
    };
    let (flops, kept) = growth(Kind::Full);
    assert!(flops > 3.9 && kept > 3.6, "{flops} {kept}");
    for kind in [Kind::Local, Kind::Linear] {
        let (flops, kept) = growth(kind);
        assert!((1.9..2.1).contains(&flops) && (1.9..2.2).contains(&kept), "{kind:?}: {flops} {kept}");
    }
    // Scores and context of full attention: 2 heads, d_k 8: 2·2·n²·8·2 and the softmax.
    let full = curve(Kind::Full)[0].flops;
    let products = 2 * 2 * 64 * 64 * 8 * 2;
    assert!(full > products && full < 2 * products, "{full}");
    assert!(curve(Kind::Local)[3].flops < curve(Kind::Full)[3].flops / 8);
}

#[test]
fn counts_are_those_of_the_parameters_and_the_program() {
    let s = shapes("water_class");
    let counts = Counts::of(&s, 0, &Wanted { lengths: vec![16], window: None, pad: 8 }).expect("counts");
    let all: usize = s.specs.iter().map(|p| p.shape.len()).sum();
    assert_eq!(counts.all(), all as u64);
    let program = &s.runs[0].program;
    let flops: u64 =
        program.nodes().map(|(id, _)| tui_transformer::program::cost(program, id, s.precision).flops).sum();
    assert_eq!(counts.work.iter().map(|w| w.flops).sum::<u64>(), flops);
    let (backward, update) = counts.training.expect("it is trained");
    assert!(backward > flops && update > 0);
}
