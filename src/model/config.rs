//! Configuration of a model: plain data, as a scenario file writes it.
//!
//! Global settings hold for all layers; a layer group may override them. Every choice that two Transformer
//! implementations make differently is one field here, and each alternative builds a visibly different program.

use serde::{Deserialize, Serialize};

use super::own::{AttentionOverrides, FfnOverrides, NormOverrides};

/// A whole model. `encoder` alone, `decoder` alone, or both (then the decoder may attend to the encoder).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Width of the residual stream.
    pub d_model: usize,
    /// Attention heads (query heads).
    pub heads: usize,
    /// Key/value heads; `heads` unless given (fewer: grouped-query attention; 1: multi-query).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<usize>,
    /// Width of a query or key of one head; `d_model / heads` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_k: Option<usize>,
    /// Width of a value of one head; `d_k` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_v: Option<usize>,
    /// Width inside the feed-forward network.
    pub d_ff: usize,
    /// Embedding.
    #[serde(default)]
    pub embedding: EmbeddingConfig,
    /// Positions.
    #[serde(default)]
    pub positions: Positions,
    /// Normalisation.
    #[serde(default)]
    pub norm: NormConfig,
    /// Attention.
    #[serde(default)]
    pub attention: AttentionConfig,
    /// Feed-forward network.
    #[serde(default)]
    pub ffn: FfnConfig,
    /// Output head.
    #[serde(default)]
    pub output: OutputConfig,
    /// Dropout, in training only.
    #[serde(default)]
    pub dropout: DropoutConfig,
    /// Encoder layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<StackConfig>,
    /// Decoder layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoder: Option<StackConfig>,
}

/// Token embedding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingConfig {
    /// One table for source and target (`embed.weight`) instead of two.
    pub shared: bool,
    /// Multiply by √d_model.
    pub scale: bool,
    /// Number of token types (0: none), a learned table added to the embedding.
    pub token_types: usize,
    /// Normalise the embedding (BERT).
    pub norm: bool,
}

impl Default for EmbeddingConfig {
    fn default() -> Self {
        Self { shared: true, scale: false, token_types: 0, norm: false }
    }
}

/// How positions enter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Positions {
    /// Not at all.
    #[default]
    None,
    /// sin/cos of position / base^(2i/d_model), added to the embedding.
    Sinusoidal {
        /// Where sines and cosines stand.
        #[serde(default)]
        layout: PairLayout,
        /// Base of the wavelengths.
        #[serde(default = "ten_thousand")]
        base: f64,
    },
    /// A learned table of `max_len` rows, added to the embedding.
    Learned {
        /// Rows of the table.
        max_len: usize,
    },
    /// Queries and keys are rotated by position.
    Rotary {
        /// Which two components rotate together.
        #[serde(default = "halves")]
        layout: PairLayout,
        /// Base of the wavelengths.
        #[serde(default = "ten_thousand")]
        base: f64,
        /// Only the first so many components of a head rotate; all unless given.
        #[serde(default)]
        dim: Option<usize>,
    },
}

fn ten_thousand() -> f64 {
    10_000.0
}

fn halves() -> PairLayout {
    PairLayout::Halves
}

/// How pairs are laid out in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PairLayout {
    /// (0, 1), (2, 3), …
    #[default]
    Interleaved,
    /// (0, d/2), (1, d/2 + 1), …
    Halves,
}

/// Normalisation of the residual stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NormConfig {
    /// Which.
    pub kind: NormKind,
    /// Before or after the sublayer.
    pub position: NormPosition,
    /// ε.
    pub eps: f64,
    /// Where ε is added.
    pub eps_at: EpsAt,
    /// Learned γ (and β, for LayerNorm).
    pub affine: bool,
    /// Divide the variance by n − 1 instead of n.
    pub unbiased: bool,
}

impl Default for NormConfig {
    fn default() -> Self {
        Self {
            kind: NormKind::LayerNorm,
            position: NormPosition::Post,
            eps: 1e-5,
            eps_at: EpsAt::InsideRoot,
            affine: true,
            unbiased: false,
        }
    }
}

/// Kind of normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NormKind {
    /// (x − μ)/σ.
    #[default]
    LayerNorm,
    /// x / root of the mean square.
    RmsNorm,
    /// None.
    None,
}

/// Where the norm of a sublayer stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NormPosition {
    /// norm(x + f(x)).
    #[default]
    Post,
    /// x + f(norm(x)).
    Pre,
}

