//! Memory for the values of runs: taken from the system in large pieces, of huge pages where there are any, cut up, and used again.
//!
//! A first run writes to fresh memory, and each page of it costs: of 4 KiB, more than the arithmetic does. Pages of 2 MiB
//! cost a tenth of that, and those of a program whose size is known can be asked for before the run ([`Pool::prepare`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use memmap2::{MmapMut, MmapRaw};

use super::elem::Elem;

/// Bytes from which on a buffer is cut out of a slab.
const LARGE: usize = 32 << 10;
/// Bytes of the first slab; each further one of a pool is twice as large as the one before.
const FIRST_SLAB: usize = 8 << 20;
/// Bytes of the largest slab that is taken unasked.
const MOST_SLAB: usize = 256 << 20;
/// Buffers start on a cache line.
const LINE: usize = 64;

/// Bytes of a huge page: only ranges that begin on a multiple of it get them.
const HUGE_PAGE: usize = 2 << 20;

/// A range of zeroed pages.
#[derive(Debug)]
struct Slab(MmapRaw);

impl Slab {
    /// Room for `bytes` from [`first`](Slab::first) on; `None` where the system gives no such range.
    fn new(bytes: usize) -> Option<Arc<Self>> {
        Some(Arc::new(Self(MmapRaw::from(MmapMut::map_anon(bytes.checked_add(HUGE_PAGE)?).ok()?))))
    }

    /// Offset of the first huge page.
    fn first(&self) -> usize {
        self.0.as_mut_ptr().addr().next_multiple_of(HUGE_PAGE) - self.0.as_mut_ptr().addr()
    }

    #[cfg(not(target_os = "linux"))]
    fn populate(self: &Arc<Self>) {}
}

/// Huge pages. In a virtual machine whose host gives memory when it is first touched, a huge page that the guest has long
/// been without costs as much as all its small ones, and small ones that were used a moment ago are still there: whether
/// huge pages pay is measured while they are requested.
#[cfg(target_os = "linux")]
mod huge {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use memmap2::Advice;

    use super::{HUGE_PAGE, Slab};

    /// Bytes that are requested at a time: a few huge pages. Others wait for their memory meanwhile.
    const STRIDE: usize = 4 * HUGE_PAGE;
    /// What a stride of huge pages may take. It takes an eighth of this where the memory is there, 16 ms where it is not.
    const PATIENCE: Duration = Duration::from_millis(4);
    /// What a thread may wait for a processor in all without being taken for slow.
    const SLACK: Duration = Duration::from_millis(8);

    /// Huge pages were slow in this process.
    static SLOW: AtomicBool = AtomicBool::new(false);

    impl Slab {
        /// Has the system put memory behind all pages, in order, as long as somebody else uses them: huge ones, if they pay.
        pub(super) fn populate(self: &Arc<Self>) {
            let (first, end) = (self.first(), self.0.len());
            // Where there are no huge pages, small ones do.
            let mut huge =
                !SLOW.load(Ordering::Relaxed) && self.0.advise_range(Advice::HugePage, first, end - first).is_ok();
            let (mut spent, mut allowed) = (Duration::ZERO, SLACK);
            for start in (first..end).step_by(STRIDE) {
                let begun = Instant::now();
                let len = STRIDE.min(end - start);
                if Arc::strong_count(self) == 1 || self.0.advise_range(Advice::PopulateWrite, start, len).is_err() {
                    return;
                }
                spent += begun.elapsed();
                allowed += PATIENCE;
                if huge && spent > allowed {
                    huge = false;
                    SLOW.store(true, Ordering::Relaxed);
                    let _ = self.0.advise_range(Advice::NoHugePage, start, end - start);
                }
            }
        }
    }
}

/// Memory of one buffer.
#[derive(Debug)]
pub(super) enum Memory<E> {
    /// From the allocator.
    Heap(Vec<E>),
    /// Part of a slab.
    Part(Part<E>),
}

/// `room` elements of a slab, of which `len` count. No two parts overlap.
#[derive(Debug)]
pub(super) struct Part<E> {
    slab: Arc<Slab>,
    start: *mut E,
    room: usize,
    len: usize,
}

