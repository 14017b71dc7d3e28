//! Whether a scenario holds: its derivations replayed, its expected values, its attention in tiles, what the lints found.

use serde_json::{Value as Json, json};

use super::{About, Level, Line, decoding, expected, gradients, lints};
use crate::debug::expected::Compared;
use crate::debug::lints::Finding;
use crate::debug::tiles;
use crate::session::Session;
use crate::text::{Lang, Msg, escape};
use crate::trace::AnyTrace;
use crate::trace::derive::replay_node;
use crate::with_any;

/// Cells of one expectation that are listed.
const MAX_CELLS: usize = 8;
/// Findings of one lint and severity that are listed.
const MAX_ALIKE: usize = 5;

/// What was found of a scenario.
#[derive(Debug)]
pub struct Check {
    /// The derivations of each run.
    pub runs: Vec<Replayed>,
    /// Attention in tiles or bands, by run.
    pub tiled: Vec<(usize, Option<tiles::Report>)>,
    /// Expected values, compared.
    pub expected: Vec<Compared>,
    /// Caches and causality.
    pub decoding: decoding::Report,
    /// What the lints found.
    pub lints: Vec<Finding>,
    /// Gradients against central differences, where they were compared.
    pub gradients: Option<gradients::Report>,
}

/// What replaying the derivations of one run showed.
#[derive(Debug)]
pub struct Replayed {
    name: String,
    nodes: usize,
    cells: u64,
    different: u64,
    /// Path and index of the first cell whose replay gave other bits.
    first: Option<(String, Vec<usize>)>,
}

impl Replayed {
    /// Replays every derivation of a run.
    pub fn of(name: &str, trace: &AnyTrace) -> Self {
        let program = trace.program();
        let mut report = Self { name: name.to_owned(), nodes: program.len(), cells: 0, different: 0, first: None };
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

    fn lines(&self) -> Vec<Line> {
        let msg = Msg::new("check.run")
            .arg("run", escape(&self.name))
            .arg("nodes", self.nodes)
            .arg("same", self.cells - self.different)
            .arg("cells", self.cells)
            .arg("percent", percent(self.cells - self.different, self.cells));
        let mut lines = vec![Line::new(msg)];
        if let Some((path, index)) = &self.first {
            let msg = Msg::new("check.first").arg("path", escape(path)).arg("index", format!("{index:?}"));
            let about = About::Node { run: Some(self.name.clone()), path: path.clone(), index: index.clone() };
            lines.push(Line::new(msg).level(Level::Error).about(about));
        }
        lines
    }

    fn to_json(&self) -> Json {
        json!({
            "run": self.name,
            "nodes": self.nodes,
            "derivations": self.cells,
            "bit_equal": self.cells - self.different,
            "first_different": self.first.as_ref().map(|(path, index)| json!({ "path": path, "index": index })),
        })
    }
}

impl Check {
    /// Whether all of it holds; warnings count where `strict`.
    pub fn good(&self, strict: bool) -> bool {
        self.runs.iter().all(|r| r.different == 0)
            && expected::good(&self.expected)
            && self.tiled.iter().all(|(_, r)| r.as_ref().is_none_or(|r| r.wrong == 0))
            && lints::good(&self.lints, strict)
            && self.gradients.as_ref().is_none_or(gradients::Report::good)
    }

    /// What is not part of every check: gradients, and attention in tiles.
    pub fn more(&self, session: &Session) -> Vec<Line> {
        let mut lines = self.gradients.as_ref().map(gradients::Report::lines).unwrap_or_default();
        for (run, report) in &self.tiled {
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
                lines.push(Line::new(msg));
            }
        }
        lines
    }

    /// The scenario, its runs, what is not as expected, what the lints found, and the verdict.
    pub fn lines(&self, session: &Session, good: bool, lang: Lang) -> Vec<Line> {
        let model = Msg::new("check.scenario")
            .arg("name", escape(&session.scenario.name))
            .arg("precision", format!("{:?}", session.precision).to_lowercase())
            .arg("steps", session.steps.list().len())
            .arg("parameters", session.specs.len())
            .arg("inline", session.coverage.inline)
            .arg("files", session.coverage.from_files)
            .arg("initialised", session.coverage.initialised);
        let mut lines = vec![Line::new(model)];
        lines.extend(self.runs.iter().flat_map(Replayed::lines));
        lines.extend(expected::lines(session, &self.expected, MAX_CELLS, lang));
        lines.push(expected::count(&self.expected));
        lines.extend(self.decoding.lines());
        lines.extend(lints::lines(session, &self.lints, MAX_ALIKE, lang));
        let counts = lints::counts(&self.lints, "check.lint.counts");
        lines.push(Line::new(if self.lints.is_empty() { Msg::new("check.lint.none") } else { counts }));
        let level = if good { Level::Done } else { Level::Error };
        lines.push(Line::new(Msg::new(if good { "check.good" } else { "check.bad" })).level(level));
        lines
    }

    /// For programs.
    pub fn to_json(&self, session: &Session, good: bool, lang: Lang) -> Json {
        let mut json = json!({
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
            "runs": self.runs.iter().map(Replayed::to_json).collect::<Vec<_>>(),
            "expected": expected::to_json(session, &self.expected),
            "tiles": tiles_json(session, &self.tiled),
            "decoding": self.decoding.to_json(),
            "lints": lints::to_json(session, &self.lints, lang),
        });
        if let Some(g) = &self.gradients {
            json["gradients"] = g.to_json();
        }
        json
    }
}

/// Attention in tiles or bands, a run each; runs without are left out.
fn tiles_json(session: &Session, tiled: &[(usize, Option<tiles::Report>)]) -> Json {
    let each = tiled.iter().filter_map(|(run, r)| {
        let r = r.as_ref()?;
        Some(json!({
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

/// Per cent, never rounded up to 100.
fn percent(part: u64, of: u64) -> String {
    if of == 0 || part == of {
        return "100".to_owned();
    }
    format!("{:.4}", (part as f64 / of as f64 * 100.0).min(99.9999))
}
