//! Measuring two large tensors block by block, on all cores: neither is copied as a whole.
//!
//! Gives what [`super::measure::measure`] gives where no rounding of ours is known. Sums are added by block, in the order
//! of blocks, so that the number of threads changes no bit.

use std::hash::{DefaultHasher, Hash, Hasher};

use rayon::prelude::*;

use super::measure::{HIDDEN, Kind, Limits, MAX_CELLS, Measure, Rounding, State, apart, relative};
use crate::tensor::Value;
use crate::trace::AnyValue;

/// Cells of a block: both sides in f64 stay in the nearest cache.
const BLOCK: usize = 1024;

/// Blocks that one thread takes at a time.
const TAKEN: usize = 128;

/// Lanes of a vector loop.
const LANES: usize = 8;

/// Squares of numbers in this range neither overflow nor vanish, and need no scale.
const PLAIN: std::ops::Range<f64> = 1e-100..1e100;

/// Cells of a tensor, wherever they are kept, as `f64`.
pub enum Cells<'a> {
    /// As they are in memory or in a mapped file: ids as they are, masks as 0 and 1.
    Value(&'a AnyValue),
    /// In f64.
    Wide(&'a [f64]),
}

impl Cells<'_> {
    fn len(&self) -> usize {
        match self {
            Cells::Value(value) => value.shape().len(),
            Cells::Wide(all) => all.len(),
        }
    }

    /// Fills `out` with the cells from `from` on.
    fn read(&self, from: usize, out: &mut [f64]) {
        fn each<E: Copy>(all: &[E], out: &mut [f64], of: impl Fn(E) -> f64) {
            for (out, x) in out.iter_mut().zip(all) {
                *out = of(*x);
            }
        }
        let here = from..from + out.len();
        match self {
            Cells::Wide(all) => out.copy_from_slice(&all[here]),
            Cells::Value(AnyValue::F32(Value::Float(t))) => each(&t.data()[here], out, f64::from),
            Cells::Value(AnyValue::F64(Value::Float(t))) => out.copy_from_slice(&t.data()[here]),
            Cells::Value(AnyValue::F32(Value::Int(t)) | AnyValue::F64(Value::Int(t))) => {
                each(&t.data()[here], out, |x| x as f64);
            }
            Cells::Value(AnyValue::F32(Value::Bool(t)) | AnyValue::F64(Value::Bool(t))) => {
                each(&t.data()[here], out, |x| f64::from(u8::from(x)));
            }
        }
    }

    /// Cell `i`.
    pub(super) fn get(&self, i: usize) -> f64 {
        match self {
            Cells::Value(value) => value.get(i),
            Cells::Wide(all) => all[i],
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.len()];
        out.par_chunks_mut(BLOCK).enumerate().for_each(|(i, out)| self.read(i * BLOCK, out));
        out
    }

    /// A number that tensors of other bits have, too, once in 2⁶⁴ times.
    pub(super) fn checksum(&self) -> u64 {
        let (mut hasher, mut block) = (DefaultHasher::new(), [0.0; BLOCK]);
        for at in (0..self.len()).step_by(BLOCK) {
            let n = BLOCK.min(self.len() - at);
            self.read(at, &mut block[..n]);
            block[..n].iter().for_each(|x| x.to_bits().hash(&mut hasher));
        }
        hasher.finish()
    }

    /// Whether a cell is at or below `limit`.
    pub(super) fn any_below(&self, limit: f64) -> bool {
        starts(self.len()).into_par_iter().any(|start| {
            let (mut found, mut block) = (false, [0.0; BLOCK]);
            each_block(start, self.len(), |at, n| {
                self.read(at, &mut block[..n]);
                found |= block[..n].iter().any(|x| *x <= limit);
            });
            found
        })
    }
}

/// Where threads start.
fn starts(len: usize) -> Vec<usize> {
    (0..len).step_by(TAKEN * BLOCK).collect()
}

/// Calls `of` with the start and the length of each block that a thread takes from `start` on.
fn each_block(start: usize, len: usize, mut of: impl FnMut(usize, usize)) {
    let end = (start + TAKEN * BLOCK).min(len);
    for at in (start..end).step_by(BLOCK) {
        of(at, BLOCK.min(end - at));
    }
}

