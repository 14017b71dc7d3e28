//! Going from step to step and from cell to cell.

use std::sync::Arc;

use super::{Level, NavState, Navigator, names};
use crate::app::args::StepTarget;
use crate::export::document::step_formula;
use crate::program::NodeId;
use crate::tensor::Slice;
use crate::text::Msg;
use crate::trace::derive::Cell;
use crate::walkthrough::{LocalizedText, Role, Step, View, title_of};

impl Navigator {
    /// Puts the cursor where a step is read first: on the number that its prediction was chosen for, else its last
    /// result that the formula names, at the first cell.
    pub(super) fn arrive(&mut self) {
        self.term = None;
        self.arrivals += 1;
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
        self.keep_choice();
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

    /// To the step at a position of the list, without noting where one came from.
    pub fn arrive_at(&mut self, at: usize) {
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
        self.jumps.leave(self.state());
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
        let here = self.state();
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
                let here = self.state();
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
    pub fn no_step(&self, target: &StepTarget) -> Msg {
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
    pub(super) fn open_aside(&mut self, run: usize, node: NodeId, slice: Slice) {
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

    /// Returns to a place.
    pub fn restore(&mut self, place: &NavState) {
        self.return_to(place.update);
        if place.run != self.run {
            self.choose_run(place.run);
        }
        self.arrive_at(place.at);
        for &at in &place.inner {
            let Some(step) = self.step() else { break };
            let steps = self.session.expand(step);
            if at >= steps.len() {
                break;
            }
            self.inner.push(Level { steps, at });
        }
        if let Some((run, node)) = place.aside {
            self.open_aside(run, NodeId(node), Slice::all());
        }
        self.arrive();
        self.select(place.view, &place.index);
    }

    /// Lists the steps of another run, or of the whole walkthrough.
    pub fn choose_run(&mut self, run: Option<usize>) {
        self.run = run;
        self.steps = run.map_or_else(|| Arc::clone(&self.session.steps), |r| self.session.steps_of(r));
        self.folded.clear();
        self.arrive_at(0);
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
}
