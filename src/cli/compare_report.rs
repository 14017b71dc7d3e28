//! A comparison as text and as JSON.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use crate::debug::compare::pattern::Pattern;
use crate::debug::compare::recordings::GUESSED;
use crate::debug::compare::words::{list, verdict, worst};
use crate::debug::compare::{Checked, Difference, Limits, Mode, Place, Policy, Report, State};
use crate::text::{Align, Cells, Lang, Msg, NumberFormat, escape};

/// Rows of the table.
const MAX_ROWS: usize = 20;
/// What was compared.
pub(super) struct Head<'a> {
    pub scenario: &'a str,
    pub run: &'a str,
    pub policy: Policy,
}

/// Writes a report for a person.
pub(super) fn text(
    out: &mut impl Write,
    head: &Head<'_>,
    report: &Report,
    number: Option<NumberFormat>,
    lang: Lang,
) -> io::Result<()> {
    let say = |msg: Msg| msg.render(lang);
    let mode = say(Msg::new(match report.mode {
        Mode::Isolated => "compare.mode.isolated",
        Mode::Cumulative => "compare.mode.cumulative",
    }));
    let first = Msg::new("compare.head")
        .arg("scenario", escape(head.scenario))
        .arg("run", escape(head.run))
        .arg("reference", escape(&report.reference))
        .arg("mode", mode);
    writeln!(out, "{}", say(first))?;
    table(out, report, number, lang)?;
    if !report.unmatched.is_empty() {
        let names = report.unmatched.iter().map(String::as_str);
        let msg = Msg::new("compare.unmatched").arg("count", report.unmatched.len()).arg("names", list(names, lang));
        writeln!(out, "{}", say(msg))?;
    }
    if !report.unused.is_empty() {
        let names = report.unused.iter().map(String::as_str);
        let msg = Msg::new("compare.map.unused").arg("count", report.unused.len()).arg("names", list(names, lang));
        writeln!(out, "{}", say(msg))?;
    }
    for (name, kind) in &report.unreadable {
        let msg = Msg::new("compare.unreadable").arg("name", escape(name));
        writeln!(out, "{}", say(msg.arg("type", escape(kind))))?;
    }
    if let Some(chart) = report.growth() {
        writeln!(out, "{}", say(Msg::new("compare.growth").arg("chart", chart)))?;
    }
    let guessed = report.each().filter(|c| c.against.as_ref().is_some_and(|a| a.table == GUESSED)).count();
    if guessed > 0 {
        writeln!(out, "{}", say(Msg::new("compare.guessed").arg("count", guessed)))?;
    }
    let counts = Msg::new("compare.counts")
        .arg("match", report.count(State::Match))
        .arg("drift", report.count(State::Drift))
        .arg("diverged", report.count(State::Diverged))
        .arg("unchecked", report.count(State::Unchecked));
    writeln!(out, "{}", say(counts))?;
    match report.verdict() {
        None => {
            writeln!(out, "{}", say(Msg::new("compare.good")))?;
            let (without, matter) = (report.unmatched.len(), report.mattering.len());
            if without > 0 {
                let key = if matter > 0 { "compare.good_but" } else { "compare.good_and" };
                let names = list(report.mattering.iter().map(String::as_str), lang);
                let msg = Msg::new(key).arg("without", without).arg("all", report.tensors);
                writeln!(out, "{}", say(msg.arg("matter", matter).arg("names", names)))?;
            }
            Ok(())
        }
        Some(difference) => {
            for msg in verdict(difference, lang) {
                writeln!(out, "{}", say(msg))?;
            }
            if let Some(against) = report.of(difference.place.node).and_then(|c| c.against.as_ref()) {
                let key = if against.row.is_some() { "compare.meant_row" } else { "compare.meant" };
                let msg = Msg::new(key).arg("name", escape(&against.name)).arg("row", against.row.unwrap_or(0));
                writeln!(out, "{}", say(msg))?;
                if let (true, Some(measure)) = (against.by_digits, &against.measure) {
                    let msg = Msg::new("compare.by_digits").arg("type", against.unit.name());
                    let msg = msg.arg("differing", measure.differing).arg("cells", measure.cells);
                    writeln!(out, "{}", say(msg))?;
                }
                for pattern in &against.patterns {
                    writeln!(out, "{}", say(pattern_words(pattern)))?;
                }
            }
            Ok(())
        }
    }
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

/// Nodes beyond the limits, the first ones.
fn table(out: &mut impl Write, report: &Report, number: Option<NumberFormat>, lang: Lang) -> io::Result<()> {
    let told = |c: &&Checked| matches!(c.state, State::Drift | State::Diverged);
    // Differences go before drift where there is no room for all.
    let diverged = report.each().filter(|c| c.state == State::Diverged);
    let drifted = report.each().filter(|c| c.state == State::Drift);
    let mut chosen: Vec<&Checked> = diverged.chain(drifted).take(MAX_ROWS).collect();
    chosen.sort_by_key(|c| c.place.node);
    let left = report.each().filter(told).count() - chosen.len();
    if chosen.is_empty() {
        return Ok(());
    }
    let columns = ["step", "path", "state", "rms", "max", "worst"];
    let heading = columns.map(|c| Msg {
        key: match c {
            "step" => "compare.column.step",
            "path" => "compare.column.path",
            "state" => "compare.column.state",
            "rms" => "compare.column.rms",
            "max" => "compare.column.max",
            _ => "compare.column.worst",
        },
        args: Vec::new(),
    });
    let mut rows: Vec<[String; 6]> = vec![heading.map(|m| m.render(lang))];
    let carried = |c: &Checked| (report.differences.iter()).any(|d| d.carried && d.place.node == c.place.node);
    for c in chosen {
        let state = match c.state {
            State::Diverged if carried(c) => "compare.carried",
            State::Diverged => "compare.state.diverged",
            _ => "compare.state.drift",
        };
        let measure = c.against.as_ref().and_then(|a| a.measure.as_ref());
        let size = |x: Option<f64>| x.map_or_else(String::new, |x| NumberFormat::Scientific(1).format(x));
        rows.push([
            (c.place.step.as_ref()).map_or_else(|| "-".to_owned(), |s| s.label.clone()),
            escape(&c.place.path).into_owned(),
            Msg::new(state).render(lang),
            size(measure.map(|m| m.rms)),
            size(measure.map(|m| m.max)),
            worst(c, number.unwrap_or(NumberFormat::Shortest)).render(lang),
        ]);
    }
    let cells = Cells::NARROW;
    let width = |i: usize| rows.iter().map(|r| cells.width(&r[i])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in &rows {
        for (i, width) in widths.iter().enumerate() {
            let align = if matches!(i, 1 | 2) { Align::Left } else { Align::Right };
            write!(out, "{}  ", cells.pad(&row[i], *width, align))?;
        }
        writeln!(out, "{}", row[5])?;
    }
    if left > 0 {
        let more = Msg::new("compare.more").arg("count", left);
        writeln!(out, "{}", more.render(lang))?;
    }
    Ok(())
}

/// A report for programs.
pub(super) fn to_json(head: &Head<'_>, report: &Report) -> Json {
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
        "patterns": against.map(|a| a.patterns.iter().map(super::super::debug::compare::pattern::Pattern::name).collect::<Vec<_>>()),
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

/// A number, or the name of one that JSON lacks.
fn number(x: f64) -> Json {
    if x.is_finite() {
        json!(x)
    } else if x.is_nan() {
        json!("nan")
    } else {
        json!(if x > 0.0 { "inf" } else { "-inf" })
    }
}
