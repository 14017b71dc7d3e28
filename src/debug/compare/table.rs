//! Tables of names: what a name in a reference denotes, read from files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use regex::{Captures, Regex};
use serde::Deserialize;

use super::fit::Reading;
use super::layout::Layout;
use crate::scenario::guard;
use crate::text::{Msg, escape};

/// What a name denotes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub name: String,
    pub path: String,
    #[serde(default)]
    pub layout: Option<String>,
    /// Which of the node's cells it tells.
    #[serde(default)]
    pub reading: Reading,
    /// Holds only where the program has this path.
    #[serde(default)]
    pub needs: Option<String>,
}

/// A table as its file says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What tells where a match came from.
    about: String,
    /// Put before every name.
    #[serde(default)]
    prefixes: Vec<String>,
    /// The classes of the modules whose names these are; none where any module may have them.
    #[serde(default)]
    classes: Vec<String>,
    names: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub entry: Entry,
    /// What may be before the name.
    prefixes: Arc<[String]>,
    /// Made when a name is first looked for: most tables are of other models.
    pattern: OnceLock<Regex>,
    pub layout: Option<Layout>,
}

impl Rule {
    pub fn captures<'n>(&self, name: &'n str) -> Option<Captures<'n>> {
        self.pattern.get_or_init(|| pattern(&self.prefixes, &self.entry.name)).captures(name)
    }

    /// A path of its entry with what the name holds.
    pub fn filled_path(path: &str, captures: &Captures<'_>) -> String {
        let mut path = path.to_owned();
        if let Some(layer) = captures.name("L").and_then(|l| l.as_str().parse::<usize>().ok()) {
            path = path.replace("{L-1}", &layer.wrapping_sub(1).to_string()).replace("{L}", &layer.to_string());
        }
        match captures.name("rest") {
            Some(rest) => path.replace("{*}", rest.as_str()),
            None => path,
        }
    }

    /// Its path with the number of the layer that a name has.
    pub fn filled(&self, captures: &Captures<'_>) -> String {
        match captures.name("L") {
            Some(layer) => self.entry.path.replace("{L}", layer.as_str()),
            None => self.entry.path.clone(),
        }
    }
}

/// A table of names.
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) about: String,
    /// Families of models whose names these are; all where there are none.
    pub(super) families: Vec<String>,
    /// Whether names are looked for here also where nobody says of which family a recording is.
    pub(super) broad: bool,
    /// Classes of modules one of which must have been recorded, where the family of the model is known.
    pub(super) classes: Vec<String>,
    pub(super) rules: Vec<Rule>,
}

pub(super) fn options() -> ron::Options {
    ron::Options::default().with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
}

/// What a name denotes in a user's table: a path, a path with a layout, or several of these.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Path(String),
    Laid(Laid),
    Several(Vec<Laid>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Laid {
    path: String,
    #[serde(default)]
    layout: Option<String>,
}

impl Table {
    /// A table that comes with the program.
    ///
    /// # Panics
    /// Where it is broken, which the tests would have shown.
    pub(super) fn embedded(text: &str) -> Self {
        let file: File = options().from_str(text).expect("a table of names");
        let table = Table::new(file.about, file.prefixes, file.names).expect("rules that make sense");
        Table { classes: file.classes, ..table }
    }

    pub(super) fn new(about: String, prefixes: Vec<String>, names: Vec<Entry>) -> Result<Self, Msg> {
        let prefixes: Arc<[String]> = prefixes.into();
        let rules = names
            .into_iter()
            .map(|entry| {
                if let Some(letter) = twice(&entry.name) {
                    let msg = Msg::new("compare.map.letter").arg("file", escape(&about));
                    return Err(msg.arg("name", escape(&entry.name)).arg("letter", letter));
                }
                let layout = entry.layout.as_deref().map(Layout::parse).transpose()?;
                Ok(Rule { entry, prefixes: Arc::clone(&prefixes), pattern: OnceLock::new(), layout })
            })
            .collect::<Result<_, Msg>>()?;
        Ok(Self { about, families: Vec::new(), broad: true, classes: Vec::new(), rules })
    }

    /// As the table of a family: of these values of `model_type`, and asked also where nobody says which.
    #[must_use]
    pub(super) fn of_family(mut self, families: Vec<String>, broad: bool) -> Self {
        (self.families, self.broad) = (families, broad);
        self
    }

    /// Whether it is of the models of a value of `model_type`.
    pub(super) fn is_of(&self, model_type: &str) -> bool {
        self.families.iter().any(|f| f == model_type)
    }

    /// The path that a name denotes, as it is written, and its layout.
    pub fn path_of(&self, name: &str) -> Option<(String, Option<Layout>)> {
        let found = self.rules.iter().find_map(|r| Some((r, r.captures(name)?)));
        found.map(|(rule, captures)| (Rule::filled_path(&rule.entry.path, &captures), rule.layout.clone()))
    }

    /// A user's table in a file.
    ///
    /// # Errors
    /// Where it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, Msg> {
        let name = path.to_string_lossy();
        let text = guard::read_text(path)?;
        Self::read(&name, &text)
    }

    /// A user's table, in RON or JSON: names and the paths they denote, each a text or `(path, layout)`, or a
    /// list of these.
    ///
    /// # Errors
    /// Where it is none; the message says where.
    pub fn read(file: &str, text: &str) -> Result<Self, Msg> {
        let broken = |why: String| Msg::new("compare.map.broken").arg("file", escape(file)).arg("why", escape(&why));
        let json = file.to_lowercase().ends_with(".json");
        let given: BTreeMap<String, Given> = if json {
            serde_json::from_str(text).map_err(|e| broken(e.to_string()))?
        } else {
            options().from_str(text).map_err(|e| broken(format!("{}: {}", e.span.start, e.code)))?
        };
        let mut names = Vec::new();
        for (name, given) in given {
            let all = match given {
                Given::Path(path) => vec![Laid { path, layout: None }],
                Given::Laid(one) => vec![one],
                Given::Several(all) => all,
            };
            names.extend(all.into_iter().map(|laid| Entry {
                name: name.clone(),
                path: laid.path,
                layout: laid.layout,
                reading: Reading::Whole,
                needs: None,
            }));
        }
        // What is written out goes before what denotes many.
        names.sort_by_key(|e| e.name.contains('{'));
        Self::new(file.to_owned(), Vec::new(), names)
    }
}

/// The first letter that denotes a number or for anything twice in a name.
fn twice(name: &str) -> Option<&'static str> {
    ["{L}", "{N}", "{*}"].into_iter().find(|letter| name.matches(letter).count() > 1)
}

/// A name as a pattern. `{L}` and `{N}` are numbers, `{*}` is anything.
fn pattern(prefixes: &[String], name: &str) -> Regex {
    let literal = regex::escape(name)
        .replace(r"\{L\}", "(?<L>[0-9]{1,6})")
        .replace(r"\{N\}", "(?<N>[0-9]{1,6})")
        .replace(r"\{\*\}", "(?<rest>.+)");
    let prefixes: Vec<String> = prefixes.iter().map(|p| regex::escape(p)).collect();
    Regex::new(&format!("^(?:{})(?:{literal})$", prefixes.join("|"))).expect("an escaped name")
}
