//! The same bits as a scenario that says so itself.

use std::path::Path;
use std::sync::Arc;

use tui_transformer::debug::whatif::{Edit, WhatIf};
use tui_transformer::model::config::{Activation, NormPosition, Scale};
use tui_transformer::scenario::edit::{self, Side};
use tui_transformer::scenario::schema::{Input, Labels, MaskInput, Run, WeightValue};
use tui_transformer::scenario::{Scenario, load};
use tui_transformer::session::{Options, open};
use tui_transformer::tensor::Precision;
use tui_transformer::trace::derive::replay_node;
use tui_transformer::with_any;

use super::{differs, go, opened, same, scenario, values};
use crate::common::reference;

#[test]
fn a_weight_is_that_of_a_scenario_which_has_it_so_in_every_run() {
    for (line, change) in [
        ("embed.weight[3,1] = 0.7", 0.7),
        ("embed.weight[3,1] += 0.25", 0.1 + 0.25),
        ("embed.weight[3,1] = nan", f64::NAN),
    ] {
        let mut w = WhatIf::new(opened(scenario("water_class")));
        // Looked at before: these runs are taken from.
        for run in 0..w.base().runs.len() {
            w.base().trace(run).expect("runs");
        }
        go(&mut w, "training", line);
        let mut direct = scenario("water_class");
        if change.is_nan() {
            // A scenario gives no weight that is no number; it may edit one.
            direct.edits.push(edit::Edit::Cell {
                path: "embed.weight".into(),
                at: vec![3, 1],
                value: change,
                run: None,
            });
        } else {
            let rows = direct.weights.values.get_mut("embed.weight").expect("there");
            let WeightValue::OutIn(rows) = rows else { panic!("rows") };
            rows[3][1] = change;
        }
        same(w.session(), &opened(direct));
        for run in ["training", "inference", "backward", "update"] {
            assert!(differs(&w, run), "{run}");
        }
    }
}

#[test]
fn tokens_and_settings_are_those_of_a_scenario_which_has_them_so() {
    type Change = fn(&mut Scenario);
    let cases: &[(&[&str], Change)] = &[
        (&["token source 2 = 课"], |s| {
            s.source.as_mut().expect("one").text = vec!["我爱课课".into()];
        }),
        (&["token target 1 = courses", "token source 0 = 7"], |s| {
            s.target.as_mut().expect("one").text = vec!["I courses easy courses".into()];
            // The prefixes of the inference are no part of this sentence: it has no next word for them to show.
            s.walkthrough.clear();
            // 7 is no word that Chinese text is cut into.
            s.source = Some(Input { ids: vec![vec![7, 1, 2, 3]], ..Input::default() });
        }),
        (&["norm.eps = 1e-2"], |s| s.model.norm.eps = 1e-2),
        (&["model.norm.placement = pre"], |s| {
            s.model.norm.position = NormPosition::Pre;
        }),
        (&["scale = none", "ffn.activation = gelu"], |s| {
            s.model.attention.scale = Scale::None;
            s.model.ffn.activation = Activation::Gelu;
        }),
        (&["attention.scale = by(0.5)"], |s| {
            s.model.attention.scale = Scale::By(0.5);
        }),
        (&["precision = f32"], |s| s.precision = Precision::F32),
        (&["runs[0].optimiser.lr = 0.5"], |s| {
            let Run::Training { optimiser, .. } = &mut s.runs[0] else { panic!("a training run") };
            optimiser.lr = 0.5;
        }),
        (&["labels = Shifted"], |s| s.labels = Labels::Shifted),
    ];
    for (lines, change) in cases {
        let mut w = WhatIf::new(opened(scenario("water_class")));
        for run in 0..w.base().runs.len() {
            w.base().trace(run).expect("runs");
        }
        for line in *lines {
            go(&mut w, "training", line);
        }
        let mut direct = scenario("water_class");
        change(&mut direct);
        let direct = opened(direct);
        same(w.session(), &direct);
        assert_eq!(w.session().steps.list().len(), 95, "{lines:?}");
        assert!(differs(&w, "update"), "{lines:?}");
        // And so after going back and forth.
        while w.undo().expect("undone").is_some() {}
        same(w.session(), &opened(scenario("water_class")));
        while w.redo().expect("redone").is_some() {}
        same(w.session(), &direct);
    }
}

