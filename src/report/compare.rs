//! A comparison with a reference.

use serde_json::{Value as Json, json};

use super::{About, Level, Line, Row, number};
use crate::debug::compare::pattern::Pattern;
use crate::debug::compare::recordings::GUESSED;
use crate::debug::compare::words::{self, list, worst};
use crate::debug::compare::{Checked, Difference, Limits, Mode, Place, Policy, Report, State};
use crate::text::{Align, Lang, Msg, NumberFormat, escape};

/// Rows of the table that a script gets.
const MAX_ROWS: usize = 20;

/// What was compared.
pub struct Head<'a> {
    /// The scenario.
    pub scenario: &'a str,
    /// The run.
    pub run: &'a str,
    /// Whose limits hold.
    pub policy: Policy,
}

/// A comparison: what was compared, the table of what differs, what is left over, the counts and the verdict.
pub fn lines(head: &Head<'_>, report: &Report, number: Option<NumberFormat>, lang: Lang) -> Vec<Line> {
    let mode = Msg::new(match report.mode {
        Mode::Isolated => "compare.mode.isolated",
        Mode::Cumulative => "compare.mode.cumulative",
    });
    let first = Msg::new("compare.head")
        .arg("scenario", escape(head.scenario))
        .arg("run", escape(head.run))
        .arg("reference", escape(&report.reference))
        .arg("mode", mode.render(lang));
    let mut lines = vec![Line::new(first)];
    lines.extend(table(report, number, MAX_ROWS, lang));
    lines.extend(rest(report, lang));
    lines.push(Line::new(counts(report, "compare.counts")));
    lines.extend(verdict(report, lang));
    lines
}

/// How many nodes are in which state.
pub fn counts(report: &Report, key: &'static str) -> Msg {
    Msg::new(key)
        .arg("match", report.count(State::Match))
        .arg("drift", report.count(State::Drift))
        .arg("diverged", report.count(State::Diverged))
        .arg("unchecked", report.count(State::Unchecked))
}

/// What is of no node or could not be read, how the error grows, and how many matches are guessed.
pub fn rest(report: &Report, lang: Lang) -> Vec<Line> {
    let mut lines = Vec::new();
    for (key, names) in [("compare.unmatched", &report.unmatched), ("compare.map.unused", &report.unused)] {
        if !names.is_empty() {
            let listed = list(names.iter().map(String::as_str), lang);
            lines.push(Line::new(Msg::new(key).arg("count", names.len()).arg("names", listed)));
        }
    }
    for (name, kind) in &report.unreadable {
        lines.push(Line::new(Msg::new("compare.unreadable").arg("name", escape(name)).arg("type", escape(kind))));
    }
    if let Some(chart) = report.growth() {
        lines.push(Line::new(Msg::new("compare.growth").arg("chart", chart)));
    }
    let guessed = report.each().filter(|c| c.against.as_ref().is_some_and(|a| a.table == GUESSED)).count();
    if guessed > 0 {
        lines.push(Line::new(Msg::new("compare.guessed").arg("count", guessed)));
    }
    lines
}

/// That nothing differs, or the first difference: where it is, what lies before, and what it looks like.
pub fn verdict(report: &Report, lang: Lang) -> Vec<Line> {
    let Some(difference) = report.verdict() else {
        let mut lines = vec![Line::new(Msg::new("compare.good")).level(Level::Done)];
        let (without, matter) = (report.unmatched.len(), report.mattering.len());
        if without > 0 {
            let key = if matter > 0 { "compare.good_but" } else { "compare.good_and" };
            let names = list(report.mattering.iter().map(String::as_str), lang);
            let msg = Msg::new(key).arg("without", without).arg("all", report.tensors);
            lines.push(Line::new(msg.arg("matter", matter).arg("names", names)));
        }
        return lines;
    };
    let places = [Some(&difference.place), difference.last_match.as_ref()];
    let mut lines: Vec<Line> = words::verdict(difference, lang).into_iter().map(Line::new).collect();
    for (i, line) in lines.iter_mut().enumerate() {
        line.about = places.get(i).copied().flatten().map(|place| about(place, &[]));
    }
    lines[0].level = Level::Warning;
    let Some(against) = report.of(difference.place.node).and_then(|c| c.against.as_ref()) else { return lines };
    let key = if against.row.is_some() { "compare.meant_row" } else { "compare.meant" };
    let msg = Msg::new(key).arg("name", escape(&against.name)).arg("row", against.row.unwrap_or(0));
    lines.push(Line::new(msg));
    if let (true, Some(measure)) = (against.by_digits, &against.measure) {
        let msg = Msg::new("compare.by_digits").arg("type", against.unit.name());
        lines.push(Line::new(msg.arg("differing", measure.differing).arg("cells", measure.cells)));
    }
    lines.extend(against.patterns.iter().map(|pattern| Line::new(pattern_words(pattern))));
    lines
}

