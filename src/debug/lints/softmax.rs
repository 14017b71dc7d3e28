//! Rows that must sum to 1, and rows that have collapsed onto one cell.

use super::attention::{Attention, normalised};
use super::{Look, brief};
use crate::program::{Leaf, NodeId, Op, ScopeKind};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::{Precision, Real};

/// Entropy, in nats, below which a row looks at one key only: 0.999 of the weight on one of a few.
const COLLAPSED: f64 = 0.01;
/// Share of rows below which it is not worth telling: a head that looks at one key from some of its rows does its work.
const SOME: f64 = 0.1;
/// Share of rows that must have collapsed for a warning, and the least number of rows.
const MOSTLY: f64 = 0.98;
const FEW_ROWS: usize = 8;

pub(super) fn look<T: Real>(look: &mut Look<'_, T>, attentions: &[Attention]) {
    let mut nodes: Vec<NodeId> = normalised(look).map(|(id, _)| id).collect();
    nodes.extend(look.program.scopes().filter_map(|(_, scope)| match scope.kind {
        ScopeKind::Softmax { output, .. } => Some(output).filter(|id| look.fresh(*id)),
        _ => None,
    }));
    // What is done to weights before values are multiplied by them must leave their sums alone; dropout does not.
    for a in attentions {
        let drops = |id: NodeId| {
            let inputs = &look.program.node(id).inputs;
            let random = |i: &NodeId| matches!(look.program.node(*i).op, Op::Leaf(Leaf::Random(_)));
            inputs.iter().any(random)
        };
        nodes.extend(a.after.iter().map(|n| n.0).take_while(|id| !drops(*id)));
    }
    nodes.sort_unstable();
    nodes.dedup();
    for id in nodes {
        sums(look, id);
    }
    for a in attentions.iter().filter(|a| a.softmax) {
        collapsed(look, a);
    }
}

/// How far a sum of `n` rounded shares of a rounded sum may lie from 1.
fn tolerance<T: Real>(n: usize) -> f64 {
    let eps = match T::PRECISION {
        Precision::F32 => f64::from(f32::EPSILON),
        Precision::F64 => f64::EPSILON,
    };
    (n as f64 + 4.0) * eps
}

fn sums<T: Real>(look: &mut Look<'_, T>, id: NodeId) {
    let t = look.numbers(id);
    let n = *t.shape().dims().last().unwrap_or(&1);
    if n == 0 {
        return;
    }
    let (mut worst, mut count) = ((0.0, 0, 1.0), 0);
    for (row, cells) in t.data().chunks_exact(n).enumerate() {
        let sum: f64 = cells.iter().map(|x| x.to_f64()).sum();
        let off = (sum - 1.0).abs();
        // A row of nothing sees nothing; what is not a number is reported from where it comes from.
        if cells.iter().all(|x| *x == T::ZERO) || !sum.is_finite() || off <= tolerance::<T>(n) {
            continue;
        }
        count += 1;
        // Of rows that are equally far off the first one is reported, whatever rounding says.
        if off > 1.01 * worst.0 {
            worst = (off, row * n, sum);
        }
    }
    if count > 0 {
        let kind = (Lint::SoftmaxRowSum, Severity::Error);
        look.tell(kind, (id, Some(worst.1)), (worst.2, count), &[]);
    }
}

fn collapsed<T: Real>(look: &mut Look<'_, T>, a: &Attention) {
    let t = look.numbers(a.weights);
    let keys = *t.shape().dims().last().unwrap_or(&1);
    let hidden = a.mask.map(|m| look.trace.value(m));
    let (mut rows, mut count, mut first) = (0, 0, None);
    for (row, cells) in t.data().chunks_exact(keys.max(1)).enumerate() {
        let seen = (0..keys)
            .filter(|k| !hidden.as_ref().is_some_and(|m| super::masks::hides(m.bool(), t.shape(), row * keys + k)));
        if seen.count() < 2 || cells.iter().any(|x| !x.is_finite()) {
            continue;
        }
        rows += 1;
        let entropy: f64 = cells.iter().map(|x| x.to_f64()).filter(|p| *p > 0.0).map(|p| -p * libm::log(p)).sum();
        if entropy < COLLAPSED {
            count += 1;
            first = first.or(Some((row * keys, entropy)));
        }
    }
    let enough = count as f64 >= SOME * rows as f64;
    if let Some((flat, entropy)) = first.filter(|_| enough) {
        let most = rows >= FEW_ROWS && count as f64 >= MOSTLY * rows as f64;
        let severity = if most { Severity::Warning } else { Severity::Info };
        let kind = (Lint::SaturatedSoftmax, severity);
        let args = [("rows", rows.to_string()), ("entropy", brief(entropy))];
        look.tell(kind, (a.weights, Some(flat)), (entropy, count), &args);
    }
}
