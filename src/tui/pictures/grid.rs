//! A tensor as coloured cells with a number in each, as large as the room allows; as a picture where there is none for
//! numbers. The cells of one grid are all of one size, so that several grids can be compared.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::maps::overview;
use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::measure::Kind;
use crate::text::{Align, NumberFormat};
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::scale::Scale;

/// Largest cells: columns and lines.
const LARGEST: (u16, u16) = (14, 7);
/// Most cells of labels on the left.
const GUTTER: u16 = 9;

/// The size of the cells of a grid in an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    gutter: u16,
    width: u16,
    height: u16,
}

impl Cells {
    /// Characters of one cell.
    pub fn area(self) -> u32 {
        u32::from(self.width) * u32::from(self.height)
    }
}

/// How the numbers of a grid are written.
fn number(source: &Source<'_>, value: f64, width: u16) -> String {
    let room = usize::from(width.saturating_sub(1));
    let full = source.digits.format_short(value);
    if full.chars().count() <= room {
        return full;
    }
    let places = if width >= 6 { 3 } else { 2 };
    for digits in (0..=places).rev() {
        let text = NumberFormat::Decimals(digits).format(value);
        // A person reads .19 as 0.19.
        let text = if let Some(rest) = text.strip_prefix("0.") { format!(".{rest}") } else { text };
        let text = if let Some(rest) = text.strip_prefix("-0.") { format!("-.{rest}") } else { text };
        if text.chars().count() <= room {
            return text;
        }
    }
    "#".repeat(room.min(2))
}

/// The cells of a grid of this table in an area; `None` where a number has no room.
pub fn cells(source: &Source<'_>, labels: &Labelled<'_>, area: Rect, look: &Look) -> Option<Cells> {
    let p = &source.table.plane;
    if p.rows > 200 || p.cols > 200 {
        return None;
    }
    let gutter = (0..p.rows).map(|r| look.width(&labels.row(r))).max().unwrap_or(0).min(GUTTER).min(area.width / 4);
    let gutter = if gutter == 0 { 0 } else { gutter + 1 };
    let header = u16::from((0..p.cols).any(|c| !labels.column(c).is_empty()));
    let width = (area.width.saturating_sub(gutter) / p.cols.max(1) as u16).min(LARGEST.0);
    let height = (area.height.saturating_sub(header) / p.rows.max(1) as u16).min(LARGEST.1);
    let least = if source.table.kind == Kind::Probability { 4 } else { 6 };
    // A cell that is wider than it is high by more than twice reads as a table.
    let height = height.min((width / 2).max(1));
    (width >= least && height >= 1).then_some(Cells { gutter, width, height })
}

/// Draws the table; `query` is a row to point out. Gives the part of the area that was used.
#[allow(clippy::too_many_arguments, reason = "a table, its scale and where it goes")]
pub fn draw(
    app: &App,
    source: &Source<'_>,
    labels: &Labelled<'_>,
    scale: &Scale,
    query: Option<usize>,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) -> Rect {
    let area = area.intersection(buf.area);
    let p = &source.table.plane;
    let Some(size) = cells(source, labels, area, look) else {
        let shown = overview(app, source, labels, scale, None, area, buf, look);
        if let Some(q) = query
            && let Some(y) = shown.rows.iter().position(|r| r.contains(&q))
            && shown.area.x > area.x
        {
            let at = (shown.area.x - 1, shown.area.y + y as u16);
            put(buf, area, at, look.glyphs.here, 1, look.theme.accent, look);
        }
        return shown.used;
    };
    let theme = &look.theme;
    let header = u16::from((0..p.cols).any(|c| !labels.column(c).is_empty()));
    let left = area.x + size.gutter;
    for c in 0..p.cols {
        let x = left + c as u16 * size.width;
        let text = look.cut(&labels.column(c), size.width - 1);
        let text = look.fit(&text, size.width - 1, Align::Right);
        put(buf, area, (x, area.y), &text, size.width, theme.label, look);
    }
    for r in 0..p.rows {
        let y = area.y + header + r as u16 * size.height;
        let here = query == Some(r);
        let middle = y + (size.height - 1) / 2;
        if size.gutter > 0 {
            let style = if here { theme.accent } else { theme.label };
            let text = look.cut(&labels.row(r), size.gutter - 1);
            put(buf, area, (area.x, middle), &text, size.gutter - 1, style, look);
            if here {
                put(buf, area, (left - 1, middle), look.glyphs.here, 1, theme.accent, look);
            }
        }
        for c in 0..p.cols {
            let x = left + c as u16 * size.width;
            let (value, kind) = source.cell_kind(r, c);
            let style = scale.style(value, kind, theme, &look.palette);
            let text = match kind {
                CellKind::Masked if source.table.masked => "-∞".to_owned(),
                CellKind::Plain => source.cell(r, c).text,
                _ => number(source, value, size.width),
            };
            fill(buf, Rect { x, y, width: size.width, height: size.height }, style);
            let style = if here { style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED) } else { style };
            let text = look.fit(&text, size.width - 1, Align::Right);
            put(buf, area, (x, middle), &text, size.width, style, look);
        }
    }
    let (width, height) = (size.gutter + p.cols as u16 * size.width, header + p.rows as u16 * size.height);
    Rect { width: width.min(area.width), height: height.min(area.height), ..area }
}

fn fill(buf: &mut Buffer, area: Rect, style: Style) {
    let Some(ground) = style.bg else { return };
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            buf[(x, y)].set_symbol(" ").set_bg(ground);
        }
    }
}
