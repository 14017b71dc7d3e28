//! Numbers as text: rounded for people, at full precision for programs.

use super::Msg;

/// How numbers are shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberFormat {
    /// Rounded to so many decimals (0 to 17), trailing zeros cut, `-0` as `0`. From 10¹⁵ on, where decimals
    /// mean nothing, so many decimals of scientific notation.
    Decimals(u8),
    /// Scientific notation with so many decimals (0 to 17), trailing zeros cut.
    Scientific(u8),
    /// The shortest decimal that reads back as the same number.
    Shortest,
    /// The bits, as `0x3ff0000000000000`.
    Bits,
}

/// Most decimals of a number: enough to tell any two `f64` of the same power of two apart.
pub const MAX_DIGITS: u8 = 17;

/// From here on, decimals are shown in scientific notation.
const HUGE: f64 = 1e15;

impl Default for NumberFormat {
    /// Four decimals.
    fn default() -> Self {
        Self::Decimals(4)
    }
}

impl NumberFormat {
    /// `x` as a user reads it: `NaN`, `∞`, `-∞`, or the number in this format.
    pub fn format(self, x: f64) -> String {
        match self {
            Self::Bits => format!("{:#018x}", x.to_bits()),
            _ if x.is_nan() => "NaN".to_owned(),
            _ if x.is_infinite() => (if x > 0.0 { "∞" } else { "-∞" }).to_owned(),
            Self::Shortest => whole(format!("{x:?}")),
            Self::Scientific(digits) => scientific(x, digits),
            Self::Decimals(digits) if x.abs() >= HUGE => scientific(x, digits),
            Self::Decimals(digits) => trim_zeros(format!("{x:.*}", usize::from(digits.min(MAX_DIGITS)))),
        }
    }

    /// As [`format`](Self::format), but what is not 0 is not shown as 0: in scientific notation where the decimals do
    /// not reach it.
    pub fn format_nonzero(self, x: f64) -> String {
        match self {
            Self::Decimals(digits) if x != 0.0 && self.format(x) == "0" => scientific(x, digits),
            _ => self.format(x),
        }
    }

    /// As [`format`](Self::format), but what is not 0 is not shown as 0: `6e-6`, with one decimal at most, where the
    /// decimals do not reach it. For cells of tables, which have little room.
    pub fn format_short(self, x: f64) -> String {
        match self {
            Self::Decimals(digits) if x != 0.0 && self.format(x) == "0" => scientific(x, digits.min(1)),
            _ => self.format(x),
        }
    }

    /// As [`format`](Self::format); shortest and bits are those of the `f32`.
    pub fn format_f32(self, x: f32) -> String {
        match self {
            Self::Bits => format!("{:#010x}", x.to_bits()),
            Self::Shortest if x.is_finite() => whole(format!("{x:?}")),
            _ => self.format(f64::from(x)),
        }
    }

    /// Reads a format: a number of decimals (`4`), `sci` or `sci6`, `full`, `hex`.
    ///
    /// # Errors
    /// A message naming the text, where it is none of these.
    pub fn parse(text: &str) -> Result<Self, Msg> {
        let digits = |t: &str| t.parse::<u8>().ok().filter(|&d| d <= MAX_DIGITS);
        let text = text.trim();
        match text {
            "full" | "shortest" => return Ok(Self::Shortest),
            "hex" | "bits" => return Ok(Self::Bits),
            "sci" | "scientific" => return Ok(Self::Scientific(4)),
            _ => {}
        }
        let format = match text.strip_prefix("sci") {
            Some(rest) => digits(rest.trim_start_matches([':', '='])).map(Self::Scientific),
            None => digits(text).map(Self::Decimals),
        };
        format.ok_or_else(|| Msg::new("number.format.unknown").arg("text", super::escape(text)).arg("max", MAX_DIGITS))
    }

    /// The text that [`parse`](Self::parse) reads back.
    pub fn name(self) -> String {
        match self {
            Self::Decimals(d) => d.to_string(),
            Self::Scientific(d) => format!("sci{d}"),
            Self::Shortest => "full".to_owned(),
            Self::Bits => "hex".to_owned(),
        }
    }
}

