//! NaN and infinities, those who produce them distinguished from those who carry them on; numbers that smaller types cannot hold.

use half::bf16;

use super::{Look, brief};
use crate::program::{Binary, NodeId, Op, ScopeKind, Unary};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::{Real, Value};
use crate::trace::derive::Replay;

/// The largest number of IEEE 754 binary16.
const F16_MAX: f64 = 65504.0;
/// Cells of one node whose operands are looked at, to tell a producer from a carrier.
const MAX_CELLS: usize = 4096;

/// What a node holds besides ordinary numbers.
#[derive(Clone, Copy, Default)]
struct Odd {
    nan: bool,
    infinite: bool,
}

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    let n = look.program.len();
    let mut odd = vec![Odd::default(); n];
    // A softmax of moderate scores subtracts nothing here, as it would in half precision.
    let mut exempt = vec![false; n];
    for (_, scope) in look.program.scopes() {
        if let ScopeKind::Softmax { .. } = scope.kind {
            exempt[scope.nodes.start as usize..scope.nodes.end as usize].fill(true);
        }
    }
    // Nodes in which the fill of a mask may still stand: what is huge there is meant so.
    let mut filled = vec![false; n];
    let mut carriers = (0, 0);
    let mut beyond: Option<(NodeId, usize, f64)> = None;
    let (mut nodes, mut largest) = (0, 0.0_f64);
    let first = look.found.len();
    let ids: Vec<NodeId> = look.program.nodes().map(|(id, _)| id).collect();
    for id in ids {
        if !look.trace.reached(id) {
            break;
        }
        filled[id.index()] = holds_fill(look, id, &filled);
        let value = look.trace.value(id);
        let Value::Float(t) = &value else {
            continue;
        };
        let mut own = Odd::default();
        let mut top = (0, 0.0);
        for (i, x) in t.data().iter().enumerate() {
            if !x.is_finite() {
                own.nan |= x.is_nan();
                own.infinite |= !x.is_nan();
            } else if x.abs().to_f64() > top.1 {
                top = (i, x.abs().to_f64());
            }
        }
        odd[id.index()] = own;
        if !look.fresh(id) {
            continue;
        }
        if own.nan && !produces(look, id, &odd, Lint::NanProduced) {
            carriers.0 += 1;
        }
        let meant = filled[id.index()];
        if own.infinite && !meant && !produces(look, id, &odd, Lint::InfinityProduced) {
            carriers.1 += 1;
        }
        if top.1 > F16_MAX && !meant && !exempt[id.index()] {
            nodes += 1;
            largest = largest.max(top.1);
            // What comes later may be large because of it.
            beyond = beyond.or(Some((id, top.0, top.1)));
        }
    }
    for finding in &mut look.found[first..] {
        let carried = match finding.lint {
            Lint::NanProduced => carriers.0,
            _ => carriers.1,
        };
        finding.msg.args.push(("carriers", carried.to_string()));
    }
    if let Some((id, flat, size)) = beyond {
        let kind = (Lint::BeyondF16, Severity::Info);
        let args = [("largest", brief(largest))];
        look.tell(kind, (id, Some(flat)), (size, nodes), &args);
    }
    ties(look);
}

/// Whether the fill of a mask is in `id`, or may: it goes through everything up to exp, which makes it 0.
fn holds_fill<T: Real>(look: &Look<'_, T>, id: NodeId, filled: &[bool]) -> bool {
    let node = look.program.node(id);
    let reads = node.inputs.iter().any(|i| filled[i.index()]);
    match &node.op {
        Op::MaskFill { fill } => reads || fill.abs() > F16_MAX,
        Op::Unary(Unary::Exp | Unary::Sigmoid | Unary::Tanh) | Op::Binary(Binary::Div | Binary::DivOrZero) => false,
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Affine(_)
        | Op::Reduce { .. }
        | Op::Reshape
        | Op::Permute(_)
        | Op::Slice { .. }
        | Op::Concat { .. } => reads,
        _ => false,
    }
}

/// Tells of the first cell of `id` that is odd although nothing it is computed from is; gives whether there is one.
fn produces<T: Real>(look: &mut Look<'_, T>, id: NodeId, odd: &[Odd], lint: Lint) -> bool {
    let nan = lint == Lint::NanProduced;
    let is_odd = |x: f64| {
        if nan { x.is_nan() } else { x.is_infinite() }
    };
    let node = look.program.node(id);
    let value = look.trace.value(id);
    let cells = || (0..value.shape().len()).filter(|i| is_odd(value.get(*i)));
    let has = |i: &NodeId| {
        let o = odd[i.index()];
        o.nan || !nan && o.infinite
    };
    // A node that was edited is the producer of what it holds.
    let given = node.inputs.is_empty() || look.trace.replaced().contains(&id);
    let mut own = if given || !node.inputs.iter().any(has) { cells().next() } else { None };
    if own.is_none() && node.inputs.iter().any(has) {
        let replay = Replay::new(look.trace, id);
        let of = |i: NodeId, flat: usize| look.trace.value(i).get(flat);
        own = cells().take(MAX_CELLS).find(|flat| {
            let operands = replay.arithmetic(*flat).operands();
            // An infinity that comes of a NaN, or a NaN of a NaN, is carried on; a NaN of infinities is produced.
            operands.iter().all(|c| {
                let x = of(c.node, c.flat);
                if nan { !x.is_nan() } else { x.is_finite() }
            })
        });
    }
    let Some(flat) = own else {
        return false;
    };
    let count = cells().count();
    let args = [("op", node.op.name().to_owned())];
    let place = (id, Some(flat));
    look.tell((lint, Severity::Error), place, (value.get(flat), count), &args);
    true
}

/// Rows of logits whose two largest numbers are one number in bfloat16.
fn ties<T: Real>(look: &mut Look<'_, T>) {
    let logits: Vec<NodeId> = look
        .program
        .scopes()
        .filter_map(|(_, s)| match (&s.kind, s.parent) {
            (ScopeKind::Softmax { input, .. }, Some(parent))
                if look.program.scope(parent).kind == ScopeKind::Output =>
            {
                Some(*input)
            }
            _ => None,
        })
        .filter(|id| look.fresh(*id))
        .collect();
    for id in logits {
        let t = look.numbers(id);
        let n = t.shape().dims().last().copied().unwrap_or(1).max(1);
        let (mut count, mut first) = (0, None);
        for (row, cells) in t.data().chunks_exact(n).enumerate() {
            let (mut best, mut second) = ((0, f64::NEG_INFINITY), f64::NEG_INFINITY);
            for (i, x) in cells.iter().map(|x| x.to_f64()).enumerate() {
                if x > best.1 {
                    second = best.1;
                    best = (i, x);
                } else if x > second {
                    second = x;
                }
            }
            let tie = bf16::from_f64(best.1) == bf16::from_f64(second);
            if tie && best.1 != second && second.is_finite() {
                count += 1;
                first = first.or(Some((row * n + best.0, best.1 - second)));
            }
        }
        if let Some((flat, gap)) = first {
            let kind = (Lint::Bf16Ties, Severity::Info);
            let rows = t.data().len() / n;
            let args = [("rows", rows.to_string())];
            look.tell(kind, (id, Some(flat)), (gap, count), &args);
        }
    }
}
