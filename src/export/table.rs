//! A tensor as 2-D tables for people: outer axes become labelled blocks, the middle of long axes is left out.

use super::Options;
use super::doc::TensorDoc;
use crate::text::escape;

/// Characters of a table across an A4 page with margins of 2 cm.
const PAGE_WIDTH: usize = 88;
/// Rows of a table down such a page.
const PAGE_ROWS: usize = 42;

/// One table of a tensor.
pub(super) struct Table<'t> {
    tensor: &'t TensorDoc,
    /// Which block of the outer axes: `head=0`; empty for a tensor of at most two axes.
    pub label: String,
    /// Rows shown; `None` denotes those left out.
    pub rows: Vec<Option<usize>>,
    /// Columns shown; `None` denotes those left out.
    pub columns: Vec<Option<usize>>,
    /// Whether the table has an axis of rows (otherwise it is one row without a label).
    pub has_rows: bool,
    offset: usize,
    width: usize,
    row_labels: &'t [String],
    column_labels: &'t [String],
}

/// The tables of a tensor, and how many more blocks there are.
pub(super) struct Tables<'t> {
    pub tables: Vec<Table<'t>>,
    pub left_out: usize,
}

/// The tables of `tensor`. A scalar is one table of one cell; a tensor without cells has none.
pub(super) fn tables<'t>(tensor: &'t TensorDoc, options: &Options) -> Tables<'t> {
    let rank = tensor.shape.len();
    let width = tensor.shape.last().copied().unwrap_or(1);
    let height = if rank >= 2 { tensor.shape[rank - 2] } else { 1 };
    if tensor.values.is_empty() {
        return Tables { tables: Vec::new(), left_out: 0 };
    }
    let outer = &tensor.shape[..rank.saturating_sub(2)];
    let blocks: usize = outer.iter().product();
    let shown = blocks.min(options.max_blocks.max(1));
    let tables = (0..shown)
        .map(|block| {
            // The first axis is that of the sentences, where their labels differ.
            let sentence = tensor.sentences.get(block * tensor.sentences.len() / blocks.max(1));
            Table {
                tensor,
                label: block_label(tensor, outer, block),
                rows: ends(height, options.max_rows),
                columns: ends(width, options.max_columns),
                has_rows: rank >= 2,
                offset: block * height * width,
                width,
                row_labels: sentence.map_or(&tensor.rows, |s| &s.0),
                column_labels: sentence.map_or(&tensor.columns, |s| &s.1),
            }
        })
        .collect();
    Tables { tables, left_out: blocks - shown }
}

fn block_label(tensor: &TensorDoc, outer: &[usize], block: usize) -> String {
    let mut rest = block;
    let mut parts: Vec<String> = outer
        .iter()
        .enumerate()
        .rev()
        .map(|(i, &n)| {
            let at = rest % n;
            rest /= n;
            match tensor.axes.get(i) {
                Some(&name) if name != "dim" && !name.is_empty() => format!("{name}={at}"),
                _ => format!("dim{i}={at}"),
            }
        })
        .collect();
    parts.reverse();
    parts.join(", ")
}

/// `0..n`, or its two ends around a `None` where it is longer than `max`.
fn ends(n: usize, max: usize) -> Vec<Option<usize>> {
    let max = max.max(2);
    if n <= max {
        return (0..n).map(Some).collect();
    }
    let head = max.div_ceil(2);
    let tail = max - head;
    (0..head).map(Some).chain([None]).chain((n - tail..n).map(Some)).collect()
}

impl<'t> Table<'t> {
    /// The label of a row: its token, or its number; `…` for those left out. Escaped.
    pub fn row_label(&self, row: Option<usize>) -> String {
        label(self.row_labels, row)
    }

    /// The label of a column, in the same way.
    pub fn column_label(&self, column: Option<usize>) -> String {
        label(self.column_labels, column)
    }

    /// Row-major position of a cell in the tensor.
    pub fn flat(&self, row: usize, column: usize) -> usize {
        self.offset + row * self.width + column
    }

    /// The word that the id of a cell denotes. Escaped.
    pub fn name(&self, row: Option<usize>, column: Option<usize>) -> Option<String> {
        let flat = self.flat(row?, column?);
        let blank = self.tensor.blanks.contains_key(&flat);
        self.tensor.names.get(flat).filter(|_| !blank).map(|n| escape(n).into_owned())
    }

    /// The table in parts that fit a printed page: columns as far as [`PAGE_WIDTH`] characters go, [`PAGE_ROWS`] rows.
    pub fn pages(&self, options: &Options) -> Vec<Table<'t>> {
        let shown = |row, column| {
            let name = self.name(row, column).map_or(0, |n| options.cells.width(&n) + 3);
            options.cells.width(&self.cell(row, column, options)) + name
        };
        let width = |column: Option<usize>| {
            let cells = self.rows.iter().map(|row| shown(*row, column)).max().unwrap_or(0);
            cells.max(options.cells.width(&self.column_label(column))) + 2
        };
        let label = self.rows.iter().map(|row| options.cells.width(&self.row_label(*row))).max().unwrap_or(0);
        let label = if self.has_rows { label + 2 } else { 0 };
        let mut groups: Vec<Vec<Option<usize>>> = Vec::new();
        let mut used = 0;
        for &column in &self.columns {
            let width = width(column);
            match groups.last_mut() {
                Some(group) if used + width <= PAGE_WIDTH => group.push(column),
                _ => {
                    groups.push(vec![column]);
                    used = label;
                }
            }
            used += width;
        }
        let rows = self.rows.chunks(PAGE_ROWS);
        rows.flat_map(|rows| {
            groups.iter().map(|columns| Table {
                label: self.label.clone(),
                rows: rows.to_vec(),
                columns: columns.clone(),
                ..*self
            })
        })
        .collect()
    }

    /// A cell as a user reads it; `…` where it is left out.
    pub fn cell(&self, row: Option<usize>, column: Option<usize>, options: &Options) -> String {
        match (row, column) {
            (Some(r), Some(c)) => self.tensor.shown(self.flat(r, c), options.number),
            _ => "…".to_owned(),
        }
    }
}

fn label(labels: &[String], at: Option<usize>) -> String {
    match at {
        None => "…".to_owned(),
        Some(i) => labels.get(i).map_or_else(|| i.to_string(), |l| escape(l).into_owned()),
    }
}
