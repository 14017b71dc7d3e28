//! Lessons and published examples: every figure that they print or claim is computed here.

use std::path::{Path, PathBuf};

use tui_transformer::scenario::load;
use tui_transformer::session::{self, Options, Session, view};
use tui_transformer::text::Lang;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|f| f.expect("a file").path())
        .filter(|p| p.extension().is_some_and(|e| e == "ron"))
        .collect();
    all.sort();
    all
}

fn open(path: &Path) -> Session {
    let loaded = load(path).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
    session::open(loaded.scenario, loaded.origin.as_deref(), Options::default())
        .unwrap_or_else(|p| panic!("{}: {p:?}", path.display()))
}

fn lesson(name: &str) -> Session {
    open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/lessons/{name}.ron")))
}

fn values(s: &Session, run: &str, path: &str, slice: &str) -> Vec<f64> {
    let run = s.run_named(run).unwrap_or_else(|| panic!("{run}"));
    let view = view(s, run, "", path, slice).unwrap_or_else(|p| panic!("{path}: {p:?}"));
    let value = s.trace(run).expect("runs").value(view.node);
    view.cells.flats().map(|i| value.get(i)).collect()
}

fn expected_hold(path: &Path, s: &Session) -> usize {
    let mut figures = 0;
    for e in &s.scenario.expected {
        let run = e.run.clone().unwrap_or_else(|| s.runs[0].name.clone());
        let found = values(s, &run, &e.path, &e.slice);
        assert_eq!(found.len(), e.values.flat().len(), "{}: {}", path.display(), e.path);
        for (i, (found, printed)) in found.iter().zip(e.values.flat()).enumerate() {
            assert!(
                (found - printed).abs() <= e.allowed(*printed, s.precision, s.precision),
                "{}: {}[{i}]: {found} for {printed}",
                path.display(),
                e.path
            );
            figures += 1;
        }
    }
    figures
}

#[test]
fn published_examples_are_a_page_each_and_every_printed_figure_holds() {
    let all = files("tests/data/worked_examples");
    assert!(all.len() >= 8, "{all:?}");
    for path in &all {
        let lines = std::fs::read_to_string(path).expect("text").lines().count();
        assert!(lines <= 60, "{}: {lines} lines", path.display());
        let s = open(path);
        assert!(expected_hold(path, &s) > 0, "{}", path.display());
    }
}

#[test]
fn lessons_open_speak_both_languages_and_hold() {
    let all = files("scenarios/lessons");
    assert!(all.len() >= 3);
    for path in &all {
        let s = open(path);
        expected_hold(path, &s);
        for run in 0..s.runs.len() {
            s.trace(run).expect("runs");
        }
        let scenario = &s.scenario;
        for text in [&scenario.title, &scenario.note] {
            assert!(!text.en.is_empty() && !text.zh.is_empty(), "{}", path.display());
        }
        assert!(!scenario.walkthrough.is_empty());
        for step in &scenario.walkthrough {
            for text in [&step.title, &step.note] {
                assert!(!text.en.is_empty() && !text.zh.is_empty(), "{} step {}", path.display(), step.number);
            }
        }
    }
}

#[test]
fn without_positions_the_rows_are_the_same_in_another_order() {
    let s = lesson("order");
    let row = |run: &str, i: usize| values(&s, run, "encoder.0.residual1", &format!("token={i}"));
    let scores = |run: &str| values(&s, run, "encoder.0.self_attn.scores", "head=0");
    let (plain, turned) = (scores("dog_bites_man"), scores("man_bites_dog"));
    for (i, score) in plain.iter().enumerate() {
        let other = (2 - i / 3) * 3 + 2 - i % 3;
        assert_eq!(score.to_bits(), turned[other].to_bits(), "score {i}");
    }
    for (i, j) in [(0, 2), (1, 1), (2, 0)] {
        // Sums over keys are in another order: the last bits.
        let (one, other) = (row("dog_bites_man", i), row("man_bites_dog", j));
        assert!(one.iter().zip(&other).all(|(a, b)| (a - b).abs() <= 4.0 * f64::EPSILON * a.abs().max(1.0)), "row {i}");
        let placed = (row("dog_bites_man_placed", i), row("man_bites_dog_placed", j));
        assert!(placed.0.iter().zip(&placed.1).any(|(a, b)| (a - b).abs() > 0.01), "row {i} with positions");
    }
    let placed = values(&s, "man_bites_dog_placed", "embed.source.out", "token=2");
    let plain = values(&s, "man_bites_dog", "embed.source.out", "token=2");
    assert!((placed[0] - plain[0] - 0.9093).abs() < 5e-5);
}

#[test]
fn a_shift_of_positions_is_one_linear_map_and_products_know_the_distance_only() {
    let s = lesson("positions_table");
    let table = values(&s, "shifted", "embed.source.positions", "");
    let shifted = values(&s, "shifted", "encoder.0.self_attn.q", "");
    assert_eq!(table.len(), 50 * 32);
    for t in 0..47 {
        for c in 0..32 {
            let far = (shifted[t * 32 + c] - table[(t + 3) * 32 + c]).abs();
            assert!(far < 1e-12, "position {t} column {c}: {far}");
        }
    }
    let products = values(&s, "products", "encoder.0.self_attn.scores_raw", "");
    for t in 0..50 {
        assert!((products[t * 51] - 16.0).abs() < 1e-12);
        for u in 1..50 - t {
            let along = (products[t * 50 + t + u] - products[u]).abs();
            assert!(along < 1e-10, "distance {u} at {t}");
        }
    }
    // The slow pair that the note speaks of.
    let turn = std::f64::consts::TAU * 10_000f64.powf(30.0 / 32.0);
    assert_eq!(format!("{turn:.0}"), "35333");
}

#[test]
fn context_rows_lie_inside_the_hull_of_the_values() {
    let s = lesson("weighted_mean");
    for run in ["scaled", "unscaled"] {
        for x in values(&s, run, "encoder.0.self_attn.context", "") {
            assert!((0.0..=4.0).contains(&x), "{run}: {x}");
        }
        for row in values(&s, run, "encoder.0.self_attn.weights", "").chunks(4) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-15 && row.iter().all(|w| *w >= 0.0));
        }
    }
    let corner = |run: &str| {
        let c = values(&s, run, "encoder.0.self_attn.context", "token=2");
        (4.0 - c[0]).hypot(4.0 - c[1])
    };
    assert!(corner("unscaled") < corner("scaled"));
}
