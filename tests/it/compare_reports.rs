//! Correct models that a comparison called wrong, and wrong ones whose first difference it did not name: what other
//! people reported, with the right results.

use std::path::Path;
use std::process::Command;

use rstest::rstest;
use serde_json::Value as Json;

/// The comparison of a scenario in `tests/data/reports` with a reference next to it.
fn compared(folder: &str, scenario: &str, reference: &str, run: Option<&str>) -> (Json, bool) {
    let at = Path::new("tests/data/reports").join(folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    command.arg("compare").args([at.join(scenario), at.join(reference)]).arg("--json");
    if let Some(run) = run {
        command.args(["--run", run]);
    }
    let out = command.output().expect("it runs");
    let json = serde_json::from_slice(&out.stdout);
    (json.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr))), out.status.success())
}

/// Nothing differs, and everything that the model computed was compared.
#[rstest]
// Their embedding module does two of our steps: it looks up and scales.
#[case("hf_gemma", "model.ron", "ref.safetensors", None, 35)]
#[case("hf_mbart", "model.ron", "ref.safetensors", None, 40)]
// `output` is what the whole model returns, logits here, and not the last hidden states.
#[case("numerics", "nn_pre_relu_0.ron", "wrap_transformer.safetensors", None, 50)]
// A mean of what cancels: 2.8e-17 and 0 are both rounding.
#[case("numerics", "mm10_f64.ron", "mm10_f64_ref.safetensors", None, 40)]
// Gradients that are exactly 0.
#[case("numerics", "q27.ron", "q27_good.safetensors", Some("backward"), 250)]
#[case("numerics", "q2.ron", "q2_good.safetensors", Some("backward"), 250)]
fn a_correct_model_is_no_difference(
    #[case] folder: &str,
    #[case] scenario: &str,
    #[case] reference: &str,
    #[case] run: Option<&str>,
    #[case] least: u64,
) {
    let (json, good) = compared(folder, scenario, reference, run);
    assert!(good, "{}", json["verdict"]);
    assert_eq!(json["good"], true);
    let agree =
        json["counts"]["match"].as_u64().expect("a number") + json["counts"]["drift"].as_u64().expect("a number");
    assert!(agree >= least, "{agree}");
    assert_eq!(json["mattering"], serde_json::json!([]), "{folder}");
}

/// What really differs is named: a block whose feed-forward network reads what attention reads, where part of a head
/// rotates or where scores are computed in binary32 in a run of binary64.
#[rstest]
#[case("hf_phi", "model.layers.0.mlp.fc1")]
#[case("hf_gptj", "transformer.h.0.mlp.fc_in")]
fn a_parallel_block_is_named(#[case] folder: &str, #[case] name: &str) {
    let (json, good) = compared(folder, "model.ron", "ref.safetensors", None);
    assert!(!good);
    assert_eq!(json["verdict"]["path"], "decoder.0.ffn.hidden");
    let nodes = json["nodes"].as_array().expect("a list");
    let of = |path: &str| nodes.iter().find(|n| n["path"] == path).unwrap_or_else(|| panic!("{path}"));
    assert_eq!(of("decoder.0.ffn.hidden")["name"], name);
    for path in ["decoder.0.self_attn.scores", "decoder.0.self_attn.weights", "decoder.0.self_attn.out"] {
        let state = nodes.iter().find(|n| n["path"] == path).map(|n| n["state"].clone());
        assert!(state.is_none_or(|s| s != "diverged"), "{folder} {path}");
    }
    if folder == "hf_phi" {
        let rotated = of("decoder.0.self_attn.k_rotated");
        assert_eq!(rotated["state"], "match");
        assert_eq!(rotated["reference_shape"], serde_json::json!([1, 4, 8, 2]));
    }
}

/// A table of positions without a batch denotes one with it only where all sequences have the same positions.
#[rstest]
#[case("hf_gpt2_left", "model.ron", "ref.safetensors")]
#[case("leftpad", "swapped.ron", "right_hf_swapped.npz")]
fn positions_of_padding_on_the_left_are_named(#[case] folder: &str, #[case] scenario: &str, #[case] reference: &str) {
    let (json, good) = compared(folder, scenario, reference, None);
    assert!(!good);
    assert_eq!(json["verdict"]["path"], "embed.target.positions");
    let nodes = json["nodes"].as_array().expect("a list");
    let positions = nodes.iter().find(|n| n["path"] == "embed.target.positions").expect("positions");
    assert_eq!(positions["row"], 1);
}

/// Sequences with equal positions are one table.
#[test]
fn equal_positions_of_all_sequences_are_one_table() {
    let (json, _) = compared("leftpad", "model.ron", "same.npz", None);
    let nodes = json["nodes"].as_array().expect("a list");
    let positions = nodes.iter().find(|n| n["path"] == "embed.target.positions").expect("positions");
    assert_eq!(positions["state"], "match");
    assert_eq!(positions["reference_shape"], serde_json::json!([2, 5, 12]));
}