fn scientific(x: f64, digits: u8) -> String {
    let text = format!("{x:.*e}", usize::from(digits.min(MAX_DIGITS)));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = trim_zeros(mantissa.to_owned());
    if mantissa == "0" || exponent == "0" {
        return mantissa;
    }
    format!("{mantissa}e{exponent}")
}

/// Cuts the zeros after the last decimal that says something, and the sign of a zero.
fn trim_zeros(mut text: String) -> String {
    if text.contains('.') {
        let kept = text.trim_end_matches('0').trim_end_matches('.').len();
        text.truncate(kept);
    }
    if text == "-0" {
        text.remove(0);
    }
    text
}

/// `1.0` → `1`; other shortest forms stay.
fn whole(mut text: String) -> String {
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    text
}

/// The number that is printed for `x` at `digits` decimals, read back: rounding as a user with a pencil does.
pub fn round_to(x: f64, digits: u8) -> f64 {
    if !x.is_finite() {
        return x;
    }
    // Far enough from a tie that the product's rounding error (below 2⁻²³) cannot matter, the nearest multiple is known;
    // the quotient of two exact numbers is then the number nearest to that decimal, which is what reading it gives.
    if digits <= 9 {
        let unit = 10f64.powi(i32::from(digits));
        let scaled = x * unit;
        let nearest = scaled.round();
        if nearest != 0.0 && scaled.abs() < 1e9 && ((scaled - nearest).abs() - 0.5).abs() > 1e-6 {
            return nearest / unit;
        }
    }
    NumberFormat::Decimals(digits).format(x).parse().unwrap_or(x)
}

/// `x` for a program, at full precision: the shortest decimal that reads back as `x`, or `nan`, `inf`, `-inf`.
pub fn exact(x: f64) -> String {
    if x.is_nan() {
        "nan".to_owned()
    } else if x.is_infinite() {
        (if x > 0.0 { "inf" } else { "-inf" }).to_owned()
    } else {
        format!("{x:?}")
    }
}

