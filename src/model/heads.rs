//! What reads the last hidden states: the output head with its transform, the pooler, the classifier.

use serde::{Deserialize, Serialize};

use super::config::{Activation, ModelConfig, NormConfig};
use super::ffn::activation;
use super::norm::norm;
use super::params::{ParamRole, VocabSizes, dense, embedding_path};
use crate::program::composite::{self, Shift};
use crate::program::{Affine, BuildError, Builder, NodeId, ScopeKind};
use crate::tensor::{Axis, Shape};

/// A dense layer between the hidden states and the output head, as wide as the token table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HeadTransform {
    /// Its activation, where there is one.
    pub activation: Option<Activation>,
    /// A norm after it.
    pub norm: bool,
    /// Its bias.
    pub bias: bool,
}

impl Default for HeadTransform {
    fn default() -> Self {
        Self { activation: Some(Activation::Gelu), norm: true, bias: true }
    }
}

/// A dense layer and its activation on the first token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PoolerConfig {
    /// Its activation.
    pub activation: Activation,
}

impl Default for PoolerConfig {
    fn default() -> Self {
        Self { activation: Activation::Tanh }
    }
}

/// A head with classes of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClassifierConfig {
    /// Classes.
    pub labels: usize,
    /// What it reads.
    #[serde(default)]
    pub from: ClassifierInput,
    /// Its bias.
    #[serde(default = "yes")]
    pub bias: bool,
}

fn yes() -> bool {
    true
}

/// What a classifier reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ClassifierInput {
    /// The pooler's output.
    #[default]
    Pooled,
    /// Every token.
    Tokens,
    /// The first token.
    First,
    /// The last token.
    Last,
}

/// Width of the token tables.
pub(super) fn embedding_width(config: &ModelConfig) -> usize {
    config.embedding.width.unwrap_or(config.d_model)
}

/// Width of what the output head reads.
pub(super) fn head_width(config: &ModelConfig) -> usize {
    if config.output.transform.is_some() { embedding_width(config) } else { config.d_model }
}

/// Logits `[batch, token, vocab]`, their softmax, and the greedy choice.
pub(super) fn output(
    b: &mut Builder,
    config: &ModelConfig,
    side: &str,
    vocab: VocabSizes,
    hidden: NodeId,
) -> Result<(NodeId, NodeId, NodeId), BuildError> {
    let cfg = &config.output;
    let words = if side == "target" { vocab.target } else { vocab.source };
    let width = head_width(config);
    let axis = if width == config.d_model { Axis::DModel } else { Axis::Other };
    let table = Shape::named(&[(Axis::Vocab, words), (axis, width)]);
    let path = if cfg.tied { embedding_path(config, side) } else { "output.weight".to_owned() };
    let role = if cfg.tied { ParamRole::Embedding } else { ParamRole::weight(table) };
    let weight = b.declare(&path, table, role, 1)?;
    let words = Shape::named(&[(Axis::Vocab, words)]);
    let bias = ParamRole::Bias { fan_in: width };
    let bias = cfg.bias.then(|| b.declare("output.bias", words, bias, 1)).transpose()?;
    b.scope("output", ScopeKind::Output, |b| {
        let mut x = hidden;
        if cfg.hidden_multiplier != 1.0 {
            x = b.affine("hidden_scaled", Affine::Mul(cfg.hidden_multiplier), x)?;
        }
        if let Some(t) = &cfg.transform {
            x = transform(b, t, &config.norm, x, (axis, width))?;
        }
        // Each change of the logits is a node; the last of them is `logits`.
        let names = ["logits_raw", "logits_scaled", "logits"];
        let (scaled, capped) = (cfg.multiplier != 1.0, cfg.softcap);
        let name = if scaled || capped.is_some() { names[0] } else { names[2] };
        let mut logits = composite::linear(b, name, x, weight, bias, Axis::Vocab)?;
        if scaled {
            let name = if capped.is_some() { names[1] } else { names[2] };
            logits = b.affine(name, Affine::Mul(cfg.multiplier), logits)?;
        }
        if let Some(c) = capped {
            logits = composite::softcap(b, names[2], logits, c)?;
        }
        let probs = composite::softmax(b, "probs", logits, Shift::WhenNeeded, false)?;
        let (argmax, _) = composite::predict(b, probs)?;
        Ok((logits, probs, argmax))
    })
}

fn transform(
    b: &mut Builder,
    t: &HeadTransform,
    cfg: &NormConfig,
    x: NodeId,
    (axis, width): (Axis, usize),
) -> Result<NodeId, BuildError> {
    let d = b.shape(x).dims().last().copied().unwrap_or(1);
    let (weight, bias) = dense(b, "output.transform", (width, d), t.bias, 1)?;
    let mut x = composite::linear(b, "transformed", x, weight, bias, axis)?;
    if let Some(f) = t.activation {
        x = activation(b, "transform_act", f, x)?;
    }
    if t.norm { norm(b, "transform_norm", "output.transform_norm", x, cfg) } else { Ok(x) }
}

/// Row `i` of every sequence, `[batch, d_model]`.
fn row(b: &mut Builder, name: &str, hidden: NodeId, i: usize) -> Result<NodeId, BuildError> {
    let s = b.shape(hidden);
    let cut = b.slice(format!("{name}_token"), hidden, 1, i, 1)?;
    b.inline(cut);
    b.reshape(name, cut, Shape::named(&[(Axis::Batch, s.dims()[0]), (s.axes()[2], s.dims()[2])]))
}

/// The pooler's output, `[batch, d_model]`.
pub(super) fn pooler(b: &mut Builder, cfg: &PoolerConfig, hidden: NodeId) -> Result<NodeId, BuildError> {
    let d = b.shape(hidden).dims()[2];
    let (weight, bias) = dense(b, "pooler", (d, d), true, 1)?;
    b.scope("pooler", ScopeKind::Group, |b| {
        let first = row(b, "first", hidden, 0)?;
        let dense = composite::linear(b, "dense", first, weight, bias, Axis::DModel)?;
        activation(b, "out", cfg.activation, dense)
    })
}

/// The classifier's logits and their softmax, `[batch, label]` or `[batch, token, label]`.
pub(super) fn classifier(
    b: &mut Builder,
    cfg: &ClassifierConfig,
    hidden: NodeId,
    pooled: Option<NodeId>,
) -> Result<(NodeId, NodeId), BuildError> {
    let s = b.shape(hidden);
    let (weight, bias) = dense(b, "classifier", (cfg.labels, s.dims()[2]), cfg.bias, 1)?;
    b.scope("classifier", ScopeKind::Group, |b| {
        let x = match (cfg.from, pooled) {
            (ClassifierInput::Pooled, Some(pooled)) => pooled,
            (ClassifierInput::Tokens, _) => hidden,
            (ClassifierInput::Last, _) => row(b, "last", hidden, s.dims()[1].saturating_sub(1))?,
            (ClassifierInput::First | ClassifierInput::Pooled, _) => row(b, "first", hidden, 0)?,
        };
        let logits = composite::linear(b, "logits", x, weight, bias, Axis::Out)?;
        let probs = composite::softmax(b, "probs", logits, Shift::WhenNeeded, false)?;
        Ok((logits, probs))
    })
}
