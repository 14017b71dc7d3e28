//! The expression language on the hand calculation: every printed tensor by its symbol, and what follows from them.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value as Json;
use tui_transformer::debug::eval_context::EvalContext;
use tui_transformer::debug::expr::{Array, Expr, ExprError, Fault};
use tui_transformer::debug::timeline::Timeline;
use tui_transformer::session::{Options, Session, open};
use tui_transformer::text::NumberFormat;

struct World {
    session: Session,
    timeline: Timeline,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let loaded = tui_transformer::scenario::load(Path::new("water_class")).expect("embedded");
        let session = open(loaded.scenario, None, Options::default()).expect("opens");
        let timeline = Timeline::new(&session, &session.steps);
        World { session, timeline }
    })
}

fn here(step: u32, past: bool) -> EvalContext<'static> {
    let w = world();
    EvalContext {
        session: &w.session,
        steps: &w.session.steps,
        timeline: &w.timeline,
        values: &w.session,
        at: w.session.steps.position(step).expect("a step"),
        past,
        shown: None,
        it: None,
    }
}

fn at(step: u32, text: &str) -> Result<Array, ExprError> {
    Expr::parse(text)?.eval(&here(step, false))
}

fn number(step: u32, text: &str) -> f64 {
    let array = at(step, text).unwrap_or_else(|e| panic!("{text}: {e}"));
    array.number().unwrap_or_else(|| panic!("{text}: {array:?}"))
}

fn flat(json: &Json, out: &mut Vec<f64>) {
    match json {
        Json::Array(list) => list.iter().for_each(|x| flat(x, out)),
        Json::String(s) if s == "-inf" => out.push(f64::NEG_INFINITY),
        x => out.push(x.as_f64().expect("a number")),
    }
}

#[test]
fn every_symbol_is_its_tensor_at_its_step() {
    let golden: Vec<Json> = serde_json::from_str(include_str!("../data/water_class/steps.json")).expect("JSON");
    let mut compared = 0;
    for step in golden {
        let number = step["step"].as_u64().expect("a number") as u32;
        for (symbol, tensor) in step["tensors"].as_object().expect("tensors") {
            let mut printed = Vec::new();
            flat(&tensor["values"], &mut printed);
            // In quotes, since `mean` and `sum` are functions; from this step on it is known.
            // Steps 8 to 11 show a row of PE each; the name is that of the whole.
            let row = (symbol == "PE").then(|| number - 8);
            let text = row.map_or_else(|| format!("\"{symbol}\""), |row| format!("PE[{row}]"));
            let found = Expr::parse(&text).expect("a name").eval(&here(number, true));
            let found = found.unwrap_or_else(|e| panic!("step {number} {symbol}: {e}"));
            let values = found.to_vec();
            assert_eq!(values.len(), printed.len(), "step {number} {symbol}");
            for (x, p) in values.iter().zip(&printed) {
                let same = if *p == f64::NEG_INFINITY {
                    *x < -1e8
                } else {
                    NumberFormat::default().format(*x).parse::<f64>() == Ok(*p + 0.0)
                };
                assert!(same, "step {number} {symbol}: {x} for {p}");
                compared += 1;
            }
        }
    }
    assert!(compared > 2000, "{compared}");
}

#[test]
fn figures_of_the_hand_calculation() {
    let close = |step, text, wanted: f64| {
        let x = number(step, text);
        assert!((x - wanted).abs() < 5e-5, "{text}: {x}");
    };
    close(17, "Q1[0][0]", 1.1);
    close(23, "score1[0,0]", 1.1193);
    close(25, "A1[0,0]", 0.2023);
    close(25, "A1[0,:].sum()", 1.0);
    close(31, "X1[0,0]", 0.9129);
    close(32, "LN1a[0,0]", -0.0286);
    close(32, "X1[0,:].mean()", 0.9428);
    close(32, "var(X1[0,:])", 1.0933);
    close(35, "R1[0,0]", 0.0);
    close(90, "loss[0]", 1.4325);
    close(90, "mean_loss", 1.9465);
    close(90, "-ln(P[0, target_ids[0]])", 1.4325);
    close(35, "zeros(R1)", 18.0 / 32.0);
}

