//! Columns of a `ReLU` that no token opens.

use super::{Look, brief};
use crate::program::{NodeId, Op, Side, Unary};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::Real;

/// Fewer tokens than this say nothing of a column: half the columns are closed for one token.
const FEW_TOKENS: usize = 4;
/// With fewer tokens than this, columns are closed by chance: tokens of one sentence are much alike.
const MANY_TOKENS: usize = 32;
/// From this share of closed columns on it is worth telling: with many tokens, with fewer; and from this on a warning.
const SOME: f64 = 0.1;
const HALF: f64 = 0.5;
const NEARLY_ALL: f64 = 0.9;

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    let relus: Vec<NodeId> = look
        .nodes()
        .filter(|(_, n)| {
            // Those inside a written line are parts of other functions.
            matches!(n.op, Op::Unary(Unary::Relu)) && !n.inline && !n.name.is_derived()
        })
        .filter(|(_, n)| n.name.call.is_none())
        .map(|(id, _)| id)
        .collect();
    for id in relus {
        dead(look, id);
    }
}

fn dead<T: Real>(look: &mut Look<'_, T>, id: NodeId) {
    let t = look.numbers(id);
    let dims = t.shape().dims();
    let (Some(&width), true) = (dims.last(), dims.len() >= 2) else {
        return;
    };
    let tokens = dims[dims.len() - 2];
    let side = look.program.node(id).name.site.side();
    let padding = if side == Some(Side::Source) { &look.facts.source } else { &look.facts.target };
    let real = |row: usize| {
        let known = padding.tokens() == tokens;
        !known || !padding.at(row / tokens.max(1), row % tokens.max(1))
    };
    let mut open = vec![false; width];
    let mut rows = 0;
    for (_, cells) in t.data().chunks_exact(width.max(1)).enumerate().filter(|(row, _)| real(*row)) {
        rows += 1;
        for (open, x) in open.iter_mut().zip(cells) {
            *open |= *x != T::ZERO;
        }
    }
    let count = open.iter().filter(|o| !**o).count();
    let Some(first) = open.iter().position(|o| !*o) else {
        return;
    };
    let share = count as f64 / width as f64;
    let least = if rows < MANY_TOKENS { HALF } else { SOME };
    if rows < FEW_TOKENS || share < least {
        return;
    }
    let severity = if share >= NEARLY_ALL { Severity::Warning } else { Severity::Info };
    let args = [
        ("width", width.to_string()),
        ("tokens", rows.to_string()),
        ("percent", brief((share * 1000.0).round() / 10.0)),
    ];
    look.tell((Lint::DeadRelu, severity), (id, Some(first)), (share, count), &args);
}
