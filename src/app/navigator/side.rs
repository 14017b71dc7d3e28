//! Two runs side by side, stepping together by path.

use std::sync::Arc;

use super::Navigator;
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::{Arg, Place};
use crate::app::asked::Sides;
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::app::view::View;
use crate::debug::side::{Align, Beside, CellPair, Mapping, PathPair, differing, next_difference, previous_difference};
use crate::program::{Name, Site};
use crate::session::Session;
use crate::text::{Msg, NumberFormat, escape};
use crate::trace::derive::Cell;
use crate::trace::{AnyTrace, AnyValue};

/// Decimals of the rounded side where none are given.
pub(super) const DIGITS: u8 = 4;
/// Differing paths that an answer lists.
const MAX_LISTED: usize = 200;

/// One of the two sides.
#[derive(Clone, Debug)]
pub struct Half {
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
    /// What was asked for.
    pub what: Sides,
    /// Left and right.
    pub halves: [Half; 2],
    /// Which path of the right stands beside one of the left.
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
}

impl Half {
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
pub struct Seen<'a> {
    /// Paths, nodes, and how much differs.
    pub pair: &'a PathPair,
    /// Traces, left and right.
    pub traces: [&'a AnyTrace; 2],
    /// Values, left and right.
    pub values: [AnyValue; 2],
    /// How their cells stand beside one another.
    pub beside: Beside,
    /// The cell one looks at.
    pub cell: CellPair,
}

impl Side {
    /// What one looks at.
    pub fn seen<'a>(&'a self, session: &'a Session) -> Option<Seen<'a>> {
        let pair = self.pairs.get(self.at)?;
        let traces = [self.halves[0].trace(session)?, self.halves[1].trace(session)?];
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
        Some(Seen { pair, traces, cell: beside.at(&index), values, beside })
    }

    /// Goes to a path: to its first difference, where there is one.
    pub(super) fn go(&mut self, at: usize, session: &Session) {
        self.at = at.min(self.pairs.len().saturating_sub(1));
        let first = self.pairs.get(self.at).and_then(|p| p.first);
        self.index.clear();
        let index = first.and_then(|cell| self.seen(session)?.beside.index(0, cell.left));
        self.index = index.unwrap_or_default();
    }

    /// To the next (or previous) cell of this path that differs; false where there is none.
    fn jump_to_cell(&mut self, forward: bool, session: &Session) -> bool {
        let found = self.seen(session).and_then(|seen| {
            let (pair, [l, r]) = (seen.pair, seen.traces);
            let cells = differing(l, r, pair, &self.mapping, self.align);
            let here = seen.cell.left;
            let next =
                if forward { cells.iter().find(|c| c.left > here) } else { cells.iter().rfind(|c| c.left < here) };
            seen.beside.index(0, next?.left)
        });
        let Some(index) = found else { return false };
        self.index = index;
        true
    }

