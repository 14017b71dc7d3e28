//! Reductions along one axis, as left folds.

use rayon::prelude::*;

use super::par;
use crate::tensor::Real;

/// What a reduction does with the elements of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `((x₀ + x₁) + x₂) + …`; 0 of nothing.
    Sum,
    /// The largest, the first of equals (so of +0 and −0 the first), NaN if there is one; −∞ of nothing.
    Max,
    /// The sum, then one division by the number of elements.
    Mean,
}

/// Rows of length `n` folded at a time where the axis is innermost: independent chains hide the latency of addition.
const LANES: usize = 8;

/// Reduces the middle axis of `x`, seen as `[outer, n, inner]`, into `out`, seen as `[outer, inner]`.
///
/// # Panics
/// Where the lengths do not fit.
pub fn fold<T: Real>(reduction: Reduction, x: &[T], outer: usize, n: usize, inner: usize, out: &mut [T]) {
    assert_eq!(x.len(), outer * n * inner, "elements of a reduction");
    assert_eq!(out.len(), outer * inner, "results of a reduction");
    if out.is_empty() {
        return;
    }
    let count = T::from_f64(n as f64);
    match reduction {
        Reduction::Sum => rows(x, n, inner, out, T::ZERO, |acc, x| acc + x, |x| x),
        Reduction::Mean => rows(x, n, inner, out, T::ZERO, |acc, x| acc + x, |x| x / count),
        Reduction::Max => rows(x, n, inner, out, T::NEG_INFINITY, max, |x| x),
    }
}

#[inline(always)]
fn max<T: Real>(acc: T, x: T) -> T {
    // A NaN accumulator stays: nothing compares above it.
    if x > acc || x.is_nan() { x } else { acc }
}

/// Position of the largest of each row of `n` elements; the first of equals; the first NaN where there is one.
///
/// # Panics
/// Where `n` is 0.
pub fn argmax<T: Real>(x: &[T], n: usize) -> Vec<i64> {
    let mut best = vec![0; x.len() / n];
    let rows = (par::CHUNK / n).max(1);
    best.par_chunks_mut(rows).zip(x.par_chunks(rows * n)).for_each(|(best, x)| {
        for (best, row) in best.iter_mut().zip(x.chunks_exact(n)) {
            *best = par::wide(|| largest(row)) as i64;
        }
    });
    best
}

#[inline(always)]
fn largest<T: Real>(row: &[T]) -> usize {
    /// Elements that are looked at together: one of them is seldom larger than all before.
    const TOGETHER: usize = 64;
    let mut best = 0;
    for (i, part) in row.chunks(TOGETHER).enumerate() {
        let most = row[best];
        // Without branches, so that it becomes vector instructions.
        #[allow(clippy::needless_bitwise_bool)]
        let any = part.iter().fold(false, |any, x| any | (*x > most) | x.is_nan());
        if any {
            for (j, x) in part.iter().enumerate() {
                if !row[best].is_nan() && (*x > row[best] || x.is_nan()) {
                    best = i * TOGETHER + j;
                }
            }
        }
    }
    best
}

fn rows<T: Real>(
    x: &[T],
    n: usize,
    inner: usize,
    out: &mut [T],
    empty: T,
    step: impl Fn(T, T) -> T + Sync,
    finish: impl Fn(T) -> T + Sync,
) {
    if n == 0 {
        out.fill(finish(empty));
        return;
    }
    // Whole outer entries a task, so that a task's part of `x` is contiguous.
    let entries =
        if inner == 1 { (par::CHUNK / n).max(1).next_multiple_of(LANES) } else { (par::CHUNK / (n * inner)).max(1) };
    let task = |(x, out): (&[T], &mut [T])| {
        if inner == 1 {
            contiguous(x, n, out, &step, &finish);
        } else {
            strided(x, n, inner, out, &step, &finish);
        }
    };
    if x.len() <= par::CHUNK {
        task((x, out));
    } else {
        x.par_chunks(entries * n * inner).zip(out.par_chunks_mut(entries * inner)).for_each(task);
    }
}

fn contiguous<T: Real>(x: &[T], n: usize, out: &mut [T], step: &impl Fn(T, T) -> T, finish: &impl Fn(T) -> T) {
    let mut groups = out.chunks_exact_mut(LANES);
    let mut x_groups = x.chunks_exact(LANES * n);
    for (out, x) in groups.by_ref().zip(x_groups.by_ref()) {
        let rows: [&[T]; LANES] = std::array::from_fn(|lane| &x[lane * n..][..n]);
        let mut acc: [T; LANES] = std::array::from_fn(|lane| rows[lane][0]);
        for i in 1..n {
            for (acc, row) in acc.iter_mut().zip(rows) {
                *acc = step(*acc, row[i]);
            }
        }
        for (out, acc) in out.iter_mut().zip(acc) {
            *out = finish(acc);
        }
    }
    let rest = x_groups.remainder().chunks_exact(n);
    for (out, row) in groups.into_remainder().iter_mut().zip(rest) {
        *out = finish(row[1..].iter().fold(row[0], |acc, &x| step(acc, x)));
    }
}

