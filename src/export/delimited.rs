//! CSV and TSV in long form: one row a cell, every cell, at full precision. The names of a step and a tensor are in the first
//! row of each tensor, unless every row is to have them.
//!
//! A text field that a spreadsheet would take for a formula gets an apostrophe in front; numbers never do.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::Options;
use super::doc::{StepDoc, Table};
use crate::text::escape;

const COLUMNS: [&str; 13] = [
    "scenario", "run", "step", "section", "phase", "title", "symbol", "path", "slice", "index", "row", "column",
    "value",
];

pub(super) fn begin(out: &mut impl Write, delimiter: u8) -> io::Result<()> {
    let mut writer = writer(out, delimiter);
    writer.write_record(COLUMNS.iter().chain(&["derivation"]))?;
    writer.flush()
}

pub(super) fn step(out: &mut impl Write, options: &Options, doc: &StepDoc, delimiter: u8) -> io::Result<()> {
    let mut writer = writer(out, delimiter);
    let number = doc.number();
    let mut derivations: HashMap<(&str, &[usize]), &str> = HashMap::new();
    if options.derivations {
        for d in &doc.derivations {
            derivations.insert((&d.symbol, &d.index), &d.text);
        }
    }
    for tensor in &doc.tensors {
        let rank = tensor.shape.len();
        let mut head = [
            guarded(&doc.scenario),
            guarded(&doc.run),
            number.as_str().into(),
            guarded(&doc.section),
            guarded(&doc.phase),
            guarded(&doc.title),
            guarded(&tensor.symbol),
            guarded(&tensor.path),
            guarded(&tensor.slice),
        ];
        let rows: Vec<_> = tensor.rows.iter().map(|l| guarded(l)).collect();
        let columns: Vec<_> = tensor.columns.iter().map(|l| guarded(l)).collect();
        let mut index = vec![0; rank];
        let mut place = String::new();
        for flat in 0..tensor.values.len() {
            let Some(cell) = tensor.values.get(flat) else {
                break;
            };
            for field in &mut head {
                writer.write_field(field.as_bytes())?;
                if !options.repeat_names {
                    *field = Cow::Borrowed("");
                }
            }
            place.clear();
            for i in &index {
                let _ = write!(place, "[{i}]");
            }
            writer.write_field(&place)?;
            let label = |labels: &[Cow<'_, str>], axis: Option<usize>| {
                axis.and_then(|a| labels.get(index[a])).map_or_else(String::new, |l| l.clone().into_owned())
            };
            writer.write_field(label(&rows, rank.checked_sub(2)))?;
            writer.write_field(label(&columns, rank.checked_sub(1)))?;
            writer.write_field(cell.exact())?;
            let derivation = derivations.get(&(tensor.symbol.as_str(), index.as_slice()));
            writer.write_field(derivation.map_or(Cow::Borrowed(""), |d| guarded(d)).as_bytes())?;
            writer.write_record(None::<&[u8]>)?;
            advance(&mut index, &tensor.shape);
        }
    }
    if let Some(table) = &doc.table {
        write_texts(&mut writer, doc, table)?;
    }
    writer.flush()
}

/// A table of texts: one row a cell, named by the first cell of its row and the heading of its column.
fn write_texts<W: Write>(writer: &mut csv::Writer<W>, doc: &StepDoc, table: &Table) -> io::Result<()> {
    let number = doc.number();
    for (r, row) in table.rows.iter().enumerate() {
        for (c, cell) in row.iter().enumerate().skip(1) {
            let index = format!("[{r}][{c}]");
            let label = row.first().map_or("", String::as_str);
            let heading = table.columns.get(c).map_or("", String::as_str);
            let fields: [&str; 14] = [
                &guarded(&doc.scenario),
                &guarded(&doc.run),
                &number,
                &guarded(&doc.section),
                &guarded(&doc.phase),
                &guarded(&doc.title),
                "",
                "",
                "",
                &index,
                &guarded(label),
                &guarded(heading),
                &guarded(cell),
                "",
            ];
            writer.write_record(fields)?;
        }
    }
    Ok(())
}

fn writer<W: Write>(out: W, delimiter: u8) -> csv::Writer<W> {
    csv::WriterBuilder::new().delimiter(delimiter).has_headers(false).from_writer(out)
}

/// The next index, row-major.
fn advance(index: &mut [usize], shape: &[usize]) {
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < n {
            return;
        }
        *i = 0;
    }
}

/// Control characters made visible, and formulas made text.
fn guarded(text: &str) -> Cow<'_, str> {
    let text = escape(text);
    // Spreadsheets skip spaces before a formula, and some take the full-width signs too.
    let first = text.trim_start().chars().next();
    match first {
        Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') => format!("'{text}").into(),
        _ => text,
    }
}
