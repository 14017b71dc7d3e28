//! What a node is in its place: a [`Role`] is one part of its path, and says which quantity of a formula it is.
//!
//! [`Role`] lists the quantities that a reader knows by name; [`Step`] the small steps inside their
//! computation (a product before its bias, a row for broadcasting), which no plan, label or check asks about one by
//! one. Each prints as one part of a path, and every such text reads back as the same value.

use std::fmt;
use std::sync::Arc;

use strum::{EnumString, IntoStaticStr};

pub use super::step::Step;

/// A quantity. Shapes are those of the computation named in the comments.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// The place itself: what a scope has, and a node whose path is that of its scope. Prints as nothing.
    #[default]
    #[strum(disabled)]
    Whole,

    // Parameters.
    /// A matrix, or a table.
    Weight,
    /// Added after a product.
    Bias,
    /// γ of a norm.
    Gamma,
    /// β of a norm.
    Beta,
    /// The output projection of attention (its parameters).
    #[strum(serialize = "o")]
    OutputProjection,
    /// The first matrix of a feed-forward block.
    W1,
    /// Its second matrix.
    W2,
    /// The matrix of its gate.
    V1,

    // Attention.
    /// Queries, `[batch, head, token, d_k]`.
    #[strum(serialize = "q")]
    Query,
    /// Keys, `[batch, kv_head, token, d_k]`.
    #[strum(serialize = "k")]
    Key,
    /// Values, `[batch, kv_head, token, d_v]`.
    #[strum(serialize = "v")]
    Value,
    /// Queries after rotary positions.
    #[strum(serialize = "q_rotated")]
    QueryRotated,
    /// Keys after rotary positions.
    #[strum(serialize = "k_rotated")]
    KeyRotated,
    /// Keys of this call after those of the calls before.
    #[strum(serialize = "k_cache")]
    KeyCache,
    /// Values of this call after those of the calls before.
    #[strum(serialize = "v_cache")]
    ValueCache,
    /// φ(q) of linear attention.
    #[strum(serialize = "q_feature")]
    QueryFeature,
    /// φ(k) of linear attention.
    #[strum(serialize = "k_feature")]
    KeyFeature,
    /// q·kᵀ, `[batch, head, query, key]`.
    ScoresRaw,
    /// Scaled scores.
    Scores,
    /// Which scores are hidden.
    Mask,
    /// Zeros that a mask fills.
    MaskZero,
    /// What a mask adds to the scores.
    MaskBias,
    /// Scores after the mask.
    MaskedScores,
    /// Largest score of a row.
    Max,
    /// What a softmax subtracts.
    Shift,
    /// Scores after the shift.
    Shifted,
    /// exp of the shifted scores.
    Exp,
    /// Sum of a row.
    Sum,
    /// Attention weights.
    Weights,
    /// Attention weights after dropout.
    WeightsDropped,
    /// Weights · values, a head each.
    Context,
    /// Heads next to each other, `[batch, token, head, d_v]`.
    ConcatHeads,
    /// Heads joined, `[batch, token, in]`.
    Concat,
    /// The result of a block.
    Out,
    /// φ(k)ᵀ·v of linear attention.
    KeyValue,
    /// Σ φ(k) of linear attention.
    KeySum,
    /// φ(q)·(φ(k)ᵀ·v).
    Unnormalised,
    /// φ(q)·Σ φ(k).
    Normaliser,

    /// Norm of the queries.
    #[strum(serialize = "q_norm")]
    QueryNorm,
    /// Norm of the keys.
    #[strum(serialize = "k_norm")]
    KeyNorm,
    /// Down-projection of the queries in latent attention.
    #[strum(serialize = "q_a")]
    QueryDown,
    /// Its norm.
    #[strum(serialize = "q_a_norm")]
    QueryDownNorm,
    /// Up-projection of the queries.
    #[strum(serialize = "q_b")]
    QueryUp,
    /// Down-projection of keys and values.
    #[strum(serialize = "kv_a")]
    KeyValueDown,
    /// Its norm.
    #[strum(serialize = "kv_a_norm")]
    KeyValueDownNorm,
    /// Up-projection of keys and values.
    #[strum(serialize = "kv_b")]
    KeyValueUp,
    /// What keys and values are made of, `[batch, token, rank]`.
    #[strum(serialize = "kv_latent")]
    KeyValueLatent,
    /// Scores with what positions add.
    ScoresPositioned,
    /// Scores brought into an open interval around 0: c·tanh(scores/c).
    ScoresCapped,
    /// Scores divided by the cap.
    ScoresCappedRatio,
    /// The hyperbolic tangent of that.
    ScoresCappedTanh,
    /// Scores with a relative bias.
    ScoresBiased,
    /// Scores and the sink's.
    ScoresWithSink,
    /// Learned scores of sinks, one a head.
    Sinks,
    /// Relative positions, by bucket.
    Relative,

    // Norms.
    /// μ; of a loss, the loss itself.
    Mean,
    /// x − μ.
    Centred,
    /// Squares.
    Squared,
    /// Sum of squares.
    SquaredSum,
    /// σ².
    Var,
    /// Mean of the squares.
    MeanSquare,
    /// σ² + ε.
    VarEps,
    /// The root that a norm divides by.
    Root,
    /// σ.
    Sigma,
    /// x̂.
    Normalised,
    /// Multiplied by a factor: γ·x̂ in a norm, √d·x in an embedding, logits by temperature in sampling.
    Scaled,

    // Feed-forward.
    /// x·W₁.
    Hidden,
    /// The gate, x·V₁.
    Gate,
    /// The activation that a gate multiplies.
    Activated,
    /// After the activation (and the gate).
    Act,
    /// After dropout.
    ActDropped,
    /// Scores of the experts.
    Router,
    /// Parameters of all experts, `[expert, …]`.
    Experts,
    /// What each expert counts for.
    Gates,
    /// Experts that are chosen.
    Chosen,
    /// The expert that every token uses.
    Shared,
    /// The sum over the experts.
    Mixed,

    // Layers.
    /// The residual sum after sublayer n, counted from 1.
    #[strum(disabled)]
    Residual(u32),
    /// The output of sublayer n after dropout.
    #[strum(disabled)]
    SublayerDropped(u32),

    // Embeddings and positions.
    /// Token ids, or positions as ids.
    Ids,
    /// Rows of the table.
    Lookup,
    /// Ids of token types.
    TokenTypeIds,
    /// Rows of the token types' table.
    TokenTypes,
    /// Tokens and their types.
    Typed,
    /// Tokens and positions, where more follows.
    Summed,
    /// Positions, `[token, d_model]`.
    Positions,
    /// After dropout.
    Dropped,
    /// 0, 1, 2, …
    Position,
    /// base^(2i/width).
    Denominators,
    /// position/denominator.
    Angle,
    /// sin of the angles.
    Sin,
    /// cos of the angles.
    Cos,

    // Output and loss.
    /// Logits.
    Logits,
    /// Probabilities.
    Probs,
    /// The most probable token.
    Argmax,
    /// Its probability.
    PredictedProbs,
    /// Wanted tokens.
    Labels,
    /// Probabilities of the wanted tokens.
    TargetProbs,
    /// −ln of them.
    PerPosition,
    /// 1/count where a label counts.
    Share,
    /// 1 where a label counts.
    Counted,

    // Decoding.
    /// What a call reads.
    Tokens,
    /// The token that the known sentence goes on with.
    TargetId,
    /// Its probability.
    TargetProb,
    /// The chosen token.
    Id,
    /// Candidates from the most to the least probable.
    Order,
    /// The first of them.
    Kept,
    /// Their logits.
    KeptLogits,
    /// Their probabilities.
    KeptProbs,
    /// Running sum of probabilities.
    Cumulative,
    /// The same before a candidate.
    CumulativeBefore,
    /// The same of the kept ones.
    KeptCumulative,
    /// A random number.
    Drawn,
    /// Sum of the kept probabilities.
    Total,
    /// The drawn share of it.
    Threshold,
    /// Which candidate it falls on.
    Rank,
    /// ln of the probabilities.
    LogProbs,
    /// All continuations of all beams.
    Candidates,
    /// Scores of the kept beams.
    KeptScores,
    /// Which beam a beam comes from.
    Parents,
    /// The tokens of those beams.
    ParentTokens,
    /// The last token of each beam.
    Newest,
    /// Whether a beam has ended.
    Ended,
    /// What an ended beam hides.
    EndedHidden,
    /// What an ended beam closes.
    EndedClosed,
    /// Log-probabilities with ended beams set to 0.
    Free,
    /// Log-probabilities with closed continuations set to −∞.
    Open,

    // Optimisers.
    /// The learning rate.
    LearningRate,
    /// 1 − β₁ᵗ.
    BiasCorrection1,
    /// 1 − β₂ᵗ.
    BiasCorrection2,
    /// Learning rate times weight decay.
    DecayRate,
    /// Norm of all gradients together.
    GradientNorm,
    /// The factor that clips gradients.
    Clip,
    /// A clipped gradient.
    Clipped,
    /// What weight decay takes.
    Decay,
    /// A parameter after weight decay.
    Decayed,
    /// A gradient with weight decay added.
    DecayedGradient,
    /// First moment.
    #[strum(serialize = "m")]
    FirstMoment,
    /// First moment of the update before.
    #[strum(serialize = "m_before")]
    FirstMomentBefore,
    /// First moment, bias corrected.
    #[strum(serialize = "m_hat")]
    FirstMomentHat,
    /// Second moment. Prints as `v`, as values of attention do; a path of an update tells them apart.
    #[strum(disabled)]
    SecondMoment,
    /// Second moment of the update before.
    #[strum(serialize = "v_before")]
    SecondMomentBefore,
    /// Second moment, bias corrected.
    #[strum(serialize = "v_hat")]
    SecondMomentHat,
    /// Momentum.
    Velocity,
    /// Momentum of the update before.
    VelocityBefore,
    /// m̂/(√v̂ + ε).
    Direction,
    /// What an update takes off a parameter.
    #[strum(serialize = "step")]
    UpdateStep,
    /// A parameter after the update.
    New,

    /// A step inside the computation of a quantity.
    #[strum(disabled)]
    Step(Step),
    /// The second, third, … of the same name: `sum_2`.
    #[strum(disabled)]
    Again(Box<Role>, u32),
    /// A name that is not of this list: of a user's program, or of a recording.
    #[strum(disabled)]
    Other(Arc<str>),
}

