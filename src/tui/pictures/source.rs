//! A tensor as the cells of a table: its numbers, colours, labels, and the room it would like.

use std::fmt::Write as _;

use crate::app::app::App;
use crate::app::measure::Part;
use crate::app::navigator::{Navigator, TableModel};
use crate::app::settings::ScaleMode;
use crate::debug::whatif::Before;
use crate::scenario::tokenise::Vocab;
use crate::session::Labels;
use crate::tensor::{Axis, DType};
use crate::text::{Lang, NumberFormat, words};
use crate::trace::AnyValue;
use crate::trace::stats::{Mask, Tally};
use crate::tui::colour::CellKind;
use crate::tui::draw::Look;
use crate::tui::scale::Scale;
use crate::tui::widgets::heat_table::{Change, HeatCell};

/// The value of a table, and how its cells are written.
pub struct Source<'a> {
    pub table: &'a TableModel,
    pub value: AnyValue,
    /// What it was before edits.
    pub before: Before,
    /// The largest magnitude of the tensor, where edits changed it.
    reach: f64,
    pub digits: NumberFormat,
    pub dtype: DType,
    /// The words that its numbers denote, where they are ids.
    words: Option<&'a Vocab>,
    /// Which cells are masked.
    mask: Mask,
    /// The cell that is being computed before one's eyes.
    coming: Option<usize>,
    /// The cell that an open question asks for.
    asked: Option<usize>,
}

impl<'a> Source<'a> {
    pub fn new(app: &'a App, table: &'a TableModel, digits: NumberFormat) -> Option<Self> {
        let d = &app.nav;
        let value = d.trace(table.run)?.get(table.node)?;
        let dtype = value.dtype();
        let before = app.edits.before(d, table.run, table.node);
        let range = || d.tally(table.run, table.node, Part::Whole)?.range();
        let reach = match &before {
            Before::Was(_) => range().map_or(1.0, |(min, max)| min.abs().max(max.abs())),
            _ => 1.0,
        };
        Some(Self {
            table,
            value,
            before,
            reach,
            digits,
            dtype,
            words: d.session.id_words(table.run, table.node),
            mask: d.origin(table.run, table.node).mask(),
            coming: table.cursor.filter(|_| app.ui.motion.is_some()).map(|(row, col)| table.plane.flat(row, col)),
            asked: d.hidden.filter(|(run, c)| (*run, c.node) == (table.run, table.node)).map(|(_, c)| c.flat),
        })
    }

    pub fn get(&self, row: usize, col: usize) -> f64 {
        self.value.get(self.table.plane.flat(row, col))
    }

    pub fn cell(&self, row: usize, col: usize) -> HeatCell {
        let x = self.get(row, col);
        let masked = self.mask.has(self.table.plane.flat(row, col));
        let (kind, text) = match self.dtype {
            DType::Int => (CellKind::Plain, self.id(x)),
            DType::Bool => (if x == 0.0 { CellKind::Plain } else { CellKind::Masked }, format!("{x}")),
            // Scores print what the mask made of them, weights their 0.
            DType::Float if masked && self.table.masked => (CellKind::Masked, "-∞".to_owned()),
            DType::Float => {
                let text = match &self.value {
                    AnyValue::F32(_) if !matches!(self.digits, NumberFormat::Decimals(_)) => {
                        self.digits.format_f32(x as f32)
                    }
                    _ => self.digits.format_short(x),
                };
                (if masked { CellKind::Masked } else { CellKind::of(x) }, text)
            }
        };
        if self.coming == Some(self.table.plane.flat(row, col)) {
            return HeatCell { value: 0.0, text: "...".to_owned(), kind: CellKind::Plain, changed: None };
        }
        if self.asked == Some(self.table.plane.flat(row, col)) {
            return HeatCell { value: 0.0, text: "?".to_owned(), kind: CellKind::Plain, changed: None };
        }
        HeatCell { value: x, text, kind, changed: self.changed(row, col) }
    }

