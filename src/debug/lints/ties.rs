//! Choices of a decoding that numbers do not settle: equal logits, equal scores of beams.

use super::Look;
use crate::program::{Name, NodeId, Role, Site};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::Real;

/// Numbers that a call chooses among, and how many it takes.
struct Choice {
    node: NodeId,
    /// First cell of the row.
    start: usize,
    row: Vec<f64>,
    taken: usize,
}

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    let (mut first, mut count) = (None, 0);
    for call in 0.. {
        let logits = Name::of(Site::Output).then(Role::Logits).in_call(call);
        if look.program.named(&logits).is_none() {
            break;
        }
        let Some(choice) = choice(look, call) else {
            continue;
        };
        if let Some((at, value)) = tie(&choice) {
            count += 1;
            first.get_or_insert((choice.node, choice.start + at, value));
        }
    }
    if let Some((node, flat, value)) = first {
        let kind = (Lint::Tie, Severity::Info);
        look.tell(kind, (node, Some(flat)), (value, count), &[]);
    }
}

/// What call `call` chooses among; `None` where it draws, where its prefix is given, or where it did not run.
fn choice<T: Real>(look: &Look<'_, T>, call: u32) -> Option<Choice> {
    let find = |site: Site, role: Role| look.program.named(&Name::of(site).then(role).in_call(call));
    let id = find(Site::Next, Role::Id).filter(|id| look.trace.reached(*id))?;
    let (node, taken) = match find(Site::Next, Role::Candidates) {
        Some(candidates) => (candidates, look.program.node(id).shape.len()),
        None if find(Site::Next, Role::Drawn).is_some() => return None,
        None => (find(Site::Output, Role::Logits)?, 1),
    };
    let t = look.numbers(node);
    let n = t.shape().dims().last().copied()?;
    let start = t.data().len().checked_sub(n)?;
    let row = t.data()[start..].iter().map(|x| x.to_f64()).collect();
    Some(Choice { node, start, row, taken })
}

/// The first number that is taken though another equals it.
fn tie(choice: &Choice) -> Option<(usize, f64)> {
    let mut order: Vec<usize> = (0..choice.row.len()).collect();
    order.sort_by(|a, b| choice.row[*b].total_cmp(&choice.row[*a]));
    let pairs = order.windows(2).take(choice.taken);
    pairs
        .map(|pair| (pair[0].min(pair[1]), choice.row[pair[0]], choice.row[pair[1]]))
        .find(|(_, a, b)| a == b && a.is_finite())
        .map(|(at, value, _)| (at, value))
}
