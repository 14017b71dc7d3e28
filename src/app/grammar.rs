//! The one grammar of the command line: command words, steps, places, numbers, flags and options, each read with its
//! position, so that an error can say at which column it is.

use std::ops::Range;

use winnow::ascii::{dec_uint, digit1, multispace0};
use winnow::combinator::{alt, cut_err, delimited, eof, opt, preceded, repeat, separated};
use winnow::error::{ContextError, ErrMode};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location, Stream};
use winnow::token::{take_till, take_while};

use crate::text::{Lang, Msg, escape};

type Input<'a> = LocatingSlice<&'a str>;
type Out<T> = Result<T, ErrMode<ContextError>>;

/// What is wrong with a command line, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Slip {
    /// Which bytes of the line; all of what was read where it is empty.
    pub at: Range<usize>,
    /// What.
    pub msg: Msg,
}

impl Slip {
    /// Something wrong at some bytes.
    pub fn new(at: Range<usize>, msg: Msg) -> Self {
        Self { at, msg }
    }

    /// The same in a longer line, in which what was read begins at `offset`.
    #[must_use]
    pub fn after(mut self, offset: usize) -> Self {
        self.at = self.at.start + offset..self.at.end + offset;
        self
    }

    /// The column, from 1, counted in characters of `line`.
    pub fn column(&self, line: &str) -> usize {
        line.char_indices().take_while(|(i, _)| *i < self.at.start).count() + 1
    }

    /// What is wrong with `line`, with the column.
    pub fn message(&self, line: &str, lang: Lang) -> Msg {
        Msg::new("expr.at_column").arg("column", self.column(line)).arg("what", self.msg.render(lang))
    }
}

/// What is wrong, in English and without the column, as errors are.
impl std::fmt::Display for Slip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.msg.fmt(f)
    }
}

impl From<Msg> for Slip {
    fn from(msg: Msg) -> Self {
        Self { at: 0..0, msg }
    }
}

/// What was read, or where it ends to make sense: `usage` says what would.
fn read<'a, T>(
    text: &'a str,
    usage: &'static str,
    mut parser: impl FnMut(&mut Input<'a>) -> Out<T>,
) -> Result<T, Slip> {
    let mut input = LocatingSlice::new(text);
    let read = parser(&mut input).and_then(|out| end(&mut input).map(|()| out));
    read.map_err(|_| {
        let at = input.current_token_start();
        let msg = Msg::new("tui.error.value").arg("value", escape(text)).arg("usage", usage);
        Slip::new(at..text.len().max(at + 1), msg)
    })
}

fn end(input: &mut Input<'_>) -> Out<()> {
    (multispace0, eof).void().parse_next(input)
}

/// A command line: the command's word, and the argument with its position.
pub fn command(line: &str) -> (Range<usize>, Range<usize>) {
    let start = line.len() - line.trim_start().len();
    let end = line[start..].find(char::is_whitespace).map_or(line.len(), |n| start + n);
    let argument = end + (line[end..].len() - line[end..].trim_start().len());
    (start..end, argument..line.trim_end().len().max(argument))
}

fn number(input: &mut Input<'_>) -> Out<u32> {
    dec_uint.parse_next(input)
}

/// `23`, `40.1`.
///
/// # Errors
/// Where it is no number.
pub fn numbers(text: &str, usage: &'static str) -> Result<Vec<u32>, Slip> {
    read(text, usage, |i| separated(1.., number, '.').parse_next(i))
}

/// `+2`, `-3`.
///
/// # Errors
/// Where it is no distance.
pub fn distance(text: &str, usage: &'static str) -> Result<i32, Slip> {
    read(text, usage, |i| {
        let (sign, n) = (alt(('+', '-')), number).parse_next(i)?;
        let n = i32::try_from(n).map_err(|_| ErrMode::Backtrack(ContextError::new()))?;
        Ok(if sign == '-' { -n } else { n })
    })
}

/// `[2,0]` or `[2][0]`, as often as it comes.
fn index(input: &mut Input<'_>) -> Out<Vec<usize>> {
    let place = delimited(multispace0, digit1.parse_to::<usize>(), multispace0);
    let places = separated(1.., place, ',').map(|places: Vec<usize>| places);
    let brackets = delimited('[', cut_err(places), cut_err(']'));
    repeat(0.., brackets).map(|all: Vec<Vec<usize>>| all.concat()).parse_next(input)
}

/// A name and a cell where one is named: `Q1[2,0]`, `"∂L/∂score1"[0][1]`, `masked softmax`.
///
/// # Errors
/// Where it is none.
pub fn place(text: &str, usage: &'static str) -> Result<(String, Vec<usize>), Slip> {
    read(text, usage, |i| {
        let quoted = delimited('"', take_till(1.., '"'), '"').map(|name: &str| name.to_owned());
        let bare = |name: &str| !name.trim().is_empty() && !name.starts_with('"');
        let plain = take_till(1.., '[').verify(bare).map(|name: &str| name.trim().to_owned());
        (alt((quoted, plain)), preceded(multispace0, index)).parse_next(i)
    })
}

