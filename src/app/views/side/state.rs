//! Two runs side by side: what is shown of them, and going from tensor to tensor and from cell to cell.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use crate::app::args::Sides;
use crate::app::measure::AT_ONCE;
use crate::app::navigator::{Navigator, is_masked};
use crate::app::slot::{Seen, Slot};
use crate::debug::side::{Align, Beside, CellPair, Mapping, PathPair, same};
use crate::explain::line::MASKED_BELOW;
use crate::program::{Name, Site};
use crate::session::Session;
use crate::tensor::DType;
use crate::text::{Msg, NumberFormat};
use crate::trace::stats::{Mask, Tally, tally};
use crate::trace::{AnyTrace, AnyValue};

/// One of the two sides.
#[derive(Clone, Debug)]
pub struct Pane {
    /// What it is called.
    pub name: Msg,
    /// The run it is of; its words label the axes.
    pub run: usize,
    /// A trace of its own; none where it is the run's.
    made: Option<Arc<AnyTrace>>,
}

/// Two runs side by side.
#[derive(Clone, Debug)]
pub struct Side {
    /// What was requested.
    pub what: Sides,
    /// Left and right.
    pub panes: [Pane; 2],
    /// Which path of the right is paired with one of the left.
    pub mapping: Mapping,
    /// Which positions are compared.
    pub align: Align,
    /// The paths that both have, in the order of the left side.
    pub pairs: Vec<PathPair>,
    /// Which of them one looks at.
    pub at: usize,
    /// The cell one looks at, in the part that both have.
    pub index: Vec<usize>,
    /// How many paths differ.
    pub differing: usize,
    /// The path with the largest difference.
    pub worst: Option<usize>,
    /// What [`Side::ranges`] found of the paths that were looked at.
    pub(super) ranges: Arc<Mutex<HashMap<usize, Slot<Ranges>>>>,
}

/// What is in the two tensors one looks at, over every cell.
#[derive(Clone, Copy, Debug)]
pub struct Ranges {
    /// The numbers of both, masked ones apart.
    pub both: Tally,
    /// B − A of the cells that both have.
    pub apart: Tally,
}

impl Pair<'_> {
    /// B − A of a cell: 0 where both are the same; and whether a mask hides it on both sides.
    pub fn apart(&self, cell: CellPair) -> (f64, bool) {
        apart(&self.values, cell, self.is_masked())
    }

    /// Whether these are scores with a mask: large negative numbers are hidden.
    pub fn is_masked(&self) -> bool {
        is_masked(self.traces[0].program(), self.pair.left)
    }
}

fn apart(values: &[AnyValue; 2], cell: CellPair, masked: bool) -> (f64, bool) {
    let (a, b) = (values[0].get(cell.left), values[1].get(cell.right));
    let hidden = masked && a < MASKED_BELOW && b < MASKED_BELOW;
    (if same(&values[0], &values[1], cell) { 0.0 } else { b - a }, hidden)
}

/// What is in two tensors, over every cell.
fn ranges_of(values: &[AnyValue; 2], beside: &Beside, masked: bool) -> Ranges {
    let of = |value: &AnyValue| match value.dtype() {
        DType::Float if masked => tally(value, &Mask::below(value.clone(), MASKED_BELOW)),
        DType::Float | DType::Bool | DType::Int => tally(value, &Mask::none()),
    };
    let mut found = Ranges { both: of(&values[0]), apart: Tally::default() };
    found.both.merge(&of(&values[1]));
    for cell in beside.pairs() {
        let (x, hidden) = apart(values, cell, masked);
        found.apart.take(x, hidden);
    }
    found
}

impl Pane {
    /// A run of the session.
    pub(super) fn of_run(name: Msg, run: usize) -> Self {
        Self { name, run, made: None }
    }

    /// A trace of its own, of the same scenario as run `run`.
    pub(super) fn made(name: Msg, run: usize, trace: Arc<AnyTrace>) -> Self {
        Self { name, run, made: Some(trace) }
    }

    /// The trace of this side.
    pub fn trace<'t>(&'t self, session: &'t Session) -> Option<&'t AnyTrace> {
        match &self.made {
            Some(trace) => Some(trace),
            None => session.trace(self.run).ok(),
        }
    }

    /// Whether its nodes are those of its run.
    pub fn is_run(&self, session: &Session) -> bool {
        let program = &session.runs[self.run].program;
        self.made.as_ref().is_none_or(|t| Arc::ptr_eq(t.program(), program))
    }
}

/// The two tensors one looks at.
pub struct Pair<'a> {
    /// Paths, nodes, and how much differs.
    pub pair: &'a PathPair,
    /// Traces, left and right.
    pub traces: [&'a AnyTrace; 2],
    /// Values, left and right.
    pub values: [AnyValue; 2],
    /// How their cells are paired.
    pub beside: Beside,
    /// The cell one looks at.
    pub cell: CellPair,
}

