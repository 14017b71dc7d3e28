//! `check`: validates a scenario, replays every derivation, compares expected values, runs the lints.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::global::Global;
use super::open_recorded::Verified;
use super::{Failure, check_decoding, check_gradients, check_lints, common, numerics, value};
use crate::debug::expected::{self, Compared, Misprinted, Wrong};
use crate::debug::lints::{self, Decoding, Finding};
use crate::debug::tiles;
use crate::session::Session;
use crate::text::number::exact;
use crate::text::{Lang, Msg, escape};
use crate::trace::AnyTrace;
use crate::trace::derive::replay_node;
use crate::with_any;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// Only this run; all unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Compare every gradient with central differences too.
    #[arg(long)]
    pub gradients: bool,
    /// Largest relative error of a gradient.
    #[arg(long, value_name = "X", value_parser = value::positive, requires = "gradients")]
    pub tolerance: Option<f64>,
    /// Warnings of lints fail too.
    #[arg(long)]
    pub strict: bool,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// What a check of one run found.
#[derive(Debug, Default)]
struct RunReport {
    name: String,
    nodes: usize,
    cells: u64,
    different: u64,
    /// Path and index of the first cell whose replay gave other bits.
    first: Option<(String, Vec<usize>)>,
}

/// Checks a scenario.
///
/// # Errors
/// [`Failure::Check`] where something does not hold.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let verified = Verified::of(&args.scenario)?;
    let session = common::open(&args.scenario, &args.inputs, global, None, lang)?;
    let only = args.run.as_deref().map(|name| common::run(&session, name)).transpose()?;
    let wanted = |run: usize| only.is_none_or(|o| o == run);
    let (mut runs, mut tiled) = (Vec::new(), Vec::new());
    for i in (0..session.runs.len()).filter(|i| wanted(*i)) {
        let trace = session.trace(i).map_err(common::cannot_run)?;
        runs.push(replay(&session.runs[i].name, trace));
        tiled.push((i, tiles::report(trace, session.precision)));
    }
    let expected = expected::compare(&session).map_err(Failure::User)?;
    let decoding = Decoding::of(&session, wanted).map_err(|e| Failure::User(e.message()))?;
    // A rounded run is wrong where the lints look: rows of weights do not sum to 1, variances are not those of their rows.
    let lints = match session.rounding {
        None => lints::check_with(&session, wanted, &decoding).map_err(|e| common::cannot_run(&e))?,
        Some(_) => Vec::new(),
    };
    let decoding = check_decoding::Report::of(&session, decoding, wanted);
    let gradients = args.gradients.then(|| check_gradients::compare(&session, only, args.tolerance)).transpose()?;
    let mut lenses = Vec::new();
    if let Some(rounding) = global.rounding() {
        for i in (0..session.runs.len()).filter(|i| wanted(*i)) {
            lenses.push(numerics::lens(&session, i, rounding, true)?);
        }
    }
    let good = verified.as_ref().is_none_or(Verified::good)
        && runs.iter().all(|r| r.different == 0)
        && expected.iter().all(|e| e.wrong.is_empty() && e.misprints.iter().all(|m| !m.right))
        && tiled.iter().all(|(_, r)| r.as_ref().is_none_or(|r| r.wrong == 0))
        && lenses.iter().all(|l| l.nodes.iter().all(|n| n.not_finite == 0))
        && check_lints::good(&lints, args.strict)
        && gradients.as_ref().is_none_or(check_gradients::Report::good);
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        let mut json = to_json(&session, &runs, &expected, good);
        json["tiles"] = tiles_json(&session, &tiled);
        json["decoding"] = decoding.to_json();
        json["lints"] = check_lints::to_json(&session, &lints, lang);
        if let Some(g) = &gradients {
            json["gradients"] = g.json();
        }
        if global.rounding().is_some() {
            json["numerics"] = lenses.iter().map(|l| numerics::to_json(&session, l)).collect();
        }
        if let Some(v) = &verified {
            json["checksums"] = v.to_json(lang);
        }
        serde_json::to_writer_pretty(&mut out, &json).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        if let Some(v) = &verified {
            v.write_text(&mut out, lang)?;
        }
        if let Some(g) = &gradients {
            g.text(&mut out, lang)?;
        }
        for (run, report) in &tiled {
            if let Some(r) = report {
                let msg = Msg::new("check.tiles")
                    .arg("run", escape(&session.runs[*run].name))
                    .arg("attentions", r.attentions)
                    .arg("within", r.rows - r.wrong)
                    .arg("rows", r.rows)
                    .arg("largest", format!("{:.3}", r.largest))
                    .arg("bytes", r.bytes)
                    .arg("unfused", r.unfused_bytes)
                    .arg("flops", r.flops);
                writeln!(out, "{}", msg.render(lang))?;
            }
        }
        for lens in &lenses {
            numerics::text(&mut out, &session, lens, lang)?;
        }
        let found = Found { runs: &runs, expected: &expected, decoding: &decoding, lints: &lints };
        found.write_text(&mut out, &session, good, lang)?;
    }
    out.flush()?;
    if good { Ok(()) } else { Err(Failure::Check) }
}

