//! Exact statistics of a tensor, and a pyramid of them: what every cell of any rectangle says, without a sample.
//!
//! A [`Tally`] counts what is finite, NaN, +∞, −∞, zero and masked, and keeps the range, the sum and the sum of squares
//! of the finite cells. A [`Pyramid`] holds one tally for each tile of [`TILE`]×[`TILE`] cells of a plane and for each
//! 2×2 tiles above, so that a picture of 10⁸ cells is made from tiles and still shows a single NaN or spike:
//! [`Pyramid::rect`] is exact for any rectangle, because the border of the rectangle is read cell by cell.

use std::ops::Range;

use super::AnyValue;
use crate::parallel;
use crate::tensor::Value;

/// Rows and columns of the smallest tile of a pyramid.
pub const TILE: usize = 16;

/// Cells that one task of a scan reads.
const CHUNK: usize = 1 << 15;

/// What some cells hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tally {
    /// Finite cells that are not masked.
    pub finite: u64,
    /// Cells that are not a number.
    pub nan: u64,
    /// Cells that are +∞.
    pub pos_inf: u64,
    /// Cells that are −∞ and not masked.
    pub neg_inf: u64,
    /// Masked cells, whatever they hold.
    pub masked: u64,
    /// Finite, unmasked cells that are 0.
    pub zeros: u64,
    /// Smallest finite, unmasked cell; +∞ where there is none.
    pub min: f64,
    /// Largest finite, unmasked cell; −∞ where there is none.
    pub max: f64,
    /// Sum of the finite, unmasked cells.
    pub sum: f64,
    /// Sum of their squares.
    pub squares: f64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            finite: 0,
            nan: 0,
            pos_inf: 0,
            neg_inf: 0,
            masked: 0,
            zeros: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: 0.0,
            squares: 0.0,
        }
    }
}

impl Tally {
    /// Of these values, none of them masked.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut tally = Self::default();
        for x in values {
            tally.add(x);
        }
        tally
    }

    /// Takes in one cell that is not masked.
    #[inline]
    pub fn add(&mut self, x: f64) {
        if x.is_finite() {
            self.finite += 1;
            self.zeros += u64::from(x == 0.0);
            self.min = self.min.min(x);
            self.max = self.max.max(x);
            self.sum += x;
            self.squares += x * x;
        } else if x.is_nan() {
            self.nan += 1;
        } else if x > 0.0 {
            self.pos_inf += 1;
        } else {
            self.neg_inf += 1;
        }
    }

    /// Takes in one cell, which may be masked.
    #[inline]
    pub fn take(&mut self, x: f64, masked: bool) {
        if masked {
            self.masked += 1;
        } else {
            self.add(x);
        }
    }

    /// Takes in the cells of another tally.
    pub fn merge(&mut self, other: &Self) {
        self.finite += other.finite;
        self.nan += other.nan;
        self.pos_inf += other.pos_inf;
        self.neg_inf += other.neg_inf;
        self.masked += other.masked;
        self.zeros += other.zeros;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// All cells, masked ones too.
    pub fn count(&self) -> u64 {
        self.finite + self.nan + self.pos_inf + self.neg_inf + self.masked
    }

    /// Smallest and largest finite, unmasked cell.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.finite > 0).then_some((self.min, self.max))
    }

    /// Mean of the finite, unmasked cells; 0 where there are none.
    pub fn mean(&self) -> f64 {
        if self.finite == 0 { 0.0 } else { self.sum / self.finite as f64 }
    }

    /// Euclidean norm of the finite, unmasked cells.
    pub fn norm(&self) -> f64 {
        self.squares.sqrt()
    }

    /// The finite cell of largest magnitude, with its sign.
    pub fn extreme(&self) -> f64 {
        match self.range() {
            None => 0.0,
            Some((min, max)) if -min > max => min,
            Some((_, max)) => max,
        }
    }
}

/// Which cells of a tensor are masked.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// Scores of the same shape; a cell below the limit is masked, and so is a `true` of a mask.
    scores: Option<(AnyValue, f64)>,
}

impl Mask {
    /// No cell is masked.
    pub fn none() -> Self {
        Self::default()
    }

    /// Cells whose score is below `limit` are masked; `scores` has as many cells as the tensor.
    pub fn below(scores: AnyValue, limit: f64) -> Self {
        Self { scores: Some((scores, limit)) }
    }

    /// Whether any cell may be masked.
    pub fn is_none(&self) -> bool {
        self.scores.is_none()
    }

