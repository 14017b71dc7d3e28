//! Pieces of a written derivation, and how they are written.

use crate::text::NumberFormat;
use crate::trace::derive::Cell;

/// How lines are written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// How numbers are.
    pub number: NumberFormat,
    /// Sums longer than this show their first and last terms only.
    pub most_terms: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { number: NumberFormat::default(), most_terms: usize::MAX }
    }
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The text.
    pub text: String,
    /// The cell whose value it shows.
    pub cell: Option<Cell>,
}
