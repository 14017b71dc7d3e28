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
