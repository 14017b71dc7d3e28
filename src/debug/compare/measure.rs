//! How near two tensors are: the measure, its limits, and what it calls a match, a drift, a difference.
//!
//! *Ours* measures a tensor as a whole: the root mean square of the difference against that of the reference, and the
//! largest difference against the largest number of the reference. Closeness cell by cell (*torch*, *numpy*) fails
//! correct runs, since a cell that happens to be near 0 has no digits of its own.
//!
//! Between two tensors of a reference there may be several operations whose rounding adds up, and how much it does
//! depends on the numbers: a softmax of large scores, or a sum that cancels, loses more than a fixed limit allows. So
//! each node is computed in both number types, and their difference tells how much rounding makes of that very span
//! ([`Rounding`]). Beyond the limit, but within a few times that (others add up in another order), is *drift*: no
//! cause, only rounding. How many times, [`forgiven`] says.

use super::cells::Cells;

/// What a step is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The reference's operands, in f64: the first difference is the cause, not what it caused.
    #[default]
    Isolated,
    /// Our own operands, in the run's own number type.
    Cumulative,
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Isolated => "isolated",
            Mode::Cumulative => "cumulative",
        }
    }
}

/// The multiple of the rounding that we see which is still taken for rounding. Over forward and backward runs that
/// PyTorch and transformers computed in either number type, it was at most 4.5 from the reference's operands, and 13.2
/// where all of a run lies before (99 of 100: 2.7 and 3.7).
pub fn forgiven(mode: Mode) -> f64 {
    match mode {
        Mode::Isolated => 8.0,
        Mode::Cumulative => 16.0,
    }
}

/// Scores at and below this are hidden ones, whatever number denotes −∞ (BERT's first code adds −10000).
pub(super) const HIDDEN: f64 = -5e3;

/// Differing cells that are kept.
pub const MAX_CELLS: usize = 12;

/// The number type that a value comes from, the finest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
}

impl Unit {
    /// Its unit roundoff.
    pub fn roundoff(self) -> f64 {
        let digits = match self {
            Unit::F64 => 53,
            Unit::F32 => 24,
            Unit::F16 => 11,
            Unit::Bf16 => 8,
        };
        0.5f64.powi(digits)
    }

    /// The nearest of its numbers.
    pub(super) fn round(self, x: f64) -> f64 {
        match self {
            Unit::F64 => x,
            Unit::F32 => f64::from(x as f32),
            Unit::F16 => half::f16::from_f64(x).to_f64(),
            Unit::Bf16 => half::bf16::from_f64(x).to_f64(),
        }
    }

    /// How far its numbers lie apart at `x`.
    pub(super) fn spacing(self, x: f64) -> f64 {
        let power = f64::from_bits(x.abs().to_bits() & 0x7ff0_0000_0000_0000);
        (2.0 * self.roundoff() * power).max(self.least())
    }

    /// Its least number above 0.
    pub(super) fn least(self) -> f64 {
        let exponent = match self {
            Unit::F64 => 1074,
            Unit::F32 => 149,
            Unit::F16 => 24,
            Unit::Bf16 => 133,
        };
        0.5f64.powi(exponent)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Unit::F64 => "f64",
            Unit::F32 => "f32",
            Unit::F16 => "f16",
            Unit::Bf16 => "bf16",
        }
    }
}

/// Whose measure of closeness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// RMS and largest difference, relative to the tensor.
    #[default]
    Ours,
    /// As `torch.testing.assert_close`: every cell within `atol + rtol·|reference|`; NaN equals nothing.
    Torch,
    /// As `numpy.testing.assert_allclose`: the same with other defaults; NaN equals NaN.
    Numpy,
}

/// The measure and its limits, as far as they were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Whose.
    pub policy: Policy,
    /// Relative limit; that of the policy and the number type unless given.
    pub rtol: Option<f64>,
    /// Absolute limit; likewise.
    pub atol: Option<f64>,
}

/// The limits for one number type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limits {
    /// Of the tensor as a whole.
    Whole {
        /// RMS of the difference, relative to the RMS of the reference.
        rms: f64,
        /// Largest difference, relative to the largest number of the reference.
        max: f64,
        /// A largest difference up to this matches too.
        atol: f64,
    },
    /// Of each cell.
    Cells {
        /// Relative to the cell of the reference.
        rtol: f64,
        /// Added to that.
        atol: f64,
        /// Whether NaN equals NaN.
        nan_equal: bool,
    },
}

