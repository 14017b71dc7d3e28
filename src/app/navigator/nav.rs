//! Going from step to step and from cell to cell.

use std::sync::Arc;

use super::model::names;
use super::{Level, Navigator, Spot};
use crate::app::args::StepTarget;
use crate::export::document::step_formula;
use crate::tensor::Slice;
use crate::text::Msg;
use crate::trace::derive::Cell;
use crate::walkthrough::{LocalizedText, Role, Step, View, title_of};

impl Navigator {
    /// Puts the cursor where a step is read first: on the number that its prediction was chosen for, else its last
    /// result that the formula names, at the first cell.
    pub(super) fn arrive(&mut self) {
        self.term = None;
        self.scroll = 0;
        let Some(step) = self.step() else { return };
        let (view, index) = self.chosen_in(step).unwrap_or_else(|| {
            let formula = step_formula(&self.session, &self.steps, self.at, step);
            let result = |v: &View| v.role == Role::Result;
            let named = |v: &View| result(v) && names(&formula, &v.symbol);
            // Of several results the first one.
            let first = step.views.iter().position(named);
            let view = first.or_else(|| step.views.iter().position(result)).unwrap_or(0);
            let rank = step.views.get(view).map_or(0, |v| v.shape().rank());
            (view, vec![0; rank])
        });
        self.view = view;
        self.index = index;
    }

    /// The largest cell of the row that a step's only prediction was chosen from, where the step shows it.
    fn chosen_in(&self, step: &Step) -> Option<(usize, Vec<usize>)> {
        let one = |v: &&View| v.shape().len() == 1;
        step.views.iter().filter(one).find_map(|v| {
            let cell = Cell { node: v.node, flat: v.cells.flats().next()? };
            let row = self.argmax_row(v.run, cell)?;
            let value = self.trace(v.run)?.get(v.node)?.get(cell.flat);
            step.view_of(v.run, row.cell(value as usize))
        })
    }

    pub(super) fn arrive_at(&mut self, at: usize) {
        self.aside = None;
        self.inner.clear();
        self.at = at.min(self.steps.list().len().saturating_sub(1));
        self.arrive();
    }

    /// So many steps on, at the level one is at. Past the end of a level one is out of it.
    pub fn go_by(&mut self, by: i64) -> bool {
        if self.aside.take().is_some() {
            self.arrive();
            return true;
        }
        let moved = |at: usize, len: usize| {
            let to = (at as i64).saturating_add(by);
            usize::try_from(to).ok().filter(|t| *t < len)
        };
        if let Some(level) = self.inner.last_mut() {
            if let Some(to) = moved(level.at, level.steps.len()) {
                level.at = to;
            } else {
                self.inner.pop();
                return self.go_by(by.signum());
            }
            self.arrive();
            return true;
        }
        match moved(self.at, self.steps.list().len()) {
            Some(to) => {
                self.arrive_at(to);
                true
            }
            None => false,
        }
    }

    /// Into the sub-steps of the step; false where it is a primitive.
    pub fn step_in(&mut self) -> bool {
        let Some(step) = self.step() else {
            return false;
        };
        let inner = self.session.expand(step);
        if inner.is_empty() {
            return false;
        }
        self.jumps.leave(self.spot());
        self.aside = None;
        self.inner.push(Level { steps: inner, at: 0 });
        self.arrive();
        true
    }

    /// Out of the sub-steps; false where one is in none.
    pub fn step_out(&mut self) -> bool {
        if self.aside.take().is_none() && self.inner.pop().is_none() {
            return false;
        }
        self.arrive();
        true
    }

    /// To the first step of the next (or previous) phase whose name differs in `part`.
    fn next_where(&mut self, forward: bool, part: impl Fn(&Step) -> String) -> bool {
        let list = self.steps.list();
        let Some(here) = list.get(self.at).map(&part) else {
            return false;
        };
        let to = if forward {
            (self.at + 1..list.len()).find(|&i| part(&list[i]) != here)
        } else {
            // The beginning of this part, or of the one before where one is there.
            let start = (0..=self.at).rev().take_while(|&i| part(&list[i]) == here).last().unwrap_or(0);
            if start < self.at || self.depth() > 0 {
                Some(start)
            } else {
                start.checked_sub(1).map(|before| {
                    let name = part(&list[before]);
                    (0..=before).rev().take_while(|&i| part(&list[i]) == name).last().unwrap_or(0)
                })
            }
        };
        match to {
            Some(to) => {
                self.arrive_at(to);
                true
            }
            None => false,
        }
    }

    /// To the next (or previous) phase.
    pub fn to_phase(&mut self, forward: bool) -> bool {
        self.next_where(forward, |s| s.phase.clone())
    }

