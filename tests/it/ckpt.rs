//! Checkpoints as they are used: GGUF files of many architectures, chat templates, a checkpoint as what is compared with, other
//! texts in the debugger, runs that go on while one looks, weights that are read when they are needed.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rstest::rstest;
use serde_json::Value as Json;
use tui_transformer::checkpoint::{self, Given};
use tui_transformer::debug::compare::theirs;
use tui_transformer::program::{Node, Op};
use tui_transformer::session::{self, AnyBindings, Session};
use tui_transformer::tensor::{DType, Real, Value};
use tui_transformer::trace::{Settings, run_with};

const GPT2: &str = "tests/data/checkpoints/families/gpt2";

fn program(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(args).env("LC_ALL", "C").output().expect("runs")
}

fn said(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

fn json(args: &[&str]) -> Json {
    let out = program(args);
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&out)))
}

fn opened(folder: &str) -> Session {
    let (loaded, _) = checkpoint::load(Path::new(folder), &Given::default()).expect("a checkpoint");
    session::open(loaded.scenario, loaded.origin.as_deref(), session::Options::default()).expect("opens")
}

#[rstest]
fn gguf_files_of_many_architectures(
    #[values(
        "bloom",
        "command-r",
        "falcon",
        "gemma",
        "gemma2",
        "gemma3",
        "gpt-oss",
        "gpt2",
        "gptneox",
        "granite",
        "llama3",
        "mixtral",
        "olmo",
        "olmo2",
        "phi2",
        "phi3",
        "qwen2",
        "qwen2_yarn",
        "qwen3",
        "qwen3moe",
        "smollm3",
        "stablelm",
        "stablelm_qk",
        "starcoder2"
    )]
    name: &str,
) {
    let file = format!("tests/data/checkpoints/gguf_archs/{name}.gguf");
    let reference = format!("tests/data/checkpoints/gguf_archs/{name}_ref.safetensors");
    let report = json(&["compare", &file, &reference, "--json"]);
    assert_eq!(report["verdict"], Json::Null, "{report:#}");
    assert_eq!(report["unmatched"], Json::Array(Vec::new()));
    let nodes = report["nodes"].as_array().expect("nodes");
    assert!(nodes.iter().filter(|n| n["state"] == "match").count() >= 5);
}

#[test]
fn an_architecture_that_is_not_known_names_the_nearest() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = std::fs::read("tests/data/checkpoints/gguf_archs/qwen3.gguf").expect("readable");
    // The same length, so that the file stays whole.
    let other = String::from_utf8_lossy(&bytes).matches("qwen3").count();
    assert!(other > 1);
    let mut changed = bytes.clone();
    for at in 0..changed.len() - 5 {
        if &changed[at..at + 5] == b"qwen3" {
            changed[at..at + 5].copy_from_slice(b"qwen9");
        }
    }
    let file = folder.path().join("other.gguf");
    std::fs::write(&file, changed).expect("written");
    let out = said(&program(&["steps", file.to_str().expect("text")]));
    assert!(out.contains("gguf-qwen9") && out.contains("the nearest is `gguf_qwen"), "{out}");
}

#[rstest]
#[case("llamma", "llama")]
#[case("gpt3", "gpt2")]
#[case("qwen2_5", "qwen2")]
fn the_nearest_family_of_a_misspelt_type(#[case] written: &str, #[case] near: &str) {
    let like = format!("tests/data/checkpoints/families/{near}");
    let folder = tempfile::tempdir().expect("a folder");
    let config = std::fs::read_to_string(format!("{like}/config.json")).expect("readable");
    let config = config.replace(&format!("\"model_type\": \"{near}\""), &format!("\"model_type\": \"{written}\""));
    std::fs::write(folder.path().join("config.json"), config).expect("written");
    std::fs::copy(format!("{like}/model.safetensors"), folder.path().join("model.safetensors")).expect("copied");
    let out = said(&program(&["steps", folder.path().to_str().expect("text")]));
    assert!(out.contains(&format!("the nearest is `{near}`")), "{out}");
}

#[test]
fn chat_templates_say_what_transformers_makes_of_them() {
    let cases: Json =
        serde_json::from_str(&std::fs::read_to_string("tests/data/chat/cases.json").expect("readable")).expect("JSON");
    for case in cases["cases"].as_array().expect("cases") {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = cases["tokens"].clone();
        config["chat_template"] = case["template"].clone();
        std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).expect("written");
        let chat = checkpoint::chat::Chat::open(folder.path()).expect("a template");
        // 2024-12-05 08:07:06 in UTC, as in `make_chat.py`.
        let chat = chat.on(UNIX_EPOCH + Duration::from_secs(1_733_386_026));
        let made = chat.render(case["system"].as_str(), case["user"].as_str().expect("text"));
        match case["said"].as_str() {
            Some(said) => assert_eq!(made.expect("renders"), said, "{}", case["name"]),
            None => assert_eq!(made.expect_err("refused").key, "chat.template", "{}", case["name"]),
        }
    }
}