    /// Value and kind of a cell of a picture.
    pub fn cell_kind(&self, row: usize, col: usize) -> (f64, CellKind) {
        let x = self.get(row, col);
        let kind = match self.dtype {
            DType::Bool if x != 0.0 => CellKind::Masked,
            DType::Bool | DType::Int => CellKind::Plain,
            DType::Float if self.mask.has(self.table.plane.flat(row, col)) => CellKind::Masked,
            DType::Float => CellKind::of(x),
        };
        (x, kind)
    }

    /// `2 水`: an id with its word.
    fn id(&self, x: f64) -> String {
        match self.words {
            Some(words) => format!("{x} {}", words.word(x as i64)),
            None => format!("{x}"),
        }
    }

    fn changed(&self, row: usize, col: usize) -> Option<Change> {
        let flat = self.table.plane.flat(row, col);
        match &self.before {
            Before::Same => None,
            Before::None => Some(Change { grade: 2, up: true }),
            Before::Was(before) if before.bits(flat) == self.value.bits(flat) => None,
            Before::Was(before) => Some(Change::new(before.get(flat), self.value.get(flat), self.reach)),
        }
    }

    /// The scale of its colours: over all cells of the tensor unless another scope was chosen.
    pub fn scale(&self, app: &App) -> Scale {
        let plane = &self.table.plane;
        let part = match app.ui.settings.scale {
            ScaleMode::Tensor | ScaleMode::Step => Part::Whole,
            ScaleMode::Head => plane.head().map_or(Part::Whole, Part::Head),
            ScaleMode::Plane => Part::Plane(plane.window()),
        };
        let scale = match app.nav.tally(self.table.run, self.table.node, part) {
            Some(tally) => Scale::of(self.table.kind, &tally),
            None => Scale::pending(self.table.kind),
        };
        scale.with_log(app.ui.settings.log_scale).with_uniform(plane.cols)
    }

    /// What a picture shows at a pixel of several cells: what is not a number first, else the largest magnitude.
    pub fn pixel(tally: &Tally) -> (f64, CellKind) {
        match tally {
            t if t.nan > 0 => (f64::NAN, CellKind::Nan),
            t if t.pos_inf > 0 => (f64::INFINITY, CellKind::PosInf),
            t if t.neg_inf > 0 => (f64::NEG_INFINITY, CellKind::NegInf),
            t if t.finite == 0 => (0.0, CellKind::Masked),
            t => (t.extreme(), CellKind::Value),
        }
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
        // Heading and column labels.
        let height = u16::try_from(p.rows).unwrap_or(u16::MAX).saturating_add(2);
        (width.max(look.width(&self.heading(look.lang))), height)
    }

    /// Whether colours are explained below: where its cells are numbers.
    pub fn has_legend(&self) -> bool {
        self.dtype == DType::Float
    }

    /// `Q1 4×2`, with the place on axes that are turned, counted as in titles: head 1 is the first.
    pub fn heading(&self, lang: Lang) -> String {
        let p = &self.table.plane;
        let mut text = format!("{} {}×{}", self.table.symbol, p.rows, p.cols);
        for (axis, at, n) in &p.fixed {
            let _ = write!(text, " {} {}/{n}", words(lang, "axis", axis.name()), at + 1);
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
            let shape = d.session.runs[table.run].program.node(table.node).shape;
            // The sentences of a batch below each other have no words in common.
            let sentences =
                table.plane.row_axis.is_some_and(|(a, _)| shape.axes()[a] == Axis::Batch && shape.dims()[a] > 1);
            let labels = if sentences {
                Labels::None
            } else {
                d.session.axis_labels(table.run, table.node, axis, table.plane.batch)
            };
            // The number of an only place says nothing.
            let reported = shape.dims()[axis] > 1 || !matches!(labels, Labels::None);
            reported.then_some((labels, first))
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