fn replay(name: &str, trace: &AnyTrace) -> RunReport {
    let program = trace.program();
    let mut report = RunReport { name: name.to_owned(), nodes: program.len(), ..RunReport::default() };
    for (id, node) in program.nodes().filter(|(id, _)| trace.reached(*id)) {
        let found = with_any!(AnyTrace, trace, t => replay_node(t, id));
        report.cells += found.cells;
        report.different += found.different;
        if let (None, Some(flat)) = (&report.first, found.first) {
            report.first = Some((node.path.to_string(), node.shape.unflat(flat)[..node.shape.rank()].to_vec()));
        }
    }
    report
}

/// Everything that the text tells.
struct Found<'a> {
    runs: &'a [RunReport],
    expected: &'a [Compared],
    decoding: &'a check_decoding::Report,
    lints: &'a [Finding],
}

impl Found<'_> {
    fn write_text(&self, out: &mut impl Write, session: &Session, good: bool, lang: Lang) -> io::Result<()> {
        let say = |msg: Msg| msg.render(lang);
        let model = Msg::new("check.scenario")
            .arg("name", escape(&session.scenario.name))
            .arg("precision", format!("{:?}", session.precision).to_lowercase())
            .arg("steps", session.steps.list().len())
            .arg("parameters", session.specs.len())
            .arg("inline", session.coverage.inline)
            .arg("files", session.coverage.from_files)
            .arg("initialised", session.coverage.initialised);
        writeln!(out, "{}", say(model))?;
        for r in self.runs {
            let msg = Msg::new("check.run")
                .arg("run", escape(&r.name))
                .arg("nodes", r.nodes)
                .arg("same", r.cells - r.different)
                .arg("cells", r.cells)
                .arg("percent", percent(r.cells - r.different, r.cells));
            writeln!(out, "{}", say(msg))?;
            if let Some((path, index)) = &r.first {
                let msg = Msg::new("check.first").arg("path", escape(path)).arg("index", format!("{index:?}"));
                writeln!(out, "{}", say(msg))?;
            }
        }
        for e in self.expected.iter().filter(|e| !e.wrong.is_empty()) {
            let msg = Msg::new("check.expected_wrong")
                .arg("path", escape(&e.path))
                .arg("wrong", e.wrong.len())
                .arg("values", e.values)
                .arg("largest", format!("{:e}", e.largest));
            writeln!(out, "{}", say(msg))?;
            for w in e.wrong.iter().take(MAX_LISTED) {
                writeln!(out, "{}", say(wrong_cell(session, e, w)))?;
            }
            if e.wrong.len() > MAX_LISTED {
                writeln!(out, "{}", say(Msg::new("check.expected_more").arg("count", e.wrong.len() - MAX_LISTED)))?;
            }
            let note = session.scenario.expected[e.entry].note.of(lang);
            if !note.is_empty() {
                writeln!(out, "    {}", escape(note))?;
            }
        }
        for (e, m) in self.expected.iter().flat_map(|e| e.misprints.iter().map(move |m| (e, m))) {
            writeln!(out, "{}", say(misprint(session, e, m)))?;
            let note = session.scenario.expected[e.entry].misprints[m.entry].note.of(lang);
            if !note.is_empty() {
                writeln!(out, "    {}", escape(note))?;
            }
        }
        let count = |of: fn(&Compared) -> usize| self.expected.iter().map(of).sum::<usize>();
        let (all, wrong) = (count(|e| e.values), count(|e| e.wrong.len()));
        let msg = Msg::new("check.expected").arg("right", all - wrong).arg("all", all);
        writeln!(out, "{}", say(msg))?;
        self.decoding.write_text(out, lang)?;
        check_lints::write_text(out, session, self.lints, lang)?;
        let verdict = Msg::new(if good { "check.good" } else { "check.bad" });
        writeln!(out, "{}", say(verdict))
    }
}

