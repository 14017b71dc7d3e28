//! Names of the lints: what `check` looks for. A scenario may allow some of them, so their names belong to its format;
//! what they look at is `debug::lints`.

use serde::{Deserialize, Serialize};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing need be wrong.
    Info,
    /// Most probably wrong; some models mean it so.
    Warning,
    /// Wrong.
    Error,
}

impl Severity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

macro_rules! lints {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $what:literal;)*) => {
        /// A lint. Its name in files and reports is stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::VariantArray)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub enum Lint {
            $($(#[$doc])* #[serde(rename = $id)] $variant,)*
        }

        impl Lint {
            /// All of them.
            pub const ALL: &'static [Lint] = <Self as strum::VariantArray>::VARIANTS;

            /// Its stable name.
            pub fn id(self) -> &'static str {
                match self {
                    $(Lint::$variant => $id,)*
                }
            }

            /// Catalogue key of what it found.
            pub fn key(self) -> &'static str {
                match self {
                    $(Lint::$variant => $what,)*
                }
            }

            /// Catalogue key of why that matters.
            pub fn why(self) -> &'static str {
                match self {
                    $(Lint::$variant => concat!($what, ".why"),)*
                }
            }

            /// Catalogue key of how it is mended.
            pub fn mend(self) -> &'static str {
                match self {
                    $(Lint::$variant => concat!($what, ".mend"),)*
                }
            }
        }
    };
}

lints! {
    /// A row of attention weights, or of probabilities, does not sum to 1.
    SoftmaxRowSum = "softmax_row_sum", "lint.softmax_row_sum";
    /// A cell that the mask hides has weight.
    MaskedWeight = "masked_weight", "lint.masked_weight";
    /// A query sees no key at all.
    FullyMaskedRow = "fully_masked_row", "lint.fully_masked_row";
    /// A mask acts on the weights instead of the scores.
    MaskAfterSoftmax = "mask_after_softmax", "lint.mask_after_softmax";
    /// A mask hides a key for no reason that holds there.
    MaskTooStrict = "mask_too_strict", "lint.mask_too_strict";
    /// A query of the decoder looks at a later key.
    FutureAttention = "future_attention", "lint.future_attention";
    /// Changing a later token changes an earlier row.
    FutureLeak = "future_leak", "lint.future_leak";
    /// A real query looks at padding.
    PaddingAttention = "padding_attention", "lint.padding_attention";
    /// Changing what stands in padding changes a real row.
    PaddingLeak = "padding_leak", "lint.padding_leak";
    /// Scores are not scaled by 1/√`d_k` of their own queries.
    AttentionScale = "attention_scale", "lint.attention_scale";
    /// Nearly all rows of an attention look at one key only.
    SaturatedSoftmax = "saturated_softmax", "lint.saturated_softmax";
    /// A position must predict the token that it reads.
    LabelsUnshifted = "labels_unshifted", "lint.labels_unshifted";
    /// A position must predict the token after the next.
    LabelsShiftedTwice = "labels_shifted_twice", "lint.labels_shifted_twice";
    /// Labels are no shift of what the decoder reads.
    LabelsUnrelated = "labels_unrelated", "lint.labels_unrelated";
    /// An end token that closes a sentence and that no label teaches.
    EndNotTaught = "end_not_taught", "lint.end_not_taught";
    /// The label of a sentence's last place is the first token of another.
    LabelOfAnother = "label_of_another", "lint.label_of_another";
    /// A start token stands twice at the beginning of a sentence.
    StartTwice = "start_twice", "lint.start_twice";
    /// The fill of a mask is −∞ in half precision.
    FillBeyondType = "fill_beyond_type", "lint.fill_beyond_type";
    /// A variance is divided by n − 1.
    VarianceUnbiased = "variance_unbiased", "lint.variance_unbiased";
    /// A mean or variance is not that of the row it normalises.
    NormStatistics = "norm_statistics", "lint.norm_statistics";
    /// ε stands beside σ instead of inside the root.
    EpsilonBesideSigma = "epsilon_beside_sigma", "lint.epsilon_beside_sigma";
    /// ε is larger than the variance it guards.
    EpsilonDominates = "epsilon_dominates", "lint.epsilon_dominates";
    /// Columns that a `ReLU` cuts off for every token.
    DeadRelu = "dead_relu", "lint.dead_relu";
    /// The residual stream grows without bound.
    NormGrowth = "norm_growth", "lint.norm_growth";
    /// A tensor of a weight file that nothing uses.
    WeightsUnused = "weights_unused", "lint.weights_unused";
    /// A rule of `init` whose pattern fits no parameter.
    InitUnused = "init_unused", "lint.init_unused";
    /// A parameter that the weight files lack was made up.
    WeightsMissing = "weights_missing", "lint.weights_missing";
    /// The output head and the embedding are two tables with nearly the same numbers.
    HeadNotTied = "head_not_tied", "lint.head_not_tied";
    /// Positions are not counted from 0, or not from where the cache ends.
    PositionsOffset = "positions_offset", "lint.positions_offset";
    /// Dropout acts outside training.
    DropoutAtInference = "dropout_at_inference", "lint.dropout_at_inference";
    /// Decoding with a KV cache gives other bits than without.
    CacheDiffers = "cache_differs", "lint.cache_differs";
    /// A NaN comes from here.
    NanProduced = "nan_produced", "lint.nan_produced";
    /// An infinity comes from here.
    InfinityProduced = "infinity_produced", "lint.infinity_produced";
    /// Numbers beyond what half precision holds.
    BeyondF16 = "beyond_f16", "lint.beyond_f16";
    /// Logits that bfloat16 cannot tell apart.
    Bf16Ties = "bf16_ties", "lint.bf16_ties";
    /// A decoding chooses between equal numbers.
    Tie = "tie", "lint.tie";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::catalogue::has;

    #[test]
    fn every_lint_is_explained_and_has_a_name_of_its_own() {
        for (i, lint) in Lint::ALL.iter().enumerate() {
            for key in [lint.key(), lint.why(), lint.mend()] {
                assert!(has(key), "{key}");
            }
            assert!(Lint::ALL[..i].iter().all(|l| l.id() != lint.id()));
            assert_eq!(ron::to_string(lint).unwrap(), lint.id());
        }
    }
}
