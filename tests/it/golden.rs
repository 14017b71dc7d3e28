//! Every figure of the hand calculation, at the four decimals it was printed with.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value as Json;
use tui_transformer::export::doc::{StepDoc, TensorDoc};
use tui_transformer::export::document::{Settings, document};
use tui_transformer::session::{Options, Session, open};
use tui_transformer::text::{Lang, NumberFormat};

fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        let loaded = tui_transformer::scenario::load(Path::new("water_class")).expect("embedded");
        open(loaded.scenario, None, Options::default()).expect("opens")
    })
}

fn golden() -> Vec<Json> {
    serde_json::from_str(include_str!("../data/water_class/steps.json")).expect("JSON")
}

fn doc(number: u64) -> StepDoc {
    let s = session();
    let settings = Settings {
        lang: Lang::En,
        number: NumberFormat::default(),
        round: None,
        derivations: usize::MAX,
        terms: usize::MAX,
        inputs: false,
    };
    let at = s.steps.position(number as u32).expect("the step is there");
    document(s, &s.steps, at, &s.steps.list()[at], &settings).expect("runs")
}

/// Flattens nested lists; `"-inf"` is −∞.
fn numbers(json: &Json, out: &mut Vec<f64>) {
    match json {
        Json::Array(list) => list.iter().for_each(|x| numbers(x, out)),
        Json::String(s) if s == "-inf" => out.push(f64::NEG_INFINITY),
        x => out.push(x.as_f64().expect("a number")),
    }
}

fn flat(json: &Json) -> Vec<f64> {
    let mut out = Vec::new();
    numbers(json, &mut out);
    out
}

/// Compares at four decimals: none off by one in the last place. Masked scores denote −∞.
fn same(ours: f64, printed: f64) -> bool {
    if printed == f64::NEG_INFINITY {
        return ours < -1e8;
    }
    let text = NumberFormat::default().format(ours);
    text.parse::<f64>().is_ok_and(|x| x == printed || (x == 0.0 && printed == 0.0))
}

fn compare(step: u64, symbol: &str, tensor: &TensorDoc, printed: &Json) -> usize {
    let printed = flat(printed);
    assert_eq!(tensor.values.len(), printed.len(), "step {step} {symbol}: number of cells");
    for (i, p) in printed.iter().enumerate() {
        let ours = tensor.values.get(i).expect("a cell").to_f64();
        assert!(same(ours, *p), "step {step} {symbol}[{i}]: {ours} for {p}");
    }
    printed.len()
}

#[test]
fn numbers_sections_and_phases() {
    let golden = golden();
    let steps = session().steps.list();
    assert_eq!((steps.len(), golden.len()), (95, 95));
    for (ours, theirs) in steps.iter().zip(&golden) {
        assert_eq!(Json::from(ours.number[0]), theirs["step"]);
        assert_eq!(Json::from(ours.section.as_str()), theirs["section"]);
        assert_eq!(Json::from(ours.phase.as_str()), theirs["phase"]);
    }
}

#[test]
fn every_printed_figure() {
    let mut compared = 0;
    for theirs in golden() {
        let number = theirs["step"].as_u64().expect("a number");
        let doc = doc(number);
        // Several tensors of a step may share a symbol (scores_raw of two heads): they are met in order.
        let mut left: Vec<&TensorDoc> = doc.tensors.iter().collect();
        for (symbol, tensor) in theirs["tensors"].as_object().expect("tensors") {
            if let Some(raw) = tensor.get("before_scaling") {
                let at = left.iter().position(|t| t.symbol == "scores_raw").expect("scores_raw");
                compared += compare(number, "scores_raw", left.remove(at), raw);
            }
            let at = left.iter().position(|t| t.symbol == *symbol);
            let at = at.unwrap_or_else(|| panic!("step {number} has no {symbol}"));
            compared += compare(number, symbol, left.remove(at), &tensor["values"]);
        }
    }
    assert_eq!(compared, 2296, "printed numbers");
}

