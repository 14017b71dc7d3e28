//! How frameworks name what their modules compute.

/// The name of a recorded tensor: the module that gave it, and in which call of the model, `h.11.attn.weights#2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleName<'n> {
    /// The name without the call.
    pub bare: &'n str,
    /// The call, counted from 0, where it is not the first.
    pub call: Option<&'n str>,
}

impl<'n> ModuleName<'n> {
    /// Of a name.
    pub fn of(name: &'n str) -> Self {
        match name.rsplit_once('#') {
            Some((bare, call)) if call.parse::<usize>().is_ok() => Self { bare, call: Some(call) },
            _ => Self { bare: name, call: None },
        }
    }

    /// Its words, from the outermost module on.
    pub fn words(self) -> impl DoubleEndedIterator<Item = &'n str> {
        self.bare.split('.')
    }

    /// What it is called in its module.
    pub fn last(self) -> &'n str {
        self.parted().map_or(self.bare, |(_, last)| last)
    }

    /// The name of the module that it is in; `None` for one of the outermost.
    pub fn parent(self) -> Option<&'n str> {
        self.parted().map(|(parent, _)| parent)
    }

    fn parted(self) -> Option<(&'n str, &'n str)> {
        self.bare.rsplit_once('.')
    }

    /// Whether it is `other` with further modules around it.
    pub fn is_inner(self, other: &str) -> bool {
        self.bare.strip_suffix(other).is_some_and(|around| around.ends_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_words_and_a_call() {
        let name = ModuleName::of("h.11.attn.weights#2");
        assert_eq!((name.bare, name.call), ("h.11.attn.weights", Some("2")));
        assert_eq!((name.last(), name.parent()), ("weights", Some("h.11.attn")));
        assert_eq!(name.words().collect::<Vec<_>>(), ["h", "11", "attn", "weights"]);
        assert!(name.is_inner("attn.weights") && !name.is_inner("eights") && !name.is_inner("h.11.attn.weights"));
        let alone = ModuleName::of("logits#x");
        assert_eq!((alone.bare, alone.call, alone.last(), alone.parent()), ("logits#x", None, "logits#x", None));
    }
}
