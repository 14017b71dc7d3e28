//! Products out of packed tiles.
//!
//! A is packed once a product, in groups of at most `mr` rows, `k`-major: step `p` of a group is its rows' elements
//! `(·, p)` side by side. B is cut into panels of `nr` columns, packed `k`-major too, zero-padded to `nr`,
//! block by block, into a buffer that stays in the first-level cache while every
//! group of A passes over it. A task owns a panel and a range of rows, so threads never share an element of C, and
//! each element gets its blocks in order: the bits do not depend on how the work is split.

use rayon::prelude::*;

use super::BLOCK;
use super::mat::Mat;
use super::tile::{STREAM_COLUMNS, Tile, Tiled};

/// Multiply-adds below which a product stays on its thread.
const PARALLEL: usize = 1 << 20;
/// Elements of a right operand that many threads read faster than one, where few rows make its memory the limit.
const STREAMED: usize = 1 << 17;
/// Panels below which the rows are split as well.
const FEW_PANELS: usize = 8;
/// Rows of A up to which a product is as fast as B is read.
const FEW_ROWS: usize = 4;
/// Vectors are loaded whole from a packed operand: it starts on a cache line.
const LINE: usize = 64;

/// C, shared by tasks that write disjoint parts of it.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: tasks write disjoint elements (see `multiply`), and join before the borrow behind the pointer ends.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(self) -> *mut T {
        self.0
    }
}

/// `out = a·b`. The caller has checked shapes and that views lie inside their data, and the tile's instruction set.
pub(super) fn multiply<T: Tiled>(tile: Tile<T>, a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    let (m, k, n) = (a.rows, a.cols, b.cols);
    if k == 0 || m == 0 || n == 0 {
        out.fill(T::ZERO);
        return;
    }
    let mr = tile.run.len();
    let panels = n.div_ceil(tile.nr);
    let few_rows = m <= FEW_ROWS && n * k >= STREAMED;
    let parallel = (m * n * k >= PARALLEL || few_rows) && rayon::current_num_threads() > 1;

    let mut scratch = T::take_scratch(0);
    let packed = aligned(&mut scratch, m * k);
    let groups = packed.chunks_mut(mr * k).enumerate();
    let pack = |(group, packed): (usize, &mut [T])| pack_rows(tile, a, group * mr, packed);
    if parallel && m * k >= PARALLEL / 4 {
        packed.par_chunks_mut(mr * k).enumerate().for_each(pack);
    } else {
        groups.for_each(pack);
    }
    let packed = &*packed;

    let c = Shared(out.as_mut_ptr());
    // SAFETY of the tasks below: (panel, rows) pairs are distinct, so the elements of C they own are.
    let task = |panel: usize, first_row: usize, last_row: usize| {
        panel_rows(tile, packed, (m, k, n), b, panel, (first_row, last_row), c);
    };
    if parallel {
        let splits = if panels < FEW_PANELS { m.div_ceil(mr).min(FEW_PANELS.div_ceil(panels)) } else { 1 };
        let rows = m.div_ceil(mr).div_ceil(splits) * mr;
        (0..panels * splits).into_par_iter().for_each(|i| {
            let first = i % splits * rows;
            if first < m {
                task(i / splits, first, m.min(first + rows));
            }
        });
    } else {
        (0..panels).for_each(|panel| task(panel, 0, m));
    }
    T::give_scratch(0, scratch);
}

