//! Settings of other people's models, against what transformers computes from the same weights
//! (`tests/data/make_model_settings.py`): hidden states, attention weights, logits and greedy ids; with a cache and
//! without; every derivation replayed; gradients against central differences.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rstest::rstest;
use safetensors::SafeTensors;
use tui_transformer::model::config::{Algorithm, ModelConfig};
use tui_transformer::model::generate::{Barred, Calls, Choice, Part, generate};
use tui_transformer::model::params::{VocabSizes, cacheable, parameters};
use tui_transformer::model::validate::validate;
use tui_transformer::model::{Forward, ModelBuilder, Outputs, Sequences, forward};
use tui_transformer::program::{
    Binary, Builder, Constant, Cost, NodeId, Program, Reduction, ScopeKind, backward, cost,
};
use tui_transformer::tensor::Slice;
use tui_transformer::tensor::{Axis, Precision, Shape, Tensor, Value};
use tui_transformer::text::Lang;
use tui_transformer::trace::derive::replay_node;
use tui_transformer::trace::{AnyTrace, Bindings, run};
use tui_transformer::walkthrough::{Detail, LocalizedText, plan};

const VOCAB: VocabSizes = VocabSizes { source: 24, target: 24 };

struct Case {
    config: ModelConfig,
    source: Option<Sequences>,
    target: Option<Sequences>,
    greedy: Option<Vec<i64>>,
    weights: Bindings<f32>,
    expected: Vec<(String, Vec<f32>)>,
}

fn read(file: &Path) -> Case {
    let bytes = std::fs::read(file).expect("readable");
    let (_, header) = SafeTensors::read_metadata(&bytes).expect("safetensors");
    let meta = header.metadata().clone().expect("metadata");
    let tensors = SafeTensors::deserialize(&bytes).expect("safetensors");
    let options = ron::Options::default().with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
    let config: ModelConfig = options.from_str(&meta["model"]).unwrap_or_else(|e| panic!("{e} in {}", meta["model"]));
    let ids = |key: &str| -> Option<Vec<i64>> {
        meta.get(key).map(|t| t.split(' ').map(|i| i.parse().expect("an id")).collect())
    };
    let real = ids("real").map(|m| m.iter().map(|&x| x != 0).collect());
    let source = ids("source").map(|s| Sequences { real, types: ids("types"), ..Sequences::one(s) });
    let target = ids("target").map(Sequences::one);
    let (mut weights, mut expected) = (Bindings::new(), Vec::new());
    for (name, view) in tensors.iter() {
        let data: Vec<f32> =
            view.data().chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().expect("four bytes"))).collect();
        match name.strip_prefix("ref.") {
            Some(path) => expected.push((path.to_owned(), data)),
            None => {
                weights.insert(name.into(), Value::Float(Tensor::new(Shape::new(view.shape()), data)));
            }
        }
    }
    Case { config, source, target, greedy: ids("greedy"), weights, expected }
}

fn build(case: &Case) -> (Program, Outputs) {
    let spec = Forward {
        config: &case.config,
        vocab: VOCAB,
        source: case.source.as_ref(),
        target: case.target.as_ref(),
        labels: None,
        loss: &tui_transformer::model::loss::Loss::MeanCrossEntropy,
        training: false,
    };
    forward(&spec).expect("builds")
}

/// The node that a reference names: `decoder.1.OUT` is what the layer gives, or where it is the last one of a stack
/// with a final norm, what that norm gives.
fn node(program: &Program, path: &str) -> NodeId {
    let Some(layer) = path.strip_suffix(".OUT") else {
        return program.find(path).unwrap_or_else(|| panic!("{path} is not in the program"));
    };
    let (stack, i) = layer.split_once('.').expect("a layer");
    let next: usize = i.parse::<usize>().expect("a number") + 1;
    let last = program.find_scope(&format!("{stack}.{next}")).is_none();
    if let Some(norm) = program.find(&format!("{stack}.final_norm.out")).filter(|_| last) {
        return norm;
    }
    let scopes = program.scopes().find(|(_, s)| s.kind == ScopeKind::Layer && *s.path == *layer);
    NodeId(scopes.expect("a layer").1.nodes.end - 1)
}

