//! What the tests of the lints share: scenarios with a fault put in, and findings as places.

use std::path::Path;

use tui_transformer::debug::lints::{self, Facts, Finding};
use tui_transformer::program::Leaf;
use tui_transformer::scenario::lint::Severity;
use tui_transformer::scenario::schema::Run;
use tui_transformer::scenario::{Scenario, load};
use tui_transformer::session::{Options, Session, open};
use tui_transformer::tensor::Precision;
use tui_transformer::trace::derive::Cell;
use tui_transformer::trace::{AnyTrace, Edit};

pub fn embedded(name: &str, change: impl FnOnce(&mut Scenario)) -> Session {
    of(load(Path::new(name)).unwrap().scenario, None, None, change)
}

pub fn of(
    mut scenario: Scenario,
    origin: Option<&Path>,
    precision: Option<Precision>,
    change: impl FnOnce(&mut Scenario),
) -> Session {
    change(&mut scenario);
    let options = Options { precision, ..Options::default() };
    open(scenario, origin, options).unwrap_or_else(|p| panic!("{p:?}"))
}

/// Only the model is looked at: what the notes and steps say of it would no longer hold.
pub fn bare(s: &mut Scenario) {
    s.walkthrough.clear();
    s.symbols.clear();
    s.expected.clear();
    s.remarks.clear();
}

/// A decoder that looks ahead, and so keeps no keys and values.
pub fn looks_ahead(s: &mut Scenario) {
    s.model.attention.causal = Some(false);
    for run in &mut s.runs {
        if let Run::Inference { kv_cache, .. } = run {
            *kv_cache = false;
        }
    }
}

pub fn found(s: &Session) -> Vec<Finding> {
    lints::check(s, |_| true).unwrap_or_else(|e| panic!("{e:?}"))
}

pub type Place = (&'static str, String, Vec<usize>);

pub fn place(f: &Finding) -> Place {
    (f.lint.id(), f.path.clone(), f.cell.clone())
}

/// Errors and warnings.
pub fn grave(found: &[Finding]) -> Vec<Place> {
    let grave = found.iter().filter(|f| f.severity > Severity::Info);
    grave.map(place).collect()
}

pub fn at(lint: &'static str, path: &str, cell: &[usize]) -> Place {
    (lint, path.to_owned(), cell.to_vec())
}

pub fn edit(trace: &AnyTrace, path: &str, cell: &[usize], value: f64) -> Edit {
    let program = trace.program();
    let node = program.find(path).unwrap_or_else(|| panic!("{path}"));
    let flat = program.node(node).shape.flat(cell);
    Edit { cell: Cell { node, flat }, value }
}

/// What is found in run `run` once some of its cells were edited.
pub fn edited(s: &Session, run: usize, edits: &[(&str, &[usize], f64)]) -> Vec<Finding> {
    let trace = s.trace(run).unwrap();
    let edits: Vec<Edit> = edits.iter().map(|(path, cell, value)| edit(trace, path, cell, *value)).collect();
    lints::of_trace(&trace.what_if(&edits), &Facts::of(s, run))
}

/// What is found where leaves of run `run` are others.
pub fn with_leaves(s: &Session, run: usize, change: impl Fn(&Leaf) -> Option<Leaf>) -> Vec<Finding> {
    let program = s.runs[run].program.with_leaves(change).into();
    let trace = s.run_program(&program, |_| true, &mut ()).unwrap();
    lints::of_trace(&trace, &Facts::of(s, run))
}