fn strided<T: Real>(
    x: &[T],
    n: usize,
    inner: usize,
    out: &mut [T],
    step: &impl Fn(T, T) -> T,
    finish: &impl Fn(T) -> T,
) {
    for (out, x) in out.chunks_exact_mut(inner).zip(x.chunks_exact(n * inner)) {
        out.copy_from_slice(&x[..inner]);
        for row in x[inner..].chunks_exact(inner) {
            for (acc, &x) in out.iter_mut().zip(row) {
                *acc = step(*acc, x);
            }
        }
        for acc in out {
            *acc = finish(*acc);
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the exact value is what is requested
mod tests {
    use super::*;

    #[test]
    fn every_reduction_is_the_left_fold() {
        for (outer, n, inner) in
            [(1, 1, 1), (3, 5, 1), (8, 4, 1), (21, 300, 1), (100, 768, 1), (2, 7, 3), (5, 100, 60), (1, 3, 20_000)]
        {
            let x: Vec<f32> = (0..outer * n * inner).map(|i| ((i * 7919) % 1013) as f32 * 0.017 - 8.0).collect();
            for reduction in [Reduction::Sum, Reduction::Max, Reduction::Mean] {
                let mut out = vec![f32::NAN; outer * inner];
                fold(reduction, &x, outer, n, inner, &mut out);
                for (at, got) in out.iter().enumerate() {
                    let element = |i: usize| x[(at / inner * n + i) * inner + at % inner];
                    let mut expected = element(0);
                    for i in 1..n {
                        expected = match reduction {
                            Reduction::Max => expected.max(element(i)),
                            _ => expected + element(i),
                        };
                    }
                    if reduction == Reduction::Mean {
                        expected /= n as f32;
                    }
                    assert_eq!(got.to_bits(), expected.to_bits(), "{reduction:?}");
                }
            }
        }
    }

    #[test]
    fn the_first_of_the_largest_is_found() {
        let row: Vec<f32> = (0..1000).map(|i| ((i * 7919) % 613) as f32).collect();
        let first = row.iter().position(|x| *x == 612.0).expect("there");
        let with = |at: usize, x: f32| [&row[..at], &[x], &row[at + 1..]].concat();
        let rows = [row.clone(), with(70, f32::NAN), with(999, 1e9), with(0, f32::INFINITY), vec![-0.0; 1000]].concat();
        assert_eq!(argmax(&rows, 1000), [first as i64, 70, 999, 0, 0]);
        assert_eq!(argmax(&[f64::NAN, f64::NAN, 1.0], 3), [0]);
        assert_eq!(argmax::<f64>(&[], 3), Vec::<i64>::new());
    }

    #[test]
    fn a_negative_zero_alone_stays() {
        let mut out = [1.0f64];
        fold(Reduction::Sum, &[-0.0, -0.0], 1, 2, 1, &mut out);
        assert_eq!(out[0].to_bits(), (-0.0f64).to_bits());
        fold(Reduction::Max, &[-0.0, 0.0], 1, 2, 1, &mut out);
        assert_eq!(out[0].to_bits(), (-0.0f64).to_bits());
    }

    #[test]
    fn nan_wins_wherever_it_stands() {
        for at in 0..9 {
            let mut x = [1.0f32; 9];
            x[at] = f32::NAN;
            x[(at + 1) % 9] = f32::INFINITY;
            let mut out = [0.0];
            for reduction in [Reduction::Sum, Reduction::Max, Reduction::Mean] {
                fold(reduction, &x, 1, 9, 1, &mut out);
                assert!(out[0].is_nan());
            }
        }
    }

    #[test]
    fn nothing_to_reduce() {
        let mut out = [5.0f64; 2];
        fold(Reduction::Sum, &[], 2, 0, 1, &mut out);
        assert_eq!(out, [0.0; 2]);
        fold(Reduction::Max, &[], 2, 0, 1, &mut out);
        assert_eq!(out, [f64::NEG_INFINITY; 2]);
        fold(Reduction::Mean, &[], 2, 0, 1, &mut out);
        assert!(out.iter().all(|x| x.is_nan()));
    }
}
