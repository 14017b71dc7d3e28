//! Operator cases that others computed (f32), through the composites and the attention of the models.
//!
//! Our runs are in f32 too; every value must agree within 2e-6 (values are of size 1, a few roundings each).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value as Json;
use tui_transformer::model::attend;
use tui_transformer::model::config::{AttentionConfig, FfnConfig, NormConfig, Scale};
use tui_transformer::model::masks::{GivenMask, Hidden};
use tui_transformer::model::params::ResolvedLayer;
use tui_transformer::program::composite::{self, Norm, Shift};
use tui_transformer::program::{Affine, Binary, Builder, NodeId, Unary};
use tui_transformer::tensor::{Axis, Shape, Tensor, Value};
use tui_transformer::trace::derive::replay_node;
use tui_transformer::trace::{Bindings, Trace, run};

use crate::common::fully_masked;

const TOLERANCE: f64 = 2e-6;

static CASES: LazyLock<Json> = LazyLock::new(|| {
    let text = include_str!("../data/worked_examples/operator_cases.json");
    serde_json::from_str(text).expect("JSON")
});

fn floats(tensor: &Json) -> Vec<f32> {
    let data = tensor["data"].as_array().expect("data");
    data.iter().map(|x| x.as_f64().expect("a number") as f32).collect()
}

fn ints(tensor: &Json) -> Vec<i64> {
    let data = tensor["data"].as_array().expect("data");
    data.iter().map(|x| x.as_i64().expect("an id")).collect()
}

fn dims(tensor: &Json) -> Vec<usize> {
    let dims = tensor["shape"].as_array().expect("a shape");
    dims.iter().map(|d| d.as_u64().expect("a length") as usize).collect()
}

/// A case being built: its inputs are parameters of a program.
struct Case {
    json: &'static Json,
    b: Builder,
    bindings: Bindings<f32>,
}

impl Case {
    fn new(name: &str) -> Self {
        let json = &CASES["cases"][name];
        assert!(json.is_object(), "there is no case {name}");
        Self { json, b: Builder::new(), bindings: HashMap::new() }
    }

    fn has(&self, input: &str) -> bool {
        !self.json["inputs"][input].is_null()
    }

    fn attribute(&self, name: &str) -> Option<f64> {
        self.json["attributes"][name].as_f64()
    }

    fn give(&mut self, name: &str, shape: Shape, data: Vec<f32>) -> NodeId {
        let value = Value::Float(Tensor::new(shape, data));
        self.bindings.insert(name.into(), value);
        self.b.parameter(name, shape).expect("a new name")
    }

    /// An input, in its own shape; the named axes are the last ones.
    fn input(&mut self, name: &str, axes: &[Axis]) -> NodeId {
        let tensor = &self.json["inputs"][name];
        let dims = dims(tensor);
        let named: Vec<(Axis, usize)> = axes.iter().copied().zip(dims.iter().copied()).collect();
        let shape = if named.len() == dims.len() { Shape::named(&named) } else { Shape::new(&dims) };
        self.give(name, shape, floats(tensor))
    }

    fn run(self) -> Ran {
        let trace = run(&Arc::new(self.b.finish()), &self.bindings).expect("runs");
        for (id, node) in trace.program().nodes() {
            assert_eq!(replay_node(&trace, id).different, 0, "{}", node.path);
        }
        Ran { json: self.json, trace }
    }
}

struct Ran {
    json: &'static Json,
    trace: Trace<f32>,
}

impl Ran {
    /// The value at `path` is the output `name` of the case.
    fn gives(&self, path: &str, name: &str) {
        let ours = self.trace.at(path).expect("recorded");
        let theirs = floats(&self.json["outputs"][name]);
        assert_eq!(ours.shape().len(), theirs.len(), "{path}");
        for (i, theirs) in theirs.iter().enumerate() {
            let far = (ours.get(i) - f64::from(*theirs)).abs();
            assert!(far <= TOLERANCE, "{path}[{i}]: {} for {theirs}", ours.get(i));
        }
    }
}

const HEADS: [Axis; 4] = [Axis::Batch, Axis::Head, Axis::Token, Axis::DK];

