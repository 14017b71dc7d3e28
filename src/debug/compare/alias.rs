//! Which of our nodes a reference's tensor is: tables of names as data (`assets/aliases/*.ron`, and one of each family of
//! checkpoints, see `families`), and a user's.
//!
//! A table lists names and the paths they denote. In a name, `{L}` is a layer counted from 0, `{N}` the number of
//! layers, `{*}` anything. In a path, `{L}` and `{*}` are what they were in the name, `{L-1}` is the layer before,
//! `{S}` is the stack that the model has (`decoder`, else `encoder`) and `{E}` its side of the embedding (`target`,
//! `source`). ` | ` separates paths of which the first that exists is meant. A path that is a part of the model
//! (`encoder.0`, `encoder.0.norm1`) means its output, with `.in` after it what a norm reads. Of the entries whose name fits, those with the first such name
//! hold, all of them: one tensor may hold three of our nodes side by side.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use regex::{Captures, Regex};
use serde::Deserialize;

use super::families;
use super::fit::Reading;
use super::layout::Layout;
use super::modules::GRADIENT;
use super::reference::RecordedModel;
use crate::program::{Name, NodeId, Program, ScopeKind, Site};
use crate::scenario::guard;
use crate::text::{Msg, escape};

/// The tables that come with the program and are of no family. Our own paths go first; those of the families go before
/// the last.
const TABLES: &[&str] = &[
    include_str!("../../../assets/aliases/paths.ron"),
    include_str!("../../../assets/aliases/transformer_lens.ron"),
    include_str!("../../../assets/aliases/hf_outputs.ron"),
    include_str!("../../../assets/aliases/pytorch.ron"),
];

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
struct Rule {
    entry: Entry,
    /// What may be before the name.
    prefixes: Arc<[String]>,
    /// Made when a name is first looked for: most tables are of other models.
    pattern: OnceLock<Regex>,
    layout: Option<Layout>,
}

impl Rule {
    fn captures<'n>(&self, name: &'n str) -> Option<Captures<'n>> {
        self.pattern.get_or_init(|| pattern(&self.prefixes, &self.entry.name)).captures(name)
    }

    /// A path of its entry with what the name holds.
    fn filled_path(path: &str, captures: &Captures<'_>) -> String {
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
    fn filled(&self, captures: &Captures<'_>) -> String {
        match captures.name("L") {
            Some(layer) => self.entry.path.replace("{L}", layer.as_str()),
            None => self.entry.path.clone(),
        }
    }
}

/// A rule that says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Idle {
    /// No tensor has its name.
    NoName(String),
    /// A tensor has, and the program has nothing at its path.
    NoPath {
        /// The tensor's name.
        name: String,
        /// The path.
        path: String,
    },
}

/// A table of names.
#[derive(Clone, Debug)]
pub struct Table {
    about: String,
    /// Families of models whose names these are; all where there are none.
    families: Vec<String>,
    /// Whether names are looked for here also where nobody says of which family a recording is.
    broad: bool,
    /// Classes of modules one of which must have been recorded, where the family of the model is known.
    classes: Vec<String>,
    rules: Vec<Rule>,
}

/// A node that a tensor of the reference denotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The node.
    pub node: NodeId,
    /// How its axes lie, where it is not as ours.
    pub layout: Option<Layout>,
    /// Which of its cells the tensor tells.
    pub reading: Reading,
    /// The table that says so.
    pub table: String,
}

/// The tables that come with the program.
///
/// # Panics
/// Where one of them is broken, which the tests would have shown.
pub fn tables() -> &'static [Table] {
    static MADE: OnceLock<Vec<Table>> = OnceLock::new();
    MADE.get_or_init(|| {
        let read = |text: &&str| {
            let file: File = options().from_str(text).expect("a table of names");
            let table = Table::new(file.about, file.prefixes, file.names).expect("rules that make sense");
            Table { classes: file.classes, ..table }
        };
        let mut all: Vec<Table> = TABLES.iter().map(read).collect();
        let last = all.pop();
        all.extend(families::tables());
        all.extend(last);
        all
    })
}

