//! The user's configuration: a RON file in the platform's place. Unknown names are warned of with the nearest
//! known one, and the rest of the file still counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::keymap::Keymap;
use super::settings::{ColorMode, GlyphSet, ScaleMode, Settings, parse_lang, parse_theme};
use crate::text::{Lang, Msg, NumberFormat, escape, nearest, tr};

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
    /// Whether cells may be computed before one's eyes.
    pub motion: Option<bool>,
    /// Keys by context; see `keymap`.
    pub keys: BTreeMap<String, BTreeMap<String, String>>,
}

const FIELDS: [&str; 9] = ["language", "theme", "glyphs", "digits", "scale", "color", "mouse", "motion", "keys"];

/// The template's frame; descriptions come from the catalogue.
const TEMPLATE: &str = include_str!("../../assets/config.template.ron");

/// What is wrong with a part of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// The entry, where it is a known one.
    pub entry: Option<&'static str>,
    /// What is wrong.
    pub why: Msg,
}

impl Warning {
    fn of(entry: &'static str, why: Msg) -> Self {
        Self { entry: Some(entry), why }
    }

    /// The whole of it, for the reader of a file of this name.
    pub fn msg(&self, file: &str, lang: Lang) -> Msg {
        match self.entry {
            Some(entry) => Msg::new("tui.config.wrong_entry").arg("entry", entry),
            None => Msg::new("tui.config.wrong"),
        }
        .arg("file", escape(file))
        .arg("why", self.why.render(lang))
    }
}

impl Config {
    /// Reads a configuration. What cannot be used is left out and reported in the warnings.
    ///
    /// # Errors
    /// The file is no RON map at all (message with line and column).
    pub fn parse(source: &str) -> Result<(Self, Vec<Warning>), Msg> {
        let map: BTreeMap<String, ron::Value> = ron::from_str(source).map_err(|e| {
            Msg::new("tui.config.syntax")
                .arg("line", e.span.start.line)
                .arg("column", e.span.start.col)
                .arg("error", e.code)
        })?;
        let mut config = Self::default();
        let mut warnings = Vec::new();
        for (name, value) in map {
            match FIELDS.into_iter().find(|f| *f == name) {
                Some(field) => {
                    if let Err(why) = config.take(field, value) {
                        warnings.push(Warning::of(field, why));
                    }
                }
                None => warnings.push(Warning { entry: None, why: unknown(&name) }),
            }
        }
        Ok((config, warnings))
    }

