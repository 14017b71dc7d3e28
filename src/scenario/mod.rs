//! Scenario files: schema, loading, diagnostics, validation, the scenarios that are embedded.

pub mod diagnostic;
mod load;
mod npz;
pub mod place;
pub mod schema;
pub mod syntax;
pub mod tokenise;
pub mod weights;

pub use load::{Loaded, load};
pub use schema::Scenario;

/// Scenarios that come with the program: name and text.
pub const EMBEDDED: &[(&str, &str)] = &[(
    "water_class",
    include_str!("../../scenarios/water_class.ron"),
)];

/// RON as scenarios are written: `Some(…)` may be left out, nesting is limited.
fn options() -> ron::Options {
    ron::Options::default()
        .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
        .with_recursion_limit(64)
}

/// Text of a corpus that comes with the program.
pub fn embedded_corpus(_name: &str) -> Option<&'static str> {
    None
}
