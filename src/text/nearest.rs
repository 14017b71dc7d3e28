//! The known name that a mistyped one was most likely meant to be.

/// The name nearest to `word` among `known`: one that begins with it, or one near enough for it to be a slip.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    known
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            if letters >= 2 && lower.starts_with(&word) {
                return Some((0, name));
            }
            let distance = strsim::osa_distance(&word, &lower);
            let longer = name.chars().count().max(letters);
            // Two words without a character in common are no slip of each other.
            (distance < longer && distance <= 1 + longer / 3).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_and_beginnings_have_a_nearest_name() {
        let names = ["next", "prev", "export", "palette"];
        assert_eq!(nearest("nxet", names), Some("next"));
        assert_eq!(nearest("pal", names), Some("palette"));
        assert_eq!(nearest("zzzz", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("d_modle", ["d_model", "heads"]), Some("d_model"));
        assert_eq!(nearest("Realu", ["Relu", "Gelu"]), Some("Relu"));
        assert_eq!(nearest("banana", ["d_model", "heads"]), None);
        assert_eq!(nearest("冰", ["我", "水"]), None);
    }
}
