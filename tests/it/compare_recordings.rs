//! Any two of scenario, recording and trace folder: two recordings without a scenario, names of two frameworks, guesses,
//! what a difference looks like.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;
use safetensors::{Dtype, SafeTensors, serialize, tensor::TensorView};
use serde_json::Value as Json;
use tempfile::TempDir;

type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

const BERT: &str = "tests/data/recorded/bert.recorded.safetensors";

/// The numbers of a recording, in recorded order; ids are left out.
fn numbers(file: &str) -> Tensors {
    let bytes = std::fs::read(file).expect("readable");
    let tensors = SafeTensors::deserialize(&bytes).expect("a recording");
    let (_, header) = SafeTensors::read_metadata(&bytes).expect("a header");
    let order: Vec<String> =
        serde_json::from_str(&header.metadata().as_ref().expect("metadata")["order"]).expect("a list");
    let one = |name: String| {
        let t = tensors.tensor(&name).ok().filter(|t| t.dtype() == Dtype::F32)?;
        let data = t.data().chunks(4).map(|b| f32::from_le_bytes(b.try_into().expect("4 bytes"))).collect();
        Some((name, t.shape().to_vec(), data))
    };
    order.into_iter().filter_map(one).collect()
}

fn write(dir: &TempDir, file: &str, tensors: &Tensors) -> PathBuf {
    let order: Vec<&String> = tensors.iter().map(|t| &t.0).collect();
    let metadata = HashMap::from([("order".to_owned(), serde_json::to_string(&order).expect("json"))]);
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|t| t.2.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        (name.clone(), TensorView::new(Dtype::F32, shape.clone(), bytes).expect("a tensor"))
    });
    let path = dir.path().join(file);
    std::fs::write(&path, serialize(views, Some(metadata)).expect("serialises")).expect("written");
    path
}

fn compared(a: &Path, b: &Path) -> (Json, Option<i32>) {
    let out = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .arg("compare")
        .args([a, b])
        .arg("--json")
        .output()
        .expect("it runs");
    let json = serde_json::from_slice(&out.stdout);
    (json.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr))), out.status.code())
}

/// A model against itself, and against itself with the rounding of every step.
#[test]
fn equal_recordings_are_no_difference() {
    let dir = TempDir::new().expect("a folder");
    let all = numbers(BERT);
    let a = write(&dir, "a.safetensors", &all);
    let (json, code) = compared(&a, &a);
    assert_eq!((json["good"].clone(), code), (Json::Bool(true), Some(0)));
    let mut near = all;
    for (i, (_, _, data)) in near.iter_mut().enumerate() {
        for (j, x) in data.iter_mut().enumerate() {
            let sign = if (i * 7 + j * 13) % 3 == 0 { 1.0 } else { -1.0 };
            *x += *x * sign * f32::EPSILON * (1.0 + i as f32 / 4.0);
        }
    }
    let b = write(&dir, "b.safetensors", &near);
    let (json, code) = compared(&a, &b);
    assert_eq!((json["good"].clone(), code), (Json::Bool(true), Some(0)), "{}", json["verdict"]);
}

/// A fault in one step is carried through all that follow; the first one is named, with the last that agreed.
#[rstest]
#[case::scaled(0.01)]
#[case::small(1e-4)]
fn the_first_step_that_differs_is_named(#[case] size: f32) {
    let dir = TempDir::new().expect("a folder");
    let all = numbers(BERT);
    let a = write(&dir, "a.safetensors", &all);
    let from = all.iter().position(|t| t.0 == "encoder.layer.1.attention.self.value").expect("there");
    let mut faulty = all.clone();
    for (_, _, data) in &mut faulty[from..] {
        for x in data.iter_mut() {
            *x *= 1.0 + size;
        }
    }
    let b = write(&dir, "b.safetensors", &faulty);
    let (json, code) = compared(&a, &b);
    assert_eq!(code, Some(1));
    assert_eq!(json["verdict"]["path"], "encoder.layer.1.attention.self.value");
    assert_eq!(json["verdict"]["last_match"]["path"], all[from - 1].0);
    assert_eq!(json["verdict"]["carried"], false);
    assert_eq!(json["differences"][1]["carried"], true);
    let nodes = json["nodes"].as_array().expect("a list");
    let first = nodes.iter().find(|n| n["state"] == "diverged").expect("one");
    assert_eq!(first["patterns"], serde_json::json!(["scaled"]));
}

