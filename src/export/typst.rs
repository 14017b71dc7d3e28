//! A Typst document: tables, formulas and derivations as raw text.

use std::io::{self, Write};

use super::Options;
use super::doc::{StepDoc, TensorDoc};
use super::table::{Table, tables};
use super::text::{blocks_left_out_text, heading, left_out_text};
use crate::text::{escape, escape_lines, tr};

pub(super) fn begin(out: &mut impl Write, options: &Options) -> io::Result<()> {
    if !options.standalone {
        return Ok(());
    }
    writeln!(out, "#set page(paper: \"a4\", margin: 2cm)\n#set text(size: 9pt)")
}

pub(super) fn step(out: &mut impl Write, options: &Options, doc: &StepDoc) -> io::Result<()> {
    writeln!(out, "\n== {}\n", content(&heading(doc, options)))?;
    let place: Vec<String> =
        [&doc.scenario, &doc.run, &doc.phase].into_iter().filter(|p| !p.is_empty()).map(|p| raw(&escape(p))).collect();
    writeln!(out, "{}", place.join(" · "))?;
    if !doc.formula.is_empty() {
        writeln!(out, "\n{}", raw(&escape(&doc.formula)))?;
    }
    for tensor in doc.inputs.iter().chain(&doc.tensors) {
        writeln!(out)?;
        write_tensor(out, tensor, options)?;
    }
    if let Some(table) = &doc.table {
        writeln!(out, "\n#table(columns: {}, align: left,", table.columns.len())?;
        for row in std::iter::once(&table.columns).chain(&table.rows) {
            let cells: Vec<String> = row.iter().map(|c| format!("[{}]", content(&escape(c)))).collect();
            writeln!(out, "  {},", cells.join(", "))?;
        }
        writeln!(out, ")")?;
    }
    if options.derivations && !doc.derivations.is_empty() {
        writeln!(out)?;
        for line in &doc.derivations {
            writeln!(out, "{} \\", raw(&escape_lines(&line.text).replace('\n', " ")))?;
        }
    }
    if options.derivations && doc.derivations_left_out > 0 {
        writeln!(out, "\n{}", content(&left_out_text(doc, options)))?;
    }
    for paragraph in doc.note.split('\n').filter(|p| !p.trim().is_empty()) {
        writeln!(out, "\n{}", content(&escape(paragraph)))?;
    }
    Ok(())
}

fn write_tensor(out: &mut impl Write, tensor: &TensorDoc, options: &Options) -> io::Result<()> {
    let symbol = content(&escape(&tensor.symbol));
    let place = raw(&escape(&tensor.place()));
    if tensor.shape.is_empty() {
        return writeln!(out, "*{symbol}* = {} {place}", content(&tensor.shown(0, options.number)));
    }
    writeln!(out, "*{symbol}* {place} {}\n", content(&tensor.shape_text()))?;
    let made = tables(tensor, options);
    if made.tables.is_empty() {
        return writeln!(out, "{}", content(tr(options.lang, "export.empty")));
    }
    for table in &made.tables {
        if !table.label.is_empty() {
            writeln!(out, "{}\n", raw(&table.label))?;
        }
        for page in table.pages(options) {
            write_table(out, &page, options)?;
        }
    }
    if made.left_out > 0 {
        writeln!(out, "\n{}", content(&blocks_left_out_text(made.left_out, options)))?;
    }
    Ok(())
}

fn write_table(out: &mut impl Write, table: &Table<'_>, options: &Options) -> io::Result<()> {
    let columns = table.columns.len() + usize::from(table.has_rows);
    writeln!(out, "#table(columns: {columns}, align: right, stroke: 0.4pt + gray,")?;
    let corner = if table.has_rows { "[], " } else { "" };
    let cells = |texts: Vec<String>| -> String {
        texts.iter().map(|t| format!("[{}]", content(t))).collect::<Vec<_>>().join(", ")
    };
    let header = table.columns.iter().map(|&c| table.column_label(c)).collect();
    writeln!(out, "  table.header({corner}{}),", cells(header))?;
    for &row in &table.rows {
        let label = if table.has_rows { format!("[{}], ", content(&table.row_label(row))) } else { String::new() };
        let text = |&c: &Option<usize>| {
            let name = table.name(row, c).map(|n| format!(" ({n})")).unwrap_or_default();
            table.cell(row, c, options) + &name
        };
        let texts = table.columns.iter().map(text).collect();
        writeln!(out, "  {label}{},", cells(texts))?;
    }
    writeln!(out, ")")
}

/// Text that Typst shows as it is.
fn content(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    for c in text.chars() {
        if "\\#$*_`[]<>@=+-/~'\"".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A text in a typewriter face.
fn raw(text: &str) -> String {
    let quoted: String =
        text.chars().flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] }).collect();
    format!("#raw(\"{quoted}\")")
}
