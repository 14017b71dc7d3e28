//! Lines over an index: norms along the residual stream, sine and cosine curves, losses.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::text::{Align, NumberFormat};
use crate::tui::draw::{Look, put};
use crate::tui::theme::Depth;

/// One line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name. Untrusted.
    pub name: String,
    /// Its values, one an index. What is not finite is left out.
    pub values: Vec<f64>,
}

/// A chart.
pub struct Chart<'a> {
    /// The lines.
    pub series: &'a [Series],
    /// How numbers print.
    pub digits: NumberFormat,
    /// Labels of the first and last index.
    pub ends: (&'a str, &'a str),
    /// An index to point out.
    pub cursor: Option<usize>,
}

/// Dots of a braille cell, by column and row.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

impl Chart<'_> {
    /// Draws the chart.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        let finite = || {
            let all = self.series.iter().flat_map(|s| &s.values);
            all.copied().filter(|v| v.is_finite())
        };
        let (min, max) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if area.height < 3 || area.width < 8 || min > max {
            return;
        }
        let (top, bottom) = (self.digits.format(max), self.digits.format(min));
        let axis = look.width(&top).max(look.width(&bottom)).min(area.width / 3);
        let theme = &look.theme;
        // Several lines in one braille cell could not be told apart without colours: points then.
        let braille = look.glyphs.braille && (self.series.len() == 1 || theme.depth != Depth::None);
        // Lines for the names, one for the ends of the axis; the plot keeps at least half.
        let names = self.names(area, braille, look);
        let above = names.last().map_or(1, |n| n.1 + 1);
        let above = above.min((area.height / 2).max(1));
        let plot = Rect::new(area.x + axis + 1, area.y + above, area.width - axis - 1, area.height - above - 1);
        for (y, text) in [(plot.y, &top), (plot.bottom() - 1, &bottom)] {
            let text = look.fit(text, axis, Align::Right);
            put(buf, area, (area.x, y), &text, axis, theme.dim, look);
        }
        for (i, (x, line, text)) in names.iter().enumerate().filter(|(_, n)| n.1 < above) {
            let (x, y) = (area.x + x, area.y + line);
            put(buf, area, (x, y), text, area.right() - x, colour(i, look), look);
        }
        let n = self.series.iter().map(|s| s.values.len()).max().unwrap_or(0);
        let last_line = plot.bottom();
        let (first, last) = self.ends;
        put(buf, area, (plot.x, last_line), first, plot.width / 2, theme.dim, look);
        let width = look.width(last).min(plot.width / 2);
        put(buf, area, (plot.right() - width, last_line), last, width, theme.dim, look);

        let (fine_x, fine_y) = if braille { (2, 4) } else { (1, 1) };
        let columns = usize::from(plot.width) * fine_x;
        let rows = usize::from(plot.height) * fine_y;
        let mut dots = vec![0_u8; plot.area() as usize];
        for (i, series) in self.series.iter().enumerate() {
            dots.fill(0);
            let style = colour(i, look);
            let point = look.glyphs.points[i % look.glyphs.points.len()];
            let mut before: Option<usize> = None;
            for column in 0..columns {
                let at = column as f64 / (columns.max(2) - 1) as f64 * (n.max(1) - 1) as f64;
                let Some(value) = interpolate(&series.values, at) else {
                    before = None;
                    continue;
                };
                // Halved first: the difference of two large numbers may not be a number.
                let span = max / 2.0 - min / 2.0;
                let share = if span > 0.0 { (value / 2.0 - min / 2.0) / span } else { 0.5 };
                let row = ((1.0 - share) * (rows - 1) as f64).round() as usize;
                let row = row.min(rows - 1);
                // Steep parts are joined up.
                let (from, to) = before.map_or((row, row), |b| (b.min(row), b.max(row)));
                for row in from..=to {
                    let cell = row / fine_y * usize::from(plot.width) + column / fine_x;
                    dots[cell] |= DOTS[column % fine_x][row % fine_y];
                }
                before = Some(row);
            }
            for (cell, dots) in dots.iter().enumerate().filter(|d| *d.1 != 0) {
                let x = plot.x + (cell % usize::from(plot.width)) as u16;
                let y = plot.y + (cell / usize::from(plot.width)) as u16;
                let glyph = char::from_u32(0x2800 + u32::from(*dots)).filter(|_| braille);
                let text = glyph.map_or_else(|| point.to_owned(), String::from);
                put(buf, area, (x, y), &text, 1, style, look);
            }
        }
        if let Some(cursor) = self.cursor.filter(|c| *c < n) {
            let share = cursor as f64 / (n.max(2) - 1) as f64;
            let x = plot.x + (share * f64::from(plot.width - 1)).round() as u16;
            for y in plot.top()..plot.bottom() {
                if let Some(cell) = buf.cell_mut((x, y)) {
                    cell.set_style(theme.cursor);
                }
            }
        }
    }
}

impl Chart<'_> {
    /// Column, line and text of each name: the mark that its line is drawn with stands before it.
    fn names(&self, area: Rect, braille: bool, look: &Look) -> Vec<(u16, u16, String)> {
        let (mut x, mut y) = (0, 0);
        let all = self.series.iter().enumerate();
        all.map(|(i, series)| {
            let point = look.glyphs.points[i % look.glyphs.points.len()];
            let mark = if braille { look.glyphs.frame[0] } else { point };
            let text = format!("{mark} {}", series.name);
            let width = look.width(&text);
            if x > 0 && x + width > area.width {
                (x, y) = (0, y + 1);
            }
            let at = (x, y, text);
            x = x.saturating_add(width).saturating_add(2);
            at
        })
        .collect()
    }
}

fn interpolate(values: &[f64], at: f64) -> Option<f64> {
    let low = at.floor() as usize;
    let a = *values.get(low)?;
    let share = at - low as f64;
    let value = match values.get(low + 1) {
        Some(b) if share > 0.0 => a * (1.0 - share) + b * share,
        _ => a,
    };
    value.is_finite().then_some(value)
}

fn colour(series: usize, look: &Look) -> Style {
    let t = &look.theme;
    let styles = [t.accent, t.warn, t.good, t.bad, t.changed, t.text];
    styles[series % styles.len()]
}
