//! Why a score is masked, in words.

use crate::program::reason;
use crate::text::{Lang, Msg};

/// Reasons, by their bit in a mask and their key in the catalogue.
const REASONS: [(u8, &str); 4] = [
    (reason::CAUSAL, "explain.mask.causal"),
    (reason::PADDING, "explain.mask.padding"),
    (reason::WINDOW, "explain.mask.window"),
    (reason::GIVEN, "explain.mask.given"),
];

/// The reasons in `bits` as words: `causal, padding`; empty where there are none.
pub fn reasons(bits: u8, lang: Lang) -> String {
    let words: Vec<String> =
        REASONS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, key)| Msg::new(key).render(lang)).collect();
    words.join(", ")
}
