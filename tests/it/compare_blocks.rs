//! Measuring block by block gives what measuring cell by cell gives.

use rstest::rstest;
use tui_transformer::debug::compare::blocks::{self, Cells};
use tui_transformer::debug::compare::measure::{Kind, Policy, Sides, Tolerance, Unit, limits, measure};
use tui_transformer::debug::compare::{Measure, Mode};
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
    let at = |i: usize| ours[i];
    let sides = Sides { ours: &at, second: &at, theirs: &theirs, there: None };
    let (cells, state) = measure(&sides, kind, Unit::F32, &tolerance, Mode::Cumulative);
    let value = AnyValue::F64(Value::Float(Tensor::new(Shape::new(&[n]), ours.clone())));
    let limits = limits(kind, Unit::F32, &tolerance);
    for here in [Cells::Wide(&ours), Cells::Value(&value)] {
        let (found, also) = blocks::measure(&here, &Cells::Wide(&theirs), kind, limits);
        same(&found, &cells);
        assert_eq!(also, state, "{cells:?}");
    }
}