fn about(place: &Place, index: &[usize]) -> About {
    About::Node { run: None, path: place.path.clone(), index: index.to_vec() }
}

fn pattern_words(pattern: &Pattern) -> Msg {
    let numbers = |all: &[usize]| {
        let text: Vec<String> = all.iter().take(12).map(ToString::to_string).collect();
        text.join(", ") + if all.len() > 12 { ", …" } else { "" }
    };
    match pattern {
        Pattern::Only { axis, at, elements, of } => Msg::new("compare.pattern.only")
            .arg("axis", axis.name())
            .arg("at", at)
            .arg("elements", numbers(elements))
            .arg("of", of),
        Pattern::Transposed => Msg::new("compare.pattern.transposed"),
        Pattern::Permuted { axis, order } => {
            Msg::new("compare.pattern.permuted").arg("axis", axis.name()).arg("order", numbers(order))
        }
        Pattern::Scaled(factor) => Msg::new("compare.pattern.scaled").arg("factor", factor),
        Pattern::Shifted { axis, by } => Msg::new("compare.pattern.shifted").arg("axis", axis.name()).arg("by", by),
        Pattern::ConstantPerRow => Msg::new("compare.pattern.row"),
        Pattern::OnlyMasked => Msg::new("compare.pattern.masked"),
        Pattern::Rounded(name) => Msg::new("compare.pattern.rounded").arg("type", name),
    }
}

/// A table of `most` nodes beyond the limits at most, the first ones.
pub fn table(report: &Report, number: Option<NumberFormat>, most: usize, lang: Lang) -> Vec<Line> {
    let beyond = |c: &&Checked| matches!(c.state, State::Drift | State::Diverged);
    // Differences go before drift where there is no room for all.
    let diverged = report.each().filter(|c| c.state == State::Diverged);
    let drifted = report.each().filter(|c| c.state == State::Drift);
    let mut chosen: Vec<&Checked> = diverged.chain(drifted).take(most).collect();
    chosen.sort_by_key(|c| c.place.node);
    let left = report.each().filter(beyond).count() - chosen.len();
    if chosen.is_empty() {
        return Vec::new();
    }
    let heading = [
        "compare.column.step",
        "compare.column.path",
        "compare.column.state",
        "compare.column.rms",
        "compare.column.max",
        "compare.column.worst",
    ];
    let heading = heading.map(|key| Msg::new(key).render(lang)).to_vec();
    let mut rows = vec![Row { cells: heading, level: Level::Info, about: None }];
    for c in chosen {
        let level = if c.state == State::Diverged { Level::Warning } else { Level::Info };
        let cells = cells(report, c, number, lang).to_vec();
        rows.push(Row { cells, level, about: Some(about(&c.place, first_index(c))) });
    }
    let align = [Align::Right, Align::Left, Align::Left, Align::Right, Align::Right];
    let mut lines = super::table(rows, &align);
    if left > 0 {
        lines.push(Line::new(Msg::new("compare.more").arg("count", left)));
    }
    lines
}

fn first_index(c: &Checked) -> &[usize] {
    c.against.as_ref().and_then(|a| a.cells.first()).map_or(&[], |cell| &cell.index)
}

/// A node in a line of the table: step, path, state, how far apart, and the worst cell.
fn cells(report: &Report, c: &Checked, number: Option<NumberFormat>, lang: Lang) -> [String; 6] {
    let carried = report.differences.iter().any(|d| d.carried && d.place.node == c.place.node);
    let state = match c.state {
        State::Diverged if carried => "compare.carried",
        State::Diverged => "compare.state.diverged",
        State::Drift => "compare.state.drift",
        State::Match => "compare.state.match",
        State::Unchecked => "compare.state.unchecked",
    };
    let measure = c.against.as_ref().and_then(|a| a.measure.as_ref());
    let size = |x: Option<f64>| x.map_or_else(String::new, |x| NumberFormat::Scientific(1).format(x));
    [
        (c.place.step.as_ref()).map_or_else(|| "-".to_owned(), |s| s.label.clone()),
        escape(&c.place.path).into_owned(),
        Msg::new(state).render(lang),
        size(measure.map(|m| m.rms)),
        size(measure.map(|m| m.max)),
        worst(c, number.unwrap_or(NumberFormat::Shortest)).render(lang),
    ]
}

