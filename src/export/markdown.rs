//! Markdown with GitHub's tables.

use std::io::{self, Write};

use super::Options;
use super::doc::{StepDoc, TensorDoc};
use super::table::{Table, tables};
use super::text::{blocks_left_out_text, heading, left_out_text};
use crate::text::{escape, escape_lines, tr};

pub(super) fn step(out: &mut impl Write, options: &Options, doc: &StepDoc, first: bool) -> io::Result<()> {
    if !first {
        writeln!(out)?;
    }
    writeln!(out, "## {}\n", escaped(&heading(doc, options)))?;
    let place: Vec<String> = [&doc.scenario, &doc.run, &doc.phase]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| code(part))
        .collect();
    writeln!(out, "{}", place.join(" · "))?;
    if !doc.formula.is_empty() {
        writeln!(out, "\n{}", code(&doc.formula))?;
    }
    for tensor in doc.inputs.iter().chain(&doc.tensors) {
        writeln!(out)?;
        write_tensor(out, tensor, options)?;
    }
    if let Some(table) = &doc.table {
        writeln!(out)?;
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|c| escaped(&escape(c))).collect();
            format!("| {} |", cells.join(" | "))
        };
        writeln!(out, "{}", row(&table.columns))?;
        writeln!(out, "|{}", ":--|".repeat(table.columns.len()))?;
        for cells in &table.rows {
            writeln!(out, "{}", row(cells))?;
        }
    }
    if options.derivations && !doc.derivations.is_empty() {
        let lines: Vec<_> = doc.derivations.iter().map(|d| escape_lines(&d.text)).collect();
        let fence = "`".repeat(lines.iter().map(|l| longest_run(l)).max().unwrap_or(0).max(2) + 1);
        writeln!(out, "\n{fence}text")?;
        for line in &lines {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "{fence}")?;
    }
    if options.derivations && doc.derivations_left_out > 0 {
        writeln!(out, "\n{}", left_out_text(doc, options))?;
    }
    for paragraph in doc.note.split('\n').filter(|p| !p.trim().is_empty()) {
        writeln!(out, "\n{}", escaped(&escape(paragraph)))?;
    }
    Ok(())
}

fn write_tensor(out: &mut impl Write, tensor: &TensorDoc, options: &Options) -> io::Result<()> {
    let symbol = escaped(&escape(&tensor.symbol));
    let place = code(&tensor.place());
    if tensor.shape.is_empty() {
        let value = tensor.shown(0, options.number);
        return writeln!(out, "**{symbol}** = {value} — {place}");
    }
    writeln!(out, "**{symbol}** — {place}, {}", tensor.shape_text())?;
    let tables = tables(tensor, options);
    if tables.tables.is_empty() {
        return writeln!(out, "\n{}", tr(options.lang, "export.empty"));
    }
    for table in &tables.tables {
        if !table.label.is_empty() {
            writeln!(out, "\n{}", code(&table.label))?;
        }
        writeln!(out)?;
        write_table(out, table, options)?;
    }
    if tables.left_out > 0 {
        writeln!(out, "\n{}", blocks_left_out_text(tables.left_out, options))?;
    }
    Ok(())
}

fn write_table(out: &mut impl Write, table: &Table<'_>, options: &Options) -> io::Result<()> {
    let label = if table.has_rows { "|  |" } else { "|" };
    write!(out, "{label}")?;
    for &column in &table.columns {
        write!(out, " {} |", escaped(&table.column_label(column)))?;
    }
    write!(out, "\n{}", if table.has_rows { "|:--|" } else { "|" })?;
    for _ in &table.columns {
        write!(out, "--:|")?;
    }
    writeln!(out)?;
    for &row in &table.rows {
        write!(out, "|")?;
        if table.has_rows {
            write!(out, " {} |", escaped(&table.row_label(row)))?;
        }
        for &column in &table.columns {
            let name = table.name(row, column).map(|n| format!(" ({})", escaped(&n))).unwrap_or_default();
            write!(out, " {}{name} |", table.cell(row, column, options))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Text that Markdown shows as it is, also inside a table (where `|` ends a cell).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    for (at, c) in text.char_indices() {
        let special = match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '&' | '~' | '$' => true,
            // Headings, lists: only where a line begins.
            '#' | '+' | '-' | '=' => at == 0,
            // "1." or "1)" at the start of a line would begin a list.
            '.' | ')' => at > 0 && text[..at].bytes().all(|b| b.is_ascii_digit()),
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A code span around any text.
fn code(text: &str) -> String {
    let text = escape(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let edge = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{edge}{text}{edge}{fence}")
}

/// Length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
