//! What a command found, worded once: lines with what each is about. A script prints them, the screen lists them to go on
//! from; next to them each report has its JSON, whose names and order are stable.

pub mod check;
pub mod compare;
pub mod decoding;
pub mod expected;
pub mod generate;
pub mod gradients;
pub mod lints;
pub mod train;
pub mod what_if;

use std::io::{self, Write};

use serde_json::Value as Json;

use crate::text::number::exact;
use crate::text::{Align, Cells, Lang, Msg};
use crate::trace::RunError;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For information.
    Info,
    /// Something requested was done.
    Done,
    /// Something is not as it should be.
    Warning,
    /// Something could not be done, or does not hold.
    Error,
}

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A node, or a cell of it.
    Node {
        /// The run, where the path alone does not say it.
        run: Option<String>,
        /// The node's path.
        path: String,
        /// The cell; empty for the whole tensor.
        index: Vec<usize>,
    },
    /// The number of a step, outermost first.
    Step(Vec<u32>),
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// What it says; untrusted parts are escaped.
    pub text: Msg,
    /// What it is about.
    pub about: Option<About>,
}

impl Line {
    /// A line that only informs.
    pub fn new(text: Msg) -> Self {
        Self { level: Level::Info, text, about: None }
    }

    /// A line of words that are the same in every language: symbols, paths, figures.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Msg::new("report.plain").arg("text", text.into()))
    }

    /// With another level.
    #[must_use]
    pub fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// With what it is about.
    #[must_use]
    pub fn about(self, about: About) -> Self {
        Self { about: Some(about), ..self }
    }
}

/// Writes lines as text.
///
/// # Errors
/// Of the stream.
pub fn write(out: &mut impl Write, lines: &[Line], lang: Lang) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{}", line.text.render(lang)))
}

/// Writes a document for programs, with the end of its last line.
///
/// # Errors
/// Of the stream.
pub fn write_json(out: &mut impl Write, json: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, json)?;
    writeln!(out)
}

/// A row of a table.
pub struct Row {
    /// Its cells.
    pub cells: Vec<String>,
    /// How much it matters.
    pub level: Level,
    /// What it is about.
    pub about: Option<About>,
}

/// Lines of columns, as wide as their widest cell; what comes after those that `align` names is not filled up.
pub fn table(rows: Vec<Row>, align: &[Align]) -> Vec<Line> {
    let cells = Cells::NARROW;
    let width = |i: usize| rows.iter().filter_map(|row| row.cells.get(i)).map(|c| cells.width(c)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..align.len()).map(width).collect();
    let filled = |(i, cell): (usize, &String)| match (widths.get(i), align.get(i)) {
        (Some(width), Some(align)) => cells.pad(cell, *width, *align).into_owned(),
        _ => cell.clone(),
    };
    let line = |row: Row| {
        let text = row.cells.iter().enumerate().map(filled).collect::<Vec<_>>().join("  ");
        Line { level: row.level, about: row.about, ..Line::plain(text) }
    };
    rows.into_iter().map(line).collect()
}

/// Why there is nothing to report of.
pub fn cannot_run(e: &RunError) -> Msg {
    Msg::new("cli.cannot_run").arg("why", e)
}

/// A number; what JSON has no number for is a string.
pub fn number(x: f64) -> Json {
    if x.is_finite() { x.into() } else { exact(x).into() }
}
