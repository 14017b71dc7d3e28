//! Small scenarios that together use all of the schema: each opens and runs.

use std::path::{Path, PathBuf};

use tui_transformer::scenario::load;
use tui_transformer::session::{AnyBindings, Options, Session, open};
use tui_transformer::text::Lang;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/good_scenarios")
}

fn session(name: &str) -> Session {
    let path = folder().join(format!("{name}.ron"));
    let loaded = load(&path).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
    open(
        loaded.scenario,
        loaded.origin.as_deref(),
        Options::default(),
    )
    .unwrap_or_else(|p| panic!("{name}: {p:?}"))
}

fn parameter(s: &Session, path: &str) -> Vec<f64> {
    match &s.params {
        AnyBindings::F64(b) => b[path].float().data().to_vec(),
        AnyBindings::F32(b) => b[path]
            .float()
            .data()
            .iter()
            .map(|x| f64::from(*x))
            .collect(),
    }
}

#[test]
fn every_one_opens_and_all_its_runs_run() {
    let mut seen = 0;
    for file in std::fs::read_dir(folder()).expect("the folder") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|e| e != "ron") {
            continue;
        }
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let s = session(&name);
        assert_eq!(s.scenario.name, name);
        for (i, run) in s.runs.iter().enumerate() {
            s.trace(i)
                .unwrap_or_else(|e| panic!("{name} {}: {e}", run.name));
            assert!(!s.plan_of(i).is_empty(), "{name} {}", run.name);
        }
        seen += 1;
    }
    assert_eq!(seen, 10);
}

#[test]
fn text_becomes_the_ids_that_a_person_would_write() {
    let ids = |name: &str| session(name).inputs.source.clone().expect("a source").ids;
    // 我爱 水 <pad> <pad> · I love 水 水
    assert_eq!(ids("words_and_text"), [2, 4, 0, 0, 6, 5, 4, 4]);
    // <pad> <unk> <sos> <eos>, then `a`, a space and 我 twice each in the order of their first places, then b.
    assert_eq!(ids("characters"), [2, 4, 5, 6, 1, 3]);
    // <unk> 水 课 我 爱
    assert_eq!(ids("characters_of_a_file"), [1, 2]);
    let padded = session("ids_only").inputs.source.clone().expect("a source");
    assert_eq!(padded.ids, [1, 2, 3, 8, 4, 8, 8, 8]);
}

#[test]
fn masks_of_three_shapes_hide_the_same_keys() {
    let weights = |name: &str| {
        let s = session(name);
        let id = s.runs[0]
            .program
            .find("encoder.0.self_attn.weights")
            .expect("weights");
        let v = s.trace(0).expect("runs").value(id);
        (0..v.shape().len()).map(|i| v.get(i)).collect::<Vec<f64>>()
    };
    let (keys, row, square) = (
        weights("mask_keys"),
        weights("mask_row"),
        weights("mask_square"),
    );
    assert_eq!(keys, row);
    // [sentence, head, query, key]: key 1 of the first sentence is hidden from both queries.
    assert_eq!((keys[1], keys[3]), (0.0, 0.0));
    assert!(keys[5] > 0.0 && keys[7] > 0.0);
    // The square mask hides it from the first query only, and everything from the last query of the second.
    assert_eq!(square[1], 0.0);
    assert!(square[3] > 0.0);
    assert_eq!(square[4..6], keys[4..6]);
}

#[test]
fn every_form_of_weights_is_the_same_matrix() {
    let s = session("weights_of_every_form");
    for name in ["q", "k", "v"] {
        let path = format!("encoder.0.self_attn.{name}.weight");
        assert_eq!(parameter(&s, &path), [1.0, 2.0, 3.0, 4.0], "{name}");
    }
    // Two heads `[in, out]` of two rows and one column each, transposed and stacked.
    assert_eq!(
        parameter(&s, "encoder.0.self_attn.o.weight"),
        [1.0, 2.0, 3.0, 4.0]
    );
    assert_eq!(parameter(&s, "encoder.0.ffn.w1.bias"), [0.5, -1.0, 2e-3]);
    // Of a file, in f16, bf16, f32, and an array of NumPy in Fortran order.
    assert_eq!(
        parameter(&s, "embed.weight"),
        [1.0, 2.0, 0.5, -1.0, 3.0, 0.0]
    );
    assert_eq!(
        parameter(&s, "output.weight"),
        [1.0, -2.0, 0.5, 0.25, 4.0, 1.0]
    );
    assert_eq!(
        parameter(&s, "encoder.0.ffn.w1.weight"),
        [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    );
    assert_eq!(
        parameter(&s, "encoder.0.ffn.w2.weight"),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    assert_eq!(parameter(&s, "encoder.0.ffn.w2.bias"), [0.25, 0.25]);
    let c = &s.coverage;
    assert_eq!((c.inline, c.from_files, c.initialised), (5, 4, 1));
    assert_eq!(c.unused, ["model.unused", "extra"]);
}