impl Side {
    /// What one looks at.
    pub fn pair<'a>(&'a self, session: &'a Session) -> Option<Pair<'a>> {
        let pair = self.pairs.get(self.at)?;
        let traces = [self.panes[0].trace(session)?, self.panes[1].trace(session)?];
        let values = [traces[0].get(pair.left)?, traces[1].get(pair.right)?];
        let beside = Beside::new(values[0].shape(), values[1].shape(), &self.mapping, self.align)?;
        let dims = beside.part().dims();
        let index: Vec<usize> = (0..dims.len())
            .map(|d| {
                let i = self.index.get(d).copied().unwrap_or(0);
                i.min(dims[d].saturating_sub(1))
            })
            .collect();
        if beside.part().is_empty() {
            return None;
        }
        Some(Pair { pair, traces, cell: beside.at(&index), values, beside })
    }

    /// The ranges of the tensors one looks at, read once for each path; `None` while they are read in the background.
    pub fn ranges(&self, nav: &Navigator, seen: &Pair<'_>) -> Option<Ranges> {
        let mut kept = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match kept.entry(self.at) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(place) => {
                let (values, beside, masked) = (seen.values.clone(), seen.beside.clone(), seen.is_masked());
                let long = seen.pair.cells > AT_ONCE && nav.is_live();
                place.insert(Slot::new(long, move || Some(ranges_of(&values, &beside, masked)))?)
            }
        };
        let found = slot.look();
        if matches!(found, Seen::Coming) {
            nav.numbers.measures.wait();
        }
        found.made().map(|ranges| *ranges)
    }

    /// Goes to a path: to its first difference, where there is one.
    pub(super) fn go(&mut self, at: usize, session: &Session) {
        self.at = at.min(self.pairs.len().saturating_sub(1));
        let first = self.pairs.get(self.at).and_then(|p| p.first);
        self.index.clear();
        let index = first.and_then(|cell| self.pair(session)?.beside.index(0, cell.left));
        self.index = index.unwrap_or_default();
    }

    /// To the next (or previous) cell of this path that differs; false where there is none.
    pub(super) fn jump_to_cell(&mut self, forward: bool, session: &Session) -> bool {
        let found = self.pair(session).filter(|seen| seen.pair.differing > 0).and_then(|seen| {
            let part = seen.beside.part();
            let here = part.flat(&seen.beside.index(0, seen.cell.left)?);
            let differs = |i: &usize| !same(&seen.values[0], &seen.values[1], seen.beside.at(&part.unflat(*i)));
            let next = if forward { (here + 1..part.len()).find(differs) } else { (0..here).rev().find(differs) };
            Some(part.unflat(next?).to_vec())
        });
        let Some(index) = found else { return false };
        self.index = index;
        true
    }

    /// Moves along an axis of the part, counted from the last.
    pub(super) fn step(&mut self, from_last: usize, by: i64, session: &Session) {
        let Some((mut index, dims)) = self.pair(session).and_then(|seen| {
            let dims = seen.beside.part().dims().to_vec();
            Some((seen.beside.index(0, seen.cell.left)?, dims))
        }) else {
            return;
        };
        if let Some(axis) = index.len().checked_sub(from_last + 1) {
            let last = dims[axis].saturating_sub(1) as i64;
            let to = (index[axis] as i64).saturating_add(by).clamp(0, last);
            index[axis] = to as usize;
        }
        self.index = index;
    }

    /// Turns the nearest leading axis that is longer than 1.
    pub(super) fn turn(&mut self, by: i64, session: &Session) {
        let Some((mut index, dims)) = self.pair(session).and_then(|seen| {
            let dims = seen.beside.part().dims().to_vec();
            Some((seen.beside.index(0, seen.cell.left)?, dims))
        }) else {
            return;
        };
        let turned = (0..dims.len().saturating_sub(2)).rev().find(|d| dims[*d] > 1);
        if let Some(axis) = turned {
            let n = dims[axis] as i64;
            index[axis] = (index[axis] as i64 + by).rem_euclid(n) as usize;
        }
        self.index = index;
    }

    /// To the first path of the next (or previous) part: another layer, another sublayer.
    pub(super) fn jump_to_part(&mut self, forward: bool, session: &Session) {
        let here = self.pairs.get(self.at).map(|p| part_of(&p.path));
        let Some(here) = here else { return };
        let other = |i: &usize| part_of(&self.pairs[*i].path) != here;
        let to = if forward { (self.at + 1..self.pairs.len()).find(other) } else { (0..self.at).rev().find(other) };
        if let Some(to) = to {
            self.go(to, session);
        }
    }
}

impl Side {
    /// How much differs in all.
    pub fn totals(&self, number: NumberFormat) -> Msg {
        let key = if self.differing == 0 { "side.same" } else { "side.totals" };
        let worst = self.worst.and_then(|i| self.pairs.get(i));
        let part = |p: Option<&PathPair>, f: &dyn Fn(&PathPair) -> String| p.map_or_else(String::new, f);
        Msg::new(key)
            .arg("differing", self.differing)
            .arg("paths", self.pairs.len())
            .arg("largest", part(worst, &|p| number.format_nonzero(p.max_difference)))
            .arg("path", part(worst, &|p| p.path.clone()))
    }
}

/// The part of the model, and the decoding call, that a path is in: `gen.2.decoder.0.self_attn`.
fn part_of(path: &str) -> (Option<u32>, Site) {
    let name = Name::parse(path);
    (name.call, name.site)
}