impl Role {
    /// Reads one part of a path: every text is a role, those not listed [`Role::Other`].
    pub fn parse(text: &str) -> Self {
        if let Ok(role) = text.parse::<Role>() {
            return role;
        }
        if let Ok(step) = text.parse::<Step>() {
            return Role::Step(step);
        }
        let numbered = |start: &str, end: &str| number(text.strip_prefix(start)?.strip_suffix(end)?);
        if let Some(n) = numbered("residual", "") {
            return Role::Residual(n);
        }
        if let Some(n) = numbered("sublayer", "_dropped") {
            return Role::SublayerDropped(n);
        }
        if let Some((base, n)) = text.rsplit_once('_')
            && let Some(n) = number(n).filter(|n| *n > 1)
            && let base @ (Role::Step(_) | Role::Sum | Role::Order | Role::Argmax | Role::Gate) = Role::parse(base)
        {
            return Role::Again(Box::new(base), n);
        }
        Role::Other(text.into())
    }

    /// The role with this suffix to its text: `weights` and `_dropped` make [`Role::WeightsDropped`].
    #[must_use]
    pub fn suffixed(&self, suffix: &str) -> Self {
        Self::parse(&format!("{self}{suffix}"))
    }

    /// The `n`th of this name, counted from 1: the second prints as `sum_2`.
    #[must_use]
    pub fn again(&self, n: u32) -> Self {
        if n < 2 { self.clone() } else { Self::parse(&format!("{self}_{n}")) }
    }
}

impl From<Step> for Role {
    fn from(step: Step) -> Self {
        Role::Step(step)
    }
}

impl From<&Role> for Role {
    fn from(role: &Role) -> Self {
        role.clone()
    }
}

/// A positive number as it prints: no sign, no zeros before it.
pub(super) fn number(text: &str) -> Option<u32> {
    let n: u32 = text.parse().ok()?;
    (n.to_string() == text).then_some(n)
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Whole => Ok(()),
            Role::Residual(n) => write!(f, "residual{n}"),
            Role::SublayerDropped(n) => write!(f, "sublayer{n}_dropped"),
            Role::SecondMoment => f.write_str("v"),
            Role::Step(step) => f.write_str(step.into()),
            Role::Again(role, n) => write!(f, "{role}_{n}"),
            Role::Other(text) => f.write_str(text),
            role => f.write_str(role.into()),
        }
    }
}
