//! Small scenarios that together use all of the schema: each opens and runs.

use std::path::{Path, PathBuf};

use tui_transformer::model::config::{Activation, EpsAt, MaskFillConfig, NormPosition};
use tui_transformer::model::params::resolve;
use tui_transformer::program::{Leaf, Op, reason};
use tui_transformer::scenario::{load, syntax, write};
use tui_transformer::session::{AnyBindings, Options, Session, open};
use tui_transformer::text::Lang;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/good_scenarios")
}

fn session(name: &str) -> Session {
    let path = folder().join(format!("{name}.ron"));
    let loaded = load(&path).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
    open(loaded.scenario, loaded.origin.as_deref(), Options::default()).unwrap_or_else(|p| panic!("{name}: {p:?}"))
}

fn of_text(text: &str) -> Session {
    let scenario = syntax::read("-", text).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
    open(scenario, None, Options::default()).unwrap_or_else(|p| panic!("{p:?}"))
}

fn parameter(s: &Session, path: &str) -> Vec<f64> {
    match &s.params {
        AnyBindings::F64(b) => b[path].float().data().to_vec(),
        AnyBindings::F32(b) => b[path].float().data().iter().map(|x| f64::from(*x)).collect(),
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
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let s = session(&name);
        assert_eq!(s.scenario.name, name);
        for (i, run) in s.runs.iter().enumerate() {
            s.trace(i).unwrap_or_else(|e| panic!("{name} {}: {e}", run.name));
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
        let id = s.runs[0].program.find("encoder.0.self_attn.weights").expect("weights");
        let v = s.trace(0).expect("runs").value(id);
        (0..v.shape().len()).map(|i| v.get(i)).collect::<Vec<f64>>()
    };
    let (keys, row, square) = (weights("mask_keys"), weights("mask_row"), weights("mask_square"));
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
    assert_eq!(parameter(&s, "encoder.0.self_attn.o.weight"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(parameter(&s, "encoder.0.ffn.w1.bias"), [0.5, -1.0, 2e-3]);
    // Of a file, in f16, bf16, f32, and an array of NumPy in Fortran order.
    assert_eq!(parameter(&s, "embed.weight"), [1.0, 2.0, 0.5, -1.0, 3.0, 0.0]);
    assert_eq!(parameter(&s, "output.weight"), [1.0, -2.0, 0.5, 0.25, 4.0, 1.0]);
    assert_eq!(parameter(&s, "encoder.0.ffn.w1.weight"), [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    assert_eq!(parameter(&s, "encoder.0.ffn.w2.weight"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(parameter(&s, "encoder.0.ffn.w2.bias"), [0.25, 0.25]);
    let c = &s.coverage;
    assert_eq!((c.inline, c.from_files, c.initialised), (5, 4, 1));
    assert_eq!(c.unused, ["model.unused", "extra"]);
}

#[test]
fn keys_that_a_source_hides_are_hidden_in_cross_attention_too() {
    let reasons = |mask: &str| {
        let s = of_text(&format!(
            r#"(name: "m", vocabulary: Words(["<pad>", "a", "b", "c"]),
                model: (d_model: 4, heads: 1, d_ff: 4, encoder: (layers: [()]), decoder: (layers: [()])),
                weights: (init: [(with: Normal(std: 0.5))]),
                source: (text: ["a b c", "a b"], mask: {mask}),
                target: (text: ["a b", "b c"]), runs: [Training()])"#
        ));
        let program = &s.runs[0].program;
        let mask = program.find("decoder.0.cross_attn.mask").expect("padding");
        match &program.node(mask).op {
            Op::Leaf(Leaf::Mask(mask)) => mask.reasons.clone(),
            op => panic!("{}", op.name()),
        }
    };
    let (given, padding) = (reason::GIVEN, reason::PADDING);
    // [sentence, query, key]: the second key of the first sentence by the mask, the third of the second as padding.
    let rows = [[0, given, 0], [0, given, 0], [0, 0, padding], [0, 0, padding]];
    let keys = reasons("Keys([[true, false, true], [true, true, true]])");
    assert_eq!(keys, rows.concat());
    let row = reasons("Row([[[true, false, true]], [[true, true, true]]])");
    assert_eq!(row, rows.concat());
    // A row for each source token is no row for the target's.
    let each = "[[true, false, true], [true, true, true], [true, true, true]]";
    let square = reasons(&format!("Square([{each}, {each}])"));
    let rows = [[0, 0, 0], [0, 0, 0], [0, 0, padding], [0, 0, padding]];
    assert_eq!(square, rows.concat());
}

#[test]
fn a_layer_changes_what_it_gives_and_keeps_the_rest_of_the_model() {
    let s = of_text(
        r#"(name: "own", vocabulary: Words(["a", "b"]),
            model: (
                d_model: 4, heads: 1, d_ff: 4,
                norm: (position: Pre, eps_at: BesideSigma),
                attention: (qkv_bias: true, window: 3, fill: Value(-1e9)),
                ffn: (activation: Silu, bias: true),
                encoder: (layers: [
                    (attention: (window: 2), ffn: (gated: true), norm: (eps: 1e-6)),
                    (attention: (window: None)),
                ]),
            ),
            weights: (init: [(with: Xavier)]),
            source: (text: ["a b a"]), runs: [Encode()])"#,
    );
    let layers = resolve(&s.scenario.model).encoder;
    let [first, second] = &layers[..] else { panic!("{layers:?}") };
    assert_eq!(first.norm.position, NormPosition::Pre);
    assert_eq!((first.norm.eps, first.norm.eps_at), (1e-6, EpsAt::BesideSigma));
    assert!(first.attention.qkv_bias && first.ffn.bias && first.ffn.gated);
    assert_eq!(first.ffn.activation, Activation::Silu);
    assert_eq!(first.attention.fill, MaskFillConfig::Value(-1e9));
    assert_eq!((first.attention.window, second.attention.window), (Some(2), None));
    assert!(!second.ffn.gated);
    // Written down, they are the same scenario.
    let text = write(&s.scenario);
    let again = syntax::read("-", &text).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
    assert_eq!(again, s.scenario, "{text}");
}
