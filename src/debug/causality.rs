//! Causality by perturbation: changing a later token must change no earlier row of the decoder. A static look at the
//! masks would trust the program; this looks at what it computes.

use std::sync::Arc;

use crate::program::{Name, NodeId, Program, Role};
use crate::tensor::{Axis, Real, Shape, Value};
use crate::trace::derive::Cell;
use crate::trace::{AnyTrace, Edit, Trace};
use crate::with_any;

/// A row that saw a later token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// Position of the token that was changed.
    pub changed: usize,
    /// The earlier row that changed with it.
    pub row: usize,
    /// The first path in which it did.
    pub path: String,
    /// The mask of that attention, where there is one.
    pub mask: Option<String>,
}

/// What the perturbation found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Positions whose token was changed.
    pub positions: usize,
    /// The first leak.
    pub leak: Option<Leak>,
}

/// Most positions that are changed: the first ones, and then evenly up to the last.
const MAX_POSITIONS: usize = 16;

/// Changes the tokens of `ids` (`[batch, token]`, such as `embed.target.ids`) one at a time and looks for earlier
/// rows that change. `words` is the size of the vocabulary.
///
/// Cells of a score matrix at keys after the query are not looked at before the softmax: a mask that adds a large
/// number leaves a trace there. After it they are.
pub fn check(trace: &AnyTrace, ids: NodeId, words: usize) -> Report {
    with_any!(AnyTrace, trace, t => check_in(t, ids, words))
}

fn check_in<T: Real>(trace: &Trace<T>, ids: NodeId, words: usize) -> Report {
    let program = Arc::clone(trace.program());
    let shape = program.node(ids).shape;
    let tokens = shape.dims().get(1).copied().unwrap_or(0);
    let mut report = Report::default();
    if tokens < 2 || words < 2 {
        return report;
    }
    let old = trace.value(ids);
    let step = (tokens - 1).div_ceil(MAX_POSITIONS);
    for changed in (1..tokens).rev().step_by(step).collect::<Vec<_>>().into_iter().rev() {
        report.positions += 1;
        let edits: Vec<Edit> = (0..shape.dims()[0])
            .map(|b| {
                let flat = b * tokens + changed;
                let value = (old.get(flat) as usize + 1) % words;
                let cell = Cell { node: ids, flat };
                Edit { cell, value: value as f64 }
            })
            .collect();
        let (other, nodes) = trace.changed_nodes(&edits);
        for id in nodes {
            let (before, after) = (trace.value(id), other.value(id));
            if let Some(row) = earlier_row(&program, id, &before, &after, tokens, changed) {
                report.leak =
                    Some(Leak { changed, row, path: program.node(id).path.to_string(), mask: mask_near(&program, id) });
                return report;
            }
        }
    }
    report
}

/// A row before `changed` in which `before` and `after` differ.
fn earlier_row<T: Real>(
    program: &Program,
    id: NodeId,
    before: &Value<T>,
    after: &Value<T>,
    tokens: usize,
    changed: usize,
) -> Option<usize> {
    let node = program.node(id);
    let (row_axis, key_axis) = axes(&node.shape, tokens)?;
    let scores = key_axis.filter(|_| before_softmax(&node.name));
    (0..node.shape.len())
        .filter(|i| before.bits(*i) != after.bits(*i))
        .map(|i| node.shape.unflat(i))
        .find(|at| {
            let row = at[row_axis];
            row < changed && scores.is_none_or(|key| at[key] <= row)
        })
        .map(|at| at[row_axis])
}

/// The axis of positions, and that of keys where there is one.
pub(super) fn axes(shape: &Shape, tokens: usize) -> Option<(usize, Option<usize>)> {
    let long = |d: &usize| shape.dims()[*d] == tokens;
    let named = |d: &usize, names: &[Axis]| names.contains(&shape.axes()[*d]);
    let rank = shape.rank();
    let row = (0..rank).find(|d| long(d) && named(d, &[Axis::Query, Axis::Token]))?;
    let key = (row + 1..rank).find(|d| long(d) && named(d, &[Axis::Key, Axis::Token]));
    Some((row, key))
}

/// Whether a score is there that the mask may still hide.
pub(super) fn before_softmax(name: &Name) -> bool {
    name.last().is_score()
}

/// The mask of the attention that `id` belongs to.
pub(super) fn mask_near(program: &Program, id: NodeId) -> Option<String> {
    let scope = program.enclosing(id, |k| *k == crate::program::ScopeKind::Attention)?;
    let mask = program.named(&program.scope(scope).name.then(Role::Mask))?;
    Some(program.node(mask).path.to_string())
}
