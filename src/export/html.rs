//! A standalone HTML page: no scripts, nothing loaded; cells coloured around zero.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::Options;
use super::doc::{StepDoc, TensorDoc};
use super::table::{Table, tables};
use super::text::{blocks_left_out_text, heading, left_out_text};
use crate::text::{Lang, escape, escape_lines, tr};

const STYLE: &str = "\
body{font-family:system-ui,sans-serif;line-height:1.5;max-width:72rem;margin:2rem auto;padding:0 1rem;\
color:#1a1a1a;background:#fff}\
h2{margin-top:2.5rem;border-bottom:1px solid #ccc}\
table{border-collapse:collapse;margin:.5rem 0}\
th,td{padding:.15rem .5rem;text-align:right;font-variant-numeric:tabular-nums;border:1px solid #ddd}\
th{font-weight:600;background:#f4f4f4}th[scope=row]{text-align:left}\
pre,code{font-family:ui-monospace,monospace;white-space:pre-wrap}\
figure{margin:1rem 0;overflow-x:auto}figcaption{font-weight:600}\
.place{color:#555}";

pub(super) fn begin(out: &mut impl Write, options: &Options) -> io::Result<()> {
    let lang = match options.lang {
        Lang::En => "en",
        Lang::Zh => "zh-CN",
    };
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"{lang}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>",
        markup(tr(options.lang, "export.document_title"))
    )
}

pub(super) fn end(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "</body>\n</html>")
}

pub(super) fn step(out: &mut impl Write, options: &Options, doc: &StepDoc) -> io::Result<()> {
    writeln!(out, "<section id=\"step-{}\">\n<h2>{}</h2>", doc.number(), markup(&heading(doc, options)))?;
    writeln!(out, "<p class=\"place\">{} · {} · {}</p>", safe(&doc.scenario), safe(&doc.run), safe(&doc.phase))?;
    if !doc.formula.is_empty() {
        writeln!(out, "<p><code>{}</code></p>", safe(&doc.formula))?;
    }
    for tensor in doc.inputs.iter().chain(&doc.tensors) {
        write_tensor(out, tensor, options)?;
    }
    if let Some(table) = &doc.table {
        write!(out, "<table>\n<tr>")?;
        for heading in &table.columns {
            write!(out, "<th scope=\"col\">{}</th>", safe(heading))?;
        }
        writeln!(out, "</tr>")?;
        for row in &table.rows {
            write!(out, "<tr>")?;
            for (i, cell) in row.iter().enumerate() {
                let (open, close) =
                    if i == 0 { ("<th scope=\"row\">", "</th>") } else { ("<td style=\"text-align:left\">", "</td>") };
                write!(out, "{open}{}{close}", safe(cell))?;
            }
            writeln!(out, "</tr>")?;
        }
        writeln!(out, "</table>")?;
    }
    if options.derivations && !doc.derivations.is_empty() {
        write!(out, "<pre>")?;
        for derivation in &doc.derivations {
            writeln!(out, "{}", markup(&escape_lines(&derivation.text)))?;
        }
        writeln!(out, "</pre>")?;
    }
    if options.derivations && doc.derivations_left_out > 0 {
        writeln!(out, "<p>{}</p>", markup(&left_out_text(doc, options)))?;
    }
    for paragraph in doc.note.split('\n').filter(|p| !p.trim().is_empty()) {
        writeln!(out, "<p>{}</p>", safe(paragraph))?;
    }
    writeln!(out, "</section>")
}

fn write_tensor(out: &mut impl Write, tensor: &TensorDoc, options: &Options) -> io::Result<()> {
    let symbol = safe(&tensor.symbol);
    let place = safe(&tensor.place());
    if tensor.shape.is_empty() {
        let value = tensor.shown(0, options.number);
        return writeln!(out, "<p><b>{symbol}</b> = {value} <code class=\"place\">{place}</code></p>");
    }
    writeln!(
        out,
        "<figure>\n<figcaption>{symbol} <code class=\"place\">{place}</code> {}</figcaption>",
        markup(&tensor.shape_text())
    )?;
    let tables = tables(tensor, options);
    if tables.tables.is_empty() {
        writeln!(out, "<p>{}</p>", markup(tr(options.lang, "export.empty")))?;
    }
    let top = largest(tensor);
    for table in &tables.tables {
        if !table.label.is_empty() {
            writeln!(out, "<p><code>{}</code></p>", markup(&table.label))?;
        }
        write_table(out, tensor, table, top, options)?;
    }
    if tables.left_out > 0 {
        let text = blocks_left_out_text(tables.left_out, options);
        writeln!(out, "<p>{}</p>", markup(&text))?;
    }
    writeln!(out, "</figure>")
}

fn write_table(
    out: &mut impl Write,
    tensor: &TensorDoc,
    table: &Table<'_>,
    top: f64,
    options: &Options,
) -> io::Result<()> {
    write!(out, "<table>\n<tr>")?;
    if table.has_rows {
        write!(out, "<td></td>")?;
    }
    for &column in &table.columns {
        write!(out, "<th scope=\"col\">{}</th>", markup(&table.column_label(column)))?;
    }
    writeln!(out, "</tr>")?;
    for &row in &table.rows {
        write!(out, "<tr>")?;
        if table.has_rows {
            write!(out, "<th scope=\"row\">{}</th>", markup(&table.row_label(row)))?;
        }
        for &column in &table.columns {
            let name = table.name(row, column).map(|n| format!("<small> {}</small>", markup(&n))).unwrap_or_default();
            let shown = table.cell(row, column, options) + &name;
            match (row, column) {
                (Some(r), Some(c)) => {
                    let colour = colour(tensor, table.flat(r, c), top);
                    write!(out, "<td style=\"background:{colour}\">{shown}</td>")?;
                }
                _ => write!(out, "<td>{shown}</td>")?,
            }
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table>")
}

/// The largest finite magnitude of a tensor that is not a masked score.
pub(super) fn largest(tensor: &TensorDoc) -> f64 {
    (0..tensor.values.len())
        .filter_map(|i| tensor.values.get(i))
        .map(super::doc::Cell::to_f64)
        .filter(|x| x.is_finite() && !tensor.hides(*x))
        .fold(0.0, |top, x| x.abs().max(top))
}

/// White at zero, red above, blue below; black text keeps a contrast of at least 5 on all of them. What is no
/// value of the scale (masked, infinite, NaN) has colours of its own.
pub(super) fn colour(tensor: &TensorDoc, flat: usize, top: f64) -> String {
    let x = tensor.values.get(flat).map_or(0.0, super::doc::Cell::to_f64);
    if x.is_nan() {
        return "#ffe000".to_owned();
    }
    if tensor.hides(x) || x.is_infinite() {
        return "#c8c8c8".to_owned();
    }
    let t = if top > 0.0 { x / top } else { 0.0 };
    let end = if t < 0.0 { [0x67_u8, 0xa9, 0xcf] } else { [0xef, 0x8a, 0x62] };
    let mut text = "#".to_owned();
    for channel in end {
        let mixed = 255.0 + (f64::from(channel) - 255.0) * t.abs();
        let _ = write!(text, "{:02x}", mixed.round() as u8);
    }
    text
}

/// Untrusted text: control characters visible, markup escaped.
pub(super) fn safe(text: &str) -> String {
    markup(&escape(text))
}

pub(super) fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
