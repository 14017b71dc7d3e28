//! How expressions, conditions and breakpoints are written, as text for people.

use super::expr::FUNCTIONS;
use crate::text::Msg;

/// Keys of the lines, in order.
const LINES: &[&str] = &[
    "grammar.names",
    "grammar.index",
    "grammar.arithmetic",
    "grammar.functions",
    "grammar.axis",
    "grammar.truth",
    "grammar.it",
    "grammar.conditions",
    "grammar.places",
    "grammar.breaks",
    "grammar.watches",
    "grammar.trees",
];

/// The title.
pub fn title() -> Msg {
    Msg::new("grammar.title")
}

/// The lines, each with examples.
pub fn lines() -> Vec<Msg> {
    let functions: Vec<&str> = FUNCTIONS.iter().map(|f| f.0).collect();
    let line = |key: &&'static str| Msg::new(key).arg("all", functions.join(" "));
    LINES.iter().map(line).collect()
}
