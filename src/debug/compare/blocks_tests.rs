use super::*;
use crate::debug::compare::measure::Policy;

fn compared(ours: &[f64], theirs: &[f64], kind: Kind, tolerance: Tolerance) -> (Measure, State) {
    let cells = sides(ours, ours, theirs);
    measure(&cells, kind, Unit::F32, &tolerance, Mode::Isolated)
}

/// Cells that the reference has all of.
fn sides<'a>(ours: &'a [f64], second: &'a [f64], theirs: &'a [f64]) -> Sides<'a> {
    let [ours, second, theirs] = [ours, second, theirs].map(Cells::Wide);
    Sides { ours, second: Some(second), theirs, there: None }
}

fn ours(a: &[f64], b: &[f64]) -> (Measure, State) {
    compared(a, b, Kind::Numbers, Tolerance::default())
}

fn of(policy: Policy, rtol: Option<f64>, atol: Option<f64>) -> Tolerance {
    Tolerance { policy, rtol, atol }
}

#[test]
fn the_measure_is_of_the_tensor_not_of_its_cells() {
    // A cell near 0 may be off by all of itself.
    let (m, state) = ours(&[3.0, 4.0, 1e-9], &[3.0, 4.0, 0.0]);
    assert_eq!(state, State::Match);
    // √(1e-18/25) and 1e-9/4.
    assert!((m.rms - 2e-10).abs() < 1e-20 && (m.max - 2.5e-10).abs() < 1e-20);
    assert_eq!(m.worst, [2]);
    // The largest difference has a limit of its own: 1 cell of 10,000 off by 1e-5.
    let theirs = vec![1.0; 10_000];
    let mut off = theirs.clone();
    off[77] += 1e-5;
    let (m, state) = ours(&off, &theirs);
    assert!(m.rms < 1e-6 && m.max > 5e-6);
    assert_eq!((state, m.differing, m.first), (State::Diverged, 1, Some(77)));
    // Sizes do not matter, not even those whose squares overflow.
    let (m, state) = ours(&[1e300, 2e300], &[1e300, 2.001e300]);
    assert_eq!(state, State::Diverged);
    assert!((m.rms - 1e-3 / 2.237_f64).abs() < 1e-4, "{}", m.rms);
    assert_eq!(ours(&[0.0; 3], &[0.0; 3]).1, State::Match);
    let (m, state) = ours(&[0.0, 1e-30], &[0.0; 2]);
    assert_eq!((state, m.rms, m.max), (State::Diverged, f64::INFINITY, f64::INFINITY));
    assert_eq!(ours(&[], &[]).1, State::Match);
}

#[test]
fn what_is_no_number_must_be_none_on_both_sides() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    assert_eq!(ours(&[nan, inf, -inf, 1.0], &[nan, inf, -inf, 1.0]).1, State::Match);
    for (a, b) in [(nan, 1.0), (1.0, nan), (inf, 1.0), (1.0, -inf), (inf, -inf), (nan, inf)] {
        let (m, state) = ours(&[a, 1.0], &[b, 1.0]);
        assert_eq!((state, m.rms, m.max), (State::Diverged, inf, inf), "{a} {b}");
        assert_eq!((m.first, &m.worst[..]), (Some(0), &[0][..]));
    }
}

#[test]
fn hidden_scores_are_hidden_whatever_number_says_so() {
    let scores = |a: &[f64], b: &[f64]| compared(a, b, Kind::Scores, Tolerance::default()).1;
    let inf = f64::NEG_INFINITY;
    for hidden in [inf, -1e9, f64::from(f32::MIN), f64::MIN, -1e4 + 3.0] {
        assert_eq!(scores(&[1.0, inf], &[1.0, hidden]), State::Match, "{hidden}");
        assert_eq!(scores(&[1.0, hidden], &[1.0, inf]), State::Match, "{hidden}");
        assert_eq!(scores(&[1.0, 2.0], &[1.0, hidden]), State::Diverged, "{hidden}");
        // Elsewhere these are numbers like any other.
        assert_eq!(ours(&[1.0, -1e9], &[1.0, hidden]).1 == State::Match, hidden == -1e9);
    }
    // Others' measures take them as numbers.
    let numpy = of(Policy::Numpy, None, None);
    assert_eq!(compared(&[inf], &[-1e9], Kind::Scores, numpy).1, State::Diverged);
}