impl Tolerance {
    /// The limits where numbers come from `unit`.
    pub fn limits(&self, unit: Unit) -> Limits {
        let (rtol, atol) = (self.rtol, self.atol);
        match self.policy {
            Policy::Ours => {
                let (rms, max) = match unit {
                    Unit::F64 => (4e-15, 2e-14),
                    Unit::F32 => (1e-6, 5e-6),
                    Unit::F16 => (2e-3, 1e-2),
                    Unit::Bf16 => (1.6e-2, 8e-2),
                };
                Limits::Whole {
                    rms: rtol.unwrap_or(rms),
                    max: rtol.map_or(max, |r| 5.0 * r),
                    atol: atol.unwrap_or(0.0),
                }
            }
            Policy::Torch => {
                let (r, a) = match unit {
                    Unit::F64 => (1e-7, 1e-7),
                    Unit::F32 => (1.3e-6, 1e-5),
                    Unit::F16 => (1e-3, 1e-5),
                    Unit::Bf16 => (1.6e-2, 1e-5),
                };
                Limits::Cells { rtol: rtol.unwrap_or(r), atol: atol.unwrap_or(a), nan_equal: false }
            }
            Policy::Numpy => Limits::Cells { rtol: rtol.unwrap_or(1e-7), atol: atol.unwrap_or(0.0), nan_equal: true },
        }
    }

    /// Whether nobody has set limits of another kind.
    pub(super) fn is_ours(&self) -> bool {
        self.forgives_rounding()
    }

    /// Whether what rounding explains is drift: not where a user has set the limits, nor by the measure of others.
    pub(super) fn forgives_rounding(&self) -> bool {
        self.policy == Policy::Ours && self.rtol.is_none() && self.atol.is_none()
    }
}

/// How a node relates to the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Within the limits.
    Match,
    /// Beyond them, but no more than rounding makes of what lies between it and the reference's tensors before.
    Drift,
    /// Beyond both, or of another shape.
    Diverged,
    /// Not in the reference.
    Unchecked,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            State::Match => "match",
            State::Drift => "drift",
            State::Diverged => "diverged",
            State::Unchecked => "unchecked",
        }
    }
}

/// What kind of cells are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers.
    Numbers,
    /// Scores of which some may be hidden.
    Scores,
    /// Ids and masks: equal or not.
    Exact,
}

/// A cell on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct CellPair {
    /// Its index.
    pub index: Vec<usize>,
    /// Row-major position.
    pub flat: usize,
    /// Our value.
    pub ours: f64,
    /// The reference's.
    pub theirs: f64,
}

/// How rounding alone changes a node: absolute differences between its values in both number types, as one would see
/// them in the number type compared in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rounding {
    /// Root mean square.
    pub rms: f64,
    /// Largest.
    pub max: f64,
}

/// What comparing two tensors found.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// RMS of the difference, relative to the RMS of the reference; infinite where a cell is a number on one side and
    /// none on the other, or hidden on one side only.
    pub rms: f64,
    /// Largest difference, relative to the largest number of the reference; likewise.
    pub max: f64,
    /// Largest difference.
    pub difference: f64,
    /// The limits that hold.
    pub limits: Limits,
    /// What rounding makes of the operations since the reference's last tensors: absolute, as `difference`.
    pub rounding: Rounding,
    /// Cells.
    pub cells: usize,
    /// Cells that differ by more than the limits allow a cell.
    pub differing: usize,
    /// The first of these, in the order of cells.
    pub first: Option<usize>,
    /// Those that differ most, the worst first; at most [`MAX_CELLS`]. Where none is beyond the limits, the cell that
    /// differs most, if any does.
    pub worst: Vec<usize>,
}

/// The cells that are compared.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// Ours.
    pub ours: Cells<'a>,
    /// Ours in the other number type; `None` where there is no other way to compute them.
    pub second: Option<Cells<'a>>,
    /// The reference's.
    pub theirs: Cells<'a>,
    /// Which of its cells the reference has; all unless said.
    pub there: Option<&'a [bool]>,
}

impl Sides<'_> {
    /// Cells that the reference has.
    pub(super) fn cells(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.theirs.len()).filter(|&i| self.there.is_none_or(|there| there[i]))
    }
}

/// Difference of a cell; infinite where no number says how far apart they are. `None`: nothing to measure.
pub(super) fn apart(a: f64, b: f64, nan_equal: bool, hides: bool) -> Option<f64> {
    let far = match (a.is_nan(), b.is_nan()) {
        (true, true) if nan_equal => return None,
        (false, false) => (a - b).abs(),
        _ => f64::INFINITY,
    };
    if a == b && !a.is_finite() {
        return None;
    }
    match (hides && a <= HIDDEN, hides && b <= HIDDEN) {
        (true, true) => None,
        (false, false) => Some(far),
        _ => Some(f64::INFINITY),
    }
}

/// `x` against `to`, where nothing is no part of anything.
pub(super) fn relative(x: f64, to: f64) -> f64 {
    if x == 0.0 {
        0.0
    } else if to == 0.0 {
        f64::INFINITY
    } else {
        x / to
    }
}

/// The limits for cells of a kind.
pub fn limits(kind: Kind, unit: Unit, tolerance: &Tolerance) -> Limits {
    match kind {
        Kind::Exact => Limits::Cells { rtol: 0.0, atol: 0.0, nan_equal: true },
        _ => tolerance.limits(unit),
    }
}
