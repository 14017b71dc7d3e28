//! Lints: what is most probably wrong with a run, each with the place where it shows.
//!
//! A lint looks at what a program is and at its numbers, not at the settings it was made from: a scale is the constant
//! of the node that scales, a variance is compared with the rows it belongs to, padding is changed to see whether
//! anything real changes with it. So programs built by hand and edited traces are seen as well. One file a topic.

mod activations;
mod attention;
mod decoding;
mod facts;
mod finite;
mod labels;
mod masks;
mod norms;
mod padding;
mod positions;
mod scale;
mod sequences;
mod softmax;
mod stream;
mod ties;
mod weights;

use std::collections::HashMap;

use crate::program::{Leaf, Name, Node, NodeId, Op, Program};
use crate::scenario::lint::{Lint, Severity};
use crate::session::locate::step_of_cell;
use crate::session::{RunKind, Session};
use crate::tensor::{Real, Tensor};
use crate::text::{Msg, NumberFormat};
use crate::trace::derive::Cell;
use crate::trace::{AnyTrace, RunError, Trace};
use crate::with_any;

pub use decoding::{Decoding, Failed};
pub use facts::{Facts, Padding};

/// Something that a lint found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What kind of thing.
    pub lint: Lint,
    /// How grave it is; [`Severity::Info`] where the scenario allows it.
    pub severity: Severity,
    /// Whether the scenario allows it.
    pub allowed: bool,
    /// The run, by its place in the session; `None` where it is of no run.
    pub run: Option<usize>,
    /// Later runs in which the very same was found.
    pub also: Vec<usize>,
    /// Path of the node, or name of the tensor.
    pub path: String,
    /// The node, where the run's own program has it.
    pub node: Option<NodeId>,
    /// Index of the first or worst cell, one entry an axis; empty where the whole node is meant.
    pub cell: Vec<usize>,
    /// What is there, or what was measured: the message says which.
    pub value: Option<f64>,
    /// How many cells, rows or columns are like it.
    pub count: usize,
    /// What was found.
    pub msg: Msg,
}

impl Finding {
    /// Why it matters.
    pub fn why(&self) -> Msg {
        Msg::new(self.lint.why())
    }

    /// How it is fixed.
    pub fn mend(&self) -> Msg {
        Msg::new(self.lint.mend())
    }

    /// Its cell as a cell of the run, the first of the node where the whole is meant.
    pub fn place(&self, session: &Session) -> Option<(usize, Cell)> {
        let (run, node) = (self.run?, self.node?);
        let shape = session.runs.get(run)?.program.node(node).shape;
        let inside = self.cell.len() == shape.rank() && self.cell.iter().zip(shape.dims()).all(|(i, n)| i < n);
        let flat = if inside { shape.flat(&self.cell) } else { 0 };
        Some((run, Cell { node, flat }))
    }

    /// Its cell in its own run and in those where the same was found.
    pub fn places(&self, session: &Session) -> Vec<(usize, Cell)> {
        let Some((run, cell)) = self.place(session) else {
            return Vec::new();
        };
        let other = |run: &usize| {
            let node = session.runs.get(*run)?.program.find(&self.path)?;
            Some((*run, Cell { node, ..cell }))
        };
        let also = self.also.iter().filter_map(other);
        std::iter::once((run, cell)).chain(also).collect()
    }

    /// Number of the step that shows it, in the steps of its run: the one that shows its cell, else the nearest
    /// that shows a cell computed from it.
    pub fn step(&self, session: &Session) -> Option<Vec<u32>> {
        let (run, cell) = self.place(session)?;
        let steps = session.steps_of(run);
        let at = step_of_cell(session, &steps, run, cell)?;
        Some(steps.list()[at].number.clone())
    }
}

/// Everything that is known of a session's runs for which `wanted` holds, as findings in the order of runs and of
/// evaluation. Runs that were not executed yet are.
///
/// # Errors
/// Where a run cannot be built or run.
pub fn check(session: &Session, wanted: impl Fn(usize) -> bool) -> Result<Vec<Finding>, Failed> {
    let decoding = Decoding::of(session, &wanted)?;
    Ok(check_with(session, &wanted, &decoding)?)
}

