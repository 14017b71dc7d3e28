//! Arguments of training and of runs side by side.

use super::args::Arg;
use crate::text::Msg;

fn bad(text: &str, usage: &'static str) -> Msg {
    Msg::new("tui.error.value")
        .arg("value", text)
        .arg("usage", usage)
}

fn count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| (1..=MOST_UPDATES).contains(n))
}

/// More updates are a slip.
const MOST_UPDATES: u64 = 1_000_000_000;

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
    fn parse(text: &str) -> Result<Self, Msg> {
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
    fn parse(text: &str) -> Result<Self, Msg> {
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
        for word in Train::words() {
            assert_eq!(Train::parse(&word).unwrap().print(), word);
        }
    }
}
