//! Tables of words: training next to inference, and the like. Columns share the width, words wrap, lines scroll.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::stairs;
use crate::app::app::App;
use crate::app::views::words::TableResult;
use crate::session::Table;
use crate::text::Msg;
use crate::tui::draw::{Look, put};
use crate::tui::shown::Shown;
use crate::tui::widgets::chart::{Chart, Series};
use crate::tui::widgets::paragraph::{Span, Wrapped};

/// Cells between columns.
const GAP: u16 = 2;
/// Least lines of a chart below a table.
const CHART: u16 = 8;
/// Least lines of which staircases take some from a table that would fill them.
const ROOMY: u16 = 28;
/// Narrowest that a column is made.
const NARROWEST: u16 = 6;

/// The step's table with its note below.
pub fn step(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let note = app.nav.step().filter(|_| app.ui.settings.notes);
    let note = note.map_or_else(String::new, |s| s.note.render(look.lang));
    let text = Wrapped::new(&[Span::new(note, look.theme.text)], area.width, look);
    let below = (text.height() as u16).min(area.height / 3);
    let above = Rect { height: area.height - below, ..area };
    let made = app.views.step.table(&app.nav, look.lang);
    table(app, &made, None, app.views.step.words.line(&app.nav), above, buf, look, shown);
    let bottom = Rect { y: above.bottom(), height: below, ..area };
    text.render(bottom, buf, 0, None, look);
}

/// Says that the scenario has no run for a table.
pub fn no_run(area: Rect, buf: &mut Buffer, look: &Look) {
    why_nothing(&Msg::new("tables.no_run"), area, buf, look);
}

/// A table under what is said above it, from line `scroll` on, row `here` pointed out; its lines of numbers where there
/// is room for them.
#[allow(clippy::too_many_arguments)]
pub fn table(
    app: &App,
    made: &TableResult,
    here: Option<usize>,
    scroll: usize,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
    shown: &mut Shown,
) {
    let made = match made {
        Ok(made) => made,
        Err(why) => return why_nothing(why, area, buf, look),
    };
    let head = Wrapped::new(&[Span::new(made.head.clone(), look.theme.accent)], area.width, look);
    let above = if made.head.is_empty() { 0 } else { (head.height() as u16).min(area.height / 3) };
    head.render(Rect { height: above, ..area }, buf, 0, None, look);
    let room = area.height - above;
    // The staircases have up to half of the room; what the table needs less, they and the chart have.
    let steps = stairs::wanted(&made.stairs, area.width);
    let rows = lines(&made.table, area.width, look).saturating_add(1);
    // On small screens the table has all of it.
    let steps = if room >= rows.saturating_add(steps) {
        steps
    } else if room >= ROOMY {
        steps.min(room / 2)
    } else {
        0
    };
    let wanted = rows.min(room - steps);
    let left = room - wanted - steps;
    let chart = if made.lines.is_empty() || left < CHART { 0 } else { left.min(3 * CHART) };
    let body = Rect { y: area.y + above, height: wanted, ..area };
    shown.page.rows = usize::from(body.height.saturating_sub(1));
    shown.page.last_line = draw(&made.table, here, scroll, body, buf, look);
    stairs::draw(&made.stairs, here, Rect { y: body.bottom(), height: steps, ..area }, buf, look);
    let series: Vec<Series> =
        made.lines.iter().map(|(name, values)| Series { name: name.clone(), values: values.clone() }).collect();
    let axis = made.table.columns.first().map_or("", String::as_str);
    let end = format!("{axis} {}", made.table.rows.len());
    Chart { series: &series, digits: app.ui.settings.digits, ends: ("1", &end), cursor: here }.render(
        Rect { y: body.bottom() + steps, height: chart, ..area },
        buf,
        look,
    );
}

/// Why there is nothing to see.
pub fn why_nothing(why: &Msg, area: Rect, buf: &mut Buffer, look: &Look) {
    let text = Span::new(why.render(look.lang), look.theme.dim);
    Wrapped::new(&[text], area.width, look).render(area, buf, 0, None, look);
}

/// Draws a table from line `scroll` of its body on, row `here` pointed out; returns the last line that one can scroll
/// to.
fn draw(table: &Table, here: Option<usize>, scroll: usize, area: Rect, buf: &mut Buffer, look: &Look) -> usize {
    let area = area.intersection(buf.area);
    if area.is_empty() || table.columns.is_empty() {
        return 0;
    }
    let widths = widths(table, area.width, look);
    let theme = &look.theme;
    let names = table.columns.iter().zip(&widths);
    let names: Vec<Cell> = names.map(|(n, width)| Cell::new(n, *width, look)).collect();
    let head = names.iter().map(|n| n.lines.len()).max().unwrap_or(1);
    let head = (head as u16).min(3).min(area.height);
    let mut x = area.x;
    for (name, width) in names.iter().zip(&widths) {
        for (y, range) in (area.y..area.y + head).zip(&name.lines) {
            let text = &name.text[range.clone()];
            put(buf, area, (x, y), text, *width, theme.title, look);
        }
        x = x.saturating_add(width + GAP);
    }
    let body = Rect { y: area.y + head, height: area.height - head, ..area };
    let cells: Vec<Vec<Cell>> = table
        .rows
        .iter()
        .map(|row| {
            let cell = |(text, width): (&String, &u16)| Cell::new(text, *width, look);
            row.iter().zip(&widths).map(cell).collect()
        })
        .collect();
    let heights: Vec<usize> =
        cells.iter().map(|row| row.iter().map(|c| c.lines.len()).max().unwrap_or(0).max(1)).collect();
    // Rows of several lines have a line between them, where all fits with it.
    let lines: usize = heights.iter().sum();
    let several = heights.iter().any(|h| *h > 1);
    let apart = usize::from(several && lines + heights.len() <= usize::from(body.height));
    let last = (lines + apart * heights.len()).saturating_sub(usize::from(body.height));
    let first = scroll.min(last);
    let mut line = 0;
    for (r, (row, height)) in cells.iter().zip(&heights).enumerate() {
        let mut x = area.x;
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let style = match i {
                _ if here == Some(r) => theme.accent,
                0 => theme.label,
                _ => theme.text,
            };
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

/// Lines that a table takes at this width, its heading included.
fn lines(table: &Table, width: u16, look: &Look) -> u16 {
    if table.columns.is_empty() {
        return 0;
    }
    let widths = widths(table, width, look);
    let height = |row: &[String]| {
        let cells = row.iter().zip(&widths).map(|(text, width)| Cell::new(text, *width, look).lines.len());
        cells.max().unwrap_or(1).max(1)
    };
    let rows: Vec<usize> = table.rows.iter().map(|r| height(r)).collect();
    let between = if rows.iter().any(|h| *h > 1) { rows.len() } else { 0 };
    u16::try_from(height(&table.columns).min(3) + rows.iter().sum::<usize>() + between).unwrap_or(u16::MAX)
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
        // Headings wrap: their longest word counts.
        let words = table.columns[c].split(' ').map(|w| look.width(w));
        widest.max(words.max().unwrap_or(0)).max(1)
    };
    let wishes: Vec<u16> = (0..n).map(wish).collect();
    // One cell stays free for the marks at the right edge.
    let mut left = room.saturating_sub(GAP * (n as u16 - 1) + 1);
    let mut widths = vec![0; n];
    let mut open: Vec<usize> = (0..n).collect();
    while !open.is_empty() {
        let share = left / open.len() as u16;
        let fits: Vec<usize> = open.iter().copied().filter(|c| wishes[*c] <= share).collect();
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
