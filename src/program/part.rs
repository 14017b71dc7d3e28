//! Which part of a model's computation a role belongs to, decided for every [`Role`]: a new one does not compile
//! until it has its part, and with it what labels, lints and plans make of it.

use super::name::{Block, Name, Site};
use super::role::{Role, Step};

/// A part of the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The result of a block, or the place itself.
    Block,
    /// Parameters of a block.
    Parameter,
    /// Queries of an attention, projected, rotated, mapped.
    Queries,
    /// Keys or values of an attention, or what they are projected from: one row for each token that is read.
    Keys,
    /// A norm of queries.
    QueryNorm,
    /// A norm of keys, or of what keys and values are made of.
    KeyNorm,
    /// Queries in the shape in which a grouped product reads them.
    QueriesOfScores,
    /// Keys in that shape.
    KeysOfScores,
    /// Scores before the softmax, where a mask may still hide a key.
    Scores,
    /// Which scores are hidden, and how.
    Mask,
    /// What a softmax makes of the scores, up to the weights.
    Softmax,
    /// Weights · values, and the sums that linear attention has instead.
    Context,
    /// Steps of a norm.
    Norm,
    /// Steps of a feed-forward block, its experts included.
    FeedForward,
    /// The residual stream between sublayers.
    Residual,
    /// Tokens, their types and positions, before the first layer.
    Embedding,
    /// Sines and cosines of positions.
    Position,
    /// Logits, probabilities, the loss.
    Output,
    /// The choice of the next token.
    Decoding,
    /// An update of the parameters.
    Optimiser,
    /// Arithmetic on the way to another quantity.
    Arithmetic,
    /// A name that is not of the list of roles.
    Unlisted,
}

impl Role {
    /// The part of the computation that it belongs to.
    pub fn part(&self) -> Part {
        use Role as R;
        match self {
            R::Whole | R::Out | R::Concat | R::ConcatHeads => Part::Block,
            R::Weight
            | R::Bias
            | R::Gamma
            | R::Beta
            | R::OutputProjection
            | R::W1
            | R::W2
            | R::V1
            | R::Sinks
            | R::Relative
            | R::Experts => Part::Parameter,
            R::Query | R::QueryRotated | R::QueryFeature | R::QueryDown | R::QueryUp => Part::Queries,
            R::Key
            | R::Value
            | R::KeyRotated
            | R::KeyCache
            | R::ValueCache
            | R::KeyFeature
            | R::KeyValueDown
            | R::KeyValueUp
            | R::KeyValueLatent => Part::Keys,
            R::QueryNorm | R::QueryDownNorm => Part::QueryNorm,
            R::KeyNorm | R::KeyValueDownNorm => Part::KeyNorm,
            R::ScoresRaw
            | R::Scores
            | R::MaskedScores
            | R::Shifted
            | R::ScoresPositioned
            | R::ScoresCapped
            | R::ScoresCappedRatio
            | R::ScoresCappedTanh
            | R::ScoresBiased
            | R::ScoresWithSink => Part::Scores,
            R::Mask | R::MaskZero | R::MaskBias => Part::Mask,
            R::Max | R::Shift | R::Exp | R::Sum | R::Weights | R::WeightsDropped => Part::Softmax,
            R::Context | R::KeyValue | R::KeySum | R::Unnormalised | R::Normaliser => Part::Context,
            R::Mean
            | R::Centred
            | R::Squared
            | R::SquaredSum
            | R::Var
            | R::MeanSquare
            | R::VarEps
            | R::Root
            | R::Sigma
            | R::Normalised
            | R::Scaled => Part::Norm,
            R::Hidden
            | R::Gate
            | R::Activated
            | R::Act
            | R::ActDropped
            | R::Router
            | R::Gates
            | R::Chosen
            | R::Shared
            | R::Mixed => Part::FeedForward,
            R::Residual(_) | R::SublayerDropped(_) => Part::Residual,
            R::Ids | R::Lookup | R::TokenTypeIds | R::TokenTypes | R::Typed | R::Summed | R::Positions | R::Dropped => {
                Part::Embedding
            }
            R::Position | R::Denominators | R::Angle | R::Sin | R::Cos => Part::Position,
            R::Logits
            | R::Probs
            | R::Argmax
            | R::PredictedProbs
            | R::Labels
            | R::TargetProbs
            | R::PerPosition
            | R::Share
            | R::Counted => Part::Output,
            R::Tokens
            | R::TargetId
            | R::TargetProb
            | R::Id
            | R::Order
            | R::Kept
            | R::KeptLogits
            | R::KeptProbs
            | R::Cumulative
            | R::CumulativeBefore
            | R::KeptCumulative
            | R::Drawn
            | R::Total
            | R::Threshold
            | R::Rank
            | R::LogProbs
            | R::Candidates
            | R::KeptScores
            | R::Parents
            | R::ParentTokens
            | R::Newest
            | R::Ended
            | R::EndedHidden
            | R::EndedClosed
            | R::Free
            | R::Open => Part::Decoding,
            R::LearningRate
            | R::BiasCorrection1
            | R::BiasCorrection2
            | R::DecayRate
            | R::GradientNorm
            | R::Clip
            | R::Clipped
            | R::Decay
            | R::Decayed
            | R::DecayedGradient
            | R::FirstMoment
            | R::FirstMomentBefore
            | R::FirstMomentHat
            | R::SecondMoment
            | R::SecondMomentBefore
            | R::SecondMomentHat
            | R::Velocity
            | R::VelocityBefore
            | R::Direction
            | R::UpdateStep
            | R::New => Part::Optimiser,
            R::Step(step) => step.part(),
            R::Again(role, _) => role.part(),
            R::Other(_) => Part::Unlisted,
        }
    }

