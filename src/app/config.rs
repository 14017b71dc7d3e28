//! The user's configuration: a RON file in the platform's place. Unknown names are warned of with the nearest
//! known one, and the rest of the file still counts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;

use super::hint::nearest;
use crate::text::{Lang, Msg, NumberFormat, tr};

/// Names of the themes that come with the program.
pub const THEMES: [&str; 4] = ["dark", "light", "high-contrast", "monochrome"];

macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$vmeta:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$vmeta])* $variant,)* }

        impl $type {
            /// All values.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$variant),*];

            /// Its name in files and on the command line.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }

            /// The next value, around.
            #[must_use]
            pub fn next(self) -> Self {
                let at = Self::ALL.iter().position(|v| *v == self).unwrap_or(0);
                Self::ALL[(at + 1) % Self::ALL.len()]
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = Msg;
            fn from_str(text: &str) -> Result<Self, Msg> {
                Self::ALL.into_iter().find(|v| v.name() == text).ok_or_else(|| {
                    Msg::new("tui.error.value")
                        .arg("value", text)
                        .arg("usage", Self::ALL.map(Self::name).join(" | "))
                })
            }
        }
    };
}

named! {
    /// Which glyphs a terminal can be trusted with.
    GlyphSet {
        /// Box drawing, eighth blocks, braille.
        #[default]
        Unicode "unicode",
        /// Only glyphs that CJK terminals also draw one cell wide.
        CjkSafe "cjk-safe",
        /// ASCII only.
        Ascii "ascii",
    }
}

named! {
    /// Over what the colour scale runs.
    ScaleMode {
        /// Each tensor has its own range.
        #[default]
        Tensor "tensor",
        /// All tensors of a step share one range.
        Step "step",
    }
}

named! {
    /// What colours a terminal is given.
    ColorMode {
        /// What the environment says.
        #[default]
        Auto "auto",
        /// No colours (attributes stay).
        Never "never",
        /// The 16 of the palette.
        Ansi16 "16",
        /// The 256 of xterm.
        Ansi256 "256",
        /// 24 bit.
        Truecolor "truecolor",
    }
}

/// Name of a language in files and on the command line.
pub fn lang_name(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "en",
        Lang::Zh => "zh",
    }
}

/// Reads a language name; locale forms such as `zh-CN` are accepted.
///
/// # Errors
/// Neither English nor Chinese.
pub fn parse_lang(text: &str) -> Result<Lang, Msg> {
    match text.split(['-', '_', '.']).next() {
        Some("zh") => Ok(Lang::Zh),
        Some("en") => Ok(Lang::En),
        _ => Err(Msg::new("tui.error.value")
            .arg("value", text)
            .arg("usage", "en | zh")),
    }
}

/// What a configuration file may say; absent entries keep their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Language; from the locale where absent.
    pub language: Option<Lang>,
    /// Theme, by name.
    pub theme: Option<String>,
    /// Glyph set.
    pub glyphs: Option<GlyphSet>,
    /// How numbers print.
    pub digits: Option<NumberFormat>,
    /// Range of the colour scale.
    pub scale: Option<ScaleMode>,
    /// Colours.
    pub color: Option<ColorMode>,
    /// Mouse capture from the start.
    pub mouse: Option<bool>,
    /// Keys by context; see `keymap`.
    pub keys: BTreeMap<String, BTreeMap<String, String>>,
}

const FIELDS: [&str; 8] = [
    "language", "theme", "glyphs", "digits", "scale", "color", "mouse", "keys",
];

/// The template's frame; descriptions come from the catalogue.
const TEMPLATE: &str = include_str!("../../assets/config.template.ron");

