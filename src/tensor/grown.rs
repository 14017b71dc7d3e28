//! Tensors that grow along one axis, as keys and values do while decoding: each longer one is a view of the same memory.
//!
//! A block has room for more rows than are filled. Appending writes rows that nobody has seen yet and gives a longer view;
//! the shorter ones see what they saw. So `n` calls that each append a row keep `n` rows, not `n²/2`.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::elem::Elem;

/// Rows that a block has room for at least.
const FEWEST: usize = 16;

/// Memory of `[outer, room, inner]`, of whose middle axis the first `filled` rows are written, once and for all.
#[derive(Debug)]
struct Block<E> {
    cells: Box<[UnsafeCell<E>]>,
    room: usize,
    filled: AtomicUsize,
}

// SAFETY: a row is written by the one call of `Grown::append` that raised `filled` past it, before any view that holds it
// exists; afterwards it is only read. So no cell is written while another thread can reach it.
unsafe impl<E: Send + Sync> Sync for Block<E> {}

/// A tensor `[outer, rows, inner]`, the first `rows` of a block.
#[derive(Clone, Debug)]
pub(super) struct Grown<E> {
    block: Arc<Block<E>>,
    outer: usize,
    rows: usize,
    inner: usize,
    /// Rows that this one added.
    added: usize,
}

impl<E: Elem> Grown<E> {
    /// `before` (`[outer, ·, inner]`, row-major) followed by the rows of `more`, in a block of its own with room to grow.
    pub(super) fn new(before: &[E], more: &[E], outer: usize, inner: usize) -> Self {
        let (old, new) = (before.len() / (outer * inner), more.len() / (outer * inner));
        let room = (old + new).next_power_of_two().max(FEWEST);
        let cells = vec![E::default(); outer * room * inner].into_boxed_slice();
        // SAFETY: `UnsafeCell<E>` has the layout of `E`, so a boxed slice of one is a boxed slice of the other.
        let cells = unsafe { Box::from_raw(Box::into_raw(cells) as *mut [UnsafeCell<E>]) };
        let block = Arc::new(Block { cells, room, filled: AtomicUsize::new(0) });
        let empty = Self { block, outer, rows: 0, inner, added: 0 };
        let first = empty.append(before).expect("an empty block has room");
        let all = first.append(more).expect("as much as was asked for");
        Self { added: old + new, ..all }
    }

    /// Followed by the rows of `more`, `[outer, ·, inner]`; `None` where the block has no room, or another tensor went on
    /// from this one.
    pub(super) fn append(&self, more: &[E]) -> Option<Self> {
        let added = more.len() / (self.outer * self.inner);
        let rows = self.rows + added;
        if rows > self.block.room {
            return None;
        }
        self.block.filled.compare_exchange(self.rows, rows, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        for (part, more) in more.chunks_exact((added * self.inner).max(1)).enumerate() {
            let start = (part * self.block.room + self.rows) * self.inner;
            for (cell, x) in self.block.cells[start..start + more.len()].iter().zip(more) {
                // SAFETY: these rows lie past what was filled, so no view holds them, and the exchange above gave them to
                // this call alone.
                unsafe { *cell.get() = *x };
            }
        }
        Some(Self { rows, added, ..self.clone() })
    }

    /// Elements in all.
    pub(super) fn len(&self) -> usize {
        self.outer * self.rows * self.inner
    }

    /// Elements that this one added to the one before it.
    pub(super) fn added(&self) -> usize {
        self.outer * self.added * self.inner
    }

    /// Elements that lie next to each other: `[rows, inner]`.
    pub(super) fn run(&self) -> usize {
        self.rows * self.inner
    }

    /// Whether this is `[outer, rows, inner]`.
    pub(super) fn is_split(&self, outer: usize, inner: usize) -> bool {
        self.outer == outer && self.inner == inner
    }

    /// The elements of one `outer`.
    pub(super) fn part(&self, outer: usize) -> &[E] {
        let start = outer * self.block.room * self.inner;
        let cells = &self.block.cells[start..start + self.run()];
        // SAFETY: rows below `rows` were filled before this view was made, and are not written again; the layout is that
        // of `E`. The block lives as long as `self`.
        unsafe { &*(std::ptr::from_ref::<[UnsafeCell<E>]>(cells) as *const [E]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(g: &Grown<i64>) -> Vec<i64> {
        (0..g.outer).flat_map(|o| g.part(o).to_vec()).collect()
    }

    #[test]
    fn longer_ones_share_memory_and_shorter_ones_see_what_they_saw() {
        let (outer, inner) = (3, 2);
        // Row r of part o is [100·o + r, −r].
        let rows = |from: i64, to: i64| -> Vec<i64> {
            (0..outer as i64).flat_map(|o| (from..to).flat_map(move |r| [100 * o + r, -r])).collect()
        };
        let mut views = vec![Grown::new(&rows(0, 4), &rows(4, 5), outer, inner)];
        for r in 5..FEWEST as i64 {
            let next = views.last().expect("one").append(&rows(r, r + 1)).expect("room");
            assert!(Arc::ptr_eq(&next.block, &views[0].block));
            assert_eq!(next.added(), outer * inner);
            views.push(next);
        }
        assert!(views.last().expect("one").append(&rows(16, 17)).is_none(), "no room");
        for (i, view) in views.iter().enumerate() {
            assert_eq!(all(view), rows(0, 5 + i as i64));
        }
        assert!(views[2].append(&rows(7, 8)).is_none(), "another one went on from it");
        let fork = Grown::new(&all(&views[2]), &[9; 6], outer, inner);
        assert_eq!(all(&views[3]), rows(0, 8));
        assert_eq!(&all(&fork)[14..16], [9, 9]);
    }

    #[test]
    fn threads_that_go_on_from_one_get_one_row_each_or_none() {
        let start = Grown::new(&[0i64; 4], &[1; 4], 4, 1);
        let grown: Vec<_> = std::thread::scope(|s| {
            let all: Vec<_> = (0..8)
                .map(|i| {
                    s.spawn({
                        let start = &start;
                        move || start.append(&[i; 4])
                    })
                })
                .collect();
            all.into_iter().map(|t| t.join().expect("joined")).collect()
        });
        assert_eq!(grown.iter().flatten().count(), 1);
        let (i, one) = grown.iter().enumerate().find_map(|(i, g)| Some((i, g.as_ref()?))).expect("one");
        assert_eq!(all(one), [0, 1, i as i64].repeat(4));
    }
}
