//! Every scenario that comes with the program: it opens, all its runs run in both number types, every derivation
//! replays bit for bit, every step has its words in both languages, and what its notes say is so.

use std::collections::BTreeSet;
use std::path::Path;

use tui_transformer::export::document::{Settings, document};
use tui_transformer::scenario::{EMBEDDED, load};
use tui_transformer::session::{Options, RunKind, Session, open, view};
use tui_transformer::tensor::Precision;
use tui_transformer::text::{Lang, NumberFormat};
use tui_transformer::trace::derive::replay_node;
use tui_transformer::walkthrough::{Detail, LocalizedText, Step};
use tui_transformer::with_any;

use crate::common::fully_masked;

fn session(name: &str, options: Options) -> Session {
    let loaded = load(Path::new(name)).expect("embedded");
    open(loaded.scenario, None, options).unwrap_or_else(|p| panic!("{name}: {p:?}"))
}

fn plain(name: &str) -> Session {
    session(name, Options::default())
}

fn run_of(s: &Session, name: &str) -> usize {
    s.run_named(name).unwrap_or_else(|| panic!("no run {name}"))
}

fn values(s: &Session, run: &str, path: &str, slice: &str) -> Vec<f64> {
    let run = run_of(s, run);
    let view = view(s, run, "", path, slice).unwrap_or_else(|p| panic!("{path}: {p:?}"));
    let value = s.trace(run).expect("runs").value(view.node);
    view.cells.flats().map(|i| value.get(i)).collect()
}