    /// Whether cell `flat` is masked.
    pub fn has(&self, flat: usize) -> bool {
        self.scores.as_ref().is_some_and(|(scores, limit)| scores.get(flat) < *limit)
    }
}

/// Two axes of a tensor: where each of its cells is in the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Position of cell (0, 0).
    pub start: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Distance of rows.
    pub row_stride: usize,
    /// Distance of columns.
    pub col_stride: usize,
}

impl Window {
    /// Position in the tensor of a cell.
    #[inline]
    pub fn flat(&self, row: usize, col: usize) -> usize {
        self.start + row * self.row_stride + col * self.col_stride
    }
}

/// Calls `$body` with `$at`, a function from a position to the number there; the kind of element is looked at once.
macro_rules! with_cells {
    ($value:expr, $at:ident => $body:expr) => {
        match $value {
            AnyValue::F32(Value::Float(t)) if t.is_whole() => {
                let data = t.data();
                let $at = |i: usize| f64::from(data[i]);
                $body
            }
            AnyValue::F64(Value::Float(t)) if t.is_whole() => {
                let data = t.data();
                let $at = |i: usize| data[i];
                $body
            }
            other => {
                let $at = |i: usize| other.get(i);
                $body
            }
        }
    };
}

/// Every cell of a tensor, in parallel where there are many. The order of the sums does not depend on the number of
/// threads.
pub fn tally(value: &AnyValue, mask: &Mask) -> Tally {
    tally_where(value, mask, |_| true)
}

/// Every cell of a tensor whose position `chosen` takes.
pub fn tally_where(value: &AnyValue, mask: &Mask, chosen: impl Fn(usize) -> bool + Sync) -> Tally {
    let n = value.shape().len();
    with_cells!(value, at => {
        let part = |range: Range<usize>| {
            let mut tally = Tally::default();
            if mask.is_none() {
                for i in range.filter(|i| chosen(*i)) {
                    tally.add(at(i));
                }
            } else {
                for i in range.filter(|i| chosen(*i)) {
                    tally.take(at(i), mask.has(i));
                }
            }
            tally
        };
        if n <= CHUNK {
            return part(0..n);
        }
        merged(&parallel::map(n.div_ceil(CHUNK), |k| part(k * CHUNK..n.min((k + 1) * CHUNK))))
    })
}

/// Blocks of cells that [`tally`] reads one by one.
pub fn blocks(cells: usize) -> usize {
    cells.div_ceil(CHUNK)
}

/// Block `k` of the cells of a tensor.
pub fn block(value: &AnyValue, mask: &Mask, k: usize) -> Tally {
    let range = k * CHUNK..value.shape().len().min((k + 1) * CHUNK);
    let mut tally = Tally::default();
    with_cells!(value, at => range.for_each(|i| tally.take(at(i), mask.has(i))));
    tally
}

/// The cells of all of `parts`, added in order.
pub fn merged(parts: &[Tally]) -> Tally {
    let mut all = Tally::default();
    for part in parts {
        all.merge(part);
    }
    all
}

/// One level of a pyramid: tallies of equal tiles, row after row.
#[derive(Clone, Debug)]
struct Level {
    side: usize,
    cols: usize,
    tiles: Vec<Tally>,
}

/// Tallies of a plane at every zoom.
#[derive(Clone, Debug)]
pub struct Pyramid {
    window: Window,
    levels: Vec<Level>,
}

impl Pyramid {
    /// Reads every cell of the window once, in parallel.
    pub fn build(value: &AnyValue, mask: &Mask, window: Window) -> Self {
        let rows = window.rows.div_ceil(TILE);
        let cols = window.cols.div_ceil(TILE);
        let strip = |r: usize| {
            let mut tiles = vec![Tally::default(); cols];
            for row in r * TILE..window.rows.min((r + 1) * TILE) {
                scan_row(value, mask, &window, row, 0..window.cols, |col, x, masked| {
                    tiles[col / TILE].take(x, masked);
                });
            }
            tiles
        };
        let tiles: Vec<Tally> = if window.rows * window.cols <= CHUNK {
            (0..rows).flat_map(strip).collect()
        } else {
            parallel::map(rows, strip).concat()
        };
        Self::of_tiles(window, tiles)
    }

    /// From the tallies of its smallest tiles, row after row.
    fn of_tiles(window: Window, tiles: Vec<Tally>) -> Self {
        let cols = window.cols.div_ceil(TILE);
        let mut levels = vec![Level { side: TILE, cols, tiles }];
        while let Some(below) = levels.last().filter(|l| l.tiles.len() > 1) {
            let high = below.tiles.len() / below.cols;
            let (rows, cols) = (high.div_ceil(2), below.cols.div_ceil(2));
            let mut tiles = vec![Tally::default(); rows * cols];
            for (i, tile) in below.tiles.iter().enumerate() {
                tiles[i / below.cols / 2 * cols + i % below.cols / 2].merge(tile);
            }
            let side = below.side * 2;
            levels.push(Level { side, cols, tiles });
        }
        Self { window, levels }
    }