/// What a block's cells are.
struct Block {
    ours: [f64; BLOCK],
    theirs: [f64; BLOCK],
    n: usize,
}

impl Block {
    fn empty() -> Self {
        Self { ours: [0.0; BLOCK], theirs: [0.0; BLOCK], n: 0 }
    }

    /// Reads `n` cells of both from `at` on.
    fn read(&mut self, ours: &Cells<'_>, theirs: &Cells<'_>, at: usize, n: usize) {
        ours.read(at, &mut self.ours[..n]);
        theirs.read(at, &mut self.theirs[..n]);
        // Vectors go past the end, where both sides are 0.
        let end = n.next_multiple_of(LANES);
        self.ours[n..end].fill(0.0);
        self.theirs[n..end].fill(0.0);
        self.n = n;
    }

    /// Both sides in vectors.
    fn lanes(&self) -> impl Iterator<Item = (&[f64; LANES], &[f64; LANES])> {
        let end = self.n.next_multiple_of(LANES);
        self.ours[..end].as_chunks().0.iter().zip(self.theirs[..end].as_chunks().0)
    }

    /// The largest difference and the largest number of theirs, where all cells are plain numbers. `None` where one is
    /// none, or may be hidden.
    fn plain(&self, hides: bool) -> Option<(f64, f64)> {
        let (mut far, mut size, mut odd, mut low) = ([0.0f64; LANES], [0.0f64; LANES], [0.0f64; LANES], [0.0; LANES]);
        for (a, b) in self.lanes() {
            for i in 0..LANES {
                let apart = (a[i] - b[i]).abs();
                far[i] = if apart > far[i] { apart } else { far[i] };
                size[i] = if b[i].abs() > size[i] { b[i].abs() } else { size[i] };
                // A NaN or an infinity makes it a NaN.
                odd[i] += apart * 0.0;
                let least = if a[i] < b[i] { a[i] } else { b[i] };
                low[i] = if least < low[i] { least } else { low[i] };
            }
        }
        let most = |all: [f64; LANES]| all.into_iter().fold(0.0, f64::max);
        let plain = odd.iter().sum::<f64>() == 0.0 && !(hides && low.iter().any(|x| *x <= HIDDEN));
        plain.then(|| (most(far), most(size)))
    }

    /// Sums of squares of the differences and of theirs, of plain cells.
    fn squares(&self) -> (f64, f64) {
        let (mut far, mut size) = ([0.0; LANES], [0.0; LANES]);
        for (a, b) in self.lanes() {
            for i in 0..LANES {
                let apart = a[i] - b[i];
                far[i] += apart * apart;
                size[i] += b[i] * b[i];
            }
        }
        (far.iter().sum(), size.iter().sum())
    }

    /// Each cell that is measured: its place in the block, how far apart, and theirs.
    fn each(&self, nan_equal: bool, hides: bool) -> impl Iterator<Item = (usize, f64, f64)> + '_ {
        (0..self.n)
            .filter_map(move |i| Some((i, apart(self.ours[i], self.theirs[i], nan_equal, hides)?, self.theirs[i])))
    }
}

/// The largest difference, and the largest finite number of theirs.
#[derive(Clone, Copy, Default)]
struct Largest {
    far: f64,
    size: f64,
}

impl Largest {
    fn or(self, far: f64, size: f64) -> Self {
        Self { far: self.far.max(far), size: self.size.max(size) }
    }
}

/// What is added up over a part of the cells, once the largest numbers are known.
#[derive(Default)]
struct Rest {
    far: f64,
    size: f64,
    differing: usize,
    first: Option<usize>,
    /// The farthest first, of equal ones the first.
    worst: Vec<(f64, usize)>,
}

impl Rest {
    fn keep(&mut self, far: f64, i: usize) {
        if self.worst.len() < MAX_CELLS || self.worst.last().is_some_and(|w| far > w.0) {
            let at = self.worst.partition_point(|w| w.0 >= far);
            self.worst.insert(at, (far, i));
            self.worst.truncate(MAX_CELLS);
        }
    }
}

