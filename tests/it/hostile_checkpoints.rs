//! Checkpoints that lie or are broken: one clear error each, and nothing large is allocated.

use std::fs;
use std::path::Path;
use std::process::Command;

use rstest::rstest;
use serde_json::{Value as Json, json};

const FOLDERS: &str = "tests/data/checkpoints/families";

/// A copy of a folder.
fn copy(name: &str) -> tempfile::TempDir {
    let made = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(Path::new(FOLDERS).join(name)).expect("readable") {
        let path = entry.expect("an entry").path();
        fs::write(made.path().join(path.file_name().expect("a name")), fs::read(&path).expect("readable"))
            .expect("written");
    }
    made
}

/// What `steps` says, with little memory: one error.
fn error(folder: &Path, more: &[&str]) -> String {
    let command = "ulimit -v 4000000; exec \"$@\"";
    let out = Command::new("sh")
        .args(["-c", command, "sh", env!("CARGO_BIN_EXE_tui-transformer"), "steps"])
        .arg(folder)
        .args(more)
        .env("LC_ALL", "C")
        .output()
        .expect("runs");
    let reported = String::from_utf8(out.stderr).expect("text");
    assert_eq!(out.status.code(), Some(2), "{reported}");
    assert_eq!(reported.matches("error:").count(), 1, "{reported}");
    reported
}

fn set(folder: &Path, key: &str, value: Json) {
    let path = folder.join("config.json");
    let mut config: Json = serde_json::from_slice(&fs::read(&path).expect("readable")).expect("JSON");
    config[key] = value;
    fs::write(path, config.to_string()).expect("written");
}

#[rstest]
#[case("num_attention_heads", json!(5), "heads")]
#[case("num_key_value_heads", json!(3), "kv_heads")]
#[case("num_hidden_layers", json!(1_000_000_000), "10000")]
#[case("num_hidden_layers", json!(-2), "-2")]
#[case("num_hidden_layers", json!("many"), "many")]
#[case("hidden_size", json!(-16), "-16")]
#[case("hidden_size", json!(1_000_000_000_000_u64), "1000000000000")]
#[case("intermediate_size", json!(1_000_000), "28 × 16")]
#[case("vocab_size", json!(60_000_000), "model.embed_tokens.weight")]
#[case("vocab_size", Json::Null, "vocab_size")]
#[case("rms_norm_eps", json!(-1.0), "eps")]
#[case("hidden_act", json!("gelu_of_mars"), "gelu_of_mars")]
#[case("rope_parameters", json!({"rope_type": "martian", "rope_theta": 1e4}), "positions.Rotary.scaling")]
#[case("rope_parameters", json!({"rope_type": "default", "rope_theta": -1.0}), "base")]
#[case("num_hidden_layers", json!(3), "model.layers.2.input_layernorm.weight")]
#[case("num_hidden_layers", json!(1), "model.layers.1.")]
#[case("attention_bias", json!(true), "q_proj.bias")]
#[case("model_type", json!("llamma"), "llama")]
fn a_configuration_that_lies_is_refused(#[case] key: &str, #[case] value: Json, #[case] says: &str) {
    let folder = copy("llama");
    set(folder.path(), key, value);
    let reported = error(folder.path(), &[]);
    assert!(reported.contains(says), "{reported}");
}

#[test]
fn numbers_that_json_does_not_have_are_refused() {
    let folder = copy("llama");
    let path = folder.path().join("config.json");
    let text = fs::read_to_string(&path).expect("readable").replace("1e-06", "NaN");
    fs::write(&path, text).expect("written");
    assert!(error(folder.path(), &[]).contains("NaN"));
    fs::write(&path, "[]").expect("written");
    assert!(error(folder.path(), &[]).contains("not an object"));
}

#[test]
fn a_shard_that_is_cut_short_absent_or_elsewhere_is_named() {
    let folder = copy("qwen2_sharded_bf16");
    let shard = fs::read_dir(folder.path())
        .expect("readable")
        .map(|e| e.expect("an entry").path())
        .find(|p| p.to_string_lossy().ends_with("00002.safetensors"))
        .expect("shards");
    let bytes = fs::read(&shard).expect("readable");
    let name = shard.file_name().expect("a name").to_string_lossy().into_owned();
    fs::write(&shard, &bytes[..bytes.len() - 4]).expect("written");
    assert!(error(folder.path(), &[]).contains(&name));
    fs::write(&shard, &bytes[..20]).expect("written");
    assert!(error(folder.path(), &[]).contains(&name));
    fs::remove_file(&shard).expect("removed");
    assert!(error(folder.path(), &[]).contains(&name));
    let index = folder.path().join("model.safetensors.index.json");
    let text = fs::read_to_string(&index).expect("readable").replace(&name, &format!("../{name}"));
    fs::write(&index, text).expect("written");
    assert!(error(folder.path(), &[]).contains("../"));
}

#[test]
fn a_tokenizer_that_is_none_is_named() {
    let folder = copy("llama");
    fs::write(folder.path().join("tokenizer.json"), "once upon a time").expect("written");
    assert!(error(folder.path(), &[]).contains("tokenizer.json"));
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_to_itself_is_an_error() {
    for file in ["config.json", "model.safetensors", "tokenizer.json", "generation_config.json"] {
        let folder = copy("llama");
        let path = folder.path().join(file);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(&path, &path).expect("a link");
        let reported = error(folder.path(), &[]);
        assert!(reported.contains(file), "{reported}");
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let folder = Path::new(FOLDERS).join("llama");
    for (more, says) in [
        (&["--ids", "1 2 99"][..], "99"),
        (&["--ids", "1,-2"], "-2"),
        (&["--ids", "1 two"], "two"),
        (&["--ids", " "], "id"),
        (&["--ids", "1 2 3", "--mask", "1 0"], "3"),
        (&["--ids", "1 2 3", "--types", "0 0 1"], "type"),
        (&["--ids", "1 2", "--target-ids", "1"], "decoder"),
        (&["--text", "hello"], "tokenizer"),
        (&["--inputs", "tests/data/checkpoints/families/llama/model.safetensors"], "input_ids"),
        (&["--family", "tests/data/checkpoints/families/llama/config.json"], "config.json"),
    ] {
        let reported = error(&folder, more);
        assert!(reported.contains(says), "{more:?}: {reported}");
    }
}