fn options() -> ron::Options {
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

/// What a name denotes in any of our models: path (`{S}` for the stack of a model that has one), layout and table.
/// Every table that knows it is requested.
pub fn canonical(name: &str) -> Vec<(String, Option<Layout>, String)> {
    let mut out = Vec::new();
    for table in tables().iter().filter(|t| t.broad) {
        if let Some((rule, captures)) = table.rules.iter().find_map(|r| Some((r, r.captures(name)?))) {
            let first = rule.entry.path.split(" | ").next().unwrap_or_default().replace("{E}", "target");
            let path = Rule::filled_path(&first, &captures);
            let stack = path.replace("{S}", "decoder");
            let both = path.contains("{S}").then(|| path.replace("{S}", "encoder"));
            for path in both.into_iter().chain([stack]) {
                out.push((path, rule.layout.clone(), table.about.clone()));
            }
        }
    }
    out
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

/// Finds the nodes of one program.
#[derive(Debug)]
pub struct Resolver<'a> {
    program: &'a Program,
    tables: Vec<&'a Table>,
    /// Stacks and their numbers of layers, the one that `{S}` means first.
    stacks: Vec<(&'static str, usize)>,
    /// Whether the program is a row of decoding calls.
    generates: bool,
}

impl<'a> Resolver<'a> {
    /// Over `program`; a user's table goes before those that come with the program.
    pub fn new(program: &'a Program, own: Option<&'a Table>) -> Self {
        let generates = program.scopes().any(|(_, s)| s.kind == ScopeKind::Generation);
        let layers = |stack: &str| {
            let at = |prefix: &str| program.find_scope(&format!("{prefix}{stack}"));
            let id = at("").or_else(|| at("gen.0."))?;
            let inside = |s: &crate::program::Scope| s.kind == ScopeKind::Layer && s.parent == Some(id);
            Some(program.scopes().filter(|(_, s)| inside(s)).count())
        };
        let stacks = ["decoder", "encoder"].into_iter().filter_map(|stack| Some((stack, layers(stack)?))).collect();
        Self { program, tables: own.into_iter().chain(tables()).collect(), stacks, generates }
    }

    /// Keeps the tables of a family of models, where one has it: a name of one family is never read by the table of
    /// another. A model of PyTorch's own layers is of no family.
    #[must_use]
    pub fn of_model(mut self, model: &RecordedModel) -> Self {
        // A model of layers of PyTorch's own has their names.
        let recorded = |table: &Table| model.classes.values().any(|class| table.classes.contains(class));
        let own_layers = self.tables.iter().any(|table| recorded(table));
        let keeps = |table: &&Table| match &model.model_type {
            Some(_) if table.families.is_empty() => table.classes.is_empty() || recorded(table),
            Some(kind) => table.families.contains(kind),
            None => table.families.is_empty() || table.broad && !own_layers,
        };
        self.tables.retain(keeps);
        self
    }

    /// The nodes that `name` denotes; none where no table knows it or the program lacks them.
    pub fn resolve(&self, name: &str) -> Vec<Target> {
        self.resolve_fitting(name, &|_| true)
    }

    /// As [`resolve`](Self::resolve); of several nodes that an entry may mean, the first one that `fits`, else the first.
    pub fn resolve_fitting(&self, name: &str, fits: &dyn Fn(&Target) -> bool) -> Vec<Target> {
        (self.calls(name).into_iter())
            .map(|(bare, call)| self.within(bare, &call, fits))
            .find(|found| !found.is_empty())
            .unwrap_or_else(|| self.gradient(name))
    }

    /// Whether a table says that `name` denotes nothing here.
    pub fn is_nothing(&self, name: &str) -> bool {
        let nothing = |rule: &&Rule| rule.entry.path.is_empty();
        let calls = self.calls(name);
        let bare = calls.iter().map(|(bare, _)| bare.strip_suffix(GRADIENT).unwrap_or(bare));
        let mut rules = bare
            .flat_map(|bare| self.tables.iter().flat_map(|t| &t.rules).filter(nothing).map(move |rule| (bare, rule)));
        rules.any(|(bare, rule)| rule.captures(bare).is_some())
    }

    /// What a recorder names `NAME.grad`: the gradients of what `NAME` denotes.
    fn gradient(&self, name: &str) -> Vec<Target> {
        let Some(of) = name.strip_suffix(GRADIENT) else { return Vec::new() };
        let gradient = |t: Target| {
            let path = &self.program.node(t.node).path;
            Some(Target { node: self.program.find(&format!("grad.{path}"))?, ..t })
        };
        self.resolve(of).into_iter().filter_map(gradient).collect()
    }

    /// The names that a table has for a node, likelier ones first.
    pub(super) fn names_of(&self, node: NodeId, table: &Table) -> Vec<String> {
        let name = &self.program.node(node).name;
        let call = name.call.map_or(String::new(), |call| format!("gen.{call}."));
        let layer = match name.site {
            Site::Layer(_, layer, _) => layer.to_string(),
            _ => "0".to_owned(),
        };
        let of = |rule: &Rule| {
            let name = rule.entry.name.replace("{L}", &layer);
            let captures = rule.captures(&name)?;
            self.nodes(rule, &captures, &call).contains(&node).then_some(name.clone())
        };
        // `module.in` is what a module reads, and `module[1]` its second output.
        let read = |name: &String| name.strip_suffix(".in").is_some();
        let mut all: Vec<String> = table.rules.iter().filter_map(of).filter(|name| !read(name)).collect();
        all.sort_by_key(|name| name.ends_with(']'));
        all
    }

    /// The rules of a user's table that say nothing of this program and of tensors with these names.
    pub fn idle(&self, own: &Table, names: &[&str]) -> Vec<Idle> {
        let idle = |rule: &Rule| {
            let (mut fits, mut missing) = (false, None);
            for &name in names {
                let calls = self.calls(name);
                let captures: Vec<_> =
                    (calls.into_iter()).filter_map(|(bare, call)| Some((rule.captures(bare)?, call))).collect();
                let Some((first, _)) = captures.first() else {
                    continue;
                };
                if (captures.iter()).any(|(c, call)| self.node(rule, c, call).is_some()) {
                    return None;
                }
                fits = true;
                missing.get_or_insert_with(|| (name, rule.filled(first)));
            }
            match missing {
                Some((name, path)) if fits => Some(Idle::NoPath { name: name.to_owned(), path }),
                _ => Some(Idle::NoName(rule.entry.name.clone())),
            }
        };
        own.rules.iter().filter_map(idle).collect()
    }

    /// The name as a table may have it, and what our paths of that call begin with. The end `#2` is the third call of a
    /// model, which is `gen.2` here.
    fn calls<'n>(&self, name: &'n str) -> Vec<(&'n str, String)> {
        let (bare, call) = match name.rsplit_once('#') {
            Some((bare, n)) if n.parse::<usize>().is_ok() => (bare, n),
            _ => (name, "0"),
        };
        let within = self.generates.then(|| (bare, format!("gen.{call}.")));
        let outside = (bare == name).then(|| (name, String::new()));
        within.into_iter().chain(outside).collect()
    }

    fn within(&self, name: &str, call: &str, fits: &dyn Fn(&Target) -> bool) -> Vec<Target> {
        for table in &self.tables {
            let mut fitting: Option<&str> = None;
            let mut found: Vec<Target> = Vec::new();
            for rule in &table.rules {
                if fitting.is_some_and(|f| f != rule.entry.name) {
                    continue;
                }
                let Some(captures) = rule.captures(name) else {
                    continue;
                };
                let target = |node| Target {
                    node,
                    layout: rule.layout.clone(),
                    reading: rule.entry.reading,
                    table: table.about.clone(),
                };
                let all: Vec<Target> = self.nodes(rule, &captures, call).into_iter().map(target).collect();
                let Some(chosen) = all.iter().find(|t| fits(t)).or(all.first()) else {
                    continue;
                };
                fitting = Some(&rule.entry.name);
                if found.iter().all(|t| t.node != chosen.node) {
                    found.push(chosen.clone());
                }
            }
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    fn node(&self, rule: &Rule, captures: &Captures<'_>, call: &str) -> Option<NodeId> {
        self.nodes(rule, captures, call).first().copied()
    }

    /// The nodes that an entry may mean, the likeliest first.
    fn nodes(&self, rule: &Rule, captures: &Captures<'_>, call: &str) -> Vec<NodeId> {
        let mut all = Vec::new();
        for path in rule.entry.path.split(" | ") {
            // A path that is a stack itself has that stack's number of layers.
            let itself = self.stacks.iter().find(|(name, _)| *name == path).map(std::slice::from_ref);
            let any = path.contains("{S}") || path.contains("{E}");
            let stacks = itself.unwrap_or(if any { &self.stacks[..] } else { &[("", 0)] });
            for &(stack, layers) in stacks {
                let number = |name: &str| captures.name(name)?.as_str().parse::<usize>().ok();
                if number("N").is_some_and(|n| n != layers) {
                    continue;
                }
                let side = if stack == "encoder" { "source" } else { "target" };
                let fill = |path: &str| -> Option<String> {
                    let mut path = path.replace("{S}", stack).replace("{E}", side);
                    if let Some(layer) = number("L") {
                        if path.contains("{L-1}") {
                            path = path.replace("{L-1}", &layer.checked_sub(1)?.to_string());
                        }
                        path = path.replace("{L}", &layer.to_string());
                    }
                    if let Some(rest) = captures.name("rest") {
                        path = path.replace("{*}", rest.as_str());
                    }
                    Some(format!("{call}{path}"))
                };
                let needs = rule.entry.needs.as_deref();
                if needs.is_some_and(|n| fill(n).is_none_or(|n| self.at(&n).is_none())) {
                    continue;
                }
                all.extend(fill(path).and_then(|p| self.at(&p)));
            }
        }
        all
    }

    /// The node at `path`, or the output of the part of the model there, or what a norm reads.
    fn at(&self, path: &str) -> Option<NodeId> {
        if let Some(id) = self.program.find(path) {
            return Some(id);
        }
        let scope = |path: &str| {
            let id = self.program.find_scope(path)?;
            Some(self.program.scope(id))
        };
        // What a norm reads is written as its part `in`.
        let name = Name::parse(path);
        if name.tail(1) == "in" {
            return match scope(&name.outer()?.to_string())?.kind {
                ScopeKind::LayerNorm { input, .. } | ScopeKind::RmsNorm { input, .. } => Some(input),
                _ => None,
            };
        }
        let scope = scope(path)?;
        match scope.kind {
            ScopeKind::Softmax { output, .. }
            | ScopeKind::LayerNorm { output, .. }
            | ScopeKind::RmsNorm { output, .. }
            | ScopeKind::Activation { output, .. }
            | ScopeKind::CrossEntropy { output, .. } => Some(output),
            ScopeKind::Embedding
            | ScopeKind::Stack
            | ScopeKind::Layer
            | ScopeKind::Attention
            | ScopeKind::FeedForward => scope.nodes.clone().next_back().map(NodeId),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "alias_tests.rs"]
mod tests;
