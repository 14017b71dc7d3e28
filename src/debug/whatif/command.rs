//! Edits as they are typed: `Q1[0,0] = 0.7`, `embed.weight[3,1] += 0.1`, `token source 2 = 课`, `norm.eps = 1e-5`;
//! and what to ablate: `head 0.1`, `layer decoder.1`, `position 2`.

use crate::program::Name;
use crate::scenario::edit::Side;
use crate::text::{Msg, escape};

/// Something wrong in a line, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// Column, in characters from 1.
    pub column: usize,
    /// What is wrong.
    pub msg: Msg,
    /// How to fix it.
    pub help: Option<Msg>,
}

impl Slip {
    /// At byte `at` of `text`.
    pub(super) fn at(text: &str, at: usize, msg: Msg) -> Self {
        let at = text.floor_char_boundary(at.min(text.len()));
        Self { column: text[..at].chars().count() + 1, help: msg.help(), msg }
    }
}

/// How an old value becomes a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Subtract,
    /// `*=`
    Multiply,
    /// `/=`
    Divide,
}

/// What a cell becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// How.
    pub operation: Operation,
    /// By or to how much.
    pub by: f64,
}

impl Change {
    /// The new value of a cell that was `old`.
    pub fn of(self, old: f64) -> f64 {
        match self.operation {
            Operation::Set => self.by,
            Operation::Add => old + self.by,
            Operation::Subtract => old - self.by,
            Operation::Multiply => old * self.by,
            Operation::Divide => old / self.by,
        }
    }
}

/// An edit or an ablation as typed.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A cell by symbol or path.
    Cell {
        /// Symbol or path.
        name: String,
        /// Index, one entry an axis that is shown.
        index: Vec<usize>,
        /// What it becomes.
        change: Change,
    },
    /// A token.
    Token {
        /// Which side; the only one where not said.
        side: Option<Side>,
        /// Which sentence.
        sentence: usize,
        /// Which position.
        position: usize,
        /// The new word, or an id.
        word: String,
    },
    /// Another text that is read.
    Input(String),
    /// A name without an index: a setting, or a tensor of one cell.
    Setting {
        /// Field or path.
        field: String,
        /// As typed.
        value: String,
    },
    /// A head.
    Head {
        /// Attention or layer, as typed: `0`, `encoder.0`, `decoder.0.cross_attn`.
        of: String,
        /// Which head.
        head: usize,
    },
    /// A layer: `0`, `decoder.1`.
    Layer(String),
    /// A part of a layer, by its path.
    Block(String),
    /// What is known of positions.
    Positions(Option<Side>),
    /// A position.
    Position {
        /// Which side; the only one where not said.
        side: Option<Side>,
        /// Which position.
        position: usize,
    },
    /// What the cursor is on.
    Here,
}

impl Command {
    /// Reads an edit.
    ///
    /// # Errors
    /// What does not fit, and its column.
    pub fn edit(text: &str) -> Result<Self, Slip> {
        let slip = |at: usize, key: &'static str| Slip::at(text, at, Msg::new(key));
        let Some(equals) = text.find('=') else {
            return Err(slip(text.len(), "edit.no_equals"));
        };
        let (left, value) = (&text[..equals], &text[equals + 1..]);
        let value_at = equals + 1 + (value.len() - value.trim_start().len());
        let value = value.trim();
        if value.is_empty() {
            return Err(slip(text.len(), "edit.no_value"));
        }
        let (left, operation) = match left.chars().next_back() {
            Some('+') => (&left[..left.len() - 1], Operation::Add),
            Some('-') => (&left[..left.len() - 1], Operation::Subtract),
            Some('*') => (&left[..left.len() - 1], Operation::Multiply),
            Some('/') => (&left[..left.len() - 1], Operation::Divide),
            _ => (left, Operation::Set),
        };
        let name = left.trim();
        if name.is_empty() {
            return Err(slip(0, "edit.no_name"));
        }
        if let Some(rest) = name.strip_prefix("token ") {
            if operation != Operation::Set {
                return Err(slip(left.len(), "edit.only_set"));
            }
            return token(text, rest, value);
        }
        let Some(inner) = name.strip_suffix(']') else {
            if operation != Operation::Set {
                return Err(slip(left.len(), "edit.only_set"));
            }
            if name == "input" {
                return Ok(Self::Input(unquoted(value).to_owned()));
            }
            return Ok(Self::Setting { field: name.to_owned(), value: value.to_owned() });
        };
        let Some(open) = inner.find('[') else {
            return Err(slip(0, "edit.index"));
        };
        let start = text.find('[').unwrap_or(0);
        // `Q1[2][0]` and `Q1[2,0]` are the same cell.
        let listed = inner[open + 1..].replace("][", ",");
        let mut index = Vec::new();
        for part in listed.split(',') {
            match part.trim().parse() {
                Ok(i) => index.push(i),
                Err(_) => return Err(slip(start, "edit.index")),
            }
        }
        let by = number(value).ok_or_else(|| {
            let msg = Msg::new("edit.no_number").arg("text", escape(value));
            Slip::at(text, value_at, msg)
        })?;
        Ok(Self::Cell { name: inner[..open].trim().to_owned(), index, change: Change { operation, by } })
    }

