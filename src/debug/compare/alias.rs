//! Which of our nodes a reference's tensor is: tables of names as data (`assets/aliases/*.ron`, and one of each family of
//! checkpoints, see `families`), and a user's.
//!
//! A table lists names and the paths they denote. In a name, `{L}` is a layer counted from 0, `{N}` the number of
//! layers, `{*}` anything. In a path, `{L}` and `{*}` are what they were in the name, `{L-1}` is the layer before,
//! `{S}` is the stack that the model has (`decoder`, else `encoder`) and `{E}` its side of the embedding (`target`,
//! `source`). ` | ` separates paths of which the first that exists is meant. A path that is a part of the model
//! (`encoder.0`, `encoder.0.norm1`) means its output, with `.in` after it what a norm reads. Of the entries whose name fits, those with the first such name
//! hold, all of them: one tensor may hold three of our nodes side by side.

use std::sync::OnceLock;

use regex::Captures;

use super::families;
use super::fit::Reading;
use super::layout::Layout;
use super::modules::GRADIENT;
use super::reference::RecordedModel;
use super::table::Rule;
pub use super::table::Table;
use crate::program::{Name, NodeId, Program, ScopeKind, Site};
use crate::source::recording::ModuleName;

/// The tables that come with the program and are of no family. Our own paths go first; those of the families go before
/// the last.
const TABLES: &[&str] = &[
    include_str!("../../../assets/aliases/paths.ron"),
    include_str!("../../../assets/aliases/transformer_lens.ron"),
    include_str!("../../../assets/aliases/hf_outputs.ron"),
    include_str!("../../../assets/aliases/pytorch.ron"),
];

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
        let mut all: Vec<Table> = TABLES.iter().map(|text| Table::embedded(text)).collect();
        let last = all.pop();
        all.extend(families::tables());
        all.extend(last);
        all
    })
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
        let ModuleName { bare, call } = ModuleName::of(name);
        let within = self.generates.then(|| (bare, format!("gen.{}.", call.unwrap_or("0"))));
        let outside = call.is_none().then(|| (name, String::new()));
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
