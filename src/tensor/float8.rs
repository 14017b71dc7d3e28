//! The two 8-bit floating-point types of the Open Compute Project (Micikevicius et al. 2022), as `torch.float8_e4m3fn`
//! and `torch.float8_e5m2` have them.

/// A sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinity, one NaN a sign.
pub fn e4m3_to_f64(bits: u8) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let size = match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => mantissa / 8.0 * 2f64.powi(-6),
        _ => (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
    };
    if bits & 128 != 0 { -size } else { size }
}

/// A sign, 5 bits of exponent (bias 15), 2 of mantissa: the upper half of a binary16.
pub fn e5m2_to_f64(bits: u8) -> f64 {
    half::f16::from_bits(u16::from(bits) << 8).to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_numbers_of_the_standard() {
        assert_eq!(e4m3_to_f64(0x7e), 448.0);
        assert_eq!(e4m3_to_f64(0x01), 2f64.powi(-9));
        assert_eq!(e4m3_to_f64(0xb8), -1.0);
        assert!(e4m3_to_f64(0x7f).is_nan());
        assert_eq!(e5m2_to_f64(0x7b), 57344.0);
        assert_eq!(e5m2_to_f64(0x7c), f64::INFINITY);
        assert_eq!(e5m2_to_f64(0x01), 2f64.powi(-16));
    }
}