#[test]
fn rounding_makes_drift_and_no_more() {
    let theirs = [1.0, -1.0];
    let with = |rounding: f64, tolerance: Tolerance| {
        let a = [1.0 + 1e-4, -1.0];
        let second = a.map(|x| x + rounding);
        let cells = sides(&a, &second, &theirs);
        measure(&cells, Kind::Numbers, Unit::F32, &tolerance, Mode::Isolated).1
    };
    assert_eq!(with(1.3e-5, Tolerance::default()), State::Drift);
    assert_eq!(with(1.2e-5, Tolerance::default()), State::Diverged);
    // Limits that a user set are meant.
    assert_eq!(with(1e-5, of(Policy::Ours, Some(1e-5), None)), State::Diverged);
    assert_eq!(with(1e-5, of(Policy::Torch, None, None)), State::Diverged);
    assert_eq!(with(0.0, of(Policy::Ours, None, Some(1.1e-4))), State::Match);
    assert_eq!(with(0.0, of(Policy::Ours, Some(1e-4), None)), State::Match);
    let seen = |one: [f64; 2], other: [f64; 2], kind: Kind, unit: Unit| {
        measure(&sides(&one, &other, &theirs), kind, unit, &Tolerance::default(), Mode::Isolated).0.rounding
    };
    let share = 0.5f64.powi(29);
    let far = seen([1.0, 2.0], [1.0, 2.5], Kind::Numbers, Unit::F64);
    assert!((far.max / share - 0.5).abs() < 1e-12);
    assert!((far.rms / share - 0.5 / 2f64.sqrt()).abs() < 1e-12);
    let none = seen([f64::NAN; 2], [1.0; 2], Kind::Numbers, Unit::F32);
    assert_eq!(none, Rounding::default());
    // The least numbers of both types hide the same cell.
    let narrow = [1.5, f64::from(f32::MIN)];
    let far = seen([1.0, f64::MIN], narrow, Kind::Scores, Unit::F32);
    assert_eq!((far.rms, far.max), (0.5, 0.5));
}

#[test]
fn where_rounding_decides_whether_a_cell_is_a_number_it_is_no_difference() {
    let inf = f64::INFINITY;
    let of = |second: f64, theirs: f64, kind: Kind, unit: Unit| {
        let (ours, second, theirs) = ([inf, 1.0], [second, 1.0], [theirs, 1.0]);
        let cells = sides(&ours, &second, &theirs);
        measure(&cells, kind, unit, &Tolerance::default(), Mode::Isolated).1
    };
    // A probability rounded to 0 has no logarithm; what it was rounded from has.
    assert_eq!(of(25.0, 25.9, Kind::Numbers, Unit::F16), State::Drift);
    assert_eq!(of(inf, 25.9, Kind::Numbers, Unit::F16), State::Diverged);
    assert_eq!(of(25.0, 25.9, Kind::Numbers, Unit::F64), State::Diverged);
}

#[test]
fn cells_that_the_reference_lacks_are_not_measured() {
    let (ours, theirs) = ([1.0, 2.0, 3.0], [f64::NAN, 2.0, 3.0]);
    let with = |there: &[bool]| {
        let cells = Sides { there: Some(there), ..sides(&ours, &ours, &theirs) };
        let tolerance = Tolerance::default();
        measure(&cells, Kind::Numbers, Unit::F64, &tolerance, Mode::Isolated)
    };
    let (m, state) = with(&[false, true, true]);
    assert_eq!((state, m.cells, m.differing), (State::Match, 2, 0));
    assert_eq!(with(&[true; 3]).1, State::Diverged);
}

#[test]
fn policies_of_others_hold_for_each_cell() {
    let torch = |a, b| compared(&[a, 1.0], &[b, 1.0], Kind::Numbers, of(Policy::Torch, None, None)).1;
    // 1e-5 + 1.3e-6·100
    assert_eq!(torch(100.000_139, 100.0), State::Match);
    assert_eq!(torch(100.000_141, 100.0), State::Diverged);
    assert_eq!(torch(f64::NAN, f64::NAN), State::Diverged);
    assert_eq!(torch(f64::INFINITY, f64::INFINITY), State::Match);
    let numpy = |a, b| compared(&[a], &[b], Kind::Numbers, of(Policy::Numpy, None, None)).1;
    assert_eq!(numpy(1.0 + 0.9e-7, 1.0), State::Match);
    assert_eq!(numpy(1.0 + 1.1e-7, 1.0), State::Diverged);
    assert_eq!(numpy(1e-30, 0.0), State::Diverged);
    assert_eq!(numpy(f64::NAN, f64::NAN), State::Match);
    let wide = of(Policy::Numpy, Some(0.0), Some(0.5));
    assert_eq!(compared(&[1.0], &[1.5], Kind::Numbers, wide).1, State::Match);
}

#[test]
fn ids_are_equal_or_not() {
    let exact = |a: &[f64], b: &[f64]| compared(a, b, Kind::Exact, of(Policy::Ours, Some(1.0), None));
    assert_eq!(exact(&[1e9, 2.0], &[1e9, 2.0]).1, State::Match);
    let (m, state) = exact(&[1e9, 2.0], &[1e9 + 1.0, 2.0]);
    assert_eq!((state, m.differing, m.first), (State::Diverged, 1, Some(0)));
}

#[test]
fn the_worst_cells_come_first() {
    let theirs = vec![1.0; 100];
    let off: Vec<f64> = (0..100).map(|i| 1.0 + f64::from(i * 37 % 100)).collect();
    let (m, _) = ours(&off, &theirs);
    assert_eq!((m.worst.len(), m.differing, m.cells), (MAX_CELLS, 99, 100));
    assert!(m.worst.windows(2).all(|w| off[w[0]] >= off[w[1]]));
    assert_eq!(off[m.worst[0]], 100.0);
}
