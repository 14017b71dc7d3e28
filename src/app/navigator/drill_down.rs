//! The why-chain: from a number to the numbers it was made of, step by step, and back.

use super::{Navigator, names};
use crate::explain::{self, Explainer, Style, formula};
use crate::export::document::step_formula;
use crate::program::{Leaf, Op};
use crate::session::ShownCell;
use crate::session::locate::step_of;
use crate::tensor::Slice;
use crate::text::{Lang, NumberFormat};
use crate::trace::AnyTrace;
use crate::trace::derive::{Arithmetic, Cell, Line};

/// Longest sum in the derivation on the screen.
pub const MAX_TERMS: usize = 64;

impl Navigator {
    /// The written derivation of the cursor cell.
    pub fn line(&self, lang: Lang, number: NumberFormat, most_terms: usize) -> Option<explain::Line> {
        let here = self.cell()?;
        if self.hidden == Some(here) {
            return None;
        }
        let trace = self.trace(here.0).filter(|trace| trace.reached(here.1.node))?;
        self.line_in(&trace, lang, Style { number, most_terms })
    }

    /// The derivation of the cursor cell from the exact numbers, where what is shown was rounded each step.
    pub fn exact_line(&self, lang: Lang, number: NumberFormat, most_terms: usize) -> Option<explain::Line> {
        self.round()?;
        let (run, _) = self.cell()?;
        self.line_in(self.session.trace(run).ok()?, lang, Style { number, most_terms })
    }

    /// The formula of the step; where it does not name the tensor looked at, that tensor's own.
    pub fn formula(&self) -> String {
        let (Some(step), Some(view)) = (self.step(), self.view()) else {
            return String::new();
        };
        let of_step = step_formula(&self.session, &self.steps, self.at, step);
        if names(&of_step, &view.symbol) {
            return of_step;
        }
        let program = &self.session.runs[view.run].program;
        let name = |id| {
            let session = &self.session;
            session.tensor_name(&self.steps, view.run, id, &view.slice, self.at)
        };
        let own = formula(program, view.node, &name);
        if own.is_empty() || own == view.symbol { of_step } else { format!("{} = {own}", view.symbol) }
    }

    fn line_in(&self, trace: &AnyTrace, lang: Lang, style: Style) -> Option<explain::Line> {
        let (run, cell) = self.cell()?;
        let explainer = Explainer::new(trace).speaking(lang);
        let name = self.view()?.cell_name(&self.index);
        let names = |c: Cell| self.session.cell_name(&self.steps, run, c, self.at);
        Some(explainer.line(&name, cell, &style, &names))
    }

    /// Which of the line's numbers Enter goes into.
    pub fn chosen_term(&self, line: &explain::Line) -> Option<usize> {
        let cells: Vec<Cell> = line.cells().collect();
        if cells.is_empty() {
            return None;
        }
        if let Some(term) = self.term {
            return Some(term.min(cells.len() - 1));
        }
        let (run, cell) = self.cell()?;
        let trace = self.trace(run)?;
        let heaviest = heaviest(&trace, cell)?;
        Some(cells.iter().position(|c| *c == heaviest).unwrap_or(0))
    }

    /// The cell that Enter goes into.
    pub fn chosen_cell(&self) -> Option<Cell> {
        if self.term.is_some() {
            let line = self.line(Lang::En, NumberFormat::Shortest, MAX_TERMS)?;
            return line.cells().nth(self.chosen_term(&line)?);
        }
        let (run, cell) = self.cell()?;
        heaviest(&*self.trace(run)?, cell)
    }

    /// The derivations of the cells of the plane, row after row from the cursor's row on, at most `most` of them.
    pub fn plane_lines(&self, lang: Lang, number: NumberFormat, most_terms: usize, most: usize) -> Vec<String> {
        let (Some(view), Some((run, cursor))) = (self.view(), self.cell()) else {
            return Vec::new();
        };
        let Some(trace) = self.trace(run) else { return Vec::new() };
        let explainer = Explainer::new(&trace).speaking(lang);
        let names = |c: Cell| self.session.cell_name(&self.steps, run, c, self.at);
        let plane = super::Plane::of_view(view, &self.index);
        let n = plane.rows * plane.cols;
        // All of them where they fit, else those from the cursor's row on.
        let row = plane.find(cursor.flat).map_or(0, |c| c.0);
        let first = if n <= most { 0 } else { (row * plane.cols).min(n - most) };
        let cells = (first..n).take(most).map(|i| plane.flat(i / plane.cols, i % plane.cols));
        let lines = cells.filter_map(|flat| {
            let cell = Cell { node: view.node, flat };
            let name = view.cell_name(&view.index_of(cell)?);
            Some(explainer.line(&name, cell, &Style { number, most_terms }, &names).text())
        });
        lines.collect()
    }

