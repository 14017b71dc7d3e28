//! Statistics and pyramids of recorded tensors, taken from next to them where they were made before.
//!
//! The numbers are at hand, so what was kept is not believed: blocks taken at random and those that hold the smallest
//! and the largest number, or one that is not finite, are read again, and where one of them differs, all are.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use crate::parallel;
use crate::program::NodeId;
use crate::session::Session;
use crate::source::measures::Shelf;
use crate::trace::AnyValue;
use crate::trace::stats::{Mask, Pyramid, Tally, Window, block, blocks, merged, tally};

/// Blocks taken at random that are read again.
const READ_AGAIN: usize = 16;

/// The place for what is found out about a node: `None` where it, or what masks it, is not from a file.
pub(super) fn shelf(session: &Session, run: usize, node: NodeId, scores: Option<NodeId>) -> Option<Shelf> {
    let trace = session.trace(run).ok()?;
    let program = trace.program();
    let home = trace.home(node)?;
    let mask = match scores {
        None => String::new(),
        Some(scores) => format!("{} {}", program.node(scores).path, trace.home(scores)?.stamp),
    };
    let n = program.node(node);
    Some(Shelf {
        folder: home.measures,
        what: format!("{run} {} {:?} {:?}", n.path, n.shape.dims(), trace.precision()),
        made_from: format!("{}\n{mask}", home.stamp),
    })
}

/// Tallies of blocks: kept ones that are right, else all read and, where `keep` says so, kept.
fn tallies(
    shelf: &Shelf,
    count: usize,
    cells: u64,
    keep: bool,
    read: &dyn Fn(usize) -> Tally,
    all: impl FnOnce() -> Vec<Tally>,
) -> Vec<Tally> {
    let kept = shelf.read(count).filter(|kept| kept.iter().all(is_sound) && counted(kept) == u128::from(cells));
    if let Some(kept) = kept.filter(|kept| suspects(kept).into_iter().all(|i| read(i) == kept[i])) {
        return kept;
    }
    let made = all();
    if keep {
        shelf.write(&made);
    }
    made
}

/// Whether some cells can be so.
fn is_sound(t: &Tally) -> bool {
    let ranged = t.min.is_finite() && t.max.is_finite() && t.min <= t.max && t.zeros <= t.finite;
    let none = Tally::default();
    if t.finite > 0 { ranged } else { (t.min, t.max, t.sum, t.zeros) == (none.min, none.max, none.sum, none.zeros) }
}

/// All cells; what is kept may say more than a number of 64 bits holds.
fn counted(kept: &[Tally]) -> u128 {
    let of = |t: &Tally| [t.finite, t.nan, t.pos_inf, t.neg_inf, t.masked].map(u128::from).iter().sum::<u128>();
    kept.iter().map(of).sum()
}

/// Which blocks are read again.
fn suspects(kept: &[Tally]) -> Vec<usize> {
    let at = |better: &dyn Fn(&Tally, &Tally) -> bool| {
        (0..kept.len()).reduce(|best, i| if better(&kept[i], &kept[best]) { i } else { best })
    };
    let random = RandomState::new();
    let any = (0..READ_AGAIN).map(|i| random.hash_one(i) as usize % kept.len().max(1));
    let not_finite = (0..kept.len()).filter(|i| kept[*i].nan + kept[*i].pos_inf + kept[*i].neg_inf > 0);
    let ends = [at(&|a, b| a.min < b.min), at(&|a, b| a.max > b.max)];
    let all = any.chain(ends.into_iter().flatten()).chain(not_finite.take(READ_AGAIN));
    all.filter(|i| *i < kept.len()).collect()
}

/// The pyramid of a plane.
pub(super) fn pyramid(shelf: Option<Shelf>, keep: bool, value: &AnyValue, mask: &Mask, window: Window) -> Pyramid {
    let Some(mut shelf) = shelf else { return Pyramid::build(value, mask, window) };
    shelf.what = format!("{} {window:?}", shelf.what);
    let count = Pyramid::tiles_of(&window);
    let cells = window.rows as u64 * window.cols as u64;
    let read = |i: usize| Pyramid::tile(value, mask, &window, i);
    let all = || Pyramid::build(value, mask, window).tiles().to_vec();
    let tiles = tallies(&shelf, count, cells, keep, &read, all);
    Pyramid::kept(window, tiles).unwrap_or_else(|| Pyramid::build(value, mask, window))
}

/// The tally of all cells.
pub(super) fn whole(shelf: Option<Shelf>, keep: bool, value: &AnyValue, mask: &Mask) -> Tally {
    let Some(mut shelf) = shelf else { return tally(value, mask) };
    shelf.what += " whole";
    let cells = value.shape().len();
    let read = |k: usize| block(value, mask, k);
    let all = || parallel::map(blocks(cells), read);
    merged(&tallies(&shelf, blocks(cells), cells as u64, keep, &read, all))
}