/// A flag of a command: `--name value`, `--name=value`; the value is the rest up to the next flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag<'a> {
    /// Its name, with its position.
    pub name: (&'a str, Range<usize>),
    /// Its value, trimmed, with its position; empty where there is none.
    pub value: (&'a str, Range<usize>),
}

/// Text, then flags. Text and values may have spaces in them.
///
/// # Errors
/// A flag without a name.
pub fn flags<'a>(text: &'a str, usage: &'static str) -> Result<(&'a str, Vec<Flag<'a>>), Slip> {
    // Up to a flag: two dashes after a blank.
    #[expect(clippy::unnecessary_wraps, reason = "the form of a parser")]
    fn chunk<'a>(input: &mut Input<'a>) -> Out<&'a str> {
        let whole: &'a str = **input;
        let mut dashes = whole.match_indices("--").map(|(at, _)| at);
        let flag = dashes.find(|at| *at == 0 || whole[..*at].ends_with(char::is_whitespace));
        Ok(input.next_slice(flag.unwrap_or(whole.len())))
    }
    fn flag<'a>(input: &mut Input<'a>) -> Out<Flag<'a>> {
        let name = preceded("--", take_while(1.., |c: char| c != '=' && !c.is_whitespace())).with_span();
        let (name, (), (value, at)) = (name, (opt('='), multispace0).void(), chunk.with_span()).parse_next(input)?;
        let value = value.trim_end();
        Ok(Flag { name, value: (value, at.start..at.start + value.len()) })
    }
    read(text, usage, |i| {
        let before = chunk(i)?.trim();
        Ok((before, repeat(0.., flag).parse_next(i)?))
    })
}

/// Options at the end of a text that may hold any words, such as `max(Q1 - K1) depth 3 most all`: their names and values
/// with the values' positions, and where the text ends.
pub fn options<'a>(text: &'a str, names: &[&'static str]) -> (&'a str, Vec<(&'static str, &'a str, Range<usize>)>) {
    let mut found = Vec::new();
    let mut end = text.trim_end().len();
    loop {
        let mut words = text[..end].rsplitn(3, char::is_whitespace);
        let (Some(value), Some(name)) = (words.next(), words.next()) else { break };
        let Some(name) = names.iter().find(|n| **n == name) else { break };
        let before = words.next().unwrap_or("");
        found.push((*name, value, end - value.len()..end));
        end = before.trim_end().len();
    }
    found.reverse();
    (text[..end].trim(), found)
}

/// The candidates that a shortened command word may be: the only one, or why there is none.
///
/// # Errors
/// None or several begin so.
pub fn unique<'n>(word: &str, names: impl Iterator<Item = &'n str> + Clone) -> Result<&'n str, Msg> {
    let begins: Vec<&str> = names.clone().filter(|n| !word.is_empty() && n.starts_with(word)).collect();
    match begins[..] {
        [one] => Ok(one),
        [] => Err(match crate::text::nearest(word, names) {
            Some(near) => Msg::new("tui.error.action_near").arg("near", near),
            None => Msg::new("tui.error.action"),
        }
        .arg("name", escape(word))),
        _ => Err(Msg::new("tui.error.action_ambiguous").arg("name", escape(word)).arg("all", begins.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_flags_and_options() {
        assert_eq!(place(" Q1 [2, 0]", ""), Ok(("Q1".to_owned(), vec![2, 0])));
        assert_eq!(place("\"a[b\"[1][2]", ""), Ok(("a[b".to_owned(), vec![1, 2])));
        assert_eq!(place("Q1[0,a]", "").unwrap_err().at.start, 4);
        assert_eq!(numbers("40.1", ""), Ok(vec![40, 1]));
        assert_eq!(distance("-3", ""), Ok(-3));
        assert!(distance("+4294967295", "").is_err());
        let (before, flags) = flags("a b --x 1 2 --y=3 --z", "").unwrap();
        let values: Vec<_> = flags.iter().map(|f| (f.name.0, f.value.0)).collect();
        assert_eq!((before, values), ("a b", vec![("x", "1 2"), ("y", "3"), ("z", "")]));
        let (text, found) = options("depth of Q1 depth 2", &["depth"]);
        assert_eq!((text, found), ("depth of Q1", vec![("depth", "2", 18..19)]));
    }

    #[test]
    fn columns_are_characters() {
        let slip = Slip::new("水 ".len().."水 x".len(), Msg::new("tui.error.action"));
        assert_eq!(slip.column("水 x"), 3);
    }
}
