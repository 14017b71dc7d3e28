//! Which names a symbol may have: those that can be written where a tensor is named, and that mean nothing else there.

/// Words of the language of expressions and conditions. A symbol of such a name could not be reached.
pub const RESERVED: &[&str] = &[
    "max", "min", "mean", "sum", "var", "std", "norm", "argmax", "entropy", "zeros", "nan", "inf", "row_sum", "shape",
    "count", "any", "all", "abs", "exp", "ln", "sqrt", "tanh", "softmax", "and", "or", "not",
];

/// Whether `name` can be written as one word and is not reserved.
pub fn is_name(name: &str) -> bool {
    let begins = |c: char| c.is_alphabetic() || matches!(c, '_' | '∂');
    let goes_on = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '.' | '\'' | '′' | '∂' | '\u{300}'..='\u{36f}' | '₀'..='₉' | '⁰'..='⁹')
    };
    name.starts_with(begins)
        && name.chars().all(goes_on)
        && !name.ends_with('.')
        && !name.contains("..")
        && !RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_not_be_reached_are_none() {
        for good in ["Q1", "X_enc_in", "h'", "∂L", "μ", "注意力", "W1.a", "x̂"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "A[0]", "max", "1", "a b", "a..b", ".a", "a:b", "-x", "not"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
