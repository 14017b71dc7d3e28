//! What edits changed: nodes and cells, the first step, the loss and the predictions before and after.

use std::sync::Arc;

use crate::program::{NodeId, Program};
use crate::session::{Session, Steps};
use crate::tensor::Elem;
use crate::trace::{AnyTrace, AnyValue, RunError};
use crate::walkthrough::Step;
use crate::{tensor::Value, trace};

/// A node whose value is another, or that was not there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The node, in the edited run.
    pub node: NodeId,
    /// Its path.
    pub path: Arc<str>,
    /// Cells with other bits; all of them where the node is new or has another shape.
    pub cells: usize,
    /// Cells that it has.
    pub of: usize,
    /// The first of the changed cells.
    pub first: usize,
}

/// What a value was before edits.
#[derive(Clone, Debug)]
pub enum Before {
    /// What it is now.
    Same,
    /// Another, of the same shape.
    Was(AnyValue),
    /// It was not there, or had another shape.
    None,
}

/// One run before and after edits.
pub struct Changes<'s> {
    before: &'s AnyTrace,
    after: &'s AnyTrace,
}

/// What a run predicts at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Decoding call; `None` in a run that reads whole sentences.
    pub call: Option<usize>,
    /// Sentence, from 0.
    pub sentence: usize,
    /// Position, from 0.
    pub position: usize,
    /// The most probable word. Untrusted text.
    pub word: String,
    /// Its probability.
    pub prob: f64,
}

/// What edits came to in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Name of the run.
    pub run: String,
    /// Nodes that changed, in order.
    pub changed: Vec<Changed>,
    /// Nodes of the run.
    pub nodes: usize,
    /// Position of the first of the given steps that shows a changed cell.
    pub first_step: Option<usize>,
    /// Loss before and after, where the run has one.
    pub loss: Option<(f64, f64)>,
    /// Predictions before and after that are not the same.
    pub predictions: Vec<(Option<Prediction>, Option<Prediction>)>,
    /// How many predictions there are.
    pub places: usize,
    /// Steps of the walkthrough that show what is no longer there, and are left out.
    pub lost_steps: usize,
}

impl<'s> Changes<'s> {
    /// Run `run` of `after`, and the run of the same name before; `None` where there was none.
    ///
    /// # Errors
    /// Where one of them cannot run.
    pub fn of(before: &'s Session, after: &'s Session, run: usize) -> Result<Option<Self>, RunError> {
        let Some(old) = before.run_named(&after.runs[run].name) else {
            return Ok(None);
        };
        Ok(Some(Self {
            before: before.trace(old).map_err(Clone::clone)?,
            after: after.trace(run).map_err(Clone::clone)?,
        }))
    }

    /// Of two traces.
    pub fn between(before: &'s AnyTrace, after: &'s AnyTrace) -> Self {
        Self { before, after }
    }

    /// What a node of the edited run was before.
    pub fn before(&self, node: NodeId) -> Before {
        let Some(after) = self.after.get(node) else {
            return Before::Same;
        };
        let path = &self.after.program().node(node).path;
        let before = self.before.program().find(path);
        let before = before.and_then(|id| self.before.get(id));
        let fits = |b: &AnyValue| {
            b.shape().same_dims(after.shape()) && b.dtype() == after.dtype() && b.precision() == after.precision()
        };
        match before.filter(fits) {
            None => Before::None,
            Some(b) if same_bits(&b, &after) => Before::Same,
            Some(b) => Before::Was(b),
        }
    }

    /// Nodes of the edited run that changed, in order.
    pub fn nodes(&self) -> Vec<Changed> {
        let program = self.after.program();
        let changed = program.nodes().filter_map(|(id, node)| {
            let of = node.shape.len();
            let (cells, first) = match self.before(id) {
                Before::Same => return None,
                Before::None => (of, 0),
                Before::Was(before) => differing(&before, &self.after.get(id)?),
            };
            Some(Changed { node: id, path: Arc::clone(&node.path), cells, of, first })
        });
        changed.collect()
    }
}

fn same_bits(a: &AnyValue, b: &AnyValue) -> bool {
    match (a, b) {
        (AnyValue::F32(a), AnyValue::F32(b)) => a.same_bits(b),
        (AnyValue::F64(a), AnyValue::F64(b)) => a.same_bits(b),
        _ => false,
    }
}