/// Measures `ours` against `theirs`, and says how they stand; both have the same number of cells.
pub fn measure(ours: &Cells<'_>, theirs: &Cells<'_>, kind: Kind, limits: Limits) -> (Measure, State) {
    let cells = ours.len();
    debug_assert_eq!(cells, theirs.len(), "cells lie side by side");
    let nan_equal = !matches!(limits, Limits::Cells { nan_equal: false, .. });
    let hides = kind == Kind::Scores && matches!(limits, Limits::Whole { .. });
    let starts = starts(cells);
    let largest = |start: &usize| {
        let (mut all, mut block) = (Largest::default(), Block::empty());
        each_block(*start, cells, |at, n| {
            block.read(ours, theirs, at, n);
            if let Some((far, size)) = block.plain(hides) {
                all = all.or(far, size);
                return;
            }
            for (_, far, b) in block.each(nan_equal, hides) {
                all = all.or(far, if b.is_finite() { b.abs() } else { 0.0 });
            }
        });
        all
    };
    let parts: Vec<Largest> = starts.par_iter().map(largest).collect();
    let most = parts.into_iter().fold(Largest::default(), |all, part| all.or(part.far, part.size));
    // Squares are taken of what is at most 1 where they would overflow or vanish.
    let scale = |largest: f64| if largest == 0.0 || PLAIN.contains(&largest) { 1.0 } else { largest };
    let scales = (scale(most.far), scale(most.size));
    let allowed = |b: f64| match limits {
        Limits::Whole { max, atol, .. } => (max * most.size).max(atol),
        Limits::Cells { rtol, atol, .. } => atol + rtol * b.abs(),
    };
    let by_cell = matches!(limits, Limits::Cells { .. });
    let rest = |start: &usize| {
        let (mut all, mut block) = (Rest::default(), Block::empty());
        each_block(*start, cells, |at, n| {
            block.read(ours, theirs, at, n);
            let plain = block.plain(hides).filter(|_| scales == (1.0, 1.0) && !by_cell);
            if let Some((far, _)) = plain {
                let (squares, sizes) = block.squares();
                (all.far, all.size) = (all.far + squares, all.size + sizes);
                let full = all.worst.len() == MAX_CELLS && all.worst.last().is_some_and(|w| far <= w.0);
                if far == 0.0 || full && far <= allowed(0.0) {
                    return;
                }
            }
            for (i, far, b) in block.each(nan_equal, hides) {
                if plain.is_none() {
                    all.far += (far / scales.0).powi(2);
                    if b.is_finite() {
                        all.size += (b / scales.1).powi(2);
                    }
                }
                if far == f64::INFINITY || far > allowed(b) {
                    all.differing += 1;
                    all.first.get_or_insert(at + i);
                }
                if far > 0.0 {
                    all.keep(far, at + i);
                }
            }
        });
        all
    };
    let mut all = Rest::default();
    for part in starts.par_iter().map(rest).collect::<Vec<_>>() {
        (all.far, all.size, all.differing) = (all.far + part.far, all.size + part.size, all.differing + part.differing);
        all.first = all.first.or(part.first);
        part.worst.into_iter().for_each(|(far, i)| all.keep(far, i));
    }
    all.worst.truncate(all.differing.clamp(1, MAX_CELLS));
    let far = if most.far.is_finite() { all.far.sqrt() * scales.0 } else { f64::INFINITY };
    let size = all.size.sqrt() * scales.1;
    let (rms, max) = (relative(far, size), relative(most.far, most.size));
    let fits = match limits {
        Limits::Whole { rms: r, max: m, atol } => rms <= r && max <= m || most.far <= atol,
        Limits::Cells { .. } => all.differing == 0,
    };
    let measure = Measure {
        rms,
        max,
        difference: most.far,
        limits,
        rounding: Rounding::default(),
        cells,
        differing: all.differing,
        first: all.first,
        worst: all.worst.into_iter().map(|w| w.1).collect(),
    };
    (measure, if fits { State::Match } else { State::Diverged })
}