#[test]
fn settings_put_right_give_the_numbers_of_pytorch() {
    let file = Path::new("tests/data/reference/encoder_pre_ln_gelu_bias.ron");
    let mut wrong = load(file).expect("a scenario").scenario;
    wrong.model.norm.position = NormPosition::Post;
    wrong.model.norm.eps = 0.1;
    wrong.model.ffn.activation = Activation::Relu;
    wrong.model.attention.scale = Scale::None;
    let s = open(wrong, Some(file), Options::default()).expect("opens");
    let mut w = WhatIf::new(Arc::new(s));
    let bytes = std::fs::read(file.with_extension("safetensors")).expect("readable");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let far = |w: &WhatIf| {
        let path = "encoder.0.residual2";
        let theirs = tensors.tensor(&format!("activations.{path}")).expect(path);
        let theirs = reference::numbers(&theirs);
        let ours = values(w.session(), "encode", path);
        let pairs = ours.iter().zip(theirs.data());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    for line in ["placement = pre", "eps = 1e-5", "activation = gelu", "scale = sqrt_dk"] {
        assert!(far(&w) > 1e-3, "before {line}");
        go(&mut w, "encode", line);
    }
    assert!(far(&w) < 1e-12, "{}", far(&w));
}

#[test]
fn a_cell_of_a_run_is_edited_there_and_in_what_goes_on_from_it() {
    let mut w = WhatIf::new(opened(scenario("water_class")));
    go(&mut w, "backward", "encoder.0.self_attn.q[1,0,1] *= -2");
    let old = values(w.base(), "training", "encoder.0.self_attn.q");
    let new = values(w.session(), "update", "encoder.0.self_attn.q");
    let at = 4 * 2 + 1;
    assert_eq!(new[at], old[at] * -2.0);
    for run in ["training", "backward", "update"] {
        assert!(differs(&w, run), "{run}");
    }
    assert!(!differs(&w, "inference"));
    // Every derivation replays, that of the edited cell too.
    for run in 0..w.session().runs.len() {
        let trace = w.session().trace(run).expect("runs");
        with_any!(AnyTrace, trace, t => {
            for (id, node) in t.program().nodes() {
                assert_eq!(replay_node(t, id).different, 0, "{}", node.path);
            }
        });
    }
    // Only what comes after it, and not the other head.
    let run = w.session().run_named("training").expect("a run");
    let steps = w.session().steps_of(run);
    let report = w.report(run, &steps).expect("runs");
    assert_eq!(&*report.changed[0].path, "encoder.0.self_attn.q");
    assert_eq!((report.changed[0].cells, report.changed[0].first), (1, at));
    let heads = |path: &str| {
        let (a, b) = (values(w.base(), "training", path), values(w.session(), "training", path));
        let half = a.len() / 2;
        (a[..half] == b[..half], a[half..] == b[half..])
    };
    assert_eq!(heads("encoder.0.self_attn.context"), (true, false));
    let first = &steps.list()[report.first_step.expect("a step")];
    assert!(first.views.iter().any(|v| v.symbol == "Q2"), "{first:?}");
    let (before, after) = report.loss.expect("a loss");
    assert!((before - 1.9465).abs() < 5e-5 && before != after);
}

#[test]
fn a_mask_cell_opens_what_it_hid() {
    let mut w = WhatIf::new(opened(scenario("water_class")));
    let path = "decoder.0.self_attn.weights";
    assert_eq!(values(w.base(), "training", path)[1], 0.0);
    go(&mut w, "training", "decoder.0.self_attn.mask[0,1] = 0");
    let shown = values(w.session(), "training", path);
    assert!(shown[1] > 0.0 && shown[2] == 0.0, "{shown:?}");
    assert!((shown[0] + shown[1] - 1.0).abs() < 1e-12);
}

#[test]
fn an_ablated_head_is_one_whose_columns_of_the_output_projection_are_zero() {
    let mut w = WhatIf::new(opened(scenario("water_class")));
    go(&mut w, "training", "ablate head encoder.1.1");
    let mut direct = scenario("water_class");
    let o = direct.weights.values.get_mut("encoder.1.self_attn.o.weight");
    let Some(WeightValue::OutIn(rows)) = o else { panic!("rows") };
    for row in rows {
        (row[2], row[3]) = (0.0, 0.0);
    }
    let direct = opened(direct);
    for (run, path) in
        [("training", "encoder.1.self_attn.out"), ("training", "output.probs"), ("inference", "gen.2.output.probs")]
    {
        let (a, b) = (values(w.session(), run, path), values(&direct, run, path));
        assert_eq!(a, b, "{path}");
        assert_ne!(a, values(w.base(), run, path), "{path}");
    }
}

#[test]
fn an_ablated_layer_passes_on_what_comes_in() {
    // Pre-norm, in every call of a decoding with a cache too.
    let mut w = WhatIf::new(opened(scenario("gpt_block")));
    let run = w.base().runs[0].name.clone();
    go(&mut w, &run, "ablate layer 0");
    let (within, out) = ("embed.target.out", "decoder.0.residual2");
    let s = w.session();
    for (i, run) in s.runs.iter().enumerate() {
        let trace = s.trace(i).expect("runs");
        for (_, node) in run.program.nodes().filter(|(_, n)| n.path.ends_with(out)) {
            let Some(prefix) = node.path.strip_suffix(out).filter(|p| !p.contains("grad")) else {
                continue;
            };
            let at = |path: &str| {
                let id = run.program.find(&format!("{prefix}{path}")).expect("there");
                let v = trace.value(id);
                (0..v.shape().len()).map(|i| v.get(i)).collect::<Vec<_>>()
            };
            assert_eq!(at(within), at(out), "{} {prefix}", run.name);
        }
    }
    // Post-norm: what the norms make of it.
    let mut w = WhatIf::new(opened(scenario("water_class")));
    go(&mut w, "training", "ablate layer encoder.0");
    let s = w.session();
    let x = values(s, "training", "embed.source.out");
    assert_eq!(x, values(s, "training", "encoder.0.residual1"));
    let y = values(s, "training", "encoder.0.norm1.out");
    assert_eq!(y, values(s, "training", "encoder.0.residual2"));
}

#[test]
fn an_ablated_position_is_hidden_from_the_others() {
    let mut w = WhatIf::new(opened(scenario("water_class")));
    go(&mut w, "training", "ablate position source 2");
    let mut direct = scenario("water_class");
    let seen = |q: usize, k: usize| k != 2 || q == 2;
    let square = vec![(0..4).map(|q| (0..4).map(|k| seen(q, k)).collect()).collect()];
    direct.source.as_mut().expect("one").mask = Some(MaskInput::Square(square));
    let direct = opened(direct);
    for layer in 0..2 {
        let path = format!("encoder.{layer}.self_attn.weights");
        let ours = values(w.session(), "training", &path);
        assert_eq!(ours, values(&direct, "training", &path));
    }
    // And from the decoder, in every call.
    let cross = values(w.session(), "inference", "gen.2.decoder.1.cross_attn.weights");
    assert!(cross.chunks(4).all(|row| row[2] == 0.0));
    assert!(cross.chunks(4).all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12));
    // With a cache, a call has one query and all keys; linear attention has no scores.
    for (name, side) in [("encoder_decoder", Side::Target), ("local_and_linear_attention", Side::Source)] {
        let s = opened(scenario(name));
        let mut w = WhatIf::new(s);
        let edit = edit::Edit::Position { side, at: 1, run: None };
        w.apply(Edit::Recorded(edit)).expect("applies");
        for run in 0..w.session().runs.len() {
            let trace = w.session().trace(run).expect("runs");
            for (id, node) in trace.program().nodes() {
                let finite = |i| !trace.value(id).get(i).is_nan();
                assert!((0..node.shape.len()).all(finite), "{name} {}", node.path);
            }
        }
    }
}

