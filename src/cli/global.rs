//! The options that all commands share, and the language these are read in.

use std::ffi::OsString;

use clap::Args;

use super::value;
use crate::session::Session;
use crate::tensor::Precision;
use crate::text::{Lang, NumberFormat};
use crate::trace::{RoundMode, Rounding};

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
pub struct Global {
    #[arg(long, global = true, value_name = "LANG")]
    pub(super) lang: Option<value::LangName>,
    /// When to use colours.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: value::ColorWhen,
    #[arg(long, global = true, value_name = "TYPE")]
    pub(super) precision: Option<value::PrecisionName>,
    /// Round every number before it is used.
    #[arg(long, global = true, value_name = "HOW", value_parser = value::round, hide_possible_values = true)]
    pub(super) round: Option<RoundMode>,
    #[arg(long, global = true, value_name = "N", value_parser = value::digits, conflicts_with = "number_format")]
    pub(super) digits: Option<NumberFormat>,
    #[arg(long, global = true, value_name = "FORMAT", value_parser = value::number_format)]
    pub(super) number_format: Option<NumberFormat>,
    /// Bytes of computed values that a run keeps.
    #[arg(long, global = true, value_name = "SIZE", value_parser = value::bytes)]
    pub budget: Option<u64>,
    #[arg(short, long, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

impl Global {
    /// The language asked for, if any.
    pub fn lang(&self) -> Option<Lang> {
        self.lang.map(Into::into)
    }

    /// The number type asked for; otherwise the scenario decides.
    pub fn precision(&self) -> Option<Precision> {
        self.precision.map(Into::into)
    }

    /// How to round every number before it is used.
    pub fn round(&self) -> RoundMode {
        self.round.unwrap_or_default()
    }

    /// The same as decimals or a number type; nothing where runs are exact.
    pub fn rounding(&self) -> Option<Rounding> {
        self.round().at(match self.number().unwrap_or_default() {
            NumberFormat::Decimals(d) | NumberFormat::Scientific(d) => d,
            NumberFormat::Shortest | NumberFormat::Bits => 4,
        })
    }

    /// How numbers of a session print: as asked for, else with the scenario's own number of decimals.
    pub fn number_of(&self, session: &Session) -> Option<NumberFormat> {
        self.number().or(session.decimals())
    }

    /// How to print numbers for people, if asked for.
    pub fn number(&self) -> Option<NumberFormat> {
        self.digits.or(self.number_format)
    }
}

/// The language of the arguments themselves: `--lang`, else the locale. Read before parsing, because help and
/// usage errors are texts too.
pub fn language(raw: &[OsString]) -> Lang {
    named_language(raw).unwrap_or_else(|| {
        let locale = sys_locale::get_locale().unwrap_or_default();
        lang_of_locale(&locale)
    })
}

/// Chinese for `zh`, `zh-CN`, `zh_TW.UTF-8` and the like, else English.
fn lang_of_locale(locale: &str) -> Lang {
    let first = locale.split(['-', '_', '.', '@']).next().unwrap_or("");
    if first.eq_ignore_ascii_case("zh") { Lang::Zh } else { Lang::En }
}

fn named_language(raw: &[OsString]) -> Option<Lang> {
    let mut words = raw.iter().skip(1).take_while(|w| w.as_os_str() != "--");
    let mut found = None;
    while let Some(word) = words.next() {
        let name = match word.to_str() {
            Some("--lang") => words.next().and_then(|w| w.to_str()),
            Some(word) => word.strip_prefix("--lang="),
            None => None,
        };
        found = match name {
            Some("zh") => Some(Lang::Zh),
            Some("en") => Some(Lang::En),
            _ => found,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_of_arguments_and_locale() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        for (line, lang) in [
            ("tt --lang zh steps x", Some(Lang::Zh)),
            ("tt steps x --lang=en", Some(Lang::En)),
            ("tt --lang en --lang zh", Some(Lang::Zh)),
            ("tt --lang fr", None),
            ("tt -- --lang zh", None),
            ("tt --lang", None),
        ] {
            assert_eq!(named_language(&words(line)), lang, "{line}");
        }
        for (locale, lang) in [
            ("zh-CN", Lang::Zh),
            ("zh_TW.UTF-8", Lang::Zh),
            ("zh", Lang::Zh),
            ("en-US", Lang::En),
            ("C", Lang::En),
            ("", Lang::En),
            ("zha", Lang::En),
        ] {
            assert_eq!(lang_of_locale(locale), lang, "{locale}");
        }
    }
}
