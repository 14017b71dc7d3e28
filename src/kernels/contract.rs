//! The order of accumulation of every product, as a function that can be replayed.
//!
//! `out[i][j] = Σ_p a[i][p]·b[p][j]` is accumulated in blocks of [`BLOCK`] along `p`. Within a block, an accumulator
//! starts at +0 and takes one product after another, fused (`a·b + acc` rounded once) on a processor with fused
//! multiply-add, multiplied then added elsewhere. The total starts at +0 and takes the block sums in order.
//!
//! This is the order of `matrixmultiply` 0.3.11, as read in its source for f32 and f64:
//!
//! - `KC` is 256 for both, and its fourth loop walks the blocks in order, so every element of C receives whole block
//!   sums, one after another; threads split rows and columns, never `k`;
//! - the AVX-512, AVX2+FMA and NEON kernels use one fused multiply-add a step of `k` and one accumulator an element
//!   of the tile, from zero; the AVX (without FMA) and portable kernels multiply, then add;
//! - edge tiles run the same kernel on zero-padded operands into a scratch tile, which is then added to C, so the
//!   order is that of whole tiles; transposed operands differ only in how they are packed;
//! - α = 1 multiplies exactly. β = 1 over a zeroed C starts every total at +0. With β = 0 the kernels disagree about
//!   one thing: a block sum that underflowed to −0 is stored as −0 by the AVX-512 and NEON kernels and as +0 by the
//!   AVX2 one. We always use β = 1 over zeros, so no total is −0 on any platform.
//!
//! The environment variable `MATMUL_SGEMM_KC` (or `MATMUL_DGEMM_KC`) at build time changes the block of that crate;
//! [`probe`] notices.

use std::sync::OnceLock;

use thiserror::Error;

use super::mat::{BLOCK, Mat};
use super::matmul;
use crate::tensor::Real;

/// How this processor accumulates products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Whether a product and its addition are rounded once (fused) or twice.
    pub fma: bool,
}

/// A kernel that does not keep the order of [`dot`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProbeError {
    /// The products show neither a fused nor a separate multiply and add.
    #[error("{kernel}: a product of {precision} is rounded neither once nor twice")]
    Rounding {
        /// Which kernel.
        kernel: &'static str,
        /// `f32` or `f64`.
        precision: &'static str,
    },
    /// The sums of blocks show another block length.
    #[error("{kernel}: products of {precision} are not accumulated in blocks of {BLOCK}")]
    Block {
        /// Which kernel.
        kernel: &'static str,
        /// `f32` or `f64`.
        precision: &'static str,
    },
    /// f32 and f64, or two kernels, round differently.
    #[error("{kernel}: products of {precision} are fused in one place and not in another")]
    Mixed {
        /// Which kernel.
        kernel: &'static str,
        /// `f32` or `f64`.
        precision: &'static str,
    },
    /// A product has other bits than its replay.
    #[error("{kernel}: element ({row}, {column}) of a {precision} product {m}×{k}×{n} differs from its replay")]
    Bits {
        /// Which kernel.
        kernel: &'static str,
        /// `f32` or `f64`.
        precision: &'static str,
        /// Rows of the product.
        m: usize,
        /// Terms of each sum.
        k: usize,
        /// Columns of the product.
        n: usize,
        /// Row of the element.
        row: usize,
        /// Column of the element.
        column: usize,
    },
}

/// The contract of this processor, found once by [`probe`].
///
/// # Panics
/// Where the probe fails: nothing recorded could then be derived, so no run may start. A program that wants to
/// report this calmly calls [`probe`] first.
pub fn contract() -> Contract {
    static FOUND: OnceLock<Contract> = OnceLock::new();
    *FOUND.get_or_init(|| probe().unwrap_or_else(|e| panic!("accumulation contract broken: {e}")))
}

/// Finds out how products are accumulated here, and that every kernel keeps to it.
///
/// Takes well under a millisecond in an optimised build.
///
/// # Errors
/// The first kernel, number type and element that do not.
pub fn probe() -> Result<Contract, ProbeError> {
    let mut found = None;
    for kernel in matmul::kernels() {
        let single = probe_kernel::<f32>(kernel, "f32")?;
        let double = probe_kernel::<f64>(kernel, "f64")?;
        let precision = if single == double { "f32" } else { "f64" };
        if single != double || found.is_some_and(|fma| fma != single) {
            return Err(ProbeError::Mixed { kernel: kernel.name(), precision });
        }
        found = Some(single);
    }
    Ok(Contract { fma: found.unwrap_or(false) })
}

