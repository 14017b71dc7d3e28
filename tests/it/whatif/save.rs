//! Saving: what is opened again has the same bits.

use std::path::Path;
use std::sync::Arc;

use tui_transformer::debug::whatif::{WhatIf, saved};
use tui_transformer::scenario::schema::WeightValue;
use tui_transformer::scenario::{Scenario, syntax, write};
use tui_transformer::session::{Options, Session, open};
use tui_transformer::tensor::Precision;

use super::{go, opened, same, scenario};

/// Saved into a folder as text, read and opened from there.
fn again(w: &WhatIf, folder: &Path) -> (Scenario, Session) {
    let text = write(&saved(w, folder).expect("can be saved"));
    let back = syntax::read("saved.ron", &text).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    assert_eq!(write(&back), text);
    let origin = folder.join("saved.ron");
    let opened = open(back.clone(), Some(&origin), Options::default());
    (back, opened.unwrap_or_else(|p| panic!("{p:?}\n{text}")))
}

#[test]
fn every_kind_of_edit_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "water_class",
            "training",
            &[
                "embed.weight[3,1] = 0.123456789012345",
                "encoder.0.self_attn.q.weight[3,2] += 1e-17",
                "Q1[0,1] = 0.7",
                "decoder.0.self_attn.mask[0,1] = 0",
                "embed.source.ids[1] = 0",
                "ablate head encoder.1.0",
                "ablate layer decoder.1",
                "ablate position target 0",
                "token source 2 = 课",
                "token target 3 = I",
                "norm.eps = 1e-2",
                "placement = pre",
            ],
        ),
        ("water_class", "inference", &["token target 1 = easy", "gen.1.decoder.0.ffn.act[0,3] = inf"]),
        ("water_class", "greedy", &["gen.0.next.id[0] = 3"]),
        (
            "gpt_block",
            "training",
            &["embed.weight[3,1] = nan", "embed.weight[4,1] = 2", "runs[1].decode.temperature = 2.5"],
        ),
        ("encoder_decoder", "training", &["token target 1:0 = <eos>", "token source 1:1 = <unk>", "gated = true"]),
        ("encoder_char", "encode", &["ablate position 1", "norm.kind = RmsNorm"]),
    ];
    for (name, run, lines) in cases {
        let mut w = WhatIf::new(opened(scenario(name)));
        let run = w.base().run_named(run).unwrap_or(0);
        let run = w.base().runs[run].name.clone();
        for line in *lines {
            go(&mut w, &run, line);
            let (_, back) = again(&w, folder.path());
            same(w.session(), &back);
        }
    }
}

#[test]
fn edited_weights_stand_where_the_scenario_gives_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut w = WhatIf::new(opened(scenario("water_class")));
    go(&mut w, "training", "encoder.0.self_attn.q.weight[3,2] = 7");
    let (back, _) = again(&w, folder.path());
    assert!(back.edits.is_empty());
    let WeightValue::Heads(heads) = &back.weights.values["encoder.0.self_attn.q.weight"] else { panic!("heads") };
    assert_eq!(heads[1][1][2], 7.0);
    // What no longer holds is not expected any more; without edits all of it is.
    let before = w.base().scenario.expected.len();
    assert!(back.expected.len() < before, "{before}");
    w.undo().expect("undone");
    assert_eq!(again(&w, folder.path()).0.expected.len(), before);
}

#[test]
fn files_are_found_from_another_folder_and_precision_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = Path::new("tests/data/reference/decoder_gpt2_like.ron");
    let loaded = tui_transformer::scenario::load(file).expect("a scenario");
    let options = Options { precision: Some(Precision::F32), ..Options::default() };
    let s = open(loaded.scenario, Some(file), options).expect("opens");
    let mut w = WhatIf::new(Arc::new(s));
    go(&mut w, "training", "decoder.1.ffn.w1.bias[5] = 0.1");
    let (back, opened) = again(&w, folder.path());
    assert_eq!(opened.precision, Precision::F32);
    assert!(Path::new(&back.weights.files[0].path).is_absolute());
    same(w.session(), &opened);
    // Beside the original, they stay as they are.
    let beside = saved(&w, file.parent().expect("a folder")).expect("can be saved");
    assert_eq!(beside.weights.files[0].path, "decoder_gpt2_like.safetensors");
}

#[test]
fn what_edits_take_away_from_a_walkthrough_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut w = WhatIf::new(opened(scenario("water_class")));
    go(&mut w, "training", "norm.kind = none");
    let steps = w.session().steps_of(0);
    let report = w.report(0, &steps).expect("runs");
    assert!(report.lost_steps > 5, "{}", report.lost_steps);
    let left = w.session().steps.list().len();
    assert_eq!(left + report.lost_steps, 95);
    same(w.session(), &again(&w, folder.path()).1);
}

#[test]
fn after_updates_the_current_parameters_are_edited_and_nothing_is_saved() {
    let options = Options { update: 3, ..Options::default() };
    let s = open(scenario("train_copy"), None, options).expect("opens");
    let mut w = WhatIf::new(Arc::new(s));
    let loss = |w: &WhatIf| {
        let run = w.session().run_named("training").expect("a run");
        let id = w.session().runs[run].outputs.loss.expect("a loss");
        w.session().trace(run).expect("runs").value(id).get(0)
    };
    let before = loss(&w);
    // Its own value: nothing changes, so these are the parameters after two updates and not the first ones.
    go(&mut w, "training", "embed.weight[2,3] += 0");
    assert_eq!(loss(&w).to_bits(), before.to_bits());
    go(&mut w, "training", "norm.eps = 0.5");
    assert!((loss(&w) - before).abs() > 1e-9);
    let refused = saved(&w, Path::new(".")).expect_err("an optimiser's memory");
    assert_eq!(refused.key, "edit.save_updates");
}