fn layer(q: &Shape, k: &Shape, v: &Shape, case: &Case) -> ResolvedLayer {
    let scale = case.attribute("scale").map_or(Scale::SqrtDk, Scale::By);
    ResolvedLayer {
        heads: q.dims()[1],
        kv_heads: k.dims()[1],
        d_k: q.dims()[3],
        d_v: v.dims()[3],
        d_ff: 1,
        norm: NormConfig::default(),
        attention: AttentionConfig { scale, ..AttentionConfig::default() },
        causal: case.attribute("is_causal").is_some(),
        ffn: FfnConfig::default(),
        has_ffn: false,
        cross: false,
        has_attention: true,
        residual: true,
    }
}

/// Attention with whatever masks, past keys and head counts the case has.
fn attention(name: &str) -> Ran {
    let mut c = Case::new(name);
    let split = dims(&c.json["inputs"]["Q"]).len() == 3;
    let heads = |c: &Case, key: &str| c.attribute(key).map_or(1, |n| n as usize);
    let read = |c: &mut Case, name: &str, count: &str| {
        if !split {
            return c.input(name, &HEADS);
        }
        let x = c.input(name, &[Axis::Batch, Axis::Token, Axis::In]);
        let n = heads(c, count);
        let width = c.b.shape(x).dims()[2] / n;
        let part = format!("{name}_");
        composite::split_heads(&mut c.b, &part, x, (Axis::Head, n), (Axis::DK, width)).expect("the width divides")
    };
    // The builder wants a name of its own for each split.
    let q = within(&mut c, "q", split, |c| read(c, "Q", "q_num_heads"));
    let mut k = within(&mut c, "k", split, |c| read(c, "K", "kv_num_heads"));
    let mut v = within(&mut c, "v", split, |c| read(c, "V", "kv_num_heads"));
    let mut first = 0;
    if c.has("past_key") {
        let past = (c.input("past_key", &HEADS), c.input("past_value", &HEADS));
        first = c.b.shape(past.0).dims()[2];
        k = c.b.concat("k_cache", 2, &[past.0, k]).expect("fits");
        v = c.b.concat("v_cache", 2, &[past.1, v]).expect("fits");
    }
    let (sq, sk, sv) = (c.b.shape(q), c.b.shape(k), c.b.shape(v));
    let (batch, queries, keys) = (sq.dims()[0], sq.dims()[2], sk.dims()[2]);
    let layer = layer(&sq, &sk, &sv, &c);
    let mask = &c.json["inputs"]["attn_mask"];
    let given = (mask["dtype"] == "bool").then(|| GivenMask {
        batch: 1,
        queries,
        per_query: true,
        keys,
        visible: ints(mask).iter().map(|&x| x != 0).collect(),
    });
    let window = c.attribute("left_window_size").map(|w| w as usize + 1);
    let hidden = Hidden { causal: layer.causal, window, padding: None, given: given.as_ref() };
    let hidden = hidden.mask(batch, queries, first, keys);
    if mask["dtype"] == "float32" {
        biased(&mut c, &layer, (q, k, v), hidden.as_ref());
    } else {
        attend(&mut c.b, &layer, 0, (q, k, v), hidden.as_ref()).expect("builds");
    }
    let context = c.b.program().find("context").expect("there");
    if split {
        let moved = c.b.permute("moved", context, &[0, 2, 1, 3]).expect("moves");
        let s = c.b.shape(moved);
        let joined = Shape::new(&[s.dims()[0], s.dims()[1], s.dims()[2] * s.dims()[3]]);
        c.b.reshape("joined", moved, joined).expect("joins");
    }
    let ran = c.run();
    ran.gives(if split { "joined" } else { "context" }, "Y");
    ran
}

fn within(c: &mut Case, name: &str, split: bool, build: impl FnOnce(&mut Case) -> NodeId) -> NodeId {
    if !split {
        return build(c);
    }
    let scope = c.b.enter(name, tui_transformer::program::ScopeKind::Group);
    let path = build(c);
    c.b.leave(scope);
    path
}

