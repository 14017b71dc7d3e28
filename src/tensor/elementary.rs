//! Elementary functions of `f32`, computed in `f64` without branches.
//!
//! In double precision a short polynomial leaves an error far below half a unit of single precision, so the one
//! rounding at the end gives the correctly rounded result but for about one argument in ten thousand, where it is
//! the other neighbour. Only additions, multiplications, divisions and conversions of IEEE 754 are used, each
//! rounded once and none fused, so the bits are the same on every platform, and a loop over a slice that the
//! compiler turns into vector instructions gives the bits of the scalar call.

// A function takes the instruction set of the kernel it is inlined into: here that is the point.
#![allow(clippy::inline_always)]

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG2_E};

/// Adding and taking away 1.5·2⁵² rounds to a whole number, which the low bits of the sum hold.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// 1/2!, 1/3!, … 1/9!: the remainder is below 7·10⁻¹² of the result for |r| ≤ ½ ln 2.
const FACTORIALS: [f64; 8] = {
    let mut inverse = [0.0; 8];
    let mut factorial = 1.0;
    let mut i = 0;
    while i < 8 {
        factorial *= (i + 2) as f64;
        inverse[i] = 1.0 / factorial;
        i += 1;
    }
    inverse
};

/// Coefficients of the series erf(x) = 2/√π Σ (−1)ⁿ x²ⁿ⁺¹ / (n! (2n+1)); the remainder is below 10⁻¹⁰ for |x| ≤ 1.
const ERF_SERIES: [f64; 12] = {
    let mut series = [0.0; 12];
    let mut factorial = 1.0;
    let mut n = 0;
    while n < 12 {
        if n > 0 {
            factorial *= -(n as f64);
        }
        series[n] = FRAC_2_SQRT_PI / (factorial * (2 * n + 1) as f64);
        n += 1;
    }
    series
};

/// e^(x²)·erfc(x) for 1 ≤ x ≤ 4, in x − 2.5: our Chebyshev fit of degree 12, lowest coefficient first. Its error is
/// below 1.8·10⁻⁹, and e^(−x²) makes a third of that or less of it.
#[allow(clippy::unreadable_literal)]
const ERFCX: [f64; 13] = [
    0.2108063640611436,
    -0.07434733674204068,
    0.024937994751043007,
    -0.008001693887595496,
    0.0024670657614729186,
    -0.0007331529642909852,
    0.0002109179637713861,
    -5.9523157031741315e-05,
    1.6114106393804864e-05,
    -3.7472737729690635e-06,
    9.763901572173902e-07,
    -4.264734348150259e-07,
    1.0301512994682683e-07,
];

/// `c[0] + c[1]·x + c[2]·x² + …`, innermost first. Written out, so that no inner loop is left in the way of vector
/// instructions.
macro_rules! polynomial {
    ($x:expr, $c:ident[$last:literal]) => { $c[$last] };
    ($x:expr, $c:ident[$first:literal $($rest:literal)+]) => {
        $c[$first] + $x * polynomial!($x, $c[$($rest)+])
    };
}

/// `x` brought into `low..=high`; NaN stays.
#[inline(always)]
fn clamp(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `(2ⁿ, eʳ − 1)` with `x = n·ln 2 + r`, `|r| ≤ ½ ln 2`, for `|x| < 700`. Small arguments lose no digits.
#[inline(always)]
fn split_exp(x: f64) -> (f64, f64) {
    let rounded = x * LOG2_E + ROUND;
    let r = x - (rounded - ROUND) * LN_2;
    let scale = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1f64.to_bits()));
    (scale, r + r * r * polynomial!(r, FACTORIALS[0 1 2 3 4 5 6 7]))
}

/// eˣ.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Beyond these, e^x is 0 or ∞ in single precision.
    let (scale, minus_one) = split_exp(clamp(f64::from(x), -104.0, 89.0));
    (scale + scale * minus_one) as f32
}

/// Hyperbolic tangent: (e²ˣ − 1)/(e²ˣ + 1).
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // Beyond ±10, tanh x is ±1 in single precision.
    let (scale, minus_one) = split_exp(2.0 * clamp(f64::from(x), -10.0, 10.0));
    let e = (scale - 1.0) + scale * minus_one;
    ((e / (e + 2.0)) as f32).copysign(x)
}

/// Error function: its series up to 1, 1 − erfc beyond.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let x = f64::from(x);
    // Beyond ±4, erf x is ±1 in single precision.
    let size = clamp(x.abs(), 0.0, 4.0);
    let square = size * size;
    let near = x * polynomial!(square, ERF_SERIES[0 1 2 3 4 5 6 7 8 9 10 11]);
    let (scale, minus_one) = split_exp(-square);
    let beyond = size - 2.5;
    let gauss = scale + scale * minus_one;
    let far = (1.0 - gauss * polynomial!(beyond, ERFCX[0 1 2 3 4 5 6 7 8 9 10 11 12])).copysign(x);
    // A branch here would keep a loop from becoming vector instructions.
    std::hint::select_unpredictable(size < 1.0, near, far) as f32
}

#[cfg(test)]
mod tests {
    /// Distance in units in the last place; 0 for two NaN.
    fn ulps(x: f32, y: f32) -> u32 {
        if x.is_nan() && y.is_nan() {
            return 0;
        }
        let ordered = |x: f32| {
            let bits = x.to_bits().cast_signed();
            if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits }
        };
        ordered(x).abs_diff(ordered(y))
    }

    type Function = (fn(f32) -> f32, fn(f64) -> f64, &'static str);
    const FUNCTIONS: [Function; 3] =
        [(super::exp, libm::exp, "exp"), (super::tanh, libm::tanh, "tanh"), (super::erf, libm::erf, "erf")];

    #[test]
    fn within_one_unit_and_nearly_always_rounded_correctly() {
        for (ours, theirs, name) in FUNCTIONS {
            let (mut total, mut off) = (0u32, 0u32);
            // A prime stride visits every exponent and both signs.
            for bits in (0..=u32::MAX).step_by(4099) {
                let x = f32::from_bits(bits);
                let distance = ulps(ours(x), theirs(f64::from(x)) as f32);
                assert!(distance <= 1, "{name}({x:e}) is off by {distance}");
                total += 1;
                off += distance;
            }
            assert!(off * 5000 < total, "{name}: {off} of {total} rounded the wrong way");
        }
    }

    #[test]
    fn ends_and_signs() {
        assert_eq!(super::exp(f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!(super::exp(f32::INFINITY).to_bits(), f32::INFINITY.to_bits());
        assert_eq!(super::exp(-0.0).to_bits(), 1f32.to_bits());
        assert_eq!(super::exp(-1e9).to_bits(), 0);
        for f in [super::tanh, super::erf] {
            assert_eq!(f(0.0).to_bits(), 0);
            assert_eq!(f(-0.0).to_bits(), (-0f32).to_bits());
            assert_eq!(f(f32::INFINITY).to_bits(), 1f32.to_bits());
            assert_eq!(f(f32::NEG_INFINITY).to_bits(), (-1f32).to_bits());
            assert!(f(f32::NAN).is_nan());
        }
        assert!(super::exp(f32::NAN).is_nan());
    }

    #[test]
    fn the_pieces_of_erf_meet() {
        let one = 1f32.to_bits();
        for bits in one - 1000..one + 1000 {
            let (x, next) = (f32::from_bits(bits), f32::from_bits(bits + 1));
            assert!(super::erf(x) <= super::erf(next), "erf falls at {x}");
        }
    }
}