    /// Reads what to ablate; nothing is what the cursor is on.
    ///
    /// # Errors
    /// What does not fit, and its column.
    pub fn ablate(text: &str) -> Result<Self, Slip> {
        let slip = |at: usize, key: &'static str| Slip::at(text, at, Msg::new(key));
        let text_trimmed = text.trim();
        if text_trimmed.is_empty() {
            return Ok(Self::Here);
        }
        let (kind, rest) =
            text_trimmed.split_once(char::is_whitespace).map_or((text_trimmed, ""), |(kind, rest)| (kind, rest.trim()));
        let at = text.rfind(rest).unwrap_or(text.len());
        match kind {
            "head" => {
                let (of, head) = Name::before_number(rest).ok_or_else(|| slip(at, "edit.which_head"))?;
                Ok(Self::Head { of: of.to_owned(), head })
            }
            "layer" if !rest.is_empty() => Ok(Self::Layer(rest.to_owned())),
            "layer" => Err(slip(text.len(), "edit.which_layer")),
            "block" if !rest.is_empty() => Ok(Self::Block(rest.to_owned())),
            "positions" => Ok(Self::Positions(match rest {
                "" => None,
                rest => Some(
                    [Side::Source, Side::Target]
                        .into_iter()
                        .find(|s| s.name() == rest)
                        .ok_or_else(|| slip(at, "edit.which_positions"))?,
                ),
            })),
            "position" => {
                let (side, rest) = side(rest);
                match rest.parse() {
                    Ok(position) => Ok(Self::Position { side, position }),
                    Err(_) => Err(slip(at, "edit.which_position")),
                }
            }
            path if rest.is_empty() && Name::parse(path).site.block().is_some() => Ok(Self::Block(path.to_owned())),
            _ => Err(slip(0, "edit.ablate_what")),
        }
    }
}

/// `source 2`, `target 1:0`, `2`.
fn token(text: &str, rest: &str, word: &str) -> Result<Command, Slip> {
    let (side, place) = side(rest.trim());
    let (sentence, position) = place.split_once(':').unwrap_or(("0", place));
    let numbers = (sentence.trim().parse(), position.trim().parse());
    let (Ok(sentence), Ok(position)) = numbers else {
        let at = text.find("token ").map_or(0, |at| at + "token ".len());
        return Err(Slip::at(text, at, Msg::new("edit.which_token")));
    };
    Ok(Command::Token { side, sentence, position, word: unquoted(word).to_owned() })
}

fn side(text: &str) -> (Option<Side>, &str) {
    for side in [Side::Source, Side::Target] {
        if let Some(rest) = text.strip_prefix(side.name())
            && rest.starts_with(char::is_whitespace)
        {
            return (Some(side), rest.trim());
        }
    }
    (None, text)
}

/// A word without the quotes around it.
pub fn unquoted(word: &str) -> &str {
    let inner = word.strip_prefix('"').and_then(|w| w.strip_suffix('"'));
    inner.unwrap_or(word)
}

