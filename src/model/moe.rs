//! A mixture of experts: a router scores every expert, the best few of a token are chosen, and their outputs are
//! added with their gates as weights.
//!
//! Every expert computes every token, and the gate of one that was not chosen is 0: shapes are known before anything
//! runs, and what a choice leaves out can be looked at.

use serde::{Deserialize, Serialize};

use super::blocks::{Context, dropout};
use super::ffn::activate;
use super::params::{self, ResolvedLayer};
use crate::program::composite::{self, Shift};
use crate::program::{
    Affine, Binary, BuildError, Builder, Constant, NodeId, Op, ParamRole, Pick, Reduction, ScopeKind, Unary,
};
use crate::tensor::{Axis, Shape};

/// A mixture of experts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExpertsConfig {
    /// Experts.
    pub count: usize,
    /// How many a token is sent to.
    pub top_k: usize,
    /// Width inside an expert; the layer's `d_ff` unless given.
    #[serde(default)]
    pub d_ff: Option<usize>,
    /// How router logits become scores and gates.
    #[serde(default)]
    pub scores: RouterScores,
    /// Gates are divided by their sum.
    #[serde(default)]
    pub normalise: bool,
    /// Bias of the router's logits.
    #[serde(default)]
    pub router_bias: bool,
    /// A learned number a expert that counts for the choice, not for the gate (DeepSeek-V3).
    #[serde(default)]
    pub correction_bias: bool,
    /// Experts stand in so many groups, of which only the best are chosen from (DeepSeek-V3).
    #[serde(default = "one")]
    pub groups: usize,
    /// How many groups are chosen from.
    #[serde(default = "one")]
    pub top_groups: usize,
    /// Gates are multiplied by this.
    #[serde(default = "factor")]
    pub multiplier: f64,
    /// Width of an expert that every token is sent to besides.
    #[serde(default)]
    pub shared_d_ff: Option<usize>,
    /// That expert has a gate too: the sigmoid of a product with the token (Qwen2-MoE).
    #[serde(default)]
    pub shared_gate: bool,
}

fn one() -> usize {
    1
}

fn factor() -> f64 {
    1.0
}

/// How router logits become gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum RouterScores {
    /// Softmax over all experts, then the best are chosen (Mixtral, Qwen3-MoE).
    #[default]
    SoftmaxThenTopK,
    /// The best are chosen, then softmax over them (gpt-oss).
    TopKThenSoftmax,
    /// Sigmoid of each logit (DeepSeek-V3).
    Sigmoid,
}

type Built = Result<NodeId, BuildError>;

