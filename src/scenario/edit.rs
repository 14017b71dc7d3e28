//! Recorded values that a scenario edits: a what-if as data.

use serde::{Deserialize, Serialize};

pub use crate::program::Side;

/// One edit. Edits act in order while a run goes on: what reads an edited value reads the new one.
///
/// Without `run`, an edit holds in every run that has the place; with it, in that run and, for a training run, in its
/// `backward` and `update`. Gradients flow through an edited value as if it had been computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Edit {
    /// One cell is this value. A cell of a parameter is edited before anything runs, for training too.
    Cell {
        /// Path of a parameter, an activation, a mask or ids.
        path: String,
        /// Index, one entry an axis of the whole tensor.
        at: Vec<usize>,
        /// A number, NaN and infinity included; an id; 1 (hidden) or 0 (visible) in a mask.
        value: f64,
        /// Run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    /// A head adds nothing: its part of `context` is 0.
    Head {
        /// Path of the attention, such as `encoder.0.self_attn`.
        attention: String,
        /// Which head, from 0.
        head: usize,
        /// Run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    /// A layer adds nothing: the outputs of its attentions and of its feed-forward network are 0, and its residuals
    /// pass on what comes in. The norms of a post-norm layer still act.
    Layer {
        /// Path of the layer, such as `encoder.0`.
        layer: String,
        /// Run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    /// A part of a layer alone: an attention or a feed-forward network adds nothing; a norm takes mean 0 and divides by
    /// 1, so that only its γ and β act.
    Block {
        /// Its path, such as `encoder.0.ffn`, `decoder.1.cross_attn`, `encoder.0.norm1`.
        block: String,
        /// Run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    /// Positions are not known: what is added for them is 0, and rotary positions rotate nothing.
    Positions {
        /// Of which side.
        side: Side,
        /// Run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    /// No other position attends to this one: its scores are −∞ (in linear attention, its key features are 0, for the
    /// position itself too).
    Position {
        /// Whose position.
        side: Side,
        /// Which position, from 0.
        at: usize,
        /// Run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
}

impl Edit {
    /// The run that it is for, where it is not for all.
    pub fn run(&self) -> Option<&str> {
        match self {
            Edit::Cell { run, .. }
            | Edit::Head { run, .. }
            | Edit::Layer { run, .. }
            | Edit::Block { run, .. }
            | Edit::Positions { run, .. }
            | Edit::Position { run, .. } => run.as_deref(),
        }
    }
}
