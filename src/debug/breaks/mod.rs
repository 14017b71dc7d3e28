//! Breakpoints and watches, and running until one of them stops, forward and in reverse, step by step: nothing is looked at
//! beyond the stop.
//!
//! ```text
//! breakpoint = ["once"] { place } { "not" place } [ "if" condition ] ["count" N] ["once"]
//! place      = N | N.M | N..M | NAME | GLOB | /REGEX/ | op:NAME | phase:GLOB | run:NAME
//! ```
//! All places must fit. A NAME is a symbol or a path, else a scope with all that is inside; in a GLOB `*` is one word between
//! points, `**` any number. A place that says which tensors it is about also stops at those that no step shows, inside the
//! step that computes them. `count N` stops from the N-th hit on.

mod place;
mod spec;

use super::condition::Met;
use super::eval_context::EvalContext;
use super::expr::{Array, Expr, ExprError, Fault};
use crate::program::NodeId;
use crate::trace::derive::Cell;

use crate::session::locate::Address;
pub use spec::Spec;
use spec::Verdict;

/// A breakpoint.
#[derive(Clone, Debug)]
pub struct Breakpoint {
    /// Its number.
    pub id: u32,
    /// What it stops for.
    pub spec: Spec,
    /// How often it was met.
    pub hits: u32,
}

/// An expression that is kept in sight; a change of its value stops.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Its number.
    pub id: u32,
    /// The expression.
    pub expr: Expr,
}

/// Breakpoints and watches; they share one row of numbers.
#[derive(Clone, Debug, Default)]
pub struct Breaks {
    breakpoints: Vec<Breakpoint>,
    watches: Vec<Watch>,
    last_id: u32,
}

/// A place in a run: a step, or a tensor computed on the way to it that no step shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Position of the step in the list.
    pub step: usize,
    /// Run and node, where one is inside.
    pub inside: Option<(usize, NodeId)>,
}

/// Which way to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To later steps.
    Forward,
    /// To earlier ones.
    Back,
}

/// Why a run stopped.
#[derive(Clone, Debug)]
pub enum Reason {
    /// A breakpoint.
    Break {
        /// Its number.
        id: u32,
        /// As it is written.
        text: String,
        /// How its condition was met.
        met: Option<Box<Met>>,
    },
    /// The value of a watch is another one.
    Watch {
        /// Its number.
        id: u32,
        /// As it is written.
        text: String,
        /// How its value changed.
        change: Box<Change>,
    },
    /// A condition or a watch cannot be decided here.
    Error {
        /// Its number.
        id: u32,
        /// As it is written.
        text: String,
        /// Why.
        error: ExprError,
    },
}

/// How the value of a watch changed.
#[derive(Clone, Debug)]
pub struct Change {
    /// The value at the earlier step.
    pub old: Array,
    /// The value at the later step.
    pub new: Array,
    /// Run and cell, where one recorded number is watched.
    pub cell: Option<(usize, Cell)>,
}

/// Where a run stopped, and why.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Where.
    pub at: Position,
    /// All reasons that hold there.
    pub reasons: Vec<Reason>,
}

impl Breaks {
    /// The breakpoints, in the order they were made.
    pub fn breakpoints(&self) -> &[Breakpoint] {
        &self.breakpoints
    }

    /// The watches, in the order they were made.
    pub fn watches(&self) -> &[Watch] {
        &self.watches
    }

    /// Adds a breakpoint; its number.
    pub fn add(&mut self, spec: Spec) -> u32 {
        self.last_id += 1;
        let id = self.last_id;
        self.breakpoints.push(Breakpoint { id, spec, hits: 0 });
        id
    }

    /// Watches an expression; its number.
    ///
    /// # Errors
    /// Where it cannot be read, or names what is nowhere.
    pub fn watch(&mut self, text: &str, here: &EvalContext<'_>) -> Result<u32, ExprError> {
        let expr = Expr::parse(text.trim())?;
        spec::names_exist(&expr, here)?;
        if expr.is_about_it() {
            let at = 0..text.chars().count();
            let msg = crate::text::Msg::new("break.watch_it");
            return Err(ExprError::new(Fault::Syntax, at, msg));
        }
        self.last_id += 1;
        let id = self.last_id;
        self.watches.push(Watch { id, expr });
        Ok(id)
    }

    /// Removes a breakpoint or watch by number; false where there is none.
    pub fn remove(&mut self, id: u32) -> bool {
        let before = self.breakpoints.len() + self.watches.len();
        self.breakpoints.retain(|b| b.id != id);
        self.watches.retain(|w| w.id != id);
        self.breakpoints.len() + self.watches.len() < before
    }

    /// Removes all breakpoints (or all watches); how many there were.
    pub fn clear(&mut self, watches: bool) -> usize {
        if watches { std::mem::take(&mut self.watches).len() } else { std::mem::take(&mut self.breakpoints).len() }
    }