/// The mixture over `x [batch, token, d_model]`, with parameters at `base`; its result is named `out`.
pub(super) fn experts(
    b: &mut Builder,
    base: &str,
    l: &ResolvedLayer,
    c: &ExpertsConfig,
    x: NodeId,
    ctx: &Context<'_>,
) -> Built {
    let (d, e) = (ctx.d_model, (Axis::Expert, c.count));
    let s = b.shape(x);
    let (batch, tokens) = (s.dims()[0], s.dims()[1]);
    let weight = b.parameter(format!("{base}.router.weight"), Shape::named(&[e, (Axis::In, d)]))?;
    let each = |b: &mut Builder, name: &str, present: bool| {
        let role = ParamRole::Bias { fan_in: d };
        present.then(|| b.declare(format!("{base}.router.{name}"), Shape::named(&[e]), role, 1)).transpose()
    };
    let bias = each(b, "bias", c.router_bias)?;
    let correction = each(b, "correction", c.correction_bias)?;
    let [w1, v1, w2] = l.ffn.biases();
    let gates = b.scope("router", ScopeKind::Group, |b| router(b, c, x, weight, bias, correction))?;

    // Experts × tokens: one product for all.
    let rows = batch * tokens;
    let flat = Shape::named(&[(Axis::One, 1), (Axis::Token, rows), (Axis::DModel, ctx.d_model)]);
    let mixed = b.scope("experts", ScopeKind::Group, |b| {
        let x = b.reshape("tokens", x, flat)?;
        b.inline(x);
        let ff = c.d_ff.unwrap_or(l.d_ff);
        let dense = |b: &mut Builder, name: &str, (key, bias): (&str, bool), x: NodeId, (axis, out): (Axis, usize)| {
            let from = b.shape(x).dims()[2];
            let at = format!("{base}.experts.{key}");
            let weight = Shape::named(&[e, (Axis::Out, out), (Axis::In, from)]);
            let weight = b.parameter(format!("{at}.weight"), weight)?;
            let rows = Shape::named(&[e, (Axis::Out, out)]);
            let role = ParamRole::Bias { fan_in: from };
            let bias = bias.then(|| b.declare(format!("{at}.bias"), rows, role, 1)).transpose()?;
            b.scope(name, ScopeKind::Linear, |b| {
                let y = b.matmul_bt(if bias.is_some() { "product" } else { "" }, x, weight)?;
                b.name_axes(y, &[Axis::Expert, Axis::Token, axis]);
                let Some(bias) = bias else {
                    return Ok(y);
                };
                b.inline(y);
                let s = b.shape(bias);
                let row = [(Axis::Expert, s.dims()[0]), (Axis::One, 1), (axis, s.dims()[1])];
                let row = b.reshape("bias_rows", bias, Shape::named(&row))?;
                b.inline(row);
                b.binary("", Binary::Add, y, row)
            })
        };
        let hidden = dense(b, "hidden", ("w1", w1), x, (Axis::DFf, ff))?;
        let gate = l.ffn.gated.then(|| dense(b, "gate", ("v1", v1), x, (Axis::DFf, ff))).transpose()?;
        let mut act = activate(b, l, hidden, gate)?;
        act = dropout(b, "act_dropped", act, ctx.drop.ffn, ctx.drop.seed)?;
        let out = dense(b, "out", ("w2", w2), act, (Axis::DModel, d))?;
        let by_token = Shape::named(&[(Axis::Token, rows), (Axis::Expert, c.count)]);
        let by_token = b.reshape("gates_flat", gates, by_token)?;
        let by_expert = b.permute("gates_by_expert", by_token, &[1, 0])?;
        let column = Shape::named(&[(Axis::Expert, c.count), (Axis::Token, rows), (Axis::One, 1)]);
        let column = b.reshape("gates", by_expert, column)?;
        for id in [by_token, by_expert, column] {
            b.inline(id);
        }
        // An expert that was not chosen adds nothing, whatever it computed.
        let weighted = b.binary("weighted", Binary::MulOrZero, out, column)?;
        b.reduce("sum", Reduction::Sum, 0, weighted)
    })?;
    let Some(ff) = c.shared_d_ff else {
        return b.reshape("out", mixed, s);
    };
    let mixed = b.reshape("mixed", mixed, s)?;
    let shared = b.scope("shared", ScopeKind::Group, |b| {
        let dense = |b: &mut Builder, name: &str, (key, bias): (&str, bool), x: NodeId, (axis, out): (Axis, usize)| {
            let from = b.shape(x).dims()[2];
            let (weight, bias) = params::dense(b, &format!("{base}.shared.{key}"), (out, from), bias, 1)?;
            composite::linear(b, name, x, weight, bias, axis)
        };
        let hidden = dense(b, "hidden", ("w1", w1), x, (Axis::DFf, ff))?;
        let gate = l.ffn.gated.then(|| dense(b, "gate", ("v1", v1), x, (Axis::DFf, ff))).transpose()?;
        let act = activate(b, l, hidden, gate)?;
        let out = dense(b, "out", ("w2", w2), act, (Axis::DModel, d))?;
        if !c.shared_gate {
            return Ok(out);
        }
        let (weight, _) = params::dense(b, &format!("{base}.shared_gate"), (1, d), false, 1)?;
        let logit = composite::linear(b, "gate_logit", x, weight, None, Axis::One)?;
        let gate = b.unary("token_gate", Unary::Sigmoid, logit)?;
        b.binary("gated", Binary::Mul, out, gate)
    })?;
    b.binary("out", Binary::Add, mixed, shared)
}