/// Where ε stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EpsAt {
    /// √(σ² + ε).
    #[default]
    InsideRoot,
    /// √σ² + ε.
    BesideSigma,
}

/// Attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionConfig {
    /// Softmax of scaled products, or linear attention.
    pub kind: AttentionKind,
    /// What the products are divided by.
    pub scale: Scale,
    /// Bias of q, k and v.
    pub qkv_bias: bool,
    /// Bias of the output projection.
    pub out_bias: bool,
    /// Whether there is an output projection W_O at all.
    pub out_projection: bool,
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
}

impl Default for AttentionConfig {
    fn default() -> Self {
        Self {
            kind: AttentionKind::Softmax,
            scale: Scale::SqrtDk,
            qkv_bias: false,
            out_bias: false,
            out_projection: true,
            window: None,
            causal: None,
            fill: MaskFillConfig::NegInfinity,
            mask_by: MaskBy::Replacing,
            softmax: SoftmaxShift::WhenNeeded,
        }
    }
}

/// Kind of attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttentionKind {
    /// softmax(QKᵀ/scale)·V.
    #[default]
    Softmax,
    /// φ(Q)·(φ(K)ᵀV) / (φ(Q)·Σφ(K)), φ(x) = elu(x) + 1.
    Linear,
}

/// What attention scores are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
pub enum MaskBy {
    /// The masked score is replaced.
    #[default]
    Replacing,
    /// The fill is added to the score.
    Adding,
}

/// Whether a softmax subtracts the row's maximum before exp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SoftmaxShift {
    /// Only where exp would overflow (or all of a row would underflow).
    #[default]
    WhenNeeded,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Feed-forward network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FfnConfig {
    /// Activation.
    pub activation: Activation,
    /// act(x·W1)·(x·V1) instead of act(x·W1).
    pub gated: bool,
    /// Biases.
    pub bias: bool,
}

impl Default for FfnConfig {
    fn default() -> Self {
        Self { activation: Activation::Relu, gated: false, bias: false }
    }
}

/// Activation function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activation {
    /// max(0, x).
    #[default]
    Relu,
    /// x·½(1 + erf(x/√2)).
    Gelu,
    /// The tanh approximation of GELU.
    GeluTanh,
    /// x·sigmoid(x).
    Silu,
    /// sigmoid(x) (with `gated`: GLU).
    Sigmoid,
}

/// Output head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// The head is the embedding table.
    pub tied: bool,
    /// Bias.
    pub bias: bool,
    /// There is no head (encoders that end in hidden states).
    pub none: bool,
}

/// Dropout rates, in training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DropoutConfig {
    /// After the embedding.
    pub embedding: f64,
    /// On attention weights.
    pub attention: f64,
    /// On the output of a sublayer, before the residual.
    pub sublayer: f64,
    /// Inside the feed-forward network, after the activation.
    pub ffn: f64,
    /// Seed of the masks.
    pub seed: u64,
}

/// A stack of layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackConfig {
    /// Groups of equal layers, in order.
    pub layers: Vec<LayerConfig>,
    /// A norm after the last layer.
    #[serde(default)]
    pub final_norm: bool,
}

/// A group of equal layers; what is not given is as in the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LayerConfig {
    /// How many such layers.
    pub repeat: usize,
    /// Whether a decoder layer attends to the encoder; yes unless told otherwise, where there is an encoder.
    pub cross_attention: Option<bool>,
    /// Attention heads.
    pub heads: Option<usize>,
    /// Key/value heads.
    pub kv_heads: Option<usize>,
    /// Width of a query or key.
    pub d_k: Option<usize>,
    /// Width of a value.
    pub d_v: Option<usize>,
    /// Width inside the feed-forward network.
    pub d_ff: Option<usize>,
    /// Normalisation; each of its settings that is not given is as in the model.
    pub norm: Option<NormOverrides>,
    /// Attention, likewise.
    pub attention: Option<AttentionOverrides>,
    /// Feed-forward network, likewise.
    pub ffn: Option<FfnOverrides>,
    /// Whether the layer has a feed-forward network.
    pub has_ffn: bool,
}

impl Default for LayerConfig {
    fn default() -> Self {
        Self {
            repeat: 1,
            cross_attention: None,
            heads: None,
            kv_heads: None,
            d_k: None,
            d_v: None,
            d_ff: None,
            norm: None,
            attention: None,
            ffn: None,
            has_ffn: true,
        }
    }
}
