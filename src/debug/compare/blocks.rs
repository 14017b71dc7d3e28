//! Going through the cells of two large tensors block by block, on all cores: neither is copied as a whole.
//!
//! Sums are added by block, in the order of blocks, so that the number of threads changes no bit.

use super::cells::{BLOCK, Cells, each_block, shares};
use super::measure::{
    HIDDEN, Kind, Limits, MAX_CELLS, Measure, Mode, Rounding, Sides, State, Tolerance, Unit, apart, forgiven, limits,
    relative,
};
use crate::parallel;

/// Lanes of a vector loop.
const LANES: usize = 8;

/// Squares of numbers in this range neither overflow nor vanish, and need no scale.
const PLAIN: std::ops::Range<f64> = 1e-100..1e100;

/// A block of all sides.
struct Block<'a> {
    sides: &'a Sides<'a>,
    how: How,
    ours: [f64; BLOCK],
    second: [f64; BLOCK],
    theirs: [f64; BLOCK],
    at: usize,
    n: usize,
}

/// What is measured.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub kind: Kind,
    pub unit: Unit,
    pub limits: Limits,
}

impl How {
    fn nan_equal(self) -> bool {
        !matches!(self.limits, Limits::Cells { nan_equal: false, .. })
    }

    /// Hiding is a notion of ours: the measures of others see numbers only.
    fn hides(self) -> bool {
        self.kind == Kind::Scores && matches!(self.limits, Limits::Whole { .. })
    }
}

/// A cell that is not plain.
struct Cell {
    /// Its place in the tensor.
    at: usize,
    /// How far apart, where it is measured.
    far: Option<f64>,
    /// Whether rounding decides if it is a number at all.
    open: bool,
    /// How far our two ways of computing it are apart, where that says what rounding does.
    round: Option<f64>,
    /// Theirs.
    theirs: f64,
}

impl<'a> Block<'a> {
    fn new(sides: &'a Sides<'a>, how: How) -> Self {
        let empty = [0.0; BLOCK];
        Self { sides, how, ours: empty, second: empty, theirs: empty, at: 0, n: 0 }
    }

    /// Reads `n` cells from `at` on.
    fn read(&mut self, at: usize, n: usize) {
        (self.at, self.n) = (at, n);
        // Vectors go past the end, where all sides are 0.
        let end = n.next_multiple_of(LANES);
        let read = |cells: &Cells<'_>, out: &mut [f64]| {
            cells.read(at, &mut out[..n]);
            out[n..end].fill(0.0);
        };
        read(&self.sides.ours, &mut self.ours);
        read(&self.sides.theirs, &mut self.theirs);
        match &self.sides.second {
            Some(second) => read(second, &mut self.second),
            None => self.second[..end].copy_from_slice(&self.ours[..end]),
        }
    }

    /// All sides in vectors.
    fn lanes(&self) -> impl Iterator<Item = [&[f64; LANES]; 3]> {
        let end = self.n.next_multiple_of(LANES);
        let [a, s, b] = [&self.ours, &self.second, &self.theirs].map(|all| all[..end].as_chunks().0);
        a.iter().zip(s).zip(b).map(|((a, s), b)| [a, s, b])
    }

    /// The largest numbers, where all cells are there and are plain numbers; `None` where one is none, or may be hidden.
    fn plain(&self) -> Option<Sizes> {
        if self.sides.there.is_some() {
            return None;
        }
        let zero = [0.0f64; LANES];
        let (mut far, mut size, mut round, mut odd, mut low) = (zero, zero, zero, zero, zero);
        let more = |most: &mut f64, x: f64| *most = if x > *most { x } else { *most };
        for [a, s, b] in self.lanes() {
            for i in 0..LANES {
                let (apart, second) = ((a[i] - b[i]).abs(), (a[i] - s[i]).abs());
                more(&mut far[i], apart);
                more(&mut size[i], b[i].abs());
                more(&mut round[i], second);
                // A NaN or an infinity makes it a NaN.
                odd[i] += (apart + second) * 0.0;
                let least = if a[i] < b[i] { a[i] } else { b[i] };
                let least = if s[i] < least { s[i] } else { least };
                low[i] = if least < low[i] { least } else { low[i] };
            }
        }
        let most = |all: [f64; LANES]| all.into_iter().fold(0.0, f64::max);
        let hidden = self.how.kind == Kind::Scores && low.iter().any(|x| *x <= HIDDEN);
        let plain = odd.iter().sum::<f64>() == 0.0 && !hidden;
        let far = most(far);
        plain.then(|| Sizes { far, decided: far, size: most(size), round: most(round) })
    }

    /// Sums of squares of plain cells.
    fn squares(&self) -> Sizes {
        let (mut far, mut size, mut round) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for [a, s, b] in self.lanes() {
            for i in 0..LANES {
                far[i] += (a[i] - b[i]).powi(2);
                size[i] += b[i].powi(2);
                round[i] += (a[i] - s[i]).powi(2);
            }
        }
        let far = far.iter().sum();
        Sizes { far, decided: far, size: size.iter().sum(), round: round.iter().sum() }
    }

    /// Cell by cell.
    fn each(&self) -> impl Iterator<Item = Cell> + '_ {
        let how = self.how;
        let hidden = move |x: f64| how.kind == Kind::Scores && x <= HIDDEN;
        let there = move |i: &usize| self.sides.there.is_none_or(|there| there[self.at + i]);
        (0..self.n).filter(there).map(move |i| {
            let (a, s, b) = (self.ours[i], self.second[i], self.theirs[i]);
            let far = apart(a, b, how.nan_equal(), how.hides());
            // A probability that the reference's type is too coarse to hold was stored as 0, which has no logarithm.
            let undecided = how.unit > Unit::F64 && a.is_finite() != s.is_finite() && !hidden(a);
            // The least numbers of the two types, where they are −∞, lie farther apart than any rounding.
            let round = Some((a - s).abs()).filter(|d| d.is_finite() && !(hidden(a) && hidden(s)));
            Cell { at: self.at + i, far, open: undecided && far == Some(f64::INFINITY), round, theirs: b }
        })
    }
}

