//! Numbers of a normal distribution from uniform ones (Box and Muller 1958), many at a time.
//!
//! The logarithm, sine and cosine are those of the `libm` crate, bit for bit, in the range that is needed and without
//! branches, so that a loop over them becomes vector instructions.

// Constants are as the C library that libm comes from writes them.
#![allow(clippy::excessive_precision)]
// A loop with `||` branches.
#![allow(clippy::needless_bitwise_bool)]

use std::f64::consts::TAU;

use super::par;
use crate::tensor::Real;

/// Pairs that are made together.
const PAIRS: usize = 64;

/// `mean + std·z` for the elements from `from` on (an even number) of the numbers z that the uniform numbers `u` in
/// [0, 1) make: elements 2i and 2i + 1 are √(−2·ln(1 − u₂ᵢ)) times the cosine and the sine of 2π·u₂ᵢ₊₁.
pub fn normals<T: Real>(u: impl Fn(usize) -> f64 + Copy, from: usize, mean: f64, std: f64, out: &mut [T]) {
    par::wide(
        #[inline(always)]
        || plain(u, from, mean, std, out),
    );
}

#[inline(always)]
fn plain<T: Real>(u: impl Fn(usize) -> f64 + Copy, from: usize, mean: f64, std: f64, out: &mut [T]) {
    for (block, out) in out.chunks_mut(2 * PAIRS).enumerate() {
        let first = from + block * 2 * PAIRS;
        let (mut radius, mut angle) = ([1.0; PAIRS], [1.0; PAIRS]);
        for i in 0..PAIRS {
            radius[i] = std * (-2.0 * ln(1.0 - u(first + 2 * i))).sqrt();
            angle[i] = TAU * u(first + 2 * i + 1);
        }
        let (mut sine, mut cosine, mut rare) = ([0.0; PAIRS], [0.0; PAIRS], 0);
        for i in 0..PAIRS {
            (sine[i], cosine[i]) = sin_cos(angle[i]);
            rare += u64::from(is_rare(angle[i]));
        }
        if rare > 0 {
            for i in 0..PAIRS {
                if is_rare(angle[i]) {
                    (sine[i], cosine[i]) = libm::sincos(angle[i]);
                }
            }
        }
        for (i, pair) in out.chunks_mut(2).enumerate() {
            for (cell, direction) in pair.iter_mut().zip([cosine[i], sine[i]]) {
                *cell = T::from_f64(mean + radius[i] * direction);
            }
        }
    }
}

/// ln(x) of a normal number x in (0, 1].
#[inline(always)]
fn ln(x: f64) -> f64 {
    const LN2_HI: f64 = 6.931_471_803_691_238_164_90e-1;
    const LN2_LO: f64 = 1.908_214_929_270_587_700_02e-10;
    const LG: [f64; 7] = [
        6.666_666_666_666_735_130e-1,
        3.999_999_999_940_941_908e-1,
        2.857_142_874_366_239_149e-1,
        2.222_219_843_214_978_396e-1,
        1.818_357_216_161_805_012e-1,
        1.531_383_769_920_937_332e-1,
        1.479_819_860_511_658_591e-1,
    ];
    // x = 2ᵏ·m with m in [√2/2, √2].
    const BIAS: u64 = 0x3ff0_0000 - 0x3fe6_a09e;
    let bits = x.to_bits();
    let moved = bits + (BIAS << 32);
    let k = f64::from((moved >> 52) as i32 - 0x3ff);
    let high = (moved >> 32 & 0x000f_ffff) + 0x3fe6_a09e;
    let m = f64::from_bits(high << 32 | bits & 0xffff_ffff);
    let f = m - 1.0;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (LG[1] + w * (LG[3] + w * LG[5]));
    let odd = z * (LG[0] + w * (LG[2] + w * (LG[4] + w * LG[6])));
    let r = odd + even;
    s * (half_square + r) + k * LN2_LO - half_square + f + k * LN2_HI
}

/// The first number whose upper 32 bits are more than `high`.
const fn above(high: u64) -> f64 {
    f64::from_bits((high + 1) << 32)
}

/// Whether an angle in [0, 2π) is so near to 0 or to a multiple of π/2 that its remainder takes more digits.
#[inline(always)]
fn is_rare(x: f64) -> bool {
    let high = x.to_bits() >> 32;
    (high & 0x000f_ffff == 0x921fb) | (high == 0x4012_d97c) | (high < 0x3e46_a09e)
}

