//! Evaluating one node: one exhaustive match over the primitives.

use std::sync::Arc;

use crate::kernels::{self, Mat};
use crate::program::{Affine, Binary, Constant, Leaf, Node, NodeId, Op, Pick, Program, Reduction, Role, Unary};
use crate::tensor::{Elem, MAX_RANK, Pool, Real, Shape, Tensor, Value};

/// Evaluates `$body` with `$f` a constant of the listed variants: the choice is made once, outside the loop over the
/// elements, which is then compiled for that variant alone. A variant that is not listed does not compile.
macro_rules! chosen_once {
    ($kind:ident { $($variant:ident)* }, $chosen:expr, $f:ident => $body:expr) => {
        match $chosen {
            $($kind::$variant => {
                // An item, not a variable: closures that name it capture nothing.
                const $f: $kind = $kind::$variant;
                $body
            })*
        }
    };
}

/// The value of node `id`, given those of its operands. A parameter or input has no value of its own: it is bound.
/// `operand` is no type parameter: every loop below would be compiled again for each caller.
///
/// # Panics
/// For an unbound parameter or input, and where an id lies outside its table (both are checked before a run).
pub fn evaluate<'a, T: Real>(
    program: &Program,
    id: NodeId,
    operand: &dyn Fn(NodeId) -> &'a Value<T>,
    pool: &Arc<Pool<T>>,
) -> Value<T> {
    let node = program.node(id);
    let x = |i: usize| operand(node.inputs[i]);
    let float = |write: &dyn Fn(&mut [T])| {
        let mut out = pool.take(node.shape.len());
        write(out.as_mut_slice());
        Value::Float(Tensor::new(node.shape, out))
    };
    match &node.op {
        Op::Leaf(leaf) => leaf_value(leaf, node, pool),
        Op::MatMul { transpose_a, transpose_b } => {
            let (a, b) = (x(0).float(), x(1).float());
            float(&|out| matmul(a, b, *transpose_a, *transpose_b, &node.shape, out))
        }
        Op::Unary(f) => {
            let x = x(0).float().data();
            float(&|out| match f {
                Unary::Exp => kernels::exp_slice(x, out),
                Unary::Erf => kernels::erf_slice(x, out),
                Unary::Tanh => kernels::tanh_slice(x, out),
                f => chosen_once!(
                    Unary {
                        Neg Exp Ln Sqrt Square Abs Tanh Erf Relu Step Sigmoid Sin Cos SoftmaxShift MaskedSoftmaxShift
                    },
                    *f,
                    F => kernels::map(x, out, |x| F.eval(x))
                ),
            })
        }
        Op::Affine(f) => {
            let x = x(0).float().data();
            float(&|out| match *f {
                Affine::Add(c) => kernels::map(x, out, move |x| Affine::Add(c).eval(x)),
                Affine::Mul(c) => kernels::map(x, out, move |x| Affine::Mul(c).eval(x)),
                Affine::Div(c) => kernels::map(x, out, move |x| Affine::Div(c).eval(x)),
            })
        }
        Op::Binary(f) => {
            let (a, b) = (x(0).float(), x(1).float());
            let (sa, sb) = (broadcast_strides(a.shape()), broadcast_strides(b.shape()));
            let rank = node.shape.rank();
            float(&|out| {
                chosen_once!(Binary { Add Sub Mul Div DivOrZero MulOrZero LnOr Max }, *f, F => {
                    let f = |a, b| F.eval(a, b);
                    if a.shape().same_dims(b.shape()) {
                        kernels::zip(a.data(), b.data(), out, f);
                    } else {
                        let dims = node.shape.dims();
                        kernels::zip_broadcast(a.data(), &sa[..rank], b.data(), &sb[..rank], dims, out, f);
                    }
                });
            })
        }
        Op::Reduce { kind, axis } => {
            let t = x(0).float();
            let (outer, n, inner) = split(t.shape(), *axis);
            let kind = match kind {
                Reduction::Sum => kernels::Reduction::Sum,
                Reduction::Mean => kernels::Reduction::Mean,
                Reduction::Max => kernels::Reduction::Max,
            };
            float(&|out| kernels::fold(kind, t.data(), outer, n, inner, out))
        }
        Op::CumSum => {
            let t = x(0).float();
            let n = t.shape().dims()[t.shape().rank() - 1].max(1);
            float(&|out| {
                for (row, out) in t.data().chunks(n).zip(out.chunks_mut(n)) {
                    let mut acc = None;
                    for (x, out) in row.iter().zip(out) {
                        let sum = acc.map_or(*x, |acc: T| acc + *x);
                        *out = sum;
                        acc = Some(sum);
                    }
                }
            })
        }
        Op::Reshape => x(0).reshaped(node.shape),
        Op::Permute(order) => {
            let order: smallvec::SmallVec<[usize; MAX_RANK]> = order.iter().map(|&o| o as usize).collect();
            moved(&[x(0)], node, pool, &Permute(order))
        }
        Op::Slice { axis, start, len } => moved(&[x(0)], node, pool, &Slice { axis: *axis, start: *start, len: *len }),
        // Each call of a decoding has the keys and values of the calls before it once more.
        Op::Concat { axis }
            if matches!(node.name.last(), Role::KeyCache | Role::ValueCache) && node.inputs.len() == 2 =>
        {
            let (outer, _, inner) = split(&node.shape, *axis);
            Value::Float(Tensor::grown(node.shape, x(0).float(), x(1).float(), (outer, inner)))
        }
        Op::Concat { axis } => {
            let parts: smallvec::SmallVec<[&Value<T>; 4]> = (0..node.inputs.len()).map(x).collect();
            moved(&parts, node, pool, &Concat { axis: *axis })
        }
        Op::Gather(pick) => moved(&[x(0)], node, pool, &Gather { pick: *pick, ids: x(1).int() }),
        Op::ScatterAdd(pick) => {
            let (base, ids, source) = (x(0).float(), x(1).int(), x(2).float());
            float(&|out| scatter_add(*pick, base, ids, source, out))
        }
        Op::MaskFill { fill } => {
            let (t, mask) = (x(0).float(), x(1).bool());
            let fill = fill_value::<T>(*fill);
            let (of, hides) = (t.shape().strides(), broadcast_strides(mask.shape()));
            let rank = node.shape.rank();
            let pick = move |x, hidden| if hidden { fill } else { x };
            float(&|out| {
                let dims = node.shape.dims();
                kernels::zip_broadcast(t.data(), &of[..rank], mask.data(), &hides[..rank], dims, out, pick);
            })
        }
        Op::ArgMax => {
            let t = x(0).float();
            let n = t.shape().dims()[t.shape().rank() - 1];
            Value::Int(Tensor::new(node.shape, kernels::argmax(t.data(), n)))
        }
        Op::ArgSort => {
            let t = x(0).float();
            let n = t.shape().dims()[t.shape().rank() - 1];
            Value::Int(Tensor::new(node.shape, t.data().chunks(n).flat_map(argsort).collect::<Vec<_>>()))
        }
        Op::Sample => {
            let (t, drawn) = (x(0).float(), x(1).float());
            let n = t.shape().dims()[t.shape().rank() - 1];
            let picks = t.data().chunks(n).zip(drawn.data()).map(|(row, &u)| sample(row, u)).collect::<Vec<_>>();
            Value::Int(Tensor::new(node.shape, picks))
        }
    }
}

