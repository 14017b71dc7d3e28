//! The argument of `compare`: a name, and the flags of the command line.

use std::path::PathBuf;

use super::Arg;
use crate::app::grammar::{self, Slip};
use crate::debug::compare::{Mode, Policy, Tolerance};
use crate::text::{Msg, escape};

/// A comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareArgs {
    /// A file of tensors, a scenario or a run; empty: the last comparison.
    pub name: String,
    /// What each node is computed from.
    pub mode: Mode,
    /// How near is near enough.
    pub tolerance: Tolerance,
    /// A file with a table of names.
    pub map: Option<PathBuf>,
}

fn mode_called(name: &str) -> Option<Mode> {
    [Mode::Isolated, Mode::Cumulative].into_iter().find(|m| m.name() == name)
}

const POLICIES: [(&str, Policy); 3] = [("ours", Policy::Ours), ("torch", Policy::Torch), ("numpy", Policy::Numpy)];

/// `NAME [isolated|cumulative] [--mode MODE] [--rtol R] [--atol A] [--policy POLICY] [--map FILE]`. Names may have
/// spaces in them; where flags come first, the name is what comes after the last one's value.
impl Arg for CompareArgs {
    const USAGE: &'static str = "[NAME] [isolated|cumulative] [--rtol R] [--atol A] [--policy POLICY] [--map FILE]";
    const OPTIONAL: bool = true;

    fn parse(text: &str) -> Result<Self, Slip> {
        let (named, flags) = grammar::flags(text, Self::USAGE)?;
        let mut args = Self::default();
        args.name = match named.rsplit_once(char::is_whitespace) {
            Some((name, mode)) if mode_called(mode).is_some() => {
                args.mode = mode_called(mode).unwrap_or_default();
                name.trim().to_owned()
            }
            _ => named.to_owned(),
        };
        for flag in flags {
            let ((name, name_at), (mut value, mut at)) = (flag.name, flag.value);
            if args.name.is_empty()
                && let Some((first, rest)) = value.split_once(char::is_whitespace)
            {
                rest.trim().clone_into(&mut args.name);
                (value, at) = (first, at.start..at.start + first.len());
            }
            let wrong = || {
                let msg = Msg::new("compare.flag_value").arg("flag", escape(name)).arg("value", escape(value));
                Slip::new(if value.is_empty() { name_at.clone() } else { at.clone() }, msg)
            };
            let size = || value.parse::<f64>().ok().filter(|x| *x >= 0.0 && x.is_finite()).ok_or_else(wrong);
            match name {
                "mode" => args.mode = mode_called(value).ok_or_else(wrong)?,
                "rtol" => args.tolerance.rtol = Some(size()?),
                "atol" => args.tolerance.atol = Some(size()?),
                "policy" => {
                    let policy = POLICIES.iter().find(|p| p.0 == value).ok_or_else(wrong)?;
                    args.tolerance.policy = policy.1;
                }
                "map" if !value.is_empty() => args.map = Some(PathBuf::from(value)),
                "map" => return Err(wrong()),
                _ => return Err(Slip::new(name_at, Msg::new("compare.flag").arg("flag", escape(name)))),
            }
        }
        Ok(args)
    }

    fn print(&self) -> String {
        let mut parts = Vec::new();
        if !self.name.is_empty() {
            parts.push(self.name.clone());
        }
        if self.mode != Mode::default() {
            parts.push(format!("--mode {}", self.mode.name()));
        }
        parts.extend(self.tolerance.rtol.map(|x| format!("--rtol {x}")));
        parts.extend(self.tolerance.atol.map(|x| format!("--atol {x}")));
        if self.tolerance.policy != Policy::default()
            && let Some(policy) = POLICIES.iter().find(|p| p.1 == self.tolerance.policy)
        {
            parts.push(format!("--policy {}", policy.0));
        }
        parts.extend(self.map.as_ref().map(|m| format!("--map {}", m.display())));
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_command_line() {
        let asked = |text: &str| CompareArgs::parse(text).expect(text);
        assert_eq!(asked(""), CompareArgs::default());
        let plain = asked("a b.npz");
        assert_eq!((&*plain.name, plain.mode), ("a b.npz", Mode::Isolated));
        for text in ["a b.npz cumulative", "a b.npz --mode cumulative", "--mode=cumulative a b.npz"] {
            let asked = asked(text);
            assert_eq!((&*asked.name, asked.mode), ("a b.npz", Mode::Cumulative), "{text}");
        }
        let all = asked("r.npz --rtol 1e-3 --atol=0 --policy torch --map my names.ron");
        assert_eq!(all.tolerance, Tolerance { policy: Policy::Torch, rtol: Some(1e-3), atol: Some(0.0) });
        assert_eq!(all.map, Some(PathBuf::from("my names.ron")));
        assert_eq!(CompareArgs::parse(&all.print()).as_ref(), Ok(&all));
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
            assert_eq!(CompareArgs::parse(text).expect_err(text).msg.key, key, "{text}");
        }
    }
}
