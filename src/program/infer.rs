//! Shape and kind of the result of each operation, checked before any arithmetic.

use smallvec::SmallVec;

use super::{Constant, Leaf, Op, Pick};
use crate::tensor::{Axis, DType, MAX_RANK, Shape};

/// Shape and kind of the result of `op` on operands of the given shapes.
pub(super) fn infer(op: &Op, x: &[(Shape, DType)], leaf: Option<(Shape, DType)>) -> Result<(Shape, DType), String> {
    let arity = |n: usize| {
        if x.len() == n { Ok(()) } else { Err(format!("takes {n} operands, got {}", x.len())) }
    };
    let float = |i: usize| match x[i].1 {
        DType::Float => Ok(x[i].0),
        other => Err(format!("operand {} must hold numbers, not {other:?}", i + 1)),
    };
    let int = |i: usize| match x[i].1 {
        DType::Int => Ok(x[i].0),
        other => Err(format!("operand {} must hold integers, not {other:?}", i + 1)),
    };
    match op {
        Op::Leaf(l) => {
            let (shape, dtype) = leaf.ok_or("a leaf needs a shape")?;
            let have = match l {
                Leaf::Constant(Constant::Float(v)) => v.len(),
                Leaf::Constant(Constant::Int(v)) => v.len(),
                Leaf::Mask(m) => m.reasons.len(),
                _ => shape.checked_len().unwrap_or(usize::MAX),
            };
            if shape.checked_len().is_some_and(|n| n != have) {
                return Err(format!("{have} values do not fill {shape}"));
            }
            Ok((shape, dtype))
        }
        Op::MatMul { transpose_a, transpose_b } => {
            arity(2)?;
            matmul_shape(&float(0)?, &float(1)?, *transpose_a, *transpose_b).map(|s| (s, DType::Float))
        }
        Op::Unary(_) | Op::Affine(_) => {
            arity(1)?;
            Ok((float(0)?, DType::Float))
        }
        Op::Binary(_) => {
            arity(2)?;
            broadcast(&float(0)?, &float(1)?).map(|s| (s, DType::Float))
        }
        Op::Reduce { axis, .. } => {
            arity(1)?;
            let s = float(0)?;
            if *axis >= s.rank() {
                return Err(format!("no axis {axis} in {s}"));
            }
            Ok((s.with_dim(*axis, 1).with_axis(*axis, Axis::One), DType::Float))
        }
        Op::CumSum => {
            arity(1)?;
            let s = float(0)?;
            if s.rank() == 0 { Err("a scalar has no last axis".into()) } else { Ok((s, DType::Float)) }
        }
        Op::Reshape => {
            arity(1)?;
            let (shape, _) = leaf.ok_or("a reshape needs a shape")?;
            if shape.checked_len() != Some(x[0].0.len()) {
                return Err(format!("{} elements do not fill {shape}", x[0].0.len()));
            }
            Ok((shape, x[0].1))
        }
        Op::Permute(order) => {
            arity(1)?;
            let s = x[0].0;
            let mut seen = [false; MAX_RANK];
            let fits = order.len() == s.rank()
                && order.iter().all(|&o| (o as usize) < s.rank() && !std::mem::replace(&mut seen[o as usize], true));
            if !fits {
                return Err(format!("{order:?} is no order of the axes of {s}"));
            }
            let dims: SmallVec<[(Axis, usize); MAX_RANK]> =
                order.iter().map(|&o| (s.axes()[o as usize], s.dims()[o as usize])).collect();
            Ok((Shape::named(&dims), x[0].1))
        }
        Op::Slice { axis, start, len } => {
            arity(1)?;
            let s = x[0].0;
            if *axis >= s.rank() || start.checked_add(*len).is_none_or(|end| end > s.dims()[*axis]) {
                return Err(format!("{start}..{} is outside axis {axis} of {s}", start.saturating_add(*len)));
            }
            Ok((s.with_dim(*axis, *len), x[0].1))
        }
        Op::Concat { axis } => concat_shape(x, *axis),
        Op::Gather(pick) => {
            arity(2)?;
            let (s, ids) = (x[0].0, int(1)?);
            gather_shape(&s, &ids, *pick).map(|shape| (shape, x[0].1))
        }
        Op::ScatterAdd(pick) => {
            arity(3)?;
            let (base, ids, source) = (float(0)?, int(1)?, float(2)?);
            let want = gather_shape(&base, &ids, *pick)?;
            if want.same_dims(&source) { Ok((base, DType::Float)) } else { Err(format!("the source must be {want}")) }
        }
        Op::MaskFill { .. } => {
            arity(2)?;
            let s = float(0)?;
            if x[1].1 != DType::Bool {
                return Err("operand 2 must be a mask".into());
            }
            match broadcast(&s, &x[1].0) {
                Ok(out) if out.same_dims(&s) => Ok((s, DType::Float)),
                _ => Err("the mask does not broadcast over operand 1".into()),
            }
        }
        Op::ArgMax => {
            arity(1)?;
            let s = float(0)?;
            drop_last(&s).map(|s| (s, DType::Int))
        }
        Op::ArgSort => {
            arity(1)?;
            let s = float(0)?;
            drop_last(&s).map(|_| (s, DType::Int))
        }
        Op::Sample => {
            arity(2)?;
            let (s, drawn) = (float(0)?, float(1)?);
            let out = drop_last(&s)?;
            if drawn.rank() == s.rank() && drawn.same_dims(&s.with_dim(s.rank() - 1, 1)) {
                Ok((out, DType::Int))
            } else {
                Err("one drawn number a row is needed".into())
            }
        }
    }
}