#[test]
fn undo_restores_and_shares() {
    let mut w = WhatIf::new(opened(scenario("water_class")));
    w.base().trace(0).expect("runs");
    go(&mut w, "training", "embed.weight[0,0] = 9");
    go(&mut w, "training", "decoder.1.ffn.act[0,0] = 3");
    let two = Arc::clone(w.session());
    assert!(w.undo().expect("undone").is_some());
    assert!(w.undo().expect("undone").is_some());
    assert!(w.undo().expect("undone").is_none());
    assert!(Arc::ptr_eq(w.session(), w.base()));
    w.redo().expect("redone");
    let one = Arc::clone(w.session());
    w.redo().expect("redone");
    assert!(w.redo().expect("redone").is_none());
    same(w.session(), &two);
    // What an edit does not reach is the same memory.
    let (a, b) = (one.trace(0).expect("runs"), w.session().trace(0).expect("runs"));
    let (a, b) = (a.f64().expect("f64"), b.f64().expect("f64"));
    let before = a.program().find("decoder.1.residual2").expect("there");
    assert!(a.value(before).shares_memory_with(&b.value(before)));
    w.undo().expect("undone");
    // A new edit forgets what was undone.
    go(&mut w, "training", "embed.weight[0,0] = 8");
    assert!(w.undone().is_empty());
}

/// An edit of a run that takes long does not wait for it where runs go on in threads; what comes of it is the same.
#[test]
fn a_long_run_goes_on_after_an_edit() {
    let lines = ["encoder.0.self_attn.q[0,0,2,5] = 2", "encoder.0.ffn.hidden[0,3,7] = -1"];
    let waited = opened(scenario("bert_block"));
    let run = waited.run_named("encode").expect("a run");
    waited.trace(run).expect("runs");
    let mut waiting = WhatIf::new(Arc::clone(&waited));
    let session = opened(scenario("bert_block"));
    session.trace(run).expect("runs");
    session.in_background();
    let mut going = WhatIf::new(session);
    for line in lines {
        go(&mut waiting, "encode", line);
        go(&mut going, "encode", line);
        let edited = going.session();
        assert!(edited.runs[run].name == "encode" && edited.trace(run).is_ok() || edited.progress(run).is_some());
        let began = std::time::Instant::now();
        while edited.trace(run).is_err() || edited.progress(run).is_some() {
            assert!(began.elapsed() < std::time::Duration::from_mins(1), "it ends");
            std::thread::yield_now();
        }
        let (a, b) = (edited.trace(run).expect("ended"), waiting.session().trace(run).expect("runs"));
        for (id, node) in b.program().nodes() {
            let (x, y) = (a.value(id), b.value(id));
            assert!((0..node.shape.len()).all(|i| x.bits(i) == y.bits(i)), "{line}: {}", node.path);
        }
    }
    assert!(differs(&going, "encode"));
    going.undo().expect("undone");
    going.undo().expect("undone");
    assert!(Arc::ptr_eq(going.session(), going.base()));
}
