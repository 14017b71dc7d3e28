//! A table of numbers, each on the colour of its value. Only visible cells are requested.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use crate::text::Align;
use crate::tui::colour::{CellKind, Ramp};
use crate::tui::draw::{Look, put};
use crate::tui::scale::Scale;

/// One cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatCell {
    /// Its number.
    pub value: f64,
    /// What is written in it.
    pub text: String,
    /// What it is.
    pub kind: CellKind,
    /// What edits did to it; `None` where it is what it was.
    pub changed: Option<Change>,
}

/// A change of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// How large it is next to the largest number of the tensor: 0 below a hundredth, 1 below a tenth, 2 else.
    pub grade: u8,
    /// Whether the number grew.
    pub up: bool,
}

impl Change {
    /// From `before` to `after`; `reach` is the largest magnitude of the tensor before.
    pub fn new(before: f64, after: f64, reach: f64) -> Self {
        let share = (after - before).abs() / reach;
        let grade = match share {
            s if s < 0.01 => 0,
            s if s < 0.1 => 1,
            _ => 2,
        };
        Self { grade, up: after > before }
    }

    /// Its mark, in the colour of its direction.
    fn mark(self, look: &Look) -> (&'static str, Style) {
        let glyph = look.glyphs.changes[usize::from(self.grade.min(2))];
        let t = if self.up { 0.9 } else { 0.1 };
        let colour = look.palette.at(Ramp::Diverging, t).map(|c| c.0);
        (glyph, colour.map_or(look.theme.changed, |c| look.theme.changed.fg(c)))
    }
}

/// Cells to point out next to the cursor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lit<'a> {
    /// Whole rows.
    pub rows: &'a [usize],
    /// Whole columns.
    pub columns: &'a [usize],
    /// Single cells (row, column), ascending: a product of thousands of terms lights as many.
    pub cells: &'a [(usize, usize)],
}

impl Lit<'_> {
    fn has(&self, row: usize, column: usize) -> bool {
        self.rows.contains(&row) || self.columns.contains(&column) || self.cells.binary_search(&(row, column)).is_ok()
    }
}

/// The table.
pub struct HeatTable<'a> {
    /// Rows and columns of the tensor.
    pub size: (usize, usize),
    /// Label of a row; empty for none.
    pub row_label: &'a dyn Fn(usize) -> String,
    /// Label of a column; empty for none.
    pub column_label: &'a dyn Fn(usize) -> String,
    /// A cell.
    pub cell: &'a dyn Fn(usize, usize) -> HeatCell,
    /// First row and column to show; moved where the cursor would be out of sight.
    pub offset: (usize, usize),
    /// The cursor.
    pub cursor: Option<(usize, usize)>,
    /// Cells to point out.
    pub lit: Lit<'a>,
    /// Colours of values.
    pub scale: Scale,
    /// Widest that a column may be.
    pub widest: u16,
    /// Columns grow up to this where all of them are there and room is left; 0: they are as wide as their numbers.
    pub grow: u16,
}

/// What a table showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Rows.
    pub rows: Range<usize>,
    /// Columns.
    pub columns: Range<usize>,
    /// Screen row of the first cell.
    pub y: u16,
    /// Left end and width of each visible column.
    pub at: Vec<(u16, u16)>,
    /// Cells of the screen that were used.
    pub used: (u16, u16),
}

impl Shown {
    /// The cell at a place of the screen.
    pub fn hit(&self, x: u16, y: u16) -> Option<(usize, usize)> {
        let row = self.rows.start + usize::from(y.checked_sub(self.y)?);
        let column = self.at.iter().position(|(l, w)| x >= *l && x < l + w)?;
        (row < self.rows.end).then_some((row, self.columns.start + column))
    }
}

/// Most cells that row labels take.
const LABEL: u16 = 10;