/// Attention in tiles or bands, a run each; runs without are left out.
fn tiles_json(session: &Session, tiled: &[(usize, Option<tiles::Report>)]) -> serde_json::Value {
    let each = tiled.iter().filter_map(|(run, r)| {
        let r = r.as_ref()?;
        Some(serde_json::json!({
            "run": session.runs[*run].name,
            "attentions": r.attentions,
            "rows": r.rows,
            "wrong": r.wrong,
            "largest_share_of_bound": r.largest,
            "flops": r.flops,
            "bytes": r.bytes,
            "unfused_bytes": r.unfused_bytes,
        }))
    });
    each.collect()
}

/// Cells of one expectation that the text lists.
const MAX_LISTED: usize = 8;

/// Where one value is not as expected, what was, and what is there.
fn wrong_cell(session: &Session, e: &Compared, w: &Wrong) -> Msg {
    let index = w.bracketed();
    Msg::new("check.expected_cell")
        .arg("run", &session.runs[e.run].name)
        .arg("path", &e.path)
        .arg("cell", index)
        .arg("expected", exact(w.expected))
        .arg("found", exact(w.found))
}

/// A published figure that is wrong, or is said to be.
fn misprint(session: &Session, e: &Compared, m: &Misprinted) -> Msg {
    let index: Vec<String> = m.index.iter().map(usize::to_string).collect();
    Msg::new(if m.right { "check.no_misprint" } else { "check.misprint" })
        .arg("run", escape(&session.runs[e.run].name))
        .arg("path", escape(&e.path))
        .arg("cell", format!("[{}]", index.join("][")))
        .arg("printed", exact(session.scenario.expected[e.entry].misprints[m.entry].printed))
        .arg("found", exact(m.found))
}

/// A number; what JSON has no number for is a string.
fn number(x: f64) -> serde_json::Value {
    if x.is_finite() { x.into() } else { exact(x).into() }
}

/// Per cent, never rounded up to 100.
fn percent(part: u64, of: u64) -> String {
    if of == 0 || part == of {
        return "100".to_owned();
    }
    format!("{:.4}", (part as f64 / of as f64 * 100.0).min(99.9999))
}

fn to_json(session: &Session, runs: &[RunReport], expected: &[Compared], good: bool) -> serde_json::Value {
    serde_json::json!({
        "scenario": session.scenario.name,
        "precision": format!("{:?}", session.precision).to_lowercase(),
        "good": good,
        "steps": session.steps.list().len(),
        "parameters": {
            "all": session.specs.len(),
            "inline": session.coverage.inline,
            "from_files": session.coverage.from_files,
            "initialised": session.coverage.initialised,
            "unused": session.coverage.unused,
        },
        "runs": runs.iter().map(|r| serde_json::json!({
            "run": r.name,
            "nodes": r.nodes,
            "derivations": r.cells,
            "bit_equal": r.cells - r.different,
            "first_different": r.first.as_ref().map(|(path, index)| serde_json::json!({ "path": path, "index": index })),
        })).collect::<Vec<_>>(),
        "expected": expected.iter().map(|e| serde_json::json!({
            "run": session.runs[e.run].name,
            "path": e.path,
            "values": e.values,
            "wrong": e.wrong.len(),
            "largest_difference": number(e.largest),
            "misprints": e.misprints.iter().map(|m| serde_json::json!({
                "cell": m.index,
                "printed": number(session.scenario.expected[e.entry].misprints[m.entry].printed),
                "found": number(m.found),
                "right": m.right,
            })).collect::<Vec<_>>(),
            "cells": e.wrong.iter().map(|w| serde_json::json!({
                "cell": w.index,
                "position": w.position,
                "expected": number(w.expected),
                "found": number(w.found),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}
