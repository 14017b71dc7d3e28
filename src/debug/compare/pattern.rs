//! What a difference looks like: where it is, and whether one of the usual slips explains it.

use super::measure::HIDDEN;
use crate::tensor::{Axis, Shape};

/// Nearness at which an explanation fits, relative to the tensor.
const NEAR: f64 = 1e-5;

/// Axes longer than this are not tried in every order.
const MAX_PERMUTED: usize = 256;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Only these elements of an axis differ: all others agree.
    Only {
        /// The axis.
        axis: Axis,
        /// Its place in the shape.
        at: usize,
        /// The elements.
        elements: Vec<usize>,
        /// Its length.
        of: usize,
    },
    /// The last two axes are exchanged.
    Transposed,
    /// The elements of an axis are in another order: element `i` here is element `order[i]` there.
    Permuted {
        /// The axis.
        axis: Axis,
        /// Where each is there.
        order: Vec<usize>,
    },
    /// The reference is this many times ours.
    Scaled(f64),
    /// The reference is ours so many positions later (earlier where negative).
    Shifted {
        /// The axis.
        axis: Axis,
        /// Positions.
        by: isize,
    },
    /// In each row the difference is one number.
    ConstantPerRow,
    /// Only cells that a mask hides differ.
    OnlyMasked,
    /// The reference is ours rounded to a smaller number type.
    Rounded(&'static str),
}

impl Pattern {
    /// Its name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Pattern::Only { .. } => "only",
            Pattern::Transposed => "transposed",
            Pattern::Permuted { .. } => "permuted",
            Pattern::Scaled(_) => "scaled",
            Pattern::Shifted { .. } => "shifted",
            Pattern::ConstantPerRow => "constant_per_row",
            Pattern::OnlyMasked => "only_masked",
            Pattern::Rounded(_) => "rounded",
        }
    }
}

/// What of the usual slips fits; `there` says which cells the reference has.
pub fn of(shape: &Shape, ours: &[f64], theirs: &[f64], there: Option<&[bool]>) -> Vec<Pattern> {
    let size = theirs.iter().filter(|x| x.is_finite() && x.abs() < -HIDDEN * 1e3).fold(0.0f64, |m, x| m.max(x.abs()));
    let near = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= NEAR * size;
    let is_there = |i: usize| there.is_none_or(|t| t[i]);
    let differs = |i: usize| is_there(i) && !near(ours[i], theirs[i]);
    let mut out = Vec::new();
    if shape.is_empty() || !(0..ours.len()).any(differs) {
        return out;
    }
    out.extend(explained(shape, ours, theirs, size, &near).filter(|_| there.is_none()));
    let rank = shape.rank();
    for at in 0..rank {
        let n = shape.dims()[at];
        if n < 2 || at + 1 == rank && !matches!(shape.axes()[at], Axis::Key | Axis::Token) {
            continue;
        }
        let inner: usize = shape.dims()[at + 1..].iter().product();
        let mut touched = vec![false; n];
        (0..ours.len()).filter(|i| differs(*i)).for_each(|i| touched[i / inner % n] = true);
        let elements: Vec<usize> = (0..n).filter(|i| touched[*i]).collect();
        if elements.len() < n && elements.len() <= n.div_ceil(2) {
            out.push(Pattern::Only { axis: shape.axes()[at], at, elements, of: n });
        }
    }
    out
}

