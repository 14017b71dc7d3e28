//! How far a result moves with an operand, in one primitive.

use crate::explain::Explainer;
use crate::program::{Affine, Binary, Reduction, Unary};
use crate::trace::derive::{Arithmetic, Cell};

/// `a·b`, where nothing of what has no part in it is still nothing.
pub(super) fn times(a: f64, b: f64) -> f64 {
    if b == 0.0 && !a.is_nan() { 0.0 } else { a * b }
}

/// ∂y/∂c of one primitive, `y` being its recorded value. Positions that are chosen (argmax, sampling) are all or nothing, too; sums of products are not here: a factor may be in several.
pub(super) fn partial(x: &Explainer<'_>, arithmetic: &Arithmetic, c: Cell, y: f64) -> f64 {
    let chosen = |yes: bool| f64::from(u8::from(yes));
    match arithmetic {
        Arithmetic::Given | Arithmetic::Dot(..) => 0.0,
        Arithmetic::Copy(_)
        | Arithmetic::Running(_)
        | Arithmetic::Scatter(..)
        | Arithmetic::Fold(Reduction::Sum, _) => 1.0,
        Arithmetic::Unary(f, _) => slope(*f, x.value(c), y),
        Arithmetic::Affine(f, _) => match f {
            Affine::Add(_) => 1.0,
            Affine::Mul(k) => *k,
            Affine::Div(k) => 1.0 / k,
        },
        Arithmetic::Binary(f, a, b) => {
            let (u, v) = (x.value(*a), x.value(*b));
            let own = |cell: &Cell, slope: f64| if *cell == c { slope } else { 0.0 };
            let (of_a, of_b) = match f {
                Binary::Add => (1.0, 1.0),
                Binary::Sub => (1.0, -1.0),
                Binary::MulOrZero if v == 0.0 => (0.0, u),
                Binary::Mul | Binary::MulOrZero => (v, u),
                Binary::LnOr if u < x.smallest_normal() => (0.0, 1.0),
                Binary::LnOr => (1.0 / u, 0.0),
                Binary::DivOrZero if v == 0.0 => (0.0, 0.0),
                Binary::Div | Binary::DivOrZero => (1.0 / v, -u / (v * v)),
                Binary::Max => {
                    let left = u.is_nan() || u >= v;
                    (chosen(left), chosen(!left))
                }
            };
            own(a, of_a) + own(b, of_b)
        }
        Arithmetic::Fold(Reduction::Mean, l) => 1.0 / l.len as f64,
        Arithmetic::Fold(Reduction::Max, l) => {
            // The first of equals, NaN before all.
            let same = |v: f64| v == y || v.is_nan() && y.is_nan();
            chosen(l.cells().find(|c| same(x.value(*c))) == Some(c))
        }
        Arithmetic::Masked { x: kept, mask, .. } => {
            let hidden = x.value(*mask) != 0.0;
            chosen(c == if hidden { *mask } else { *kept })
        }
        Arithmetic::ArgMax(l) | Arithmetic::ArgSort(l, _) | Arithmetic::Sample(l, _) => {
            let at = y.max(0.0) as usize;
            let drawn = matches!(arithmetic, Arithmetic::Sample(_, u) if *u == c);
            chosen(drawn || at < l.len && l.cell(at) == c)
        }
    }
}

/// The slope of a function at `x`, where its value is `y`.
fn slope(f: Unary, x: f64, y: f64) -> f64 {
    match f {
        Unary::Neg => -1.0,
        Unary::Exp => y,
        Unary::Ln => 1.0 / x,
        Unary::Sqrt => 0.5 / y,
        Unary::Square => 2.0 * x,
        Unary::Abs => {
            if x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        Unary::Tanh => 1.0 - y * y,
        Unary::Erf => std::f64::consts::FRAC_2_SQRT_PI * libm::exp(-x * x),
        Unary::Relu => f64::from(u8::from(x > 0.0)),
        Unary::Step => 0.0,
        Unary::Sigmoid => y * (1.0 - y),
        Unary::Sin => libm::cos(x),
        Unary::Cos => -libm::sin(x),
        Unary::SoftmaxShift | Unary::MaskedSoftmaxShift => f64::from(u8::from(y != 0.0)),
    }
}
