//! What a training run minimises, and how its parameters are updated.

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

/// How parameters are updated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Optimiser {
    /// Which.
    pub kind: OptimiserKind,
    /// Learning rate.
    pub lr: f64,
    /// Momentum, for SGD.
    pub momentum: f64,
    /// Weight decay: added to the gradient, or decoupled for AdamW.
    pub weight_decay: f64,
    /// β₁ and β₂, for Adam.
    pub betas: (f64, f64),
    /// ε, for Adam.
    pub eps: f64,
    /// Largest norm of all gradients together.
    pub clip: Option<f64>,
    /// Updates.
    pub steps: usize,
    /// Updates over which the learning rate rises to its value.
    pub warmup: usize,
    /// How it goes on.
    pub schedule: Schedule,
    /// Share of the learning rate that `Linear` and `Cosine` end with.
    pub floor: f64,
    /// Momentum that looks ahead (Nesterov), for SGD.
    pub nesterov: bool,
    /// Adam divides by the largest v so far (AMSGrad).
    pub amsgrad: bool,
    /// Adam divides m and v by 1 − βᵗ; BERT's own optimiser does not.
    pub bias_correction: bool,
    /// Batches whose gradients are averaged for an update (gradient accumulation); `train --batch` says how large they are.
    pub accumulate: usize,
    /// Parameters with settings of their own, such as no decay on norms and biases; the first that fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<ParameterGroup>,
}

impl Default for Optimiser {
    fn default() -> Self {
        Self {
            kind: OptimiserKind::Sgd,
            lr: 0.1,
            momentum: 0.0,
            weight_decay: 0.0,
            betas: (0.9, 0.999),
            eps: 1e-8,
            clip: None,
            steps: 100,
            warmup: 0,
            schedule: Schedule::Constant,
            floor: 0.0,
            nesterov: false,
            amsgrad: false,
            bias_correction: true,
            accumulate: 1,
            groups: Vec::new(),
        }
    }
}

/// Settings of the parameters that a pattern fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ParameterGroup {
    /// Glob over parameter paths, such as `*.bias`.
    pub paths: String,
    /// Factor of the learning rate.
    #[serde(default = "one")]
    pub rate: f64,
    /// Weight decay, where it is not that of the others.
    #[serde(default)]
    pub weight_decay: Option<f64>,
}

/// Kind of optimiser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum OptimiserKind {
    /// w − lr·g, with momentum where there is any.
    #[default]
    Sgd,
    /// Kingma and Ba 2015.
    Adam,
    /// Loshchilov and Hutter 2019.
    AdamW,
}

/// Course of the learning rate after warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Schedule {
    /// It stays.
    #[default]
    Constant,
    /// It falls to 0 along a line.
    Linear,
    /// It falls to 0 along half a cosine.
    Cosine,
    /// It falls with one over the root of the update's number.
    InverseSqrt,
}

fn one() -> f64 {
    1.0
}
