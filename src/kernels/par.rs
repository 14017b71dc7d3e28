//! When work is worth a second thread.

#[cfg(target_arch = "x86_64")]
use super::processor::{Limit, limit};
use crate::parallel;

/// Elements a thread handles at a time: large enough to hide the cost of handing them over, small enough that a
/// chunk of `f64` and its operands stay in the second-level cache.
pub(super) const CHUNK: usize = 1 << 14;

/// Calls `f(start, chunk)` for consecutive chunks of `out`, in parallel when there are several.
/// `start` is the position of the chunk's first element. The chunks do not depend on the number of threads.
pub(super) fn chunks<E: Send>(out: &mut [E], f: impl Fn(usize, &mut [E]) + Sync) {
    parallel::pieces(out, CHUNK, &f);
}

/// The widest vectors of this processor that loops are compiled for.
#[derive(Clone, Copy)]
pub(super) enum Width {
    /// AVX-512 F, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What every processor of the architecture has.
    Plain,
}

/// See [`Width`]. It decides about speed only: the compiler neither fuses nor reorders arithmetic.
#[inline(always)]
pub(super) fn width() -> Width {
    #[cfg(target_arch = "x86_64")]
    {
        let limit = limit();
        if limit == Limit::None
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            return Width::Avx512;
        }
        if matches!(limit, Limit::None | Limit::Avx2) && is_x86_feature_detected!("avx2") {
            return Width::Avx2;
        }
    }
    Width::Plain
}

/// Calls `f`, compiled for the widest vectors of this processor as far as it is inlined.
#[inline(always)]
pub(super) fn wide<R>(f: impl FnOnce() -> R) -> R {
    match width() {
        // SAFETY: `width` has found the processor to have the instruction set.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { wide_avx512(f) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { wide_avx2(f) },
        Width::Plain => f(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn wide_avx512<R>(f: impl FnOnce() -> R) -> R {
    f()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide_avx2<R>(f: impl FnOnce() -> R) -> R {
    f()
}