#[test]
fn facts_of_the_steps_without_tensors() {
    let mut compared = 0;
    for theirs in golden() {
        let number = theirs["step"].as_u64().expect("a number");
        let Some(facts) = theirs["facts"].as_object() else {
            continue;
        };
        let doc = doc(number);
        for (name, value) in facts {
            if name == "prefixes" {
                let ours: Vec<&TensorDoc> = doc.tensors.iter().filter(|t| t.symbol.starts_with("prefix")).collect();
                for (tensor, prefix) in ours.iter().zip(value.as_array().expect("prefixes")) {
                    compared += compare(number, name, tensor, prefix);
                }
                assert_eq!(ours.len(), 3);
                continue;
            }
            let tensor = doc.tensors.iter().find(|t| t.symbol == *name);
            compared += compare(number, name, tensor.unwrap_or_else(|| panic!("step {number} has no {name}")), value);
        }
    }
    assert!(compared > 150, "only {compared} facts");
}

/// The factors of each product appear in the derivation in the order in which a user wrote them.
#[test]
fn products_are_written_in_the_order_of_the_hand_calculation() {
    let mut products = 0;
    for theirs in golden() {
        let Some(terms) = theirs["terms"].as_array() else {
            continue;
        };
        let number = theirs["step"].as_u64().expect("a number");
        let doc = doc(number);
        for term in terms {
            let at: Vec<usize> = flat(&term["at"]).iter().map(|&i| i as usize).collect();
            let line = doc
                .derivations
                .iter()
                .find(|d| d.symbol.as_str() == term["tensor"] && d.index == at)
                .expect("a derivation");
            let (_, sum) = line.text.split_once(" = ").expect("a line");
            let (sum, _) = sum.rsplit_once(" = ").expect("a result");
            let written: Vec<Vec<f64>> =
                sum.split(" + ").map(|p| p.split('×').map(|x| x.parse().expect("a number")).collect()).collect();
            let printed: Vec<Vec<f64>> = term["products"].as_array().expect("products").iter().map(flat).collect();
            // Numbers are compared as numbers: −0 and 0 are the same figure.
            assert_eq!(written, printed, "step {number}: {}", line.text);
            products += printed.len();
        }
    }
    assert_eq!(products, 1664, "products");
}

#[test]
fn lines_as_a_person_writes_them() {
    let line = |step: u64, name: &str| {
        let start = format!("{name} = ");
        let doc = doc(step);
        let found = doc.derivations.iter().find(|d| d.text.starts_with(&start)).map(|d| d.text.clone());
        found.unwrap_or_else(|| panic!("step {step} has no {name}"))
    };
    for (step, name, rest) in [
        (17, "Q1[0][0]", "0.5×-0.3 + 0.7×0.9 + 0.8×0.5 + 1.1×0.2 = 1.1"),
        (23, "score1[0][0]", "(1.5829)/1.4142 = 1.1193"),
        (25, "A1[0][0]", "3.0626/15.1401 = 0.2023"),
        (31, "X1[0][0]", "0.5 + 0.4129 = 0.9129"),
        (32, "LN1a[0][0]", "(0.9129 - 0.9428)/√(1.0933+ε) = -0.0286"),
        (35, "R1[0][0]", "max(0, -0.1842) = 0"),
        (90, "loss[0]", "-ln(0.2387) = 1.4325"),
    ] {
        assert_eq!(line(step, name), format!("{name} = {rest}"));
    }
    let masked = line(56, "score1[0][1]");
    assert!(masked.ends_with("/1.4142 + (-1e9) ≈ -∞"), "{masked}");
}

/// Steps 92 to 94 go into the whole decoder pass they denote, and any step down to primitives.
#[test]
fn steps_expand() {
    let s = session();
    let expand = |number: u32| {
        let step = &s.steps.list()[s.steps.position(number).expect("there")];
        s.expand(step)
    };
    assert_eq!(expand(40).len(), 6, "Q1 K1 V1 Q2 K2 V2");
    assert_eq!(expand(40)[5].label(), "40.6");
    let norm: Vec<String> = expand(32).iter().map(|s| s.views[0].symbol.clone()).collect();
    assert_eq!(norm, ["mean", "centred", "squared", "var", "var_eps", "root", "LN1a"]);
    for number in [92, 93, 94] {
        let inner = expand(number);
        assert!(inner.len() > 20, "step {number} has {} sub-steps", inner.len());
        let prefix = format!("gen.{}.", number - 92);
        let program = &s.runs[inner[0].run].program;
        assert!(inner.iter().all(|i| program.node(i.views[0].node).path.starts_with(&prefix)));
    }
}
