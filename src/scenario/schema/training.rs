//! What a training run minimises.

use serde::{Deserialize, Serialize};

/// What a training run minimises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Loss {
    /// −ln of the probability of each label, as `torch.nn.functional.cross_entropy`.
    CrossEntropy {
        /// How the positions are put together.
        #[serde(default)]
        reduction: Reduction,
        /// Share of the target that all classes have alike (label smoothing).
        #[serde(default)]
        smoothing: f64,
        /// Factor of each class; a mean divides by the factors of the labels.
        #[serde(default)]
        class_weights: Vec<f64>,
    },
    /// Squared differences of the output (logits; without a head, the last hidden states) from a target.
    SquaredError {
        /// What the output should be, `[sentence][token][width]`.
        target: Vec<Vec<Vec<f64>>>,
        /// How the squares are put together.
        #[serde(default)]
        reduction: SquaredReduction,
    },
    /// A given gradient of the output, `[sentence][token][width]`: the loss is the sum of output times gradient.
    Gradient(Vec<Vec<Vec<f64>>>),
}

impl Default for Loss {
    fn default() -> Self {
        Self::CrossEntropy { reduction: Reduction::Mean, smoothing: 0.0, class_weights: Vec::new() }
    }
}

/// How the losses of the positions are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Reduction {
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

/// How squared differences are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum SquaredReduction {
    /// Their mean over every number.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Half their sum.
    HalfSum,
}
