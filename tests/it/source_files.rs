//! Weights and tokenizers of real formats: the number types of GGUF against what the `gguf` package widens them to, and
//! tokenizers against what the `tokenizers` package says of the same texts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;
use tui_transformer::source::{TensorFile, Tokenizer};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/checkpoints").join(name)
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(args).env("LC_ALL", "C").output().expect("runs")
}

fn json(out: &Output) -> Json {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

#[test]
fn every_number_type_of_gguf_is_widened_to_the_same_bits() {
    let theirs = TensorFile::open(&data("gguf/types.safetensors")).unwrap();
    let ours = TensorFile::open(&data("gguf/types.gguf")).unwrap();
    assert_eq!(ours.entries().len(), 15);
    for entry in ours.entries() {
        let (x, y) = (ours.read::<f32>(entry).unwrap(), theirs.read::<f32>(theirs.get(&entry.name).unwrap()).unwrap());
        assert_eq!(x.shape().dims(), y.shape().dims(), "{}", entry.name);
        let differs = x.data().iter().zip(y.data()).position(|(a, b)| a.to_bits() != b.to_bits());
        assert_eq!(differs, None, "{}", entry.name);
    }
}

#[test]
fn a_file_of_tensors_is_written_widened_with_the_same_names_and_shapes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.safetensors");
    let made = run(&["tensors", data("gguf/types.gguf").to_str().unwrap(), "-o", out.to_str().unwrap()]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (ours, theirs) = (TensorFile::open(&out).unwrap(), TensorFile::open(&data("gguf/types.safetensors")).unwrap());
    assert_eq!(ours.entries().len(), theirs.entries().len());
    for entry in theirs.entries() {
        let mine = ours.get(&entry.name).unwrap();
        assert_eq!((&mine.shape, mine.number_type), (&entry.shape, entry.number_type));
        assert!(ours.bytes(mine) == theirs.bytes(entry), "{}", entry.name);
    }
    let list = json(&run(&["tensors", out.to_str().unwrap(), "--json"]));
    assert_eq!(list.as_array().unwrap().len(), 15);
    assert_eq!(list[0]["nan"], 0);
}

#[test]
fn texts_of_every_kind_of_tokenizer() {
    for kind in ["bert_text", "gpt2_text", "llama_text", "t5_text"] {
        let folder = data("text").join(kind);
        let tokenizer = Tokenizer::open(&folder).unwrap();
        let cases: Json = serde_json::from_slice(&std::fs::read(folder.join("cases.json")).unwrap()).unwrap();
        for case in cases["cases"].as_array().unwrap() {
            let special = case["add_special_tokens"].as_bool().unwrap();
            let text = case["text"].as_str().unwrap();
            let e = tokenizer.encode(text, case["pair"].as_str(), special).unwrap();
            assert_eq!(serde_json::json!(e.ids), case["ids"], "{kind} {text:?}");
            assert_eq!(serde_json::json!(e.tokens), case["tokens"], "{kind} {text:?}");
            if let Some(offsets) = case.get("offsets") {
                assert_eq!(&serde_json::json!(e.offsets), offsets, "{kind} {text:?}");
            }
            // The pair's decoded text keeps its special tokens in the reference.
            if case.get("pair").is_none() {
                assert_eq!(tokenizer.decode(&e.ids).unwrap(), case["decoded"].as_str().unwrap(), "{kind} {text:?}");
            }
        }
    }
}

#[test]
fn tokenize_prints_one_object() {
    let folder = data("text/llama_text");
    let folder = folder.to_str().unwrap();
    let e = json(&run(&["tokenize", folder, "--text", "I love easy courses", "--json"]));
    let keys: Vec<&String> = e.as_object().unwrap().keys().collect();
    assert_eq!(keys[..3], ["ids", "tokens", "offsets"]);
    assert_eq!(e["ids"][0], 1);
    assert_eq!(json(&run(&["tokenize", folder, "--text", "", "--json"]))["ids"], serde_json::json!([1]));
    let bare = json(&run(&["tokenize", folder, "--text", "", "--no-special-tokens", "--json"]));
    assert_eq!(bare["ids"], serde_json::json!([]));
    let ids = e["ids"].as_array().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    assert_eq!(json(&run(&["tokenize", folder, "--decode", &ids, "--json"]))["text"], "I love easy courses");
    let wrong = run(&["tokenize", folder, "--decode", "1 x"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("`x` is not a token id"));
}

#[test]
fn a_sentence_piece_vocabulary_in_a_gguf_file() {
    // Ids of the sentence piece library and of transformers' conversion of this file.
    let tokenizer = Tokenizer::open(&data("gguf/llama.gguf")).unwrap();
    let e = tokenizer.encode("a b", None, true).unwrap();
    assert_eq!(e.ids, [1, 29, 30]);
    assert_eq!(e.tokens, ["<s>", "▁a", "▁b"]);
    assert_eq!(tokenizer.decode(&e.ids).unwrap(), "a b");
}

#[test]
fn headers_that_lie_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gguf");
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        TensorFile::open(&path).expect_err("refused").key
    };
    let whole = std::fs::read(data("gguf/types.gguf")).unwrap();
    for cut in [0, 3, 4, 8, 20, 30, 200, 500] {
        refused(&whole[..cut]);
    }
    assert_eq!(refused(&whole[..whole.len() - 100]), "source.tensor_outside");
    let mut many = whole.clone();
    many[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(refused(&many), "source.gguf_cut_off");
    let mut newer = whole.clone();
    newer[4] = 9;
    assert_eq!(refused(&newer), "source.gguf_version");
    let header = format!("{{\"a\":{{\"dtype\":\"F32\",\"shape\":[{}],\"data_offsets\":[0,4]}}}}", u64::MAX);
    let lying = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]].concat();
    assert_eq!(refused(&lying), "source.safetensors_broken");
    assert_eq!(refused(b"PK\x03\x04 something else"), "source.unknown_kind");
    assert_eq!(TensorFile::open(folder.path()).expect_err("a folder").key, "source.not_a_file");
}