/// Attention whose scores get a number each added: no mask of ours, but the same composites.
fn biased(
    c: &mut Case,
    layer: &ResolvedLayer,
    (q, k, v): (NodeId, NodeId, NodeId),
    hidden: Option<&tui_transformer::model::masks::MaskSpec>,
) {
    let bias = c.input("attn_mask", &[]);
    let b = &mut c.b;
    let raw = b.matmul_bt("scores_raw", q, k).expect("fits");
    let root = (layer.d_k as f64).sqrt();
    let scores = b.affine("scores", Affine::Div(root), raw).expect("fits");
    let mut scores = b.binary("biased_scores", Binary::Add, scores, bias).expect("fits");
    if let Some(mask) = hidden {
        let leaf = b.mask("mask", mask.shape, mask.reasons.clone()).expect("a new name");
        let (queries, keys) = (mask.shape.dims()[0], mask.shape.dims()[1]);
        let leaf = b.reshape("mask_wide", leaf, Shape::new(&[1, 1, queries, keys])).expect("fits");
        scores = b.mask_fill("masked_scores", scores, leaf, f64::NEG_INFINITY).expect("fits");
    }
    let weights = composite::softmax(b, "weights", scores, Shift::WhenNeeded, true).expect("builds");
    b.matmul("context", weights, v).expect("fits");
}

#[test]
fn attention_in_all_forms() {
    for name in [
        "attention_4d",
        "attention_4d_causal",
        "attention_4d_gqa",
        "attention_4d_scaled",
        "attention_4d_attn_mask",
        "attention_4d_attn_mask_bool",
        "attention_4d_attn_mask_4d_causal",
        "attention_4d_diff_heads_sizes",
        "attention_3d_gqa_causal",
        "attention_local_window",
    ] {
        attention(name);
    }
}

#[test]
fn attention_with_past_and_present() {
    for name in ["attention_4d_with_past_and_present", "attention_4d_causal_with_past_and_present"] {
        let ran = attention(name);
        ran.gives("k_cache", "present_key");
        ran.gives("v_cache", "present_value");
    }
    attention("attention_4d_with_qk_matmul_softmax").gives("weights", "qk_matmul_output");
}

/// A row in which every key is masked gives 0, not NaN.
#[test]
fn fully_masked_rows() {
    for (name, row) in
        [("attention_causal_boolmask_nan_robustness", 1), ("attention_23_boolmask_fullymasked_row_nan_robustness", 0)]
    {
        let ran = attention(name);
        let program = ran.trace.program();
        let empty: Vec<_> = fully_masked(program).iter().map(|row| row.last().copied()).collect();
        assert_eq!(empty, [Some(row)], "{name}");
    }
}

fn norm(name: &str, root_mean_square: bool) {
    let mut c = Case::new(name);
    let dims = dims(&c.json["inputs"]["X"]);
    let x = c.input("X", &[]);
    let gamma = Some(c.input("W", &[]));
    let beta = (!root_mean_square).then(|| c.input("B", &[]));
    let eps = c.attribute("epsilon").unwrap_or(1e-5);
    let how = Norm { eps, inside_root: true, unbiased: false, gamma, beta, unit_offset: false };
    if root_mean_square {
        composite::rms_norm(&mut c.b, "norm", x, &how).expect("builds");
    } else {
        composite::layer_norm(&mut c.b, "norm", x, &how).expect("builds");
    }
    assert_eq!(c.attribute("axis"), Some(dims.len() as f64 - 1.0));
    let ran = c.run();
    ran.gives("norm.out", "Y");
    if !root_mean_square {
        ran.gives("norm.mean", "Mean");
    }
}

#[test]
fn layer_norm_and_rms_norm() {
    norm("layer_normalization_2d_axis1", false);
    norm("layer_normalization_3d_axis2_epsilon", false);
    norm("rms_normalization_2d_axis1", true);
    norm("rms_normalization_3d_axis2_epsilon", true);
}