    /// Whether it holds keys or values, or what they were reshaped to: its rows are those of the sequence that is read.
    pub fn of_keys(&self) -> bool {
        matches!(self.part(), Part::Keys | Part::KeyNorm | Part::KeysOfScores)
    }

    /// Whether it holds scores that a mask may still hide, or steps on the way to them.
    pub fn is_score(&self) -> bool {
        matches!(self.part(), Part::Scores | Part::QueriesOfScores | Part::KeysOfScores)
    }

    /// Whether it is a norm inside a block.
    pub fn is_norm(&self) -> bool {
        matches!(self.part(), Part::QueryNorm | Part::KeyNorm)
    }
}

/// What a tensor of the residual stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStream {
    /// The embedding that enters the first layer; scaled, its positions not added yet.
    Scaled,
    /// The same after all that is added.
    Embedding,
    /// The same after its norm.
    EmbeddingNorm,
    /// What a sublayer adds.
    Added,
    /// The sum after sublayer n, counted from 1.
    Residual(u32),
    /// The output of the norm of sublayer n, before or after it.
    Norm(u32),
    /// The output of the norm after the last layer.
    FinalNorm,
}

impl Name {
    /// What of the residual stream it is, of the forward pass: decided for every [`Site`] and [`Block`].
    pub fn on_stream(&self) -> Option<OnStream> {
        if self.is_derived() || !self.inner.is_empty() {
            return None;
        }
        let out = |what: OnStream| (self.role == Role::Out).then_some(what);
        match (self.site, &self.role) {
            (Site::Embedding(Some(_)), Role::Scaled) => Some(OnStream::Scaled),
            (Site::Embedding(Some(_)), _) => out(OnStream::Embedding),
            (Site::EmbeddingNorm(_), _) => out(OnStream::EmbeddingNorm),
            (Site::Layer(_, _, Block::Layer), Role::Residual(n)) => Some(OnStream::Residual(*n)),
            (Site::Layer(_, _, Block::SelfAttention | Block::CrossAttention | Block::FeedForward), _) => {
                out(OnStream::Added)
            }
            (Site::Layer(_, _, Block::Norm(n) | Block::PostNorm(n)), _) => out(OnStream::Norm(n)),
            (Site::FinalNorm(_), _) => out(OnStream::FinalNorm),
            (
                Site::Layer(_, _, Block::Layer)
                | Site::Root
                | Site::Vocabulary
                | Site::Embedding(None)
                | Site::Stack(_)
                | Site::Rotary(_)
                | Site::Output
                | Site::Pooler
                | Site::Classifier
                | Site::Loss
                | Site::Beam
                | Site::Next
                | Site::Cache(_),
                _,
            ) => None,
        }
    }
}

impl Step {
    /// The part of the computation that it belongs to, where it is a shape or a row of one quantity.
    fn part(self) -> Part {
        use Step as S;
        match self {
            S::ScoresRawLeft => Part::QueriesOfScores,
            S::ScoresRawRight => Part::KeysOfScores,
            S::ScoresRawGrouped => Part::Scores,
            S::ContextRight | S::UnnormalisedRight | S::NormaliserRight => Part::Keys,
            S::ContextLeft
            | S::ContextGrouped
            | S::UnnormalisedLeft
            | S::UnnormalisedGrouped
            | S::NormaliserLeft
            | S::NormaliserGrouped => Part::Context,
            S::MaskBiasRow | S::MaskedScoresMask => Part::Mask,
            // By the definition of `Step`, the others are arithmetic on the way to a quantity.
            _ => Part::Arithmetic,
        }
    }
}