/// The rows `first..last` of one panel of C. `first` is a multiple of the tile's rows.
fn panel_rows<T: Tiled>(
    tile: Tile<T>,
    packed: &[T],
    (m, k, n): (usize, usize, usize),
    b: Mat<T>,
    panel: usize,
    (first, last): (usize, usize),
    c: Shared<T>,
) {
    let (mr, nr) = (tile.run.len(), tile.nr);
    let column = panel * nr;
    let columns = nr.min(n - column);
    debug_assert!(last <= m && first % mr == 0 && packed.len() == m * k);
    if let Some(stream) = tile.stream.get(m - 1)
        && b.row_stride == 1
        && columns.is_multiple_of(STREAM_COLUMNS)
    {
        for j in (column..column + columns).step_by(STREAM_COLUMNS) {
            let from = &b.data[j * b.col_stride..];
            debug_assert!((STREAM_COLUMNS - 1) * b.col_stride + k <= from.len());
            // SAFETY: the instruction set is there; `packed` holds k steps of m rows; `from` starts at column j of a checked
            // view that has k rows and STREAM_COLUMNS more columns; C has m rows and these columns, which this task owns.
            unsafe { stream(k, packed.as_ptr(), from.as_ptr(), b.col_stride, c.get().add(j), n) };
        }
        return;
    }
    let mut scratch = T::take_scratch(1);
    let mut edge = [T::ZERO; 12 * 32];
    for start in (0..k).step_by(BLOCK) {
        let kc = BLOCK.min(k - start);
        let block = &mut aligned(&mut scratch, BLOCK * nr)[..kc * nr];
        pack_block(tile, b, (start, kc), (column, columns), block);
        for row in (first..last).step_by(mr) {
            let rows = mr.min(m - row);
            let a = &packed[row * k + start * rows..][..kc * rows];
            let run = tile.run[rows - 1];
            // SAFETY: the instruction set is there (the tile came from `Tiled`, which looked); `a` and `block` are slices of
            // exactly kc·rows and kc·nr elements. A whole tile lies inside C, rows row..row+rows and columns
            // column..column+nr, and this task is the only one to touch them; an edge tile goes to `edge`, which holds
            // the largest tile, and only its real columns, inside C and this task's, are copied from and to C.
            unsafe {
                let corner = c.get().add(row * n + column);
                if columns == nr {
                    run(kc, a.as_ptr(), block.as_ptr(), corner, n, start == 0);
                } else {
                    for i in 0..rows {
                        std::ptr::copy_nonoverlapping(corner.add(i * n), edge.as_mut_ptr().add(i * nr), columns);
                    }
                    run(kc, a.as_ptr(), block.as_ptr(), edge.as_mut_ptr(), nr, start == 0);
                    for i in 0..rows {
                        std::ptr::copy_nonoverlapping(edge.as_ptr().add(i * nr), corner.add(i * n), columns);
                    }
                }
            }
        }
    }
    T::give_scratch(1, scratch);
}

/// The first `len` elements of `scratch` from a cache line on; it grows as needed.
fn aligned<T: Tiled>(scratch: &mut Vec<T>, len: usize) -> &mut [T] {
    let slack = LINE / size_of::<T>();
    if scratch.len() < len + slack {
        scratch.resize(len + slack, T::ZERO);
    }
    let start = scratch.as_ptr().align_offset(LINE).min(slack);
    &mut scratch[start..start + len]
}

/// Packs the rows of A from `first` on into `out`, which holds as many whole rows as it has elements for.
fn pack_rows<T: Tiled>(tile: Tile<T>, a: Mat<T>, first: usize, out: &mut [T]) {
    let k = a.cols;
    let rows = out.len() / k;
    let from = &a.data[first * a.row_stride..];
    if a.col_stride == 1 && rows >= 4 {
        debug_assert!((rows - 1) * a.row_stride + k <= from.len());
        // SAFETY: the tile's instruction set is there; `from` holds the rows first..first+rows of a checked view, `out`
        // holds k steps of `rows` elements.
        unsafe { (tile.transpose)(from.as_ptr(), a.row_stride, k, rows, out.as_mut_ptr(), rows) };
    } else if a.row_stride == 1 {
        for (p, out) in out.chunks_exact_mut(rows).enumerate() {
            out.copy_from_slice(&from[p * a.col_stride..][..rows]);
        }
    } else {
        for i in 0..rows {
            let row = from[i * a.row_stride..].iter().step_by(a.col_stride.max(1));
            if a.col_stride == 0 {
                let x = from[i * a.row_stride];
                out.iter_mut().skip(i).step_by(rows).for_each(|out| *out = x);
            } else {
                for (out, &x) in out[i..].iter_mut().step_by(rows).zip(row) {
                    *out = x;
                }
            }
        }
    }
}

/// Packs steps `start..start+kc` of `columns` columns of B, zero-padded to the tile's.
fn pack_block<T: Tiled>(
    tile: Tile<T>,
    b: Mat<T>,
    (start, kc): (usize, usize),
    (column, columns): (usize, usize),
    out: &mut [T],
) {
    let nr = tile.nr;
    let from = &b.data[start * b.row_stride + column * b.col_stride..];
    if columns < nr {
        for out in out.chunks_exact_mut(nr) {
            out[columns..].fill(T::ZERO);
        }
    }
    if b.col_stride == 1 {
        for (p, out) in out.chunks_exact_mut(nr).enumerate() {
            out[..columns].copy_from_slice(&from[p * b.row_stride..][..columns]);
        }
    } else if b.row_stride == 1 {
        debug_assert!((columns - 1) * b.col_stride + kc <= from.len());
        debug_assert!(kc * nr <= out.len());
        // SAFETY: the tile's instruction set is there; `from` starts at element (start, column) of a checked view that has
        // kc more rows and `columns` more columns, `out` holds kc steps of nr ≥ columns elements.
        unsafe {
            (tile.transpose)(from.as_ptr(), b.col_stride, kc, columns, out.as_mut_ptr(), nr);
        };
    } else {
        for (p, out) in out.chunks_exact_mut(nr).enumerate() {
            for (j, out) in out[..columns].iter_mut().enumerate() {
                *out = from[p * b.row_stride + j * b.col_stride];
            }
        }
    }
}