/// A crate in between takes for granted that a decoder is JSON (found by `fuzz --target tokenizer`): a word that is none, and
/// an escape that denotes no character.
#[test]
fn a_tokenizer_that_is_no_json_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokenizer.json");
    for decoder in [r#"{"type": nuZl}"#, r#"{"type": "\udc00"}"#] {
        let text =
            format!(r#"{{"version": "1.0", "added_tokens": [], "decoder": {decoder}, "model": {{"type": "BPE"}}}}"#);
        std::fs::write(&file, text).expect("written");
        let msg = tui_transformer::source::tokenizer::Tokenizer::open(&file).expect_err("no JSON");
        assert_eq!(msg.key, "source.tokenizer_broken", "{decoder}");
    }
}

/// A crate in between copies each merge into a buffer as long as the longest piece, and cuts prefixes off by bytes, unchecked
/// (found by `fuzz --target tokenizer`).
#[test]
fn a_merge_that_makes_no_piece_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokenizer.json");
    let open = |prefix: &str, vocab: &str, merges: &str| {
        let text = format!(
            r#"{{"version": "1.0", "added_tokens": [], "model": {{"type": "BPE", {prefix} "vocab": {{{vocab}}}, "merges": [{merges}]}}}}"#
        );
        std::fs::write(&file, text).expect("written");
        tui_transformer::source::tokenizer::Tokenizer::open(&file)
    };
    let refused = |prefix: &str, vocab: &str, merges: &str| {
        let msg = open(prefix, vocab, merges).expect_err(merges);
        assert_eq!(msg.key, "source.tokenizer_merge", "{prefix} {merges}");
        msg.render(tui_transformer::text::Lang::En)
    };
    let hash = r###""continuing_subword_prefix": "##","###;
    // Longer than every piece; a part that is no piece; joined to no piece although one is as long; as one line.
    let said = refused("", r#""aa": 0, "bb": 1"#, r#"["aa", "bb"]"#);
    assert!(said.contains("`aa`") && said.contains("`bb`"), "{said}");
    refused("", r#""a": 0, "ab": 1"#, r#"["a", "b"]"#);
    refused("", r#""a": 0, "b": 1, "abc": 2"#, r#"["a", "b"]"#);
    refused("", r#""aa": 0, "bb": 1"#, r#""aa bb""#);
    // Shorter than the prefix, and a prefix that ends inside a character.
    refused(hash, r#""a": 0, "b": 1, "ab": 2"#, r#"["a", "b"]"#);
    refused(hash, r##""a": 0, "#水": 1, "a水": 2"##, r##"["a", "#水"]"##);
    // What is sound opens, and joins.
    for (prefix, vocab, merges) in [
        ("", r#""a": 0, "b": 1, "ab": 2"#, r#"["a", "b"]"#),
        ("", r#""a": 0, "b": 1, "ab": 2"#, r##""#version: 0.2", "a b""##),
        (hash, r###""a": 0, "##b": 1, "ab": 2"###, r###"["a", "##b"]"###),
    ] {
        let tokenizer = open(prefix, vocab, merges).expect(merges);
        assert_eq!(tokenizer.encode("ab", None, false).expect("known").ids, [2], "{prefix} {merges}");
    }
}