    /// Takes over the value of one entry.
    fn take(&mut self, field: &str, value: ron::Value) -> Result<(), Msg> {
        match field {
            "language" => self.language = Some(parse_lang(&word(value)?)?),
            "theme" => self.theme = Some(parse_theme(&word(value)?)?),
            "glyphs" => self.glyphs = Some(word(value)?.parse()?),
            "digits" => self.digits = Some(NumberFormat::parse(&word(value)?)?),
            "scale" => self.scale = Some(word(value)?.parse()?),
            "color" => self.color = Some(word(value)?.parse()?),
            "mouse" => {
                let on = bool::deserialize(value);
                self.mouse = Some(on.map_err(|_| must_be("true | false"))?);
            }
            "motion" => {
                let on = bool::deserialize(value);
                self.motion = Some(on.map_err(|_| must_be("true | false"))?);
            }
            _ => {
                let keys = BTreeMap::deserialize(value);
                self.keys = keys.map_err(|_| must_be(r#"{"global": {"ctrl-n": "next"}}"#))?;
            }
        }
        Ok(())
    }

    /// Takes over what a configuration file says.
    pub fn apply(&self, settings: &mut Settings) {
        settings.lang = self.language.unwrap_or(settings.lang);
        settings.theme = self.theme.clone().unwrap_or_else(|| settings.theme.clone());
        settings.glyphs = self.glyphs.unwrap_or(settings.glyphs);
        settings.digits = self.digits.unwrap_or(settings.digits);
        settings.scale = self.scale.unwrap_or(settings.scale);
        settings.color = self.color.unwrap_or(settings.color);
        settings.mouse = self.mouse.unwrap_or(settings.mouse);
        settings.motion = self.motion.unwrap_or(settings.motion);
    }

    /// The keys of the program with these on top, and what is wrong with them.
    pub fn keymap(&self) -> (Keymap, Vec<Warning>) {
        let (keymap, wrong) = Keymap::with_user(&self.keys);
        let warnings = wrong.into_iter().map(|why| Warning::of("keys", why));
        (keymap, warnings.collect())
    }

    /// Where the file lies on this platform; `None` where there is no home.
    pub fn path() -> Option<PathBuf> {
        use etcetera::BaseStrategy;
        let base = etcetera::choose_base_strategy().ok()?;
        Some(base.config_dir().join("tui-transformer").join("config.ron"))
    }

    /// A commented file with every entry, to start from; it says that it belongs to `path`.
    pub fn template(path: Option<&Path>, lang: Lang) -> String {
        let mut out = format!("// {}\n", tr(lang, "tui.config.about"));
        if let Some(path) = path {
            let place = Msg::new("tui.config.place").arg("path", escape(&path.to_string_lossy()));
            out.extend(["// ", &place.render(lang), "\n"]);
        }
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
fn word(value: ron::Value) -> Result<String, Msg> {
    match value {
        ron::Value::String(s) => Ok(s),
        ron::Value::Number(n) => Ok(n.into_f64().to_string()),
        _ => Err(must_be("\"…\"")),
    }
}

fn must_be(usage: &str) -> Msg {
    Msg::new("tui.config.value").arg("usage", usage)
}

fn unknown(name: &str) -> Msg {
    match nearest(name, FIELDS) {
        Some(near) => Msg::new("tui.config.unknown_near").arg("near", near),
        None => Msg::new("tui.config.unknown").arg("all", FIELDS.join(", ")),
    }
    .arg("name", name)
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
        let texts = texts(&warnings);
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts.iter().any(|t| t.contains("theme")), "{texts:?}");
        assert!(texts.iter().any(|t| t.contains("cjk-safe")), "{texts:?}");
        assert!(texts.iter().any(|t| t.contains("quux")), "{texts:?}");
    }

    fn texts(warnings: &[Warning]) -> Vec<String> {
        let text = |w: &Warning| w.msg("config.ron", Lang::En).to_string();
        warnings.iter().map(text).collect()
    }

    #[test]
    fn a_warning_names_the_file_the_entry_and_what_would_do() {
        let of = |source: &str| {
            let (config, mut warnings) = Config::parse(source).unwrap();
            warnings.extend(config.keymap().1);
            let texts = texts(&warnings);
            assert_eq!(texts.len(), 1, "{source}: {texts:?}");
            texts[0].clone()
        };
        for (source, parts) in [
            (r#"{"digits": 40}"#, ["`digits`", "0 to 17"]),
            (r#"{"theme": "drak"}"#, ["`theme`", "did you mean `dark`?"]),
            (r#"{"glyphs": "asci"}"#, ["`glyphs`", "did you mean `ascii`?"]),
            (r#"{"mouse": 3}"#, ["`mouse`", "true | false"]),
            (r#"{"keys": {"global": {"entr": "next"}}}"#, ["`keys`", "`enter`"]),
            (r#"{"keys": {"gobal": {"x": "next"}}}"#, ["`keys`", "`global`"]),
            (r#"{"keys": {"global": {"x": "nxet"}}}"#, ["`keys`", "`next`"]),
        ] {
            let text = of(source);
            assert!(text.starts_with("config.ron: "), "{text}");
            for part in parts {
                assert!(text.contains(part), "{text}");
            }
        }
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
            let template = Config::template(Some(Path::new("/a/config.ron")), lang);
            assert!(template.contains("/a/config.ron"));
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
