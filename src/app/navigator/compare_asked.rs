//! What `:compare` is asked for: a name, and the flags of the command line.

use std::path::PathBuf;

use crate::debug::compare::{Mode, Policy, Tolerance};
use crate::text::{Msg, escape};

/// A comparison that is asked for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Asked {
    /// A file of tensors, a scenario or a run; empty where the last comparison is meant.
    pub name: String,
    pub mode: Mode,
    pub tolerance: Tolerance,
    /// A file with a person's own table of names.
    pub map: Option<PathBuf>,
}

impl Asked {
    /// Reads `NAME [isolated|cumulative] [--mode MODE] [--rtol R] [--atol A] [--policy POLICY] [--map FILE]`. Names may
    /// have spaces in them.
    ///
    /// # Errors
    /// Where a flag is none, or its value is none.
    pub fn parse(text: &str) -> Result<Self, Msg> {
        let mut asked = Self::default();
        let spaced = format!(" {text}");
        let mut parts = spaced.split(" --");
        let named = parts.next().unwrap_or_default().trim();
        let name = match named.rsplit_once(char::is_whitespace) {
            Some((name, mode)) if asked.mode_called(mode) => name.trim(),
            _ => named,
        };
        name.clone_into(&mut asked.name);
        for part in parts {
            let end = part.find(|c: char| c == '=' || c.is_whitespace());
            let (flag, value) = part.split_at(end.unwrap_or(part.len()));
            asked.set(flag, value.trim_start_matches('=').trim())?;
        }
        Ok(asked)
    }

    /// Takes the name of a mode; false where it is none.
    fn mode_called(&mut self, name: &str) -> bool {
        let mode = [Mode::Isolated, Mode::Cumulative].into_iter().find(|m| m.name() == name);
        self.mode = mode.unwrap_or(self.mode);
        mode.is_some()
    }

    /// Sets a flag. Before a name, what comes after the value is that name.
    fn set(&mut self, flag: &str, text: &str) -> Result<(), Msg> {
        let (value, rest) = match text.split_once(char::is_whitespace) {
            Some((value, rest)) if self.name.is_empty() => (value, rest.trim()),
            _ => (text, ""),
        };
        let wrong = || Msg::new("compare.flag_value").arg("flag", escape(flag)).arg("value", escape(value));
        let size = || {
            let x = value.parse::<f64>().ok();
            x.filter(|x| *x >= 0.0 && x.is_finite()).ok_or_else(wrong)
        };
        match flag {
            "mode" if self.mode_called(value) => {}
            "rtol" => self.tolerance.rtol = Some(size()?),
            "atol" => self.tolerance.atol = Some(size()?),
            "policy" => {
                self.tolerance.policy = match value {
                    "ours" => Policy::Ours,
                    "torch" => Policy::Torch,
                    "numpy" => Policy::Numpy,
                    _ => return Err(wrong()),
                };
            }
            "map" if !value.is_empty() => self.map = Some(PathBuf::from(value)),
            "mode" | "map" => return Err(wrong()),
            _ => return Err(Msg::new("compare.flag").arg("flag", escape(flag))),
        }
        if !rest.is_empty() {
            rest.clone_into(&mut self.name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_command_line() {
        let asked = |text: &str| Asked::parse(text).expect(text);
        assert_eq!(asked(""), Asked::default());
        let plain = asked("a b.npz");
        assert_eq!((&*plain.name, plain.mode), ("a b.npz", Mode::Isolated));
        for text in ["a b.npz cumulative", "a b.npz --mode cumulative", "--mode=cumulative a b.npz"] {
            let asked = asked(text);
            assert_eq!((&*asked.name, asked.mode), ("a b.npz", Mode::Cumulative), "{text}");
        }
        let all = asked("r.npz --rtol 1e-3 --atol=0 --policy torch --map my names.ron");
        assert_eq!(all.tolerance, Tolerance { policy: Policy::Torch, rtol: Some(1e-3), atol: Some(0.0) });
        assert_eq!(all.map, Some(PathBuf::from("my names.ron")));
    }

    #[test]
    fn flags_that_are_none_are_told() {
        for (text, key) in [
            ("r.npz --tol 1", "compare.flag"),
            ("r.npz --rtol -1", "compare.flag_value"),
            ("r.npz --rtol nan", "compare.flag_value"),
            ("r.npz --mode other", "compare.flag_value"),
            ("r.npz --policy", "compare.flag_value"),
            ("r.npz --map", "compare.flag_value"),
        ] {
            assert_eq!(Asked::parse(text).expect_err(text).key, key, "{text}");
        }
    }
}