fn leaf_value<T: Real>(leaf: &Leaf, node: &Node, pool: &Arc<Pool<T>>) -> Value<T> {
    let mut out =
        pool.take(if matches!(leaf, Leaf::Constant(Constant::Int(_)) | Leaf::Mask(_)) { 0 } else { node.shape.len() });
    match leaf {
        Leaf::Constant(Constant::Filled(x)) => out.as_mut_slice().fill(fill_value(*x)),
        Leaf::Constant(Constant::Float(values)) => {
            for (out, x) in out.as_mut_slice().iter_mut().zip(values.iter()) {
                *out = T::from_f64(*x);
            }
        }
        Leaf::Constant(Constant::Int(values)) => {
            return Value::Int(Tensor::new(node.shape, values.to_vec()));
        }
        Leaf::Mask(mask) => {
            return Value::Bool(Tensor::new(node.shape, mask.reasons.iter().map(|&r| r != 0).collect::<Vec<_>>()));
        }
        Leaf::Random(random) => {
            for (i, out) in out.as_mut_slice().iter_mut().enumerate() {
                *out = random.eval(i as u64);
            }
        }
        Leaf::Parameter | Leaf::Input(_) | Leaf::Recorded(_) => panic!("{} is not bound", node.path),
    }
    Value::Float(Tensor::new(node.shape, out))
}