fn drop_last(s: &Shape) -> Result<Shape, String> {
    match s.dims().last() {
        None => Err("a scalar has no last axis".into()),
        Some(0) => Err("the last axis is empty".into()),
        Some(_) => {
            let dims: SmallVec<[(Axis, usize); MAX_RANK]> = s.iter().take(s.rank() - 1).collect();
            Ok(Shape::named(&dims))
        }
    }
}

/// Shape of two operands of equal rank, axes equal or 1.
fn broadcast(a: &Shape, b: &Shape) -> Result<Shape, String> {
    if a.rank() != b.rank() {
        return Err("the ranks differ".into());
    }
    let mut dims: SmallVec<[(Axis, usize); MAX_RANK]> = SmallVec::new();
    for ((ax, m), (bx, n)) in a.iter().zip(b.iter()) {
        dims.push(match (m, n) {
            _ if m == n => (if matches!(ax, Axis::One | Axis::Other) { bx } else { ax }, m),
            (1, n) => (bx, n),
            (m, 1) => (ax, m),
            _ => return Err(format!("axes of {m} and {n} do not broadcast")),
        });
    }
    Ok(Shape::named(&dims))
}

fn matmul_shape(a: &Shape, b: &Shape, ta: bool, tb: bool) -> Result<Shape, String> {
    if a.rank() < 2 || b.rank() < 2 {
        return Err("a product needs two axes on each side".into());
    }
    let last = |s: &Shape, t: bool| {
        let (row, col) = (s.rank() - 2, s.rank() - 1);
        let (r, c) = if t { (col, row) } else { (row, col) };
        ((s.axes()[r], s.dims()[r]), (s.axes()[c], s.dims()[c]))
    };
    let (m, k) = last(a, ta);
    let (k2, n) = last(b, tb);
    if k.1 != k2.1 {
        return Err(format!("inner lengths {} and {} differ", k.1, k2.1));
    }
    // A matrix on the right of a batch is the same for all of it.
    let lead_a: SmallVec<[(Axis, usize); MAX_RANK]> = a.iter().take(a.rank() - 2).collect();
    let mut lead_b: SmallVec<[(Axis, usize); MAX_RANK]> = b.iter().take(b.rank() - 2).collect();
    while lead_b.len() < lead_a.len() {
        lead_b.insert(0, (Axis::One, 1));
    }
    let mut dims = broadcast(&Shape::named(&lead_a), &Shape::named(&lead_b))?
        .iter()
        .collect::<SmallVec<[(Axis, usize); MAX_RANK]>>();
    dims.extend([m, n]);
    Ok(Shape::named(&dims))
}

fn concat_shape(x: &[(Shape, DType)], axis: usize) -> Result<(Shape, DType), String> {
    let Some(&(first, dtype)) = x.first() else {
        return Err("needs an operand".into());
    };
    if axis >= first.rank() {
        return Err(format!("no axis {axis} in {first}"));
    }
    let mut total = 0usize;
    for (s, d) in x {
        let same = s.rank() == first.rank()
            && s.dims().iter().zip(first.dims()).enumerate().all(|(i, (a, b))| i == axis || a == b);
        if !same || *d != dtype {
            return Err(format!("{s} does not continue {first} along axis {axis}"));
        }
        total = total.saturating_add(s.dims()[axis]);
    }
    Ok((first.with_dim(axis, total), dtype))
}

fn gather_shape(s: &Shape, ids: &Shape, pick: Pick) -> Result<Shape, String> {
    match pick {
        Pick::Rows => {
            if s.rank() == 0 {
                return Err("a scalar has no rows".into());
            }
            let dims: SmallVec<[(Axis, usize); 2 * MAX_RANK]> = ids.iter().chain(s.iter().skip(1)).collect();
            if dims.len() > MAX_RANK {
                return Err("too many axes".into());
            }
            Ok(Shape::named(&dims))
        }
        Pick::Along => {
            let r = s.rank();
            if r == 0 || ids.rank() != r || ids.dims()[..r - 1] != s.dims()[..r - 1] {
                return Err("all axes but the last must be equal".into());
            }
            let last = (ids.axes()[r - 1], ids.dims()[r - 1]);
            Ok(s.with_dim(r - 1, last.1).with_axis(r - 1, last.0))
        }
    }
}
