//! Which steps are exported: one, a range, or all.

use std::fmt;

use crate::text::{Msg, escape};
use crate::walkthrough::step_number;

/// A choice of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// One step, or a sub-step (40.1 is `[40, 1]`).
    One(Vec<u32>),
    /// Whole steps from the first to the last, both included. `u32::MAX` is the end.
    Range(u32, u32),
    /// All steps.
    All,
}

impl Selection {
    /// Reads `23`, `40.1`, `5..9`, `5..`, `..9` or `all`.
    ///
    /// # Errors
    /// A message that names what is wrong.
    pub fn parse(text: &str) -> Result<Self, Msg> {
        let bad = || Msg::new("export.selection.unknown").arg("text", escape(text));
        let number = |t: &str| match t.trim().parse::<u32>() {
            Ok(0) => Err(Msg::new("export.selection.zero")),
            Ok(n) => Ok(n),
            Err(_) => Err(bad()),
        };
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("all") {
            return Ok(Self::All);
        }
        let Some((from, to)) = trimmed.split_once("..") else {
            let path = step_number(trimmed).ok_or_else(bad)?;
            return if path.contains(&0) { Err(Msg::new("export.selection.zero")) } else { Ok(Self::One(path)) };
        };
        let open = |t: &str, otherwise| {
            if t.trim().is_empty() { Ok(otherwise) } else { number(t) }
        };
        match (open(from, 1)?, open(to, u32::MAX)?) {
            (1, u32::MAX) => Ok(Self::All),
            (a, b) if a > b => Err(Msg::new("export.selection.backward").arg("from", a).arg("to", b)),
            (a, b) => Ok(Self::Range(a, b)),
        }
    }

    /// Whether it may name several steps: then JSON is an array, also of one.
    pub fn is_several(&self) -> bool {
        !matches!(self, Self::One(_))
    }

    /// Whether the whole step `number` is chosen.
    pub fn holds(&self, number: u32) -> bool {
        match self {
            Self::One(path) => path[..] == [number],
            Self::Range(from, to) => (*from..=*to).contains(&number),
            Self::All => true,
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(path) => {
                let parts: Vec<String> = path.iter().map(u32::to_string).collect();
                f.write_str(&parts.join("."))
            }
            Self::Range(from, u32::MAX) => write!(f, "{from}.."),
            Self::Range(from, to) => write!(f, "{from}..{to}"),
            Self::All => f.write_str("all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back() {
        for (text, selection) in [
            ("23", Selection::One(vec![23])),
            ("40.1", Selection::One(vec![40, 1])),
            ("92.3.1", Selection::One(vec![92, 3, 1])),
            ("5..9", Selection::Range(5, 9)),
            ("7..7", Selection::Range(7, 7)),
            ("5..", Selection::Range(5, u32::MAX)),
            ("all", Selection::All),
        ] {
            assert_eq!(Selection::parse(text), Ok(selection.clone()));
            assert_eq!(selection.to_string(), text);
        }
        assert_eq!(Selection::parse("..9"), Ok(Selection::Range(1, 9)));
        assert_eq!(Selection::parse(".."), Ok(Selection::All));
    }

    #[test]
    fn refuses() {
        for (text, key) in [
            ("", "export.selection.unknown"),
            ("-1", "export.selection.unknown"),
            ("4.", "export.selection.unknown"),
            ("1...3", "export.selection.unknown"),
            ("99999999999", "export.selection.unknown"),
            ("0", "export.selection.zero"),
            ("9..5", "export.selection.backward"),
        ] {
            assert_eq!(Selection::parse(text).unwrap_err().key, key, "{text}");
        }
    }

    #[test]
    fn what_is_chosen() {
        assert!(Selection::Range(5, 9).holds(9) && !Selection::Range(5, 9).holds(10));
        assert!(Selection::One(vec![4]).holds(4) && !Selection::One(vec![4, 1]).holds(4));
        assert!(Selection::Range(7, 7).is_several() && !Selection::One(vec![7]).is_several());
    }
}
