//! The feed-forward network and its activation functions.

use super::blocks::{Context, dropout};
use super::config::Activation;
use super::moe;
use super::params::{self, ResolvedLayer};
use crate::program::composite;
use crate::program::{Affine, Binary, BuildError, Builder, NodeId, ScopeKind, Unary};
use crate::tensor::Axis;

type Built = Result<NodeId, BuildError>;

/// A feed-forward network, with parameters at `{base}.ffn`.
pub(super) fn ffn(b: &mut Builder, base: &str, l: &ResolvedLayer, x: NodeId, ctx: &Context<'_>) -> Built {
    b.scope("ffn", ScopeKind::FeedForward, |b| {
        let base = format!("{base}.ffn");
        if let Some(c) = &l.ffn.experts {
            return moe::experts(b, &base, l, c, x, ctx);
        }
        let d = ctx.d_model;
        let dense = |b: &mut Builder, name: &str, key: &str, bias: bool, x: NodeId, from: usize, to: (Axis, usize)| {
            let (weight, bias) = params::dense(b, &format!("{base}.{key}"), (to.1, from), bias, 1)?;
            composite::linear(b, name, x, weight, bias, to.0)
        };
        let [w1, v1, w2] = l.ffn.biases();
        let hidden = dense(b, "hidden", "w1", w1, x, d, (Axis::DFf, l.d_ff))?;
        let gate = l.ffn.gated.then(|| dense(b, "gate", "v1", v1, x, d, (Axis::DFf, l.d_ff))).transpose()?;
        let mut act = activate(b, l, hidden, gate)?;
        act = dropout(b, "act_dropped", act, ctx.drop.ffn, ctx.drop.seed)?;
        dense(b, "out", "w2", w2, act, l.d_ff, (Axis::DModel, d))
    })
}

/// `act` from x·W1 and, in a gated network, x·V1.
pub(super) fn activate(b: &mut Builder, l: &ResolvedLayer, mut hidden: NodeId, gate: Option<NodeId>) -> Built {
    let Some(mut gate) = gate else {
        return activation(b, "act", l.ffn.activation, hidden);
    };
    if let Some(c) = l.ffn.clamp {
        hidden = composite::at_most(b, "hidden_clamped", hidden, c)?;
        gate = composite::clamp(b, "gate_clamped", gate, c)?;
    }
    if l.ffn.linear_offset != 0.0 {
        gate = b.affine("gate_offset", Affine::Add(l.ffn.linear_offset), gate)?;
    }
    let activated = activation(b, "activated", l.ffn.activation, hidden)?;
    b.binary("act", Binary::Mul, activated, gate)
}

pub(super) fn activation(b: &mut Builder, name: &str, f: Activation, x: NodeId) -> Built {
    match f {
        Activation::Relu => composite::simple_activation(b, name, Unary::Relu, x),
        Activation::Sigmoid => composite::simple_activation(b, name, Unary::Sigmoid, x),
        Activation::Tanh => composite::simple_activation(b, name, Unary::Tanh, x),
        Activation::Gelu => composite::gelu(b, name, x),
        Activation::GeluTanh => composite::gelu_tanh(b, name, x),
        Activation::Silu => composite::silu(b, name, x),
        Activation::ReluSquared => composite::relu_squared(b, name, x),
        Activation::QuickGelu => composite::quick_gelu(b, name, x),
    }
}