#[test]
fn arithmetic_of_tensors_gives_the_recorded_ones() {
    for (step, text) in [
        (23, "max(abs(Q1 @ K1.T / sqrt(2) - score1)) < 1e-12"),
        (25, "all(softmax(score1) = A1 ± 1e-12)"),
        (27, "all(A1 @ V1 = O1 ± 1e-12)"),
        (31, "all(X_enc_in + AttnOut1 = X1 ± 1e-12)"),
        (35, "all(max(H1, 0) = R1)"),
        (85, "all(row_sum(training::output.probs) = 1 ± 1e-12)"),
        (41, "all(encoder.1.self_attn.scores[0,:,:] = score1_L2)"),
        (41, "all(encoder.1.self_attn.scores[head=1] = score2_L2)"),
        (93, "P[0,argmax(training::P[0]):].count() = 8 - training:P[0].argmax()"),
        (88, "P[3].argmax() = argmax(Logits[3])"),
    ] {
        assert_eq!(number(step, text), 1.0, "{text}");
    }
}

#[test]
fn the_nearest_step_says_what_a_symbol_is() {
    let path = |step, name: &str| {
        let target = here(step, false).find(name).expect("found");
        let program = &world().session.runs[target.run].program;
        (program.node(target.node).path.to_string(), target.run)
    };
    assert_eq!(path(25, "A1"), ("encoder.0.self_attn.weights".into(), 0));
    assert_eq!(path(30, "A1"), ("encoder.0.self_attn.weights".into(), 0));
    assert_eq!(path(60, "A1"), ("decoder.0.self_attn.weights".into(), 0));
    // Not shown yet: the first that will be.
    assert_eq!(path(1, "A1"), ("encoder.0.self_attn.weights".into(), 0));
    // In a decoding call, paths are those of the call.
    let run = world().session.run_named("inference").expect("there is one");
    assert_eq!(path(93, "output.probs"), ("gen.1.output.probs".into(), run));
    assert_eq!(path(93, "P"), ("gen.1.output.probs".into(), run));
    assert_eq!(path(93, "training::P"), ("output.probs".into(), 0));
    assert_eq!(path(93, "training:P"), ("output.probs".into(), 0));
    assert_eq!(path(10, "inference::gen.2.output.probs").1, run);
}

#[test]
fn what_comes_later_is_not_known_yet_where_only_the_past_counts() {
    let fault = |step, text: &str| {
        let e = Expr::parse(text).expect(text).eval(&here(step, true));
        e.map(|_| ()).map_err(|e| e.fault)
    };
    assert_eq!(fault(24, "A1"), Err(Fault::NotYet));
    assert_eq!(fault(25, "A1"), Ok(()));
    assert_eq!(fault(22, "encoder.0.self_attn.scores"), Err(Fault::NotYet));
    assert_eq!(fault(23, "encoder.0.self_attn.scores"), Ok(()));
    // Weights are given, though they are shown long before or after.
    assert_eq!(fault(1, "decoder.1.self_attn.q.weight"), Ok(()));
    assert_eq!(fault(52, "decoder.0.self_attn.q"), Err(Fault::NotYet));
    assert_eq!(fault(91, "inference::gen.1.output.probs"), Err(Fault::NotYet));
    assert_eq!(fault(93, "inference::gen.1.output.probs"), Ok(()));
    assert_eq!(fault(5, "A9"), Err(Fault::Name));
}

#[test]
fn slips_are_told_with_the_nearest_name() {
    let help = |text: &str| {
        let e = at(25, text).expect_err(text);
        assert_eq!(e.fault, Fault::Name, "{text}");
        let help = e.help.expect("help").to_string();
        (e.at.start, help)
    };
    assert_eq!(help("1 + AttnOut"), (4, "did you mean `AttnOut1`?".into()));
    assert_eq!(help("encoder.0.self_atn.weights"), (0, "did you mean `encoder.0.self_attn.weights`?".into()));
    assert_eq!(help("self_attn.weights"), (0, "did you mean `encoder.0.self_attn.weights`?".into()));
    assert_eq!(help("trainning::P"), (0, "did you mean `training::P`?".into()));
    // A very long name is refused without a long search.
    assert!(at(25, &"a".repeat(4000)).is_err());
}

#[test]
fn cells_are_found_again() {
    let array = at(41, "score1_L2[2,1]").expect("a cell");
    let (run, cell) = array.cell(0).expect("recorded");
    let w = world();
    assert_eq!(run, 0);
    let name = w.session.cell_name(&w.session.steps, run, cell, here(41, false).at);
    assert_eq!(name.as_deref(), Some("score1_L2[2][1]"));
    assert_eq!(at(41, "score1_L2[2,1] + 0").expect("a number").cell(0), None);
}
