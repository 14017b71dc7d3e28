//! Every activation of the reference variants (computed by PyTorch in float64), rebuilt from their weights, and the
//! gradient of the loss with respect to each.

mod common;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::reference::{model, numbers};
use rstest::rstest;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use tui_transformer::model::params::VocabSizes;
use tui_transformer::model::{Forward, Sequences, forward};
use tui_transformer::program::{Builder, backward};
use tui_transformer::tensor::{Real, Tensor, Value};
use tui_transformer::trace::derive::replay_node;
use tui_transformer::trace::{Bindings, Trace, run};

fn sequences(inputs: &Json, side: &str) -> Option<Sequences> {
    let rows = inputs[format!("{side}_ids")].as_array()?;
    let flat = |rows: &[Json]| -> Vec<Json> {
        rows.iter()
            .flat_map(|r| r.as_array().expect("a row").clone())
            .collect()
    };
    let ids = flat(rows)
        .iter()
        .map(|i| i.as_i64().expect("an id"))
        .collect();
    let real = inputs[format!("{side}_mask")].as_array().map(|m| {
        flat(m)
            .iter()
            .map(|b| b.as_bool().expect("a flag"))
            .collect()
    });
    Some(Sequences {
        ids,
        batch: rows.len(),
        real,
        given: None,
        types: None,
    })
}

/// Largest difference relative to the largest value of the reference.
fn distance(ours: &Value<f64>, theirs: &Tensor<f64>) -> f64 {
    assert_eq!(
        ours.shape().len(),
        theirs.shape().len(),
        "{} against {}",
        ours.shape(),
        theirs.shape()
    );
    let largest = theirs
        .data()
        .iter()
        .fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    theirs
        .data()
        .iter()
        .enumerate()
        .map(|(i, x)| (ours.get(i) - x).abs())
        .fold(0.0, f64::max)
        / largest
}

fn largest(v: &Value<f64>) -> f64 {
    v.float().data().iter().fold(0.0, |m, x| m.max(x.abs()))
}

#[rstest]
fn every_activation_equals_the_reference(#[files("tests/data/reference/*.json")] case: PathBuf) {
    check(&case);
}

fn check(case: &Path) {
    let json: Json = serde_json::from_slice(&std::fs::read(case).expect("readable")).expect("JSON");
    let bytes = std::fs::read(case.with_extension("safetensors")).expect("readable");
    let tensors = SafeTensors::deserialize(&bytes).expect("safetensors");
    let config = model(&json["config"]);
    let words = json["config"]["vocab"].as_u64().expect("a size") as usize;
    let (source, target) = (
        sequences(&json["inputs"], "source"),
        sequences(&json["inputs"], "target"),
    );
    let labels: Option<Vec<i64>> = json["inputs"]["labels"].as_array().map(|rows| {
        rows.iter()
            .flat_map(|r| r.as_array().expect("a row"))
            .map(|l| l.as_i64().expect("a label"))
            .collect()
    });
    let (mut program, outputs) = forward(&Forward {
        config: &config,
        vocab: VocabSizes {
            source: words,
            target: words,
        },
        source: source.as_ref(),
        target: target.as_ref(),
        labels: labels.as_deref(),
        training: false,
    })
    .expect("builds");
    if let Some(loss) = outputs.loss {
        let mut b = Builder::resume(program);
        backward(&mut b, loss).expect("has gradients");
        program = b.finish();
    }
    let mut bindings: Bindings<f64> = HashMap::new();
    let (mut expected, mut gradients) = (Vec::new(), Vec::new());
    for (name, view) in tensors.iter() {
        if let Some(path) = name.strip_prefix("weights.") {
            bindings.insert(path.into(), Value::Float(numbers(&view)));
        } else if let Some(path) = name.strip_prefix("activations.") {
            expected.push((path.to_owned(), numbers(&view)));
        } else if let Some(path) = name.strip_prefix("gradients.") {
            gradients.push((format!("grad.{path}"), numbers(&view)));
        }
    }
    let trace = run(&Arc::new(program), &bindings).expect("runs");
    for (path, theirs) in &expected {
        let ours = trace
            .at(path)
            .unwrap_or_else(|| panic!("{path} is not in the program"));
        let far = distance(&ours, theirs);
        assert!(far < 1e-12, "{path} differs by {far:e}");
    }
    assert!(expected.len() > 20, "only {} activations", expected.len());
    for (path, theirs) in &gradients {
        let ours = trace
            .at(path)
            .unwrap_or_else(|| panic!("{path} is not in the program"));
        let far = match path.strip_suffix(".bias") {
            // A number added to every key moves every score of a row alike, and softmax does not see it: the exact
            // gradient is 0, and what either side holds is rounding of its terms.
            Some(keys) if keys.ends_with("_attn.k") => {
                let terms = trace.at(keys).expect("recorded");
                largest(&ours) / largest(&terms)
            }
            _ => distance(&ours, theirs),
        };
        assert!(far < 1e-11, "{path} differs by {far:e}");
    }
    assert_eq!(outputs.loss.is_some(), gradients.len() > 40);
    replays(&trace);
    let narrow = |v: &Value<f64>| {
        let data: Vec<f32> = v.float().data().iter().map(|&x| x as f32).collect();
        Value::Float(Tensor::new(*v.shape(), data))
    };
    let bindings: Bindings<f32> = bindings
        .iter()
        .map(|(k, v)| (Arc::clone(k), narrow(v)))
        .collect();
    replays(&run(trace.program(), &bindings).expect("runs"));
}

/// Every derivation, forward and backward, gives the bits of its cell.
fn replays<T: Real>(trace: &Trace<T>) {
    for (id, node) in trace.program().nodes() {
        let replayed = replay_node(trace, id);
        assert_eq!(replayed.different, 0, "{}", node.path);
    }
}