/// Relative root mean square of the difference.
fn far(ours: &Value<f32>, theirs: &[f32]) -> f64 {
    let ours = ours.float().data();
    assert_eq!(ours.len(), theirs.len());
    let square = |it: &mut dyn Iterator<Item = f64>| it.map(|x| x * x).sum::<f64>().sqrt();
    let difference = square(&mut ours.iter().zip(theirs).map(|(a, b)| f64::from(a - b)));
    difference / square(&mut theirs.iter().map(|x| f64::from(*x))).max(1e-12)
}

#[rstest]
fn every_tensor_equals_what_transformers_computes(#[files("tests/data/model_settings/*.safetensors")] file: PathBuf) {
    let case = read(&file);
    assert_eq!(validate(&case.config, VOCAB), []);
    let mut listed: Vec<(String, Vec<usize>)> = parameters(&case.config, VOCAB)
        .expect("a model")
        .into_iter()
        .map(|p| (p.path, p.shape.dims().to_vec()))
        .collect();
    let mut given: Vec<(String, Vec<usize>)> =
        case.weights.iter().map(|(p, v)| (p.to_string(), v.shape().dims().to_vec())).collect();
    listed.sort();
    given.sort();
    assert_eq!(listed, given, "parameters");
    let (program, _) = build(&case);
    let trace = run(&Arc::new(program), &case.weights).expect("runs");
    assert!(case.expected.len() >= 4);
    for (path, theirs) in &case.expected {
        let id = node(trace.program(), path);
        let far = far(&trace.value(id), theirs);
        assert!(far <= 2e-5, "{path} differs by {far:e} of its root mean square");
    }
    for (id, node) in trace.program().nodes() {
        assert_eq!(replay_node(&trace, id).different, 0, "{}", node.path);
    }
}

/// Ids that are chosen, and the last row of logits of every call.
fn decoded(case: &Case, cached: bool) -> (Vec<i64>, Vec<Vec<u32>>) {
    let from = match (&case.greedy, &case.target, &case.source) {
        (Some(ids), _, Some(_)) => ids[..1].to_vec(),
        (_, Some(t), _) => t.ids.clone(),
        _ => unreachable!("a model that decodes"),
    };
    let barred = Barred::default();
    let calls = Calls::Free { from: from.clone(), max_new: 6, choice: Choice::Greedy, barred };
    let m = ModelBuilder::new(&case.config, VOCAB, false);
    let program = generate(m, case.source.as_ref(), &calls, &Part::whole(&calls), None, cached).expect("builds");
    let trace = run(&Arc::new(program), &case.weights).expect("runs");
    let (mut ids, mut rows) = (from, Vec::new());
    for call in 0..6 {
        let logits = trace.at(&format!("gen.{call}.output.logits")).expect("logits");
        rows.push(logits.float().data().iter().rev().take(24).map(|x| x.to_bits()).collect());
        let next = trace.at(&format!("gen.{call}.next.id")).expect("a choice");
        ids.push(next.int().data()[0]);
    }
    (ids, rows)
}

#[rstest]
fn greedy_ids_are_the_same_with_and_without_a_cache(#[files("tests/data/model_settings/*.safetensors")] file: PathBuf) {
    let case = read(&file);
    let Some(greedy) = &case.greedy else {
        assert!(case.target.is_none());
        return;
    };
    let plain = decoded(&case, false);
    assert_eq!(plain.0, *greedy);
    let is_dynamic = file.file_stem().is_some_and(|s| s == "dynamic");
    assert_eq!(cacheable(&case.config), !is_dynamic);
    if !is_dynamic {
        assert_eq!(plain, decoded(&case, true), "with a cache");
    }
}