/// As [`check`], where decoding was looked at already.
///
/// # Errors
/// Where a run cannot run.
pub fn check_with(
    session: &Session,
    wanted: impl Fn(usize) -> bool,
    decoding: &Decoding,
) -> Result<Vec<Finding>, RunError> {
    let mut found = weights::of_files(session);
    for run in (0..session.runs.len()).filter(|i| wanted(*i)) {
        let trace = session.trace(run).map_err(Clone::clone)?;
        let mut facts = Facts::of(session, run);
        if !run.checked_sub(1).is_some_and(&wanted) {
            facts.from = 0;
        }
        let mut of_run = of_trace(trace, &facts);
        if session.runs[run].kind == RunKind::Training {
            of_run.extend(labels::of_run(session, run));
        }
        if matches!(session.runs[run].kind, RunKind::Training | RunKind::Encode) {
            of_run.extend(sequences::of_run(session, run));
        }
        // What the weights show already is not reported again from its consequences.
        let ahead = of_run.iter().any(|f| f.lint == Lint::FutureAttention);
        let again = decoding.findings(session, run).into_iter();
        of_run.extend(again.filter(|f| !(ahead && f.lint == Lint::FutureLeak)));
        for finding in &mut of_run {
            finding.run = Some(run);
        }
        found.extend(of_run);
    }
    Ok(once(session, allowed(session, found)))
}

/// What the lints find in one trace. `facts` are what cannot be seen in a program: which tokens are padding, whether
/// the run is meant to train. Findings have no run.
pub fn of_trace(trace: &AnyTrace, facts: &Facts) -> Vec<Finding> {
    with_any!(AnyTrace, trace, t => look_at(t, facts))
}

fn look_at<T: Real>(trace: &Trace<T>, facts: &Facts) -> Vec<Finding> {
    let mut look = Look::new(trace, facts);
    finite::look(&mut look);
    let attentions = attention::find(&look);
    softmax::look(&mut look, &attentions);
    masks::look(&mut look, &attentions);
    scale::look(&mut look, &attentions);
    padding::look(&mut look);
    norms::look(&mut look);
    activations::look(&mut look);
    stream::look(&mut look);
    positions::look(&mut look);
    weights::look(&mut look);
    ties::look(&mut look);
    look.done()
}

/// A run as the lints see it, and what they have found.
struct Look<'a, T: Real> {
    trace: &'a Trace<T>,
    program: &'a Program,
    facts: &'a Facts,
    found: Vec<Finding>,
}

impl<'a, T: Real> Look<'a, T> {
    fn new(trace: &'a Trace<T>, facts: &'a Facts) -> Self {
        Self { trace, program: trace.program(), facts, found: Vec::new() }
    }

