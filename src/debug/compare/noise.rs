//! Where everything that is added cancels, rounding is all that is left.

use crate::parallel;
use crate::program::{Node, NodeId, Op, Reduction};
use crate::tensor::{Real, Value};

/// Roundings of a sum in another order.
const ROUNDINGS: f64 = 8.0;

/// Numbers this many roundoffs below the largest number of a run are left over from sums that cancel.
pub(super) const LEFT_OVER: f64 = 64.0;

/// The largest absolute rounding that a sum or mean makes itself, in units of roundoff, from the size of what is added;
/// 0 for any other operation.
pub(super) fn of_sum<'v, T: Real>(node: &Node, value: &dyn Fn(NodeId) -> Option<&'v Value<T>>) -> f64 {
    let Op::Reduce { kind: kind @ (Reduction::Sum | Reduction::Mean), axis } = &node.op else { return 0.0 };
    let Some(Value::Float(x)) = value(node.inputs[0]) else { return 0.0 };
    let dims = x.shape().dims();
    let (count, inner) = (dims[*axis].max(1), dims[axis + 1..].iter().product::<usize>().max(1));
    // Each block holds the terms of `inner` sums.
    let blocks: Vec<&[T]> = x.data().chunks(count * inner).collect();
    let most = |k: usize| {
        let mut sums = vec![0.0f64; inner];
        for row in blocks[k].chunks(inner) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x.to_f64().abs());
        }
        sums.into_iter().filter(|s| s.is_finite()).fold(0.0, f64::max)
    };
    let terms = parallel::map(blocks.len(), most).into_iter().fold(0.0, f64::max);
    ROUNDINGS * terms / if *kind == Reduction::Mean { count as f64 } else { 1.0 }
}