    /// Moves along an axis of the part, counted from the last.
    fn step(&mut self, from_last: usize, by: i64, session: &Session) {
        let Some((mut index, dims)) = self.seen(session).and_then(|seen| {
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
    fn turn(&mut self, by: i64, session: &Session) {
        let Some((mut index, dims)) = self.seen(session).and_then(|seen| {
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
    fn jump_to_part(&mut self, forward: bool, session: &Session) {
        let here = self.pairs.get(self.at).map(|p| part_of(&p.path));
        let Some(here) = here else { return };
        let other = |i: &usize| part_of(&self.pairs[*i].path) != here;
        let to = if forward { (self.at + 1..self.pairs.len()).find(other) } else { (0..self.at).rev().find(other) };
        if let Some(to) = to {
            self.go(to, session);
        }
    }
}

impl Navigator {
    /// What stands side by side.
    ///
    /// # Errors
    /// What the scenario lacks for it.
    pub fn side(&self) -> Option<Result<&Side, &Msg>> {
        self.side.as_ref().map(Result::as_ref)
    }

    /// Puts two runs side by side and shows them.
    pub(super) fn side_by_side(&mut self, what: &Sides, ui: &mut Ui) {
        match self.put_side_by_side(what) {
            Ok(side) => {
                ui.answers.push(self.side_answer(&side, ui.settings.digits));
                self.side = Some(Ok(side));
                ui.view = View::Side;
            }
            Err(why) => ui.say(Level::Error, why),
        }
    }

    /// Makes what the side-by-side view shows: the usual two, where none were chosen.
    pub(super) fn show_side(&mut self) {
        if self.side.is_none() {
            self.side = Some(self.put_side_by_side(&Sides::Usual));
        }
    }

    /// What differs, as a list to go on from.
    fn side_answer(&self, side: &Side, number: NumberFormat) -> Answer {
        let mut answer = Answer::new(side.totals(number));
        let run = &self.session.runs[side.halves[0].run].name;
        for p in side.pairs.iter().filter(|p| p.differing > 0).take(MAX_LISTED) {
            let mut row = Row::new(
                Msg::new("side.row")
                    .arg("path", &p.path)
                    .arg("differing", p.differing)
                    .arg("cells", p.cells)
                    .arg("largest", number.format_nonzero(p.max_difference)),
            );
            let place = format!("{run}:{}", p.path);
            if let Ok(place) = Place::parse(&place) {
                row = row.action(Action::Go(place));
            }
            answer.push(row);
        }
        answer
    }

    /// What keys do while two runs stand side by side; false for those that do there what they do elsewhere.
    pub(super) fn in_side(
        &mut self,
        action: &Action,
        ui: &mut Ui,
        page: (i64, i64),
        effects: &mut Vec<Effect>,
    ) -> bool {
        let session = Arc::clone(&self.session);
        let s = session.as_ref();
        let Some(Ok(side)) = &mut self.side else {
            return false;
        };
        let last = side.pairs.len().saturating_sub(1);
        let mut say = |key| ui.messages.push(Level::Info, Msg::new(key));
        match action {
            Action::Next => side.go((side.at + 1).min(last), s),
            Action::Prev => side.go(side.at.saturating_sub(1), s),
            Action::First => side.go(0, s),
            Action::Last => side.go(last, s),
            Action::NextPhase | Action::NextLayer => side.jump_to_part(true, s),
            Action::PrevPhase | Action::PrevLayer => side.jump_to_part(false, s),
            Action::NextDiff => match next_difference(&side.pairs, side.at) {
                Some(to) => side.go(to, s),
                None => say("side.no_next"),
            },
            Action::PrevDiff => match previous_difference(&side.pairs, side.at) {
                Some(to) => side.go(to, s),
                None => say("side.no_previous"),
            },
            Action::NextTerm | Action::PrevTerm => {
                if !side.jump_to_cell(*action == Action::NextTerm, s) {
                    say("side.no_cell");
                }
            }
            Action::Left => side.step(0, -1, s),
            Action::Right => side.step(0, 1, s),
            Action::Up => side.step(1, -1, s),
            Action::Down => side.step(1, 1, s),
            Action::PageLeft => side.step(0, -page.1, s),
            Action::PageRight => side.step(0, page.1, s),
            Action::PageUp => side.step(1, -page.0, s),
            Action::PageDown => side.step(1, page.0, s),
            Action::HalfUp => side.step(1, -(page.0 + 1) / 2, s),
            Action::HalfDown => side.step(1, (page.0 + 1) / 2, s),
            Action::RowStart => side.step(0, i64::MIN / 2, s),
            Action::RowEnd => side.step(0, i64::MAX / 2, s),
            Action::Top => side.step(1, i64::MIN / 2, s),
            Action::Bottom => side.step(1, i64::MAX / 2, s),
            Action::AxisNext => side.turn(1, s),
            Action::AxisPrev => side.turn(-1, s),
            Action::NextTable | Action::PrevTable => {
                let now = side.clone();
                match self.turn_right_side(&now, *action == Action::NextTable) {
                    Some(Ok(mut side)) => {
                        // The same path, where the other right side has it too.
                        let path = now.pairs.get(now.at).map(|p| &p.path);
                        let at = side.pairs.iter().position(|p| Some(&p.path) == path);
                        side.go(at.unwrap_or(side.at), s);
                        self.side = Some(Ok(side));
                    }
                    Some(Err(why)) => ui.say(Level::Error, why),
                    None => say("side.nothing_to_turn"),
                }
            }
            Action::CopyCell => {
                let text = side.seen(s).map(|seen| {
                    let exact = crate::text::number::exact;
                    let [l, r] = &seen.values;
                    let (l, r) = (l.get(seen.cell.left), r.get(seen.cell.right));
                    format!("{}\t{}", exact(l), exact(r))
                });
                if let Some(text) = text {
                    let done = Msg::new("tui.sent.cell");
                    effects.push(Effect::Copy { text, done });
                }
            }
            Action::Follow => {
                let half = side.halves[0].clone();
                let found = side.seen(s).and_then(|seen| {
                    let path = &seen.pair.path;
                    let node = s.runs[half.run].program.find(path)?;
                    let same = s.runs[half.run].program.node(node).shape;
                    let flat = seen.cell.left;
                    (same.same_dims(seen.values[0].shape())).then_some(Cell { node, flat })
                });
                match found {
                    Some(cell) => {
                        self.leave();
                        if !self.steps.list().iter().any(|step| step.run == half.run) {
                            self.choose_run(Some(half.run));
                        }
                        self.show_cell(half.run, cell);
                        ui.view = View::Step;
                    }
                    None => say("side.not_in_steps"),
                }
            }
            _ => return false,
        }
        true
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

pub(super) fn no_run(name: &str) -> Msg {
    Msg::new("tui.said.no_run").arg("name", escape(name))
}
