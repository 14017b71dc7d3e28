//! Values of arguments.

use std::fmt;

use clap::ValueEnum;

use crate::export::{Format, select::Selection};
use crate::tensor::Precision;
use crate::text::{Lang, Msg, NumberFormat, escape, number::MAX_DIGITS};
use crate::trace::RoundMode;

/// A message of ours inside an error of clap's, so that it can be told in the reader's language.
#[derive(Clone, Debug)]
pub struct Localized(pub Msg);

impl fmt::Display for Localized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Localized {}

/// A language by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LangName {
    /// Chinese.
    Zh,
    /// English.
    En,
}

impl From<LangName> for Lang {
    fn from(name: LangName) -> Self {
        match name {
            LangName::Zh => Lang::Zh,
            LangName::En => Lang::En,
        }
    }
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal that has them, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A number type by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionName {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Self {
        match name {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::F64 => Precision::F64,
        }
    }
}

/// How much detail a walkthrough made from the program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DetailName {
    /// A step per head and per matrix.
    Full,
    /// Heads and matrices of one kind together.
    Grouped,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// How many derivations of a step are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derivations {
    /// One for every cell.
    All,
    /// For at most so many cells of a step; 0 is none.
    AtMost(usize),
}

impl Derivations {
    /// The most for one step.
    pub fn limit(self) -> usize {
        match self {
            Self::All => usize::MAX,
            Self::AtMost(n) => n,
        }
    }
}

/// Columns and rows of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// Largest screen a snapshot is made of: 1000 × 1000 cells are 1 million.
#[cfg(feature = "tui")]
const MAX_SIDE: u16 = 1000;

/// A number of decimals.
pub(super) fn digits(text: &str) -> Result<NumberFormat, Localized> {
    match text.trim().parse::<u8>() {
        Ok(n) if n <= MAX_DIGITS => Ok(NumberFormat::Decimals(n)),
        _ => Err(Localized(Msg::new("cli.value.digits").arg("text", escape(text)).arg("max", MAX_DIGITS))),
    }
}

/// Any number format.
pub(super) fn number_format(text: &str) -> Result<NumberFormat, Localized> {
    NumberFormat::parse(text).map_err(Localized)
}

/// How to round.
pub(super) fn round(text: &str) -> Result<RoundMode, Localized> {
    let all = RoundMode::NAMES.join(", ");
    text.trim().parse().map_err(|()| Localized(Msg::new("cli.value.round").arg("text", escape(text)).arg("all", all)))
}

/// An export format.
pub(super) fn format(text: &str) -> Result<Format, Localized> {
    Format::parse(text).map_err(Localized)
}

/// A choice of steps.
pub(super) fn selection(text: &str) -> Result<Selection, Localized> {
    Selection::parse(text).map_err(Localized)
}

/// One step, as a path of numbers.
pub(super) fn step(text: &str) -> Result<Selection, Localized> {
    match Selection::parse(text) {
        Ok(one @ Selection::One(_)) => Ok(one),
        Ok(_) => Err(Localized(Msg::new("cli.value.step").arg("text", escape(text)))),
        Err(msg) => Err(Localized(msg)),
    }
}

/// `all`, `none` or a count.
pub(super) fn derivations(text: &str) -> Result<Derivations, Localized> {
    match text.trim() {
        "all" => Ok(Derivations::All),
        "none" => Ok(Derivations::AtMost(0)),
        other => other
            .parse()
            .map(Derivations::AtMost)
            .map_err(|_| Localized(Msg::new("cli.value.derivations").arg("text", escape(text)))),
    }
}

#[cfg(feature = "tui")]
/// `120x36`.
pub(super) fn size(text: &str) -> Result<Size, Localized> {
    let side = |t: &str| t.trim().parse::<u16>().ok().filter(|&n| n <= MAX_SIDE);
    text.split_once(['x', 'X', '×'])
        .and_then(|(columns, rows)| Some(Size { columns: side(columns)?, rows: side(rows)? }))
        .ok_or_else(|| Localized(Msg::new("cli.value.size").arg("text", escape(text)).arg("max", MAX_SIDE)))
}

/// Bytes: `800M`, `2G`, `1.5 GiB`; a number alone is of bytes.
pub(super) fn bytes(text: &str) -> Result<u64, Localized> {
    let wrong = || Localized(Msg::new("cli.value.bytes").arg("text", escape(text)));
    let lower = text.trim().to_ascii_lowercase();
    let unit = lower.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let factor = match unit.trim().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1u64,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number: f64 = lower[..lower.len() - unit.len()].parse().map_err(|_| wrong())?;
    let bytes = number * factor as f64;
    if bytes.is_finite() && bytes < 2f64.powi(63) { Ok(bytes as u64) } else { Err(wrong()) }
}

/// A finite number.
pub(super) fn real(text: &str) -> Result<f64, Localized> {
    number(text, "cli.value.real", |_| true)
}

/// A finite number above zero.
pub(super) fn positive(text: &str) -> Result<f64, Localized> {
    number(text, "cli.value.positive", |x| x > 0.0)
}

/// A finite number, zero or above.
pub(super) fn not_negative(text: &str) -> Result<f64, Localized> {
    number(text, "cli.value.not_negative", |x| x >= 0.0)
}

/// A number above 0, up to 1.
pub(super) fn probability(text: &str) -> Result<f64, Localized> {
    number(text, "cli.value.probability", |x| x > 0.0 && x <= 1.0)
}

fn number(text: &str, key: &'static str, good: impl Fn(f64) -> bool) -> Result<f64, Localized> {
    match text.trim().parse::<f64>() {
        Ok(x) if x.is_finite() && good(x) => Ok(x),
        _ => Err(Localized(Msg::new(key).arg("text", escape(text)))),
    }
}

/// A whole number above zero.
pub(super) fn count(text: &str) -> Result<usize, Localized> {
    match text.trim().parse::<usize>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Localized(Msg::new("cli.value.count").arg("text", escape(text)))),
    }
}
