//! Facts of the tensor looked at: range, mean, norm, zeros; and what is worth saying of a softmax, a norm, a ReLU, an
//! attention.

use crate::app::measure::Part;
use crate::app::navigator::{Navigator, Plane};
use crate::app::what_if::Edits;
use crate::debug::compare::theirs;
use crate::debug::whatif::Before;
use crate::explain::Explainer;
use crate::program::{Name, NodeId, Role, ScopeKind, Site, Unary};
use crate::session::generation::frame_of;
use crate::tensor::{Axis, DType};
use crate::text::{Msg, NumberFormat, escape};
use crate::trace::AnyValue;

/// Facts, as messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// One a line.
    pub lines: Vec<Msg>,
}

/// Facts of the tensor looked at.
pub fn facts(nav: &Navigator, edits: &Edits, number: NumberFormat) -> Facts {
    let mut lines = Vec::new();
    let Some(view) = nav.view() else {
        return Facts::default();
    };
    let program = &nav.session.runs[view.run].program;
    let node = program.node(view.node);
    lines.push(Msg::new("tui.fact.shape").arg("path", &node.path).arg("shape", node.shape).arg("op", node.op.name()));
    if let Some(name) = theirs(&nav.session, view.run, view.node) {
        lines.push(Msg::new("tui.fact.theirs").arg("name", escape(&name)));
    }
    let Some(value) = nav.trace(view.run).and_then(|t| t.get(view.node)) else {
        if nav.session.progress(view.run).is_some() {
            lines.push(Msg::new("tui.fact.not_yet"));
        }
        return Facts { lines };
    };
    let show = |x: f64| number.format_nonzero(x);
    if let (Some((run, cell)), Before::Was(before)) = (nav.cell(), edits.before(nav, view.run, view.node))
        && run == view.run
        && before.bits(cell.flat) != value.bits(cell.flat)
    {
        let msg = Msg::new("tui.fact.before").arg("value", show(before.get(cell.flat)));
        lines.push(msg);
    }
    let plane = Plane::of_view(view, nav.index());
    let stats = nav.tally(view.run, view.node, Part::Plane(plane.window()));
    // All planes of the view, where it shows one of several; which is said where they are not the same.
    let several = view.slice.is_all() && !plane.fixed.is_empty();
    let whole = several.then(|| nav.tally(view.run, view.node, Part::Whole)).flatten();
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
    let row: Vec<f64> = plane.row_of(nav.index()).map(|f| value.get(f)).collect();
    match &program.scope(node.scope).kind {
        ScopeKind::Softmax { output, .. } if *output == view.node => {
            let entropy: f64 = row.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
            lines.push(Msg::new("tui.fact.softmax").arg("sum", show(row.iter().sum())).arg("entropy", show(entropy)));
        }
        ScopeKind::LayerNorm { mean, var, output, .. } if *output == view.node => {
            let at = |id: NodeId| row_value(nav, view.run, id, view.node);
            if let (Some(m), Some(v)) = (at(*mean), at(*var)) {
                lines.push(Msg::new("tui.fact.norm").arg("mean", show(m)).arg("var", show(v)));
            }
        }
        ScopeKind::RmsNorm { mean_square, output, .. } if *output == view.node => {
            if let Some(m) = row_value(nav, view.run, *mean_square, view.node) {
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
    if let Some(call) = ended(nav) {
        lines.push(Msg::new("tui.fact.ended").arg("call", call + 1));
    }
    if let Some(count) = tie(nav) {
        lines.push(Msg::new("tui.fact.tie").arg("count", count));
    }
    Facts { lines }
}

/// The value of a `[…, 1]` tensor in the cursor's row of `like`.
fn row_value(nav: &Navigator, run: usize, id: NodeId, like: NodeId) -> Option<f64> {
    let (_, cell) = nav.cell()?;
    let program = &nav.session.runs[run].program;
    let width = program.node(like).shape.dims().last().copied()?.max(1);
    let value: AnyValue = nav.trace(run)?.get(id)?;
    (cell.node == like).then(|| value.get(cell.flat / width))
}

/// The first decoding call up to that of the place one is at that chose the end token, where the vocabulary has
/// one: what is decoded after it would not be.
fn ended(nav: &Navigator) -> Option<usize> {
    let view = nav.view()?;
    let run = &nav.session.runs[view.run];
    let here = frame_of(run.program.node(view.node))?;
    let end = *nav.session.ends().first()?;
    let trace = nav.trace(view.run)?;
    (0..=here).find(|call| {
        let chosen = run.program.named(&Name::of(Site::Next).then(Role::Id).in_call(*call as u32));
        let chosen = chosen.filter(|id| *call < here || *id <= view.node);
        let value = chosen.and_then(|id| trace.get(id));
        value.is_some_and(|v| v.shape().len() == 1 && v.get(0) as i64 == end)
    })
}

/// How many of the numbers that an argmax chose from share the largest value, where they are more than one. The
/// first of them is chosen.
fn tie(nav: &Navigator) -> Option<usize> {
    let (run, cell) = nav.cell()?;
    let line = nav.argmax_row(run, cell)?;
    let trace = nav.trace(run)?;
    let explainer = Explainer::new(&trace);
    let row: Vec<f64> = line.cells().map(|c| explainer.value(c)).collect();
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let count = row.iter().filter(|x| **x == most).count();
    (count > 1).then_some(count)
}
