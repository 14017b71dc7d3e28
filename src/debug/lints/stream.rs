//! Growth of the residual stream, and dropout where none should act.

use super::{Look, brief};
use crate::program::{Leaf, NodeId, Op, RandomKind, ScopeKind};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::Real;

/// Times the size at which the stream entered: information, and a warning.
const GROWN: f64 = 30.0;
const EXPLODED: f64 = 1000.0;
/// A stream of small embeddings soon grows to a size of 1 or so; below this root of the mean square nothing is said.
const ORDINARY: f64 = 30.0;

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    growth(look);
    if !look.facts.training {
        dropout(look);
    }
}

fn growth<T: Real>(look: &mut Look<'_, T>) {
    let sums: Vec<NodeId> = look
        .program
        .scopes()
        .filter(|(_, s)| s.kind == ScopeKind::Residual && !s.nodes.is_empty())
        .map(|(_, s)| NodeId(s.nodes.end - 1))
        .filter(|id| look.fresh(*id) && !look.program.node(*id).name.is_derived())
        .collect();
    let mut entry: Option<(_, f64)> = None;
    let mut worst: Vec<(NodeId, usize, f64, f64)> = Vec::new();
    for id in sums {
        let node = look.program.node(id);
        // Decoding calls apart.
        let of = (node.name.call, node.name.site.stack());
        let (size, row) = largest_row(look, id);
        if entry.as_ref().is_none_or(|(s, _)| *s != of) {
            // The first sum of a stack: what entered is its first operand.
            entry = Some((of, largest_row(look, node.inputs[0]).0));
            worst.push((id, 0, 0.0, 1.0));
        }
        let (Some((_, from)), Some(w)) = (&entry, worst.last_mut()) else {
            continue;
        };
        if size.is_finite() && size > w.2 {
            *w = (id, row, size, *from);
        }
    }
    for (id, row, size, from) in worst {
        let times = size / from;
        if size < ORDINARY || times < GROWN || !times.is_finite() {
            continue;
        }
        let severity = if times >= EXPLODED { Severity::Warning } else { Severity::Info };
        let width = look.program.node(id).shape.dims().last().copied();
        let flat = row * width.unwrap_or(1);
        let args = [("from", brief(from)), ("times", brief(times.round()))];
        look.tell((Lint::NormGrowth, severity), (id, Some(flat)), (size, 1), &args);
    }
}

/// The largest root of a row's mean square, and the row.
fn largest_row<T: Real>(look: &Look<'_, T>, id: NodeId) -> (f64, usize) {
    let t = look.numbers(id);
    let n = t.shape().dims().last().copied().unwrap_or(1).max(1);
    let mut best = (0.0, 0);
    for (row, cells) in t.data().chunks_exact(n).enumerate() {
        let squares: f64 = cells.iter().map(|x| x.to_f64() * x.to_f64()).sum();
        let size = (squares / n as f64).sqrt();
        if size > best.0 {
            best = (size, row);
        }
    }
    best
}

/// Random factors in a run that does not train.
fn dropout<T: Real>(look: &mut Look<'_, T>) {
    let masks: Vec<(NodeId, f64)> = look
        .nodes()
        .filter_map(|(id, node)| match &node.op {
            Op::Leaf(Leaf::Random(random)) => match random.kind {
                RandomKind::Dropout { rate } => Some((id, rate)),
                RandomKind::Uniform => None,
            },
            _ => None,
        })
        .collect();
    for (mask, rate) in masks {
        let t = look.numbers(mask);
        let dropped = t.data().iter().filter(|x| **x == T::ZERO).count();
        let first = t.data().iter().position(|x| *x == T::ZERO);
        // The step where a number is dropped, not where the mask is drawn.
        let at = look.readers(mask).next().map_or(mask, |r| r.0);
        let flat = first.filter(|_| look.program.node(at).shape.len() == t.data().len());
        let kind = (Lint::DropoutAtInference, Severity::Error);
        let args = [("rate", brief(rate))];
        look.tell(kind, (at, flat), (rate, dropped), &args);
    }
}
