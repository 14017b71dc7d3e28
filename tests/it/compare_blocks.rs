//! Measuring block by block on all cores gives what plain loops give, cell by cell.

use rstest::rstest;
use tui_transformer::debug::compare::blocks::measure;
use tui_transformer::debug::compare::cells::Cells;
use tui_transformer::debug::compare::measure::{Kind, MAX_CELLS, Rounding, Sides, limits};
use tui_transformer::debug::compare::{Limits, Measure, Mode, Policy, State, Tolerance, Unit};
use tui_transformer::tensor::{Shape, Tensor, Value};
use tui_transformer::trace::AnyValue;

/// Numbers without a pattern, from −1 to 1.
fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut x = seed;
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// All that both measures say, but for the last digits of the sums.
fn same(a: &Measure, b: &Measure) {
    let near = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-12 * b.abs();
    assert!(near(a.rms, b.rms) && near(a.max, b.max) && near(a.difference, b.difference), "{a:?}\n{b:?}");
    assert_eq!((a.cells, a.differing, a.first), (b.cells, b.differing, b.first));
    assert_eq!(a.worst, b.worst);
}

#[rstest]
fn blocks_measure_what_cells_do(
    #[values(0, 1, 7, 1023, 1024, 1025, 3000)] n: usize,
    #[values(Kind::Numbers, Kind::Scores, Kind::Exact)] kind: Kind,
    #[values(Policy::Ours, Policy::Torch, Policy::Numpy)] policy: Policy,
) {
    for size in [1.0, 1e-300, 1e300] {
        for how in ["equal", "near", "few", "odd"] {
            compared(n, kind, policy, size, how);
        }
    }
}

/// More cells than one thread takes at a time.
#[rstest]
fn threads_measure_what_one_does(#[values("near", "few", "odd")] how: &str) {
    compared(140_001, Kind::Scores, Policy::Ours, 1.0, how);
}

fn compared(n: usize, kind: Kind, policy: Policy, size: f64, how: &str) {
    let theirs: Vec<f64> = noise(n, 1).into_iter().map(|x| x * size).collect();
    let off = noise(n, 2);
    let mut ours = theirs.clone();
    let mut theirs = theirs;
    match how {
        "near" => ours.iter_mut().zip(&off).for_each(|(x, e)| *x += *x * e * 1e-6),
        "few" => (0..n).step_by(997).for_each(|i| ours[i] *= 1.0 + off[i]),
        "odd" => {
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e9, -1e4, 0.0, f64::MAX, -f64::MAX];
            for i in (0..n).step_by(61) {
                ours[i] = odd[i / 61 % odd.len()];
                theirs[i] = odd[i / 61 / 3 % odd.len()];
            }
        }
        _ => {}
    }
    let tolerance = Tolerance { policy, ..Tolerance::default() };
    let limits = limits(kind, Unit::F32, &tolerance);
    let expected = by_cell(&ours, &theirs, kind, limits);
    let value = AnyValue::F64(Value::Float(Tensor::new(Shape::new(&[n]), ours.clone())));
    for here in [Cells::Wide(&ours), Cells::from(&value)] {
        let sides = Sides { ours: here, second: None, theirs: Cells::Wide(&theirs), there: None };
        let (found, state) = measure(&sides, kind, Unit::F32, &tolerance, Mode::Cumulative);
        same(&found, &expected);
        let fits = match limits {
            Limits::Whole { rms, max, atol } => {
                expected.rms <= rms && expected.max <= max || expected.difference <= atol
            }
            Limits::Cells { .. } => expected.differing == 0,
        };
        assert_eq!(state == State::Match, fits, "{expected:?}");
    }
}

/// The same in plain loops, a cell at a time.
fn by_cell(ours: &[f64], theirs: &[f64], kind: Kind, limits: Limits) -> Measure {
    let whole = matches!(limits, Limits::Whole { .. });
    let nan_equal = !matches!(limits, Limits::Cells { nan_equal: false, .. });
    let hidden = |x: f64| kind == Kind::Scores && whole && x <= -5e3;
    let apart = |(a, b): (f64, f64)| {
        if a.is_nan() && b.is_nan() {
            return (!nan_equal).then_some(f64::INFINITY);
        }
        if a == b && a.is_infinite() || hidden(a) && hidden(b) {
            return None;
        }
        let odd = a.is_nan() || b.is_nan() || hidden(a) != hidden(b);
        Some(if odd { f64::INFINITY } else { (a - b).abs() })
    };
    let pairs = || ours.iter().copied().zip(theirs.iter().copied());
    let far: Vec<(usize, f64)> = pairs().enumerate().filter_map(|(i, p)| Some((i, apart(p)?))).collect();
    let most = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    let norm = |all: &[f64]| {
        let most = most(all);
        let sum: f64 = all.iter().map(|x| if most > 0.0 { (x / most).powi(2) } else { 0.0 }).sum();
        if most.is_finite() { sum.sqrt() * most } else { f64::INFINITY }
    };
    let differences: Vec<f64> = far.iter().map(|f| f.1).collect();
    let sizes: Vec<f64> = far.iter().map(|f| theirs[f.0].abs()).filter(|b| b.is_finite()).collect();
    let share = |x: f64, of: f64| {
        if x == 0.0 {
            0.0
        } else if of == 0.0 {
            f64::INFINITY
        } else {
            x / of
        }
    };
    let largest = most(&sizes);
    let allowed = |i: usize| match limits {
        Limits::Whole { max, atol, .. } => (max * largest).max(atol),
        Limits::Cells { rtol, atol, .. } => atol + rtol * theirs[i].abs(),
    };
    let beyond: Vec<usize> = far.iter().filter(|(i, f)| *f == f64::INFINITY || *f > allowed(*i)).map(|f| f.0).collect();
    let mut worst: Vec<(usize, f64)> = far.iter().copied().filter(|f| f.1 > 0.0).collect();
    worst.sort_by(|a, b| b.1.total_cmp(&a.1));
    worst.truncate(beyond.len().clamp(1, MAX_CELLS));
    Measure {
        rms: share(norm(&differences), norm(&sizes)),
        max: share(most(&differences), most(&sizes)),
        difference: most(&differences),
        limits,
        rounding: Rounding::default(),
        cells: ours.len(),
        differing: beyond.len(),
        first: beyond.first().copied(),
        worst: worst.into_iter().map(|w| w.0).collect(),
    }
}