impl HeatTable<'_> {
    /// Draws the table.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> Shown {
        let area = area.intersection(buf.area);
        let (rows, columns) = self.size;
        if area.is_empty() || rows == 0 || columns == 0 {
            return Shown::default();
        }
        // Where there are labels at all, every visible row and the header line keep room for them.
        let has_header = area.height > 1 && (0..columns.min(64)).any(|c| !(self.column_label)(c).is_empty());
        let header = u16::from(has_header);
        let fits = usize::from(area.height - header);
        // The last line tells of rows below.
        let body = if rows > fits && fits > 1 { fits - 1 } else { fits };
        let cursor = self.cursor.map(|(r, c)| (r.min(rows - 1), c.min(columns - 1)));
        let first = self.offset.0.min(rows.saturating_sub(body));
        let first = cursor.map_or(first, |c| crate::tui::draw::follow(first, c.0, body.max(1), rows));
        let row_range = first..(first + body).min(rows);
        let label = row_range
            .clone()
            .map(|r| look.width(&(self.row_label)(r)))
            .max()
            .unwrap_or(0)
            .min(LABEL)
            .min(area.width / 3);
        let left = if label == 0 { 0 } else { label + 1 };
        let room = area.width - left;
        let mut columns = self.columns(&row_range, cursor.map(|c| c.1), room, look);
        if columns.cells.len() == self.size.1 {
            columns.grow(room, self.grow);
        }

        let mut shown = Shown {
            rows: row_range.clone(),
            columns: columns.first..columns.first + columns.cells.len(),
            y: area.y + header,
            at: Vec::with_capacity(columns.cells.len()),
            used: (0, 0),
        };
        let mut x = area.x + left;
        for (i, (width, cells)) in columns.cells.iter().enumerate() {
            let column = columns.first + i;
            shown.at.push((x, *width));
            if has_header {
                let style = if self.lit.columns.contains(&column) || cursor.is_some_and(|c| c.1 == column) {
                    look.theme.label.add_modifier(Modifier::BOLD)
                } else {
                    look.theme.label
                };
                let text = look.fit(&(self.column_label)(column), *width, Align::Right);
                put(buf, area, (x, area.y), &text, *width, style, look);
            }
            for (row, cell) in row_range.clone().zip(cells) {
                let y = shown.y + (row - row_range.start) as u16;
                let style = self.style(cell, row, column, cursor, look);
                let text = look.fit(&cell.text, *width, Align::Right);
                put(buf, area, (x, y), &text, *width, style, look);
                // The colours of neighbours touch: the gap before a cell has the cell's colour.
                if x > area.x
                    && (i > 0 || left > 0)
                    && let Some(ground) = style.bg.filter(|_| cell.kind == CellKind::Value)
                    && let Some(gap) = buf.cell_mut((x - 1, y)).filter(|c| c.symbol() == " ")
                {
                    gap.set_bg(ground);
                }
                if let Some(change) = cell.changed {
                    // In the gap before the cell; over a blank of it where there is none.
                    let at = if x > area.x { x - 1 } else { x };
                    if at < x || text.starts_with(' ') {
                        let (mark, mut own) = change.mark(look);
                        if at == x {
                            own = style.patch(own);
                        }
                        put(buf, area, (at, y), mark, 1, own, look);
                    }
                }
            }
            x += width + 1;
        }
        for row in row_range.clone() {
            let y = shown.y + (row - row_range.start) as u16;
            let style = if cursor.is_some_and(|c| c.0 == row) || self.lit.rows.contains(&row) {
                look.theme.label.add_modifier(Modifier::BOLD)
            } else {
                look.theme.label
            };
            let text = look.cut(&(self.row_label)(row), label);
            put(buf, area, (area.x, y), &text, label, style, look);
        }
        self.more(&shown, area, left, buf, look);
        let bottom = shown.y + row_range.len() as u16 + u16::from(row_range.len() < rows);
        shown.used = (x.saturating_sub(1).min(area.right()).saturating_sub(area.x), bottom.min(area.bottom()) - area.y);
        shown
    }

    fn style(&self, cell: &HeatCell, row: usize, column: usize, cursor: Option<(usize, usize)>, look: &Look) -> Style {
        let theme = &look.theme;
        let mut style = self.scale.style(cell.value, cell.kind, theme, &look.palette);
        if cell.changed.is_some_and(|c| c.grade > 0) {
            style = style.add_modifier(theme.changed.add_modifier);
        }
        if self.lit.has(row, column) {
            style = style.patch(theme.lit);
        }
        if cursor == Some((row, column)) {
            style = style.patch(theme.cursor);
        }
        style
    }

    /// The columns that fit from the offset on, or up to the cursor where it would not be among them.
    fn columns(&self, rows: &Range<usize>, cursor: Option<usize>, room: u16, look: &Look) -> Columns {
        let all = self.size.1;
        let first = self.offset.1.min(all - 1);
        let first = cursor.map_or(first, |c| first.min(c));
        let forward = self.take(first..all, rows, room, look);
        let seen = first + forward.len();
        match cursor {
            Some(cursor) if cursor >= seen => {
                let mut cells = self.take((0..=cursor).rev(), rows, room, look);
                cells.reverse();
                Columns { first: cursor + 1 - cells.len(), cells }
            }
            // Nothing more to the right: fill the room from the left.
            _ if seen == all && first > 0 => {
                let mut cells = self.take((0..all).rev(), rows, room, look);
                cells.reverse();
                Columns { first: all - cells.len(), cells }
            }
            _ => Columns { first, cells: forward },
        }
    }

    fn take(
        &self,
        columns: impl Iterator<Item = usize>,
        rows: &Range<usize>,
        room: u16,
        look: &Look,
    ) -> Vec<(u16, Vec<HeatCell>)> {
        let mut taken: Vec<(u16, Vec<HeatCell>)> = Vec::new();
        let mut used = 0_u16;
        for column in columns {
            let cells: Vec<_> = rows.clone().map(|r| (self.cell)(r, column)).collect();
            let text = cells.iter().map(|c| look.width(&c.text)).max().unwrap_or(0);
            let label = look.width(&(self.column_label)(column)).min(8);
            let width = text.max(label).clamp(1, self.widest.max(1));
            let gap = u16::from(!taken.is_empty());
            let left = room.saturating_sub(used);
            if width + gap > left {
                // One column is shown however narrow the room is.
                if taken.is_empty() && left > 0 {
                    taken.push((left, cells));
                }
                break;
            }
            used += width + gap;
            taken.push((width, cells));
        }
        taken
    }

    /// Marks where there is more than is shown.
    fn more(&self, shown: &Shown, area: Rect, left: u16, buf: &mut Buffer, look: &Look) {
        let (rows, columns) = self.size;
        let [to_left, to_right, above, below] = look.glyphs.more;
        let style = look.theme.accent;
        let header = shown.y > area.y;
        if shown.rows.len() < rows && shown.rows.len() < usize::from(area.height) {
            let y = shown.y + shown.rows.len() as u16;
            let mut marks = String::new();
            if shown.rows.start > 0 {
                marks += above;
            }
            if shown.rows.end < rows {
                marks += below;
            }
            let text = format!("{marks} {}-{}/{rows}", shown.rows.start + 1, shown.rows.end);
            put(buf, area, (area.x, y), &text, area.width, style, look);
        }
        let y = if header { area.y } else { shown.y };
        if shown.columns.start > 0 && left > 0 {
            put(buf, area, (area.x + left - 1, y), to_left, 1, style, look);
        }
        let right = shown.at.last().map_or(area.x, |(x, w)| x + w);
        if shown.columns.end < columns && right < area.right() {
            put(buf, area, (right, y), to_right, 1, style, look);
        }
    }
}

struct Columns {
    first: usize,
    cells: Vec<(u16, Vec<HeatCell>)>,
}

impl Columns {
    /// Shares the room that is left among all columns, each at most `most` wide.
    fn grow(&mut self, room: u16, most: u16) {
        let n = u16::try_from(self.cells.len()).unwrap_or(u16::MAX).max(1);
        let used = self.cells.iter().fold(n - 1, |all, (width, _)| all.saturating_add(*width));
        let share = room.saturating_sub(used) / n;
        for (width, _) in &mut self.cells {
            *width = (*width + share).min(most).max(*width);
        }
    }
}
