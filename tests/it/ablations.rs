//! Ablations of a part of a layer, and of positions: what they leave, and what follows from it.

use std::path::Path;
use std::sync::Arc;

use tui_transformer::debug::whatif::{Edit, WhatIf};
use tui_transformer::scenario::edit;
use tui_transformer::scenario::{load, syntax, write};
use tui_transformer::session::{Options, Session, open};

fn session(name: &str) -> Arc<Session> {
    let loaded = load(Path::new(name)).expect("a scenario");
    Arc::new(open(loaded.scenario, None, Options::default()).expect("opens"))
}

fn without(s: &Arc<Session>, edit: edit::Edit) -> Arc<Session> {
    let mut what_if = WhatIf::new(Arc::clone(s));
    what_if.apply(Edit::Recorded(edit)).expect("it is there");
    Arc::clone(what_if.session())
}

fn block(path: &str) -> edit::Edit {
    edit::Edit::Block { block: path.to_owned(), run: None }
}

fn values(s: &Session, path: &str) -> Vec<f64> {
    let id = s.runs[0].program.find(path).unwrap_or_else(|| panic!("{path}"));
    let value = s.trace(0).expect("runs").get(id).expect("a value");
    (0..value.shape().len()).map(|i| value.get(i)).collect()
}

#[test]
fn a_feed_forward_network_or_an_attention_alone_adds_nothing() {
    let s = session("water_class");
    let edited = without(&s, block("encoder.0.ffn"));
    assert!(values(&edited, "encoder.0.ffn.out").iter().all(|x| *x == 0.0));
    assert_eq!(values(&edited, "encoder.0.residual2"), values(&edited, "encoder.0.norm1.out"));
    // The attention before it is as it was; what comes after is not.
    assert_eq!(values(&edited, "encoder.0.self_attn.out"), values(&s, "encoder.0.self_attn.out"));
    assert_ne!(values(&edited, "encoder.0.norm2.out"), values(&s, "encoder.0.norm2.out"));
    assert_ne!(values(&edited, "loss.mean"), values(&s, "loss.mean"));
    let edited = without(&s, block("decoder.1.cross_attn"));
    assert_eq!(values(&edited, "decoder.1.residual2"), values(&edited, "decoder.1.norm1.out"));
}

#[test]
fn a_norm_alone_passes_on_what_it_reads() {
    let s = session("water_class");
    let edited = without(&s, block("encoder.0.norm1"));
    // γ is 1 and β is 0 there.
    assert_eq!(values(&edited, "encoder.0.norm1.out"), values(&edited, "encoder.0.residual1"));
    assert_eq!(values(&edited, "encoder.0.residual1"), values(&s, "encoder.0.residual1"));
    assert_ne!(values(&edited, "output.probs"), values(&s, "output.probs"));
}

#[test]
fn positions_are_forgotten_whatever_they_are() {
    let positions = |side| edit::Edit::Positions { side, run: None };
    let s = session("water_class");
    let edited = without(&s, positions(edit::Side::Source));
    assert!(values(&edited, "embed.source.positions").iter().all(|x| *x == 0.0));
    assert_ne!(values(&edited, "encoder.0.self_attn.scores"), values(&s, "encoder.0.self_attn.scores"));
    // Rotary positions: queries are as they were projected.
    let s = session("modern_decoder");
    let edited = without(&s, positions(edit::Side::Target));
    let rotated = values(&edited, "decoder.0.self_attn.q_rotated");
    assert_eq!(rotated, values(&edited, "decoder.0.self_attn.q"));
    assert_ne!(rotated, values(&s, "decoder.0.self_attn.q_rotated"));
}

#[test]
fn ablations_are_data_of_a_scenario() {
    let s = session("water_class");
    let edited = without(&s, block("encoder.1.norm2"));
    let text = write(&edited.scenario);
    let back = syntax::read("", &text).expect("reads back");
    let again = open(back, None, Options::default()).expect("opens");
    assert_eq!(values(&again, "output.probs"), values(&edited, "output.probs"));
    let mut what_if = WhatIf::new(Arc::clone(&s));
    let problems = what_if.apply(Edit::Recorded(block("encoder.7.ffn"))).expect_err("no such layer");
    assert_eq!((problems[0].at.as_str(), problems[0].msg.key), ("edits[0].block", "edit.no_block"));
}