fn length(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

#[test]
fn the_scenarios_that_are_promised() {
    let names: Vec<&str> = EMBEDDED.iter().map(|e| e.0).collect();
    for name in [
        "water_class",
        "encoder_char",
        "bert_block",
        "pre_ln_encoder",
        "modern_decoder",
        "gpt_block",
        "local_and_linear_attention",
        "encoder_decoder",
        "post_or_pre",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    for name in names {
        let s = plain(name);
        assert_eq!(s.scenario.name, name);
        for text in [&s.scenario.title, &s.scenario.note] {
            assert!(!text.en.is_empty() && !text.zh.is_empty(), "{name}");
        }
        let remarks = s.scenario.remarks.iter();
        for (path, text) in remarks {
            assert!(!text.en.is_empty() && !text.zh.is_empty(), "{name}: {path}");
        }
    }
}

#[test]
fn every_derivation_replays_in_both_number_types() {
    for (name, _) in EMBEDDED {
        for precision in [Precision::F64, Precision::F32] {
            let options = Options { precision: Some(precision), ..Options::default() };
            let s = session(name, options);
            for (i, run) in s.runs.iter().enumerate() {
                let trace = s.trace(i).unwrap_or_else(|e| panic!("{name}: {e}"));
                for (id, node) in run.program.nodes().filter(|(id, _)| trace.reached(*id)) {
                    let found = with_any!(AnyTrace, trace, t => replay_node(t, id));
                    let at = format!("{name} {precision:?} {} {}", run.name, node.path);
                    assert_eq!(found.different, 0, "{at}");
                    let value = trace.value(id);
                    let nan = (0..node.shape.len()).any(|i| value.get(i).is_nan());
                    assert!(!nan, "{at} is not a number");
                }
            }
        }
    }
}

/// In f32 the figures that a scenario states hold as far as f32 does.
#[test]
fn expected_values_hold() {
    let mut compared = 0;
    for (name, _) in EMBEDDED {
        for precision in [Precision::F64, Precision::F32] {
            let options = Options { precision: Some(precision), ..Options::default() };
            let s = session(name, options);
            for e in &s.scenario.expected {
                let run = e.run.as_deref().unwrap_or(&s.runs[0].name).to_owned();
                let ours = values(&s, &run, &e.path, &e.slice);
                for (ours, want) in ours.iter().zip(e.values.flat()) {
                    let far = (ours - want).abs();
                    let at = format!("{name} {} {}: {ours} for {want}", e.path, e.slice);
                    let allowed = e.allowed(*want, s.scenario.precision, precision);
                    assert!(far <= allowed && allowed < 1e-3, "{at}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 100, "only {compared} figures");
}

fn spoken(at: &str, step: &Step) {
    for (what, words) in [("title", &step.title), ("note", &step.note)] {
        let (en, zh) = (words.render(Lang::En), words.render(Lang::Zh));
        assert_eq!(en.is_empty(), zh.is_empty(), "{at}: {what}");
        assert!(what == "note" || !en.is_empty(), "{at} has no title");
        match words {
            LocalizedText::Empty => assert_eq!(what, "note", "{at}"),
            LocalizedText::Given { en, zh } => assert!(!en.is_empty() && !zh.is_empty(), "{at}: {what}"),
            LocalizedText::Message(_) | LocalizedText::At(..) | LocalizedText::Joined(_) => {}
        }
    }
}

#[test]
fn every_step_has_its_words_in_both_languages() {
    let mut bare = BTreeSet::new();
    for (name, _) in EMBEDDED {
        for detail in [Detail::Grouped, Detail::Full] {
            let options = Options { detail, ..Options::default() };
            let s = session(name, options);
            for step in s.steps.list() {
                spoken(&format!("{name} {}", step.label()), step);
            }
            for run in 0..s.runs.len() {
                // An update has a plan of its own.
                let plan =
                    if s.runs[run].kind == RunKind::Update { s.steps_of(run).list().to_vec() } else { s.plan_of(run) };
                for step in &plan {
                    if matches!(&step.title, LocalizedText::Message(msg) if msg.key == "walk.other") {
                        bare.insert(step.title.render(Lang::En));
                    }
                    spoken(&format!("{name} {} {}", s.runs[run].name, step.label()), step);
                }
            }
        }
    }
    assert!(bare.is_empty(), "bare paths as titles: {bare:#?}");
}

fn lines(s: &Session, run: &str, path: &str, lang: Lang) -> Vec<String> {
    let run = run_of(s, run);
    let steps = s.steps_of(run);
    let program = &s.runs[run].program;
    let shows = |step: &Step| step.views.iter().any(|v| *program.node(v.node).path == *path);
    let at = steps.list().iter().position(shows).expect("a step");
    let settings = Settings {
        lang,
        number: NumberFormat::default(),
        round: None,
        derivations: usize::MAX,
        terms: 8,
        inputs: false,
    };
    let doc = document(s, &steps, at, &steps.list()[at], &settings).expect("runs");
    doc.derivations.into_iter().map(|d| d.text).collect()
}

#[test]
fn a_masked_score_says_why() {
    let (char, local) = (plain("encoder_char"), plain("local_and_linear_attention"));
    let both = plain("encoder_decoder");
    let masked = "encoder.0.self_attn.masked_scores";
    for (s, run, path, en, zh) in [
        (&char, "encode", masked, "= mask(padding): ", "= mask(填充): "),
        (&local, "encode", "encoder.1.self_attn.masked_scores", "= mask(window): ", "= mask(窗口外): "),
        (&local, "blind", masked, "= mask(given): ", "= mask(给定): "),
        (&both, "training", "decoder.0.self_attn.masked_scores", "= mask(causal, padding): ", "= mask(因果, 填充): "),
    ] {
        let has = |lang, text: &str| lines(s, run, path, lang).iter().any(|l| l.contains(text));
        assert!(has(Lang::En, en), "{path}: {en}");
        assert!(has(Lang::Zh, zh), "{path}: {zh}");
    }
    let hidden = lines(&char, "encode", masked, Lang::En);
    assert!(hidden.iter().any(|l| l.contains("mask(padding): ") && l.ends_with(" → -∞")));
    assert!(hidden.iter().any(|l| l.starts_with("mask[") && l.ends_with("= 1 (padding)")));
}

#[test]
fn a_row_that_sees_nothing_is_zero_and_flagged() {
    let s = plain("local_and_linear_attention");
    let blind = &s.runs[run_of(&s, "blind")];
    assert_eq!(fully_masked(&blind.program).len(), 3, "one a layer");
    for layer in 0..3 {
        let path = format!("encoder.{layer}.self_attn.weights");
        let row = values(&s, "blind", &path, "query=1");
        assert!(row.iter().all(|x| *x == 0.0), "{path}: {row:?}");
    }
    assert!(fully_masked(&s.runs[run_of(&s, "encode")].program).is_empty());
}

#[test]
fn encoder_char_cuts_the_text_into_characters() {
    let s = plain("encoder_char");
    let tokens = &s.inputs.source_tokens;
    let text: Vec<&str> = tokens[0].iter().map(|t| t.text.as_str()).collect();
    assert_eq!(text, ["<sos>", "我", "爱", "深", "度", "学", "习", "<eos>"]);
    let unknown: Vec<&str> = tokens[0].iter().filter(|t| t.unknown).map(|t| t.text.as_str()).collect();
    assert_eq!(unknown, ["爱"]);
    let program = &s.runs[0].program;
    let step =
        s.steps.list().iter().find(|step| step.views.iter().any(|v| *program.node(v.node).path == *"embed.source.ids"));
    let note = step.expect("a step").note.render(Lang::Zh);
    assert!(note.contains("我→16") && note.contains("<unk>") && note.ends_with("爱"), "{note}");
}

/// What the notes of `encoder_char` state.
#[test]
fn encoder_char_is_as_its_notes_say() {
    let s = plain("encoder_char");
    let at = |path: &str, slice: &str| values(&s, "encode", path, slice);
    for layer in 0..3 {
        for norm in ["norm1", "norm2"] {
            for row in at(&format!("encoder.{layer}.{norm}.out"), "").chunks(32) {
                assert!((length(row) - 32f64.sqrt()).abs() < 1e-4, "{}", length(row));
            }
        }
    }
    let act = at("encoder.0.ffn.act", "");
    let zeros = act.iter().filter(|x| **x == 0.0).count() as f64 / act.len() as f64;
    assert!((zeros - 0.52).abs() < 0.005, "{zeros}");
    for (head, diagonal, others) in [(0, 0.124, 0.125), (1, 0.129, 0.124), (2, 0.103, 0.128), (3, 0.092, 0.130)] {
        let a = at("encoder.0.self_attn.weights", &format!("batch=0,head={head}"));
        let on: f64 = (0..8).map(|i| a[i * 9]).sum();
        assert!((on / 8.0 - diagonal).abs() < 6e-4, "head {head}: {}", on / 8.0);
        assert!(((8.0 - on) / 56.0 - others).abs() < 6e-4, "head {head}");
    }
    for (layer, largest) in [(0, 0.75), (2, 0.44)] {
        let a = at(&format!("encoder.{layer}.self_attn.weights"), "batch=0");
        let most = a.iter().fold(0.0, |m: f64, x| m.max(*x));
        assert!((most - largest).abs() < 0.005, "{most}");
    }
    for (layer, cosine) in [(0, 0.44), (2, 0.84)] {
        let rows = at(&format!("encoder.{layer}.norm2.out"), "batch=0");
        let rows: Vec<&[f64]> = rows.chunks(32).collect();
        let mut all = Vec::new();
        for (i, a) in rows.iter().enumerate() {
            for b in rows.iter().skip(i + 1) {
                let product: f64 = a.iter().zip(*b).map(|(x, y)| x * y).sum();
                all.push(product / length(a) / length(b));
            }
        }
        assert!((mean(&all) - cosine).abs() < 0.005, "{}", mean(&all));
    }
    // Padding hides three keys of the second sentence and nothing of the first.
    let weights = "encoder.0.self_attn.weights";
    let open = |slice: &str| values(&s, "no_padding_mask", weights, slice);
    assert_eq!(at(weights, "batch=0"), open("batch=0"));
    assert!(at(weights, "batch=1,key=5..8").iter().all(|x| *x == 0.0));
    assert!(open("batch=1,key=5..8").iter().all(|x| *x > 0.0));
}

#[test]
fn the_three_shapes_of_a_mask_say_the_same() {
    let s = plain("pre_ln_encoder");
    let out = |run: &str| values(&s, run, "encoder.final_norm.out", "");
    assert_eq!(out("mask_keys"), out("mask_row"));
    assert_eq!(out("mask_keys"), out("mask_square"));
    assert_ne!(out("mask_keys"), out("mask_per_query"));
    let second = |run: &str| values(&s, run, "encoder.final_norm.out", "batch=1,token=0");
    assert_ne!(second("mask_keys"), second("mask_per_query"));
}

#[test]
fn dropout_acts_in_training_only_and_is_recorded() {
    let s = plain("pre_ln_encoder");
    let masks = |run: &str| {
        let program = &s.runs[run_of(&s, run)].program;
        program.nodes().filter(|(_, n)| n.path.ends_with("dropped_mask")).count()
    };
    // The embedding, then in each of two layers: weights, two sublayers, the network's inside.
    assert_eq!((masks("training"), masks("mask_keys")), (9, 0));
    for x in values(&s, "training", "encoder.0.sublayer1_dropped_mask", "") {
        assert!(x == 0.0 || (x - 1.0 / 0.9).abs() < 1e-6, "{x}");
    }
}

/// Both runs begin with the same bits; post-LN's rows keep variance 1, pre-LN's stream grows as the note says.
#[test]
fn the_residual_stream_of_pre_ln_grows() {
    let s = plain("post_or_pre");
    let input = |run: &str| values(&s, run, "embed.source.out", "");
    assert_eq!(input("post_ln"), input("pre_ln"));
    for layer in 0..12 {
        for row in values(&s, "post_ln", &format!("encoder.{layer}.norm2.out"), "").chunks(16) {
            assert!((length(row) - 4.0).abs() < 1e-3);
        }
    }
    let var = |norm: &str| mean(&values(&s, "pre_ln", &format!("{norm}.var"), ""));
    let growth = var("encoder.final_norm") / var("encoder.1.norm1");
    assert!((growth - 4.9).abs() < 0.06, "{growth}");
    let half = var("encoder.6.norm1") / var("encoder.1.norm1");
    assert!(half > 1.5 && half < growth, "{half}");
}

#[test]
fn a_cache_changes_no_bit_and_runs_end_where_they_should() {
    for name in ["modern_decoder", "gpt_block", "encoder_decoder"] {
        let cached = plain(name);
        let mut scenario = cached.scenario.clone();
        for run in &mut scenario.runs {
            if let tui_transformer::scenario::schema::Run::Inference { kv_cache, .. } = run {
                *kv_cache = false;
            }
        }
        let plain = open(scenario, None, Options::default()).expect("opens");
        let run = cached.runs.iter().position(|r| r.kind == RunKind::Inference);
        let run = run.expect("an inference run");
        let mut calls = 0;
        while let Some(id) = cached.runs[run].program.find(&format!("gen.{calls}.next.id")) {
            let other = plain.runs[run].program.find(&format!("gen.{calls}.next.id"));
            let next = |s: &Session, id| s.trace(run).expect("runs").value(id).get(0);
            assert_eq!(next(&cached, id), next(&plain, other.expect("there")), "{name}");
            calls += 1;
        }
        assert!(calls >= 4, "{name} has {calls} calls");
    }
}