// SAFETY: a part owns its elements as a vector does; the slab behind them is never changed but through parts.
unsafe impl<E: Send> Send for Part<E> {}
// SAFETY: as above; a shared part only reads.
unsafe impl<E: Sync> Sync for Part<E> {}

impl<E: Elem> Memory<E> {
    pub(super) fn as_slice(&self) -> &[E] {
        match self {
            Self::Heap(data) => data,
            // SAFETY: `State::cut` gave this part `room` aligned elements that no other part has; `len` is at most that. Fresh
            // pages are zeros, which are a value of every `Elem`. The slab lives as long as `self`.
            Self::Part(part) => unsafe { std::slice::from_raw_parts(part.start, part.len) },
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [E] {
        match self {
            Self::Heap(data) => data,
            // SAFETY: as in `as_slice`, and `self` is borrowed mutably.
            Self::Part(part) => unsafe { std::slice::from_raw_parts_mut(part.start, part.len) },
        }
    }

    /// Sets the number of elements; there must be room for them.
    fn resize(&mut self, len: usize) {
        match self {
            Self::Heap(data) => data.resize(len, E::default()),
            Self::Part(part) => {
                assert!(len <= part.room, "a buffer of its class");
                part.len = len;
            }
        }
    }
}

/// What is free, and the slab that buffers are cut from.
#[derive(Debug)]
struct State<E> {
    free: HashMap<usize, Vec<Memory<E>>>,
    slab: Option<(Arc<Slab>, usize)>,
    next: usize,
}

impl<E: Elem> State<E> {
    /// A new buffer of `room` elements: zeros.
    fn cut(&mut self, room: usize) -> Memory<E> {
        let bytes = room.saturating_mul(size_of::<E>());
        if bytes < LARGE {
            return Memory::Heap(vec![E::default(); room]);
        }
        let fits = |slab: &(Arc<Slab>, usize)| slab.1 + bytes <= slab.0.0.len();
        if !self.slab.as_ref().is_some_and(fits) {
            self.slab = Slab::new(self.next.max(bytes)).map(|slab| (Arc::clone(&slab), slab.first()));
            self.next = (2 * self.next).min(MOST_SLAB);
        }
        let Some((slab, used)) = &mut self.slab else {
            return Memory::Heap(vec![E::default(); room]);
        };
        // SAFETY: the slab has `bytes` more bytes from `used` on. Slabs start on a page and every part on a cache line, which
        // is more than any element asks for.
        let start = unsafe { slab.0.as_mut_ptr().add(*used) }.cast::<E>();
        *used += bytes.next_multiple_of(LINE);
        Memory::Part(Part { slab: Arc::clone(slab), start, room, len: room })
    }
}

/// Memory kept for reuse, by size class: a KV cache grows by a row a call, and each call must be able to take what the
/// one before gave back. A buffer taken from a pool returns to it when its last tensor goes, so that a second run of the
/// same program maps no fresh pages.
#[derive(Debug)]
pub struct Pool<E>(Mutex<State<E>>);

impl<E> Default for Pool<E> {
    fn default() -> Self {
        Self(Mutex::new(State { free: HashMap::new(), slab: None, next: FIRST_SLAB }))
    }
}

impl<E: Elem> Pool<E> {
    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Zeroed or reused memory of `len` elements. Reused elements hold old values: the caller writes all.
    pub(super) fn memory(&self, len: usize) -> Memory<E> {
        let class = class(len);
        let mut state = self.state();
        let mut memory = match state.free.get_mut(&class).and_then(Vec::pop) {
            Some(memory) => memory,
            None => state.cut(class),
        };
        drop(state);
        memory.resize(len);
        memory
    }

    /// Takes back what [`memory`](Pool::memory) gave.
    pub(super) fn take_back(&self, memory: Memory<E>) {
        let class = class(memory.as_slice().len());
        self.state().free.entry(class).or_default().push(memory);
    }

    /// Has memory for `bytes` of buffers put behind its pages by a thread, ahead of the first run, which need not wait for it.
    /// A pool that was used has what its next run needs.
    pub fn prepare(&self, bytes: usize) -> Option<JoinHandle<()>> {
        let mut state = self.state();
        if bytes <= FIRST_SLAB || state.slab.is_some() {
            return None;
        }
        let slab = Slab::new(bytes)?;
        state.slab = Some((Arc::clone(&slab), slab.first()));
        std::thread::Builder::new().name("pages".to_owned()).spawn(move || slab.populate()).ok()
    }

    /// Bytes of a slab that a buffer of `len` elements takes.
    pub fn room(len: usize) -> usize {
        let bytes = class(len).saturating_mul(size_of::<E>());
        if bytes < LARGE { 0 } else { bytes.next_multiple_of(LINE) }
    }

    /// Gives what is free back to the system.
    pub fn give_back(&self) {
        self.state().free.clear();
    }
}

impl<E> Drop for Part<E> {
    fn drop(&mut self) {
        // A slab goes with its last part. Until then, the pages that only this part has are given back.
        #[cfg(target_os = "linux")]
        {
            const PAGE: usize = 4096;
            let offset = self.start.addr() - self.slab.0.as_mut_ptr().addr();
            let (first, last) = (offset.next_multiple_of(PAGE), (offset + self.room * size_of::<E>()) / PAGE * PAGE);
            if first < last {
                // SAFETY: the pages lie inside this part, which nobody can reach any more, and which no one will be given again.
                let _ = unsafe {
                    self.slab.0.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, first, last - first)
                };
            }
        }
    }
}

/// Elements that a buffer for `len` of them has room for: up to an eighth more, so that few sizes share much memory.
pub(super) fn class(len: usize) -> usize {
    let step = len.next_power_of_two() / 16;
    if step == 0 {
        return len;
    }
    len.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_again_by_a_buffer_of_almost_its_length() {
        for size in [1000, 100_000] {
            let pool = Pool::<f32>::default();
            let mut first = pool.memory(size);
            first.as_mut_slice().fill(1.0);
            let at = first.as_slice().as_ptr();
            pool.take_back(first);
            let second = pool.memory(size + size / 100);
            assert_eq!(second.as_slice().len(), size + size / 100);
            assert_eq!(second.as_slice().as_ptr(), at);
            // While it is out, another one is made.
            assert_ne!(pool.memory(size + size / 100).as_slice().as_ptr(), at);
        }
        let pool = Pool::<i64>::default();
        for len in (0..40).chain([1 << 20, (1 << 20) + 1, 12345]) {
            assert!((len..=len + len / 8).contains(&class(len)), "{len}");
            assert_eq!(class(class(len)), class(len));
            assert_eq!(pool.memory(len).as_slice().len(), len);
        }
    }

    #[test]
    fn buffers_do_not_overlap_and_begin_as_zeros() {
        let pool = Pool::<f64>::default();
        let lengths = [5000, 9001, 1 << 20, 4097, 3 << 20];
        let mut all: Vec<_> = lengths.iter().map(|&len| pool.memory(len)).collect();
        for (i, memory) in all.iter_mut().enumerate() {
            let data = memory.as_mut_slice();
            assert!(data.iter().all(|x| *x == 0.0) && data.as_ptr().addr().is_multiple_of(LINE));
            data.fill(i as f64);
        }
        for (i, memory) in all.iter().enumerate() {
            assert!(memory.as_slice().len() == lengths[i] && memory.as_slice().iter().all(|x| *x == i as f64));
        }
        // Parts that go leave the others as they are.
        let last = all.pop().expect("five");
        drop(all);
        assert!(last.as_slice().iter().all(|x| *x == 4.0));
        pool.take_back(last);
        pool.give_back();
        assert!(pool.memory(3 << 20).as_slice().iter().all(|x| *x == 0.0));
    }

    #[test]
    fn what_was_prepared_is_used_first() {
        let pool = Pool::<f32>::default();
        assert!(pool.prepare(1000).is_none(), "a first slab holds it");
        let ready = pool.prepare(64 << 20).expect("a thread");
        let a = pool.memory(1 << 20);
        let b = pool.memory(1 << 20);
        ready.join().expect("it ends");
        assert_eq!(b.as_slice().as_ptr().addr() - a.as_slice().as_ptr().addr(), 4 << 20);
        assert!(pool.prepare(1 << 30).is_none(), "it is in use");
    }
}
