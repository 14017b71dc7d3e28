//! Runs kept in a folder: what is opened again is what was recorded, whatever happened to the folder in between.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rstest::rstest;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use tempfile::TempDir;
use tui_transformer::session::{self, Options, open_trace};
use tui_transformer::source::trace::Folder;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("it runs")
}

/// A trace of `source` in a new folder.
fn recorded(dir: &TempDir, source: &str, more: &[&str]) -> PathBuf {
    let folder = dir.path().join("trace");
    let out = run(&[&["record", source, "-o", folder.to_str().expect("a name")][..], more].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    folder
}

fn exported(source: &str) -> Vec<u8> {
    let out = run(&["export", source, "--step", "all", "--format", "json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    parts.retain(|p| p.extension().is_some_and(|e| e == "safetensors"));
    parts.sort();
    parts
}

/// `export` prints the same bytes, and every derivation replays.
#[rstest]
#[case("water_class")]
#[case("gpt_block")]
#[case("encoder_decoder")]
#[case("train_copy")]
fn a_trace_is_its_source(#[case] source: &str) {
    let dir = TempDir::new().expect("a folder");
    let folder = recorded(&dir, source, &[]);
    let name = folder.to_str().expect("a name");
    assert!(exported(name) == exported(source), "{source}");
    if source == "gpt_block" {
        let out = run(&["check", name, "--run", "training"]);
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{text}");
        assert!(text.starts_with("checksums: "), "{text}");
    }
    // Steps of a run that was not kept are computed from the parameters.
    assert_eq!(run(&["steps", name]).stdout, run(&["steps", source]).stdout);
}

/// The parts are files of the format, with the very numbers of the run.
#[test]
fn every_node_is_in_a_part_under_its_path() {
    let dir = TempDir::new().expect("a folder");
    let folder = recorded(&dir, "bert_block", &[]);
    let text = fs::read_to_string(Path::new("scenarios/bert_block.ron")).expect("readable");
    let scenario = tui_transformer::scenario::syntax::read("bert_block", &text).expect("a scenario");
    let session = session::open(scenario, None, Options::default()).expect("opens");
    let trace = session.trace(0).expect("runs");
    let manifest: Json =
        serde_json::from_slice(&fs::read(folder.join("manifest.json")).expect("readable")).expect("json");
    assert_eq!(manifest["format"], "tui-transformer trace");
    assert_eq!(manifest["complete"], true);
    let nodes = manifest["runs"][0]["nodes"].as_array().expect("a list");
    assert_eq!(nodes.len(), trace.program().len());
    let mut seen = 0;
    for (entry, (id, node)) in nodes.iter().zip(trace.program().nodes()) {
        assert_eq!(entry["path"], &*node.path);
        let value = trace.value(id);
        let file = match entry["part"].as_str() {
            Some(part) => folder.join(part),
            None => parts(&folder).into_iter().find(|p| p.to_string_lossy().contains("weights-")).expect("weights"),
        };
        let bytes = fs::read(&file).expect("a part");
        let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let tensor = tensors.tensor(&node.path).expect("its tensor");
        assert_eq!(tensor.shape(), node.shape.dims(), "{}", node.path);
        let size = tensor.data().len() / value.shape().len().max(1);
        for (i, chunk) in tensor.data().chunks(size).enumerate() {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(chunk);
            assert_eq!(u64::from_le_bytes(wide), value.bits(i), "{} {i}", node.path);
        }
        seen += 1;
    }
    assert!(seen > 50);
}

/// What was left out is computed from what is there, with the same bits.
#[test]
fn a_part_of_a_run_gives_the_whole() {
    let dir = TempDir::new().expect("a folder");
    let folder = recorded(&dir, "gpt_block", &["--only", "*.out"]);
    assert!(exported(folder.to_str().expect("a name")) == exported("gpt_block"));
    let (session, damaged) = open_trace(&folder, Options::default()).expect("opens");
    assert!(damaged.is_empty());
    assert!(!session.steps.list().is_empty());
    let bad = run(&["record", "gpt_block", "--only", "[", "-o", dir.path().join("b").to_str().expect("a name")]);
    assert_eq!(bad.status.code(), Some(2));
}

/// Parameters of a file stay there, unless they are wanted inside; a file that is gone is named.
#[test]
fn parameters_of_files_are_referred_to() {
    let dir = TempDir::new().expect("a folder");
    for ending in ["ron", "weights.safetensors"] {
        let from = format!("tests/data/recorded/plain.{ending}");
        fs::copy(from, dir.path().join(format!("plain.{ending}"))).expect("copied");
    }
    let source = dir.path().join("plain.ron");
    let source = source.to_str().expect("a name");
    let folder = recorded(&dir, source, &[]);
    let opened = Folder::open(&folder).expect("opens");
    assert!(opened.manifest.weights.len() > 10, "{:?}", opened.manifest.weights.len());
    let name = folder.to_str().expect("a name");
    assert!(exported(name) == exported(source));
    assert!(run(&["check", name]).status.success());
    let inside = dir.path().join("inside");
    let arguments = ["record", source, "--with-weights", "-o", inside.to_str().expect("a name")];
    assert!(run(&arguments).status.success());
    fs::remove_file(dir.path().join("plain.weights.safetensors")).expect("removed");
    assert!(Folder::open(&inside).expect("opens").manifest.weights.is_empty());
    assert!(run(&["check", inside.to_str().expect("a name")]).status.success());
    let out = run(&["steps", name]);
    assert!(out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("plain.weights.safetensors"));
    assert_eq!(run(&["check", name]).status.code(), Some(1));
}

/// A part with one wrong bit, a part that is cut off, one that is gone, one that is a link: each is named, `check`
/// fails, and what is shown is computed again.
#[test]
fn damaged_parts_are_named_and_the_rest_opens() {
    let dir = TempDir::new().expect("a folder");
    let folder = recorded(&dir, "water_class", &[]);
    let name = folder.to_str().expect("a name");
    let right = exported(name);
    let part = parts(&folder).into_iter().find(|p| p.to_string_lossy().contains("run0-00001.f64")).expect("a part");
    let bytes = fs::read(&part).expect("readable");
    let damage: [(&str, Box<dyn Fn()>); 4] = [
        (
            "checksum",
            Box::new(|| {
                let mut wrong = bytes.clone();
                let last = wrong.len() - 1;
                wrong[last] ^= 1;
                fs::write(&part, wrong).expect("written");
            }),
        ),
        ("bytes", Box::new(|| fs::write(&part, &bytes[..bytes.len() / 2]).expect("written"))),
        ("not there", Box::new(|| fs::remove_file(&part).expect("removed"))),
        #[cfg(unix)]
        (
            "link",
            Box::new(|| {
                let elsewhere = dir.path().join("elsewhere.safetensors");
                fs::write(&elsewhere, &bytes).expect("written");
                fs::remove_file(&part).expect("removed");
                std::os::unix::fs::symlink(elsewhere, &part).expect("linked");
            }),
        ),
    ];
    for (what, damage) in damage {
        damage();
        let out = run(&["check", name, "--run", "training"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(out.status.code(), Some(1), "{what}: {text}");
        assert!(text.contains("damaged: run0-00001.f64.safetensors") && text.contains(what), "{text}");
        assert!(exported(name) == right, "{what}");
        let _ = fs::remove_file(&part);
        fs::write(&part, &bytes).expect("written");
    }
    assert!(run(&["check", name, "--run", "training"]).status.success());
}

/// A manifest that leads out of the folder, names what is not there, or is none.
#[test]
fn a_manifest_that_lies_opens_nothing_else() {
    let dir = TempDir::new().expect("a folder");
    let folder = recorded(&dir, "gpt_block", &[]);
    let name = folder.to_str().expect("a name");
    let path = folder.join("manifest.json");
    let text = fs::read_to_string(&path).expect("readable");
    let with = |change: &dyn Fn(&mut Json)| {
        let mut manifest: Json = serde_json::from_str(&text).expect("json");
        change(&mut manifest);
        fs::write(&path, manifest.to_string()).expect("written");
        run(&["check", name, "--run", "training"])
    };
    for file in ["../trace/run0-00001.f64.safetensors", "/etc/passwd", "a\u{1b}[2J", ".."] {
        let out = with(&|m| m["parts"][0]["file"] = file.into());
        assert_eq!(out.status.code(), Some(1), "{file:?}");
        let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("leads out of the folder") && !said.contains('\u{1b}'), "{said}");
    }
    let out = with(&|m| m["version"] = 99.into());
    assert_eq!(out.status.code(), Some(2));
    let out = with(&|m| m["format"] = "another".into());
    assert_eq!(out.status.code(), Some(2));
    fs::write(&path, "{").expect("written");
    assert_eq!(run(&["steps", name]).status.code(), Some(2));
    fs::write(&path, &text).expect("written");
    let session = folder.join("session.json");
    let whole = fs::read_to_string(&session).expect("readable");
    fs::write(&session, whole.replacen("\"inputs\":[", "\"inputs\":[999999,", 1)).expect("written");
    assert_eq!(run(&["steps", name]).status.code(), Some(2));
}

/// Killed at any moment, the folder opens with every part that was listed, or is no trace yet.
#[test]
#[cfg(unix)]
fn a_killed_recording_opens_with_what_was_written() {
    let dir = TempDir::new().expect("a folder");
    let whole = exported("water_class");
    let mut opened = 0;
    let begun = std::time::Instant::now();
    recorded(&dir, "water_class", &[]);
    let time = begun.elapsed();
    for i in 1..=10u32 {
        let folder = dir.path().join(format!("t{i}"));
        let name = folder.to_str().expect("a name");
        let mut child = command(&["record", "water_class", "-o", name]);
        let mut child = child.stderr(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(time * i / 10);
        let _ = child.kill();
        let _ = child.wait();
        let journal = fs::read_to_string(folder.join("parts.jsonl")).unwrap_or_default();
        let listed: Vec<Json> = journal.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for part in &listed {
            let bytes = fs::read(folder.join(part["file"].as_str().expect("a name"))).expect("a listed part is there");
            assert_eq!(bytes.len() as u64, part["bytes"].as_u64().expect("a number"));
            assert_eq!(u64::from(crc32fast::hash(&bytes)), part["crc32"].as_u64().expect("a number"));
            SafeTensors::deserialize(&bytes).expect("whole");
        }
        if folder.join("manifest.json").is_file() {
            opened += 1;
            assert!(exported(name) == whole, "{i}");
        }
    }
    assert!(opened > 0, "at least one got as far as a manifest");
}

/// A folder of other files is never written to, and a trace is replaced only where that is wanted.
#[test]
fn other_files_are_left_alone() {
    let dir = TempDir::new().expect("a folder");
    let folder = dir.path().join("mine");
    fs::create_dir(&folder).expect("made");
    fs::write(folder.join("letter.txt"), "dear").expect("written");
    let name = folder.to_str().expect("a name");
    for force in [&[][..], &["--force"]] {
        let out = run(&[&["record", "gpt_block", "-o", name][..], force].concat());
        assert_eq!(out.status.code(), Some(2));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
    }
    let trace = recorded(&dir, "gpt_block", &[]);
    let name = trace.to_str().expect("a name");
    assert_eq!(run(&["record", "water_class", "-o", name]).status.code(), Some(2));
    assert!(run(&["record", "water_class", "-o", name, "--force"]).status.success());
    assert!(exported(name) == exported("water_class"));
}

/// Edits and their consequences are those of the scenario, without the scenario.
#[test]
fn what_if_works_on_a_trace() {
    let dir = TempDir::new().expect("a folder");
    let folder = recorded(&dir, "gpt_block", &[]);
    let edits = ["-e", "edit decoder.0.norm1.out[0,0,0] = 3", "-e", "print output.logits[0,-1,0..4]"];
    let of = |source: &str| run(&[&["play", source][..], &edits].concat());
    let (trace, source) = (of(folder.to_str().expect("a name")), of("gpt_block"));
    assert_eq!(String::from_utf8_lossy(&trace.stdout), String::from_utf8_lossy(&source.stdout));
    assert!(source.status.success());
}

/// A recording can be kept as a folder too.
#[test]
fn a_recording_becomes_a_trace() {
    let dir = TempDir::new().expect("a folder");
    let source = "tests/data/recorded/gpt2.recorded.safetensors";
    let folder = recorded(&dir, source, &[]);
    let values = |json: &[u8]| -> Vec<Json> {
        let steps: Json = serde_json::from_slice(json).expect("json");
        let steps = steps.as_array().expect("a list").clone();
        steps.into_iter().map(|s| s["tensors"][0]["values"].clone()).collect()
    };
    let (ours, theirs) = (exported(folder.to_str().expect("a name")), exported(source));
    assert_eq!(values(&ours), values(&theirs));
}

/// A manifest that says something else than the program is named, and the rest opens.
#[test]
fn a_manifest_that_lies_is_named() {
    let dir = TempDir::new().expect("a folder");
    let folder = recorded(&dir, "gpt_block", &[]);
    let name = folder.to_str().expect("a name");
    let whole = fs::read_to_string(folder.join("manifest.json")).expect("readable");
    for (key, lie) in [("shape", serde_json::json!([1_000_000_000_000_u64])), ("path", "\u{1b}]0;x\u{7}".into())] {
        let mut manifest: Json = serde_json::from_str(&whole).expect("json");
        manifest["runs"][0]["nodes"][5][key] = lie;
        fs::write(folder.join("manifest.json"), manifest.to_string()).expect("written");
        let out = run(&["check", name, "--run", "training"]);
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains("manifest.json: it lists") && !said.contains('\u{1b}'), "{said}");
        assert!(run(&["steps", name]).status.success());
    }
}
