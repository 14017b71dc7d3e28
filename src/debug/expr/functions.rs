//! The functions of the language.

use super::array::{Array, Scan};
use crate::tensor::{Axis, Shape};

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Largest; NaN where one is NaN. Of two tensors: the larger, cell by cell.
    Max,
    /// Smallest; NaN where one is NaN. Of two tensors: the smaller, cell by cell.
    Min,
    /// Mean.
    Mean,
    /// Sum, a left fold.
    Sum,
    /// Mean of squared distances from the mean (divided by n).
    Var,
    /// Its root.
    Std,
    /// √Σx².
    Norm,
    /// Where the largest is, the first of equals: its index, one number an axis.
    ArgMax,
    /// −Σ p ln p of each row of the last axis; NaN where a row is no distribution.
    Entropy,
    /// Share of cells that are 0.
    Zeros,
    /// How many cells are NaN.
    Nan,
    /// How many cells are infinite.
    Inf,
    /// Sums of the rows of the last axis.
    RowSum,
    /// Lengths of the axes.
    Shape,
    /// Number of cells; of a condition the number of cells for which it holds.
    Count,
    /// Whether any cell is true.
    Any,
    /// Whether all are.
    All,
    /// |x|.
    Abs,
    /// eˣ.
    Exp,
    /// Natural logarithm.
    Ln,
    /// Square root.
    Sqrt,
    /// Hyperbolic tangent.
    Tanh,
    /// eˣ/Σeˣ along the last axis, the largest subtracted first.
    Softmax,
}

/// Functions by name.
pub const FUNCTIONS: &[(&str, Function)] = &[
    ("max", Function::Max),
    ("min", Function::Min),
    ("mean", Function::Mean),
    ("sum", Function::Sum),
    ("var", Function::Var),
    ("std", Function::Std),
    ("norm", Function::Norm),
    ("argmax", Function::ArgMax),
    ("entropy", Function::Entropy),
    ("zeros", Function::Zeros),
    ("nan", Function::Nan),
    ("inf", Function::Inf),
    ("row_sum", Function::RowSum),
    ("shape", Function::Shape),
    ("count", Function::Count),
    ("any", Function::Any),
    ("all", Function::All),
    ("abs", Function::Abs),
    ("exp", Function::Exp),
    ("ln", Function::Ln),
    ("sqrt", Function::Sqrt),
    ("tanh", Function::Tanh),
    ("softmax", Function::Softmax),
];

/// A row whose sum is further from 1 is no distribution.
const DISTRIBUTION: f64 = 1e-3;

