//! Facts of a tensor: range, mean, norm, zeros; and what is worth saying of a softmax, a norm, a ReLU, an attention.

use super::model::is_masked;
use super::{Navigator, Plane};
use crate::debug::whatif::Before;
use crate::program::{Cost, NodeId, ScopeKind, Unary, cost};
use crate::tensor::Axis;
use crate::text::{Msg, NumberFormat};
use crate::trace::AnyValue;

/// Statistics of some cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// How many.
    pub count: usize,
    /// Smallest finite one that is not a masked score.
    pub min: f64,
    /// Largest finite one.
    pub max: f64,
    /// Mean of the finite ones.
    pub mean: f64,
    /// Euclidean norm of the finite ones.
    pub norm: f64,
    /// How many are 0.
    pub zeros: usize,
    /// How many are NaN.
    pub nan: usize,
    /// How many are infinite.
    pub infinite: usize,
    /// How many are masked scores.
    pub masked: usize,
}

/// Facts, as messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// One a line.
    pub lines: Vec<Msg>,
}

impl Stats {
    /// Of these values.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut s = Self {
            count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            mean: 0.0,
            norm: 0.0,
            zeros: 0,
            nan: 0,
            infinite: 0,
            masked: 0,
        };
        let (mut sum, mut squares, mut finite) = (0.0, 0.0, 0usize);
        for x in values {
            s.count += 1;
            if x.is_nan() {
                s.nan += 1;
            } else if x.is_infinite() {
                s.infinite += 1;
            } else if x < crate::explain::line::MASKED_BELOW {
                s.masked += 1;
            } else {
                finite += 1;
                s.zeros += usize::from(x == 0.0);
                s.min = s.min.min(x);
                s.max = s.max.max(x);
                sum += x;
                squares += x * x;
            }
        }
        if finite == 0 {
            (s.min, s.max) = (0.0, 0.0);
        }
        s.mean = sum / finite.max(1) as f64;
        s.norm = squares.sqrt();
        s
    }
}

/// Tensors beyond this are described by the plane or the window that is shown, so that work does not grow with them.
pub const MAX_SCANNED: usize = 1 << 16;

/// Rows sampled of a tensor for its mean norm.
const ROWS: usize = 64;
/// Columns sampled of a row.
const COLUMNS: usize = 256;

/// Mean Euclidean norm of the rows, of a sample where there are many.
fn sampled_norm(value: &AnyValue) -> f64 {
    let shape = *value.shape();
    let width = shape.dims().last().copied().unwrap_or(1).max(1);
    let rows = shape.len() / width;
    let take = |n: usize, most: usize| n.div_ceil(most).max(1);
    let (row_step, col_step) = (take(rows, ROWS), take(width, COLUMNS));
    let norms: Vec<f64> = (0..rows)
        .step_by(row_step)
        .map(|r| {
            let squares: f64 = (0..width).step_by(col_step).map(|c| value.get(r * width + c).powi(2)).sum();
            // A sample of a row stands for all of it.
            (squares * col_step as f64).sqrt()
        })
        .collect();
    norms.iter().sum::<f64>() / norms.len().max(1) as f64
}

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

    /// Mean Euclidean norm of a tensor's rows, of a sample where it is large; NaN where it was not computed.
    pub fn mean_norm(&self, run: usize, node: NodeId) -> f64 {
        let key = (run, node, self.round.is_some());
        if let Some(norm) = self.norms.borrow().get(&key) {
            return *norm;
        }
        let value = self.trace(run).and_then(|t| t.get(node));
        let norm = value.map_or(f64::NAN, |v| sampled_norm(&v));
        self.norms.borrow_mut().insert(key, norm);
        norm
    }

    /// Statistics of a whole tensor; `None` where it is too large to be scanned.
    pub fn stats(&self, run: usize, node: NodeId) -> Option<Stats> {
        let shape = self.session.runs[run].program.node(node).shape;
        if shape.len() > MAX_SCANNED {
            return None;
        }
        let key = (run, node, self.round.is_some());
        if let Some(stats) = self.stats.borrow().get(&key) {
            return Some(*stats);
        }
        let value = self.trace(run)?.get(node)?;
        let stats = Stats::of((0..shape.len()).map(|i| value.get(i)));
        self.stats.borrow_mut().insert(key, stats);
        Some(stats)
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
        let show = |x: f64| number.format(x);
        if let (Some((run, cell)), Before::Was(before)) = (self.cell(), self.before(view.run, view.node))
            && run == view.run
            && before.bits(cell.flat) != value.bits(cell.flat)
        {
            let msg = Msg::new("tui.fact.before").arg("value", show(before.get(cell.flat)));
            lines.push(msg);
        }
        let plane = Plane::of_view(view, &self.index);
        let of_plane = || {
            let n = plane.rows * plane.cols;
            (n <= MAX_SCANNED).then(|| Stats::of(plane.cells().map(|f| value.get(f))))
        };
        // All planes of the view, else the one that is shown; which is said where they are not the same.
        let whole = view.slice.is_all().then(|| self.stats(view.run, view.node));
        let whole = whole.flatten().filter(|_| !plane.fixed.is_empty());
        let mut stats = of_plane();
        if let Some(s) = stats.as_mut().filter(|_| is_masked(program, view.node)) {
            let hidden = plane.cells().filter(|f| value.get(*f) == f64::NEG_INFINITY);
            let hidden = hidden.count();
            s.infinite -= hidden;
            s.masked += hidden;
        }
        if let Some(s) = stats {
            lines.push(
                Msg::new("tui.fact.range")
                    .arg("min", show(s.min))
                    .arg("max", show(s.max))
                    .arg("mean", show(s.mean))
                    .arg("norm", show(s.norm)),
            );
            let share = s.zeros as f64 / s.count.max(1) as f64 * 100.0;
            lines.push(
                Msg::new("tui.fact.counts")
                    .arg("zeros", s.zeros)
                    .arg("share", format!("{share:.0}"))
                    .arg("nan", s.nan)
                    .arg("inf", s.infinite)
                    .arg("masked", s.masked),
            );
        }
        if let Some(s) = whole {
            lines.push(
                Msg::new("tui.fact.whole")
                    .arg("planes", s.count / (plane.rows * plane.cols).max(1))
                    .arg("min", show(s.min))
                    .arg("max", show(s.max))
                    .arg("mean", show(s.mean))
                    .arg("norm", show(s.norm)),
            );
        }
        let row: Vec<f64> = plane.row_of(&self.index).map(|f| value.get(f)).take(MAX_SCANNED).collect();
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
            let share = s.zeros as f64 / s.count.max(1) as f64 * 100.0;
            lines.push(Msg::new("tui.fact.relu").arg("share", format!("{share:.0}")));
        }
        let axes = node.shape.axes();
        if axes.ends_with(&[Axis::Query, Axis::Key]) && node.path.ends_with("weights") && plane.rows == plane.cols {
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