/// Other names for the same numbers: by the tables of names, and what is left by shape and value, marked as a guess.
#[test]
fn names_of_two_frameworks_are_matched() {
    let dir = TempDir::new().expect("a folder");
    let all = numbers(BERT);
    let a = write(&dir, "a.safetensors", &all);
    let mut ours = all;
    for (name, ..) in &mut ours {
        *name = match name.as_str() {
            "encoder.layer.0.intermediate.dense" => "encoder.0.ffn.hidden".to_owned(),
            "encoder.layer.0.output.dense" => "blocks_zero_down".to_owned(),
            other => other.to_owned(),
        };
    }
    let b = write(&dir, "b.safetensors", &ours);
    let (json, code) = compared(&a, &b);
    assert_eq!(code, Some(0), "{}", json["verdict"]);
    let nodes = json["nodes"].as_array().expect("a list");
    let of = |path: &str| nodes.iter().find(|n| n["path"] == path).unwrap_or_else(|| panic!("{path}"));
    assert_eq!(of("encoder.layer.0.intermediate.dense")["name"], "encoder.0.ffn.hidden");
    let guessed = of("encoder.layer.0.output.dense");
    assert_eq!((&guessed["name"], &guessed["table"]), (&Json::from("blocks_zero_down"), &Json::from("guess")));
}

/// A scenario, its trace and what PyTorch recorded, in either order.
#[test]
fn every_pair_compares() {
    let dir = TempDir::new().expect("a folder");
    let scenario = Path::new("tests/data/recorded/bert.ron");
    let trace = dir.path().join("trace");
    let done = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["record".as_ref(), scenario.as_os_str(), "-o".as_ref(), trace.as_os_str()])
        .status()
        .expect("it runs");
    assert!(done.success());
    let recording = Path::new(BERT);
    for (a, b) in [
        (scenario, trace.as_path()),
        (trace.as_path(), scenario),
        (trace.as_path(), trace.as_path()),
        (scenario, recording),
        (recording, scenario),
        (trace.as_path(), recording),
        (recording, trace.as_path()),
    ] {
        let (json, code) = compared(a, b);
        assert_eq!(code, Some(0), "{} {}: {}", a.display(), b.display(), json["verdict"]);
        assert!(json["counts"]["match"].as_u64().expect("a number") > 30);
    }
}

/// A checkpoint next to each of the others, in either order.
#[test]
fn a_checkpoint_is_compared_with_all_others() {
    let dir = TempDir::new().expect("a folder");
    let folder = Path::new("tests/data/checkpoints/gpt2");
    let recording = folder.join("ref.npz");
    let trace = dir.path().join("trace");
    let scenario = dir.path().join("same.ron");
    let program = || Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    let inputs = ["--inputs".as_ref(), recording.as_os_str()];
    let recorded = program().args(["record".as_ref(), folder.as_os_str()]).args(inputs).arg("-o").arg(&trace).status();
    assert!(recorded.expect("it runs").success());
    let new =
        program().args(["new", "from-checkpoint", "--from"]).arg(folder).args(inputs).arg("-o").arg(&scenario).output();
    let new = new.expect("it runs");
    assert!(new.status.success(), "{}", String::from_utf8_lossy(&new.stderr));
    for (a, b) in [
        (folder, recording.as_path()),
        (recording.as_path(), folder),
        (scenario.as_path(), recording.as_path()),
        (trace.as_path(), recording.as_path()),
        (scenario.as_path(), trace.as_path()),
    ] {
        let (json, code) = compared(a, b);
        assert_eq!(code, Some(0), "{} {}: {}", a.display(), b.display(), json["verdict"]);
        assert!(json["counts"]["match"].as_u64().expect("a number") > 5);
    }
    for (a, b) in [(folder, trace.as_path()), (trace.as_path(), folder), (folder, scenario.as_path()), (folder, folder)]
    {
        // As B, a checkpoint reads what A read.
        let given = if a == folder { &inputs[..] } else { &[] };
        let out = program().arg("compare").args([a, b]).args(given).arg("--json").output().expect("it runs");
        let json: Json = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| {
            panic!("{} {}: {e}: {}", a.display(), b.display(), String::from_utf8_lossy(&out.stderr))
        });
        assert_eq!(out.status.code(), Some(0), "{} {}: {}", a.display(), b.display(), json["verdict"]);
        assert!(json["counts"]["match"].as_u64().expect("a number") > 30);
    }
}