/// A number as a cell may hold it; `true` and `false` for masks.
fn number(text: &str) -> Option<f64> {
    match text {
        "true" => Some(1.0),
        "false" => Some(0.0),
        "∞" | "+∞" => Some(f64::INFINITY),
        "-∞" | "−∞" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> (usize, &'static str) {
        let slip = Command::edit(text).expect_err(text);
        (slip.column, slip.msg.key)
    }

    #[test]
    fn edits_are_read() {
        let cell = |name: &str, index: &[usize], operation, by| Command::Cell {
            name: name.to_owned(),
            index: index.to_vec(),
            change: Change { operation, by },
        };
        for (text, wanted) in [
            ("Q1[0,0] = 0.7", cell("Q1", &[0, 0], Operation::Set, 0.7)),
            ("embed.weight[3][1]+=0.1", cell("embed.weight", &[3, 1], Operation::Add, 0.1)),
            ("a [1] -= -2", cell("a", &[1], Operation::Subtract, -2.0)),
            ("a[1] *= 1e3", cell("a", &[1], Operation::Multiply, 1e3)),
            ("m[0,1]=true", cell("m", &[0, 1], Operation::Set, 1.0)),
            ("m[0] /= -inf", cell("m", &[0], Operation::Divide, f64::NEG_INFINITY)),
        ] {
            assert_eq!(Command::edit(text), Ok(wanted), "{text}");
        }
        let token =
            |side, sentence, position, word: &str| Command::Token { side, sentence, position, word: word.to_owned() };
        for (text, wanted) in [
            ("token source 2 = 课", token(Some(Side::Source), 0, 2, "课")),
            ("token target 1:3 = \"<eos>\"", token(Some(Side::Target), 1, 3, "<eos>")),
            ("token 0=7", token(None, 0, 0, "7")),
        ] {
            assert_eq!(Command::edit(text), Ok(wanted), "{text}");
        }
        let setting = Command::Setting { field: "norm.eps".to_owned(), value: "1e-5".to_owned() };
        assert_eq!(Command::edit("norm.eps = 1e-5"), Ok(setting));
        let nan = Command::edit("a[0] = nan").expect("NaN is a value");
        assert!(matches!(nan, Command::Cell { change, .. } if change.by.is_nan()));
    }

    #[test]
    fn slips_have_a_column() {
        assert_eq!(wrong("Q1[0,0] 0.7"), (12, "edit.no_equals"));
        assert_eq!(wrong("Q1[0,0] = "), (11, "edit.no_value"));
        assert_eq!(wrong("= 3"), (1, "edit.no_name"));
        assert_eq!(wrong("Q1[0,x] = 3"), (3, "edit.index"));
        assert_eq!(wrong("词[-1] = 3"), (2, "edit.index"));
        assert_eq!(wrong("Q1[0,0] = 水"), (11, "edit.no_number"));
        assert_eq!(wrong("norm.eps += 1"), (10, "edit.only_set"));
        assert_eq!(wrong("token source x = 课"), (7, "edit.which_token"));
    }

    #[test]
    fn ablations_are_read() {
        let head = |of: &str, head| Command::Head { of: of.to_owned(), head };
        assert_eq!(Command::ablate("head 0.1"), Ok(head("0", 1)));
        assert_eq!(Command::ablate("head decoder.0.cross_attn.3"), Ok(head("decoder.0.cross_attn", 3)));
        assert_eq!(Command::ablate("layer encoder.1"), Ok(Command::Layer("encoder.1".to_owned())));
        let position = Command::Position { side: Some(Side::Source), position: 2 };
        assert_eq!(Command::ablate(" position source 2"), Ok(position));
        assert_eq!(Command::ablate(""), Ok(Command::Here));
        for (text, column) in [("head", 5), ("head 水", 6), ("heads 0.1", 1), ("position source", 10), ("layer", 6)] {
            assert_eq!(Command::ablate(text).expect_err(text).column, column, "{text}");
        }
    }
}
