//! A tensor as coloured cells with a number in each, as large as the room allows; as a picture where there is none for
//! numbers. The cells of one grid are all of one size, so that several grids can be compared.

use std::ops::Range;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::maps::{LARGEST, overview};
use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::measure::Kind;
use crate::text::{Align, NumberFormat};
use crate::trace::stats::Tally;
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::scale::Scale;
use crate::tui::widgets::raster::Raster;

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

/// A number in a cell of `width`: with all digits where they fit, `.19` for 0.19 where they do not.
pub fn number(digits: NumberFormat, value: f64, width: u16) -> String {
    let room = usize::from(width.saturating_sub(1));
    let full = digits.format_short(value);
    // Cells that have no room for four decimals all have the same number of them.
    if room >= 6 && full.chars().count() <= room || !value.is_finite() || value.fract() == 0.0 && full.len() <= room {
        return full;
    }
    let most = if room >= 4 { 3 } else { 2 };
    // A small number is no zero.
    if value.abs() < 0.5 * libm::exp10(-(most as f64)) {
        let short = |digits| NumberFormat::Scientific(digits).format(value);
        let least = format!("{}<.{}1", if value < 0.0 { "-" } else { "" }, "0".repeat(most - 1));
        let texts = [short(1), short(0), least, "~0".to_owned()];
        return texts.into_iter().find(|t| t.chars().count() <= room).unwrap_or_default();
    }
    for places in (0..=most).rev() {
        let text = format!("{value:.places$}");
        // .19 is 0.19.
        let text = if let Some(rest) = text.strip_prefix("0.") { format!(".{rest}") } else { text };
        let text = if let Some(rest) = text.strip_prefix("-0.") { format!("-.{rest}") } else { text };
        if text.chars().count() <= room {
            return text;
        }
    }
    let texts = [NumberFormat::Scientific(1).format(value), NumberFormat::Scientific(0).format(value)];
    texts.into_iter().find(|t| t.chars().count() <= room).unwrap_or_else(|| "#".repeat(room.min(2)))
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
    // A character is about twice as high as wide.
    let height = height.min((width * 3 / 4).max(1));
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
                _ => number(source.digits, value, size.width),
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

/// The pixels of a picture of so many rows and columns, kept from frame to frame; `None` while the cells are read.
pub type Kept<'a> = dyn Fn((usize, usize)) -> Option<Arc<Vec<Tally>>> + 'a;

/// Numbers that are no tensor of a run: another one's values, a difference.
pub struct Values<'a> {
    /// Rows and columns.
    pub size: (usize, usize),
    /// A number and what it is.
    pub cell: &'a dyn Fn(usize, usize) -> (f64, CellKind),
    /// What is in each pixel of a picture of so many rows and columns, where that is kept from frame to frame: `cell` is
    /// not read for every cell then.
    pub kept: Option<&'a Kept<'a>>,
    /// Label of a row.
    pub row_label: &'a dyn Fn(usize) -> String,
    /// Label of a column.
    pub column_label: &'a dyn Fn(usize) -> String,
    /// Their colours.
    pub scale: Scale,
    /// How they are written.
    pub digits: NumberFormat,
    /// A cell to point out.
    pub cursor: Option<(usize, usize)>,
}

impl Values<'_> {
    /// Draws them as cells with numbers where those fit, else as a picture of every cell.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> Rect {
        let area = area.intersection(buf.area);
        let (rows, cols) = self.size;
        let gutter = (0..rows.min(200)).map(|r| look.width(&(self.row_label)(r))).max().unwrap_or(0).min(GUTTER);
        let gutter = gutter + u16::from(gutter > 0);
        let width = (area.width.saturating_sub(gutter) / cols.clamp(1, 4096) as u16).min(LARGEST.0);
        let height =
            (area.height.saturating_sub(1) / rows.clamp(1, 4096) as u16).min(LARGEST.1).min((width * 3 / 4).max(1));
        let least = if self.scale.kind == Kind::Probability { 4 } else { 6 };
        if rows > 200 || cols > 200 || width < least || height < 1 {
            return self.picture(area, buf, look);
        }
        let left = area.x + gutter;
        for c in 0..cols {
            let text = look.fit(&look.cut(&(self.column_label)(c), width - 1), width - 1, Align::Right);
            put(buf, area, (left + c as u16 * width, area.y), &text, width, look.theme.label, look);
        }
        for r in 0..rows {
            let y = area.y + 1 + r as u16 * height;
            let middle = y + (height - 1) / 2;
            let text = look.cut(&(self.row_label)(r), gutter.saturating_sub(1));
            put(buf, area, (area.x, middle), &text, gutter, look.theme.label, look);
            for c in 0..cols {
                let x = left + c as u16 * width;
                let (value, kind) = (self.cell)(r, c);
                let mut style = self.scale.style(value, kind, &look.theme, &look.palette);
                fill(buf, Rect { x, y, width, height }, style);
                let text = if kind == CellKind::Plain { "?".to_owned() } else { number(self.digits, value, width) };
                if self.cursor == Some((r, c)) {
                    style = style.patch(look.theme.cursor);
                }
                put(buf, area, (x, middle), &look.fit(&text, width - 1, Align::Right), width, style, look);
            }
        }
        let used = (gutter + cols as u16 * width, 1 + rows as u16 * height);
        Rect { width: used.0.min(area.width), height: used.1.min(area.height), ..area }
    }

    fn picture(&self, area: Rect, buf: &mut Buffer, look: &Look) -> Rect {
        let sample = |rows: &[Range<usize>], cols: &[Range<usize>]| -> Vec<(f64, CellKind)> {
            if let Some(kept) = self.kept {
                return match kept((rows.len(), cols.len())) {
                    Some(pixels) => pixels.iter().map(Source::pixel).collect(),
                    None => vec![(0.0, CellKind::Plain); rows.len() * cols.len()],
                };
            }
            let parts = rows.iter().flat_map(|r| cols.iter().map(move |c| (r.clone(), c.clone())));
            let pixel = |(rows, cols): (Range<usize>, Range<usize>)| {
                let mut tally = Tally::default();
                for (r, c) in rows.flat_map(|r| cols.clone().map(move |c| (r, c))) {
                    let (value, kind) = (self.cell)(r, c);
                    tally.take(value, matches!(kind, CellKind::Plain | CellKind::Masked));
                }
                Source::pixel(&tally)
            };
            parts.map(pixel).collect()
        };
        let raster = Raster {
            rows: 0..self.size.0,
            columns: 0..self.size.1,
            sample: &sample,
            scale: self.scale,
            cursor: self.cursor,
            window: None,
            row_label: Some(self.row_label),
            column_label: Some(self.column_label),
            most: LARGEST,
        };
        raster.render(area, buf, look).used
    }
}

pub fn fill(buf: &mut Buffer, area: Rect, style: Style) {
    let Some(ground) = style.bg else { return };
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            buf[(x, y)].set_symbol(" ").set_bg(ground);
        }
    }
}
