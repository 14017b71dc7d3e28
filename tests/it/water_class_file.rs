//! `scenarios/water_class.ron` as a file: what it says, before anything is run. Its figures are checked in `golden`.

use std::collections::HashSet;

use serde_json::Value as Json;
use tui_transformer::scenario::Scenario;
use tui_transformer::scenario::schema::{Run, StepSpec, Vocabulary, WeightValue};
use tui_transformer::scenario::syntax;
use tui_transformer::tensor::slice::Slice;

use crate::common::water_class::{golden, weights};

const TEXT: &str = include_str!("../../scenarios/water_class.ron");

fn scenario() -> Scenario {
    syntax::read("water_class.ron", TEXT).expect("a scenario")
}

fn printed() -> Vec<Json> {
    golden("steps.json").as_array().expect("steps").clone()
}

/// Symbol, path and slice of each view of a step.
fn views(scenario: &Scenario, step: &StepSpec) -> Vec<(String, String, String)> {
    use tui_transformer::scenario::schema::ViewSpec::{Of, Part, Symbol};
    step.views
        .iter()
        .map(|view| match view {
            Symbol(name) => {
                let place = scenario.symbols.get(name).expect(name);
                (name.clone(), place.path.clone(), place.slice.clone())
            }
            Of(name, path) => (name.clone(), path.clone(), String::new()),
            Part(name, path, slice) => (name.clone(), path.clone(), slice.clone()),
        })
        .collect()
}

#[test]
fn steps_have_the_numbers_sections_and_phases_of_the_hand_calculation() {
    let (ours, theirs) = (scenario().walkthrough, printed());
    assert_eq!((ours.len(), theirs.len()), (95, 95));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(Json::from(ours.number), theirs["step"]);
        assert_eq!(Json::from(ours.section.as_str()), theirs["section"]);
        assert_eq!(Json::from(ours.phase.as_str()), theirs["phase"]);
    }
}

/// In their order, each unscaled product before its score; facts are views too.
#[test]
fn every_printed_tensor_and_fact_is_a_view() {
    let scenario = scenario();
    for (step, theirs) in scenario.walkthrough.iter().zip(printed()) {
        let symbols: Vec<String> = views(&scenario, step).into_iter().map(|v| v.0).collect();
        let mut wanted = Vec::new();
        for (symbol, tensor) in theirs["tensors"].as_object().expect("tensors") {
            if tensor.get("before_scaling").is_some() {
                wanted.push("scores_raw");
            }
            wanted.push(symbol);
        }
        let mut rest = symbols.iter();
        for symbol in wanted {
            assert!(
                rest.any(|s| s == symbol),
                "step {}: {symbol} is not among {symbols:?}, or out of order",
                step.number
            );
        }
        for fact in theirs["facts"].as_object().into_iter().flatten() {
            let named = |s: &String| s == fact.0 || fact.0 == "prefixes" && s == "prefix1";
            assert!(symbols.iter().any(named), "step {}: {}", step.number, fact.0);
        }
    }
}

#[test]
fn a_softmax_of_two_heads_shows_exp_and_sum_of_each() {
    let scenario = scenario();
    for number in [42, 57, 69, 76] {
        let step = &scenario.walkthrough[number - 1];
        let all = views(&scenario, step);
        let (names, heads): (Vec<&str>, Vec<&str>) = all.iter().map(|v| (v.0.as_str(), v.2.as_str())).unzip();
        assert_eq!(heads, [["head=0"; 3], ["head=1"; 3]].concat(), "{number}");
        for head in names.chunks(3) {
            assert_eq!(head[..2], ["exp", "sum"], "{number}");
        }
    }
}

#[test]
fn every_step_has_a_title_in_both_languages_and_no_note_has_only_one() {
    let scenario = scenario();
    for step in &scenario.walkthrough {
        let n = step.number;
        assert!(!step.title.en.trim().is_empty(), "step {n}");
        assert!(!step.title.zh.trim().is_empty(), "step {n}");
        assert!(step.title.zh.chars().any(is_chinese), "step {n}");
        assert_eq!(step.note.en.is_empty(), step.note.zh.is_empty(), "step {n}");
        assert!(!step.formula.chars().any(is_chinese), "step {n}: the formula serves both languages");
    }
    for text in [&scenario.title, &scenario.note] {
        assert!(!text.en.is_empty() && text.zh.chars().any(is_chinese));
    }
}

fn is_chinese(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

#[test]
fn weights_are_those_of_the_hand_calculation() {
    let ours = scenario().weights.values;
    let mut theirs = weights();
    for (path, value) in &ours {
        let numbers: Vec<f64> = match value {
            WeightValue::OutIn(rows) => rows.concat(),
            WeightValue::Heads(heads) => heads.iter().flat_map(|rows| rows.concat()).collect(),
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(Some(numbers), theirs.remove(path), "{path}");
    }
    assert!(theirs.is_empty(), "missing: {:?}", theirs.keys());

    let json = golden("weights.json");
    let Vocabulary::Words(words) = scenario().vocabulary else {
        panic!("words");
    };
    assert_eq!(Json::from(words), json["vocab"]);
}

#[test]
fn runs_slices_and_symbols_can_be_meant() {
    let scenario = scenario();
    let runs: Vec<&str> = scenario.runs.iter().map(Run::name).collect();
    assert_eq!(runs, ["training", "inference", "greedy"]);
    for step in &scenario.walkthrough {
        let run = step.run.as_deref().unwrap_or("training");
        let wanted = if step.number <= 90 { "training" } else { "inference" };
        assert_eq!(run, wanted, "step {}", step.number);
        for (symbol, path, slice) in views(&scenario, step) {
            assert!(!path.is_empty(), "step {}: {symbol}", step.number);
            assert!(Slice::parse(&slice).is_ok(), "step {}: {slice}", step.number);
        }
    }
    let mut places = HashSet::new();
    for (symbol, place) in &scenario.symbols {
        assert!(Slice::parse(&place.slice).is_ok(), "{symbol}");
        assert!(places.insert((&place.path, &place.slice)), "{symbol} names a place that has a symbol already");
    }
}
