//! Tables of words: training beside inference, and the like. Columns share the width, words wrap, lines scroll.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Shown;
use crate::app::app::App;
use crate::app::debugger::Words;
use crate::session::Table;
use crate::text::{Align, Msg};
use crate::tui::draw::{Look, put};
use crate::tui::widgets::paragraph::{Span, Wrapped};

/// Cells between columns.
const GAP: u16 = 2;
/// Narrowest that a column is made.
const NARROWEST: u16 = 6;

/// The step's table with its note below.
pub(super) fn step(
    app: &App,
    words: Words,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
    shown: &mut Shown,
) {
    let note = app.debugger.step().filter(|_| app.ui.settings.notes);
    let note = note.map_or_else(String::new, |s| s.note.render(look.lang));
    let text = Wrapped::new(&[Span::new(note, look.theme.text)], area.width, look);
    let below = (text.height() as u16).min(area.height / 3);
    let above = Rect {
        height: area.height - below,
        ..area
    };
    view(app, words, above, buf, look, shown);
    let bottom = Rect {
        y: above.bottom(),
        height: below,
        ..area
    };
    text.render(bottom, buf, 0, None, look);
}

/// A table by itself.
pub(super) fn view(
    app: &App,
    words: Words,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
    shown: &mut Shown,
) {
    match app.debugger.words(words, look.lang) {
        Ok(table) => {
            shown.page.rows = usize::from(area.height.saturating_sub(1));
            shown.page.last_line = draw(&table, app.debugger.scroll, area, buf, look);
        }
        Err(why) => nothing(&why, area, buf, look),
    }
}

/// Why there is nothing to see.
pub(super) fn nothing(why: &Msg, area: Rect, buf: &mut Buffer, look: &Look) {
    let text = Span::new(why.render(look.lang), look.theme.dim);
    Wrapped::new(&[text], area.width, look).render(area, buf, 0, None, look);
}

/// Draws a table from line `scroll` of its body on; returns the last line that one can scroll to.
pub(super) fn draw(
    table: &Table,
    scroll: usize,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) -> usize {
    let area = area.intersection(buf.area);
    if area.is_empty() || table.columns.is_empty() {
        return 0;
    }
    let widths = widths(table, area.width, look);
    let theme = &look.theme;
    let mut x = area.x;
    for (name, width) in table.columns.iter().zip(&widths) {
        let name = look.fit(name, *width, Align::Left);
        put(buf, area, (x, area.y), &name, *width, theme.title, look);
        x = x.saturating_add(width + GAP);
    }
    let body = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    let cells: Vec<Vec<Cell>> = table
        .rows
        .iter()
        .map(|row| {
            let cell = |(text, width): (&String, &u16)| Cell::new(text, *width, look);
            row.iter().zip(&widths).map(cell).collect()
        })
        .collect();
    let heights: Vec<usize> = cells
        .iter()
        .map(|row| row.iter().map(|c| c.lines.len()).max().unwrap_or(0).max(1))
        .collect();
    // Rows of several lines have a line between them, where all fits with it.
    let lines: usize = heights.iter().sum();
    let several = heights.iter().any(|h| *h > 1);
    let apart = usize::from(several && lines + heights.len() <= usize::from(body.height));
    let last = (lines + apart * heights.len()).saturating_sub(usize::from(body.height));
    let first = scroll.min(last);
    let mut line = 0;
    for (row, height) in cells.iter().zip(&heights) {
        let mut x = area.x;
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let style = if i == 0 { theme.label } else { theme.text };
            for (at, range) in cell.lines.iter().enumerate() {
                let seen = (line + at).checked_sub(first);
                let Some(y) = seen.filter(|y| *y < usize::from(body.height)) else {
                    continue;
                };
                let text = &cell.text[range.clone()];
                put(buf, area, (x, body.y + y as u16), text, *width, style, look);
            }
            x = x.saturating_add(width + GAP);
        }
        line += height + apart;
    }
    let mark = |y: u16, mark: &str, buf: &mut Buffer| {
        let x = area.right() - 1;
        put(buf, area, (x, y), mark, 1, theme.accent, look);
    };
    if first > 0 && !body.is_empty() {
        mark(body.y, look.glyphs.more[2], buf);
    }
    if first < last && !body.is_empty() {
        mark(body.bottom() - 1, look.glyphs.more[3], buf);
    }
    last
}

/// The text of a cell, and where its lines are in it.
struct Cell {
    text: String,
    lines: Vec<std::ops::Range<usize>>,
}

impl Cell {
    fn new(text: &str, width: u16, look: &Look) -> Self {
        let lines: Vec<_> = text.split('\n').map(|l| look.text(l)).collect();
        let text = lines.join("\n");
        let range = |line: &str| {
            // A line is a part of the text: its address says which.
            let start = line.as_ptr() as usize - text.as_ptr() as usize;
            start..start + line.len()
        };
        let lines = look.cells().wrap(&text, usize::from(width));
        let lines = lines.into_iter().map(range).collect();
        Self { text, lines }
    }
}

/// Widths of the columns: what each wants where all fit, else an even share of what the narrow ones leave.
fn widths(table: &Table, room: u16, look: &Look) -> Vec<u16> {
    let n = table.columns.len();
    let wish = |c: usize| {
        let cells = table.rows.iter().filter_map(|r| r.get(c));
        let lines = cells.flat_map(|t| t.split('\n'));
        let widest = lines.map(|t| look.width(t)).max().unwrap_or(0);
        widest.max(look.width(&table.columns[c])).max(1)
    };
    let wishes: Vec<u16> = (0..n).map(wish).collect();
    // One cell stays free for the marks at the right edge.
    let mut left = room.saturating_sub(GAP * (n as u16 - 1) + 1);
    let mut widths = vec![0; n];
    let mut open: Vec<usize> = (0..n).collect();
    while !open.is_empty() {
        let share = left / open.len() as u16;
        let fits: Vec<usize> = open
            .iter()
            .copied()
            .filter(|c| wishes[*c] <= share)
            .collect();
        if fits.is_empty() {
            for (i, c) in open.iter().enumerate() {
                let more = u16::from(i < usize::from(left % open.len() as u16));
                widths[*c] = (share + more).max(NARROWEST);
            }
            break;
        }
        for c in &fits {
            widths[*c] = wishes[*c];
            left -= wishes[*c];
        }
        open.retain(|c| !fits.contains(c));
    }
    widths
}
