//! Runs: what is computed, from what, and what a run changes of the scenario.

use serde::{Deserialize, Serialize};

use super::{Input, Labels, Loss, Optimiser};
use crate::model::config::ModelConfig;
use crate::scenario::lint::Lint;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Run {
    /// Teacher-forced, with a loss where there are labels; then the optimiser.
    Training {
        /// Name.
        #[serde(default = "training")]
        name: String,
        /// Optimiser.
        #[serde(default)]
        optimiser: Optimiser,
        /// What it minimises.
        #[serde(default)]
        loss: Loss,
        /// What it changes of the scenario.
        #[serde(default)]
        with: Box<Changes>,
    },
    /// Token by token.
    Inference {
        /// Name.
        #[serde(default = "inference")]
        name: String,
        /// What is generated from what.
        decode: Decode,
        /// Whether keys and values are kept.
        #[serde(default)]
        kv_cache: bool,
        /// What it changes of the scenario.
        #[serde(default)]
        with: Box<Changes>,
    },
    /// Teacher-forced without dropout and without a loss: the encoder, the decoder, or both.
    Forward {
        /// Name.
        #[serde(default = "forward")]
        name: String,
        /// What it changes of the scenario.
        #[serde(default)]
        with: Box<Changes>,
    },
    /// The encoder only.
    Encode {
        /// Name.
        #[serde(default = "encode")]
        name: String,
        /// What it changes of the scenario.
        #[serde(default)]
        with: Box<Changes>,
    },
}

/// What a run changes: other sequences through the same model, or the same sequences through another model that
/// shares the scenario's parameters by path. What is not given is as in the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Changes {
    /// The whole model.
    pub model: Option<ModelConfig>,
    /// What the encoder reads.
    pub source: Option<Input>,
    /// What the decoder reads in training.
    pub target: Option<Input>,
    /// What each target position must predict.
    pub labels: Option<Labels>,
    /// Lints that are allowed in this run, besides those of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Lint>,
}

fn training() -> String {
    "training".to_owned()
}

fn inference() -> String {
    "inference".to_owned()
}

fn forward() -> String {
    "forward".to_owned()
}

fn encode() -> String {
    "encode".to_owned()
}

impl Run {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Run::Training { name, .. }
            | Run::Inference { name, .. }
            | Run::Forward { name, .. }
            | Run::Encode { name, .. } => name,
        }
    }

    /// What it changes of the scenario.
    pub fn with(&self) -> &Changes {
        match self {
            Run::Training { with, .. }
            | Run::Inference { with, .. }
            | Run::Forward { with, .. }
            | Run::Encode { with, .. } => with,
        }
    }
}

impl Run {
    /// What it changes of the scenario.
    pub fn with_mut(&mut self) -> &mut Changes {
        match self {
            Run::Training { with, .. }
            | Run::Inference { with, .. }
            | Run::Forward { with, .. }
            | Run::Encode { with, .. } => with,
        }
    }
}

/// What is generated from what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Decode {
    /// One call a prefix, whatever was predicted.
    Forced(Vec<Prefix>),
    /// The most probable token each time. Where the vocabulary has `<eos>`, the call that chooses it is the last.
    Greedy {
        /// First tokens.
        from: Prefix,
        /// Most new tokens.
        max_new: usize,
    },
    /// Drawn. `<eos>` ends it too.
    Sample {
        /// First tokens.
        from: Prefix,
        /// Most new tokens.
        max_new: usize,
        /// Logits are divided by this.
        #[serde(default = "one")]
        temperature: f64,
        /// Only so many most probable tokens.
        #[serde(default)]
        top_k: Option<usize>,
        /// Only the most probable tokens that together reach this probability.
        #[serde(default)]
        top_p: Option<f64>,
        /// Only tokens at least this share as probable as the most probable one.
        #[serde(default)]
        min_p: Option<f64>,
        /// Logits of tokens that are there already are divided by this where positive, else multiplied (Keskar et al.
        /// 2019); 1 for none.
        #[serde(default = "one")]
        repetition_penalty: f64,
        /// Seed.
        #[serde(default)]
        seed: u64,
    },
    /// Several prompts at once, each going on with its most probable token. Shorter ones are padded before them, and the
    /// padding is hidden and has no position: each is decoded as it would be alone. The call with which all have ended
    /// is the last.
    Batch {
        /// The prompts.
        from: Vec<Prefix>,
        /// Most new tokens.
        max_new: usize,
    },
    /// Beam search. The call with which all beams have ended is the last.
    Beam {
        /// First tokens.
        from: Prefix,
        /// Most new tokens.
        max_new: usize,
        /// Beams.
        beams: usize,
        /// Candidates are ranked by the sum of their logarithms over length^this, where the length counts new tokens up
        /// to the end token; 0: by the sum alone, which favours short ones.
        #[serde(default, skip_serializing_if = "is_zero")]
        length_penalty: f64,
    },
}

// Serde asks by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

fn one() -> f64 {
    1.0
}

/// First tokens of a decoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Prefix {
    /// As text.
    Text(String),
    /// As ids.
    Ids(Vec<i64>),
}
