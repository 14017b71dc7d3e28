//! The reference variants as scenario files: weights from their safetensors, every activation through a session.
//!
//! The files next to the references are written by `WRITE_SCENARIOS=1 cargo test --test reference_scenarios`.

use std::path::{Path, PathBuf};

use crate::common::reference::{self, model, numbers, scenario};
use rstest::rstest;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use tui_transformer::scenario::syntax;
use tui_transformer::session::{self, Options};
use tui_transformer::tensor::Precision;
use tui_transformer::trace::AnyTrace;

#[rstest]
fn every_activation_equals_the_reference(#[files("tests/data/reference/*.json")] case: PathBuf) {
    check(&reference::case(&case));
}

fn check(case: &Path) {
    let json: Json = serde_json::from_slice(&std::fs::read(case).expect("readable")).expect("JSON");
    let text = scenario(&json);
    let file = case.with_extension("ron");
    if std::env::var_os("WRITE_SCENARIOS").is_some() {
        std::fs::write(&file, &text).expect("writable");
    }
    let written = std::fs::read_to_string(&file).expect("a scenario file");
    assert_eq!(written, text, "the scenario file is not that of the reference");
    let name = file.display().to_string();
    let parsed = syntax::read(&name, &written).expect("a scenario");
    assert_eq!(parsed.model, model(&json["config"]));
    let options = Options { precision: Some(Precision::F64), ..Options::default() };
    let s = session::open(parsed, Some(&file), options).expect("opens");
    assert_eq!(s.coverage.from_files, s.specs.len());
    assert_eq!(s.coverage.unused, Vec::<String>::new());
    let AnyTrace::F64(trace) = s.trace(0).expect("runs") else {
        panic!("runs in f64");
    };
    let bytes = std::fs::read(case.with_extension("safetensors")).expect("readable");
    let tensors = SafeTensors::deserialize(&bytes).expect("safetensors");
    let mut compared = 0;
    for (name, view) in tensors.iter() {
        let Some(path) = name.strip_prefix("activations.") else {
            continue;
        };
        let theirs = numbers(&view);
        let ours = trace.at(path).unwrap_or_else(|| panic!("{path} is not in the program"));
        assert_eq!(ours.shape().len(), theirs.shape().len(), "{path}");
        let largest = theirs.data().iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
        for (i, x) in theirs.data().iter().enumerate() {
            let far = (ours.get(i) - x).abs() / largest;
            assert!(far < 1e-12, "{path}[{i}] differs by {far:e}");
        }
        compared += 1;
    }
    assert!(compared > 20, "only {compared} activations");
}