/// Σ wᵢ·xᵢ over all cells, with fixed uneven weights.
fn weighted_sum(b: &mut Builder, x: NodeId) -> NodeId {
    let n = b.shape(x).len();
    let flat = b.reshape("loss.flat", x, Shape::new(&[n])).expect("flat");
    let weights: Arc<[f64]> = (0..n).map(|i| 0.4 + 0.37 * ((i * i + 3 * i) % 7) as f64).collect();
    let weights = b.constant("loss.weights", Shape::new(&[n]), Constant::Float(weights)).expect("weights");
    let product = b.binary("loss.product", Binary::Mul, flat, weights).expect("a product");
    let sum = b.reduce("loss.sum", Reduction::Sum, 0, product).expect("a sum");
    b.reshape("loss.total", sum, Shape::SCALAR).expect("a scalar")
}

#[rstest]
fn gradients_equal_central_differences(#[files("tests/data/model_settings/*.safetensors")] file: PathBuf) {
    let case = read(&file);
    let (program, outputs) = build(&case);
    slopes_agree(&case, program, outputs);
}

/// Gradients of some cells of every parameter against central differences in f64, and every derivation.
fn slopes_agree(case: &Case, program: Program, outputs: Outputs) {
    let of = outputs.classes.or(outputs.pooled).or(outputs.probs).or(outputs.hidden).expect("an output");
    let mut b = Builder::resume(program);
    let loss = weighted_sum(&mut b, of);
    let gradients = backward(&mut b, loss).expect("has gradients");
    let program = Arc::new(b.finish());
    let at: Bindings<f64> = case
        .weights
        .iter()
        .map(|(k, v)| {
            let data: Vec<f64> = v.float().data().iter().map(|&x| f64::from(x)).collect();
            (Arc::clone(k), Value::Float(Tensor::new(*v.shape(), data)))
        })
        .collect::<HashMap<_, _>>();
    let trace = run(&program, &at).expect("runs");
    let loss_at = |path: &Arc<str>, cell: usize, by: f64| {
        let mut moved = at.clone();
        let old = at[path].float();
        let mut data = old.data().to_vec();
        data[cell] += by;
        moved.insert(Arc::clone(path), Value::Float(Tensor::new(*old.shape(), data)));
        let mut stop = |_: &Program, id: NodeId, _: &Value<f64>| {
            if id == loss { tui_transformer::trace::Flow::Stop } else { tui_transformer::trace::Flow::Go }
        };
        let settings = tui_transformer::trace::Settings::default();
        let run = tui_transformer::trace::run_with(&program, &moved, &settings, &mut stop);
        run.expect("runs").value(loss).float().data()[0]
    };
    let (mut compared, mut kinks) = (0, 0);
    for (id, node) in program.nodes().filter(|(_, n)| at.contains_key(&n.path)) {
        let grad = gradients.of(id).map(|g| trace.value(g));
        for cell in [0, node.shape.len() / 2] {
            let exact = grad.as_ref().map_or(0.0, |g| g.float().data()[cell]);
            let slope = |h: f64| (loss_at(&node.path, cell, h) - loss_at(&node.path, cell, -h)) / (2.0 * h);
            let (wide, narrow) = (slope(3e-5), slope(1e-5));
            let size = 1.0 + exact.abs();
            if (wide - narrow).abs() > 1e-5 * size {
                kinks += 1;
                continue;
            }
            assert!((exact - narrow).abs() <= 2e-5 * size, "{}[{cell}]: {exact}, differences say {narrow}", node.path);
            compared += 1;
        }
    }
    assert!(compared > 10 && kinks * 10 < compared, "{compared} compared, {kinks} kinks");
    for (id, node) in program.nodes() {
        assert_eq!(replay_node(&trace, id).different, 0, "{}", node.path);
    }
}

/// The models whose attention can be computed in tiles of two queries and three keys, and in bands where it has a
/// window.
const IN_PIECES: [(&str, bool); 8] = [
    ("llama3_scaling", false),
    ("gemma2", false),
    ("gemma2", true),
    ("t5", false),
    ("bloom", false),
    ("deepseek_v3", false),
    ("bert_mlm", false),
    ("modernbert", true),
];