#[test]
fn a_text_goes_through_the_chat_template() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir("tests/data/checkpoints/text/llama_text").expect("a folder") {
        let file = file.expect("a file").path();
        std::fs::copy(&file, folder.path().join(file.file_name().expect("a name"))).expect("copied");
    }
    let source = folder.path().to_str().expect("text");
    let none = said(&program(&["tokenize", source, "--text", "Hello", "--chat"]));
    assert!(none.contains("has no chat template"), "{none}");
    let template = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:";
    std::fs::write(folder.path().join("chat_template.jinja"), template).expect("written");
    let chat = json(&["tokenize", source, "--text", "Hello", "--chat", "--system", "Be kind", "--json"]);
    let config: Json =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("tokenizer_config.json")).expect("readable"))
            .expect("JSON");
    let first = config["bos_token"].as_str().or(config["bos_token"]["content"].as_str()).expect("a token");
    let whole = format!("{first}system: Be kind\nuser: Hello\nassistant:");
    let plain = json(&["tokenize", source, "--text", &whole, "--no-special-tokens", "--json"]);
    assert_eq!(chat["ids"], plain["ids"]);
    let made =
        json(&["generate", source, "--text", "Hello", "--system", "Be kind", "--chat", "--max-new", "2", "--json"]);
    assert_eq!(made["prefix"]["ids"], plain["ids"]);
}

#[test]
fn a_checkpoint_is_compared_with_another() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(format!("{GPT2}/{file}"), folder.path().join(file)).expect("copied");
    }
    let weights = folder.path().join("model.safetensors");
    let other = folder.path().to_str().expect("text");
    let same = program(&["compare", GPT2, other, "--ids", "3 4 5"]);
    assert!(same.status.success(), "{}", said(&same));
    assert!(said(&same).contains("no difference"));
    // The last number of the file is of some tensor: another one, and its step differs.
    let mut bytes = std::fs::read(&weights).expect("readable");
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&9.0f32.to_le_bytes());
    std::fs::write(&weights, bytes).expect("written");
    let differs = program(&["compare", GPT2, other, "--ids", "3 4 5"]);
    assert_eq!(differs.status.code(), Some(1), "{}", said(&differs));
    // In the debugger it reads what is read there.
    let script = folder.path().join("script");
    std::fs::write(&script, format!("compare {other}\n")).expect("written");
    let played = said(&program(&["play", GPT2, "--ids", "7 8 9 3", script.to_str().expect("text")]));
    assert!(played.contains("differ"), "{played}");
}

#[test]
fn another_text_is_read() {
    let source = "tests/data/checkpoints/text/gpt2_text";
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script");
    std::fs::write(&script, "input\ninput Hello world\ninput\nundo\ninput\n").expect("written");
    let out = said(&program(&["play", source, "--text", "the cat", script.to_str().expect("text")]));
    let read: Vec<&str> = out.lines().filter(|l| l.contains("the model reads: ")).collect();
    assert_eq!(read.len(), 3, "{out}");
    assert!(read[0].ends_with("the cat") && read[1].ends_with("Hello world") && read[2].ends_with("the cat"), "{out}");
}

