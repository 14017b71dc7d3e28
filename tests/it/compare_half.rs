//! `compare` with recordings of models in bf16, as PyTorch computes them (`tests/data/half/make.py`): the last digits tell
//! a fault that is smaller than the rounding, and modules are known by their weights where no table has their names.

use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value as Json;

fn compared(folder: &str, reference: &str, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["compare", ".", &format!("ref.{reference}.safetensors")])
        .args(more)
        .current_dir(format!("{}/tests/data/half/{folder}", env!("CARGO_MANIFEST_DIR")))
        .env("LC_ALL", "C")
        .output()
        .expect("runs")
}

fn json(folder: &str, reference: &str, mode: &str) -> Json {
    let out = compared(folder, reference, &["--json", "--mode", mode]);
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)))
}

#[rstest]
fn a_correct_run_in_bf16_raises_no_difference(
    #[values("bert", "neox")] folder: &str,
    #[values("isolated", "cumulative")] mode: &str,
) {
    let report = json(folder, "none", mode);
    assert_eq!(report["verdict"], Json::Null, "{folder} {mode}");
    assert_eq!(report["mattering"], serde_json::json!([]), "{folder}");
    assert!(report["counts"]["match"].as_u64().expect("a count") >= 35, "{}", report["counts"]);
}

#[rstest]
#[case("bert", "gelu_tanh", "encoder.1.ffn.act")]
#[case("bert", "ln_unbiased", "encoder.1.norm1.out")]
#[case("neox", "gelu_tanh", "decoder.1.ffn.act")]
fn a_fault_below_the_rounding_is_named(#[case] folder: &str, #[case] fault: &str, #[case] path: &str) {
    let report = json(folder, fault, "isolated");
    assert_eq!(report["verdict"]["path"], path);
    assert_eq!(report["differences"].as_array().expect("a list").len(), 1);
    let node = report["nodes"].as_array().expect("a list").iter().find(|n| n["path"] == path && n["by_digits"] == true);
    let node = node.expect("its digits differ");
    assert!(node["differing"].as_u64() > Some(0) && node["worst"][0]["index"].is_array());
    let text = compared(folder, fault, &[]);
    assert_eq!(text.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&text.stdout).contains("are not what bf16 makes of our numbers"));
}

/// A module that holds several of our matrices, and those around it, are known by the weights that were read.
#[test]
fn modules_are_known_by_their_weights() {
    let report = json("neox", "none", "isolated");
    let nodes = report["nodes"].as_array().expect("a list");
    for (path, name) in [
        ("decoder.1.self_attn.k", "gpt_neox.layers.1.attention.query_key_value"),
        ("decoder.1.self_attn.masked_scores", "gpt_neox.layers.1.attention.scores"),
        ("decoder.1.ffn.act", "gpt_neox.layers.1.mlp.act"),
        ("decoder.1.norm2.out", "gpt_neox.layers.1.post_attention_layernorm"),
        ("decoder.0.ffn.out", "gpt_neox.layers.0.mlp.dense_4h_to_h"),
        ("decoder.rotary.sin", "gpt_neox.rotary_emb[1]"),
    ] {
        let found = nodes.iter().find(|n| n["path"] == path && n["name"] == name);
        assert_eq!(found.map(|n| &n["state"]), Some(&Json::from("match")), "{path}: {name}");
    }
}
