use super::*;

const NONE: Rounding = Rounding { rms: 0.0, max: 0.0 };

fn compared(ours: &[f64], theirs: &[f64], kind: Kind, tolerance: Tolerance) -> (Measure, State) {
    measure(
        &|i| ours[i],
        theirs,
        kind,
        NONE,
        Unit::F32,
        &tolerance,
        Mode::Isolated,
    )
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
    assert_eq!(
        (state, m.differing, m.first),
        (State::Diverged, 1, Some(77))
    );
    // Sizes do not matter, not even those whose squares overflow.
    let (m, state) = ours(&[1e300, 2e300], &[1e300, 2.001e300]);
    assert_eq!(state, State::Diverged);
    assert!((m.rms - 1e-3 / 2.237_f64).abs() < 1e-4, "{}", m.rms);
    assert_eq!(ours(&[0.0; 3], &[0.0; 3]).1, State::Match);
    let (m, state) = ours(&[0.0, 1e-30], &[0.0; 2]);
    assert_eq!(
        (state, m.rms, m.max),
        (State::Diverged, f64::INFINITY, f64::INFINITY)
    );
    assert_eq!(ours(&[], &[]).1, State::Match);
}

#[test]
fn what_is_no_number_must_be_none_on_both_sides() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    assert_eq!(
        ours(&[nan, inf, -inf, 1.0], &[nan, inf, -inf, 1.0]).1,
        State::Match
    );
    for (a, b) in [
        (nan, 1.0),
        (1.0, nan),
        (inf, 1.0),
        (1.0, -inf),
        (inf, -inf),
        (nan, inf),
    ] {
        let (m, state) = ours(&[a, 1.0], &[b, 1.0]);
        assert_eq!(
            (state, m.rms, m.max),
            (State::Diverged, inf, inf),
            "{a} {b}"
        );
        assert_eq!((m.first, &m.worst[..]), (Some(0), &[0][..]));
    }
}

#[test]
fn hidden_scores_are_hidden_whatever_number_says_so() {
    let scores = |a: &[f64], b: &[f64]| compared(a, b, Kind::Scores, Tolerance::default()).1;
    let inf = f64::NEG_INFINITY;
    for hidden in [inf, -1e9, f64::from(f32::MIN), f64::MIN, -1e4 + 3.0] {
        assert_eq!(
            scores(&[1.0, inf], &[1.0, hidden]),
            State::Match,
            "{hidden}"
        );
        assert_eq!(
            scores(&[1.0, hidden], &[1.0, inf]),
            State::Match,
            "{hidden}"
        );
        assert_eq!(
            scores(&[1.0, 2.0], &[1.0, hidden]),
            State::Diverged,
            "{hidden}"
        );
        // Elsewhere these are numbers like any other.
        assert_eq!(
            ours(&[1.0, -1e9], &[1.0, hidden]).1 == State::Match,
            hidden == -1e9
        );
    }
    // Others' measures take them as numbers.
    let numpy = of(Policy::Numpy, None, None);
    assert_eq!(
        compared(&[inf], &[-1e9], Kind::Scores, numpy).1,
        State::Diverged
    );
}

#[test]
fn rounding_makes_drift_and_no_more() {
    let theirs = [1.0, -1.0];
    let with = |rounding: f64, tolerance: Tolerance| {
        let rounding = Rounding {
            rms: rounding,
            max: rounding,
        };
        let a = [1.0 + 1e-4, -1.0];
        measure(
            &|i| a[i],
            &theirs,
            Kind::Numbers,
            rounding,
            Unit::F32,
            &tolerance,
            Mode::Isolated,
        )
        .1
    };
    assert_eq!(with(1.3e-5, Tolerance::default()), State::Drift);
    assert_eq!(with(1.2e-5, Tolerance::default()), State::Diverged);
    // Limits that a person set are meant.
    assert_eq!(
        with(1e-5, of(Policy::Ours, Some(1e-5), None)),
        State::Diverged
    );
    assert_eq!(with(1e-5, of(Policy::Torch, None, None)), State::Diverged);
    assert_eq!(
        with(0.0, of(Policy::Ours, None, Some(1.1e-4))),
        State::Match
    );
    assert_eq!(with(0.0, of(Policy::Ours, Some(1e-4), None)), State::Match);
    let seen = rounding(
        &|i| [1.0, 2.0][i],
        &|i| [1.0, 2.5][i],
        2,
        Kind::Numbers,
        Unit::F64,
    );
    let share = 0.5f64.powi(29);
    assert!((seen.max / share - 0.5).abs() < 1e-12);
    assert!((seen.rms / share - 0.5 / 2f64.sqrt()).abs() < 1e-12);
    assert_eq!(
        rounding(&|_| f64::NAN, &|_| 1.0, 2, Kind::Numbers, Unit::F32),
        NONE
    );
    // The least numbers of both types hide the same cell.
    let (wide, narrow) = ([1.0, f64::MIN], [1.5, f64::from(f32::MIN)]);
    let seen = rounding(&|i| wide[i], &|i| narrow[i], 2, Kind::Scores, Unit::F32);
    assert_eq!((seen.rms, seen.max), (0.5, 0.5));
}

#[test]
fn policies_of_others_hold_for_each_cell() {
    let torch = |a, b| {
        compared(
            &[a, 1.0],
            &[b, 1.0],
            Kind::Numbers,
            of(Policy::Torch, None, None),
        )
        .1
    };
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
    assert_eq!(
        compared(&[1.0], &[1.5], Kind::Numbers, wide).1,
        State::Match
    );
}

#[test]
fn ids_are_equal_or_not() {
    let exact =
        |a: &[f64], b: &[f64]| compared(a, b, Kind::Exact, of(Policy::Ours, Some(1.0), None));
    assert_eq!(exact(&[1e9, 2.0], &[1e9, 2.0]).1, State::Match);
    let (m, state) = exact(&[1e9, 2.0], &[1e9 + 1.0, 2.0]);
    assert_eq!((state, m.differing, m.first), (State::Diverged, 1, Some(0)));
}

#[test]
fn the_worst_cells_come_first() {
    let theirs = vec![1.0; 100];
    let off: Vec<f64> = (0..100).map(|i| 1.0 + f64::from(i * 37 % 100)).collect();
    let (m, _) = ours(&off, &theirs);
    assert_eq!((m.worst.len(), m.differing, m.cells), (MOST_CELLS, 99, 100));
    assert!(m.worst.windows(2).all(|w| off[w[0]] >= off[w[1]]));
    assert_eq!(off[m.worst[0]], 100.0);
}
