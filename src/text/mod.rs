//! Text for people: the zh/en catalogue, terminal width, escaping of untrusted text, numbers.
//!
//! Lowest room of the house next to `tensor`: everything may use it, it uses nothing.

pub mod catalogue;
pub mod escape;
mod nearest;
pub mod number;
pub mod width;

pub use catalogue::{Lang, Msg, tr, words};
pub use escape::{escape, escape_lines};
pub use nearest::nearest;
pub use number::{NumberFormat, round_to};
pub use width::{Align, Cells, width};
