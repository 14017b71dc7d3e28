//! What to say of a word that is none of the known ones.

use crate::text::{Msg, nearest};

/// What is wrong with a word that is none of `choices`: which there are, and the one that was likely meant.
pub fn not_one_of(word: &str, choices: &[&str]) -> Msg {
    match nearest(word, choices.iter().copied()) {
        _ if word.is_empty() => Msg::new("tui.error.value_missing"),
        Some(near) => Msg::new("tui.error.value_near").arg("near", near),
        None => Msg::new("tui.error.value"),
    }
    .arg("value", crate::text::escape(word))
    .arg("usage", choices.join(" | "))
}
