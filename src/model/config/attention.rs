//! Settings of attention.

use serde::{Deserialize, Serialize};

use super::{Algorithm, LatentConfig, Positions};

/// Attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AttentionConfig {
    /// Softmax of scaled products, or linear attention.
    pub kind: AttentionKind,
    /// What the products are divided by.
    pub scale: Scale,
    /// Bias of q, k and v.
    pub qkv_bias: bool,
    /// Bias of q alone, unless given as that of q, k and v.
    pub q_bias: Option<bool>,
    /// Bias of k alone, likewise.
    pub k_bias: Option<bool>,
    /// Bias of v alone, likewise.
    pub v_bias: Option<bool>,
    /// q, k and v are kept between −c and c (OLMo 1).
    pub clip_qkv: Option<f64>,
    /// Bias of the output projection.
    pub out_bias: bool,
    /// Whether there is an output projection W_O at all.
    pub out_projection: bool,
    /// Whether q, k and v are projections of the input; without them they are the input itself, cut into heads, or the
    /// scenario's `source: (qkv: …)`.
    pub projections: bool,
    /// Only positions with |i − j| < window are seen.
    pub window: Option<usize>,
    /// Positions after the current one are hidden. Decoders hide them unless told otherwise, encoders do not.
    pub causal: Option<bool>,
    /// What a masked score becomes.
    pub fill: MaskFillConfig,
    /// Whether the mask is added to the score or replaces it.
    pub mask_by: MaskBy,
    /// Whether a softmax subtracts the row's maximum.
    pub softmax: SoftmaxShift,
    /// Positions of these layers, instead of the model's: `Rotary`, `Alibi`, `Relative` or `None`.
    pub positions: Option<Positions>,
    /// Norms of queries and keys, of the layer's kind.
    pub qk_norm: QkNorm,
    /// Whether these norms have β; as the layer's norms unless given (StableLM: false).
    pub qk_norm_bias: Option<bool>,
    /// c·tanh(score/c), before the mask (Gemma 2).
    pub softcap: Option<f64>,
    /// A learned score of each head takes part in the softmax and reads nothing (gpt-oss).
    pub sinks: bool,
    /// Queries, keys and values from narrow latents (DeepSeek).
    pub latent: Option<LatentConfig>,
    /// How the softmax is computed: all at once, in tiles, or with a window in bands.
    pub algorithm: Algorithm,
}

/// Norms of queries and keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum QkNorm {
    /// None.
    #[default]
    None,
    /// Of each head, with one γ for all (Qwen3, Gemma 3).
    PerHead,
    /// Of each head, with a γ of its own (Cohere, StableLM).
    PerHeadOwn,
    /// Of all heads together (OLMo 2).
    Full,
}

impl AttentionConfig {
    /// Whether q, k and v have a bias.
    pub fn biases(&self) -> [bool; 3] {
        [self.q_bias, self.k_bias, self.v_bias].map(|b| b.unwrap_or(self.qkv_bias))
    }
}

impl Default for AttentionConfig {
    fn default() -> Self {
        Self {
            kind: AttentionKind::Softmax,
            scale: Scale::SqrtDk,
            qkv_bias: false,
            q_bias: None,
            k_bias: None,
            v_bias: None,
            clip_qkv: None,
            out_bias: false,
            out_projection: true,
            projections: true,
            window: None,
            causal: None,
            fill: MaskFillConfig::NegInfinity,
            mask_by: MaskBy::Replacing,
            softmax: SoftmaxShift::WhenNeeded,
            positions: None,
            qk_norm: QkNorm::None,
            qk_norm_bias: None,
            softcap: None,
            sinks: false,
            latent: None,
            algorithm: Algorithm::Plain,
        }
    }
}

/// Kind of attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum AttentionKind {
    /// softmax(QKᵀ/scale)·V.
    #[default]
    Softmax,
    /// φ(Q)·(φ(K)ᵀV) / (φ(Q)·Σφ(K)), φ(x) = elu(x) + 1.
    Linear,
}

/// What attention scores are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Scale {
    /// √d_k.
    #[default]
    SqrtDk,
    /// √d_model.
    SqrtDModel,
    /// 1: not scaled.
    None,
    /// Multiplied by this number.
    By(f64),
}

/// What a masked score becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum MaskFillConfig {
    /// −∞.
    #[default]
    NegInfinity,
    /// The most negative finite number of the type.
    TypeMinimum,
    /// This number, such as −1e9.
    Value(f64),
}

/// How a mask acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum MaskBy {
    /// The masked score is replaced.
    #[default]
    Replacing,
    /// The fill is added to the score.
    Adding,
}

/// Whether a softmax subtracts the row's maximum before exp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum SoftmaxShift {
    /// Only where exp would overflow (or all of a row would underflow).
    #[default]
    WhenNeeded,
    /// Always.
    Always,
    /// Never.
    Never,
}
