//! Arguments of actions: typed once, parsed from and printed to the command line.

mod compare;
mod runs;
mod texts;

use super::grammar::{self, Slip};
use super::hint::not_one_of;
use super::settings::{self, ColorMode, GlyphSet, ScaleMode, Settings};
use super::view::View;
use crate::text::{Lang, Msg, NumberFormat, escape, nearest};
use crate::trace::RoundMode;

pub use compare::CompareArgs;
pub use runs::{Sides, Train, UpdateNumber};
pub use texts::{BreakSpec, Change, Expression, FileName, RunName, Sentence, SourceLine, Text, TreeArgs};

/// What completes an argument besides its fixed words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// Nothing.
    Words,
    /// Symbols and paths of the run.
    Places,
    /// Names and functions, in its last word.
    Expression,
    /// Names of runs.
    Runs,
}

/// The argument of an action.
pub trait Arg: Sized {
    /// How it is written, for help.
    const USAGE: &'static str;
    /// Whether it may be left out.
    const OPTIONAL: bool = false;
    /// Reads it; `text` is trimmed.
    ///
    /// # Errors
    /// Text that does not fit, with what would.
    fn parse(text: &str) -> Result<Self, Slip>;
    /// Writes it so that [`Arg::parse`] reads it back.
    fn print(&self) -> String;
    /// What completes it besides its words.
    const COMPLETES: Completes = Completes::Words;
    /// The fixed words it may be, for completion.
    fn words() -> Vec<String> {
        Vec::new()
    }
}

fn bad(text: &str, usage: &'static str) -> Slip {
    Slip::new(0..text.len(), Msg::new("tui.error.value").arg("value", escape(text)).arg("usage", usage))
}

/// Which step: a number (`23`), a sub-step (`40.1`), or a distance (`+2`, `-3`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepTarget {
    /// Numbers, outermost first.
    Number(Vec<u32>),
    /// So many steps on (or back, where negative).
    Relative(i32),
}

impl Arg for StepTarget {
    const USAGE: &'static str = "N | N.M | +N | -N";
    fn parse(text: &str) -> Result<Self, Slip> {
        if text.starts_with(['+', '-']) {
            grammar::distance(text, Self::USAGE).map(Self::Relative)
        } else {
            grammar::numbers(text, Self::USAGE).map(Self::Number)
        }
    }
    fn print(&self) -> String {
        match self {
            Self::Number(n) => {
                let n: Vec<_> = n.iter().map(ToString::to_string).collect();
                n.join(".")
            }
            Self::Relative(n) => format!("{n:+}"),
        }
    }
}

/// Which one of several: a number as in titles (from 1), or so many on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This one, counted from 1.
    Number(usize),
    /// So many on (or back, where negative), around.
    Relative(i32),
}

impl Arg for Choice {
    const USAGE: &'static str = "N | +N | -N";
    fn parse(text: &str) -> Result<Self, Slip> {
        if text.starts_with(['+', '-']) {
            return grammar::distance(text, Self::USAGE).map(Self::Relative);
        }
        match grammar::numbers(text, Self::USAGE)?[..] {
            [n] => Ok(Self::Number(n as usize)),
            _ => Err(bad(text, Self::USAGE)),
        }
    }
    fn print(&self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Relative(n) => format!("{n:+}"),
        }
    }
    fn words() -> Vec<String> {
        ["+1", "-1"].map(str::to_owned).into()
    }
}

/// A place by name, with a cell where one is named: `Q1[2,0]`, `encoder.0.self_attn.q`, `5.10`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Symbol, path, section, step number or part of a title.
    pub name: String,
    /// Index of a cell; empty for none.
    pub index: Vec<usize>,
}

impl Arg for Place {
    const USAGE: &'static str = "NAME | NAME[I,J]";
    const COMPLETES: Completes = Completes::Places;
    fn parse(text: &str) -> Result<Self, Slip> {
        grammar::place(text, Self::USAGE).map(|(name, index)| Self { name, index })
    }
    fn print(&self) -> String {
        let name = if self.name.contains('[') { format!("\"{}\"", self.name) } else { self.name.clone() };
        if self.index.is_empty() {
            return name;
        }
        let index: Vec<_> = self.index.iter().map(ToString::to_string).collect();
        format!("{name}[{}]", index.join(","))
    }
}