/// The first explanation that makes all cells agree.
fn explained(
    shape: &Shape,
    ours: &[f64],
    theirs: &[f64],
    size: f64,
    near: &dyn Fn(f64, f64) -> bool,
) -> Option<Pattern> {
    let n = ours.len();
    let all = |of: &dyn Fn(usize) -> f64| (0..n).all(|i| near(of(i), theirs[i]));
    let hides = |x: f64| x <= HIDDEN;
    if (0..n).all(|i| near(ours[i], theirs[i]) || hides(ours[i]) || hides(theirs[i])) {
        return Some(Pattern::OnlyMasked);
    }
    for (name, round) in [("f16", f16 as fn(f64) -> f64), ("bf16", bf16)] {
        let exactly = (0..n).all(|i| round(ours[i]) == theirs[i]);
        if exactly || (0..n).all(|i| round(theirs[i]) == ours[i]) {
            return Some(Pattern::Rounded(name));
        }
    }
    let dims = shape.dims();
    if let [.., rows, cols] = *dims
        && rows == cols
        && rows > 1
    {
        let plane = rows * cols;
        if all(&|i| ours[i / plane * plane + i % cols * cols + i % plane / cols]) {
            return Some(Pattern::Transposed);
        }
    }
    let largest = (0..n).max_by(|a, b| ours[*a].abs().total_cmp(&ours[*b].abs()))?;
    let factor = theirs[largest] / ours[largest];
    if factor.is_finite() && factor != 0.0 && all(&|i| ours[i] * factor) {
        return Some(Pattern::Scaled(factor));
    }
    for at in 0..shape.rank() {
        let length = dims[at];
        if !(2..=MAX_PERMUTED).contains(&length) {
            continue;
        }
        let inner: usize = dims[at + 1..].iter().product();
        let cell = |i: usize, to: usize| i - i / inner % length * inner + to * inner;
        let position = |i: usize| i / inner % length;
        for by in [1isize, -1] {
            let from = |i: usize| position(i).checked_add_signed(-by).filter(|p| *p < length);
            let fits = (0..n).all(|i| from(i).is_none_or(|p| near(ours[cell(i, p)], theirs[i])));
            if fits && length > 2 {
                return Some(Pattern::Shifted { axis: shape.axes()[at], by });
            }
        }
        let slice_fits = |here: usize, there: usize| {
            (0..n).filter(|i| position(*i) == here).all(|i| near(ours[i], theirs[cell(i, there)]))
        };
        let heads = matches!(shape.axes()[at], Axis::Head | Axis::KvHead) || length <= 16;
        let order: Option<Vec<usize>> =
            if heads { (0..length).map(|i| (0..length).find(|j| slice_fits(i, *j))).collect() } else { None };
        if let Some(order) = order {
            let mut seen = order.clone();
            seen.sort_unstable();
            seen.dedup();
            if seen.len() == length && order.iter().enumerate().any(|(i, j)| i != *j) {
                return Some(Pattern::Permuted { axis: shape.axes()[at], order });
            }
        }
    }
    let width = dims.last().copied().filter(|w| *w > 1)?;
    let row_constant = |row: usize| {
        let apart = |i: usize| theirs[i] - ours[i];
        let first = apart(row * width);
        (row * width..(row + 1) * width).all(|i| (apart(i) - first).abs() <= NEAR * size)
    };
    (0..n / width).all(row_constant).then_some(Pattern::ConstantPerRow)
}

fn f16(x: f64) -> f64 {
    half::f16::from_f64(x).to_f64()
}

fn bf16(x: f64) -> f64 {
    half::bf16::from_f64(x).to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(axes: &[(Axis, usize)], ours: &[f64], theirs: &[f64]) -> Vec<Pattern> {
        of(&Shape::named(axes), ours, theirs, None)
    }

    #[test]
    fn usual_slips_are_named() {
        use Axis::{Head, Key, Query, Token};
        let square = [(Query, 2), (Key, 2)];
        let x = [1.0, 2.0, 3.0, 4.5];
        assert_eq!(found(&square, &x, &[1.0, 3.0, 2.0, 4.5])[0], Pattern::Transposed);
        assert_eq!(found(&square, &x, &x.map(|x| x * 3.0))[0], Pattern::Scaled(3.0));
        assert_eq!(found(&square, &x, &[2.0, 3.0, 2.5, 4.0])[0], Pattern::ConstantPerRow);
        assert_eq!(found(&square, &[1.0, -1e4, 2.0, 3.0], &[1.0, -1e9, 2.0, 3.0])[0], Pattern::OnlyMasked);
        let half = [0.1, 0.2, 0.3, 0.7].map(|x| half::f16::from_f64(x).to_f64());
        assert_eq!(found(&square, &[0.1, 0.2, 0.3, 0.7], &half)[0], Pattern::Rounded("f16"));
        let heads = [(Head, 2), (Token, 2)];
        let swapped = Pattern::Permuted { axis: Head, order: vec![1, 0] };
        assert!(found(&heads, &[1.0, 2.0, 5.0, 7.0], &[5.0, 7.0, 1.0, 2.0]).contains(&swapped));
        let tokens = [(Token, 4), (Axis::DModel, 1)];
        let later = found(&tokens, &[1.0, 2.0, 4.0, 8.0], &[0.0, 1.0, 2.0, 4.0]);
        assert_eq!(later[0], Pattern::Shifted { axis: Token, by: 1 });
    }

    #[test]
    fn where_it_differs_is_said() {
        let shape = [(Axis::Batch, 2), (Axis::Token, 3), (Axis::DModel, 2)];
        let ours: Vec<f64> = (0..12).map(f64::from).collect();
        let mut theirs = ours.clone();
        (theirs[10], theirs[11]) = (50.0, -3.0);
        let only = |axis, at, elements: &[usize], of| Pattern::Only { axis, at, elements: elements.to_vec(), of };
        let all = found(&shape, &ours, &theirs);
        assert!(
            all.contains(&only(Axis::Batch, 0, &[1], 2)) && all.contains(&only(Axis::Token, 1, &[2], 3)),
            "{all:?}"
        );
        assert_eq!(found(&shape, &ours, &ours), []);
    }
}