/// Gates of all experts, `[batch, token, expert]`, 0 where one is not chosen.
fn router(
    b: &mut Builder,
    c: &ExpertsConfig,
    x: NodeId,
    weight: NodeId,
    bias: Option<NodeId>,
    correction: Option<NodeId>,
) -> Built {
    let logits = composite::linear(b, "logits", x, weight, bias, Axis::Expert)?;
    let scores = match c.scores {
        RouterScores::SoftmaxThenTopK => composite::softmax(b, "probs", logits, Shift::WhenNeeded, false)?,
        RouterScores::TopKThenSoftmax => logits,
        RouterScores::Sigmoid => b.unary("scores", Unary::Sigmoid, logits)?,
    };
    let mut choice = scores;
    if let Some(correction) = correction {
        choice = b.binary("corrected", Binary::Add, choice, correction)?;
    }
    if c.groups > 1 {
        choice = within_groups(b, c, choice)?;
    }
    let order = b.apply("order", Op::ArgSort, &[choice])?;
    let chosen = b.slice("chosen", order, 2, 0, c.top_k)?;
    let mut gates = b.gather("chosen_scores", Pick::Along, scores, chosen)?;
    if c.scores == RouterScores::TopKThenSoftmax {
        gates = composite::softmax(b, "gates_softmax", gates, Shift::WhenNeeded, false)?;
    }
    if c.normalise {
        let sum = b.reduce_last("gates_sum", Reduction::Sum, gates)?;
        gates = b.binary("normalised", Binary::Div, gates, sum)?;
    }
    if c.multiplier != 1.0 {
        gates = b.affine("multiplied", Affine::Mul(c.multiplier), gates)?;
    }
    let zeros = b.constant("none", b.shape(logits), Constant::Filled(0.0))?;
    b.inline(zeros);
    b.scatter_add("gates", Pick::Along, zeros, chosen, gates)
}

/// The experts of the best groups keep their scores, and all others stand far below: a group's score is the sum of its
/// two best.
fn within_groups(b: &mut Builder, c: &ExpertsConfig, scores: NodeId) -> Built {
    let s = b.shape(scores);
    let (batch, tokens, each) = (s.dims()[0], s.dims()[1], c.count / c.groups);
    let split = [(Axis::Batch, batch), (Axis::Token, tokens), (Axis::Group, c.groups), (Axis::Expert, each)];
    let split = b.reshape("by_group", scores, Shape::named(&split))?;
    b.inline(split);
    let order = b.apply("group_order", Op::ArgSort, &[split])?;
    let best = b.slice("group_best", order, 3, 0, each.min(2))?;
    let best = b.gather("group_best_scores", Pick::Along, split, best)?;
    let sum = b.reduce_last("group_sum", Reduction::Sum, best)?;
    let groups = Shape::named(&[(Axis::Batch, batch), (Axis::Token, tokens), (Axis::Group, c.groups)]);
    let sum = b.reshape("group_scores", sum, groups)?;
    let order = b.apply("groups_order", Op::ArgSort, &[sum])?;
    let chosen = b.slice("groups_chosen", order, 2, 0, c.top_groups)?;
    let ids = Shape::named(&[(Axis::Batch, batch), (Axis::Token, tokens), (Axis::Group, c.top_groups)]);
    let ones = b.constant("groups_one", ids, Constant::Filled(1.0))?;
    let none = b.constant("groups_none", groups, Constant::Filled(-1.0))?;
    for id in [ones, none] {
        b.inline(id);
    }
    // 0 for a chosen group and −1 for another, times more than any score.
    let other = b.scatter_add("groups_other", Pick::Along, none, chosen, ones)?;
    let column = [(Axis::Batch, batch), (Axis::Token, tokens), (Axis::Group, c.groups), (Axis::One, 1)];
    let column = b.reshape("groups_column", other, Shape::named(&column))?;
    let penalty = b.affine("groups_penalty", Affine::Mul(1e9), column)?;
    let limited = b.binary("limited_by_group", Binary::Add, split, penalty)?;
    for id in [column, penalty, limited] {
        b.inline(id);
    }
    b.reshape("limited", limited, s)
}
