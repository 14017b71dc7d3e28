//! Two values of the tensor looked at: A and B, cell by cell. With a reference they are this run's and the reference's;
//! with edits those before and after; else the exact and the rounded ones.

use std::sync::Arc;

use super::{Key, Standing, State};
use crate::app::navigator::{Navigator, Plane, is_masked};
use crate::app::what_if::Edits;
use crate::debug::compare::{Mode, State as Verdict};
use crate::debug::whatif::Before;
use crate::explain::line::MASKED_BELOW;
use crate::program::NodeId;
use crate::tensor::Precision;
use crate::text::{Msg, NumberFormat};
use crate::trace::stats::Tally;
use crate::trace::{AnyValue, Rounding};

/// Worst cells that are kept.
const WORST: usize = 512;

/// What A and B are.
#[derive(Clone, Debug)]
pub enum Kind {
    /// This run, and a reference.
    Reference {
        /// Its name.
        name: String,
        /// Whether A was computed from the run's own operands.
        isolated: bool,
        /// What was found, where it differs.
        note: Option<Msg>,
    },
    /// Before the edits, and with them.
    Edited,
    /// Exact, and rounded at each step.
    Rounded(Rounding),
}

/// The numbers of one side.
#[derive(Clone, Debug)]
pub enum Side {
    /// Of a trace.
    Value(AnyValue),
    /// Of a reference; `None` where it has no such cell.
    Cells(Arc<Vec<Option<f64>>>),
    /// There are none.
    Missing,
}

impl Side {
    /// The number of a cell.
    pub fn get(&self, flat: usize) -> Option<f64> {
        match self {
            Side::Value(v) => Some(v.get(flat)),
            Side::Cells(cells) => cells.get(flat).copied().flatten(),
            Side::Missing => None,
        }
    }
}

/// A cell that differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Differing {
    /// Position in the whole tensor.
    pub flat: usize,
    /// A.
    pub a: f64,
    /// B.
    pub b: f64,
    /// Numbers of the run's type between them; `None` where one of them is no number.
    pub ulp: Option<u64>,
}

/// What a scan of every cell found.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Cells that both have.
    pub cells: usize,
    /// Cells that differ.
    pub differing: usize,
    /// Those that are furthest apart, the worst first.
    pub worst: Vec<Differing>,
    /// All numbers of both sides, masked ones apart.
    pub both: Tally,
    /// All differences B − A.
    pub apart: Tally,
}

/// Two values of a tensor.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// What they are.
    pub kind: Kind,
    /// A.
    pub a: Side,
    /// B.
    pub b: Side,
    /// The plane that is shown.
    pub plane: Plane,
    /// What was found in all cells.
    pub found: Arc<Summary>,
    /// Numbers are still being computed or read: nothing is known of them yet.
    pub pending: bool,
    pub(super) key: Key,
}

impl Pairs {
    /// Of the tensor looked at; `None` where it was not computed.
    pub fn of(nav: &Navigator, state: &State, edits: &Edits) -> Option<Self> {
        let view = nav.view()?;
        let (kind, a, b, precision) = sides(nav, state, edits, view.run, view.node)?;
        let coming = matches!((&kind, &b), (Kind::Rounded(_), Side::Missing));
        let plane = Plane::of_view(view, nav.index());
        let n = view.cells.of.len();
        let first = view.cells.flats().next().unwrap_or(0);
        let key = (view.run, view.node, nav.round(), first, view.shape().len());
        // Colours are those of the whole tensor; what differs is counted in what the step shows of it.
        let (left, right, cells) = (a.clone(), b.clone(), view.cells.clone());
        let masked = is_masked(&nav.session.runs[view.run].program, view.node);
        let read = move || scan((&left, &right), n, &mut cells.flats(), precision, masked);
        let found = if coming { None } else { state.summary(nav, key, n, read) };
        let pending = found.is_none();
        Some(Self { kind, a, b, plane, found: found.unwrap_or_default(), pending, key })
    }

    /// B − A of a cell: 0 where both have the same bits.
    pub fn apart(&self, flat: usize) -> Option<f64> {
        value(&self.a, &self.b, 2, flat)
    }

    /// Whether both sides have numbers.
    pub fn is_whole(&self) -> bool {
        !matches!((&self.a, &self.b), (Side::Missing, _) | (_, Side::Missing))
    }
}

/// A cell of A (0), B (1) or B − A (2).
pub(super) fn value(a: &Side, b: &Side, which: usize, flat: usize) -> Option<f64> {
    match which {
        0 => a.get(flat),
        1 => b.get(flat),
        _ => Some(difference(a.get(flat)?, b.get(flat)?)),
    }
}

/// Both sides of a tensor: with a reference, with edits, or rounded.
fn sides(
    nav: &Navigator,
    state: &State,
    edits: &Edits,
    run: usize,
    node: NodeId,
) -> Option<(Kind, Side, Side, Precision)> {
    let now = nav.session.trace(run).ok()?.get(node)?;
    let precision = now.precision();
    let (kind, a, b) = if let Some(standing) = state.standing(nav, run, node) {
        with_reference(standing, now)
    } else if edits.count(nav) > 0 {
        let before = match edits.before(nav, run, node) {
            Before::Same => Side::Value(now.clone()),
            Before::Was(before) => Side::Value(before),
            Before::None => Side::Missing,
        };
        (Kind::Edited, before, Side::Value(now))
    } else {
        let rounding = nav.round().unwrap_or(Rounding::Decimals(4));
        let rounded = if state.has_rounded(nav, run, rounding) {
            Side::Value(nav.session.rounded(run, rounding).ok()?.get(node)?)
        } else {
            Side::Missing
        };
        (Kind::Rounded(rounding), Side::Value(now), rounded)
    };
    Some((kind, a, b, precision))
}

