//! Configuration of a model: plain data, as a scenario file writes it.
//!
//! Global settings hold for all layers; a layer group may override them. Every choice that two Transformer
//! implementations make differently is one field here, and each alternative builds a visibly different program.

mod attention;
mod norm;

use serde::{Deserialize, Serialize};

pub use self::attention::{AttentionConfig, AttentionKind, MaskBy, MaskFillConfig, QkNorm, Scale, SoftmaxShift};
pub use self::norm::{EpsAt, NormConfig, NormKind, NormPosition};
pub use super::heads::{ClassifierConfig, ClassifierInput, HeadTransform, PoolerConfig};
pub use super::latent::LatentConfig;
pub use super::moe::{ExpertsConfig, RouterScores};
use super::own::{AttentionOverrides, FfnOverrides, NormOverrides};
pub use super::positions::RotaryScaling;
pub use super::tiled::Algorithm;

/// A whole model. `encoder` alone, `decoder` alone, or both (then the decoder may attend to the encoder).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// What a sublayer gives is multiplied by this before it is added to the residual stream (Granite).
    #[serde(default = "one")]
    pub residual_multiplier: f64,
    /// Output head.
    #[serde(default)]
    pub output: OutputConfig,
    /// A dense layer on the first token of the last hidden states (BERT).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<PoolerConfig>,
    /// A head with classes of its own, next to the output head or instead of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier: Option<ClassifierConfig>,
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// Multiply by this (Granite).
    pub multiplier: f64,
    /// Width of the tables where it is not d_model; a projection follows (ALBERT, ELECTRA, OPT).
    pub width: Option<usize>,
    /// Where that projection is.
    pub project: ProjectAt,
    /// Whether that projection has a bias.
    pub project_bias: bool,
}

/// Where an embedding narrower or wider than the model is projected to d_model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ProjectAt {
    /// After positions, types and norm, which are as wide as the tables (ALBERT, ELECTRA).
    #[default]
    AfterNorm,
    /// Right after the lookup (OPT).
    AfterLookup,
}

impl Default for EmbeddingConfig {
    fn default() -> Self {
        Self {
            shared: true,
            scale: false,
            token_types: 0,
            norm: false,
            multiplier: 1.0,
            width: None,
            project: ProjectAt::AfterNorm,
            project_bias: false,
        }
    }
}

/// How positions enter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Positions {
    /// Not at all; `Absent` where a layer's own setting is written, since `None` there means that it has none.
    #[default]
    #[serde(alias = "Absent")]
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
        /// Row of the first token (OPT, BART: 2).
        #[serde(default)]
        offset: usize,
        /// Padding does not count: it has row `offset - 1`, and the tokens after it go on from those before (RoBERTa).
        #[serde(default)]
        skip_padding: bool,
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
        /// How wavelengths are stretched for longer texts.
        #[serde(default)]
        scaling: RotaryScaling,
    },
    /// −slope·|query − key| is added to the scores, a slope for each head (Press et al. 2022).
    Alibi {
        /// The sum is scaled, not only the scores (Falcon).
        #[serde(default)]
        scaled: bool,
    },
    /// A learned number for each range of distances and each head is added to the scores (T5).
    Relative {
        /// Ranges.
        #[serde(default = "thirty_two")]
        buckets: usize,
        /// Distances from here on share a range.
        #[serde(default = "hundred_twenty_eight")]
        max_distance: usize,
        /// All layers of a stack have one table.
        #[serde(default = "yes")]
        shared: bool,
    },
}

fn ten_thousand() -> f64 {
    10_000.0
}

fn thirty_two() -> usize {
    32
}

fn hundred_twenty_eight() -> usize {
    128
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}

fn halves() -> PairLayout {
    PairLayout::Halves
}

/// How pairs are laid out in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum PairLayout {
    /// (0, 1), (2, 3), …
    #[default]
    Interleaved,
    /// (0, d/2), (1, d/2 + 1), …
    Halves,
}

/// Feed-forward network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FfnConfig {
    /// Activation.
    pub activation: Activation,
    /// act(x·W1)·(x·V1) instead of act(x·W1).
    pub gated: bool,
    /// Biases.
    pub bias: bool,
    /// Bias of W1 alone, unless given as `bias`.
    pub w1_bias: Option<bool>,
    /// Bias of V1 alone, likewise.
    pub v1_bias: Option<bool>,
    /// Bias of W2 alone, likewise.
    pub w2_bias: Option<bool>,
    /// Before they meet, x·W1 is kept below c, and x·V1 between −c and c (gpt-oss).
    pub clamp: Option<f64>,
    /// Added to x·V1 before the product: act(x·W1)·(x·V1 + offset) (gpt-oss: 1).
    pub linear_offset: f64,
    /// Many such networks, of which each token goes through a few.
    pub experts: Option<ExpertsConfig>,
}

impl FfnConfig {
    /// Whether W1, V1 and W2 have a bias.
    pub fn biases(&self) -> [bool; 3] {
        [self.w1_bias, self.v1_bias, self.w2_bias].map(|b| b.unwrap_or(self.bias))
    }
}

impl Default for FfnConfig {
    fn default() -> Self {
        Self {
            activation: Activation::Relu,
            gated: false,
            bias: false,
            w1_bias: None,
            v1_bias: None,
            w2_bias: None,
            clamp: None,
            linear_offset: 0.0,
            experts: None,
        }
    }
}

/// Activation function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// tanh(x).
    Tanh,
    /// max(0, x)².
    ReluSquared,
    /// x·sigmoid(1.702·x).
    QuickGelu,
}

/// Output head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// The head is the embedding table.
    pub tied: bool,
    /// Bias.
    pub bias: bool,
    /// There is no head (encoders that end in hidden states).
    pub none: bool,
    /// The hidden states are multiplied by this first (T5: 1/√d_model).
    pub hidden_multiplier: f64,
    /// Between the hidden states and the head (masked language models; OPT's projection).
    pub transform: Option<HeadTransform>,
    /// The logits are multiplied by this (Cohere, Granite).
    pub multiplier: f64,
    /// c·tanh(logits/c) (Gemma 2).
    pub softcap: Option<f64>,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self {
            tied: false,
            bias: false,
            none: false,
            hidden_multiplier: 1.0,
            transform: None,
            multiplier: 1.0,
            softcap: None,
        }
    }
}

/// Dropout rates, in training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StackConfig {
    /// Groups of equal layers, in order.
    pub layers: Vec<LayerConfig>,
    /// A norm after the last layer.
    #[serde(default)]
    pub final_norm: bool,
    /// Neighbouring layers share their weights, so that there are this many sets (ALBERT: 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_groups: Option<usize>,
    /// Layers of a set, which run one after another before the set is used again; 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_group_layers: Option<usize>,
}

/// A group of equal layers; what is not given is as in the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// Whether the layer has self-attention.
    pub has_attention: bool,
    /// Whether a sublayer's input is added to its output.
    pub residual: bool,
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
            has_attention: true,
            residual: true,
        }
    }
}
