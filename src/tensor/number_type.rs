//! Number types smaller than binary32, as a run may be rounded to them.
//!
//! A number is rounded to the nearest that the type has, of two equally near ones to the even one: what `Tensor.to`
//! of PyTorch does. `tf32` is what tensor cores read of a binary32.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number type that values are rounded to; it is read by its name, or PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
pub enum NumberType {
    /// 8 bits of exponent, 7 of mantissa.
    #[strum(to_string = "bf16", serialize = "bfloat16")]
    Bf16,
    /// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
    #[strum(to_string = "f16", serialize = "fp16", serialize = "float16", serialize = "half")]
    F16,
    /// 4 bits of exponent, 3 of mantissa; no infinity (`float8_e4m3fn`): what is too large is its largest number.
    #[strum(to_string = "fp8_e4m3", serialize = "e4m3", serialize = "float8_e4m3fn")]
    Fp8E4m3,
    /// 5 bits of exponent, 2 of mantissa.
    #[strum(to_string = "fp8_e5m2", serialize = "e5m2", serialize = "float8_e5m2")]
    Fp8E5m2,
    /// 8 bits of exponent, 10 of mantissa.
    #[strum(to_string = "tf32")]
    Tf32,
}

/// Bits of the mantissa, exponent of the smallest normal number, the largest number.
struct Format {
    mantissa: i32,
    lowest_exponent: i32,
    largest: f64,
}

impl NumberType {
    fn format(self) -> Format {
        let (mantissa, lowest_exponent, highest, last) = match self {
            Self::Bf16 => (7, -126, 127, 1),
            Self::F16 => (10, -14, 15, 1),
            // The largest mantissa of the largest exponent is NaN.
            Self::Fp8E4m3 => (3, -6, 8, 2),
            Self::Fp8E5m2 => (2, -14, 15, 1),
            Self::Tf32 => (10, -126, 127, 1),
        };
        let step = 2f64.powi(-mantissa);
        Format { mantissa, lowest_exponent, largest: (2.0 - f64::from(last) * step) * 2f64.powi(highest) }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The largest finite number.
    pub fn largest(self) -> f64 {
        self.format().largest
    }

    /// Half the distance from 1 to the next number: the largest relative error of a rounding.
    pub fn roundoff(self) -> f64 {
        2f64.powi(-self.format().mantissa - 1)
    }

    /// `x` in this type. What is larger than its largest number, rounded, is ±∞, or that number where the type has no
    /// infinity.
    pub fn round(self, x: f64) -> f64 {
        self.rounded(x).0
    }

    /// As [`NumberType::round`], and whether a finite `x` was too large.
    pub fn rounded(self, x: f64) -> (f64, bool) {
        let most = if self == Self::Fp8E4m3 { self.largest() } else { f64::INFINITY };
        if x == 0.0 || x.is_nan() {
            return (x, false);
        }
        if x.is_infinite() {
            return (x.signum() * most, false);
        }
        let Format { mantissa, lowest_exponent, largest } = self.format();
        // A binary64 that is not normal is far below the smallest number of each type.
        let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        let step = 2f64.powi(exponent.max(lowest_exponent) - mantissa);
        let rounded = (x / step).round_ties_even() * step;
        if rounded.abs() > largest { (x.signum() * most, true) } else { (rounded, false) }
    }
}

impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
