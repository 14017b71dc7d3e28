//! Facts of a tensor: range, mean, norm, zeros; and what is worth saying of a softmax, a norm, a ReLU, an attention.

use super::{Navigator, Plane};
use crate::app::measure::Part;
use crate::debug::whatif::Before;
use crate::program::{Cost, NodeId, Role, ScopeKind, Unary, cost};
use crate::tensor::{Axis, DType};
use crate::text::{Msg, NumberFormat};
use crate::trace::AnyValue;

/// Facts, as messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// One a line.
    pub lines: Vec<Msg>,
}

/// Mean Euclidean norm of the rows.
fn row_norm(value: &AnyValue) -> f64 {
    let shape = *value.shape();
    let width = shape.dims().last().copied().unwrap_or(1).max(1);
    let rows = shape.len() / width;
    let norm = |r: usize| (0..width).map(|c| value.get(r * width + c).powi(2)).sum::<f64>().sqrt();
    (0..rows).map(norm).sum::<f64>() / rows.max(1) as f64
}

/// Cells up to which a table is searched, or copied as text.
pub const MAX_SCANNED: usize = 1 << 16;

/// What a whole run costs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Arithmetic and memory.
    pub cost: Cost,
    /// Measured time, in nanoseconds.
    pub nanos: u64,
}

impl Navigator {
    /// What run `run` costs; summed up once.
    pub fn totals(&self, run: usize) -> Totals {
        if let Some(totals) = self.totals.borrow().get(&run) {
            return *totals;
        }
        let program = &self.session.runs[run].program;
        let mut totals = Totals::default();
        let trace = self.session.trace(run).ok();
        for (id, _) in program.nodes() {
            totals.cost += cost(program, id, self.session.precision);
            totals.nanos += trace.map_or(0, |t| t.nanos(id));
        }
        self.totals.borrow_mut().insert(run, totals);
        totals
    }

    /// Mean Euclidean norm of a tensor's rows, NaN where it was not computed.
    pub fn mean_norm(&self, run: usize, node: NodeId) -> f64 {
        let key = (run, node, self.round.is_some());
        if let Some(norm) = self.norms.borrow().get(&key) {
            return *norm;
        }
        let value = self.trace(run).and_then(|t| t.get(node));
        let norm = value.map_or(f64::NAN, |v| row_norm(&v));
        self.norms.borrow_mut().insert(key, norm);
        norm
    }

