//! Positions are counted from 0, and with a cache from where it ends.

use super::{Look, brief};
use crate::program::{Leaf, Name, Node, NodeId, Op, Pick, Role, Side, Site, Unary};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::{Axis, Real};

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    let counted: Vec<NodeId> =
        look.nodes().filter(|(id, n)| !n.name.is_derived() && counts(look, *id, n)).map(|(id, _)| id).collect();
    for id in counted {
        let value = look.trace.value(id);
        let call = first_of_call(look, id);
        let expected = (call + look.facts.first_row) as f64;
        let n = value.shape().len();
        let wrong = |i: &usize| value.get(*i) != expected + *i as f64;
        let Some(at) = (0..n).find(wrong) else {
            continue;
        };
        let offset = value.get(0) - expected;
        let even = (0..n).all(|i| value.get(i) - i as f64 == value.get(0));
        // Some models count from 1 or 2; a cached call that disagrees with the ones before, or a jump, is no such choice.
        let severity = if even && call == 0 { Severity::Warning } else { Severity::Error };
        let count = (0..n).filter(wrong).count();
        let args = [("wanted", brief(expected + at as f64)), ("offset", brief(offset))];
        let kind = (Lint::PositionsOffset, severity);
        look.tell(kind, (id, Some(at)), (value.get(at), count), &args);
    }
}

/// Whether `id` holds the positions of tokens: what sines and cosines are taken of, or what rows of a table that is
/// no vocabulary are picked by.
fn counts<T: Real>(look: &Look<'_, T>, id: NodeId, node: &Node) -> bool {
    let Op::Leaf(Leaf::Constant(_)) = node.op else {
        return false;
    };
    let by_token = node.shape.axes().first() == Some(&Axis::Token);
    by_token
        && look.readers(id).any(|(reader, n)| match n.op {
            Op::Binary(_) => look.readers(reader).any(|(_, n)| matches!(n.op, Op::Unary(Unary::Sin | Unary::Cos))),
            // Ids of tokens have an axis of sentences before that of tokens.
            Op::Gather(Pick::Rows) => n.inputs[1] == id && node.shape.rank() == 1,
            _ => false,
        })
}

/// Position of the first token that the call of `id` reads: as many as the cache holds.
fn first_of_call<T: Real>(look: &Look<'_, T>, id: NodeId) -> usize {
    let Some(call) = look.program.node(id).name.call else {
        return 0;
    };
    let last = |site: Site, role: Role| {
        let node = look.program.named(&Name::of(site).then(role).in_call(call))?;
        look.program.node(node).shape.dims().last().copied()
    };
    let all = last(Site::Root, Role::Tokens);
    let read = last(Site::Embedding(Some(Side::Target)), Role::Ids);
    all.zip(read).map_or(0, |(all, read)| all - read.min(all))
}