/// Of the differences, those that rounding does not decide, the numbers of the reference, and the differences between our
/// two ways of computing: the largest, or sums of squares.
#[derive(Clone, Copy, Default)]
struct Sizes {
    far: f64,
    decided: f64,
    size: f64,
    round: f64,
}

impl Sizes {
    fn with(self, other: Self, of: fn(f64, f64) -> f64) -> Self {
        Self {
            far: of(self.far, other.far),
            decided: of(self.decided, other.decided),
            size: of(self.size, other.size),
            round: of(self.round, other.round),
        }
    }

    fn of(cell: &Cell) -> Self {
        let far = cell.far.unwrap_or(0.0);
        let size = if cell.far.is_some() && cell.theirs.is_finite() { cell.theirs.abs() } else { 0.0 };
        let decided = if cell.open { 0.0 } else { far };
        Self { far, decided, size, round: cell.round.unwrap_or(0.0) }
    }
}

/// What is added up over a part of the cells, once the largest numbers are known.
#[derive(Default)]
struct Rest {
    squares: Sizes,
    /// Cells that are there, that count for what is decided, and that say what rounding does.
    counted: (usize, usize, usize),
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

    fn count(&mut self, (cells, decided, round): (usize, usize, usize)) {
        let (a, b, c) = self.counted;
        self.counted = (a + cells, b + decided, c + round);
    }
}

/// A largest number and a root of a sum of squares.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub largest: f64,
    pub norm: f64,
}

/// What was found of all cells.
pub(super) struct Found {
    pub far: Size,
    pub decided: Size,
    pub size: Size,
    pub round: Size,
    /// Cells that are there, that count for what is decided, and that say what rounding does.
    pub counted: (usize, usize, usize),
    pub differing: usize,
    pub first: Option<usize>,
    /// The farthest first, as many as are shown.
    pub worst: Vec<usize>,
}

