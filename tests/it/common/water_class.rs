//! The hand calculation's model, weights and reference gradients (float64 autograd).

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value as Json;
use tui_transformer::model::config::ModelConfig;
use tui_transformer::model::params::VocabSizes;
use tui_transformer::model::{Forward, Outputs, Sequences, forward};
use tui_transformer::program::Program;

pub fn golden(file: &str) -> Json {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/water_class").join(file);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub fn config() -> ModelConfig {
    ron::Options::default()
        .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
        .from_str(
            "(d_model: 4, heads: 2, d_ff: 8, positions: Sinusoidal(), norm: (eps: 1e-5, affine: false),
              attention: (fill: Value(-1e9), mask_by: Adding),
              encoder: (layers: [(repeat: 2)]),
              decoder: (layers: [(cross_attention: false), ()]))",
        )
        .unwrap()
}

/// The training run: targets are not shifted.
pub fn training(config: &ModelConfig) -> (Program, Outputs) {
    let weights = golden("weights.json");
    let ids = |name: &str| serde_json::from_value::<Vec<i64>>(weights[name].clone()).unwrap();
    let (source, target) = (ids("source_ids"), ids("target_ids"));
    forward(&Forward {
        loss: &tui_transformer::model::loss::Loss::MeanCrossEntropy,
        config,
        vocab: VocabSizes { source: 8, target: 8 },
        source: Some(&Sequences::one(source)),
        target: Some(&Sequences::one(target.clone())),
        labels: Some(&target),
        training: true,
    })
    .unwrap()
}

/// Numbers of a nested list, row-major.
pub fn flat(x: &Json) -> Vec<f64> {
    match x {
        Json::Array(rows) => rows.iter().flat_map(flat).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

/// `encoder.1.self_attention` of the hand calculation, which counts from 1, as a path.
pub fn ours(block: &str) -> String {
    let mut parts = block.split('.');
    let stack = parts.next().unwrap();
    let layer: usize = parts.next().unwrap().parse().unwrap();
    let mut path = format!("{stack}.{}", layer - 1);
    for part in parts {
        path.push('.');
        path.push_str(match part {
            "self_attention" => "self_attn",
            "cross_attention" => "cross_attn",
            other => other,
        });
    }
    path
}

/// Weights by our paths: those of heads are contiguous.
pub fn weights() -> HashMap<String, Vec<f64>> {
    let json = golden("weights.json");
    let mut all = HashMap::new();
    all.insert("embed.weight".to_owned(), flat(&json["E"]));
    all.insert("output.weight".to_owned(), flat(&json["W_out"]));
    for stack in ["encoder", "decoder"] {
        for (i, layer) in json[stack].as_array().unwrap().iter().enumerate() {
            for (theirs, ours) in [("self_attention", "self_attn"), ("cross_attention", "cross_attn")] {
                let Some(block) = layer.get(theirs) else {
                    continue;
                };
                for (theirs, letter) in [("W_Q", "q"), ("W_K", "k"), ("W_V", "v")] {
                    let rows = block["heads"].as_array().unwrap().iter().flat_map(|head| flat(&head[theirs])).collect();
                    all.insert(format!("{stack}.{i}.{ours}.{letter}.weight"), rows);
                }
                all.insert(format!("{stack}.{i}.{ours}.o.weight"), flat(&block["W_O"]));
            }
            for (theirs, ours) in [("W_1", "w1"), ("W_2", "w2")] {
                all.insert(format!("{stack}.{i}.ffn.{ours}.weight"), flat(&layer["ffn"][theirs]));
            }
        }
    }
    all
}
