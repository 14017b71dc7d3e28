//! Values that a scenario expects, and printed figures that are said to be wrong, against what is there.

use serde_json::{Value as Json, json};

use super::{About, Level, Line, number};
use crate::debug::expected::{Compared, Misprinted, Wrong};
use crate::session::Session;
use crate::text::number::exact;
use crate::text::{Lang, Msg, escape};

/// Whether everything is as expected.
pub fn good(expected: &[Compared]) -> bool {
    expected.iter().all(|e| e.wrong.is_empty() && e.misprints.iter().all(|m| !m.right))
}

/// What is not as expected, `most` cells of each expectation at most, and each figure that is said to be wrong.
pub fn lines(session: &Session, expected: &[Compared], most: usize, lang: Lang) -> Vec<Line> {
    let mut lines = Vec::new();
    let note = |lines: &mut Vec<Line>, note: &str| {
        if !note.is_empty() {
            lines.push(Line::new(Msg::new("report.note").arg("text", escape(note))));
        }
    };
    for e in expected.iter().filter(|e| !e.wrong.is_empty()) {
        let msg = Msg::new("check.expected_wrong")
            .arg("path", escape(&e.path))
            .arg("wrong", e.wrong.len())
            .arg("values", e.values)
            .arg("largest", format!("{:e}", e.largest));
        lines.push(Line::new(msg).level(Level::Error).about(about(session, e, &[])));
        lines.extend(e.wrong.iter().take(most).map(|w| wrong_cell(session, e, w)));
        if e.wrong.len() > most {
            lines.push(Line::new(Msg::new("check.expected_more").arg("count", e.wrong.len() - most)));
        }
        note(&mut lines, session.scenario.expected[e.entry].note.of(lang));
    }
    for (e, m) in expected.iter().flat_map(|e| e.misprints.iter().map(move |m| (e, m))) {
        lines.push(misprint(session, e, m));
        note(&mut lines, session.scenario.expected[e.entry].misprints[m.entry].note.of(lang));
    }
    lines
}

/// How many values are as expected.
pub fn count(expected: &[Compared]) -> Line {
    let (all, wrong) = expected.iter().fold((0, 0), |(all, wrong), e| (all + e.values, wrong + e.wrong.len()));
    Line::new(Msg::new("check.expected").arg("right", all - wrong).arg("all", all))
}

fn about(session: &Session, e: &Compared, index: &[usize]) -> About {
    About::Node { run: Some(session.runs[e.run].name.clone()), path: e.path.clone(), index: index.to_vec() }
}

/// Where one value is not as expected, what was, and what is there.
fn wrong_cell(session: &Session, e: &Compared, w: &Wrong) -> Line {
    let msg = Msg::new("check.expected_cell")
        .arg("run", escape(&session.runs[e.run].name))
        .arg("path", escape(&e.path))
        .arg("cell", w.bracketed())
        .arg("expected", exact(w.expected))
        .arg("found", exact(w.found));
    Line::new(msg).level(Level::Error).about(about(session, e, &w.index))
}

/// A published figure that is wrong, or is said to be.
fn misprint(session: &Session, e: &Compared, m: &Misprinted) -> Line {
    let index: Vec<String> = m.index.iter().map(usize::to_string).collect();
    let msg = Msg::new(if m.right { "check.no_misprint" } else { "check.misprint" })
        .arg("run", escape(&session.runs[e.run].name))
        .arg("path", escape(&e.path))
        .arg("cell", format!("[{}]", index.join("][")))
        .arg("printed", exact(session.scenario.expected[e.entry].misprints[m.entry].printed))
        .arg("found", exact(m.found));
    Line::new(msg).level(if m.right { Level::Error } else { Level::Info }).about(about(session, e, &m.index))
}

/// For programs.
pub fn to_json(session: &Session, expected: &[Compared]) -> Json {
    let one = |e: &Compared| {
        json!({
            "run": session.runs[e.run].name,
            "path": e.path,
            "values": e.values,
            "wrong": e.wrong.len(),
            "largest_difference": number(e.largest),
            "misprints": e.misprints.iter().map(|m| json!({
                "cell": m.index,
                "printed": number(session.scenario.expected[e.entry].misprints[m.entry].printed),
                "found": number(m.found),
                "right": m.right,
            })).collect::<Vec<_>>(),
            "cells": e.wrong.iter().map(|w| json!({
                "cell": w.index,
                "position": w.position,
                "expected": number(w.expected),
                "found": number(w.found),
            })).collect::<Vec<_>>(),
        })
    };
    expected.iter().map(one).collect()
}