    /// To the next (or previous) layer: `decoder.2 cross-attention` is of layer `decoder.2`.
    pub fn to_layer(&mut self, forward: bool) -> bool {
        self.next_where(forward, |s| s.phase.split(' ').next().unwrap_or("").to_owned())
    }

    /// To the first or the last step.
    pub fn to_end(&mut self, last: bool) {
        self.leave();
        self.arrive_at(if last { usize::MAX } else { 0 });
    }

    /// Notes the place for Backspace.
    pub fn leave(&mut self) {
        let here = self.spot();
        self.jumps.leave(here);
    }

    /// To a step by number, or some steps on.
    pub fn to_step(&mut self, target: &StepTarget) -> bool {
        match target {
            StepTarget::Relative(by) => self.go_by(i64::from(*by)),
            StepTarget::Number(path) => {
                let Some(at) = path.first().and_then(|n| self.steps.position(*n)) else {
                    return false;
                };
                let here = self.spot();
                self.arrive_at(at);
                for part in &path[1..] {
                    let into = self.step_in();
                    let Some(level) = self.inner.last_mut().filter(|_| into) else {
                        self.restore(&here);
                        return false;
                    };
                    let Some(to) = (*part as usize).checked_sub(1).filter(|t| *t < level.steps.len()) else {
                        self.restore(&here);
                        return false;
                    };
                    level.at = to;
                    self.arrive();
                }
                self.jumps.leave(here);
                true
            }
        }
    }

    /// Which steps there are, where there is none of this number.
    pub(super) fn no_step(&self, target: &StepTarget) -> Msg {
        let list = self.steps.list();
        if let StepTarget::Number(path) = target
            && let Some((last, outer @ [number, ..])) = path.split_last()
            && let Some(at) = self.steps.position(*number)
        {
            let mut step = list[at].clone();
            for n in &outer[1..] {
                let mut inside = self.session.expand(&step);
                let at = (*n as usize).wrapping_sub(1);
                if at >= inside.len() {
                    break;
                }
                step = inside.swap_remove(at);
            }
            let count = self.session.expand(&step).len();
            let msg = Msg::new("tui.said.no_sub_step").arg("count", count);
            return msg.arg("number", last).arg("step", step.label());
        }
        let label = |s: Option<&Step>| s.map_or_else(String::new, Step::label);
        Msg::new("tui.said.no_step_of").arg("first", label(list.first())).arg("last", label(list.last()))
    }

    /// Shows a tensor that no numbered step shows.
    pub(super) fn open_aside(&mut self, run: usize, node: crate::program::NodeId, slice: Slice) {
        let program = &self.session.runs[run].program;
        let symbol = program.node(node).name.tail(2);
        let Ok(mut view) = View::new(program, run, node, symbol, slice) else {
            return;
        };
        view.role = Role::Result;
        let (section, phase) =
            self.steps.list().get(self.at).map_or_else(Default::default, |s| (s.section.clone(), s.phase.clone()));
        self.aside = Some(Step {
            number: self.step().map_or_else(Vec::new, |s| s.number.clone()),
            section,
            phase,
            run,
            title: title_of(program, node, &Slice::all()),
            note: LocalizedText::Empty,
            formula: String::new(),
            views: vec![view],
        });
        self.arrive();
    }

    /// Puts the cursor on cell `index` of view `view`.
    pub fn select(&mut self, view: usize, index: &[usize]) {
        let Some(step) = self.step() else { return };
        let view = view.min(step.views.len().saturating_sub(1));
        let Some(shape) = step.views.get(view).map(View::shape) else {
            return;
        };
        self.index = (0..shape.rank())
            .map(|d| index.get(d).copied().unwrap_or(0).min(shape.dims()[d].saturating_sub(1)))
            .collect();
        self.view = view;
        self.term = None;
    }

    /// To the next (or previous) table of the step.
    pub fn to_table(&mut self, forward: bool) {
        let Some(n) = self.step().map(|s| s.views.len()).filter(|n| *n > 0) else {
            return;
        };
        let view = if forward { (self.view + 1) % n } else { (self.view + n - 1) % n };
        let index = self.index.clone();
        self.select(view, &index);
    }

    /// Moves the cursor along an axis counted from the last (0: columns, 1: rows).
    pub fn move_cursor(&mut self, from_last: usize, by: i64) {
        let Some(shape) = self.view().map(View::shape) else {
            return;
        };
        let Some(axis) = self.index.len().checked_sub(from_last + 1) else {
            return;
        };
        let last = shape.dims()[axis].saturating_sub(1) as i64;
        let to = (self.index[axis] as i64).saturating_add(by).clamp(0, last);
        self.index[axis] = to as usize;
        self.term = None;
    }