    /// From tallies of its smallest tiles that were kept, where they are as many as the window has.
    pub fn kept(window: Window, tiles: Vec<Tally>) -> Option<Self> {
        (tiles.len() == Self::tiles_of(&window)).then(|| Self::of_tiles(window, tiles))
    }

    /// How many of the smallest tiles a window has.
    pub fn tiles_of(window: &Window) -> usize {
        window.rows.div_ceil(TILE) * window.cols.div_ceil(TILE)
    }

    /// The tallies of its smallest tiles, row after row.
    pub fn tiles(&self) -> &[Tally] {
        self.levels.first().map_or(&[], |l| &l.tiles)
    }

    /// Reads the cells of smallest tile `i` of a window.
    pub fn tile(value: &AnyValue, mask: &Mask, window: &Window, i: usize) -> Tally {
        let across = window.cols.div_ceil(TILE);
        let (top, left) = (i / across * TILE, i % across * TILE);
        let mut tally = Tally::default();
        for row in top..window.rows.min(top + TILE) {
            scan_row(value, mask, window, row, left..window.cols.min(left + TILE), |_, x, masked| {
                tally.take(x, masked);
            });
        }
        tally
    }

    /// The window it was built over.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The tally of the whole plane.
    pub fn whole(&self) -> Tally {
        let top = self.levels.last().and_then(|l| l.tiles.first());
        top.copied().unwrap_or_default()
    }

    /// The tally of a rectangle: tiles inside it, and the cells at its border one by one. `value` and `mask` are those
    /// that it was built from.
    pub fn rect(&self, value: &AnyValue, mask: &Mask, rows: Range<usize>, cols: Range<usize>) -> Tally {
        let mut all = Tally::default();
        let rows = rows.start..rows.end.min(self.window.rows);
        let cols = cols.start..cols.end.min(self.window.cols);
        if rows.is_empty() || cols.is_empty() || self.levels.is_empty() {
            return all;
        }
        self.gather(value, mask, self.levels.len() - 1, (0, 0), &rows, &cols, &mut all);
        all
    }

    #[allow(clippy::too_many_arguments, reason = "a recursion over one rectangle")]
    fn gather(
        &self,
        value: &AnyValue,
        mask: &Mask,
        level: usize,
        (row, col): (usize, usize),
        rows: &Range<usize>,
        cols: &Range<usize>,
        all: &mut Tally,
    ) {
        let Level { side, cols: width, tiles } = &self.levels[level];
        let tall = (row * side)..((row + 1) * side).min(self.window.rows);
        let wide = (col * side)..((col + 1) * side).min(self.window.cols);
        let (top, bottom) = (tall.start.max(rows.start), tall.end.min(rows.end));
        let (left, right) = (wide.start.max(cols.start), wide.end.min(cols.end));
        if top >= bottom || left >= right {
            return;
        }
        if (top, bottom) == (tall.start, tall.end) && (left, right) == (wide.start, wide.end) {
            all.merge(&tiles[row * width + col]);
        } else if level == 0 {
            for r in top..bottom {
                scan_row(value, mask, &self.window, r, left..right, |_, x, masked| all.take(x, masked));
            }
        } else {
            let below = &self.levels[level - 1];
            let high = below.tiles.len() / below.cols;
            for (r, c) in [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(r, c)| (2 * row + r, 2 * col + c)) {
                if r < high && c < below.cols {
                    self.gather(value, mask, level - 1, (r, c), rows, cols, all);
                }
            }
        }
    }
}