/// The fill of a mask in the run's type; `f64::MIN` denotes the type's own minimum.
pub(super) fn fill_value<T: Real>(fill: f64) -> T {
    if fill == f64::MIN { T::LOWEST } else { T::from_f64(fill) }
}

/// Row-major strides with 0 on axes of length 1.
pub(super) fn broadcast_strides(s: &Shape) -> [usize; MAX_RANK] {
    let mut strides = s.strides();
    for (stride, &n) in strides.iter_mut().zip(s.dims()) {
        if n == 1 {
            *stride = 0;
        }
    }
    strides
}

/// A shape as (outer, n, inner) around `axis`.
pub(super) fn split(s: &Shape, axis: usize) -> (usize, usize, usize) {
    let d = s.dims();
    (d[..axis].iter().product(), d[axis], d[axis + 1..].iter().product())
}

fn matrix<T>(data: &[T], rows: usize, cols: usize, transposed: bool) -> Mat<'_, T> {
    if transposed {
        Mat { data, rows: cols, cols: rows, row_stride: 1, col_stride: cols }
    } else {
        Mat { data, rows, cols, row_stride: cols, col_stride: 1 }
    }
}

fn matmul<T: Real>(a: &Tensor<T>, b: &Tensor<T>, ta: bool, tb: bool, shape: &Shape, out: &mut [T]) {
    let (sa, sb) = (a.shape(), b.shape());
    let (ra, rb) = (sa.rank(), sb.rank());
    let (rows_a, cols_a) = (sa.dims()[ra - 2], sa.dims()[ra - 1]);
    let (rows_b, cols_b) = (sb.dims()[rb - 2], sb.dims()[rb - 1]);
    let batch_b: usize = sb.dims()[..rb - 2].iter().product();
    if batch_b == 1 && !ta {
        // One matrix on the right: the batch is more rows.
        let rows = sa.dims()[..ra - 1].iter().product();
        return kernels::matmul(matrix(a.data(), rows, cols_a, false), matrix(b.data(), rows_b, cols_b, tb), out);
    }
    let lead = Shape::new(&shape.dims()[..shape.rank() - 2]);
    let strides_a = broadcast_strides(&Shape::new(&sa.dims()[..ra - 2]));
    let mut padded = smallvec::SmallVec::<[usize; MAX_RANK]>::from_elem(1, lead.rank() + 2 - rb);
    padded.extend_from_slice(&sb.dims()[..rb - 2]);
    let strides_b = broadcast_strides(&Shape::new(&padded));
    let offset = |i: usize, strides: &[usize; MAX_RANK]| -> usize {
        let at = lead.unflat(i);
        (0..lead.rank()).map(|d| at[d] * strides[d]).sum()
    };
    let (size_a, size_b) = (rows_a * cols_a, rows_b * cols_b);
    kernels::matmul_batched(
        shape.dims()[shape.rank() - 2],
        shape.dims()[shape.rank() - 1],
        |i| matrix(a.part(offset(i, &strides_a), size_a), rows_a, cols_a, ta),
        |i| matrix(b.part(offset(i, &strides_b), size_b), rows_b, cols_b, tb),
        out,
    );
}

fn scatter_add<T: Real>(pick: Pick, base: &Tensor<T>, ids: &Tensor<i64>, source: &Tensor<T>, out: &mut [T]) {
    out.copy_from_slice(base.data());
    let s = base.shape();
    match pick {
        Pick::Rows => {
            let width: usize = s.dims()[1..].iter().product();
            kernels::scatter_add_rows(source.data(), width, ids.data(), out);
        }
        Pick::Along => {
            let (n, k) = (s.dims()[s.rank() - 1], ids.shape().dims()[s.rank() - 1]);
            for (i, (&id, &x)) in ids.data().iter().zip(source.data()).enumerate() {
                out[i / k * n + id as usize] += x;
            }
        }
    }
}

/// The order of `ArgSort`: descending, with NaN as the largest. It is total, which sorting relies on; equal values
/// keep their places.
pub(super) fn descending<T: Real>(a: T, b: T) -> std::cmp::Ordering {
    let by_nan = b.is_nan().cmp(&a.is_nan());
    b.partial_cmp(&a).unwrap_or(by_nan)
}

fn argsort<T: Real>(row: &[T]) -> Vec<i64> {
    let mut order: Vec<i64> = (0..row.len() as i64).collect();
    order.sort_by(|&a, &b| descending(row[a as usize], row[b as usize]));
    order
}