    /// One cell along an axis counted from the last; from the edge of a table to the one beside it, in the same row or
    /// column where it has one. There is none beyond the last.
    pub fn step_cursor(&mut self, from_last: usize, by: i64) {
        let before = (self.view, self.index.clone());
        self.move_cursor(from_last, by);
        let tables = self.step().map_or(0, |s| s.views.len());
        let to = if by < 0 { self.view.checked_sub(1) } else { Some(self.view + 1).filter(|to| *to < tables) };
        let Some(to) = to.filter(|_| before == (self.view, self.index.clone())) else {
            return;
        };
        let shape = self.step().map(|s| s.views[to].shape());
        let mut index = vec![0; shape.map_or(0, |s| s.rank())];
        for (slot, at) in index.iter_mut().rev().zip(before.1.iter().rev()) {
            *slot = *at;
        }
        if let Some(slot) = index.iter_mut().rev().nth(from_last) {
            // Select keeps it inside the table.
            *slot = if by < 0 { usize::MAX } else { 0 };
        }
        self.select(to, &index);
    }

    /// Turns the leading axis (head, batch) of the view.
    pub fn turn_axis(&mut self, by: i64) {
        let rank = self.index.len();
        for from_last in 2..rank {
            let axis = rank - 1 - from_last;
            let n = self.view().map_or(1, |v| v.shape().dims()[axis]) as i64;
            if n > 1 {
                self.index[axis] = (self.index[axis] as i64 + by).rem_euclid(n) as usize;
                self.term = None;
                return;
            }
        }
        // The axis may be sliced away: the same place in the sibling view of another head.
        self.to_table(by > 0);
    }

    /// Axes of the view that its table does not show: name, length, place.
    pub fn turned_axes(&self) -> Vec<(&'static str, usize, usize)> {
        let Some(shape) = self.view().map(View::shape) else {
            return Vec::new();
        };
        let leading = self.index.len().saturating_sub(2);
        let axes = shape.iter().zip(&self.index).take(leading);
        axes.map(|((axis, n), at)| (axis.name(), n, *at)).collect()
    }

    /// Goes to place `at` of such an axis; false where there is none.
    pub fn set_axis(&mut self, name: &str, at: usize) -> bool {
        let axes = self.turned_axes();
        let Some(axis) = axes.iter().position(|(n, len, _)| *n == name && at < *len) else {
            return false;
        };
        self.index[axis] = at;
        self.term = None;
        true
    }

    /// Returns to a place.
    pub fn restore(&mut self, spot: &Spot) {
        self.return_to(spot.update);
        if spot.run != self.run {
            self.choose_run(spot.run);
        }
        self.arrive_at(spot.at);
        for &at in &spot.inner {
            let Some(step) = self.step() else { break };
            let steps = self.session.expand(step);
            if at >= steps.len() {
                break;
            }
            self.inner.push(Level { steps, at });
        }
        if let Some(node) = spot.aside {
            let run = self.step().map_or(0, |s| s.run);
            self.open_aside(run, crate::program::NodeId(node), Slice::all());
        }
        self.arrive();
        self.select(spot.view, &spot.index);
    }

    /// Lists the steps of another run, or of the whole walkthrough.
    pub fn choose_run(&mut self, run: Option<usize>) {
        self.run = run;
        self.steps = run.map_or_else(|| Arc::clone(&self.session.steps), |r| self.session.steps_of(r));
        self.list_findings();
        self.folded.clear();
        self.arrive_at(0);
    }

    /// Folds or unfolds the phase whose first step stands at `first`.
    pub fn fold(&mut self, first: usize) {
        if !self.folded.remove(&first) {
            self.folded.insert(first);
        }
    }

    /// To the step at a position of the list.
    pub fn jump_to(&mut self, at: usize) {
        self.leave();
        self.arrive_at(at);
    }

    /// To a sub-step of the levels one is in.
    pub fn choose_inner(&mut self, depth: usize, at: usize) {
        self.aside = None;
        self.inner.truncate(depth);
        if let Some(level) = self.inner.last_mut() {
            level.at = at.min(level.steps.len().saturating_sub(1));
        }
        self.arrive();
    }

    /// Puts the cursor on a row and column of the plane that is shown of a view.
    pub fn select_in_plane(&mut self, view: usize, at: &[usize]) {
        let rank = self.step().and_then(|s| s.views.get(view)).map_or(0, |v| v.shape().rank());
        let mut index = if view == self.view { self.index.clone() } else { vec![0; rank] };
        for (slot, i) in index.iter_mut().rev().zip(at.iter().rev()) {
            *slot = *i;
        }
        self.select(view, &index);
    }

    /// Chooses a number of the derivation.
    pub fn choose_term(&mut self, term: usize) {
        self.term = Some(term);
    }
}