    /// Nodes to look at: those that ran and that no run before has shown.
    fn nodes(&self) -> impl Iterator<Item = (NodeId, &'a Node)> + use<'a, T> {
        let (trace, from) = (self.trace, self.facts.from);
        self.program.nodes().skip(from).take_while(move |(id, _)| trace.reached(*id))
    }

    fn fresh(&self, id: NodeId) -> bool {
        id.index() >= self.facts.from && self.trace.reached(id)
    }

    /// The numbers of a node.
    fn numbers(&self, id: NodeId) -> Tensor<T> {
        self.trace.value(id).float().clone()
    }

    /// Nodes of the forward pass that read `id`.
    fn readers(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &'a Node)> + use<'a, T> {
        let (program, trace) = (self.program, self.trace);
        program
            .users(id)
            .iter()
            .map(|u| (*u, program.node(*u)))
            .filter(move |(u, n)| !n.name.is_derived() && trace.reached(*u))
    }

    /// A finding at cell `flat` of `id`, or at the whole node; `count` cells or rows are like it. What the catalogue's
    /// message needs besides `path`, `cell`, `value` and `count` goes into `args`.
    fn tell(
        &mut self,
        (lint, severity): (Lint, Severity),
        (id, flat): (NodeId, Option<usize>),
        (value, count): (f64, usize),
        args: &[(&'static str, String)],
    ) {
        let node = self.program.node(id);
        let rank = node.shape.rank();
        let cell = flat.map_or_else(Vec::new, |f| node.shape.unflat(f)[..rank].to_vec());
        let mut msg = Msg::new(lint.key())
            .arg("path", &node.path)
            .arg("cell", bracketed(&cell))
            .arg("value", brief(value))
            .arg("count", count);
        msg.args.extend(args.iter().cloned());
        self.found.push(Finding {
            lint,
            severity,
            allowed: false,
            run: None,
            also: Vec::new(),
            path: node.path.to_string(),
            node: Some(id),
            cell,
            value: Some(value),
            count,
            msg,
        });
    }

    fn done(self) -> Vec<Finding> {
        let mut found = self.found;
        found.sort_by_key(|f| (f.node, f.lint));
        found
    }
}

/// `[0][2]`.
fn bracketed(index: &[usize]) -> String {
    use std::fmt::Write as _;
    index.iter().fold(String::new(), |mut all, i| {
        let _ = write!(all, "[{i}]");
        all
    })
}

/// A number in a message.
fn brief(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || (1e-3..1e7).contains(&size) || !x.is_finite() {
        NumberFormat::Decimals(6).format(x)
    } else {
        NumberFormat::Scientific(4).format(x)
    }
}

/// What is said again of each decoding call is said once, and so is what another run has in the very same place.
fn once(session: &Session, found: Vec<Finding>) -> Vec<Finding> {
    let mut calls: HashMap<(Lint, Severity, Option<usize>, Name), usize> = HashMap::new();
    let mut runs: HashMap<(Lint, Severity, String, Vec<usize>, u64), usize> = HashMap::new();
    let mut out: Vec<Finding> = Vec::new();
    for f in found {
        let name = Name::parse(&f.path);
        let of_call = name.call.is_some();
        let value = f.value.map_or(0, f64::to_bits);
        // A parameter is the same in all runs, whatever its readers do with it.
        let cell = if is_parameter(session, &f) { (Vec::new(), 0) } else { (f.cell.clone(), value) };
        let in_run = (f.lint, f.severity, f.run, name.outside_call());
        if let Some(&first) = calls.get(&in_run).filter(|_| of_call) {
            out[first].count += f.count;
            continue;
        }
        let anywhere = (f.lint, f.severity, f.path.clone(), cell.0, cell.1);
        if let Some(&first) = runs.get(&anywhere) {
            let other = f.run.filter(|r| Some(*r) != out[first].run);
            out[first].also.extend(other);
            calls.insert(in_run, first);
            continue;
        }
        calls.insert(in_run, out.len());
        runs.insert(anywhere, out.len());
        out.push(f);
    }
    out
}

fn is_parameter(session: &Session, f: &Finding) -> bool {
    f.run.zip(f.node).is_some_and(|(run, node)| {
        let op = &session.runs[run].program.node(node).op;
        matches!(op, Op::Leaf(Leaf::Parameter))
    })
}

/// What the scenario, or a run of it, allows is information.
fn allowed(session: &Session, mut found: Vec<Finding>) -> Vec<Finding> {
    let of_run = |run: usize| {
        let run = session.forward_of(run).unwrap_or(run);
        let name = &session.runs[run].name;
        let own = session.scenario.runs.iter().find(|r| r.name() == name);
        own.map_or(&[][..], |r| &r.with().allow)
    };
    for f in &mut found {
        let mut allow = session.scenario.allow.iter();
        if allow.any(|l| *l == f.lint) || f.run.is_some_and(|r| of_run(r).contains(&f.lint)) {
            f.allowed = true;
            f.severity = Severity::Info;
        }
    }
    found
}
