//! Every activation of the reference variants (computed by PyTorch in float64), rebuilt from their weights, and the
//! gradient of the loss with respect to each.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::reference::{self, model, numbers};
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
    let flat =
        |rows: &[Json]| -> Vec<Json> { rows.iter().flat_map(|r| r.as_array().expect("a row").clone()).collect() };
    let ids = flat(rows).iter().map(|i| i.as_i64().expect("an id")).collect();
    let real = inputs[format!("{side}_mask")]
        .as_array()
        .map(|m| flat(m).iter().map(|b| b.as_bool().expect("a flag")).collect());
    Some(Sequences { ids, batch: rows.len(), real, ..Sequences::default() })
}

/// Largest difference.
fn difference(ours: &Value<f64>, theirs: &Tensor<f64>) -> f64 {
    assert_eq!(ours.shape().len(), theirs.shape().len(), "{} against {}", ours.shape(), theirs.shape());
    let cells = theirs.data().iter().enumerate();
    let each = cells.map(|(i, x)| (ours.get(i) - x).abs());
    each.inspect(|d| assert!(!d.is_nan(), "a cell is not a number")).fold(0.0, f64::max)
}

fn largest(t: &Tensor<f64>) -> f64 {
    t.data().iter().fold(0.0, |m, x| m.max(x.abs()))
}

#[rstest]
fn every_activation_equals_the_reference(#[files("tests/data/reference/*.json")] case: PathBuf) {
    check(&reference::case(&case));
}

fn check(case: &Path) {
    let json: Json = serde_json::from_slice(&std::fs::read(case).expect("readable")).expect("JSON");
    let bytes = std::fs::read(case.with_extension("safetensors")).expect("readable");
    let tensors = SafeTensors::deserialize(&bytes).expect("safetensors");
    let config = model(&json["config"]);
    let words = json["config"]["vocab"].as_u64().expect("a size") as usize;
    let (source, target) = (sequences(&json["inputs"], "source"), sequences(&json["inputs"], "target"));
    let labels: Option<Vec<i64>> = json["inputs"]["labels"].as_array().map(|rows| {
        rows.iter().flat_map(|r| r.as_array().expect("a row")).map(|l| l.as_i64().expect("a label")).collect()
    });
    let (mut program, outputs) = forward(&Forward {
        loss: &tui_transformer::model::loss::Loss::MeanCrossEntropy,
        config: &config,
        vocab: VocabSizes { source: words, target: words },
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
        let ours = trace.at(path).unwrap_or_else(|| panic!("{path} is not in the program"));
        let far = difference(&ours, theirs);
        assert!(far <= 1e-12 * largest(theirs), "{path} differs by {far:e}");
    }
    assert!(expected.len() > 20, "only {} activations", expected.len());
    // Some exact gradients are 0: a number added to every key moves every score of a row alike, a position that sees
    // only itself has weight 1 whatever the score, a norm after a norm does not see the first one's scale. What either
    // side holds there is rounding of its terms.
    let greatest = (gradients.iter().map(|(_, g)| largest(g))).fold(0.0, f64::max);
    for (path, theirs) in &gradients {
        let ours = trace.at(path).unwrap_or_else(|| panic!("{path} is not in the program"));
        let far = difference(&ours, theirs);
        assert!(
            far < 1e-11 * largest(theirs) || far < 1e-15 * greatest,
            "{path} differs by {far:e} of {:e}",
            largest(theirs)
        );
    }
    assert_eq!(outputs.loss.is_some(), gradients.len() > 40);
    replays(&trace);
    let narrow = |v: &Value<f64>| {
        let data: Vec<f32> = v.float().data().iter().map(|&x| x as f32).collect();
        Value::Float(Tensor::new(*v.shape(), data))
    };
    let bindings: Bindings<f32> = bindings.iter().map(|(k, v)| (Arc::clone(k), narrow(v))).collect();
    replays(&run(trace.program(), &bindings).expect("runs"));
}

/// Every derivation, forward and backward, gives the bits of its cell.
fn replays<T: Real>(trace: &Trace<T>) {
    for (id, node) in trace.program().nodes() {
        let replayed = replay_node(trace, id);
        assert_eq!(replayed.different, 0, "{}", node.path);
    }
}
