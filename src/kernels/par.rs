//! When work is worth a second thread.

use rayon::prelude::*;

/// Elements a thread handles at a time: large enough to hide the cost of handing them over, small enough that a
/// chunk of `f64` and its operands stay in the second-level cache.
pub(super) const CHUNK: usize = 1 << 14;

/// Calls `f(start, chunk)` for consecutive chunks of `out`, in parallel when there are several.
/// `start` is the position of the chunk's first element. The chunks do not depend on the number of threads.
pub(super) fn chunks<E: Send>(out: &mut [E], f: impl Fn(usize, &mut [E]) + Sync) {
    if out.len() <= CHUNK {
        f(0, out);
    } else {
        out.par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(i, chunk)| f(i * CHUNK, chunk));
    }
}

/// Calls `f`, compiled for the widest vectors of this processor as far as it is inlined. That changes speed only:
/// the compiler neither fuses nor reorders arithmetic.
#[inline(always)]
pub(super) fn wide<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has these.
            return unsafe { wide_avx512(f) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it.
            return unsafe { wide_avx2(f) };
        }
    }
    f()
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
