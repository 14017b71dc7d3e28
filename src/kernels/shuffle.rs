//! Moving elements: permuted axes, joined and cut axes, chosen rows.

use smallvec::SmallVec;

use super::par;
use crate::tensor::{Elem, Real};

/// Reorders axes: axis `i` of `out` is axis `order[i]` of `x`, whose lengths are `dims`; both row-major.
///
/// # Panics
/// Where `order` is no permutation of the axes, or the lengths do not fit.
pub fn permute<E: Elem>(x: &[E], dims: &[usize], order: &[usize], out: &mut [E]) {
    assert_eq!(order.len(), dims.len(), "axes of a permutation");
    let mut seen: SmallVec<[bool; 6]> = SmallVec::from_elem(false, dims.len());
    for &axis in order {
        assert!(!std::mem::replace(&mut seen[axis], true), "axis {axis} twice in a permutation");
    }
    let len: usize = dims.iter().product();
    assert_eq!(x.len(), len, "elements of a permutation");
    assert_eq!(out.len(), len, "elements of a permutation");
    if len == 0 {
        return;
    }
    let mut strides: SmallVec<[usize; 6]> = SmallVec::from_elem(1, dims.len());
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i];
    }
    // (length, stride in x) of the axes of `out`; neighbours that stay neighbours are one.
    let mut axes: SmallVec<[(usize, usize); 6]> = SmallVec::new();
    for &axis in order {
        let (n, stride) = (dims[axis], strides[axis]);
        if n == 1 {
            continue;
        }
        match axes.last_mut() {
            Some(last) if last.1 == stride * n => *last = (last.0 * n, stride),
            _ => axes.push((n, stride)),
        }
    }
    let (n, stride) = axes.pop().unwrap_or((1, 1));
    par::chunks(out, |start, out| {
        let mut at = start;
        let mut rest = out;
        while !rest.is_empty() {
            let (mut row, column) = (at / n, at % n);
            let mut from = column * stride;
            for &(n, stride) in axes.iter().rev() {
                from += row % n * stride;
                row /= n;
            }
            let len = rest.len().min(n - column);
            let (run, tail) = rest.split_at_mut(len);
            if stride == 1 {
                run.copy_from_slice(&x[from..from + len]);
            } else {
                for (out, &x) in run.iter_mut().zip(x[from..].iter().step_by(stride)) {
                    *out = x;
                }
            }
            rest = tail;
            at += len;
        }
    });
}

/// Joins tensors along an axis. Part `i` is seen as `[outer, lengths[i], inner]`, `out` as `[outer, Σ lengths, inner]`.
///
/// # Panics
/// Where the lengths do not fit.
pub fn concat<E: Elem>(parts: &[&[E]], lengths: &[usize], outer: usize, inner: usize, out: &mut [E]) {
    assert_eq!(parts.len(), lengths.len(), "parts of a concatenation");
    let total: usize = lengths.iter().sum();
    assert_eq!(out.len(), outer * total * inner, "elements of a concatenation");
    let mut start = 0;
    for (part, &n) in parts.iter().zip(lengths) {
        assert_eq!(part.len(), outer * n * inner, "elements of a part");
        if n * inner > 0 {
            for (out, part) in out.chunks_exact_mut(total * inner).zip(part.chunks_exact(n * inner)) {
                out[start..start + n * inner].copy_from_slice(part);
            }
        }
        start += n * inner;
    }
}

/// Cuts `len` entries from `start` on out of the middle axis of `x`, seen as `[outer, n, inner]`.
///
/// # Panics
/// Where the range lies outside the axis, or the lengths do not fit.
pub fn slice<E: Elem>(x: &[E], outer: usize, n: usize, inner: usize, start: usize, len: usize, out: &mut [E]) {
    assert!(start <= n && len <= n - start, "range of a slice");
    assert_eq!(x.len(), outer * n * inner, "elements of a slice's source");
    assert_eq!(out.len(), outer * len * inner, "elements of a slice");
    if out.is_empty() {
        return;
    }
    for (out, x) in out.chunks_exact_mut(len * inner).zip(x.chunks_exact(n * inner)) {
        out.copy_from_slice(&x[start * inner..(start + len) * inner]);
    }
}

