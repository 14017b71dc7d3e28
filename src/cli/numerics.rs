//! What `--round` changes, as text and as JSON: for `check`, `compare` without a reference, and `steps`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::{Failure, common};
use crate::debug::numerics::{Lens, NodeError};
use crate::program::NodeId;
use crate::session::Session;
use crate::text::{Align, Cells, Lang, Msg, NumberFormat, escape, number::exact, tr};
use crate::trace::Rounding;
use crate::walkthrough::Step;

/// Rows of the table.
const MAX_ROWS: usize = 40;

/// What a rounding makes of a run.
///
/// # Errors
/// A run that cannot run, or that another program computed.
pub(super) fn lens(session: &Session, run: usize, rounding: Rounding, kinds: bool) -> Result<Lens, Failure> {
    common::computed(session, run)?;
    Lens::of(session, run, rounding, kinds).map_err(|e| common::cannot_run(&e))
}

/// Writes what was found, and where rounding matters.
pub(super) fn text(out: &mut impl Write, session: &Session, lens: &Lens, lang: Lang) -> io::Result<()> {
    writeln!(out, "{}", lens.title(&session.runs[lens.run].name).render(lang))?;
    for (msg, _) in lens.findings(session, lang) {
        writeln!(out, "  {}", msg.render(lang))?;
    }
    if lens.kept.len() > 1 {
        writeln!(out, "  {}", tr(lang, "numerics.kept_title"))?;
        let cells = Cells::NARROW;
        let name = |k: &crate::debug::numerics::Kept| tr(lang, k.kind.key());
        let width = lens.kept.iter().map(|k| cells.width(name(k))).max().unwrap_or(0);
        for k in &lens.kept {
            let row = Msg::new("numerics.kept_row")
                .arg("kind", cells.pad(name(k), width, Align::Left))
                .arg("rms", size(k.rms))
                .arg("overflow", k.overflow)
                .arg("nodes", k.nodes);
            writeln!(out, "    {}", row.render(lang))?;
        }
    }
    let worth = |n: &&NodeError| n.matters() || n.lost.overflow > 0;
    let rows: Vec<&NodeError> = lens.nodes.iter().filter(worth).collect();
    for n in rows.iter().take(MAX_ROWS) {
        writeln!(out, "  {}", n.line(NumberFormat::Scientific(1)).render(lang))?;
    }
    if let Some(left) = rows.len().checked_sub(MAX_ROWS).filter(|n| *n > 0) {
        writeln!(out, "  {}", Msg::new("compare.more").arg("count", left).render(lang))?;
    }
    Ok(())
}

fn size(x: f64) -> String {
    NumberFormat::Scientific(1).format(x)
}

/// A number; what JSON has no number for is a string.
fn number(x: f64) -> Json {
    if x.is_finite() { x.into() } else { exact(x).into() }
}

/// For programs.
pub(super) fn to_json(session: &Session, lens: &Lens) -> Json {
    let node = |n: &NodeError| {
        json!({
            "path": n.path,
            "step": n.step,
            "rms": number(n.rms),
            "alone": number(n.alone),
            "max": number(n.largest),
            "overflow": n.lost.overflow,
            "flushed": n.lost.flushed,
            "not_finite": n.not_finite,
            "decided": n.decided,
            "cells": n.cells,
            "matters": n.matters(),
        })
    };
    let path = |n: Option<&NodeError>| n.map(|n| n.path.clone());
    let kept = lens
        .kept
        .iter()
        .map(|k| json!({ "kind": k.kind.name(), "nodes": k.nodes, "rms": number(k.rms), "overflow": k.overflow }));
    let lost = lens.lost();
    json!({
        "run": session.runs[lens.run].name,
        "round": lens.rounding.to_string(),
        "overflow": lost.overflow,
        "flushed": lost.flushed,
        "first": path(lens.first()),
        "first_overflow": path(lens.first_overflow()),
        "first_flush": path(lens.first_flush()),
        "first_decision": path(lens.first_decision()),
        "result": { "path": &*session.runs[lens.run].program.node(lens.result).path, "rms": number(lens.result_rms()) },
        "keep_in_f32": lens.should_keep().map(|k| k.kind.name()),
        "kept": kept.collect::<Vec<_>>(),
        "nodes": lens.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

/// What rounding makes of the tensors of steps.
pub(super) struct OfSteps {
    of_runs: HashMap<usize, HashMap<NodeId, NodeError>>,
}

impl OfSteps {
    /// Of all runs that these steps show.
    ///
    /// # Errors
    /// A run that cannot run, or that another program computed.
    pub(super) fn of(session: &Session, steps: &[Cow<'_, Step>], rounding: Rounding) -> Result<Self, Failure> {
        let mut of_runs: HashMap<usize, HashMap<NodeId, NodeError>> = HashMap::new();
        for step in steps {
            for run in step.views.iter().map(|v| v.run) {
                if let std::collections::hash_map::Entry::Vacant(entry) = of_runs.entry(run) {
                    let lens = lens(session, run, rounding, false)?;
                    entry.insert(lens.nodes.into_iter().map(|n| (n.node, n)).collect());
                }
            }
        }
        Ok(Self { of_runs })
    }

    /// Largest RMS of a step's tensors, and what is lost of them in all.
    fn of_step(&self, step: &Step) -> (f64, u64, u64) {
        let mut seen: Vec<(usize, NodeId)> = step.views.iter().map(|v| (v.run, v.node)).collect();
        seen.sort_unstable();
        seen.dedup();
        let nodes = seen.iter().filter_map(|(run, node)| self.of_runs.get(run)?.get(node));
        nodes.fold((0.0, 0, 0), |(rms, overflow, flushed), n| {
            (n.rms.max(rms), overflow + n.lost.overflow, flushed + n.lost.flushed)
        })
    }

    /// The end of a step's line.
    pub(super) fn words(&self, step: &Step, lang: Lang) -> String {
        let (rms, overflow, flushed) = self.of_step(step);
        let msg = Msg::new("numerics.of_step").arg("rms", size(rms)).arg("overflow", overflow).arg("flushed", flushed);
        escape(&msg.render(lang)).into_owned()
    }

    /// For programs.
    pub(super) fn to_json(&self, step: &Step) -> Json {
        let (rms, overflow, flushed) = self.of_step(step);
        json!({ "rms": number(rms), "overflow": overflow, "flushed": flushed })
    }
}
