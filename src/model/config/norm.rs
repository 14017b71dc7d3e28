//! Settings of the norms of the residual stream.

use serde::{Deserialize, Serialize};

/// Normalisation of the residual stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// Whether LayerNorm has a β next to its γ.
    pub bias: bool,
    /// The factor is 1 + γ (Gemma).
    pub unit_offset: bool,
    /// Whether attention has a norm before it; where not, only the feed-forward network has (ModernBERT's first layer).
    pub on_attention: bool,
}

impl NormConfig {
    /// Whether there is a γ.
    pub fn has_gamma(&self) -> bool {
        self.affine && self.kind != NormKind::None
    }

    /// Whether there is a β.
    pub fn has_beta(&self) -> bool {
        self.affine && self.bias && self.kind == NormKind::LayerNorm
    }
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
            bias: true,
            unit_offset: false,
            on_attention: true,
        }
    }
}

/// Kind of normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum NormPosition {
    /// norm(x + f(x)).
    #[default]
    Post,
    /// x + f(norm(x)).
    Pre,
    /// x + norm(f(norm(x))), with two norms a sublayer (Gemma 2).
    Sandwich,
    /// x + norm(f(x)) (OLMo 2).
    Output,
    /// x + attention(norm(x)) + ffn(norm(x)), one norm for both (GPT-J, Phi, Cohere).
    Parallel,
    /// x + attention(norm1(x)) + ffn(norm2(x)) (GPT-NeoX).
    ParallelNorms,
}

impl NormPosition {
    /// Whether attention and feed-forward network read the same input.
    pub fn parallel(self) -> bool {
        matches!(self, NormPosition::Parallel | NormPosition::ParallelNorms)
    }
}

/// Where ε stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum EpsAt {
    /// √(σ² + ε).
    #[default]
    InsideRoot,
    /// √σ² + ε.
    BesideSigma,
}