/// `out[i] = table[ids[i]]`, rows of `width` elements.
///
/// # Panics
/// Where an id is no row of the table, or the lengths do not fit.
pub fn gather_rows<E: Elem>(table: &[E], width: usize, ids: &[i64], out: &mut [E]) {
    assert_eq!(out.len(), ids.len() * width, "elements of gathered rows");
    for (i, &id) in ids.iter().enumerate() {
        out[i * width..][..width].copy_from_slice(&table[row(id, width, table.len())]);
    }
}

/// `out[ids[i]] += rows[i]`, for `i` from 0 on, over whatever `out` holds.
///
/// # Panics
/// Where an id is no row of `out`, or the lengths do not fit.
pub fn scatter_add_rows<T: Real>(rows: &[T], width: usize, ids: &[i64], out: &mut [T]) {
    assert_eq!(rows.len(), ids.len() * width, "elements of scattered rows");
    for (i, &id) in ids.iter().enumerate() {
        let range = row(id, width, out.len());
        for (out, &x) in out[range].iter_mut().zip(&rows[i * width..]) {
            *out += x;
        }
    }
}

fn row(id: i64, width: usize, len: usize) -> std::ops::Range<usize> {
    let start = usize::try_from(id).ok().and_then(|id| id.checked_mul(width));
    match start {
        Some(start) if start.checked_add(width).is_some_and(|end| end <= len) => start..start + width,
        _ => panic!("row {id} is outside a table of {len} elements, {width} a row"),
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the exact value is what is requested
mod tests {
    use super::*;

    #[test]
    fn permutes_like_the_indices_say() {
        let cases: [(&[usize], &[usize]); 9] = [
            (&[], &[]),
            (&[4], &[0]),
            (&[3, 5], &[1, 0]),
            (&[2, 3, 4], &[0, 2, 1]),
            (&[2, 3, 4], &[2, 0, 1]),
            (&[2, 7, 3, 5], &[0, 2, 1, 3]),
            (&[1, 300, 12, 16], &[0, 2, 1, 3]),
            (&[1, 12, 300, 16], &[0, 1, 3, 2]),
            (&[2, 0, 3], &[2, 1, 0]),
        ];
        for (dims, order) in cases {
            let len: usize = dims.iter().product();
            let x: Vec<i64> = (0..len as i64).collect();
            let mut out = vec![-1; len];
            permute(&x, dims, order, &mut out);
            let out_dims: Vec<usize> = order.iter().map(|&a| dims[a]).collect();
            for (flat, got) in out.iter().enumerate() {
                let mut rest = flat;
                let mut index = vec![0; dims.len()];
                for i in (0..dims.len()).rev() {
                    index[order[i]] = rest % out_dims[i];
                    rest /= out_dims[i];
                }
                let from = index.iter().zip(dims).fold(0, |at, (i, n)| at * n + i);
                assert_eq!(*got, from as i64, "{dims:?} {order:?} at {flat}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "twice")]
    fn an_axis_twice_is_no_permutation() {
        permute(&[1i64, 2], &[1, 2], &[1, 1], &mut [0, 0]);
    }

    #[test]
    fn slicing_undoes_joining() {
        let (outer, inner) = (3, 4);
        let lengths = [2, 0, 5];
        let parts: Vec<Vec<i64>> = lengths
            .iter()
            .enumerate()
            .map(|(p, n)| (0..outer * n * inner).map(|i| (p * 1000 + i) as i64).collect())
            .collect();
        let views: Vec<&[i64]> = parts.iter().map(Vec::as_slice).collect();
        let mut joined = vec![-1; outer * 7 * inner];
        concat(&views, &lengths, outer, inner, &mut joined);
        assert_eq!(joined[2 * inner], 2000);
        let mut start = 0;
        for (part, n) in parts.iter().zip(lengths) {
            let mut out = vec![-1; part.len()];
            slice(&joined, outer, 7, inner, start, n, &mut out);
            assert_eq!(&out, part);
            start += n;
        }
    }

    #[test]
    fn gathers_and_scatters_rows() {
        let table = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut out = [0.0; 6];
        gather_rows(&table, 2, &[2, 0, 2], &mut out);
        assert_eq!(out, [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
        let mut grad = [0.0; 6];
        scatter_add_rows(&out, 2, &[2, 0, 2], &mut grad);
        assert_eq!(grad, [1.0, 2.0, 0.0, 0.0, 10.0, 12.0]);
    }

    #[test]
    #[should_panic(expected = "row -1 is outside")]
    fn a_negative_id_is_refused() {
        gather_rows(&[1.0, 2.0], 1, &[-1], &mut [0.0]);
    }
}