/// One node as a line of its own.
pub fn line(report: &Report, c: &Checked, lang: Lang) -> Msg {
    let [step, path, state, rms, max, worst] = cells(report, c, None, lang);
    let size = |x: String| if x.is_empty() { "-".to_owned() } else { x };
    let msg = Msg::new("compare.row").arg("step", step).arg("path", path).arg("state", state);
    msg.arg("rms", size(rms)).arg("max", size(max)).arg("worst", worst)
}

/// A report for programs.
pub fn to_json(head: &Head<'_>, report: &Report) -> Json {
    let differences: Vec<Json> = report.differences.iter().map(difference).collect();
    json!({
        "scenario": head.scenario,
        "run": head.run,
        "reference": report.reference,
        "mode": report.mode.name(),
        "policy": match head.policy {
            Policy::Ours => "ours",
            Policy::Torch => "torch",
            Policy::Numpy => "numpy",
        },
        "good": report.agrees(),
        "counts": {
            "match": report.count(State::Match),
            "drift": report.count(State::Drift),
            "diverged": report.count(State::Diverged),
            "unchecked": report.count(State::Unchecked),
        },
        "verdict": differences.first(),
        "differences": differences,
        "nodes": report.nodes.iter().map(node).collect::<Vec<_>>(),
        "unmatched": report.unmatched,
        "mattering": report.mattering,
        "unused": report.unused,
        "unreadable": report.unreadable.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect::<Vec<_>>(),
    })
}

fn step(place: &Place) -> Json {
    match &place.step {
        Some(s) => s.label.parse::<u32>().map_or_else(|_| json!(s.label), Json::from),
        None => Json::Null,
    }
}

fn place_json(place: &Place) -> Json {
    json!({ "path": place.path, "step": step(place) })
}

fn difference(d: &Difference) -> Json {
    json!({
        "path": d.place.path,
        "step": step(&d.place),
        "last_match": d.last_match.as_ref().map(place_json),
        "between": d.between.iter().map(place_json).collect::<Vec<_>>(),
        "given": d.given.iter().map(|p| p.path.as_str()).collect::<Vec<_>>(),
        "carried": d.carried,
    })
}

fn node(c: &Checked) -> Json {
    let against = c.against.as_ref();
    let measure = against.and_then(|a| a.measure.as_ref());
    let limits = measure.map(|m| match m.limits {
        Limits::Whole { rms, max, atol } => {
            json!({ "rms": number(rms), "max": number(max), "atol": number(atol) })
        }
        Limits::Cells { rtol, atol, .. } => {
            json!({ "rtol": number(rtol), "atol": number(atol) })
        }
    });
    json!({
        "path": c.place.path,
        "step": step(&c.place),
        "state": c.state.name(),
        "shape": c.shape,
        "name": against.map(|a| a.name.as_str()),
        "table": against.map(|a| a.table.as_str()),
        "reference_shape": against.map(|a| &a.shape),
        "unit": against.map(|a| a.unit.name()),
        "row": against.and_then(|a| a.row),
        "by_digits": against.is_some_and(|a| a.by_digits),
        "patterns": against.map(|a| a.patterns.iter().map(Pattern::name).collect::<Vec<_>>()),
        "rms": measure.map(|m| number(m.rms)),
        "max": measure.map(|m| number(m.max)),
        "difference": measure.map(|m| number(m.difference)),
        "limits": limits,
        "rounding": measure.map(|m| json!({ "rms": number(m.rounding.rms), "max": number(m.rounding.max) })),
        "cells": measure.map(|m| m.cells),
        "differing": measure.map(|m| m.differing),
        "worst": against.map(|a| a.cells.iter().map(|p| json!({
            "index": p.index,
            "ours": number(p.ours),
            "reference": number(p.theirs),
        })).collect::<Vec<_>>()),
    })
}
