//! A big tensor as coloured blocks, two cells each, and an overview with the window that is shown.
//!
//! A block of a downsampled tensor stands for a rectangle of cells; which number it shows is the caller's choice.
//! Colour never stands alone: each block also has a sign and a glyph for its magnitude.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::text::Align;
use crate::tui::colour::{CellKind, Scale};
use crate::tui::draw::{Look, put};

/// Value and kind of a rectangle (rows, columns) of the tensor.
pub type Sample<'a> = dyn Fn(Range<usize>, Range<usize>) -> (f64, CellKind) + 'a;

/// Blocks of a tensor.
pub struct Blocks<'a> {
    /// The part of the tensor to show.
    pub rows: Range<usize>,
    /// The part of the tensor to show.
    pub columns: Range<usize>,
    /// What a block shows.
    pub sample: &'a Sample<'a>,
    /// Colours of values.
    pub scale: Scale,
    /// The cursor cell.
    pub cursor: Option<(usize, usize)>,
    /// A window to point out: rows and columns.
    pub window: Option<(Range<usize>, Range<usize>)>,
    /// Whether some rows and columns have their numbers beside them, where there is room.
    pub numbered: bool,
}

/// What lies where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The blocks on the screen.
    pub area: Rect,
    /// Rows of each line of blocks.
    pub rows: Vec<Range<usize>>,
    /// Columns of each block.
    pub columns: Vec<Range<usize>>,
}

impl Shown {
    /// The first cell of the block at a place of the screen.
    pub fn hit(&self, x: u16, y: u16) -> Option<(usize, usize)> {
        let row = self.rows.get(usize::from(y.checked_sub(self.area.y)?))?;
        let column = self.columns.get(usize::from(x.checked_sub(self.area.x)? / BLOCK))?;
        Some((row.start, column.start))
    }
}

/// Screen cells of a block.
const BLOCK: u16 = 2;
/// Every so many lines of blocks have the number of their first row.
const NUMBERED_ROWS: usize = 4;
/// Least screen cells between the numbers of two columns.
const NUMBER_GAP: u16 = 3;

/// `range` in at most `most` parts of nearly the same length, none empty.
pub fn split(range: &Range<usize>, most: usize) -> Vec<Range<usize>> {
    let n = range.len().min(most);
    // 128 bits: a range may be longer than the product of lengths that fits in 64.
    let at = |i: usize| range.start + (range.len() as u128 * i as u128 / n as u128) as usize;
    (0..n).map(|i| at(i)..at(i + 1)).collect()
}

impl Blocks<'_> {
    /// Draws the blocks.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> Shown {
        let whole = area.intersection(buf.area);
        let area = if self.numbered { self.numbers(whole, buf, look) } else { whole };
        let rows = split(&self.rows, usize::from(area.height));
        let columns = split(&self.columns, usize::from(area.width / BLOCK));
        let shades = look.glyphs.shades;
        let most = (shades.len() - 1) as f64;
        for (y, row) in (area.y..).zip(&rows) {
            for (i, column) in columns.iter().enumerate() {
                let (value, kind) = (self.sample)(row.clone(), column.clone());
                let mut style = self.scale.style(value, kind, &look.theme, &look.palette);
                let text = match kind {
                    CellKind::Masked => "..".to_owned(),
                    CellKind::Nan => "NN".to_owned(),
                    CellKind::PosInf => "+I".to_owned(),
                    CellKind::NegInf => "-I".to_owned(),
                    CellKind::Value | CellKind::Plain => {
                        let sign = if value < 0.0 { "-" } else { " " };
                        let shade = (self.scale.magnitude(value) * most).round() as usize;
                        format!("{sign}{}", shades[shade.min(shades.len() - 1)])
                    }
                };
                let inside = |r: &Range<usize>, c: &Range<usize>| {
                    r.start < row.end && row.start < r.end && c.start < column.end && column.start < c.end
                };
                if let Some((r, c)) = &self.window
                    && inside(r, c)
                {
                    style = style.patch(look.theme.lit);
                }
                if self.cursor.is_some_and(|(r, c)| row.contains(&r) && column.contains(&c)) {
                    style = style.patch(look.theme.cursor);
                }
                let x = area.x + i as u16 * BLOCK;
                put(buf, area, (x, y), &text, BLOCK, style, look);
            }
        }
        Shown { area: Rect::new(area.x, area.y, columns.len() as u16 * BLOCK, rows.len() as u16), rows, columns }
    }

    /// Numbers every few rows and columns; returns the room that is left for the blocks.
    fn numbers(&self, area: Rect, buf: &mut Buffer, look: &Look) -> Rect {
        let last = self.rows.end.saturating_sub(1).to_string();
        let gutter = look.width(&last).saturating_add(1);
        if area.height < 4 || area.width < gutter.saturating_add(4 * BLOCK) {
            return area;
        }
        let inner = Rect::new(area.x + gutter, area.y + 1, area.width - gutter, area.height - 1);
        let style = look.theme.label;
        let rows = split(&self.rows, usize::from(inner.height));
        for (y, row) in (inner.y..).zip(&rows).step_by(NUMBERED_ROWS) {
            let text = look.fit(&row.start.to_string(), gutter - 1, Align::Right);
            put(buf, area, (area.x, y), &text, gutter - 1, style, look);
        }
        let columns = split(&self.columns, usize::from(inner.width / BLOCK));
        let mut free = inner.x;
        for (x, column) in (inner.x..).step_by(usize::from(BLOCK)).zip(&columns) {
            let text = column.start.to_string();
            let width = look.width(&text);
            if x >= free && width <= inner.right().saturating_sub(x) {
                put(buf, area, (x, area.y), &text, width, style, look);
                free = x.saturating_add(width).saturating_add(NUMBER_GAP);
            }
        }
        inner
    }
}