fn scan_row(
    value: &AnyValue,
    mask: &Mask,
    window: &Window,
    row: usize,
    cols: Range<usize>,
    mut f: impl FnMut(usize, f64, bool),
) {
    with_cells!(value, at => {
        for col in cols {
            let flat = window.flat(row, col);
            f(col, at(flat), mask.has(flat));
        }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tensor::{Axis, Shape, Tensor};

    fn value(rows: usize, cols: usize, data: Vec<f32>) -> AnyValue {
        let shape = Shape::named(&[(Axis::Query, rows), (Axis::Key, cols)]);
        AnyValue::F32(Value::Float(Tensor::new(shape, data)))
    }

    /// Numbers from a seed, with NaN, ±∞, spikes and zeros planted about every so many cells.
    fn planted(n: usize, seed: u64, every: u64) -> Vec<f32> {
        let mut state = seed | 1;
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let x = (state >> 40) as f32 / 16_777_216.0 - 0.5;
                match (state >> 20) % every {
                    0 => f32::NAN,
                    1 => f32::INFINITY,
                    2 => f32::NEG_INFINITY,
                    3 => x * 1e6,
                    4 => 0.0,
                    _ => x,
                }
            })
            .collect()
    }

    fn exact(data: &[f32], masked: impl Fn(usize) -> bool, cells: impl Iterator<Item = usize>) -> Tally {
        let mut t = Tally::default();
        for i in cells {
            t.take(f64::from(data[i]), masked(i));
        }
        t
    }

    /// Counts and range are equal; sums, whose order differs, nearly.
    fn same(a: &Tally, b: &Tally) {
        let counts = |t: &Tally| (t.finite, t.nan, t.pos_inf, t.neg_inf, t.masked, t.zeros, t.min, t.max);
        assert_eq!(counts(a), counts(b));
        let near = |x: f64, y: f64, size: f64| assert!((x - y).abs() <= 1e-9 * (1.0 + size), "{x} {y}");
        near(a.sum, b.sum, a.squares.sqrt() * (a.finite as f64).sqrt());
        near(a.squares, b.squares, a.squares);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_rectangle_is_an_exact_scan(
            (rows, cols) in (1..70_usize, 1..90_usize),
            (a, b, c, d) in (0..70_usize, 0..70_usize, 0..90_usize, 0..90_usize),
            seed in any::<u64>(),
            transposed in any::<bool>(),
        ) {
            let data = planted(rows * cols, seed, 40);
            let scores: Vec<f32> = planted(rows * cols, seed.wrapping_add(77), 9);
            let v = value(rows, cols, data.clone());
            let mask = Mask::below(value(rows, cols, scores.clone()), -0.2);
            let masked = |i: usize| f64::from(scores[i]) < -0.2;
            let window = if transposed {
                Window { start: 0, rows: cols, cols: rows, row_stride: 1, col_stride: cols }
            } else {
                Window { start: 0, rows, cols, row_stride: cols, col_stride: 1 }
            };
            let p = Pyramid::build(&v, &mask, window);
            same(&p.whole(), &exact(&data, masked, 0..rows * cols));
            same(&tally(&v, &mask), &p.whole());
            let (r, k) = (a.min(b)..a.max(b).min(window.rows), c.min(d)..c.max(d).min(window.cols));
            let cells = r.clone().flat_map(|i| k.clone().map(move |j| window.flat(i, j)));
            same(&p.rect(&v, &mask, r.clone(), k.clone()), &exact(&data, masked, cells));
        }
    }

    #[test]
    fn ten_million_cells_keep_one_nan_and_one_spike_at_every_zoom() {
        let (rows, cols) = (2500, 4000);
        let mut data = vec![0.25_f32; rows * cols];
        data[1234 * cols + 3210] = f32::NAN;
        data[77 * cols + 5] = -900.0;
        let v = value(rows, cols, data);
        let window = Window { start: 0, rows, cols, row_stride: cols, col_stride: 1 };
        let p = Pyramid::build(&v, &Mask::none(), window);
        assert_eq!((p.whole().nan, p.whole().range()), (1, Some((-900.0, 0.25))));
        for parts in [1, 3, 17, 60, 333] {
            let at = |i: usize, n: usize| i * n / parts..(i + 1) * n / parts;
            let (mut nan, mut spikes) = (0, 0);
            for i in 0..parts {
                for j in 0..parts {
                    let t = p.rect(&v, &Mask::none(), at(i, rows), at(j, cols));
                    nan += u64::from(t.nan > 0);
                    spikes += u64::from(t.extreme() == -900.0);
                }
            }
            assert_eq!((nan, spikes), (1, 1), "{parts}");
        }
    }

    #[test]
    fn a_masked_minus_infinity_is_not_the_range() {
        let v = value(1, 4, vec![1.0, f32::NEG_INFINITY, -1e9, 3.0]);
        let t = tally(&v, &Mask::below(v.clone(), -1e8));
        assert_eq!((t.masked, t.neg_inf, t.range(), t.mean()), (2, 0, Some((1.0, 3.0)), 2.0));
        let t = tally(&v, &Mask::none());
        assert_eq!((t.masked, t.neg_inf, t.range()), (0, 1, Some((-1e9, 3.0))));
    }
}
