//! Scenario files: schema, loading, diagnostics, validation, the scenarios that are embedded.

pub mod diagnostic;
pub mod edit;
pub mod files;
pub mod guard;
pub mod lint;
mod load;
mod npz;
pub mod numbers;
mod patch;
pub mod place;
pub mod reference;
mod reference_page;
pub mod rewrite;
pub mod schema;
mod stored;
pub mod symbols;
pub mod syntax;
pub mod tensors;
pub mod tokenise;
mod unique;
pub mod weights;
mod write;

pub use load::{Loaded, load};
pub use patch::patched;
pub use schema::Scenario;
pub use write::{set, setting, write};

/// Scenarios that come with the program: name and text.
pub const EMBEDDED: &[(&str, &str)] = &[
    ("water_class", include_str!("../../scenarios/water_class.ron")),
    ("encoder_char", include_str!("../../scenarios/encoder_char.ron")),
    ("bert_block", include_str!("../../scenarios/bert_block.ron")),
    ("pre_ln_encoder", include_str!("../../scenarios/pre_ln_encoder.ron")),
    ("modern_decoder", include_str!("../../scenarios/modern_decoder.ron")),
    ("gpt_block", include_str!("../../scenarios/gpt_block.ron")),
    ("local_and_linear_attention", include_str!("../../scenarios/local_and_linear_attention.ron")),
    ("encoder_decoder", include_str!("../../scenarios/encoder_decoder.ron")),
    ("post_or_pre", include_str!("../../scenarios/post_or_pre.ron")),
    ("water_class_trained", include_str!("../../scenarios/water_class_trained.ron")),
    ("train_copy", include_str!("../../scenarios/train_copy.ron")),
];

/// Lessons that come with the program: name and text. Each shows one thing, with notes.
pub const LESSONS: &[(&str, &str)] = &[
    ("order", include_str!("../../scenarios/lessons/order.ron")),
    ("positions_table", include_str!("../../scenarios/lessons/positions_table.ron")),
    ("weighted_mean", include_str!("../../scenarios/lessons/weighted_mean.ron")),
    ("residual_norms", include_str!("../../scenarios/lessons/residual_norms.ron")),
    ("norm_in_training", include_str!("../../scenarios/lessons/norm_in_training.ron")),
    ("why", include_str!("../../scenarios/lessons/why.ron")),
    ("parallel_characters", include_str!("../../scenarios/lessons/parallel_characters.ron")),
    ("bert_base", include_str!("../../scenarios/lessons/large/bert_base.ron")),
];

/// RON as scenarios are written: `Some(…)` may be left out, nesting is limited.
fn options() -> ron::Options {
    ron::Options::default().with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME).with_recursion_limit(64)
}

/// Corpora that come with the program: name and text.
const CORPORA: &[(&str, &str)] = &[
    ("encoder_char.txt", include_str!("../../assets/corpora/encoder_char.txt")),
    ("parallel.zh.txt", include_str!("../../assets/corpora/parallel.zh.txt")),
    ("parallel.en.txt", include_str!("../../assets/corpora/parallel.en.txt")),
];

/// Text of a corpus that comes with the program.
pub fn embedded_corpus(name: &str) -> Option<&'static str> {
    CORPORA.iter().find(|c| c.0 == name).map(|c| c.1)
}
