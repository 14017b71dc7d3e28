//! Checkpoints as Hugging Face saves them, with hidden states, attention weights and logits that it computed (float32):
//! scenarios next to them agree with all of these, and a wrong setting is found where it acts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;
use serde_json::Value as Json;

fn folder(model: &str) -> PathBuf {
    Path::new("tests/data/checkpoints").join(model)
}

/// Exit code and report of `compare`.
fn compare(scenario: &Path, reference: &Path, mode: &str) -> (Option<i32>, Json) {
    let out = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .arg("compare")
        .args([scenario, reference])
        .args(["--json", "--mode", mode])
        .env("LC_ALL", "C")
        .output()
        .expect("runs");
    let reported = String::from_utf8_lossy(&out.stderr);
    let json = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {reported}"));
    (out.status.code(), json)
}

fn checked(report: &Json) -> Vec<(&str, &str)> {
    report["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter(|n| n["state"] != "unchecked")
        .map(|n| (n["name"].as_str().expect("a name"), n["path"].as_str().expect("a path")))
        .collect()
}

#[rstest]
#[case("bert", &[
    ("input_ids", "embed.source.ids"),
    ("hidden_states_0", "embed.source.out"),
    ("attention_mask", "encoder.0.self_attn.mask"),
    ("attentions_0", "encoder.0.self_attn.weights"),
    ("hidden_states_1", "encoder.0.norm2.out"),
    ("attentions_1", "encoder.1.self_attn.weights"),
    ("hidden_states_2", "encoder.1.norm2.out"),
    ("last_hidden_state", "encoder.1.norm2.out"),
], &[])]
#[case("gpt2", &[
    ("input_ids", "embed.target.ids"),
    ("hidden_states_0", "embed.target.out"),
    ("attentions_0", "decoder.0.self_attn.weights"),
    ("hidden_states_1", "decoder.0.residual2"),
    ("attentions_1", "decoder.1.self_attn.weights"),
    ("hidden_states_2", "decoder.final_norm.out"),
    ("logits", "output.logits"),
], &[])]
#[case("llama", &[
    ("input_ids", "embed.target.ids"),
    ("hidden_states_0", "embed.target.out"),
    ("attentions_0", "decoder.0.self_attn.weights"),
    ("hidden_states_1", "decoder.0.residual2"),
    ("attentions_1", "decoder.1.self_attn.weights"),
    ("hidden_states_2", "decoder.final_norm.out"),
    ("logits", "output.logits"),
], &[])]
fn everything_that_it_computed_matches(
    #[case] model: &str,
    #[case] wanted: &[(&str, &str)],
    #[case] unmatched: &[&str],
) {
    let at = folder(model);
    for mode in ["isolated", "cumulative"] {
        let (code, report) = compare(&at.join("scenario.ron"), &at.join("ref.npz"), mode);
        assert_eq!((code, &report["verdict"]), (Some(0), &Json::Null), "{mode}");
        let nodes: BTreeSet<&str> = wanted.iter().map(|w| w.1).collect();
        assert_eq!(report["counts"]["match"], nodes.len(), "{mode}: no drift either");
        assert_eq!(checked(&report), wanted, "{mode}");
        assert_eq!(report["unmatched"], serde_json::json!(unmatched));
    }
}

/// The checkpoint itself as the reference: every parameter, by its name there and as it lies there.
#[rstest]
#[case("bert", &["pooler.dense.bias", "pooler.dense.weight"])]
#[case("gpt2", &[])]
#[case("llama", &[])]
fn parameters_are_those_of_the_checkpoint(#[case] model: &str, #[case] unmatched: &[&str]) {
    let at = folder(model);
    let (code, report) = compare(&at.join("scenario.ron"), &at.join("model.safetensors"), "isolated");
    assert_eq!((code, &report["unmatched"]), (Some(0), &serde_json::json!(unmatched)));
    let parameters: Vec<&str> = report["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter(|n| n["state"] == "match" && n["max"] == 0.0)
        .map(|n| n["path"].as_str().expect("a path"))
        .collect();
    let all = report["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter_map(|n| n["path"].as_str())
        .filter(|p| [".weight", ".bias", ".gamma", ".beta"].iter().any(|end| p.ends_with(end)))
        .count();
    assert_eq!(parameters.len(), all);
    assert!(all >= 20);
}

#[rstest]
#[case::exact_gelu("gpt2", "GeluTanh", "Gelu", "decoder.0.residual2", "decoder.0.ffn.act")]
#[case::eps("gpt2", "eps: 1e-5", "eps: 1e-6", "decoder.0.self_attn.weights", "decoder.0.norm1.out")]
#[case::gelu_tanh("bert", "Gelu,", "GeluTanh,", "encoder.0.norm2.out", "encoder.0.ffn.act")]
#[case::no_padding_mask("bert", "false, false]", "true, true]", "encoder.0.self_attn.mask", "encoder.0.self_attn.mask")]
#[case::pre_for_post("bert", "Post", "Pre", "encoder.0.self_attn.weights", "encoder.0.norm1.out")]
#[case::interleaved("llama", "Halves", "Interleaved", "decoder.0.self_attn.weights", "decoder.0.self_attn.q_rotated")]
#[case::base("llama", "base: 10000", "base: 500000", "decoder.0.self_attn.weights", "decoder.0.self_attn.q_rotated")]
#[case::gate_for_up("llama", "mlp.gate_proj", "mlp.up_proj", "decoder.0.residual2", "decoder.0.ffn.hidden")]
fn a_wrong_setting_lies_in_the_interval(
    #[case] model: &str,
    #[case] from: &str,
    #[case] to: &str,
    #[case] first: &str,
    #[case] cause: &str,
) {
    let at = std::path::absolute(folder(model)).expect("a path");
    let temporary = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(at.join("scenario.ron")).expect("readable");
    let wrong = text.replace(from, to).replace("(path: \"", &format!("(path: \"{}/", at.display()));
    assert!(text.contains(from));
    let scenario = temporary.path().join("wrong.ron");
    std::fs::write(&scenario, wrong).expect("writable");
    for mode in ["isolated", "cumulative"] {
        let (code, report) = compare(&scenario, &at.join("ref.npz"), mode);
        let verdict = &report["verdict"];
        assert_eq!((code, &verdict["path"]), (Some(1), &first.into()), "{mode}");
        let between = verdict["between"].as_array().expect("places");
        assert!(first == cause || between.iter().any(|p| p["path"] == cause), "{mode}: {between:?}");
    }
}