/// Speed of auto-play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Faster.
    Up,
    /// Slower.
    Down,
    /// Steps a second.
    PerSecond(f64),
}

impl Arg for Speed {
    const USAGE: &'static str = "up | down | STEPS_PER_SECOND";
    fn parse(text: &str) -> Result<Self, Slip> {
        match text {
            "up" => Ok(Self::Up),
            "down" => Ok(Self::Down),
            _ => match text.parse::<f64>() {
                Ok(s) if s.is_finite() && s > 0.0 => Ok(Self::PerSecond(s)),
                _ => Err(bad(text, Self::USAGE)),
            },
        }
    }
    fn print(&self) -> String {
        match self {
            Self::Up => "up".to_owned(),
            Self::Down => "down".to_owned(),
            Self::PerSecond(s) => s.to_string(),
        }
    }
    fn words() -> Vec<String> {
        ["up", "down", "1", "2", "4", "8"].map(str::to_owned).into()
    }
}

impl Arg for View {
    const USAGE: &'static str = View::USAGE;
    fn parse(text: &str) -> Result<Self, Slip> {
        Self::ALL.iter().find(|v| v.name() == text).copied().ok_or_else(|| bad(text, Self::USAGE))
    }
    fn print(&self) -> String {
        self.name().to_owned()
    }
    fn words() -> Vec<String> {
        Self::ALL.iter().map(|v| v.name().to_owned()).collect()
    }
}

/// What to export: `[FORMAT] [RANGE] [PATH]`, each where given; nothing given opens the form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportArgs {
    /// Name of the format.
    pub format: Option<String>,
    /// `23`, `1..5` or `all`; the current step where absent.
    pub range: Option<String>,
    /// Where to; standard name in the current directory where absent.
    pub path: Option<String>,
}

/// Formats of export, as `export --format` names them.
pub const FORMATS: [&str; 9] = ["text", "md", "csv", "tsv", "json", "latex", "html", "typst", "ipynb"];

impl Arg for ExportArgs {
    const USAGE: &'static str = "[FORMAT] [N|A..B|all] [PATH]";
    const OPTIONAL: bool = true;
    fn parse(text: &str) -> Result<Self, Slip> {
        let mut args = Self::default();
        let mut rest = text;
        loop {
            let word = rest.split_whitespace().next().unwrap_or("");
            if word.is_empty() {
                return Ok(args);
            }
            let range = word == "all"
                || word.starts_with(|c: char| c.is_ascii_digit())
                    && word.chars().all(|c| c.is_ascii_digit() || c == '.');
            if args.format.is_none() && FORMATS.contains(&word) {
                args.format = Some(word.to_owned());
            } else if args.range.is_none() && range {
                args.range = Some(word.to_owned());
            } else {
                // A lone word without a dot is a slip in a format, not a file.
                if rest == word && !word.contains(['.', '/', '\\']) {
                    let msg = Msg::new("tui.error.format").arg("name", escape(word)).arg("all", FORMATS.join(", "));
                    return Err(Slip::new(text.len() - word.len()..text.len(), msg));
                }
                // A path may hold spaces: it is the rest of the line.
                args.path = Some(rest.to_owned());
                return Ok(args);
            }
            rest = rest[word.len()..].trim_start();
        }
    }
    fn print(&self) -> String {
        let parts = [&self.format, &self.range, &self.path];
        let parts: Vec<_> = parts.into_iter().flatten().map(String::as_str).collect();
        parts.join(" ")
    }
    fn words() -> Vec<String> {
        FORMATS.map(str::to_owned).into()
    }
}

/// One setting and its new value.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// Language of all text.
    Lang(Lang),
    /// Theme, by name.
    Theme(String),
    /// Glyph set.
    Glyphs(GlyphSet),
    /// How numbers print.
    Digits(NumberFormat),
    /// Range of the colour scale.
    Scale(ScaleMode),
    /// Colours a terminal is given.
    Color(ColorMode),
    /// Mouse capture.
    Mouse(bool),
    /// Logarithmic colours.
    Log(bool),
    /// Round each step.
    Rounding(RoundMode),
    /// Cells may be computed before one's eyes.
    Motion(bool),
    /// Say what this setting is now, and what it may be.
    Show(&'static str),
}

