//! Plain text: tables aligned in terminal cells, also under Chinese.

use std::io::{self, Write};

use super::Options;
use super::doc::{StepDoc, Table as Texts, TensorDoc};
use super::table::{Table, tables};
use crate::text::{Align, Msg, escape, escape_lines, tr};

/// Between columns.
const GAP: &str = "  ";

pub(super) fn step(out: &mut impl Write, options: &Options, doc: &StepDoc, first: bool) -> io::Result<()> {
    if !first {
        writeln!(out)?;
    }
    writeln!(out, "{}", heading(doc, options))?;
    writeln!(out, "{} · {} · {}", escape(&doc.scenario), escape(&doc.run), escape(&doc.phase))?;
    if !doc.formula.is_empty() {
        writeln!(out, "\n{}", escape_lines(&doc.formula))?;
    }
    for tensor in doc.inputs.iter().chain(&doc.tensors) {
        writeln!(out)?;
        write_tensor(out, tensor, options)?;
    }
    if let Some(table) = &doc.table {
        writeln!(out)?;
        write_texts(out, table, options)?;
    }
    if options.derivations && !doc.derivations.is_empty() {
        writeln!(out)?;
        for derivation in &doc.derivations {
            writeln!(out, "{}", escape_lines(&derivation.text))?;
        }
    }
    if options.derivations && doc.derivations_left_out > 0 {
        writeln!(out, "{}", left_out_text(doc, options))?;
    }
    if !doc.note.is_empty() {
        writeln!(out, "\n{}", escape_lines(&doc.note))?;
    }
    Ok(())
}

/// `Step 23 · 5.10 · Scaled scores`.
pub(super) fn heading(doc: &StepDoc, options: &Options) -> String {
    if doc.step.is_empty() {
        return escape(&doc.title).into_owned();
    }
    let mut heading = Msg::new("export.step").arg("step", doc.number()).render(options.lang);
    for part in [&doc.section, &doc.title] {
        if !part.is_empty() {
            heading.push_str(" · ");
            heading.push_str(&escape(part));
        }
    }
    heading
}

/// How many derivations there are next to those printed.
pub(super) fn left_out_text(doc: &StepDoc, options: &Options) -> String {
    Msg::new("export.derivations_left_out").arg("count", doc.derivations_left_out).render(options.lang)
}

/// How many blocks there are next to those printed.
pub(super) fn blocks_left_out_text(count: usize, options: &Options) -> String {
    Msg::new("export.blocks_left_out").arg("count", count).render(options.lang)
}

fn write_tensor(out: &mut impl Write, tensor: &TensorDoc, options: &Options) -> io::Result<()> {
    let symbol = escape(&tensor.symbol);
    let place = tensor.place();
    let place = escape(&place);
    if tensor.shape.is_empty() {
        return writeln!(out, "{symbol} = {}{GAP}{place}", tensor.shown(0, options.number));
    }
    writeln!(out, "{symbol}{GAP}{place}{GAP}{}", tensor.shape_text())?;
    let tables = tables(tensor, options);
    if tables.tables.is_empty() {
        return writeln!(out, "{GAP}{}", tr(options.lang, "export.empty"));
    }
    for table in &tables.tables {
        if !table.label.is_empty() {
            writeln!(out, "{symbol}[{}]", table.label)?;
        }
        write_table(out, table, options)?;
    }
    if tables.left_out > 0 {
        writeln!(out, "{GAP}{}", blocks_left_out_text(tables.left_out, options))?;
    }
    Ok(())
}

/// A table of texts, columns aligned.
fn write_texts(out: &mut impl Write, table: &Texts, options: &Options) -> io::Result<()> {
    let cells = options.cells;
    let lines: Vec<Vec<String>> = std::iter::once(&table.columns)
        .chain(&table.rows)
        .map(|row| row.iter().map(|t| escape(t).into_owned()).collect())
        .collect();
    let width = |c: usize| {
        let widths = lines.iter().filter_map(|l| l.get(c));
        widths.map(|t| cells.width(t)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    for line in &lines {
        let padded: Vec<String> =
            line.iter().zip(&widths).map(|(t, w)| cells.pad(t, *w, Align::Left).into_owned()).collect();
        writeln!(out, "{GAP}{}", padded.join(GAP).trim_end())?;
    }
    Ok(())
}

fn write_table(out: &mut impl Write, table: &Table<'_>, options: &Options) -> io::Result<()> {
    let cells = options.cells;
    let body: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|&row| {
            let values = table.columns.iter().map(|&column| {
                let name = table.name(row, column).map(|n| format!(" ({n})")).unwrap_or_default();
                table.cell(row, column, options) + &name
            });
            values.collect()
        })
        .collect();
    let head: Vec<String> = table.columns.iter().map(|&c| table.column_label(c)).collect();
    let labels: Vec<String> = if table.has_rows {
        table.rows.iter().map(|&r| table.row_label(r)).collect()
    } else {
        vec![String::new(); table.rows.len()]
    };
    let label_width = labels.iter().map(|l| cells.width(l)).max().unwrap_or(0);
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(c, h)| {
            let body = body.iter().map(|row| cells.width(&row[c])).max();
            cells.width(h).max(body.unwrap_or(0))
        })
        .collect();
    let mut line = |label: &str, row: &[String]| {
        write!(out, "{GAP}{}", cells.pad(label, label_width, Align::Left))?;
        for (i, (value, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if i == 0 && label_width == 0 { "" } else { GAP };
            write!(out, "{gap}{}", cells.pad(value, width, Align::Right))?;
        }
        writeln!(out)
    };
    line("", &head)?;
    for (label, row) in labels.iter().zip(&body) {
        line(label, row)?;
    }
    Ok(())
}