fn probe_kernel<T: Real>(kernel: matmul::Kernel, precision: &'static str) -> Result<bool, ProbeError> {
    let kernel_name = kernel.name();
    let run = |a: &[T], b: &[T], m: usize, k: usize, n: usize| {
        let mut out = vec![T::ZERO; m * n];
        matmul::run(kernel, Mat::row_major(a, m, k), Mat::row_major(b, k, n), &mut out);
        out
    };

    // (1 + ε)² − (1 + 2ε) is ε² when rounded once and 0 when the square is rounded first.
    let eps = T::from_f64(match T::PRECISION {
        crate::tensor::Precision::F32 => f64::from(f32::EPSILON),
        crate::tensor::Precision::F64 => f64::EPSILON,
    });
    let one_up = T::ONE + eps;
    let square = run(&[-T::ONE, one_up], &[one_up + eps, one_up], 1, 2, 1)[0];
    let fma = if square.bits() == (eps * eps).bits() {
        true
    } else if square.bits() == T::ZERO.bits() {
        false
    } else {
        return Err(ProbeError::Rounding { kernel: kernel_name, precision });
    };

    // 1, then halves of ε: added one by one to 1 they are lost; in a block of their own they are summed first. What
    // survives is what does not share the first block, so the result tells the block's length.
    let half = eps * T::from_f64(0.5);
    let mut terms = vec![half; 2 * BLOCK];
    terms[0] = T::ONE;
    let ones = vec![T::ONE; 2 * BLOCK];
    let expected = T::ONE + half * T::from_f64(BLOCK as f64);
    if run(&terms, &ones, 1, 2 * BLOCK, 1)[0].bits() != expected.bits() {
        return Err(ProbeError::Block { kernel: kernel_name, precision });
    }

    // Rough numbers through whole and edge tiles, one block and several.
    for (m, k, n) in [(1, 300, 37), (3, 17, 5), (19, 7, 35), (13, 257, 33)] {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64 ^ (m * k * n) as u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            T::from_f64((seed >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
        };
        let a: Vec<T> = (0..m * k).map(|_| next()).collect();
        let b: Vec<T> = (0..k * n).map(|_| next()).collect();
        for (i, x) in run(&a, &b, m, k, n).into_iter().enumerate() {
            let (row, column) = (i / n, i % n);
            let replay = dot(k, |p| a[row * k + p], |p| b[p * n + column], fma);
            if x.bits() != replay.bits() {
                return Err(ProbeError::Bits { kernel: kernel_name, precision, m, k, n, row, column });
            }
        }
    }
    Ok(fma)
}

/// `Σ_p a(p)·b(p)` in the order of the contract: the replay of one element of a product.
///
/// `fma` is that of the trace, so a trace recorded on a processor with fused multiply-add replays to the same bits on
/// one without (there, slowly, in software).
pub fn dot<T: Real>(k: usize, a: impl Fn(usize) -> T, b: impl Fn(usize) -> T, fma: bool) -> T {
    if !fma {
        return blocks(k, |p, acc| acc + a(p) * b(p));
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("fma") {
        // SAFETY: the processor has FMA.
        return unsafe { dot_fma(k, a, b) };
    }
    if cfg!(target_arch = "aarch64") {
        return blocks(k, |p, acc| a(p).mul_add(b(p), acc));
    }
    blocks(k, |p, acc| a(p).fma(b(p), acc))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma")]
fn dot_fma<T: Real>(k: usize, a: impl Fn(usize) -> T, b: impl Fn(usize) -> T) -> T {
    let mut total = T::ZERO;
    let mut start = 0;
    while start < k {
        let end = k.min(start + BLOCK);
        let mut acc = T::ZERO;
        for p in start..end {
            acc = a(p).mul_add(b(p), acc);
        }
        total += acc;
        start = end;
    }
    total
}

#[inline(always)]
fn blocks<T: Real>(k: usize, step: impl Fn(usize, T) -> T) -> T {
    let mut total = T::ZERO;
    let mut start = 0;
    while start < k {
        let end = k.min(start + BLOCK);
        let mut acc = T::ZERO;
        for p in start..end {
            acc = step(p, acc);
        }
        total += acc;
        start = end;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_processor_keeps_the_contract() {
        let found = probe().unwrap();
        assert_eq!(contract(), found);
        if cfg!(target_arch = "x86_64") {
            #[cfg(target_arch = "x86_64")]
            assert_eq!(found.fma, is_x86_feature_detected!("fma"));
        } else if cfg!(target_arch = "aarch64") {
            assert!(found.fma);
        }
    }

    #[test]
    fn dot_is_fused_or_not_as_asked() {
        let up = 1.0 + f64::EPSILON;
        let a = [-1.0, up];
        let b = [up + f64::EPSILON, up];
        let fused = dot(2, |p| a[p], |p| b[p], true);
        assert_eq!(fused.to_bits(), (f64::EPSILON * f64::EPSILON).to_bits());
        assert_eq!(dot(2, |p| a[p], |p| b[p], false).to_bits(), 0);
    }

    #[test]
    fn hardware_and_software_fusing_agree() {
        let x = |p: usize| ((p * 7919 + 13) % 1000) as f32 * 1e-3 - 0.5;
        let y = |p: usize| ((p * 104_729 + 7) % 1000) as f32 * 1e-2 - 5.0;
        for k in [0, 1, 2, 255, 256, 257, 513] {
            let software = blocks(k, |p, acc| libm::fmaf(x(p), y(p), acc));
            assert_eq!(dot(k, x, y, true).to_bits(), software.to_bits());
        }
    }

    #[test]
    fn no_total_is_negative_zero() {
        let tiny = f32::MIN_POSITIVE;
        assert_eq!(dot(1, |_| -tiny, |_| tiny, true).to_bits(), 0);
        assert_eq!(dot(1, |_| -0.0f32, |_| 1.0, false).to_bits(), 0);
    }
}
