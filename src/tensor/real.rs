//! The two number types a trace may be made of.

use std::fmt::{Debug, Display};

use serde::{Deserialize, Serialize};

use super::elem::Plain;

/// Which number type a run is computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Precision {
    /// The smallest positive number of full precision.
    pub fn smallest_normal(self) -> f64 {
        match self {
            Self::F32 => f64::from(f32::MIN_POSITIVE),
            Self::F64 => f64::MIN_POSITIVE,
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A number type of a trace: `f32` or `f64`, nothing else.
///
/// The elementary functions come from `libm`, those that `f32` needs fast from `elementary.rs`, never from the
/// platform, so that a recorded value has the same bits everywhere.
#[allow(clippy::return_self_not_must_use)] // nobody computes a number to drop it
pub trait Real:
    sealed::Sealed
    + Plain
    + Copy
    + Debug
    + Display
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
    + 'static
{
    /// Its tag.
    const PRECISION: Precision;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// −∞.
    const NEG_INFINITY: Self;
    /// The most negative finite number.
    const LOWEST: Self;
    /// The smallest positive number of full precision.
    const MIN_POSITIVE: Self;
    /// Largest `x` for which `exp(x)` is safe to sum: beyond it, a softmax subtracts the row's maximum first.
    const EXP_SAFE: Self;

    /// Rounds an `f64` to this type.
    fn from_f64(x: f64) -> Self;
    /// Exact widening.
    fn to_f64(self) -> f64;
    /// The bits, widened. Those of a NaN are always the same: neither Rust nor IEEE 754 says which sign and payload an
    /// operation gives it.
    fn bits(self) -> u64;
    /// `self·a + b` rounded once.
    fn fma(self, a: Self, b: Self) -> Self;
    /// As [`fma`](Real::fma), but one instruction where the enclosing function enables the feature for it, and a call
    /// into the platform's C library elsewhere: only for kernels, which look before they use it.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// eˣ.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root (correctly rounded everywhere).
    fn sqrt(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// Sine of radians.
    fn sin(self) -> Self;
    /// Cosine of radians.
    fn cos(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Whether NaN.
    fn is_nan(self) -> bool;
    /// Whether neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! real {
    ($t:ty, $precision:ident, $safe:expr, $exp:path, $ln:path, $tanh:path, $erf:path, $sin:path, $cos:path, $fma:path) => {
        #[allow(clippy::inline_always)] // see `elementary`
        impl Real for $t {
            const PRECISION: Precision = Precision::$precision;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = <$t>::NEG_INFINITY;
            const LOWEST: Self = <$t>::MIN;
            const MIN_POSITIVE: Self = <$t>::MIN_POSITIVE;
            const EXP_SAFE: Self = $safe;
            #[inline]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline]
            fn bits(self) -> u64 {
                let x = if self.is_nan() { <$t>::NAN } else { self };
                u64::from(x.to_bits())
            }
            #[inline]
            fn fma(self, a: Self, b: Self) -> Self {
                $fma(self, a, b)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                <$t>::mul_add(self, a, b)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline]
            fn ln(self) -> Self {
                $ln(self)
            }
            #[inline]
            fn sqrt(self) -> Self {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                $tanh(self)
            }
            #[inline(always)]
            fn erf(self) -> Self {
                $erf(self)
            }
            #[inline]
            fn sin(self) -> Self {
                $sin(self)
            }
            #[inline]
            fn cos(self) -> Self {
                $cos(self)
            }
            #[inline]
            fn abs(self) -> Self {
                <$t>::abs(self)
            }
            #[inline]
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
            #[inline]
            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
        }
    };
}

real!(f64, F64, 600.0, libm::exp, libm::log, libm::tanh, libm::erf, libm::sin, libm::cos, libm::fma);
real!(
    f32,
    F32,
    80.0,
    super::elementary::exp,
    libm::logf,
    super::elementary::tanh,
    super::elementary::erf,
    libm::sinf,
    libm::cosf,
    libm::fmaf
);
