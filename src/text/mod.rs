//! Text for people: the zh/en catalogue, terminal width, escaping of untrusted text, numbers.
//!
//! Lowest room of the house beside `tensor`: everything may use it, it uses nothing.

pub mod catalogue;

pub use catalogue::{Lang, Msg, tr};
