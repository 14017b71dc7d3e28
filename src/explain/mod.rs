//! Derivations and formulas as text, from the program and its recorded numbers.

pub mod formula;
pub mod line;
pub mod mask;
mod piece;
mod span;
mod sum;

pub use formula::formula;
pub use line::{Explainer, Line, MASKED_BELOW};
pub use span::{Span, Style};
pub use sum::{Sum, Term, Top};