/// Goes through all cells, on all cores.
pub(super) fn find(sides: &Sides<'_>, how: How) -> Found {
    let cells = sides.theirs.len();
    let largest = |share: usize| {
        let (mut all, mut block) = (Sizes::default(), Block::new(sides, how));
        each_block(share, cells, |at, n| {
            block.read(at, n);
            let most = block.plain().unwrap_or_else(|| {
                block.each().fold(Sizes::default(), |most, cell| most.with(Sizes::of(&cell), f64::max))
            });
            all = all.with(most, f64::max);
        });
        all
    };
    let parts = parallel::map(shares(cells), largest);
    let most = parts.into_iter().fold(Sizes::default(), |all, part| all.with(part, f64::max));
    // Squares are taken of what is at most 1 where they would overflow or vanish.
    let scale = |largest: f64| if largest == 0.0 || PLAIN.contains(&largest) { 1.0 } else { largest };
    let scales =
        Sizes { far: scale(most.far), decided: scale(most.decided), size: scale(most.size), round: scale(most.round) };
    let unscaled = [scales.far, scales.decided, scales.size, scales.round] == [1.0; 4];
    let allowed = |b: f64| match how.limits {
        Limits::Whole { max, atol, .. } => (max * most.size).max(atol),
        Limits::Cells { rtol, atol, .. } => atol + rtol * b.abs(),
    };
    let by_cell = matches!(how.limits, Limits::Cells { .. });
    let rest = |share: usize| {
        let (mut all, mut block) = (Rest::default(), Block::new(sides, how));
        each_block(share, cells, |at, n| {
            block.read(at, n);
            let plain = block.plain().filter(|_| unscaled && !by_cell);
            if let Some(most) = plain {
                all.squares = all.squares.with(block.squares(), |a, b| a + b);
                all.count((n, n, n));
                let full = all.worst.len() == MAX_CELLS && all.worst.last().is_some_and(|w| most.far <= w.0);
                if most.far == 0.0 || full && most.far <= allowed(0.0) {
                    return;
                }
            }
            for cell in block.each() {
                if plain.is_none() {
                    let square = |x: f64, scale: f64| (x / scale).powi(2);
                    let of = Sizes::of(&cell);
                    let squares = Sizes {
                        far: square(of.far, scales.far),
                        decided: square(of.decided, scales.decided),
                        size: square(of.size, scales.size),
                        round: square(of.round, scales.round),
                    };
                    all.squares = all.squares.with(squares, |a, b| a + b);
                    let decided = cell.far.is_some() && !cell.open;
                    all.count((1, usize::from(decided), usize::from(cell.round.is_some())));
                }
                let Some(far) = cell.far else { continue };
                if far == f64::INFINITY || far > allowed(cell.theirs) {
                    all.differing += 1;
                    all.first.get_or_insert(cell.at);
                }
                if far > 0.0 {
                    all.keep(far, cell.at);
                }
            }
        });
        all
    };
    let mut all = Rest::default();
    for part in parallel::map(shares(cells), rest) {
        all.squares = all.squares.with(part.squares, |a, b| a + b);
        all.count(part.counted);
        all.differing += part.differing;
        all.first = all.first.or(part.first);
        part.worst.into_iter().for_each(|(far, i)| all.keep(far, i));
    }
    all.worst.truncate(all.differing.clamp(1, MAX_CELLS));
    let size = |largest: f64, squares: f64, scale: f64| Size {
        largest,
        norm: if largest.is_finite() { squares.sqrt() * scale } else { f64::INFINITY },
    };
    Found {
        far: size(most.far, all.squares.far, scales.far),
        decided: size(most.decided, all.squares.decided, scales.decided),
        size: size(most.size, all.squares.size, scales.size),
        round: size(most.round, all.squares.round, scales.round),
        counted: all.counted,
        differing: all.differing,
        first: all.first,
        worst: all.worst.into_iter().map(|w| w.1).collect(),
    }
}

/// Measures our cells against the reference's, and says how they are.
pub fn measure(sides: &Sides<'_>, kind: Kind, unit: Unit, tolerance: &Tolerance, mode: Mode) -> (Measure, State) {
    let limits = limits(kind, unit, tolerance);
    let found = find(sides, How { kind, unit, limits });
    let (far, size) = (found.far, found.size);
    let (rms, max) = (relative(far.norm, size.norm), relative(far.largest, size.largest));
    let fits = match limits {
        Limits::Whole { rms: r, max: m, atol } => rms <= r && max <= m || far.largest <= atol,
        Limits::Cells { .. } => found.differing == 0,
    };
    let (cells, decided, rounded) = found.counted;
    let mean = |norm: f64, n: usize| if n == 0 { 0.0 } else { norm / (n as f64).sqrt() };
    // Both number types differ by what the coarser of them rounds, binary32; in numbers of `unit`, by so many times that.
    let share = unit.roundoff() / Unit::F32.roundoff();
    let rounding = Rounding { rms: mean(found.round.norm, rounded) * share, max: found.round.largest * share };
    let rounded = kind != Kind::Exact
        && tolerance.forgives_rounding()
        && found.decided.largest.is_finite()
        && mean(found.decided.norm, decided) <= forgiven(mode) * rounding.rms
        && found.decided.largest <= forgiven(mode) * rounding.max;
    let state = match (fits, rounded) {
        (true, _) => State::Match,
        (false, true) => State::Drift,
        (false, false) => State::Diverged,
    };
    let measure = Measure {
        rms,
        max,
        difference: far.largest,
        limits,
        rounding,
        cells,
        differing: found.differing,
        first: found.first,
        worst: found.worst,
    };
    (measure, state)
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