impl Function {
    /// The function called `name`.
    pub fn find(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|f| f.0 == name).map(|f| f.1)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|f| f.1 == self).map_or("", |f| f.0)
    }

    /// Whether the result is true or false.
    pub fn is_truth(self) -> bool {
        matches!(self, Function::Any | Function::All)
    }

    /// Whether it makes one number of many, and so may go along one axis.
    pub fn reduces(self) -> bool {
        !matches!(
            self,
            Function::Shape
                | Function::RowSum
                | Function::Entropy
                | Function::Abs
                | Function::Exp
                | Function::Ln
                | Function::Sqrt
                | Function::Tanh
                | Function::Softmax
        )
    }

    /// Whether it may be between two tensors, cell by cell.
    pub fn takes_two(self) -> bool {
        matches!(self, Function::Max | Function::Min)
    }

    /// Cell by cell of two tensors.
    pub(super) fn pair(self, a: f64, b: f64) -> f64 {
        if self == Function::Max { larger(a, b) } else { -larger(-a, -b) }
    }

    /// Of a whole tensor.
    pub(super) fn eval(self, x: &Array) -> Array {
        match self {
            Function::Count if x.is_truth() => Function::Sum.eval(x),
            Function::Shape => {
                let dims: Vec<f64> = x.shape().dims().iter().map(|&n| n as f64).collect();
                Array::new(Shape::new(&[dims.len()]), dims)
            }
            Function::Abs => x.map(f64::abs),
            Function::Exp => x.map(libm::exp),
            Function::Ln => x.map(libm::log),
            Function::Sqrt => x.map(f64::sqrt),
            Function::Tanh => x.map(libm::tanh),
            Function::Softmax => x.rows(softmax),
            Function::RowSum => Function::Sum.along(x, x.shape().rank().checked_sub(1)),
            Function::Entropy => x.fold_along(x.shape().rank().checked_sub(1), &mut entropy),
            Function::ArgMax => {
                let flat = arg_max(&mut |f| x.scan(f));
                let rank = x.shape().rank();
                let index: Vec<f64> = x.shape().unflat(flat)[..rank].iter().map(|&i| i as f64).collect();
                match index[..] {
                    [] => Array::scalar(0.0),
                    [i] => Array::scalar(i),
                    _ => Array::new(Shape::new(&[rank]), index),
                }
            }
            _ => Array::scalar(self.fold(&mut |f| x.scan(f))).with_truth(self.is_truth()),
        }
    }

    /// Along one axis, which goes away; the whole where there is none.
    pub(super) fn along(self, x: &Array, axis: Option<usize>) -> Array {
        if self == Function::Count && x.is_truth() {
            return Function::Sum.along(x, axis);
        }
        x.fold_along(axis, &mut |scan| self.fold(scan)).with_truth(self.is_truth())
    }

    /// One number of many; `scan` shows them in order, each time it is called.
    fn fold(self, scan: Scan<'_>) -> f64 {
        let mut count = 0_usize;
        let mut acc = 0.0;
        let mut each = |f: &mut dyn FnMut(f64, f64, bool) -> f64| {
            (count, acc) = (0, 0.0);
            scan(&mut |x| {
                acc = f(acc, x, count == 0);
                count += 1;
            });
            (acc, count)
        };
        let share = |part: f64, n: usize| if n == 0 { f64::NAN } else { part / n as f64 };
        match self {
            Function::Max => each(&mut |a, x, first| if first { x } else { larger(a, x) }).0,
            Function::Min => -each(&mut |a, x, first| if first { -x } else { larger(a, -x) }).0,
            Function::Sum | Function::RowSum => each(&mut |a, x, _| a + x).0,
            Function::Mean => {
                let (sum, n) = each(&mut |a, x, _| a + x);
                share(sum, n)
            }
            Function::Var | Function::Std => {
                let (sum, n) = each(&mut |a, x, _| a + x);
                let mean = share(sum, n);
                let squares = each(&mut |a, x, _| a + (x - mean) * (x - mean)).0;
                let var = share(squares, n);
                if self == Function::Var { var } else { var.sqrt() }
            }
            Function::Norm => each(&mut |a, x, _| a + x * x).0.sqrt(),
            Function::Zeros => {
                let (zeros, n) = each(&mut |a, x, _| if x == 0.0 { a + 1.0 } else { a });
                share(zeros, n)
            }
            Function::Nan => each(&mut |a, x, _| if x.is_nan() { a + 1.0 } else { a }).0,
            Function::Inf => each(&mut |a, x, _| if x.is_infinite() { a + 1.0 } else { a }).0,
            Function::Count => each(&mut |a, _, _| a + 1.0).0,
            Function::Any => each(&mut |a, x, _| if x == 0.0 { a } else { 1.0 }).0,
            Function::All => 1.0 - each(&mut |a, x, _| if x == 0.0 { 1.0 } else { a }).0,
            Function::ArgMax => arg_max(scan) as f64,
            Function::Shape
            | Function::Entropy
            | Function::Abs
            | Function::Exp
            | Function::Ln
            | Function::Sqrt
            | Function::Tanh
            | Function::Softmax => f64::NAN,
        }
    }
}

/// The larger; NaN where one is NaN.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

/// Position of the largest, NaN before all; the first of equals.
fn arg_max(scan: Scan<'_>) -> usize {
    let (mut best, mut at, mut i) = (f64::NEG_INFINITY, 0, 0);
    scan(&mut |x| {
        if i == 0 || !best.is_nan() && (x > best || x.is_nan()) {
            (best, at) = (x, i);
        }
        i += 1;
    });
    at
}

fn entropy(scan: Scan<'_>) -> f64 {
    let (mut sum, mut h, mut negative) = (0.0, 0.0, false);
    scan(&mut |p| {
        sum += p;
        negative |= p < 0.0;
        // 0·ln 0 is 0.
        if p != 0.0 {
            h -= p * libm::log(p);
        }
    });
    let distribution = !negative && (sum - 1.0).abs() <= DISTRIBUTION;
    // −1·ln 1 is −0.
    if distribution { h + 0.0 } else { f64::NAN }
}

fn softmax(row: &mut [f64]) {
    let top = row.iter().copied().reduce(larger).unwrap_or(0.0);
    let shift = if top.is_finite() { top } else { 0.0 };
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = libm::exp(*x - shift);
        sum += *x;
    }
    for x in row {
        *x /= sum;
    }
}

/// The axis called `name`.
pub(super) fn axis_named(name: &str) -> Option<Axis> {
    name.parse().ok()
}