#[test]
fn rotary_in_halves_interleaved_and_in_part() {
    for name in [
        "rotary_embedding",
        "rotary_embedding_interleaved",
        "rotary_embedding_no_position_ids",
        "rotary_embedding_with_rotary_dim",
    ] {
        let mut c = Case::new(name);
        let x = c.input("input", &HEADS);
        let (batch, tokens, width) = {
            let d = c.b.shape(x);
            (d.dims()[0], d.dims()[2], d.dims()[3])
        };
        let dim = c.attribute("rotary_embedding_dim").map_or(width, |d| d as usize);
        // Rows of the tables at the positions of each sequence, `[batch, 1, token, dim/2]`.
        let table = |c: &mut Case, name: &str| {
            let all = floats(&c.json["inputs"][name]);
            let rows: Vec<usize> = if c.has("position_ids") {
                ints(&c.json["inputs"]["position_ids"]).iter().map(|&i| i as usize).collect()
            } else {
                (0..batch * tokens).collect()
            };
            let half = dim / 2;
            let data = rows.iter().flat_map(|r| all[r * half..(r + 1) * half].to_vec()).collect();
            c.give(name, Shape::new(&[batch, 1, tokens, half]), data)
        };
        let (sin, cos) = (table(&mut c, "sin_cache"), table(&mut c, "cos_cache"));
        let interleaved = c.attribute("interleaved") == Some(1.0);
        composite::rotary(&mut c.b, "rotated", x, (sin, cos), dim, interleaved).expect("builds");
        c.run().gives("rotated", "output");
    }
}

#[test]
fn activations() {
    type Build = fn(&mut Builder, &str, NodeId) -> Result<NodeId, tui_transformer::program::BuildError>;
    for (name, build) in [
        ("gelu_default_1", composite::gelu as Build),
        ("gelu_tanh_1", composite::gelu_tanh),
        ("swish", composite::silu),
    ] {
        let mut c = Case::new(name);
        let x = c.input("x", &[]);
        build(&mut c.b, "y", x).expect("builds");
        c.run().gives("y", "y");
    }
}

#[test]
fn softmax_and_log_softmax() {
    for name in ["softmax_example", "softmax_large_number"] {
        let mut c = Case::new(name);
        let x = c.input("x", &[]);
        composite::softmax(&mut c.b, "y", x, Shift::WhenNeeded, false).expect("builds");
        c.run().gives("y", "y");
    }
    let mut c = Case::new("softmax_axis_1");
    let x = c.input("x", &[]);
    let last = c.b.permute("last", x, &[0, 2, 1]).expect("moves");
    let y = composite::softmax(&mut c.b, "rows", last, Shift::WhenNeeded, false).expect("builds");
    c.b.permute("y", y, &[0, 2, 1]).expect("moves");
    c.run().gives("y", "y");
    let mut c = Case::new("logsoftmax_example_1");
    let x = c.input("x", &[]);
    let y = composite::softmax(&mut c.b, "rows", x, Shift::WhenNeeded, false).expect("builds");
    c.b.unary("y", Unary::Ln, y).expect("builds");
    c.run().gives("y", "y");
}

#[test]
fn cross_entropy_in_its_reductions() {
    for (name, path) in [
        ("sce_none", "loss.per_position"),
        ("sce_mean", "loss.mean"),
        ("sce_sum", "loss.sum"),
        ("sce_mean_no_weight_ii", "loss.mean"),
    ] {
        let mut c = Case::new(name);
        let tensor = &c.json["inputs"]["x"];
        let d = dims(tensor);
        let shape = Shape::named(&[(Axis::Batch, 1), (Axis::Token, d[0]), (Axis::Vocab, d[1])]);
        let x = c.give("x", shape, floats(tensor));
        let ignored = c.attribute("ignore_index").map(|i| i as i64);
        let labels: Vec<i64> =
            ints(&c.json["inputs"]["y"]).into_iter().map(|l| if Some(l) == ignored { -1 } else { l }).collect();
        let probs = composite::softmax(&mut c.b, "probs", x, Shift::WhenNeeded, false).expect("builds");
        composite::cross_entropy(&mut c.b, "loss", x, probs, &labels).expect("builds");
        c.run().gives(path, "z");
    }
}

/// Every case is used by a test above.
#[test]
fn no_case_is_left_out() {
    let source = include_str!("operators.rs");
    for name in CASES["cases"].as_object().expect("cases").keys() {
        assert!(source.contains(&format!("\"{name}\"")), "{name}");
    }
}
