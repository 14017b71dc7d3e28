//! The nearest known name to a mistyped one.

use crate::text::Msg;

/// The candidate that a user most likely meant, if any is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let longest = word.chars().count();
    candidates
        .into_iter()
        .map(|c| {
            let prefix = longest >= 2 && c.starts_with(&word);
            let distance = strsim::osa_distance(&word, &c.to_lowercase());
            (if prefix { 0 } else { distance }, c)
        })
        .filter(|(d, c)| *d == 0 || *d <= 2 && *d * 2 <= longest.max(c.chars().count()))
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

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

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_slips_and_prefixes_only() {
        let names = ["next", "prev", "export", "palette"];
        assert_eq!(nearest("nxet", names), Some("next"));
        assert_eq!(nearest("pal", names), Some("palette"));
        assert_eq!(nearest("zzzz", names), None);
        assert_eq!(nearest("", names), None);
    }
}
