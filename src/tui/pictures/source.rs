//! A tensor as the cells of a table: its numbers, colours, labels, and the room it would like.

use std::cell::OnceCell;
use std::fmt::Write as _;

use crate::app::navigator::{Navigator, Stats, TableModel};
use crate::debug::whatif::Before;
use crate::explain::line::MASKED_BELOW;
use crate::scenario::tokenise::Vocab;
use crate::session::Labels;
use crate::tensor::DType;
use crate::text::NumberFormat;
use crate::trace::AnyValue;
use crate::tui::colour::{CellKind, Scale};
use crate::tui::draw::Look;
use crate::tui::widgets::heat_table::HeatCell;

/// Numbers scanned for the range of a table that is too large to be scanned whole.
const SCANNED: usize = 2048;

/// The value of a table, and how its cells are written.
pub struct Source<'a> {
    pub table: &'a TableModel,
    pub value: AnyValue,
    /// What it was before edits.
    pub before: Before,
    pub digits: NumberFormat,
    pub dtype: DType,
    /// The words that its numbers stand for, where they are ids.
    words: Option<&'a Vocab>,
    stats: OnceCell<Stats>,
}

impl<'a> Source<'a> {
    pub fn new(d: &'a Navigator, table: &'a TableModel, digits: NumberFormat) -> Option<Self> {
        let value = d.trace(table.run)?.get(table.node)?;
        let dtype = value.dtype();
        Some(Self {
            table,
            value,
            before: d.before(table.run, table.node),
            digits,
            dtype,
            words: d.session.id_words(table.run, table.node),
            stats: OnceCell::new(),
        })
    }

    pub fn get(&self, row: usize, col: usize) -> f64 {
        self.value.get(self.table.plane.flat(row, col))
    }

    pub fn cell(&self, row: usize, col: usize) -> HeatCell {
        let x = self.get(row, col);
        let masked = self.table.masked && x < MASKED_BELOW || self.dtype == DType::Bool && x != 0.0;
        let (kind, text) = match self.dtype {
            DType::Int => (CellKind::Plain, self.id(x)),
            DType::Bool => (if masked { CellKind::Masked } else { CellKind::Plain }, format!("{x}")),
            DType::Float if masked => (CellKind::Masked, "-∞".to_owned()),
            DType::Float => {
                let text = match &self.value {
                    AnyValue::F32(_) => self.digits.format_f32(x as f32),
                    AnyValue::F64(_) => self.digits.format(x),
                };
                (CellKind::of(x), text)
            }
        };
        HeatCell { value: x, text, kind, changed: self.changed(row, col) }
    }

    /// `2 水`: an id with its word.
    fn id(&self, x: f64) -> String {
        match self.words {
            Some(words) => format!("{x} {}", words.word(x as i64)),
            None => format!("{x}"),
        }
    }

    fn changed(&self, row: usize, col: usize) -> bool {
        let flat = self.table.plane.flat(row, col);
        match &self.before {
            Before::Same => false,
            Before::None => true,
            Before::Was(before) => before.bits(flat) != self.value.bits(flat),
        }
    }

    /// Statistics for the colours: of the whole table, or of a sample where it is large.
    pub fn stats(&self) -> Stats {
        *self.stats.get_or_init(|| self.scanned())
    }

    fn scanned(&self) -> Stats {
        let plane = &self.table.plane;
        let n = plane.rows * plane.cols;
        let step = n.div_ceil(SCANNED).max(1);
        let at = (0..n).step_by(step);
        Stats::of(at.map(|i| self.get(i / plane.cols, i % plane.cols)))
    }

    pub fn scale(&self, stats: &Stats, log: bool) -> Scale {
        let scale = if self.table.sequential {
            Scale::sequential(stats.min.min(0.0), stats.max)
        } else {
            Scale::diverging(stats.min, stats.max)
        };
        scale.with_log(log)
    }

    /// Room that a table would like: its widest number, its labels.
    pub fn wish(&self, look: &Look, labels: &Labelled<'_>) -> (u16, u16) {
        let p = &self.table.plane;
        let (rows, cols) = (p.rows.min(12), p.cols.min(12));
        let column = |c: usize| {
            let cells = (0..rows).map(|r| look.width(&self.cell(r, c).text));
            let label = look.width(&labels.column(c)).min(8);
            cells.fold(label.max(1), u16::max)
        };
        let widths: Vec<u16> = (0..cols).map(column).collect();
        let label = (0..rows).map(|r| look.width(&labels.row(r))).max().unwrap_or(0).min(10);
        // Columns that were not looked at are as wide as the widest of those that were.
        let widest = widths.iter().copied().max().unwrap_or(1) + 1;
        let others = u16::try_from(p.cols - cols).unwrap_or(u16::MAX);
        let left = if label == 0 { 0 } else { label + 1 };
        let width = (widths.iter().map(|w| w + 1).sum::<u16>() + left)
            .saturating_sub(1)
            .saturating_add(others.saturating_mul(widest));
        // Heading and column labels, and the legend below the table with the cursor.
        let legend = u16::from(self.has_legend());
        let height = u16::try_from(p.rows).unwrap_or(u16::MAX).saturating_add(2 + legend);
        (width.max(look.width(&self.heading())), height)
    }

    /// Whether colours are explained below: where there are colours to tell apart.
    pub fn has_legend(&self) -> bool {
        let stats = || self.stats();
        self.table.cursor.is_some() && self.dtype == DType::Float && stats().min < stats().max
    }

    /// `Q1 4×2`, with the place on axes that are turned, counted as in titles: head 1 is the first.
    pub fn heading(&self) -> String {
        let p = &self.table.plane;
        let mut text = format!("{} {}×{}", self.table.symbol, p.rows, p.cols);
        for (axis, at, n) in &p.fixed {
            let _ = write!(text, " {} {}/{n}", axis.name(), at + 1);
        }
        text
    }
}

/// Labels of a table.
pub struct Labelled<'a> {
    rows: Option<(Labels<'a>, usize)>,
    cols: Option<(Labels<'a>, usize)>,
}

impl<'a> Labelled<'a> {
    pub fn new(d: &'a Navigator, table: &TableModel) -> Self {
        let of = |axis: Option<(usize, usize)>| {
            let (axis, first) = axis?;
            let labels = d.session.axis_labels(table.run, table.node, axis, table.plane.batch);
            let shape = d.session.runs[table.run].program.node(table.node).shape;
            // The number of an only place says nothing.
            let told = shape.dims()[axis] > 1 || !matches!(labels, Labels::None);
            told.then_some((labels, first))
        };
        Self { rows: of(table.plane.row_axis), cols: of(table.plane.col_axis) }
    }

    fn get(side: Option<&(Labels<'a>, usize)>, i: usize) -> String {
        side.map_or_else(String::new, |(l, first)| l.get(first + i).unwrap_or_else(|| (first + i).to_string()))
    }

    pub fn row(&self, i: usize) -> String {
        Self::get(self.rows.as_ref(), i)
    }

    pub fn column(&self, i: usize) -> String {
        Self::get(self.cols.as_ref(), i)
    }
}