fn in_pieces(name: &str, banded: bool) -> Case {
    let mut case = read(Path::new(&format!("tests/data/model_settings/{name}.safetensors")));
    if !banded {
        case.config.attention.algorithm = Algorithm::Tiled { queries: 2, keys: 3 };
        return case;
    }
    let config = &mut case.config;
    for stack in [&mut config.encoder, &mut config.decoder].into_iter().flatten() {
        for own in stack.layers.iter_mut().filter_map(|l| l.attention.as_mut()) {
            if own.window.is_some() {
                own.algorithm = Some(Algorithm::Banded);
            }
        }
    }
    case
}

#[test]
fn attention_in_tiles_and_bands_gives_what_transformers_computes() {
    for (name, banded) in IN_PIECES {
        let case = in_pieces(name, banded);
        assert_eq!(validate(&case.config, VOCAB), [], "{name}");
        let (program, outputs) = build(&case);
        assert!(program.scopes().any(|(_, s)| s.kind == ScopeKind::Tile), "{name}");
        let trace = run(&Arc::new(program), &case.weights).expect("runs");
        let mut compared = 0;
        for (path, theirs) in case.expected.iter().filter(|(p, _)| !p.ends_with(".weights")) {
            let far = far(&trace.value(node(trace.program(), path)), theirs);
            assert!(far <= 2e-5, "{name}: {path} differs by {far:e}");
            compared += 1;
        }
        assert!(compared >= 3, "{name}");
        let report = tui_transformer::debug::tiles::report(&AnyTrace::F32(trace), Precision::F32).expect("tiles");
        assert!(report.attentions > 0 && report.rows > 0 && report.wrong == 0, "{name}: {report:?}");
        assert!(report.largest > 0.0 && report.bytes < report.unfused_bytes, "{name}: {report:?}");
        if case.greedy.is_some() {
            assert_eq!(decoded(&case, false), decoded(&case, true), "{name}");
        }
        slopes_agree(&case, build(&case).0, outputs);
    }
}

/// With a window of 4 over 40 tokens, bands compute and write less than a tenth of what the whole matrix takes.
#[test]
fn bands_cost_as_much_as_the_window_and_not_as_the_text() {
    let costs = |algorithm: &str| {
        let text = format!(
            "(d_model: 8, heads: 2, d_ff: 4, attention: (window: Some(4), algorithm: {algorithm}),
              decoder: Some((layers: [()])))"
        );
        let config: ModelConfig = ron::from_str(&text).expect("a model");
        let target = Sequences::one((0..40).map(|i| i % 24).collect());
        let spec = Forward {
            config: &config,
            vocab: VOCAB,
            source: None,
            target: Some(&target),
            labels: None,
            loss: &tui_transformer::model::loss::Loss::MeanCrossEntropy,
            training: false,
        };
        let (program, _) = forward(&spec).expect("builds");
        let scope = program.scopes().find(|(_, s)| s.kind == ScopeKind::Attention).expect("attention").1;
        let mut total = Cost::default();
        for id in scope.nodes.clone().map(NodeId) {
            // Projections are the same.
            if program.node(id).shape.axes().iter().any(|a| matches!(a, Axis::Key)) {
                total += cost(&program, id, Precision::F64);
            }
        }
        total
    };
    let (plain, bands) = (costs("Plain"), costs("Banded"));
    assert!(bands.flops * 5 < plain.flops, "{bands:?} against {plain:?}");
    assert!(bands.written * 5 < plain.written, "{bands:?} against {plain:?}");
}

#[test]
fn every_step_of_every_setting_has_a_title_of_its_own() {
    let files = std::fs::read_dir("tests/data/model_settings").expect("a folder");
    let mut cases: Vec<Case> = files.map(|f| read(&f.expect("a file").path())).collect();
    cases.extend(IN_PIECES.map(|(name, banded)| in_pieces(name, banded)));
    let mut without = std::collections::BTreeSet::new();
    for case in &cases {
        let (program, _) = build(case);
        let none = |_: &str, _: &Slice| None;
        for detail in [Detail::Grouped, Detail::Full] {
            for step in plan(&program, 0, detail, &none, &|_| true) {
                if let LocalizedText::Message(msg) = &step.title
                    && msg.key == "walk.other"
                {
                    without.insert(msg.render(Lang::En));
                }
            }
        }
    }
    assert!(without.is_empty(), "{without:#?}");
}
