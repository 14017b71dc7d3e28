//! The vector–Jacobian product of every primitive.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Built, Pass};
use crate::program::{Affine, Binary, Constant, Leaf, NodeId, Op, Order, Pick, Reduction, Unary};
use crate::tensor::{Axis, MAX_RANK, Shape};

/// 2/√π, the slope of erf at 0.
const ERF_SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

impl Pass<'_> {
    /// What `reader` passes on to its operand `slot`: a node called `name`, or an existing node that is it. The
    /// result may have length 1 along axes where it would be the same.
    pub(super) fn vjp(&mut self, name: &str, reader: NodeId, slot: usize) -> Built {
        let node = self.b.program().node(reader);
        let (op, inputs) = (node.op.clone(), node.inputs.clone());
        let dy = self.grad(reader);
        let x = inputs[slot];
        let shape = self.b.shape(x);
        match op {
            // Given, or a choice: nothing flows back. The plan never asks.
            Op::Leaf(
                Leaf::Parameter
                | Leaf::Input(_)
                | Leaf::Recorded(_)
                | Leaf::Constant(_)
                | Leaf::Mask(_)
                | Leaf::Random(_),
            )
            | Op::ArgMax
            | Op::ArgSort
            | Op::Sample => self.filled(name, shape, 0.0),
            Op::MatMul { transpose_a, transpose_b } => {
                self.matmul(name, (inputs[0], inputs[1]), (transpose_a, transpose_b), slot, dy)
            }
            Op::Unary(f) => self.unary(name, f, x, reader, dy),
            Op::Binary(f) => self.binary(name, f, (inputs[0], inputs[1]), slot, reader, dy),
            Op::Affine(f) => match f {
                Affine::Add(_) => Ok(dy),
                Affine::Mul(_) | Affine::Div(_) => self.b.affine(name, f, dy),
            },
            Op::Reduce { kind, axis } => self.reduce(name, kind, axis, x, dy),
            Op::CumSum => {
                // dxᵢ = Σ_{j ≥ i} dyⱼ: a running sum from the end.
                let last = self.turned(name, "from_the_end", dy)?;
                let sum = self.aux(name, "running");
                let sum = self.b.apply(&sum, Op::CumSum, &[last])?;
                self.b.inline(sum);
                let ids = self.turning_ids(name, shape)?;
                self.b.gather(name, Pick::Along, sum, ids)
            }
            Op::Reshape => self.b.reshape(name, dy, shape),
            Op::Permute(order) => {
                let mut back: Order = SmallVec::from_elem(0, order.len());
                for (i, &o) in order.iter().enumerate() {
                    back[o as usize] = i as u8;
                }
                self.b.permute(name, dy, &back)
            }
            Op::Slice { axis, start, len } => self.pad(name, dy, shape, axis, start, len),
            Op::Concat { axis } => {
                let start = inputs[..slot].iter().map(|&i| self.b.shape(i).dims()[axis]).sum();
                self.b.slice(name, dy, axis, start, shape.dims()[axis])
            }
            Op::Gather(pick) => {
                let zeros = self.filled_inline(name, "zeros", shape, 0.0)?;
                self.b.scatter_add(name, pick, zeros, inputs[1], dy)
            }
            Op::ScatterAdd(pick) => match slot {
                0 => Ok(dy),
                _ => self.b.gather(name, pick, dy, inputs[1]),
            },
            Op::MaskFill { .. } => self.b.mask_fill(name, dy, inputs[1], 0.0),
        }
    }

    fn unary(&mut self, name: &str, f: Unary, x: NodeId, y: NodeId, dy: NodeId) -> Built {
        match f {
            Unary::Neg => self.b.unary(name, Unary::Neg, dy),
            Unary::Exp => self.b.binary(name, Binary::Mul, dy, y),
            Unary::Ln => self.b.binary(name, Binary::Div, dy, x),
            Unary::Sqrt => {
                let twice = self.affine_inline(name, "twice", Affine::Mul(2.0), y)?;
                self.b.binary(name, Binary::Div, dy, twice)
            }
            Unary::Square => {
                let twice = self.affine_inline(name, "twice", Affine::Mul(2.0), x)?;
                self.b.binary(name, Binary::Mul, dy, twice)
            }
            Unary::Abs => {
                let above = self.unary_inline(name, "above", Unary::Step, x)?;
                let minus = self.unary_inline(name, "minus", Unary::Neg, x)?;
                let below = self.unary_inline(name, "below", Unary::Step, minus)?;
                let sign = self.binary_inline(name, "sign", Binary::Sub, above, below)?;
                self.b.binary(name, Binary::Mul, dy, sign)
            }
            Unary::Tanh => {
                let square = self.unary_inline(name, "square", Unary::Square, y)?;
                let slope = self.one_minus(name, "slope", square)?;
                self.b.binary(name, Binary::Mul, dy, slope)
            }
            Unary::Erf => {
                let square = self.unary_inline(name, "square", Unary::Square, x)?;
                let minus = self.unary_inline(name, "minus", Unary::Neg, square)?;
                let bell = self.unary_inline(name, "bell", Unary::Exp, minus)?;
                let slope = self.affine_inline(name, "slope", Affine::Mul(ERF_SLOPE), bell)?;
                self.b.binary(name, Binary::Mul, dy, slope)
            }
            Unary::Relu => {
                let gate = self.aux(name, "gate");
                let gate = self.b.unary(&gate, Unary::Step, x)?;
                self.b.inline(gate);
                self.b.binary(name, Binary::Mul, dy, gate)
            }
            Unary::Sigmoid => {
                let rest = self.one_minus(name, "rest", y)?;
                let slope = self.binary_inline(name, "slope", Binary::Mul, y, rest)?;
                self.b.binary(name, Binary::Mul, dy, slope)
            }
            Unary::Sin => {
                let slope = self.unary_inline(name, "slope", Unary::Cos, x)?;
                self.b.binary(name, Binary::Mul, dy, slope)
            }
            Unary::Cos => {
                let sine = self.unary_inline(name, "sine", Unary::Sin, x)?;
                let slope = self.unary_inline(name, "slope", Unary::Neg, sine)?;
                self.b.binary(name, Binary::Mul, dy, slope)
            }
            // Flat wherever they have a slope. The plan never asks.
            Unary::Step | Unary::SoftmaxShift | Unary::MaskedSoftmaxShift => {
                let shape = self.b.shape(x);
                self.filled(name, shape, 0.0)
            }
        }
    }

    fn binary(&mut self, name: &str, f: Binary, (a, b): (NodeId, NodeId), slot: usize, y: NodeId, dy: NodeId) -> Built {
        let target = self.b.shape(if slot == 0 { a } else { b });
        match (f, slot) {
            (Binary::Add, _) | (Binary::Sub, 0) => self.summed(name, dy, target),
            (Binary::Sub, _) => {
                if self.b.shape(dy).same_dims(&target) {
                    return self.b.unary(name, Unary::Neg, dy);
                }
                let minus = self.unary_inline(name, "minus", Unary::Neg, dy)?;
                self.summed(name, minus, target)
            }
            (Binary::Div | Binary::DivOrZero | Binary::MulOrZero, 0) => self.product_summed(name, f, dy, b, target),
            (Binary::Mul | Binary::MulOrZero, slot) => {
                let other = if slot == 0 { b } else { a };
                self.product_summed(name, Binary::Mul, dy, other, target)
            }
            // Both are the same logarithm: the slope goes through a while a can carry it.
            (Binary::LnOr, 0) => self.product_summed(name, Binary::DivOrZero, dy, a, target),
            (Binary::LnOr, _) => {
                let above = self.unary_inline(name, "above", Unary::Step, a)?;
                let gate = self.one_minus(name, "gate", above)?;
                self.product_summed(name, Binary::Mul, dy, gate, target)
            }
            // −(Σ dy·y)/b: b is the same along the axes that are summed.
            (Binary::Div | Binary::DivOrZero, _) => {
                let sum = self.aux(name, "product");
                let sum = self.product_summed(&sum, Binary::Mul, dy, y, target)?;
                if self.b.shape(dy).same_dims(&target) {
                    self.b.inline(sum);
                }
                let ratio = self.binary_inline(name, "ratio", f, sum, b)?;
                self.b.unary(name, Unary::Neg, ratio)
            }
            // To the larger, the first of equals.
            (Binary::Max, slot) => {
                let difference = self.binary_inline(name, "difference", Binary::Sub, b, a)?;
                let mut gate = self.unary_inline(name, "gate", Unary::Step, difference)?;
                if slot == 0 {
                    gate = self.one_minus(name, "first", gate)?;
                }
                self.product_summed(name, Binary::Mul, dy, gate, target)
            }
        }
    }

    /// 1 − x.
    fn one_minus(&mut self, name: &str, what: &str, x: NodeId) -> Built {
        let minus = self.unary_inline(name, &format!("{what}_minus"), Unary::Neg, x)?;
        self.affine_inline(name, what, Affine::Add(1.0), minus)
    }

    fn reduce(&mut self, name: &str, kind: Reduction, axis: usize, x: NodeId, dy: NodeId) -> Built {
        let shape = self.b.shape(x);
        match kind {
            Reduction::Sum => Ok(dy),
            Reduction::Mean => {
                let n = shape.dims()[axis] as f64;
                if self.reserved.contains(name) {
                    // The only contribution: divided and repeated along the axis in one go.
                    let count = self.filled_inline(name, "count", shape, n)?;
                    return self.b.binary(name, Binary::Div, dy, count);
                }
                self.b.affine(name, Affine::Div(n), dy)
            }
            Reduction::Max => {
                // To the first of the largest.
                let last = shape.rank() - 1;
                let mut order: Order = (0..shape.rank() as u8).collect();
                order.swap(axis, last);
                let moved = |pass: &mut Self, what: &str, id: NodeId| {
                    if axis == last {
                        return Ok(id);
                    }
                    let at = pass.aux(name, what);
                    let id = pass.b.permute(&at, id, &order)?;
                    Ok::<_, crate::program::BuildError>(pass.b.inline(id))
                };
                let row = moved(self, "rows", x)?;
                let source = moved(self, "source", dy)?;
                let at = self.aux(name, "argmax");
                let at = self.b.apply(&at, Op::ArgMax, &[row])?;
                let row_shape = self.b.shape(row);
                let column = self.aux(name, "argmax_column");
                let column = self.b.reshape(&column, at, row_shape.with_dim(last, 1).with_axis(last, Axis::One))?;
                self.b.inline(column);
                let zeros = self.filled_inline(name, "zeros", row_shape, 0.0)?;
                let to = if axis == last { name.to_owned() } else { self.aux(name, "scattered") };
                let out = self.b.scatter_add(&to, Pick::Along, zeros, column, source)?;
                if axis == last {
                    return Ok(out);
                }
                self.b.permute(name, out, &order)
            }
        }
    }

    /// `x` with its last axis from the end to the start.
    fn turned(&mut self, name: &str, what: &str, x: NodeId) -> Built {
        let shape = self.b.shape(x);
        let ids = self.turning_ids(name, shape)?;
        let at = self.aux(name, what);
        let id = self.b.gather(&at, Pick::Along, x, ids)?;
        Ok(self.b.inline(id))
    }

    fn turning_ids(&mut self, name: &str, shape: Shape) -> Built {
        let n = shape.dims().last().copied().unwrap_or(1) as i64;
        let ids: Arc<[i64]> = (0..shape.len() as i64).map(|i| n - 1 - i % n).collect();
        let at = self.aux(name, "order");
        let ids = self.b.constant(&at, shape, Constant::Int(ids))?;
        Ok(self.b.inline(ids))
    }

    /// `dy` at its place in zeros of `shape`.
    fn pad(&mut self, name: &str, dy: NodeId, shape: Shape, axis: usize, start: usize, len: usize) -> Built {
        let after = shape.dims()[axis] - start - len;
        if start == 0 && after == 0 {
            return Ok(dy);
        }
        let mut parts: SmallVec<[NodeId; 3]> = SmallVec::new();
        for (what, n) in [("zeros_before", start), ("", len), ("zeros_after", after)] {
            if what.is_empty() {
                parts.push(dy);
            } else if n > 0 {
                parts.push(self.filled_inline(name, what, shape.with_dim(axis, n), 0.0)?);
            }
        }
        self.b.concat(name, axis, &parts)
    }

    /// `f(dy, other)`, summed over the axes along which the operand was broadcast.
    fn product_summed(&mut self, name: &str, f: Binary, dy: NodeId, other: NodeId, target: Shape) -> Built {
        if self.b.shape(dy).same_dims(&target) {
            return self.b.binary(name, f, dy, other);
        }
        let product = self.binary_inline(name, "term", f, dy, other)?;
        self.summed(name, product, target)
    }

    /// `x` summed over the axes that are of length 1, or missing, in `target`; `x` itself where there are none.
    fn summed(&mut self, name: &str, x: NodeId, target: Shape) -> Built {
        enum Move {
            View(Shape),
            Sum(usize),
        }
        let from = self.b.shape(x);
        if from.same_dims(&target) {
            return Ok(x);
        }
        let lead = from.rank() - target.rank();
        let wanted = |i: usize| {
            if i < lead { 1 } else { target.dims()[i - lead] }
        };
        // Runs of axes to sum, taken as one axis so that the sum is one left fold; from the last to the first.
        let mut moves = Vec::new();
        let mut at = from;
        let mut i = from.rank();
        while i > 0 {
            i -= 1;
            if from.dims()[i] == wanted(i) {
                continue;
            }
            let end = i + 1;
            let mut start = i;
            while i > 0 && wanted(i - 1) == 1 {
                i -= 1;
                if from.dims()[i] != 1 {
                    start = i;
                }
            }
            i = start;
            let (mut kept, n) = (
                at.iter().collect::<SmallVec<[(Axis, usize); 2 * MAX_RANK]>>(),
                at.dims()[start..end].iter().product::<usize>(),
            );
            if end - start > 1 {
                let axis = if end - start == 2 && at.dims()[start] == 1 { at.axes()[end - 1] } else { Axis::Token };
                kept.drain(start..end);
                kept.insert(start, (axis, n));
                at = Shape::named(&kept);
                moves.push(Move::View(at));
            }
            moves.push(Move::Sum(start));
            at = at.with_dim(start, 1).with_axis(start, Axis::One);
        }
        if !at.same_dims(&target) {
            moves.push(Move::View(target));
        }
        let count = moves.len();
        let mut id = x;
        for (i, step) in moves.into_iter().enumerate() {
            let last = i + 1 == count;
            let to = |pass: &Self, what: &str| {
                if last { name.to_owned() } else { pass.aux(name, what) }
            };
            id = match step {
                Move::View(shape) => {
                    let to = to(self, "rows");
                    self.b.reshape(&to, id, shape)?
                }
                Move::Sum(axis) => {
                    let to = to(self, "sum");
                    self.b.reduce(&to, Reduction::Sum, axis, id)?
                }
            };
            if !last {
                self.b.inline(id);
            }
        }
        Ok(id)
    }

    /// y = a·b: da = dy·bᵀ, db = aᵀ·dy, with the transposes the operands are stored in. A matrix that a whole batch
    /// shares gets one product over all its rows.
    fn matmul(
        &mut self,
        name: &str,
        (a, b): (NodeId, NodeId),
        (ta, tb): (bool, bool),
        slot: usize,
        dy: NodeId,
    ) -> Built {
        let (sa, sb) = (self.b.shape(a), self.b.shape(b));
        let target = if slot == 0 { sa } else { sb };
        let shared = sb.dims()[..sb.rank() - 2].iter().all(|&n| n == 1);
        if slot == 1 && shared && !ta && sa.rank() > 2 {
            let x = self.flat_rows(name, "inputs_flat", a)?;
            let g = self.flat_rows(name, "outputs_flat", dy)?;
            let (left, right) = if tb { (g, x) } else { (x, g) };
            if sb.rank() == 2 {
                return self.b.matmul_at(name, left, right);
            }
            let product = self.aux(name, "product");
            let product = self.b.matmul_at(&product, left, right)?;
            self.b.inline(product);
            return self.b.reshape(name, product, target);
        }
        let (left, right, tl, tr) = match (slot, ta, tb) {
            (0, false, tb) => (dy, b, false, !tb),
            (0, true, tb) => (b, dy, tb, true),
            (_, ta, false) => (a, dy, !ta, false),
            (_, ta, true) => (dy, a, true, ta),
        };
        let rank = self.b.shape(right).rank();
        let left = self.raised(name, left, rank)?;
        let op = Op::MatMul { transpose_a: tl, transpose_b: tr };
        let lead = |s: Shape| s.dims()[..s.rank() - 2].to_vec();
        if lead(self.b.shape(dy)) == lead(target) {
            return self.b.apply(name, op, &[left, right]);
        }
        let product = self.aux(name, "per_batch");
        let product = self.b.apply(&product, op, &[left, right])?;
        self.summed(name, product, target)
    }

    /// `[…, n]` as `[rows, n]`.
    fn flat_rows(&mut self, name: &str, what: &str, x: NodeId) -> Built {
        let shape = self.b.shape(x);
        let n = shape.dims()[shape.rank() - 1];
        let rows = shape.dims()[..shape.rank() - 1].iter().product();
        let last = shape.axes()[shape.rank() - 1];
        let at = self.aux(name, what);
        let flat = Shape::named(&[(Axis::Token, rows), (last, n)]);
        let id = self.b.reshape(&at, x, flat)?;
        Ok(self.b.inline(id))
    }
}