/// As [`exact`], for an `f32`: the shortest decimal that reads back as the same `f32`.
pub fn exact_f32(x: f32) -> String {
    if x.is_finite() { format!("{x:?}") } else { exact(f64::from(x)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn rounding_is_what_the_printed_number_reads_as(n in -40_000_000i64..40_000_000, ulps in -3i64..4, x: f64, digits in 0u8..10) {
            // Ties and their neighbours, and any numbers.
            let unit = 10f64.powi(i32::from(digits));
            let tie = (n as f64 + 0.5) / unit;
            let near = f64::from_bits((tie.to_bits() as i64 + ulps) as u64);
            for x in [near, x, n as f64 / unit * 1.37, x % 3.0] {
                let printed = if x.is_finite() { NumberFormat::Decimals(digits).format(x).parse().unwrap_or(x) } else { x };
                proptest::prop_assert_eq!(round_to(x, digits).to_bits(), printed.to_bits(), "{} {}", x, digits);
            }
        }
    }

    #[test]
    fn what_is_not_0_is_not_shown_as_0() {
        let four = NumberFormat::default();
        assert_eq!(four.format_nonzero(1.5e-7), "1.5e-7");
        assert_eq!(four.format_nonzero(0.0), "0");
        assert_eq!(four.format_nonzero(0.25), "0.25");
        assert_eq!(four.format_short(-5.96e-8), "-6e-8");
        assert_eq!(four.format_short(1.23e-5), "1.2e-5");
        assert_eq!(four.format_short(0.0), "0");
    }
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case(1.1, "1.1")]
    #[case(1.0, "1")]
    #[case(100.0, "100")]
    #[case(-0.00004, "0")]
    #[case(-0.0, "0")]
    #[case(0.00005, "0.0001")] // just above the half, as a binary number
    #[case(0.12345, "0.1235")] // just above
    #[case(3.00025, "3.0002")] // just below: 3.000249999…
    #[case(-1e9, "-1000000000")]
    #[case(1.797_693_134_862_315_7e308, "1.7977e308")]
    #[case(f64::NAN, "NaN")]
    #[case(f64::INFINITY, "∞")]
    #[case(f64::NEG_INFINITY, "-∞")]
    fn four_decimals(#[case] x: f64, #[case] text: &str) {
        assert_eq!(NumberFormat::default().format(x), text);
    }

    #[test]
    fn other_formats() {
        assert_eq!(NumberFormat::Decimals(0).format(2.5), "2");
        assert_eq!(NumberFormat::Decimals(0).format(-0.2), "0");
        assert_eq!(NumberFormat::Decimals(17).format(0.1), "0.10000000000000001");
        assert_eq!(NumberFormat::Scientific(3).format(0.000_123_45), "1.234e-4");
        assert_eq!(NumberFormat::Scientific(2).format(1.5), "1.5");
        assert_eq!(NumberFormat::Scientific(2).format(-0.0), "0");
        assert_eq!(NumberFormat::Scientific(2).format(1e10), "1e10");
        assert_eq!(NumberFormat::Shortest.format(0.1), "0.1");
        assert_eq!(NumberFormat::Shortest.format(3.0), "3");
        assert_eq!(NumberFormat::Shortest.format_f32(0.1), "0.1");
        assert_eq!(NumberFormat::Shortest.format(f64::from(0.1_f32)), "0.10000000149011612");
        assert_eq!(NumberFormat::Bits.format(1.0), "0x3ff0000000000000");
        assert_eq!(NumberFormat::Bits.format(f64::NAN), "0x7ff8000000000000");
        assert_eq!(NumberFormat::Bits.format_f32(0.0), "0x00000000");
    }

    #[test]
    fn names_read_back() {
        for format in [
            NumberFormat::default(),
            NumberFormat::Decimals(17),
            NumberFormat::Scientific(0),
            NumberFormat::Shortest,
            NumberFormat::Bits,
        ] {
            assert_eq!(NumberFormat::parse(&format.name()), Ok(format));
        }
        assert_eq!(NumberFormat::parse("sci"), Ok(NumberFormat::Scientific(4)));
        for bad in ["", "18", "-1", "4.0", "sci18", "four"] {
            assert!(NumberFormat::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn for_programs() {
        assert_eq!(exact(1.0), "1.0");
        assert_eq!(exact(-0.0), "-0.0");
        assert_eq!(exact(1e300), "1e300");
        assert_eq!(exact(f64::NEG_INFINITY), "-inf");
        assert_eq!(exact_f32(0.1), "0.1");
        assert_eq!(exact_f32(f32::NAN), "nan");
        assert_eq!(exact_f32(16_777_216.0), "16777216.0");
    }

    #[test]
    fn pencil_rounding() {
        assert_eq!(round_to(1.582_94, 4).to_bits(), 1.5829_f64.to_bits());
        assert_eq!(round_to(-0.000_01, 4).to_bits(), 0.0_f64.to_bits());
        assert!(round_to(f64::NAN, 4).is_nan());
        assert!(round_to(f64::NEG_INFINITY, 4).is_infinite());
    }

    proptest! {
        #[test]
        fn exact_reads_back(bits in any::<u64>(), low in any::<u32>()) {
            let (x, y) = (f64::from_bits(bits), f32::from_bits(low));
            if x.is_finite() {
                prop_assert_eq!(exact(x).parse::<f64>().unwrap().to_bits(), bits);
            }
            if y.is_finite() {
                prop_assert_eq!(exact_f32(y).parse::<f32>().unwrap().to_bits(), low);
            }
        }

        #[test]
        fn rounding_is_that_of_the_printed_number(x in -1e6_f64..1e6, digits in 0_u8..=17) {
            let printed = format!("{x:.*}", usize::from(digits)).parse::<f64>().unwrap();
            prop_assert!((round_to(x, digits) - printed).abs() <= 0.0);
            prop_assert!((round_to(printed, digits) - printed).abs() <= 0.0);
        }
    }
}