    /// Runs from `from`, where one is, to the next place that something stops at; `None` where nothing does up to the end.
    /// `here` says what there is to see; its own step is not used.
    pub fn run(&mut self, here: &EvalContext<'_>, from: Position, direction: Direction) -> Option<Stop> {
        let n = here.steps.list().len();
        let mut step = from.step;
        if step >= n {
            return None;
        }
        let mut last: Vec<Option<Array>> = vec![None; self.watches.len()];
        let known = match (from.inside, direction) {
            // Inside a step, its own values are still to come.
            (Some(_), Direction::Forward) => step.checked_sub(1),
            _ => Some(step),
        };
        if let Some(at) = known {
            for (watch, last) in self.watches.iter().zip(&mut last) {
                *last = value(watch, &at_step(here, at)).ok().flatten();
            }
        }
        let hidden = |step: usize| here.timeline.hidden(step);
        let place = |inside| hidden(step).iter().position(|h| Some(*h) == inside);
        match direction {
            Direction::Forward => {
                let mut next = from.inside.map(|_| place(from.inside).map_or(0, |i| i + 1));
                loop {
                    if let Some(first) = next {
                        for &inside in &hidden(step)[first..] {
                            if let Some(stop) = self.inside(here, step, inside) {
                                return Some(stop);
                            }
                        }
                        if let Some(stop) = self.whole(here, step, &mut last, direction) {
                            return Some(stop);
                        }
                    }
                    next = Some(0);
                    step += 1;
                    if step >= n {
                        return None;
                    }
                }
            }
            Direction::Back => {
                let mut end = match from.inside {
                    None => hidden(step).len(),
                    inside => place(inside).unwrap_or(0),
                };
                loop {
                    for &inside in hidden(step)[..end].iter().rev() {
                        if let Some(stop) = self.inside(here, step, inside) {
                            return Some(stop);
                        }
                    }
                    step = step.checked_sub(1)?;
                    if let Some(stop) = self.whole(here, step, &mut last, direction) {
                        return Some(stop);
                    }
                    end = hidden(step).len();
                }
            }
        }
    }

    /// Whether something stops at a tensor that no step shows.
    fn inside(&mut self, here: &EvalContext<'_>, step: usize, (run, node): (usize, NodeId)) -> Option<Stop> {
        if self.breakpoints.is_empty() {
            return None;
        }
        let here = at_step(here, step);
        let target = Address::of_node(here.session, run, node)?;
        let met = |spec: &Spec| spec.at_hidden(&here, &target);
        let reasons = self.hits(met);
        let inside = Some((run, node));
        let at = Position { step, inside };
        (!reasons.is_empty()).then_some(Stop { at, reasons })
    }

    /// Whether something stops at a step.
    fn whole(
        &mut self,
        here: &EvalContext<'_>,
        step: usize,
        last: &mut [Option<Array>],
        direction: Direction,
    ) -> Option<Stop> {
        let here = at_step(here, step);
        let mut reasons = self.hits(|spec| spec.at_step(&here));
        for (watch, last) in self.watches.iter().zip(last) {
            let (id, text) = (watch.id, watch.expr.text().to_owned());
            match value(watch, &here) {
                // A place that this step's tensor does not have has no value here.
                Err(_) | Ok(None) => {}
                Ok(Some(now)) => {
                    let before = last.replace(now.clone());
                    let Some(before) = before.filter(|b| !b.same_as(&now)) else {
                        continue;
                    };
                    let cell = now.number().and_then(|_| now.cell(0));
                    let (old, new) = match direction {
                        Direction::Forward => (before, now),
                        Direction::Back => (now, before),
                    };
                    let change = Box::new(Change { old, new, cell });
                    reasons.push(Reason::Watch { id, text, change });
                }
            }
        }
        let at = Position { step, inside: None };
        (!reasons.is_empty()).then_some(Stop { at, reasons })
    }

    /// Breakpoints that stop, their hits counted; those for once are gone then.
    fn hits(&mut self, met: impl Fn(&Spec) -> Result<Verdict, ExprError>) -> Vec<Reason> {
        let mut reasons = Vec::new();
        self.breakpoints.retain_mut(|b| {
            let (id, text) = (b.id, b.spec.text().to_owned());
            let met = match met(&b.spec) {
                Err(error) => {
                    reasons.push(Reason::Error { id, text, error });
                    return true;
                }
                Ok(Verdict::No) => return true,
                Ok(Verdict::Place) => None,
                Ok(Verdict::Met(met)) => Some(met),
            };
            b.hits = b.hits.saturating_add(1);
            if b.hits >= b.spec.count {
                reasons.push(Reason::Break { id, text, met });
                return !b.spec.once;
            }
            true
        });
        reasons
    }
}

/// The step at `at`, to which later values are unknown.
fn at_step<'a>(here: &EvalContext<'a>, at: usize) -> EvalContext<'a> {
    EvalContext { at, past: true, shown: None, it: None, ..*here }
}

/// The value of a watch; `None` where it is not computed yet, or not in this part of the run.
///
/// # Errors
/// Where it cannot be computed.
pub fn value(watch: &Watch, here: &EvalContext<'_>) -> Result<Option<Array>, ExprError> {
    match watch.expr.eval(here) {
        Ok(x) => Ok(Some(x)),
        Err(e) if matches!(e.fault, Fault::NotYet | Fault::Name) => Ok(None),
        Err(e) => Err(e),
    }
}
