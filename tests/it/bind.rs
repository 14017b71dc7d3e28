//! A recording laid over our program: `RECORDING --model FOLDER|SCENARIO`, and what else is done with recordings.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rstest::rstest;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use tempfile::TempDir;
use tui_transformer::export::recording::{self, Kind};
use tui_transformer::scenario::syntax;
use tui_transformer::session;
use tui_transformer::source::recording::Recording;

const BERT: &str = "tests/data/recorded/bert.recorded.safetensors";
const MODEL: &str = "tests/data/recorded/bert.ron";

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(arguments).env("LC_ALL", "C").output().expect("it runs")
}

fn json(out: &Output) -> Json {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)))
}

fn text(out: &Output) -> String {
    assert!(out.status.code().is_some_and(|c| c < 2), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The model with something else in it, next to its weights.
fn changed(dir: &TempDir, from: &str, to: &str) -> String {
    let scenario = fs::read_to_string(MODEL).expect("readable");
    assert!(scenario.contains(from), "{from}");
    let weights = fs::canonicalize("tests/data/recorded/bert.weights.safetensors").expect("there");
    let scenario = scenario.replace(from, to).replace("bert.weights.safetensors", weights.to_str().expect("a name"));
    let path = dir.path().join("changed.ron");
    fs::write(&path, scenario).expect("written");
    path.to_str().expect("a name").to_owned()
}

fn floats(json: &Json) -> Vec<f64> {
    match json {
        Json::Array(all) => all.iter().flat_map(floats).collect(),
        other => vec![other.as_f64().unwrap_or(f64::NAN)],
    }
}

#[test]
fn steps_say_how_the_recording_compares() {
    let steps = json(&run(&["steps", BERT, "--model", MODEL, "--json"]));
    let steps = steps.as_array().expect("a list");
    let there: Vec<&Json> = steps.iter().map(|s| &s["reference"]).filter(|r| !r.is_null()).collect();
    assert!(there.len() > 20, "{}", there.len());
    assert!(there.iter().all(|r| r["state"] == "match" && r["rms"].as_f64().is_some_and(|x| x < 1e-5)));
    assert!(text(&run(&["steps", BERT, "--model", MODEL])).contains("attention.self.scores: match, RMS "));
    let out = run(&["compare", BERT, "--model", MODEL]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
}

/// Their value is the file's, ours from their operands is theirs again, and each cell says so.
#[test]
fn exports_have_their_values_and_ours_from_their_operands() {
    let dir = TempDir::new().expect("a folder");
    let bytes = fs::read(BERT).expect("readable");
    let file = SafeTensors::deserialize(&bytes).expect("tensors");
    let recorded = file.tensor("encoder.layer.0.intermediate.dense").expect("there");
    let recorded: Vec<f64> =
        (recorded.data().chunks(4)).map(|b| f64::from(f32::from_le_bytes(b.try_into().expect("4 bytes")))).collect();
    // Its second product has other weights: what comes before is the same, what comes after is not.
    let wrong = changed(&dir, "encoder.layer.0.output.dense.weight", "encoder.layer.1.output.dense.weight");
    let docs = json(&run(&["export", BERT, "--model", &wrong, "--step", "all", "--format", "json"]));
    let docs = docs.as_array().expect("a list");
    let tensors: Vec<&Json> = docs.iter().flat_map(|d| d["tensors"].as_array().expect("a list")).collect();
    let of = |path: &str| *tensors.iter().find(|t| t["path"] == path).unwrap_or_else(|| panic!("{path}"));
    let hidden = of("encoder.0.ffn.hidden");
    assert_eq!(hidden["reference"]["name"], "encoder.layer.0.intermediate.dense");
    assert_eq!(floats(&hidden["reference"]["values"]), recorded);
    let far = |a: &Json, b: &Json| floats(a).iter().zip(floats(b)).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(far(&hidden["reference"]["recomputed"], &hidden["reference"]["values"]) < 1e-5);
    let out = of("encoder.0.ffn.out");
    assert!(far(&out["reference"]["recomputed"], &out["reference"]["values"]) > 1e-2);
    // The second layer computes right from what was recorded, and wrong from what it is given here.
    let later = of("encoder.1.self_attn.out");
    assert!(far(&later["reference"]["recomputed"], &later["reference"]["values"]) < 1e-5);
    assert!(far(&later["values"], &later["reference"]["values"]) > 1e-3);
    let lines: String = docs.iter().map(|d| d["derivations"].to_string()).collect();
    assert!(
        lines.contains("[recorded: ") && lines.contains("from its operands: ") && lines.contains("[differs most in ")
    );
    let compared = run(&["compare", BERT, "--model", &wrong, "--json"]);
    assert_eq!(compared.status.code(), Some(1));
    assert_eq!(json(&compared)["verdict"]["path"], "encoder.0.ffn.out");
    // In the debugger: theirs and ours, and the terms of a cell.
    let go = "go encoder.1.ffn.hidden[0,1,2]";
    let said = text(&run(&["play", BERT, "--model", &wrong, "-e", go, "-e", "terms"]));
    assert!(said.contains(", recorded ") && said.contains(": ours ") && said.contains(", difference "), "{said}");
    let screen = text(&run(&["snapshot", BERT, "--model", &wrong, "-e", go, "--size", "160x40"]));
    assert!(screen.contains("from the recorded operands: "), "{screen}");
}

/// The model reads what the recorded one read, also where its scenario says something else, and where the recording
/// is a trace folder.
#[test]
fn inputs_come_from_the_recording() {
    let dir = TempDir::new().expect("a folder");
    let source = fs::read_to_string(MODEL).expect("readable");
    let at = source.find("source: (").expect("a source");
    let end = source[at..].find("\n    ),").or_else(|| source[at..].find("),\n")).expect("its end");
    let other = changed(&dir, &source[at..at + end], "source: (ids: [[1, 2]]");
    let out = run(&["compare", BERT, "--model", &other, "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", json(&out)["verdict"]);
    let trace = dir.path().join("trace");
    let trace = trace.to_str().expect("a name");
    assert!(run(&["record", MODEL, "-o", trace]).status.success());
    let out = run(&["compare", trace, "--model", MODEL, "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", json(&out)["verdict"]);
    // A checkpoint.
    let folder = "tests/data/checkpoints/gpt2";
    let reference = "tests/data/checkpoints/gpt2/ref.npz";
    let out = run(&["compare", reference, "--model", folder, "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", json(&out)["verdict"]);
    let steps = json(&run(&["steps", reference, "--model", folder, "--json"]));
    assert!(steps.as_array().expect("a list").iter().any(|s| s["reference"]["name"] == "logits"));
}

#[test]
fn what_cannot_be_laid_is_refused() {
    for (arguments, said) in [
        (&["steps", MODEL, "--model", MODEL][..], "is no recording"),
        (&["steps", BERT, "--model", BERT], "is a recording"),
        (&["steps", BERT, "--model", "no_such.ron"], "no_such.ron"),
        (&["generate", MODEL, "--model", MODEL], "--model"),
        (&["compare", BERT, MODEL, "--model", MODEL], "--model"),
        (&["steps", MODEL, "--tokenizer", "tests/data/checkpoints/text/bert_text"], "--tokenizer"),
        (&["steps", BERT, "--tokenizer", "no_such_folder"], "no_such_folder"),
    ] {
        let out = run(arguments);
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn a_tokenizer_names_the_tokens_of_a_recording() {
    let with = ["snapshot", BERT, "--tokenizer", "tests/data/checkpoints/text/bert_text", "--size", "160x40"];
    let bytes = fs::read(BERT).expect("readable");
    let names = SafeTensors::deserialize(&bytes).expect("tensors").len();
    assert!(names > 30);
    let scores = ["-e", "go encoder.layer.0.attention.self.weights"];
    let (named, bare) =
        (text(&run(&[&with[..], &scores].concat())), text(&run(&[&with[..2], &with[4..], &scores].concat())));
    assert_ne!(named, bare);
}

/// `record` in the debugger: a folder that opens again, and one file.
#[test]
fn the_debugger_records() {
    let dir = TempDir::new().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("a name").to_owned();
    let (folder, file) = (path("kept.trace"), path("kept.safetensors"));
    let commands = [format!("record {folder}"), format!("record {file}")];
    let said = text(&run(&["play", "gpt_block", "-e", &commands[0], "-e", &commands[1]]));
    assert!(said.contains("values in") && said.contains("bytes"), "{said}");
    let export = |source: &str| run(&["export", source, "--step", "all", "--format", "json"]).stdout;
    assert!(export(&folder) == export("gpt_block"));
    assert!(run(&["compare", &folder, &file]).status.success());
    // What was recorded in order opens in order.
    let steps = json(&run(&["steps", &file, "--json"]));
    let ids: Vec<&str> = steps.as_array().expect("a list").iter().map(|s| s["title"].as_str().expect("text")).collect();
    let place = |name: &str| ids.iter().position(|i| *i == name).unwrap_or_else(|| panic!("{name}"));
    assert!(
        place("embed.target.ids") < place("decoder.0.self_attn.q")
            && place("decoder.0.self_attn.q") < place("output.logits")
    );
    // It is there now.
    let again = run(&["play", "gpt_block", "-e", &commands[0]]);
    assert_eq!(again.status.code(), Some(1));
    assert!(Path::new(&folder).join("manifest.json").exists());
    let rounded = text(&run(&["play", "gpt_block", "-e", "round bf16", "-e", &format!("record {}", path("r.npz"))]));
    assert!(rounded.contains("bytes"), "{rounded}");
}

/// The sizes of what is written at a time.
#[derive(Default)]
struct Sizes {
    bytes: Vec<u8>,
    largest: usize,
}

impl std::io::Write for Sizes {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.largest = self.largest.max(data.len());
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A file of a run is written value by value, whatever its kind, and holds the same bits.
#[rstest]
#[case(Kind::Npz, "r.npz")]
#[case(Kind::Safetensors, "r.safetensors")]
fn a_run_is_written_value_by_value(#[case] kind: Kind, #[case] name: &str) {
    let text = r#"(name: "wide", precision: f32, vocabulary: Size(11), model: (d_model: 64, heads: 2, d_ff: 512,
        encoder: (layers: [(), ()])), weights: (seed: 7, init: [(with: Normal(std: 0.3))]),
        source: (ids: [[3, 7, 2, 9, 4, 1, 1, 2, 3, 5]]), runs: [Encode()])"#;
    let scenario = syntax::read("wide.ron", text).expect("a scenario");
    let session = session::open(scenario, None, session::Options::default()).expect("opens");
    let trace = session.trace(0).expect("a trace");
    let nodes: Vec<_> = trace.program().nodes().map(|(id, _)| id).collect();
    let mut out = Sizes::default();
    recording::write(kind, trace, &nodes, &mut out).expect("written");
    let most = trace.program().nodes().map(|(_, n)| n.shape.len() * size_of::<f32>()).max().expect("nodes");
    let header = trace.program().nodes().map(|(_, n)| 2 * n.path.len() + 150).sum::<usize>();
    assert!(out.largest <= most.max(header), "{} bytes at a time", out.largest);
    assert!(out.bytes.len() > 2 * most.max(header), "all of it would be more");
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join(name);
    fs::write(&path, &out.bytes).expect("written");
    let read = Recording::open(&path).expect("opens");
    assert!(read.unreadable.is_empty(), "{:?}", read.unreadable);
    assert_eq!(read.tensors.len(), nodes.len());
    for id in nodes {
        let path = &trace.program().node(id).path;
        let tensor = read.tensors.iter().find(|t| t.name == **path).unwrap_or_else(|| panic!("{path}"));
        let (theirs, ours) = (tensor.read::<f32>().expect("readable"), trace.value(id));
        let same = (0..ours.shape().len()).all(|i| theirs.get(i).to_bits() == ours.get(i).to_bits());
        assert!(same, "{path}");
    }
}

/// The first NaN and the first infinity of a recording are found by value.
#[test]
fn the_first_nan_of_a_recording_is_found() {
    let dir = TempDir::new().expect("a folder");
    let bytes = fs::read(BERT).expect("readable");
    let file = SafeTensors::deserialize(&bytes).expect("tensors");
    let (_, header) = SafeTensors::read_metadata(&bytes).expect("a header");
    let spoilt = "encoder.layer.1.attention.self.value";
    let tensors = file.iter().map(|(name, view)| {
        let mut data = view.data().to_vec();
        if name == spoilt {
            data[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
            data[16..20].copy_from_slice(&f32::INFINITY.to_le_bytes());
        }
        (name.to_owned(), view.dtype(), view.shape().to_vec(), data)
    });
    let tensors: Vec<_> = tensors.collect();
    let views = tensors.iter().map(|(name, dtype, shape, data)| {
        (name.clone(), safetensors::tensor::TensorView::new(*dtype, shape.clone(), data).expect("a tensor"))
    });
    let path = dir.path().join("nan.safetensors");
    fs::write(&path, safetensors::serialize(views, header.metadata().clone()).expect("serialises")).expect("written");
    let path = path.to_str().expect("a name");
    for command in ["first-nan", "first-inf"] {
        let said = text(&run(&["play", path, "-e", command]));
        assert!(said.contains(spoilt), "{command}: {said}");
    }
    let said = text(&run(&["play", path, "-e", "break any nan", "-e", "continue"]));
    assert!(said.contains(spoilt), "{said}");
}

/// What the recorder calls `NAME.grad` is the gradient of what `NAME` is.
#[test]
fn gradients_go_by_the_names_of_the_recorder() {
    let dir = TempDir::new().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("a name").to_owned();
    let (whole, renamed) = (path("whole.safetensors"), path("renamed.safetensors"));
    assert!(run(&["record", "gpt_block", "--run", "backward", "-o", &whole]).status.success());
    let bytes = fs::read(&whole).expect("readable");
    let file = SafeTensors::deserialize(&bytes).expect("tensors");
    let names = [
        ("decoder.0.ffn.hidden", "transformer.h.0.mlp.c_fc"),
        ("grad.decoder.0.ffn.hidden", "transformer.h.0.mlp.c_fc.grad"),
        ("grad.decoder.0.residual1", "transformer.h.0.ln_2.in.grad"),
    ];
    let views = names.map(|(ours, theirs)| (theirs, file.tensor(ours).unwrap_or_else(|e| panic!("{ours}: {e}"))));
    fs::write(&renamed, safetensors::serialize(views, None).expect("serialises")).expect("written");
    let out = run(&["compare", "gpt_block", &renamed, "--run", "backward", "--json"]);
    let report = json(&out);
    assert_eq!(out.status.code(), Some(0), "{}", report["verdict"]);
    let nodes = report["nodes"].as_array().expect("a list");
    let of = |name: &str| nodes.iter().find(|n| n["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(of("transformer.h.0.mlp.c_fc.grad")["path"], "grad.decoder.0.ffn.hidden");
    assert_eq!(of("transformer.h.0.ln_2.in.grad")["path"], "grad.decoder.0.residual1");
}