/// How many cells differ, and the first.
fn differing(a: &AnyValue, b: &AnyValue) -> (usize, usize) {
    fn count<E: Elem>(a: &[E], b: &[E], differ: impl Fn(E, E) -> bool) -> (usize, usize) {
        let mut places = (0..a.len()).filter(|&i| differ(a[i], b[i]));
        let first = places.next();
        (usize::from(first.is_some()) + places.count(), first.unwrap_or(0))
    }
    fn of<T: crate::tensor::Real>(a: &Value<T>, b: &Value<T>) -> (usize, usize) {
        match (a, b) {
            (Value::Float(a), Value::Float(b)) => count(a.data(), b.data(), |a, b| a.bits() != b.bits()),
            (Value::Int(a), Value::Int(b)) => count(a.data(), b.data(), |a, b| a != b),
            (Value::Bool(a), Value::Bool(b)) => count(a.data(), b.data(), |a, b| a != b),
            _ => (a.shape().len(), 0),
        }
    }
    match (a, b) {
        (AnyValue::F32(a), AnyValue::F32(b)) => of(a, b),
        (AnyValue::F64(a), AnyValue::F64(b)) => of(a, b),
        _ => (a.shape().len(), 0),
    }
}

/// Whether a step of the edited session shows a changed cell.
pub fn step_changed(before: &Session, after: &Session, step: &Step) -> bool {
    step.views.iter().any(|view| {
        let Ok(Some(changes)) = Changes::of(before, after, view.run) else {
            return false;
        };
        match changes.before(view.node) {
            Before::Same => false,
            Before::None => true,
            Before::Was(b) => {
                let after = changes.after.value(view.node);
                let mut cells = view.cells.flats();
                cells.any(|i| after.bits(i) != b.bits(i))
            }
        }
    })
}

/// What run `run` predicts: at every position where it reads whole sentences, else after every decoding call.
pub fn predictions(s: &Session, run: usize) -> Vec<Prediction> {
    let Ok(trace) = s.trace(run) else {
        return Vec::new();
    };
    let program = &s.runs[run].program;
    let words = s.words(s.spoken());
    let mut out = Vec::new();
    let mut rows = |path: &str, call: Option<usize>| -> bool {
        let Some(value) = find(trace, program, path) else {
            return false;
        };
        let d = value.shape().dims().to_vec();
        let &[batch, tokens, vocab] = d.as_slice() else {
            return false;
        };
        let from = if call.is_some() { tokens.saturating_sub(1) } else { 0 };
        for sentence in 0..batch {
            for position in from..tokens {
                let at = (sentence * tokens + position) * vocab;
                let best = best(&value, at, vocab);
                out.push(Prediction {
                    call,
                    sentence,
                    position,
                    word: words.word(best as i64),
                    prob: value.get(at + best),
                });
            }
        }
        true
    };
    if !rows("output.probs", None) {
        let mut call = 0;
        while rows(&format!("gen.{call}.output.probs"), Some(call)) {
            call += 1;
        }
    }
    out
}

fn find(trace: &trace::AnyTrace, program: &Program, path: &str) -> Option<AnyValue> {
    trace.get(program.find(path)?)
}

/// As `ArgMax`: the first of the largest, the first NaN.
fn best(value: &AnyValue, at: usize, n: usize) -> usize {
    let mut best = 0;
    for i in 1..n {
        let (have, x) = (value.get(at + best), value.get(at + i));
        if !have.is_nan() && (x > have || x.is_nan()) {
            best = i;
        }
    }
    best
}

fn loss(s: &Session, run: usize) -> Option<f64> {
    let id = s.runs[run].outputs.loss?;
    Some(s.trace(run).ok()?.get(id)?.get(0))
}

impl super::WhatIf {
    /// What the edits came to in run `run` of the edited session; `steps` are those listed.
    ///
    /// # Errors
    /// Where a run cannot run.
    pub fn report(&self, run: usize, steps: &Steps) -> Result<Report, RunError> {
        let (before, after) = (&*self.base, &*self.current);
        let name = after.runs[run].name.clone();
        let changed = Changes::of(before, after, run)?.map_or_else(Vec::new, |c| c.nodes());
        let old = before.run_named(&name);
        let mut first_step = None;
        if !Arc::ptr_eq(&self.base, &self.current) {
            let mut list = steps.list().iter();
            first_step = list.position(|step| step_changed(before, after, step));
        }
        let ours = predictions(after, run);
        let theirs = old.map_or_else(Vec::new, |old| predictions(before, old));
        let places = ours.len();
        let n = places.max(theirs.len());
        let pairs = (0..n).map(|i| (theirs.get(i).cloned(), ours.get(i).cloned()));
        Ok(Report {
            nodes: after.runs[run].program.len(),
            first_step,
            loss: old.and_then(|old| loss(before, old)).zip(loss(after, run)),
            predictions: pairs.filter(|(a, b)| a != b).collect(),
            places,
            lost_steps: (before.scenario.walkthrough.len()).saturating_sub(after.scenario.walkthrough.len()),
            run: name,
            changed,
        })
    }
}