impl Setting {
    /// The setting of this name as it is.
    pub fn now(name: &str, settings: &Settings) -> Self {
        match name {
            "lang" => Setting::Lang(settings.lang),
            "theme" => Setting::Theme(settings.theme.clone()),
            "glyphs" => Setting::Glyphs(settings.glyphs),
            "digits" => Setting::Digits(settings.digits),
            "scale" => Setting::Scale(settings.scale),
            "color" => Setting::Color(settings.color),
            "mouse" => Setting::Mouse(settings.mouse),
            "log" => Setting::Log(settings.log_scale),
            "motion" => Setting::Motion(settings.motion),
            _ => Setting::Rounding(settings.rounding),
        }
    }

    /// What a setting may be.
    pub fn choices(name: &str) -> String {
        if name == "digits" {
            return format!("0–{} | sciN | full | hex", crate::text::number::MAX_DIGITS);
        }
        let words = Self::words();
        let values = words.iter().filter_map(|w| w.split_once(' '));
        let values = values.filter(|(setting, _)| *setting == name);
        values.map(|(_, value)| value).collect::<Vec<_>>().join(" | ")
    }
}

/// Names of the settings.
pub const SETTINGS: [&str; 10] =
    ["lang", "theme", "glyphs", "digits", "scale", "color", "mouse", "log", "rounding", "motion"];

fn on_off(text: &str) -> Result<bool, Msg> {
    match text {
        "on" | "yes" | "true" => Ok(true),
        "off" | "no" | "false" => Ok(false),
        _ => Err(not_one_of(text, &["on", "off"])),
    }
}

/// How to round; `on` is as `steps`.
fn rounding(text: &str) -> Result<RoundMode, Msg> {
    match text {
        "on" => Ok(RoundMode::Steps),
        "off" => Ok(RoundMode::Exact),
        text => text.parse().map_err(|()| not_one_of(text, &RoundMode::NAMES)),
    }
}

/// How numbers are rounded: `exact`, `steps`, or a number type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub RoundMode);

impl Arg for Mode {
    const USAGE: &'static str = "exact | steps | bf16 | f16 | fp8_e4m3 | fp8_e5m2 | tf32";
    fn parse(text: &str) -> Result<Self, Slip> {
        rounding(text).map(Self).map_err(|msg| Slip::new(0..text.len(), msg))
    }
    fn print(&self) -> String {
        self.0.name().to_owned()
    }
    fn words() -> Vec<String> {
        RoundMode::NAMES.map(str::to_owned).into()
    }
}

/// The name of a setting by one of its spellings.
fn setting_name(name: &str) -> Result<&'static str, Msg> {
    let name = match name {
        "language" => "lang",
        "precision" => "digits",
        "colour" => "color",
        name => name,
    };
    let known = SETTINGS.into_iter().find(|s| *s == name);
    known.ok_or_else(|| {
        match nearest(name, SETTINGS) {
            Some(near) => Msg::new("tui.error.setting_near").arg("near", near),
            None => Msg::new("tui.error.setting").arg("all", SETTINGS.join(", ")),
        }
        .arg("name", name)
    })
}