impl Config {
    /// Reads a configuration. What cannot be used is left out and told of in the warnings.
    ///
    /// # Errors
    /// The file is no RON map at all (message with line and column).
    pub fn parse(source: &str) -> Result<(Self, Vec<Msg>), Msg> {
        let map: BTreeMap<String, ron::Value> = ron::from_str(source).map_err(|e| {
            Msg::new("tui.config.syntax")
                .arg("line", e.span.start.line)
                .arg("column", e.span.start.col)
                .arg("error", e.code)
        })?;
        let mut config = Self::default();
        let mut warnings = Vec::new();
        for (name, value) in map {
            let result = match name.as_str() {
                "language" => word(value, parse_lang).map(|v| config.language = Some(v)),
                "theme" => word(value, |t| Ok(t.to_owned())).map(|v| config.theme = Some(v)),
                "glyphs" => word(value, str::parse).map(|v| config.glyphs = Some(v)),
                "digits" => word(value, NumberFormat::parse).map(|v| config.digits = Some(v)),
                "scale" => word(value, str::parse).map(|v| config.scale = Some(v)),
                "color" => word(value, str::parse).map(|v| config.color = Some(v)),
                "mouse" => bool::deserialize(value)
                    .map(|v| config.mouse = Some(v))
                    .map_err(|_| "true | false".to_owned()),
                "keys" => BTreeMap::deserialize(value)
                    .map(|v| config.keys = v)
                    .map_err(|_| r#"{"global": {"ctrl-n": "next"}}"#.to_owned()),
                _ => {
                    warnings.push(
                        match nearest(&name, FIELDS) {
                            Some(near) => Msg::new("tui.config.unknown_near").arg("near", near),
                            None => Msg::new("tui.config.unknown").arg("all", FIELDS.join(", ")),
                        }
                        .arg("name", &name),
                    );
                    continue;
                }
            };
            if let Err(usage) = result {
                warnings.push(
                    Msg::new("tui.config.value")
                        .arg("name", &name)
                        .arg("usage", usage),
                );
            }
        }
        Ok((config, warnings))
    }

    /// Where the file lies on this platform; `None` where there is no home.
    pub fn path() -> Option<PathBuf> {
        use etcetera::BaseStrategy;
        let base = etcetera::choose_base_strategy().ok()?;
        Some(base.config_dir().join("tui-transformer").join("config.ron"))
    }

    /// A commented file with every entry, to start from.
    pub fn template(lang: Lang) -> String {
        let mut out = format!("// {}\n", tr(lang, "tui.config.about"));
        for line in TEMPLATE.lines() {
            if let Some(field) = line
                .trim_start()
                .trim_start_matches("// ")
                .strip_prefix('"')
                .and_then(|l| l.split('"').next())
                .filter(|f| FIELDS.contains(f))
            {
                let about = tr(lang, &format!("tui.config.field.{field}"));
                out.extend(["    // ", about, "\n"]);
            }
            out.push_str(line);
            out.push('\n');
        }
        out
    }
}

/// A string or a number, read as a word.
fn word<T>(value: ron::Value, parse: impl Fn(&str) -> Result<T, Msg>) -> Result<T, String> {
    let text = match value {
        ron::Value::String(s) => s,
        ron::Value::Number(n) => n.into_f64().to_string(),
        _ => return Err("\"…\"".to_owned()),
    };
    parse(&text).map_err(|m| {
        m.args
            .into_iter()
            .find(|a| a.0 == "usage")
            .map_or_else(String::new, |a| a.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_can_and_warns_of_the_rest() {
        let (config, warnings) = Config::parse(
            r#"{ "language": "zh-CN", "digits": 6, "glyphs": "asci", "them": "light",
                 "mouse": 1, "keys": {"global": {"ctrl-n": "next"}}, "quux": 3 }"#,
        )
        .unwrap();
        assert_eq!(config.language, Some(Lang::Zh));
        assert_eq!(config.digits, Some(NumberFormat::Decimals(6)));
        assert_eq!(config.keys["global"]["ctrl-n"], "next");
        let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts.iter().any(|t| t.contains("theme")), "{texts:?}");
        assert!(texts.iter().any(|t| t.contains("cjk-safe")), "{texts:?}");
        assert!(texts.iter().any(|t| t.contains("quux")), "{texts:?}");
    }

    #[test]
    fn a_broken_file_says_where() {
        let error = Config::parse("{\n \"theme\": \"dark\n").unwrap_err();
        assert_eq!(error.key, "tui.config.syntax");
        assert!(error.args.iter().any(|a| a.0 == "line"));
    }

    #[test]
    fn the_template_is_a_good_file_with_every_field() {
        for lang in [Lang::En, Lang::Zh] {
            let template = Config::template(lang);
            let (config, warnings) = Config::parse(&template).unwrap();
            assert_eq!(warnings, [], "{template}");
            assert_eq!(config, Config::default(), "the template changes nothing");
            let active: String = template
                .lines()
                .map(str::trim_start)
                .map(|l| {
                    if l.starts_with("// \"") || l.starts_with("//     ") || l.starts_with("// }") {
                        &l[3..]
                    } else {
                        l
                    }
                })
                .fold(String::new(), |all, l| all + l + "\n");
            let (_, warnings) = Config::parse(&active).unwrap_or_else(|e| panic!("{e}\n{active}"));
            assert_eq!(warnings, [], "{active}");
            for field in FIELDS {
                assert!(active.contains(&format!("\"{field}\":")), "{field}");
            }
        }
    }
}
