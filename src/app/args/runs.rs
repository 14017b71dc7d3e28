//! Arguments of training and of runs side by side.

use super::{Arg, bad};
use crate::app::grammar::Slip;
use crate::trace::Rounding;

fn count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| (1..=MAX_UPDATES).contains(n))
}

/// More updates are a slip.
const MAX_UPDATES: u64 = 1_000_000_000;

/// What `train` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Train {
    /// So many updates more; as many as the scenario says where none.
    More(Option<u64>),
    /// Ends the training that goes on; what is done is kept.
    Stop,
    /// Forgets all updates.
    Reset,
}

impl Arg for Train {
    const USAGE: &'static str = "[N | stop | reset]";
    const OPTIONAL: bool = true;
    fn parse(text: &str) -> Result<Self, Slip> {
        match text {
            "" => Ok(Self::More(None)),
            "stop" => Ok(Self::Stop),
            "reset" => Ok(Self::Reset),
            n => match count(n) {
                Some(n) => Ok(Self::More(Some(n))),
                None => Err(bad(text, Self::USAGE)),
            },
        }
    }
    fn print(&self) -> String {
        match self {
            Self::More(n) => n.map_or_else(String::new, |n| n.to_string()),
            Self::Stop => "stop".to_owned(),
            Self::Reset => "reset".to_owned(),
        }
    }
    fn words() -> Vec<String> {
        ["10", "100", "stop", "reset"].map(str::to_owned).into()
    }
}

/// An update, counted from 1; none: the scenario as it was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateNumber(pub Option<u64>);

impl Arg for UpdateNumber {
    const USAGE: &'static str = "[N]";
    const OPTIONAL: bool = true;
    fn parse(text: &str) -> Result<Self, Slip> {
        match (text, count(text)) {
            ("", _) => Ok(Self(None)),
            (_, Some(n)) => Ok(Self(Some(n))),
            _ => Err(bad(text, Self::USAGE)),
        }
    }
    fn print(&self) -> String {
        self.0.map_or_else(String::new, |n| n.to_string())
    }
}

/// What is shown side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sides {
    /// What the scenario has: training and inference, else the run with and without a cache, else exact and rounded.
    Usual,
    /// A training run and an inference run.
    TrainingInference,
    /// The inference run without and with a KV cache.
    Cached,
    /// The run as computed, and with every written number rounded.
    Rounded(Option<Rounding>),
    /// One head and another, from 0.
    Heads(usize, usize),
    /// One layer and another: `0`, or `encoder.0`.
    Layers(String, String),
    /// Two runs by name.
    Runs(String, String),
}

impl Arg for Sides {
    const USAGE: &'static str = "training inference | cached uncached | exact rounded [DIGITS|TYPE] | head I head J | layer I layer J | RUN RUN";
    const OPTIONAL: bool = true;
    fn parse(text: &str) -> Result<Self, Slip> {
        let wrong = || bad(text, Self::USAGE);
        let number = |n: &str| n.parse::<usize>().map_err(|_| wrong());
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words[..] {
            [] => Self::Usual,
            ["training", "inference"] => Self::TrainingInference,
            ["cached", "uncached"] | ["uncached", "cached"] => Self::Cached,
            ["exact", "rounded"] => Self::Rounded(None),
            ["exact", "rounded", digits] => {
                let decimals = digits.parse().ok().filter(|d| *d <= 17).map(Rounding::Decimals);
                let to = decimals.or_else(|| digits.parse().ok().map(Rounding::Type));
                Self::Rounded(Some(to.ok_or_else(wrong)?))
            }
            ["head", i, "head", j] | ["head" | "heads", i, j] => Self::Heads(number(i)?, number(j)?),
            ["layer", i, "layer", j] | ["layer" | "layers", i, j] => Self::Layers(i.to_owned(), j.to_owned()),
            [left, right] => Self::Runs(left.to_owned(), right.to_owned()),
            _ => return Err(wrong()),
        })
    }
    fn print(&self) -> String {
        match self {
            Self::Usual => String::new(),
            Self::TrainingInference => "training inference".to_owned(),
            Self::Cached => "cached uncached".to_owned(),
            Self::Rounded(None) => "exact rounded".to_owned(),
            Self::Rounded(Some(digits)) => format!("exact rounded {digits}"),
            Self::Heads(i, j) => format!("head {i} head {j}"),
            Self::Layers(i, j) => format!("layer {i} layer {j}"),
            Self::Runs(left, right) => format!("{left} {right}"),
        }
    }
    fn words() -> Vec<String> {
        ["training inference", "cached uncached", "exact rounded", "head 0 head 1", "layer 0 layer 1"]
            .map(str::to_owned)
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_words() {
        assert_eq!(Train::parse("60").unwrap(), Train::More(Some(60)));
        assert_eq!(Train::parse("").unwrap(), Train::More(None));
        for wrong in ["0", "-1", "1.5", "many", "9999999999999"] {
            assert!(Train::parse(wrong).is_err(), "{wrong}");
            assert!(UpdateNumber::parse(wrong).is_err(), "{wrong}");
        }
        for word in Sides::words().iter().map(String::as_str).chain([
            "",
            "exact rounded 2",
            "layer encoder.0 layer decoder.1",
            "greedy sample",
        ]) {
            assert_eq!(Sides::parse(word).unwrap().print(), word);
        }
        for wrong in ["training", "exact rounded 18", "head a head b", "a b c"] {
            assert!(Sides::parse(wrong).is_err(), "{wrong}");
        }
        for word in Train::words() {
            assert_eq!(Train::parse(&word).unwrap().print(), word);
        }
    }
}