/// Sine and cosine of an angle in [0, 2π) that is not rare.
#[inline(always)]
fn sin_cos(x: f64) -> (f64, f64) {
    // The first 33 bits of π/2, and the rest.
    const PIO2_1: f64 = 1.570_796_326_734_125_614_17;
    const PIO2_1T: f64 = 6.077_100_506_506_192_249_32e-11;
    const S: [f64; 6] = [
        -1.666_666_666_666_663_243_48e-1,
        8.333_333_333_322_489_461_24e-3,
        -1.984_126_982_985_794_931_34e-4,
        2.755_731_370_707_006_767_89e-6,
        -2.505_076_025_340_686_341_95e-8,
        1.589_690_995_211_550_102_21e-10,
    ];
    const C: [f64; 6] = [
        4.166_666_666_666_660_190_37e-2,
        -1.388_888_888_887_410_957_49e-3,
        2.480_158_728_947_672_941_78e-5,
        -2.755_731_435_139_066_330_35e-7,
        2.087_572_321_298_174_827_90e-9,
        -1.135_964_755_778_819_482_65e-11,
    ];
    // Multiples of π/2: limits as libm has them, on the upper half of the bits.
    const LIMITS: [f64; 4] = [above(0x3fe9_21fb), above(0x4002_d97c), above(0x400f_6a7a), above(0x4015_fdbc)];
    let step = |limit: f64| if x >= limit { 1.0 } else { 0.0 };
    let n = step(LIMITS[0]) + step(LIMITS[1]) + step(LIMITS[2]) + step(LIMITS[3]);
    let rest = x - n * PIO2_1;
    let y0 = rest - n * PIO2_1T;
    let y1 = (rest - y0) - n * PIO2_1T;
    let z = y0 * y0;
    let w = z * z;
    let v = z * y0;
    let r = S[1] + z * (S[2] + z * S[3]) + z * w * (S[4] + z * S[5]);
    let small = y0 + v * (S[0] + z * r);
    let reduced = y0 - ((z * (0.5 * y1 - v * r) - y1) - v * S[0]);
    let sin = if n == 0.0 { small } else { reduced };
    let r = z * (C[0] + z * (C[1] + z * C[2])) + w * w * (C[3] + z * (C[4] + z * C[5]));
    let half = 0.5 * z;
    let w = 1.0 - half;
    let cos = w + (((1.0 - w) - half) + (z * r - y0 * y1));
    let (odd, second, third) = ((n == 1.0) | (n == 3.0), (n == 1.0) | (n == 2.0), (n == 2.0) | (n == 3.0));
    let (a, b) = if odd { (cos, sin) } else { (sin, cos) };
    (if third { -a } else { a }, if second { -b } else { b })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits((a, b): (f64, f64)) -> (u64, u64) {
        (a.to_bits(), b.to_bits())
    }

    #[test]
    fn logarithm_sine_and_cosine_have_the_bits_of_libm() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let step = 1.0 / (1u64 << 53) as f64;
        let edges =
            [0.0, step, 0.25 - step, 0.25, 0.5 - step, 0.5, 0.5 + step, 0.75, 1.0 - step, 0.125, 0.375, 0.625, 0.875];
        let numbers = edges.into_iter().chain((0..2_000_000).map(|i| match i % 4 {
            // Everywhere, and near to what is looked at apart.
            0 => next(),
            1 => next() * 1e-9,
            2 => (f64::from(i / 4 % 8) / 8.0 + (next() - 0.5) * 1e-6).clamp(0.0, 1.0 - step),
            _ => 1.0 - next() * 1e-6 - step,
        }));
        for u in numbers {
            assert_eq!(ln(1.0 - u).to_bits(), libm::log(1.0 - u).to_bits(), "ln of 1 - {u:e}");
            let x = TAU * u;
            assert!(is_rare(x) || bits(sin_cos(x)) == bits(libm::sincos(x)), "sine and cosine of {x:e}");
        }
    }

    #[test]
    fn normals_are_those_of_pairs_one_by_one() {
        let u = |i: usize| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
        let (mean, std) = (0.25, 0.02);
        for (from, n) in [(0, 1), (0, 2), (4, 127), (128, 1001)] {
            let mut out = vec![0.0f32; n];
            normals(u, from, mean, std, &mut out);
            for (i, x) in out.iter().enumerate() {
                let pair = from + i - i % 2;
                let radius = (-2.0 * libm::log(1.0 - u(pair))).sqrt();
                let (sin, cos) = libm::sincos(TAU * u(pair + 1));
                let direction = if i % 2 == 0 { cos } else { sin };
                assert_eq!(x.to_bits(), ((mean + std * radius * direction) as f32).to_bits(), "{from} {i}");
            }
        }
    }
}
