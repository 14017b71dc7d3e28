//! The tiny checkpoints, as transformers runs them under the recorder (`tests/data/recorded_families/make.py`): whatever it
//! calls its modules, nothing differs here, and the gradients of the parameters are found, also where a matrix of theirs
//! holds several of ours.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;

/// The families of one half of the alphabet, so that both run at once.
fn families(half: usize) -> Vec<String> {
    let files = std::fs::read_dir("tests/data/recorded_families").expect("recordings");
    let names = files.map(|f| f.expect("a file").path()).filter(|f| f.extension().is_some_and(|e| e == "safetensors"));
    let mut names: Vec<String> =
        names.map(|f| f.file_stem().expect("a name").to_str().expect("text").to_owned()).collect();
    names.sort();
    assert!(names.len() >= 48, "{names:?}");
    names.into_iter().skip(half).step_by(2).collect()
}

fn recording(family: &str) -> PathBuf {
    format!("tests/data/recorded_families/{family}.safetensors").into()
}

/// The parameters' gradients that a recording has.
fn gradients(family: &str) -> BTreeSet<String> {
    let bytes = std::fs::read(recording(family)).expect("readable");
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).expect("tensors");
    let metadata = header.metadata().as_ref().expect("metadata");
    let list = metadata.get("parameters").map_or("[]", String::as_str);
    serde_json::from_str::<Vec<String>>(list).expect("names").into_iter().collect()
}

fn agrees(half: usize) {
    let (mut trained, mut nothing_for) = (0, BTreeSet::new());
    for family in families(half) {
        let wanted = gradients(&family);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
        command.arg("compare").arg(format!("tests/data/checkpoints/families/{family}")).arg(recording(&family));
        if !wanted.is_empty() {
            command.args(["--run", "backward"]);
        }
        let out = command.arg("--json").env("LC_ALL", "C").output().expect("runs");
        let said = String::from_utf8_lossy(&out.stderr);
        let report: Json = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{family}: {e}: {said}"));
        assert_eq!(report["verdict"], Json::Null, "{family}");
        assert_eq!(out.status.code(), Some(0), "{family}: {said}");
        let nodes = report["nodes"].as_array().expect("a list");
        let known: BTreeSet<&str> = nodes.iter().filter_map(|n| n["name"].as_str()).collect();
        nothing_for
            .extend(wanted.iter().filter(|name| !known.contains(name.as_str())).map(|n| format!("{family}: {n}")));
        trained += usize::from(!wanted.is_empty());
    }
    assert!(trained >= 17, "{trained}");
    // The experts of these checkpoints are saved one by one and trained in one tensor, and each head has a norm of its own.
    let stacked = |name: &str| name.ends_with("mlp.experts.gate_up_proj.grad") || name.contains("_layernorm.norms.");
    nothing_for.retain(|name| !stacked(name));
    assert_eq!(nothing_for, BTreeSet::new());
}

#[test]
fn a_recorded_training_step_agrees() {
    agrees(0);
}

#[test]
fn and_so_do_the_other_families() {
    agrees(1);
}
