//! What cannot be edited: said with a column or a place, and nothing has changed.

use std::sync::Arc;

use tui_transformer::debug::whatif::{Edit, WhatIf};
use tui_transformer::scenario::syntax;
use tui_transformer::session::{Options, open};
use tui_transformer::text::Lang;

use super::{opened, read, scenario};

#[test]
fn slips_have_their_column_and_a_help() {
    let w = WhatIf::new(opened(scenario("water_class")));
    let cases = [
        (false, "Q9[0,0] = 1", 1, "edit.unknown_name", "Q1"),
        (false, "encoder.0.self_attn.qq[0] = 1", 1, "edit.unknown_name", "encoder.0.self_attn.q"),
        (false, "Q1[0,2] = 1", 3, "edit.outside", "one index an axis"),
        (false, "Q1[0] = 1", 3, "edit.outside", "one index an axis"),
        (false, "embed.source.ids[1] = 8", 23, "edit.id_outside", ""),
        (false, "embed.source.ids[1] = 0.5", 23, "edit.id_value", ""),
        (false, "decoder.0.self_attn.mask[0,1] = 2", 33, "edit.mask_value", ""),
        (false, "Q1 = 3", 1, "edit.needs_index", "Q1[0,0]"),
        (false, "loss.mean = x", 13, "edit.no_number", "1e-3"),
        (false, "token source 2 = 冰", 18, "edit.no_word", "0 to 7"),
        (false, "token source 2 = courses9", 18, "edit.no_word_near", "courses"),
        (false, "token 2 = 课", 1, "edit.which_side", ""),
        (true, "layer 0", 7, "edit.which_stack", ""),
        (true, "", 1, "edit.nothing_here", "head 0.1"),
    ];
    for (ablate, text, column, key, help) in cases {
        let slip = read(&w, 0, ablate, text).expect_err(text);
        assert_eq!((slip.column, slip.msg.key), (column, key), "{text}");
        for lang in [Lang::En, Lang::Zh] {
            let said = slip.msg.render(lang);
            assert!(!said.contains(['{', '}']), "{text}: {said}");
        }
        let said = slip.help.map(|h| h.render(Lang::En)).unwrap_or_default();
        assert!(said.contains(help), "{text}: {said}");
    }
}

#[test]
fn what_does_not_go_together_is_refused_and_nothing_has_changed() {
    let cases = [
        ("encoder_decoder", false, "token source 9:0 = <eos>", "edit.no_such_sentence"),
        ("encoder_decoder", false, "token source 0:99 = <eos>", "edit.padding"),
        ("water_class", false, "norm.epss = 1", "scenario.unknown_field"),
        ("water_class", false, "norm.eps = 1, kind: None", "edit.setting_value"),
        ("water_class", false, "norm.eps = -1", "config.eps"),
        ("water_class", false, "norm.position = before", "scenario.unknown_variant"),
        ("water_class", false, "heads = 3", "weights.shape"),
        ("water_class", false, "norm.affine = true", "weights.missing"),
        ("water_class", false, "name = x", "edit.no_setting"),
        ("water_class", false, "weights.values = {}", "edit.no_setting"),
        ("water_class", true, "head encoder.0.2", "edit.no_head"),
        ("water_class", true, "head encoder.7.0", "edit.no_attention"),
        ("water_class", true, "layer decoder.2", "edit.no_layer"),
        ("water_class", true, "position source 4", "edit.no_position"),
    ];
    for (name, ablate, text, key) in cases {
        let mut w = WhatIf::new(opened(scenario(name)));
        let edit = read(&w, 0, ablate, text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let problems = w.apply(edit).expect_err(text);
        let keys: Vec<&str> = problems.iter().map(|p| p.msg.key).collect();
        assert!(keys.contains(&key), "{text}: {problems:?}");
        assert!(w.edits().is_empty() && Arc::ptr_eq(w.session(), w.base()));
        for problem in problems {
            let said = problem.msg.render(Lang::Zh);
            assert!(!said.contains(['{', '}']), "{text}: {said}");
        }
    }
}

#[test]
fn a_chosen_token_can_be_another_but_not_one_that_is_not_there() {
    let mut w = WhatIf::new(opened(scenario("water_class")));
    let run = w.base().run_named("greedy").expect("a run");
    let old = w.base().trace(run).expect("runs").clone();
    let edit = read(&w, run, false, "gen.0.next.id[0,0] = 3").expect("an edit");
    assert!(matches!(edit, Edit::Recorded(_)));
    w.apply(edit).expect("applies");
    let new = w.session().trace(run).expect("runs");
    let id = new.program().find("gen.1.tokens").expect("there");
    assert_eq!((new.value(id).get(1), new.value(id).get(0)), (3.0, old.value(id).get(0)));
    let slip = read(&w, run, false, "gen.0.next.id[0] = 8").expect_err("8 words");
    assert_eq!(slip.msg.key, "edit.id_outside");
}

#[test]
fn edits_of_a_file_are_told_with_their_place() {
    let text = |edits: &str| {
        format!(
            "(name: \"a\", vocabulary: Words([\"我\", \"爱\"]),\n model: (d_model: 4, heads: 2, d_ff: 8, encoder: (layers: [()])),\n \
             weights: (init: [(with: Xavier)]), source: (text: [\"我爱\"]), runs: [Encode()],\n edits: [\n  {edits},\n ])"
        )
    };
    let problems = |edits: &str| {
        let scenario = syntax::read("a.ron", &text(edits)).expect(edits);
        open(scenario, None, Options::default()).expect_err(edits)
    };
    for (edits, at, key) in [
        ("Cell(path: \"encoder.0.self_attn.qq\", at: [0], value: 1)", "edits[0].path", "scenario.unknown_path"),
        ("Cell(path: \"encoder.0.self_attn.q\", at: [0, 0, 2, 0], value: 1)", "edits[0].at", "edit.outside"),
        ("Cell(path: \"embed.weight\", at: [0], value: 1)", "edits[0].at", "edit.outside"),
        ("Cell(path: \"embed.source.ids\", at: [0, 0], value: 2)", "edits[0].value", "edit.id_outside"),
        (
            "Layer(layer: \"encoder.0\"), Head(attention: \"encoder.0.self_attn\", head: 2)",
            "edits[1].head",
            "edit.no_head",
        ),
        ("Layer(layer: \"encoder.1\")", "edits[0].layer", "edit.no_layer"),
        ("Position(side: Source, at: 2)", "edits[0].at", "edit.no_position"),
        ("Position(side: Source, at: 1, run: \"encod\")", "edits[0].run", "scenario.unknown_run"),
    ] {
        let found = problems(edits);
        assert_eq!((found[0].at.as_str(), found[0].msg.key), (at, key), "{edits}");
        assert!(found[0].help.is_some(), "{edits}");
        let source = text(edits);
        let shown = tui_transformer::scenario::diagnostic::Diagnostic::located("a.ron", &source, found[0].clone());
        assert_eq!(shown.place.expect("a place").0, 5, "{edits}");
    }
    let bad = syntax::read("a.ron", &text("Head(attention: \"encoder.0.self_attn\", heads: 2)"));
    let bad = bad.expect_err("no such field");
    assert_eq!((bad.msg.key, bad.place), ("scenario.unknown_field", Some((5, 42))));
}