    /// Chooses the next (or previous) number of the line.
    pub fn turn_term(&mut self, forward: bool, line: &explain::Line) {
        let n = line.cells().count();
        if n == 0 {
            return;
        }
        let now = self.chosen_term(line).unwrap_or(0);
        self.term = Some(if forward { (now + 1) % n } else { (now + n - 1) % n });
    }

    /// Goes to where the chosen number was made; false where the cell is given.
    pub fn follow(&mut self, line: &explain::Line) -> bool {
        let Some((run, _)) = self.cell() else {
            return false;
        };
        let term = || self.chosen_term(line).and_then(|t| line.cells().nth(t));
        let long = || self.term.is_none().then(|| self.chosen_cell()).flatten();
        // Of a long sum the line shows only some terms.
        let Some(target) = long().or_else(term).filter(|_| line.cells().next().is_some()) else {
            return false;
        };
        self.leave();
        self.show_cell(run, target);
        true
    }

    /// Goes to the step that shows a cell, else to the one that shows what comes of it, with the cell next to it.
    pub fn visit(&mut self, run: usize, target: Cell) {
        if self.find(run, target).is_none()
            && let Some(step) = step_of(&self.session, &self.steps, run, target.node)
        {
            self.arrive_at(step);
        }
        self.show_cell(run, target);
    }

    /// Shows a cell where the walkthrough shows it, else next to it.
    pub fn show_cell(&mut self, run: usize, target: Cell) {
        let here = self.at;
        // The step one is in may show it too (exp next to A): that is nearest.
        if let Some((view, index)) = self.step().and_then(|s| s.view_of(run, target)) {
            self.select(view, &index);
            return;
        }
        if let Some(ShownCell { step, view, index }) = self.find(run, target) {
            self.aside = None;
            self.inner.clear();
            self.at = step;
            self.arrive();
            self.select(view, &index);
            return;
        }
        self.open_aside(run, target.node, Slice::all());
        self.at = here;
        let index = self.view().and_then(|v| v.index_of(target));
        if let Some(index) = index {
            self.select(0, &index);
        }
    }

    /// Where the walkthrough shows a cell; parameters are the same in every run.
    fn find(&self, run: usize, target: Cell) -> Option<ShownCell> {
        if let Some(place) = self.steps.locate(run, target, self.at) {
            return Some(place);
        }
        let node = self.session.runs[run].program.node(target.node);
        if !matches!(node.op, Op::Leaf(Leaf::Parameter)) {
            return None;
        }
        (0..self.session.runs.len()).filter(|r| *r != run).find_map(|other| {
            let same = self.session.runs[other].program.find(&node.path)?;
            self.steps.locate(other, Cell { node: same, flat: target.flat }, self.at)
        })
    }

    /// The view and index that show `cell` in the current step.
    pub fn here(&self, run: usize, cell: Cell) -> Option<(usize, Vec<usize>)> {
        self.step()?.view_of(run, cell)
    }

    /// The cells that an argmax chose `cell` from.
    pub fn argmax_row(&self, run: usize, mut cell: Cell) -> Option<Line> {
        let trace = self.trace(run)?;
        let explainer = Explainer::new(&trace);
        loop {
            match explainer.arithmetic(cell) {
                Arithmetic::Copy(of) => cell = of,
                Arithmetic::ArgMax(line) => return Some(line),
                _ => return None,
            }
        }
    }
}

/// The number that weighs most in a cell: the winner of a maximum, the largest product (its left factor), else the
/// first operand. Looks through inline nodes.
fn heaviest(trace: &AnyTrace, cell: Cell) -> Option<Cell> {
    let explainer = Explainer::new(trace);
    let mut at = cell;
    for _ in 0..64 {
        let value = |c: &Cell| explainer.value(*c);
        let next = match explainer.arithmetic(at) {
            Arithmetic::Given => return None,
            Arithmetic::Dot(a, b) => {
                let weight = |i: &usize| (value(&a.cell(*i)) * value(&b.cell(*i))).abs();
                let best = (0..a.len).max_by(|i, j| weight(i).total_cmp(&weight(j)).then(j.cmp(i)))?;
                a.cell(best)
            }
            Arithmetic::ArgMax(l) => l.cell(value(&at) as usize),
            Arithmetic::Fold(_, l) | Arithmetic::Running(l) | Arithmetic::ArgSort(l, _) => {
                (0..l.len).map(|i| l.cell(i)).max_by(|x, y| value(x).abs().total_cmp(&value(y).abs()))?
            }
            Arithmetic::Scatter(base, terms) => {
                terms.into_iter().max_by(|x, y| value(x).abs().total_cmp(&value(y).abs())).unwrap_or(base)
            }
            Arithmetic::Sample(l, _) => l.cell((value(&at) as usize).min(l.len.saturating_sub(1))),
            other => *other.operands().first()?,
        };
        if !trace.program().node(next.node).inline {
            return Some(next);
        }
        at = next;
    }
    None
}
