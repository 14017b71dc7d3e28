//! What reads a cell, and what a cell reads: one step of the graph, or as far as one likes.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::Trace;
use super::derive::{Cell, derive};
use crate::program::{NodeId, Op, Pick};
use crate::tensor::{MAX_RANK, Real, Shape, Value};

/// A box of cells of one node: per axis, first and one past last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The node.
    pub node: NodeId,
    /// Ranges, one an axis.
    pub ranges: SmallVec<[(usize, usize); MAX_RANK]>,
}

impl Region {
    /// All cells of a node of shape `s`.
    pub fn all(node: NodeId, s: &Shape) -> Self {
        Self { node, ranges: s.dims().iter().map(|&n| (0, n)).collect() }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|(a, b)| b - a).product()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the cell at `index` is inside.
    pub fn contains(&self, index: &[usize]) -> bool {
        self.ranges.iter().zip(index).all(|((a, b), i)| a <= i && i < b)
    }

    fn set(mut self, axis: usize, at: usize) -> Self {
        self.ranges[axis] = (at, at + 1);
        self
    }
}

/// Cells that `cell` reads, each once, in order of first use.
pub fn reads<T: Real>(trace: &Trace<T>, cell: Cell) -> Vec<Cell> {
    let mut seen = BTreeSet::new();
    derive(trace, cell).operands().into_iter().filter(|c| seen.insert(*c)).collect()
}

/// Cells that read `cell`, as boxes, in order of evaluation.
pub fn read_by<T: Real>(trace: &Trace<T>, cell: Cell) -> Vec<Region> {
    let program = trace.program();
    let mut found = Vec::new();
    for &user in program.users(cell.node) {
        for (slot, &input) in program.node(user).inputs.iter().enumerate() {
            if input == cell.node {
                regions(trace, user, slot, cell.flat, &mut found);
            }
        }
    }
    found
}

/// Boxes of node `user` whose cells read position `flat` of its operand `slot`.
fn regions<T: Real>(trace: &Trace<T>, user: NodeId, slot: usize, flat: usize, found: &mut Vec<Region>) {
    let program = trace.program();
    let node = program.node(user);
    let s = node.shape;
    let from = program.node(node.inputs[slot]).shape;
    let at = from.unflat(flat);
    let all = Region::all(user, &s);
    let one = |flat: usize| {
        let at = s.unflat(flat);
        Region { node: user, ranges: at[..s.rank()].iter().map(|&i| (i, i + 1)).collect() }
    };
    // Axes of the operand are right-aligned with those of the result; an axis of length 1 reaches all of it.
    let broadcast = |mut r: Region, axes: usize| {
        let shift = s.rank() - from.rank();
        for (d, &i) in at.iter().enumerate().take(axes) {
            if from.dims()[d] != 1 || s.dims()[d + shift] == 1 {
                r = r.set(d + shift, i);
            }
        }
        r
    };
    match &node.op {
        Op::Leaf(_) => {}
        Op::MatMul { transpose_a, transpose_b } => {
            let lead = from.rank() - 2;
            let r = broadcast(all, lead);
            let (axis, keep) = match (slot, transpose_a, transpose_b) {
                (0, false, _) => (s.rank() - 2, at[lead]),
                (0, true, _) => (s.rank() - 2, at[lead + 1]),
                (_, _, false) => (s.rank() - 1, at[lead + 1]),
                (_, _, true) => (s.rank() - 1, at[lead]),
            };
            found.push(r.set(axis, keep));
        }
        Op::Unary(_) | Op::Affine(_) | Op::Reshape => found.push(one(flat)),
        Op::Binary(_) | Op::MaskFill { .. } => found.push(broadcast(all, from.rank())),
        Op::Reduce { axis, .. } => {
            let mut at = at;
            at[*axis] = 0;
            found.push(one(s.flat(&at[..s.rank()])));
        }
        Op::CumSum => {
            let last = s.rank() - 1;
            let mut r = one(flat);
            r.ranges[last] = (at[last], s.dims()[last]);
            found.push(r);
        }
        Op::Permute(order) => {
            let to: SmallVec<[usize; MAX_RANK]> = order.iter().map(|&o| at[o as usize]).collect();
            found.push(one(s.flat(&to)));
        }
        Op::Slice { axis, start, len } => {
            if (*start..start + len).contains(&at[*axis]) {
                let mut at = at;
                at[*axis] -= start;
                found.push(one(s.flat(&at[..s.rank()])));
            }
        }
        Op::Concat { axis } => {
            let before: usize = node.inputs[..slot].iter().map(|&i| program.node(i).shape.dims()[*axis]).sum();
            let mut at = at;
            at[*axis] += before;
            found.push(one(s.flat(&at[..s.rank()])));
        }
        Op::Gather(pick) => {
            if slot == 0 {
                let ids = trace.value(node.inputs[1]);
                let Value::Int(ids) = &ids else { return };
                match pick {
                    Pick::Rows => {
                        let width: usize = from.dims()[1..].iter().product();
                        let (row, col) = (flat / width, flat % width);
                        for (i, _) in ids.data().iter().enumerate().filter(|(_, id)| **id as usize == row) {
                            found.push(one(i * width + col));
                        }
                    }
                    Pick::Along => {
                        let (n, k) = (from.dims()[from.rank() - 1], s.dims()[s.rank() - 1]);
                        let (row, col) = (flat / n, flat % n);
                        for i in (row * k..(row + 1) * k).filter(|&i| ids.data()[i] as usize == col) {
                            found.push(one(i));
                        }
                    }
                }
            } else {
                let width = if *pick == Pick::Rows { s.len() / from.len().max(1) } else { 1 };
                found.extend((flat * width..(flat + 1) * width).map(one));
            }
        }
        Op::ScatterAdd(pick) => match slot {
            0 => found.push(one(flat)),
            1 => {
                let Value::Int(ids) = &trace.value(node.inputs[1]) else {
                    return;
                };
                let width = if *pick == Pick::Rows { s.len() / s.dims()[0].max(1) } else { 1 };
                let row = ids.data()[flat] as usize;
                let base = if *pick == Pick::Rows {
                    row * width
                } else {
                    let k = from.dims()[from.rank() - 1];
                    flat / k * s.dims()[s.rank() - 1] + row
                };
                found.extend((base..base + width).map(one));
            }
            _ => {
                let Value::Int(ids) = &trace.value(node.inputs[1]) else {
                    return;
                };
                let to = if *pick == Pick::Rows {
                    let width: usize = s.dims()[1..].iter().product();
                    ids.data()[flat / width] as usize * width + flat % width
                } else {
                    let k = from.dims()[from.rank() - 1];
                    flat / k * s.dims()[s.rank() - 1] + ids.data()[flat] as usize
                };
                found.push(one(to));
            }
        },
        Op::ArgMax | Op::Sample => {
            let n = from.dims()[from.rank() - 1];
            found.push(one(flat / n));
        }
        Op::ArgSort => {
            let last = s.rank() - 1;
            let mut r = one(flat);
            r.ranges[last] = (0, s.dims()[last]);
            found.push(r);
        }
    }
}