impl Arg for Setting {
    const USAGE: &'static str =
        "lang | theme | glyphs | digits | scale | color | mouse | log | rounding | motion  [VALUE]";
    fn parse(text: &str) -> Result<Self, Slip> {
        let (name, value) =
            text.split_once(|c: char| c.is_whitespace() || c == '=').map_or((text, ""), |(n, v)| (n, v.trim()));
        let name = setting_name(name).map_err(|msg| Slip::new(0..name.len(), msg))?;
        let value_at = |msg| Slip::new(text.len() - value.len()..text.len(), msg);
        if value.is_empty() {
            return Ok(Self::Show(name));
        }
        let read = |name| -> Result<Self, Msg> {
            Ok(match name {
                "lang" => Self::Lang(settings::parse_lang(value)?),
                "theme" => Self::Theme(settings::parse_theme(value)?),
                "glyphs" => Self::Glyphs(value.parse()?),
                "digits" => Self::Digits(NumberFormat::parse(value)?),
                "scale" => Self::Scale(value.parse()?),
                "color" => Self::Color(value.parse()?),
                "mouse" => Self::Mouse(on_off(value)?),
                "log" => Self::Log(on_off(value)?),
                "motion" => Self::Motion(on_off(value)?),
                _ => Self::Rounding(rounding(value)?),
            })
        };
        read(name).map_err(value_at)
    }
    fn print(&self) -> String {
        let on = |b: &bool| if *b { "on" } else { "off" };
        match self {
            Self::Lang(l) => format!("lang {}", settings::lang_name(*l)),
            Self::Theme(t) => format!("theme {t}"),
            Self::Glyphs(g) => format!("glyphs {g}"),
            Self::Digits(d) => format!("digits {}", d.name()),
            Self::Scale(s) => format!("scale {s}"),
            Self::Color(c) => format!("color {c}"),
            Self::Mouse(b) => format!("mouse {}", on(b)),
            Self::Log(b) => format!("log {}", on(b)),
            Self::Rounding(mode) => format!("rounding {}", mode.name()),
            Self::Motion(b) => format!("motion {}", on(b)),
            Self::Show(name) => (*name).to_owned(),
        }
    }
    fn words() -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |name: &str, values: &[&str]| {
            words.extend(values.iter().map(|v| format!("{name} {v}")));
        };
        add("lang", &["en", "zh"]);
        add("theme", &settings::THEMES);
        add("glyphs", &GlyphSet::names());
        add("digits", &["0", "2", "4", "8", "17", "sci4", "full", "hex"]);
        add("scale", &ScaleMode::names());
        add("color", &ColorMode::names());
        for name in ["mouse", "log", "motion"] {
            add(name, &["on", "off"]);
        }
        add("rounding", &RoundMode::NAMES);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let p = Place::parse("Q1[2][0]").unwrap();
        assert_eq!((p.name.as_str(), p.index.as_slice()), ("Q1", &[2, 0][..]));
        assert!(Place::parse("masked softmax").unwrap().index.is_empty());
        let p = Place::parse("\"∂L/∂score1\"[0,1]").unwrap();
        assert_eq!((p.name.as_str(), p.index.as_slice()), ("∂L/∂score1", &[0, 1][..]));
        assert_eq!(Place::parse("\"Q1\"").unwrap().print(), "Q1");
        assert_eq!(Place::parse("\"a[b\"[1]").unwrap().print(), "\"a[b\"[1]");
        for wrong in ["", "[1]", "Q1[", "Q1[a]", "Q1[1,]", "Q1[-1]", "\"\"", "\"Q1\"x"] {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn export_arguments_in_order() {
        let e = ExportArgs::parse("json my notes/a b.json").unwrap();
        assert_eq!(e.format.as_deref(), Some("json"));
        assert_eq!(e.range, None);
        assert_eq!(e.path.as_deref(), Some("my notes/a b.json"));
        assert_eq!(ExportArgs::parse("").unwrap(), ExportArgs::default());
        for wrong in ["pdf", "md 1 pdf"] {
            let error = ExportArgs::parse(wrong).unwrap_err().msg.to_string();
            assert!(error.contains("unknown format pdf; there are text, md"), "{error}");
        }
        assert_eq!(ExportArgs::parse("./pdf").unwrap().path.as_deref(), Some("./pdf"));
    }

    #[test]
    fn settings_words_all_parse() {
        for word in Setting::words() {
            assert_eq!(Setting::parse(&word).unwrap().print(), word);
        }
        let error = Setting::parse("thme dark").unwrap_err().msg.to_string();
        assert!(error.contains("theme"), "{error}");
        assert_eq!(Setting::parse("theme"), Ok(Setting::Show("theme")));
        for wrong in ["", "digits 18", "lang fr", "mouse maybe", "theme drak"] {
            assert!(Setting::parse(wrong).is_err(), "{wrong}");
        }
    }
}
