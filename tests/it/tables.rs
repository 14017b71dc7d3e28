//! Tables of what heads do and of the residual stream, against numbers computed from the tensors themselves.

use std::path::Path;

use tui_transformer::debug::heads::Tendency;
use tui_transformer::debug::{depth, heads};
use tui_transformer::scenario::load;
use tui_transformer::session::{Options, Session, open};

fn session(name: &str) -> Session {
    let loaded = load(Path::new(name)).expect("a scenario");
    open(loaded.scenario, None, Options::default()).expect("opens")
}

#[test]
fn heads_of_the_first_sentence_are_as_the_note_of_encoder_char_says() {
    let s = session("encoder_char");
    let rows = heads::table(&s, 0, None).expect("runs");
    let first: Vec<_> = rows.iter().filter(|r| r.attention == "encoder.0.self_attn" && r.sentence == 0).collect();
    let shown: Vec<String> = first.iter().map(|r| format!("{:.3} {:.3}", r.diagonal, r.elsewhere)).collect();
    assert_eq!(shown, ["0.124 0.125", "0.129 0.124", "0.103 0.128", "0.092 0.130"]);
    let note = s.scenario.walkthrough.iter().find(|w| w.number == 9).map_or(String::new(), |w| w.note.en.clone())
        + &s.scenario.remarks.values().map(|r| r.en.as_str()).collect::<String>();
    for number in ["0.124, 0.129, 0.103 and 0.092", "0.125, 0.124, 0.128 and 0.130"] {
        assert!(note.contains(number), "{number}");
    }
    assert_eq!(first[1].tendency, Tendency::Next);
    assert!(first.iter().all(|r| r.size == (8, 8) && (0.8..=1.0).contains(&r.entropy)), "{first:?}");
    // Padding of shorter sentences does not count.
    let shorter = rows.iter().find(|r| r.size.0 < 8).expect("a padded sentence");
    assert_eq!(shorter.size.0, shorter.size.1);
}

#[test]
fn cross_attention_of_the_trained_model_is_near_uniform() {
    let loaded = load(Path::new("water_class_trained")).expect("a scenario");
    let s = open(loaded.scenario, None, Options { update: 101, ..Options::default() }).expect("opens");
    let run = s.runs.iter().position(|r| r.outputs.loss.is_some()).expect("a training run");
    let cross: Vec<_> = heads::table(&s, run, None)
        .expect("runs")
        .into_iter()
        .filter(|r| r.attention.ends_with("cross_attn"))
        .collect();
    assert!(!cross.is_empty());
    for row in &cross {
        assert!(row.entropy > 0.95, "{row:?}");
    }
}

#[test]
fn norms_along_the_stream_are_those_of_the_rows() {
    let s = session("encoder_char");
    let stream = depth::stream(&s, 0, None).expect("runs");
    let row = |path: &str| stream.iter().find(|r| r.path == path).unwrap_or_else(|| panic!("{path}: {stream:?}"));
    // A norm of width 32 with γ = 1 and β = 0 leaves rows of length √32.
    for path in ["encoder.0.norm1.out", "encoder.0.norm2.out"] {
        assert!((row(path).norm - 32f64.sqrt()).abs() < 0.01, "{:?}", row(path));
    }
    let sum = row("encoder.0.residual1");
    assert!(sum.norm > row("encoder.0.self_attn.out").norm && sum.rms > 0.0);
    // Of a padded batch fewer rows count than there are.
    let real = s.runs[0].inputs.source.as_ref().expect("a source").real.as_ref().expect("padding");
    assert_eq!(sum.rows, real.iter().filter(|r| **r).count());
}

#[test]
fn gradients_by_layer_are_those_of_the_parameters() {
    let s = session("water_class");
    let rows = depth::gradients(&s, 0).expect("runs");
    let layers: Vec<&str> = rows.iter().map(|r| r.layer.as_str()).collect();
    assert!(layers.contains(&"encoder.0") && layers.contains(&"decoder.1"), "{layers:?}");
    let all: f64 = rows.iter().map(|r| r.norm.powi(2)).sum::<f64>().sqrt();
    let backward = s.run_named("backward").expect("a backward pass");
    let trace = s.trace(backward).expect("runs");
    let program = &s.runs[backward].program;
    let mut squares = 0.0;
    for spec in &s.specs {
        if let Some(id) = program.find(&format!("grad.{}", spec.path)) {
            let value = trace.get(id).expect("a value");
            squares += (0..value.shape().len()).map(|i| value.get(i).powi(2)).sum::<f64>();
        }
    }
    assert!((all - squares.sqrt()).abs() < 1e-12 * all.max(1.0), "{all} {}", squares.sqrt());
}
