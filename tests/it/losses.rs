//! Every loss and its gradient against torch 2, in f64: the loss first, then the gradient of the head.

use tui_transformer::scenario::syntax;
use tui_transformer::session::{self, Options, Session};
use tui_transformer::text::Lang;

#[rustfmt::skip]
const SUM: [f64; 10] = [1.1834284482559676, -0.1816861327942851, 0.04118902066017409, 0.1687301976346131, 0.09472113691928699, -0.1533748097159619, -0.1836146805156662, 0.08696499587499819, 0.11218578905578791, 0.01488448288105279];

#[rustfmt::skip]
const SMOOTH: [f64; 10] = [0.5586428160853225, -0.04500648870920613, 0.022618562442280256, 0.019576732544871026, 0.017129267861984553, -0.03556938101643174, -0.07120489350522208, 0.027877220847221613, 0.012950818574151552, 0.05162816096035088];

#[rustfmt::skip]
const WEIGHTED: [f64; 10] = [0.5961113230857508, -0.045922493113303625, 0.024158691636045827, 0.06606843478861285, 0.007512348534425131, -0.0734836264505235, -0.11347369127749864, 0.03841014457887852, 0.0493249348144777, 0.04740525648888571];

#[rustfmt::skip]
const BOTH: [f64; 10] = [0.9107842883523318, -0.01265992715311906, 0.037310983257610175, -0.003515619945849792, -0.041961092996888376, -0.025202364665292472, -0.15159136029447187, 0.054621020150007464, -0.012108618592317676, 0.1551069802403216];

#[rustfmt::skip]
const MSE: [f64; 10] = [3.6365625, 0.7316666666666667, 0.08833333333333332, -1.46125, -0.5391666666666667, 0.00499999999999998, 0.6116666666666666, 0.2, -0.7666666666666667, 1.5583333333333333];

#[rustfmt::skip]
const SQUARES: [f64; 10] = [43.63875, 8.78, 1.06, -17.535, -6.47, 0.06, 7.34, 2.4, -9.2, 18.7];

#[rustfmt::skip]
const HALF: [f64; 10] = [21.819375, 4.39, 0.53, -8.7675, -3.235, 0.03, 3.67, 1.2, -4.6, 9.35];

#[rustfmt::skip]
const GIVEN: [f64; 10] = [-0.32500000000000007, 0.6, -0.8, 2.3, 1.1, 0.2, -0.2, -1.9, 1.2, 1.05];

fn open(loss: &str) -> Session {
    let text = format!(
        "(name: \"a\", vocabulary: Size(3), model: (d_model: 3, heads: 1, d_ff: 1, encoder: (layers: [])),
          source: (vectors: [[[0.5, -1, 2], [1, 0, -0.5], [-2, 1, 0.75], [0.1, 0.2, 0.3]]]),
          labels: Ids([[2, 0, -1, 1]]),
          weights: (values: {{\"output.weight\": OutIn([[1, 0.5, -1], [0.25, 1, 1], [0, -0.5, 2]])}}),
          runs: [Training({loss})])"
    );
    let scenario = syntax::read("a.ron", &text).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
    session::open(scenario, None, Options::default()).unwrap_or_else(|p| panic!("{p:?}"))
}

fn check(loss: &str, theirs: &[f64]) {
    let s = open(loss);
    let backward = s.run_named("backward").expect("a loss has a backward run");
    let trace = s.trace(backward).expect("runs");
    let node = s.runs[backward].outputs.loss.expect("a loss");
    let gradient = trace.program().find("grad.output.weight").expect("a gradient");
    let ours: Vec<f64> =
        std::iter::once(trace.value(node).get(0)).chain((0..9).map(|i| trace.value(gradient).get(i))).collect();
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= 1e-13 * b.abs().max(1.0), "{loss} [{i}]: {a} for {b}");
    }
}

#[test]
fn cross_entropy_with_sum_smoothing_and_class_weights() {
    check("loss: CrossEntropy(reduction: Sum)", &SUM);
    check("loss: CrossEntropy(smoothing: 0.1)", &SMOOTH);
    check("loss: CrossEntropy(class_weights: [1, 2, 0.5])", &WEIGHTED);
    check("loss: CrossEntropy(class_weights: [1, 2, 0.5], smoothing: 0.2)", &BOTH);
}

#[test]
fn squared_errors_and_a_given_gradient() {
    let target = "[[[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]]";
    check(&format!("loss: SquaredError(target: {target})"), &MSE);
    check(&format!("loss: SquaredError(target: {target}, reduction: Sum)"), &SQUARES);
    check(&format!("loss: SquaredError(target: {target}, reduction: HalfSum)"), &HALF);
    check(&format!("loss: Gradient({target})"), &GIVEN);
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let problems = |loss: &str| {
        let text = format!(
            "(name: \"a\", model: (d_model: 2, heads: 1, d_ff: 1, encoder: (layers: [()])),
              source: (vectors: [[[1, 0]]]), weights: (init: [(with: Constant(1.0))]), runs: [Training({loss})])"
        );
        let scenario = syntax::read("a.ron", &text).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
        let found = session::open(scenario, None, Options::default()).expect_err("refused");
        (found[0].at.clone(), found[0].msg.key)
    };
    let at = |at: &str, key| (at.to_owned(), key);
    assert_eq!(problems("loss: SquaredError(target: [[[1]]])"), at("runs[0].loss.target", "loss.shape"));
    assert_eq!(problems("loss: Gradient([])"), at("runs[0].loss", "loss.shape"));
    assert_eq!(problems("loss: CrossEntropy(smoothing: 0.1)"), at("runs[0].loss", "loss.labels"));
    assert_eq!(problems("loss: CrossEntropy(smoothing: 2)"), at("runs[0].loss.smoothing", "scenario.below_one"));
}