#[test]
fn nodes_have_the_names_of_the_checkpoint() {
    let of = |folder: &str, wanted: &[(&str, &str)]| {
        let session = opened(folder);
        for (path, name) in wanted {
            let node = session.runs[0].program.find(path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(theirs(&session, 0, node).as_deref(), Some(*name), "{path}");
        }
    };
    of(
        GPT2,
        &[
            ("decoder.1.self_attn.k.weight", "transformer.h.1.attn.c_attn.weight"),
            ("decoder.1.self_attn.out", "transformer.h.1.attn.c_proj"),
            ("decoder.0.norm2.out", "transformer.h.0.ln_2"),
            ("decoder.1.ffn.hidden", "transformer.h.1.mlp.c_fc"),
        ],
    );
    of(
        "tests/data/checkpoints/families/olmo2",
        &[
            ("decoder.1.self_attn.q_flat", "model.layers.1.self_attn.q_proj"),
            ("decoder.1.self_attn.q_norm.out", "model.layers.1.self_attn.q_norm"),
            ("decoder.0.norm1.out", "model.layers.0.post_attention_layernorm"),
            ("decoder.0.norm2.gamma", "model.layers.0.post_feedforward_layernorm.weight"),
        ],
    );
    of("tests/data/checkpoints/families/distilbert", &[("encoder.0.ffn.hidden", "transformer.layer.0.ffn.lin1")]);
    of("tests/data/checkpoints/gguf_archs/qwen3.gguf", &[("decoder.1.ffn.gate", "blk.1.ffn_up")]);
    // What is no module has none.
    let session = opened(GPT2);
    let node = session.runs[0].program.find("decoder.0.residual1").expect("a node");
    assert_eq!(theirs(&session, 0, node), None);
}

#[test]
fn a_run_goes_on_while_one_looks_and_ends_with_the_same_bits() {
    let whole = opened(GPT2);
    let session = Arc::new(opened(GPT2));
    session.in_background();
    let run = session.run_named("generation").expect("a run");
    let began = Instant::now();
    // Whatever there is of it at any time is what it is in the end.
    loop {
        let (live, done) = (session.trace(run), whole.trace(run).expect("runs"));
        if let Ok(live) = live {
            for (id, _) in live.program().nodes().filter(|(id, _)| live.reached(*id)) {
                let (a, b) = (live.get(id).expect("reached"), done.get(id).expect("there"));
                assert!((0..a.shape().len()).all(|i| a.bits(i) == b.bits(i)), "{id:?}");
            }
        }
        if session.progress(run).is_none() && session.trace(run).is_ok() {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "it ends");
    }
    let last = session.trace(run).expect("done");
    assert!(last.program().nodes().all(|(id, _)| last.reached(id)));
    assert!(!session.stop(), "nothing goes on");
}

#[test]
fn keys_and_values_of_all_calls_share_their_memory() {
    let session = opened(GPT2);
    let program = &session.runs[session.run_named("generation").expect("a run")].program;
    let AnyBindings::F32(params) = &session.params else { panic!("f32") };
    let trace = run_with(program, params, &Settings::default(), &mut ()).expect("runs");
    let caches: Vec<_> = program.nodes().filter(|(_, n)| n.path.ends_with("_cache")).map(|(id, _)| id).collect();
    assert!(caches.len() > 4);
    for id in caches {
        let node = program.node(id);
        let (whole, value) = (trace.value(id), trace.value(id));
        let (before, more) = (trace.value(node.inputs[0]), trace.value(node.inputs[1]));
        // What the calls before put there, then what this one adds, row by row: in place, and copied together.
        let (rows, old) = (node.shape.dims()[2], program.node(node.inputs[0]).shape.dims()[2]);
        let width = node.shape.dims()[3];
        let expected = |i: usize| {
            let (head, row, column) = (i / (rows * width), i / width % rows, i % width);
            match row.checked_sub(old) {
                Some(row) => more.bits((head * (rows - old) + row) * width + column),
                None => before.bits((head * old + row) * width + column),
            }
        };
        let Value::Float(copied) = &whole else { panic!("numbers") };
        assert!(program.node(node.inputs[0]).path.ends_with("_cache") == (copied.own_len() < copied.shape().len()));
        for i in 0..node.shape.len() {
            assert_eq!(value.bits(i), expected(i), "{} {i}", node.path);
        }
        assert!(copied.data().iter().enumerate().all(|(i, x)| x.bits() == expected(i)), "{}", node.path);
    }
}

#[test]
fn a_budget_of_memory_changes_no_number() {
    let (loaded, _) = checkpoint::load(Path::new(GPT2), &Given::default()).expect("a checkpoint");
    let budget = 4096;
    let options = session::Options { budget: Some(budget), ..session::Options::default() };
    let few = session::open(loaded.scenario, loaded.origin.as_deref(), options).expect("opens");
    let all = opened(GPT2);
    for run in 0..few.runs.len() {
        let (few, all) = (few.trace(run).expect("runs"), all.trace(run).expect("runs"));
        let program = all.program();
        let computed = |id| !matches!(program.node(id).op, Op::Leaf(_)) && program.node(id).dtype == DType::Float;
        let kept = program.nodes().filter(|(id, _)| computed(*id) && few.is_kept(*id));
        // A cache adds its own rows to memory that it shares.
        let own = |n: &Node| {
            let added = n.inputs.last().filter(|_| n.path.ends_with("_cache"));
            added.map_or(n.shape.len(), |added| program.node(*added).shape.len())
        };
        let kept: u64 = kept.map(|(_, n)| own(n) as u64 * 4).sum();
        assert!(kept <= budget && program.nodes().any(|(id, _)| !few.is_kept(id)), "{kept} bytes");
        for (id, node) in program.nodes() {
            let (a, b) = (few.get(id).expect("there"), all.get(id).expect("there"));
            assert!((0..a.shape().len()).all(|i| a.bits(i) == b.bits(i)), "{}", node.path);
        }
    }
}
