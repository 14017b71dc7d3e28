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
    assert!(all.len() >= 7);
    // Those that come with the program, which knows their corpora.
    let embedded = tui_transformer::scenario::LESSONS.iter().map(|(name, _)| PathBuf::from(name));
    for path in embedded.filter(|p| p != Path::new("bert_base")).chain(all.clone()) {
        let path = &path;
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

fn row_norms(x: &[f64], width: usize) -> f64 {
    let rows = x.chunks(width);
    let n = rows.len() as f64;
    rows.map(|r| r.iter().map(|v| v * v).sum::<f64>().sqrt()).sum::<f64>() / n
}

#[test]
fn norms_of_the_residual_stream_are_as_the_notes_say() {
    let s = lesson("residual_norms");
    let stream =
        |run: &str| tui_transformer::debug::depth::stream(&s, s.run_named(run).expect(run), None).expect("runs");
    let norm = |run: &str, path: &str| {
        let rows = stream(run);
        let row = rows.iter().find(|r| r.path == path).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(row.rows, 13, "8 + 5 real tokens");
        format!("{:.2}", row.norm)
    };
    for (run, path, wanted) in [
        ("small", "embed.source.scaled", "5.54"),
        ("small", "embed.source.out", "6.82"),
        ("unit", "embed.source.out", "31.56"),
        ("small", "encoder.0.self_attn.out", "4.23"),
        ("unit", "encoder.0.self_attn.out", "30.11"),
        ("small", "encoder.0.residual1", "7.83"),
        ("unit", "encoder.0.residual1", "44.25"),
        ("small", "encoder.0.norm1.out", "5.66"),
        ("unit", "encoder.0.norm1.out", "5.66"),
        ("small", "encoder.0.ffn.out", "3.11"),
        ("small", "encoder.0.residual2", "6.60"),
    ] {
        assert_eq!(norm(run, path), wanted, "{run} {path}");
        let said = wanted.replace("5.66", "5.657");
        assert!(s.scenario.walkthrough.iter().any(|w| w.note.en.contains(&said)), "{said}");
    }
    let positions = values(&s, "small", "embed.source.positions", "");
    assert!((row_norms(&positions, 32) - 4.0).abs() < 1e-12);
}

#[test]
fn what_each_part_is_for_is_as_the_notes_say() {
    let s = lesson("why");
    let later = |head: usize| {
        values(&s, "no_mask", "decoder.0.self_attn.weights", &format!("head={head}"))[1..5].iter().sum::<f64>()
    };
    assert_eq!((format!("{:.3}", later(0)), format!("{:.3}", later(1))), ("0.917".to_owned(), "0.997".to_owned()));
    let entropy = |run: &str| {
        let rows = tui_transformer::debug::heads::table(&s, s.run_named(run).expect(run), None).expect("runs");
        format!("{:.3}", rows[0].entropy)
    };
    assert_eq!((entropy("base"), entropy("no_scale")), ("0.825".to_owned(), "0.496".to_owned()));
    // Without W_O the heads stand next to each other.
    let out = values(&s, "no_out", "decoder.0.self_attn.out", "");
    let context = values(&s, "no_out", "decoder.0.self_attn.context", "");
    for (token, row) in out.chunks(8).enumerate() {
        assert_eq!(row[..4], context[token * 4..token * 4 + 4], "head 1");
        assert_eq!(row[4..], context[20 + token * 4..24 + token * 4], "head 2");
    }
    let act = values(&s, "base", "decoder.0.ffn.act", "");
    let active: Vec<usize> = act.chunks(32).map(|r| r.iter().filter(|x| **x > 0.0).count()).collect();
    assert!(active.iter().all(|n| (16..=17).contains(n)), "{active:?}");
    assert_eq!((0..32).filter(|c| act.chunks(32).any(|r| r[*c] > 0.0)).count(), 22);
    let alike = |run: &str, layer: usize| {
        let x = values(&s, run, &format!("decoder.{layer}.norm2.out"), "");
        let rows: Vec<&[f64]> = x.chunks(8).collect();
        let norm = |a: &[f64]| a.iter().map(|v| v * v).sum::<f64>().sqrt();
        let mut sum = 0.0;
        for (i, a) in rows.iter().enumerate() {
            for (_, b) in rows.iter().enumerate().filter(|(j, _)| *j != i) {
                sum += a.iter().zip(*b).map(|(x, y)| x * y).sum::<f64>() / norm(a) / norm(b);
            }
        }
        sum / 20.0
    };
    let shown = |run, layer, digits| format!("{:.digits$}", alike(run, layer));
    assert_eq!([shown("base", 0, 2), shown("base", 2, 2), shown("base", 5, 2)], ["0.53", "0.68", "0.85"]);
    let without = [shown("no_residual", 0, 3), shown("no_residual", 2, 3), shown("no_residual", 5, 7)];
    assert_eq!(without, ["0.963", "0.999", "0.9999992"]);
    let grown = |layer: usize| {
        let x = values(&s, "no_norm", &format!("decoder.{layer}.residual2"), "");
        format!("{:.2}", row_norms(&x, 8))
    };
    assert_eq!((grown(0), grown(5)), ("3.66".to_owned(), "28.07".to_owned()));
}

#[test]
fn post_ln_needs_a_warm_up_and_pre_ln_does_not() {
    let s = lesson("norm_in_training");
    let norms = |run: &str| -> Vec<String> {
        let rows = tui_transformer::debug::depth::gradients(&s, s.run_named(run).expect(run)).expect("runs");
        let layers = rows.iter().filter(|r| r.layer == "decoder.0" || r.layer == "decoder.5");
        layers.map(|r| format!("{:.2}", r.norm)).collect()
    };
    assert_eq!(
        (norms("post_ln"), norms("pre_ln")),
        (vec!["6.42".to_owned(), "2.52".to_owned()], vec!["5.23".to_owned(), "1.34".to_owned()])
    );
    let loss = |run: &str| values(&s, run, "loss.mean", "")[0];
    assert_eq!(
        (format!("{:.2}", loss("post_ln")), format!("{:.2}", loss("pre_ln"))),
        ("3.42".to_owned(), "3.22".to_owned())
    );
    let after = |run: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
            .args(["--lang", "en", "train", "norm_in_training", "--run", run])
            .output()
            .expect("runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|l| l.strip_prefix("loss over all sentences at the end: ")).expect("a loss");
        line.trim().parse::<f64>().expect("a number")
    };
    let all = ["post_ln", "post_ln_warm", "pre_ln"].map(|run| format!("{:.3}", after(run)));
    assert_eq!(all, ["2.011", "0.003", "0.001"]);
}

#[test]
fn a_parallel_corpus_gives_ids_frequencies_and_unknown_characters() {
    let s = open(Path::new("parallel_characters"));
    let ids = |text: &[f64]| text.iter().map(|x| *x as i64).collect::<Vec<_>>();
    assert_eq!(ids(&values(&s, "training", "embed.source.ids", "")), [4, 7, 8, 0, 4, 7, 10, 1]);
    assert_eq!(s.source_words.len() - 4, 18);
    assert_eq!(s.target_words.len() - 4, 20);
    let zh = tui_transformer::scenario::embedded_corpus("parallel.zh.txt").expect("embedded");
    let en = tui_transformer::scenario::embedded_corpus("parallel.en.txt").expect("embedded");
    assert_eq!((zh.lines().count(), en.lines().count()), (20, 20));
    assert_eq!(zh.matches('我').count(), 7);
    assert_eq!([en.matches('e').count(), en.matches(' ').count(), en.matches('i').count()], [55, 49, 21]);
    assert_eq!(format!("{:.3}", values(&s, "training", "loss.mean", "")[0]), "3.491");
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