/// First position whose cumulative value exceeds `u`; the last one with any weight where rounding leaves none.
fn sample<T: Real>(cumulative: &[T], u: T) -> i64 {
    if let Some(i) = cumulative.iter().position(|&c| c > u) {
        return i as i64;
    }
    let total = cumulative.last().copied().unwrap_or(T::ZERO);
    cumulative.iter().position(|&c| c == total).unwrap_or(0) as i64
}

/// An operation that copies elements, whatever they are.
trait Move {
    fn copy<E: Elem>(&self, parts: &[&Tensor<E>], out: &mut [E]);
}

fn moved<T: Real>(parts: &[&Value<T>], node: &Node, pool: &Arc<Pool<T>>, op: &impl Move) -> Value<T> {
    match parts[0] {
        Value::Float(_) => {
            let parts: smallvec::SmallVec<[&Tensor<T>; 4]> = parts.iter().map(|v| v.float()).collect();
            let mut out = pool.take(node.shape.len());
            op.copy(&parts, out.as_mut_slice());
            Value::Float(Tensor::new(node.shape, out))
        }
        Value::Int(_) => {
            let parts: smallvec::SmallVec<[&Tensor<i64>; 4]> = parts.iter().map(|v| v.int()).collect();
            let mut out = vec![0; node.shape.len()];
            op.copy(&parts, &mut out);
            Value::Int(Tensor::new(node.shape, out))
        }
        Value::Bool(_) => {
            let parts: smallvec::SmallVec<[&Tensor<bool>; 4]> = parts.iter().map(|v| v.bool()).collect();
            let mut out = vec![false; node.shape.len()];
            op.copy(&parts, &mut out);
            Value::Bool(Tensor::new(node.shape, out))
        }
    }
}

struct Permute(smallvec::SmallVec<[usize; MAX_RANK]>);

impl Move for Permute {
    fn copy<E: Elem>(&self, parts: &[&Tensor<E>], out: &mut [E]) {
        kernels::permute(parts[0].data(), parts[0].shape().dims(), &self.0, out);
    }
}

struct Slice {
    axis: usize,
    start: usize,
    len: usize,
}

impl Move for Slice {
    fn copy<E: Elem>(&self, parts: &[&Tensor<E>], out: &mut [E]) {
        let (outer, n, inner) = split(parts[0].shape(), self.axis);
        kernels::slice(parts[0].data(), outer, n, inner, self.start, self.len, out);
    }
}

struct Concat {
    axis: usize,
}

impl Move for Concat {
    fn copy<E: Elem>(&self, parts: &[&Tensor<E>], out: &mut [E]) {
        let (outer, _, inner) = split(parts[0].shape(), self.axis);
        let lengths: smallvec::SmallVec<[usize; 4]> = parts.iter().map(|p| p.shape().dims()[self.axis]).collect();
        let data: smallvec::SmallVec<[&[E]; 4]> = parts.iter().map(|p| p.data()).collect();
        kernels::concat(&data, &lengths, outer, inner, out);
    }
}

struct Gather<'a> {
    pick: Pick,
    ids: &'a Tensor<i64>,
}

impl Move for Gather<'_> {
    fn copy<E: Elem>(&self, parts: &[&Tensor<E>], out: &mut [E]) {
        let s = parts[0].shape();
        match self.pick {
            Pick::Rows => {
                let width: usize = s.dims()[1..].iter().product();
                kernels::gather_rows(parts[0].data(), width, self.ids.data(), out);
            }
            Pick::Along => {
                let (n, k) = (s.dims()[s.rank() - 1], self.ids.shape().dims()[s.rank() - 1]);
                for (i, (&id, out)) in self.ids.data().iter().zip(out).enumerate() {
                    *out = parts[0].data()[i / k * n + id as usize];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_puts_nan_first_and_keeps_equals_in_place() {
        assert_eq!(argsort(&[1.0, f64::NAN, 3.0, 1.0, f64::NAN]), [1, 4, 2, 0, 3]);
        // Enough of them for a sort that looks for orders that are none.
        let row: Vec<f64> =
            (0..500u32).map(|i| if i % 3 == 0 { f64::NAN } else { f64::from(i * 7919 % 101) }).collect();
        let order = argsort(&row);
        assert!(order[..167].iter().all(|&i| row[i as usize].is_nan()));
        assert!(order[167..].windows(2).all(|w| row[w[0] as usize] >= row[w[1] as usize]));
    }
}
