//! Checkpoint folders as Hugging Face saves them, opened by their families' files: every tensor that transformers computed
//! from them is one of ours, greedy continuations are the same, and each derivation replays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value as Json;

fn folder(name: &str) -> PathBuf {
    Path::new("tests/data/checkpoints/families").join(name)
}

fn program(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(args).env("LC_ALL", "C").output().expect("runs")
}

fn json(args: &[&str]) -> Json {
    let out = program(args);
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)))
}

/// The numbers of a file.
fn tensors(path: &Path) -> BTreeMap<String, Vec<f64>> {
    let bytes = std::fs::read(path).expect("readable");
    let file = SafeTensors::deserialize(&bytes).expect("safetensors");
    let numbers = |dtype: Dtype, data: &[u8]| -> Vec<f64> {
        match dtype {
            Dtype::F32 => data.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect(),
            Dtype::I64 => data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as f64).collect(),
            _ => data.iter().map(|b| f64::from(*b)).collect(),
        }
    };
    file.iter().map(|(name, view)| (name.to_owned(), numbers(view.dtype(), view.data()))).collect()
}

/// Root of the mean square of the difference, relative to that of `b`.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |x: f64| x * x;
    let difference: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
    (difference / b.iter().map(|b| square(*b)).sum::<f64>().max(f64::MIN_POSITIVE)).sqrt()
}

#[rstest]
fn what_transformers_computed_is_computed(
    #[values(
        "albert",
        "albert_inner",
        "bart",
        "bert",
        "bert_classifier",
        "bert_mlm",
        "bloom",
        "codegen",
        "cohere",
        "cohere2",
        "deepseek_v3",
        "distilbert",
        "electra",
        "falcon",
        "gemma",
        "gemma2",
        "gemma3",
        "glm4",
        "gpt2",
        "gpt_bigcode",
        "gpt_neo",
        "gpt_neox",
        "gpt_neox_odd",
        "gpt_oss",
        "gptj",
        "granite",
        "llama",
        "llama3",
        "llama_yarn",
        "marian",
        "mbart",
        "mistral",
        "mixtral",
        "modernbert",
        "mpt",
        "nemotron",
        "olmo",
        "olmo2",
        "olmoe",
        "opt",
        "phi",
        "phi3",
        "qwen2",
        "qwen2_moe",
        "qwen2_sharded_bf16",
        "qwen3",
        "qwen3_moe",
        "roberta",
        "smollm3",
        "stablelm",
        "stablelm_qk",
        "starcoder2",
        "t5",
        "t5_gated",
        "umt5"
    )]
    name: &str,
) {
    let source = folder(name);
    let source = source.to_str().expect("text");
    let reference = format!("{source}/ref.safetensors");
    let report = json(&["compare", source, &reference, "--json"]);
    assert_eq!(report["verdict"], Json::Null, "{report:#}");
    let unmatched = report["unmatched"].as_array().expect("names");
    assert!(unmatched.iter().all(|name| name == "greedy_ids"), "{unmatched:?}");
    // The same again, from what is recorded.
    let temporary = tempfile::tempdir().expect("a folder");
    let recording = temporary.path().join("run.safetensors");
    let recorded = program(&["record", source, "--inputs", &reference, "-o", recording.to_str().expect("text")]);
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let (ours, theirs) = (tensors(&recording), tensors(Path::new(&reference)));
    let checked = report["nodes"].as_array().expect("nodes").iter().filter(|n| n["state"] == "match");
    let mut count = 0;
    for node in checked {
        let (name, path) = (node["name"].as_str().expect("a name"), node["path"].as_str().expect("a path"));
        if !name.ends_with("_ids") && !name.ends_with("_mask") {
            let far = distance(&ours[path], &theirs[name]);
            assert!(far < 2e-5, "{name} is {path}: {far}");
            count += 1;
        }
    }
    assert!(count >= 4, "{count} tensors of numbers");
}

#[rstest]
fn greedy_continuations_are_the_same_with_and_without_cache(
    #[values(
        "bart",
        "bloom",
        "codegen",
        "cohere",
        "cohere2",
        "deepseek_v3",
        "falcon",
        "gemma",
        "gemma2",
        "gemma3",
        "glm4",
        "gpt2",
        "gpt_bigcode",
        "gpt_neo",
        "gpt_neox",
        "gpt_neox_odd",
        "gpt_oss",
        "gptj",
        "granite",
        "llama",
        "llama3",
        "llama_yarn",
        "marian",
        "mbart",
        "mistral",
        "mixtral",
        "mpt",
        "nemotron",
        "olmo",
        "olmo2",
        "olmoe",
        "opt",
        "phi",
        "phi3",
        "qwen2",
        "qwen2_moe",
        "qwen2_sharded_bf16",
        "qwen3",
        "qwen3_moe",
        "smollm3",
        "stablelm",
        "stablelm_qk",
        "starcoder2",
        "t5",
        "t5_gated",
        "umt5"
    )]
    name: &str,
) {
    let source = folder(name);
    let reference = tensors(&source.join("ref.safetensors"));
    let ids: Vec<String> = reference["input_ids"].iter().map(f64::to_string).collect();
    let greedy = &reference["greedy_ids"];
    for cache in ["on", "off"] {
        let made = json(&[
            "generate",
            source.to_str().expect("text"),
            "--ids",
            &ids.join(" "),
            "--max-new",
            "6",
            "--min-new",
            "6",
            "--kv-cache",
            cache,
            "--json",
        ]);
        let made: Vec<f64> = made["ids"].as_array().expect("ids").iter().filter_map(Json::as_f64).collect();
        assert_eq!(made, greedy[greedy.len() - 6..], "cache {cache}");
    }
}

#[rstest]
#[case("gpt2")]
#[case("bart")]
#[case("bert_mlm")]
#[case("t5")]
#[case("mixtral")]
fn every_derivation_replays(#[case] name: &str) {
    let source = folder(name);
    let out = program(&["check", source.to_str().expect("text")]);
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}