/// How much a tensor differs, next to its largest number; over every cell. `None` where there is nothing to compare,
/// or while the cells are read.
pub fn change(nav: &Navigator, state: &State, edits: &Edits, run: usize, node: NodeId) -> Option<f64> {
    let (_, a, b, precision) = sides(nav, state, edits, run, node)?;
    let n = nav.session.runs[run].program.node(node).shape.len();
    let masked = is_masked(&nav.session.runs[run].program, node);
    let found = state
        .summary(nav, (run, node, nav.round(), 0, n), n, move || scan((&a, &b), n, &mut (0..n), precision, masked))?;
    let reach = |t: &Tally| t.range().map_or(0.0, |(min, max)| min.abs().max(max.abs()));
    let all = reach(&found.both);
    Some(if all > 0.0 { reach(&found.apart) / all } else { 0.0 })
}

fn with_reference(standing: Standing<'_>, now: AnyValue) -> (Kind, Side, Side) {
    let Standing { reference, mode, checked, theirs } = standing;
    let beyond = checked.filter(|c| matches!(c.state, Verdict::Drift | Verdict::Diverged));
    let isolated = mode == Mode::Isolated;
    let note = beyond.map(|c| {
        let key = match (isolated, c.state) {
            (true, Verdict::Drift) => "compare.recomputed_drift",
            (true, _) => "compare.recomputed",
            (false, Verdict::Drift) => "compare.computed_drift",
            (false, _) => "compare.computed",
        };
        let worst = crate::debug::compare::words::worst(c, NumberFormat::Shortest);
        Msg::new(key).arg("worst", worst)
    });
    let kind = Kind::Reference { name: reference.to_owned(), isolated, note };
    (kind, Side::Value(now), theirs.map_or(Side::Missing, Side::Cells))
}

fn difference(a: f64, b: f64) -> f64 {
    if a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() { 0.0 } else { b - a }
}

/// `masked`: a large negative number is a hidden score.
fn scan(
    (a, b): (&Side, &Side),
    n: usize,
    seen: &mut dyn Iterator<Item = usize>,
    precision: Precision,
    masked: bool,
) -> Summary {
    let mut found = Summary::default();
    let hidden = |x: f64| masked && x < MASKED_BELOW;
    for flat in 0..n {
        let pair = (a.get(flat), b.get(flat));
        for x in [pair.0, pair.1].into_iter().flatten() {
            found.both.take(x, hidden(x));
        }
        let (Some(x), Some(y)) = pair else { continue };
        found.apart.take(difference(x, y), hidden(x) && hidden(y));
    }
    for flat in seen {
        let (Some(x), Some(y)) = (a.get(flat), b.get(flat)) else { continue };
        found.cells += 1;
        let apart = difference(x, y);
        if apart != 0.0 {
            found.differing += 1;
            found.worst.push(Differing { flat, a: x, b: y, ulp: ulps(x, y, precision) });
            if found.worst.len() >= 2 * WORST {
                keep_worst(&mut found.worst);
            }
        }
    }
    keep_worst(&mut found.worst);
    found
}

/// What is no number is worst; then the largest difference, the first of equal ones first.
fn keep_worst(all: &mut Vec<Differing>) {
    let size = |d: &Differing| {
        let apart = (d.b - d.a).abs();
        if apart.is_nan() { f64::INFINITY } else { apart }
    };
    all.sort_by(|x, y| size(y).total_cmp(&size(x)).then(x.flat.cmp(&y.flat)));
    all.truncate(WORST);
}

/// How many numbers of the type lie between two, the nearer end included.
pub fn ulps(a: f64, b: f64, precision: Precision) -> Option<u64> {
    if !a.is_finite() || !b.is_finite() {
        return None;
    }
    // In the order of the numbers: those below 0 run the other way.
    let wide = |x: f64| {
        let bits = x.to_bits() as i64;
        if bits < 0 { i64::MIN - bits } else { bits }
    };
    let narrow = |x: f64| {
        let bits = (x as f32).to_bits() as i32;
        i64::from(if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits })
    };
    Some(match precision {
        Precision::F64 => wide(a).abs_diff(wide(b)),
        Precision::F32 => narrow(a).abs_diff(narrow(b)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_between_two_are_counted() {
        let next = |x: f64| f64::from_bits(x.to_bits() + 1);
        assert_eq!(ulps(1.0, next(1.0), Precision::F64), Some(1));
        assert_eq!(ulps(0.0, -0.0, Precision::F64), Some(0));
        assert_eq!(ulps(-f64::from_bits(1), f64::from_bits(2), Precision::F64), Some(3));
        assert_eq!(ulps(1.0, 1.0 + f64::from(f32::EPSILON), Precision::F32), Some(1));
        assert_eq!(ulps(-1.0, 1.0, Precision::F32), Some(2 * 0x3f80_0000));
        assert_eq!(ulps(f64::NAN, 1.0, Precision::F64), None);
    }

    #[test]
    fn every_cell_is_scanned_and_the_worst_come_first() {
        let cells = |v: &[f64]| Side::Cells(Arc::new(v.iter().map(|x| Some(*x)).collect()));
        let a = cells(&[1.0, 2.0, f64::NAN, 4.0, 5.0]);
        let b = cells(&[1.0, 2.5, f64::NAN, f64::NAN, 3.0]);
        let found = scan((&a, &b), 5, &mut (0..5), Precision::F64, false);
        assert_eq!((found.cells, found.differing), (5, 3));
        assert_eq!(found.worst.iter().map(|d| d.flat).collect::<Vec<_>>(), [3, 4, 1]);
        assert_eq!(found.apart.range(), Some((-2.0, 0.5)));
        assert_eq!(found.both.range(), Some((1.0, 5.0)));
    }
}
