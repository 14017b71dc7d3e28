//! One catalogue of all text a user reads, in English and Chinese.
//!
//! Messages live in `assets/i18n/*.ron`: each file maps a dotted key to `(en: "…", zh: "…")`, so that a
//! translation cannot be forgotten (a missing field does not parse). `{name}` is a placeholder.
//! Each area of the program has its own file; they are joined at first use.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;

use super::escape::escape_lines;

/// A language a user reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Simplified Chinese.
    Zh,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    en: String,
    zh: String,
}

/// The source files of the catalogue, joined at compile time. A file may hold any keys; no key may be twice.
const FILES: &[(&str, &str)] = &[
    ("core.ron", include_str!("../../assets/i18n/core.ron")),
    ("scenario.ron", include_str!("../../assets/i18n/scenario.ron")),
    ("export.ron", include_str!("../../assets/i18n/export.ron")),
    ("tui.ron", include_str!("../../assets/i18n/tui.ron")),
    ("debug.ron", include_str!("../../assets/i18n/debug.ron")),
    ("lints.ron", include_str!("../../assets/i18n/lints.ron")),
    ("cli.ron", include_str!("../../assets/i18n/cli.ron")),
    ("train.ron", include_str!("../../assets/i18n/train.ron")),
    ("compare.ron", include_str!("../../assets/i18n/compare.ron")),
    ("whatif.ron", include_str!("../../assets/i18n/whatif.ron")),
    ("expr.ron", include_str!("../../assets/i18n/expr.ron")),
    ("recording.ron", include_str!("../../assets/i18n/recording.ron")),
    ("source.ron", include_str!("../../assets/i18n/source.ron")),
    ("teach.ron", include_str!("../../assets/i18n/teach.ron")),
    ("views.ron", include_str!("../../assets/i18n/views.ron")),
    ("checkpoint.ron", include_str!("../../assets/i18n/checkpoint.ron")),
];

fn catalogue() -> &'static HashMap<String, Entry> {
    static CATALOGUE: OnceLock<HashMap<String, Entry>> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let mut all = HashMap::new();
        for (name, source) in FILES {
            let map: HashMap<String, Entry> =
                ron::from_str(source).unwrap_or_else(|e| panic!("assets/i18n/{name}: {e}"));
            for (key, entry) in map {
                assert!(all.insert(key.clone(), entry).is_none(), "assets/i18n/{name}: `{key}` stands twice");
            }
        }
        all
    })
}

/// The text of `key` in `lang`. An unknown key is a bug that the tests catch; it shows as the key itself.
pub fn tr(lang: Lang, key: &str) -> &'static str {
    static MISSING: OnceLock<std::sync::Mutex<HashMap<String, &'static str>>> = OnceLock::new();
    if let Some(entry) = catalogue().get(key) {
        return match lang {
            Lang::En => &entry.en,
            Lang::Zh => &entry.zh,
        };
    }
    debug_assert!(false, "no message `{key}` in assets/i18n");
    let mut seen = MISSING.get_or_init(Default::default).lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    seen.entry(key.to_owned()).or_insert_with(|| Box::leak(key.to_owned().into_boxed_str()))
}

/// Whether the catalogue has `key`.
pub fn has(key: &str) -> bool {
    catalogue().contains_key(key)
}

/// The catalogue's own copy of `key`, where it has it: for keys put together at run time.
pub fn find(key: &str) -> Option<&'static str> {
    catalogue().get_key_value(key).map(|(k, _)| k.as_str())
}

/// All keys, sorted.
pub fn keys() -> Vec<&'static str> {
    let mut keys: Vec<_> = catalogue().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// A text with each of its words that the catalogue has as `SPACE.WORD` in `lang`: `[head 2, d_k 4]` is `[头 2, d_k 4]` in
/// the words of the axes.
pub fn words(lang: Lang, space: &str, text: &str) -> String {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        match find(&format!("{space}.{}", &rest[..word])) {
            Some(key) => out.push_str(tr(lang, key)),
            None => out.push_str(&rest[..word]),
        }
        rest = &rest[word..];
        let between = rest.find(inside).unwrap_or(rest.len());
        out.push_str(&rest[..between]);
        rest = &rest[between..];
    }
    out
}

/// A message not yet rendered: a catalogue key and the values of its placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Msg {
    /// Catalogue key.
    pub key: &'static str,
    /// Placeholder values, by name.
    pub args: Vec<(&'static str, String)>,
}

impl Msg {
    /// A message without placeholders.
    pub fn new(key: &'static str) -> Self {
        Self { key, args: Vec::new() }
    }

    /// Adds the value of placeholder `{name}`. What must not reach a terminal is escaped here, wherever it comes from; what
    /// is escaped already stays as it is.
    #[must_use]
    pub fn arg(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        let value = value.to_string();
        let value = match escape_lines(&value) {
            Cow::Borrowed(_) => value,
            Cow::Owned(escaped) => escaped,
        };
        self.args.push((name, value));
        self
    }

    /// How to fix what this message says is wrong: the message `KEY_help`, where the catalogue has one.
    #[must_use]
    pub fn help(&self) -> Option<Self> {
        let key = find(&format!("{}_help", self.key))?;
        Some(Self { key, args: self.args.clone() })
    }

    /// The text in `lang`, placeholders filled in; `{shape:axis}` with the words that the catalogue has as `axis.WORD`.
    pub fn render(&self, lang: Lang) -> String {
        let template = tr(lang, self.key);
        let mut out = String::with_capacity(template.len() + 16);
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            let tail = &rest[open + 1..];
            let Some(close) = tail.find('}') else {
                out.push_str(&rest[open..]);
                return out;
            };
            let (name, space) = tail[..close].split_once(':').unwrap_or((&tail[..close], ""));
            match self.args.iter().find(|(n, _)| *n == name) {
                Some((_, value)) if space.is_empty() => out.push_str(value),
                Some((_, value)) => out.push_str(&words(lang, space, value)),
                None => {
                    out.push('{');
                    out.push_str(&tail[..close]);
                    out.push('}');
                }
            }
            rest = &tail[close + 1..];
        }
        out.push_str(rest);
        out
    }
}

/// English, for logs and `std::error::Error`.
impl fmt::Display for Msg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Lang::En))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders(text: &str) -> Vec<&str> {
        let mut names: Vec<_> = text.split('{').skip(1).filter_map(|t| t.split_once('}').map(|(n, _)| n)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[test]
    fn words_of_axes_and_operations_are_those_of_the_language() {
        let fact =
            Msg::new("tui.fact.shape").arg("path", "head.head").arg("shape", "[head 2, d_k 4]").arg("op", "matmul");
        assert_eq!(fact.render(Lang::En), "head.head [head 2, d_k 4] · matmul");
        assert_eq!(fact.render(Lang::Zh), "head.head [头 2, d_k 4] · 矩阵乘");
    }

    #[test]
    fn both_languages_have_text_and_the_same_placeholders() {
        for key in keys() {
            let (en, zh) = (tr(Lang::En, key), tr(Lang::Zh, key));
            assert!(!en.trim().is_empty() && !zh.trim().is_empty(), "{key} is empty in one language");
            assert_eq!(placeholders(en), placeholders(zh), "{key}: placeholders differ");
        }
    }
}