    /// Facts of the tensor looked at.
    pub fn facts(&self, number: NumberFormat) -> Facts {
        let mut lines = Vec::new();
        let Some(view) = self.view() else {
            return Facts::default();
        };
        let program = &self.session.runs[view.run].program;
        let node = program.node(view.node);
        lines.push(
            Msg::new("tui.fact.shape").arg("path", &node.path).arg("shape", node.shape).arg("op", node.op.name()),
        );
        let Some(value) = self.trace(view.run).and_then(|t| t.get(view.node)) else {
            return Facts { lines };
        };
        let show = |x: f64| number.format_nonzero(x);
        if let (Some((run, cell)), Before::Was(before)) = (self.cell(), self.before(view.run, view.node))
            && run == view.run
            && before.bits(cell.flat) != value.bits(cell.flat)
        {
            let msg = Msg::new("tui.fact.before").arg("value", show(before.get(cell.flat)));
            lines.push(msg);
        }
        let plane = Plane::of_view(view, &self.index);
        let stats = self.tally(view.run, view.node, Part::Plane(plane.window()));
        // All planes of the view, where it shows one of several; which is said where they are not the same.
        let several = view.slice.is_all() && !plane.fixed.is_empty();
        let whole = several.then(|| self.tally(view.run, view.node, Part::Whole)).flatten();
        if stats.is_none() {
            lines.push(Msg::new("tui.legend.pending"));
        }
        // Ids are names: their mean says nothing.
        let numbers = value.dtype() == DType::Float;
        if let Some(s) = stats.filter(|s| numbers && s.finite > 0) {
            lines.push(
                Msg::new("tui.fact.range")
                    .arg("min", show(s.min))
                    .arg("max", show(s.max))
                    .arg("mean", show(s.mean()))
                    .arg("norm", show(s.norm())),
            );
        }
        if let Some(s) = stats.filter(|_| numbers) {
            let share = s.zeros as f64 / s.finite.max(1) as f64 * 100.0;
            lines.push(
                Msg::new("tui.fact.counts")
                    .arg("zeros", s.zeros)
                    .arg("share", format!("{share:.0}"))
                    .arg("nan", s.nan)
                    .arg("inf", s.pos_inf + s.neg_inf)
                    .arg("masked", s.masked),
            );
        }
        if let Some(s) = whole.filter(|s| numbers && s.finite > 0) {
            lines.push(
                Msg::new("tui.fact.whole")
                    .arg("planes", s.count() as usize / (plane.rows * plane.cols).max(1))
                    .arg("min", show(s.min))
                    .arg("max", show(s.max))
                    .arg("mean", show(s.mean()))
                    .arg("norm", show(s.norm())),
            );
        }
        let row: Vec<f64> = plane.row_of(&self.index).map(|f| value.get(f)).collect();
        match &program.scope(node.scope).kind {
            ScopeKind::Softmax { output, .. } if *output == view.node => {
                let entropy: f64 = row.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
                lines.push(
                    Msg::new("tui.fact.softmax").arg("sum", show(row.iter().sum())).arg("entropy", show(entropy)),
                );
            }
            ScopeKind::LayerNorm { mean, var, output, .. } if *output == view.node => {
                let at = |id: NodeId| self.row_value(view.run, id, view.node);
                if let (Some(m), Some(v)) = (at(*mean), at(*var)) {
                    lines.push(Msg::new("tui.fact.norm").arg("mean", show(m)).arg("var", show(v)));
                }
            }
            ScopeKind::RmsNorm { mean_square, output, .. } if *output == view.node => {
                if let Some(m) = self.row_value(view.run, *mean_square, view.node) {
                    lines.push(Msg::new("tui.fact.rms").arg("mean_square", show(m)));
                }
            }
            _ => {}
        }
        if matches!(node.op, crate::program::Op::Unary(Unary::Relu))
            && let Some(s) = stats
        {
            let share = s.zeros as f64 / s.finite.max(1) as f64 * 100.0;
            lines.push(Msg::new("tui.fact.relu").arg("share", format!("{share:.0}")));
        }
        let axes = node.shape.axes();
        if axes.ends_with(&[Axis::Query, Axis::Key]) && *node.name.last() == Role::Weights && plane.rows == plane.cols {
            let n = plane.rows.min(512);
            let diagonal: f64 = (0..n).map(|i| value.get(plane.flat(i, i))).sum::<f64>() / n.max(1) as f64;
            let rest = (1.0 - diagonal) / (plane.cols.max(2) - 1) as f64;
            lines.push(Msg::new("tui.fact.diagonal").arg("diagonal", show(diagonal)).arg("rest", show(rest)));
        }
        if let Some(call) = self.ended() {
            lines.push(Msg::new("tui.fact.ended").arg("call", call + 1));
        }
        if let Some(count) = self.tie() {
            lines.push(Msg::new("tui.fact.tie").arg("count", count));
        }
        Facts { lines }
    }

    /// The value of a `[…, 1]` tensor in the cursor's row of `like`.
    fn row_value(&self, run: usize, id: NodeId, like: NodeId) -> Option<f64> {
        let (_, cell) = self.cell()?;
        let program = &self.session.runs[run].program;
        let width = program.node(like).shape.dims().last().copied()?.max(1);
        let value: AnyValue = self.trace(run)?.get(id)?;
        (cell.node == like).then(|| value.get(cell.flat / width))
    }
}
