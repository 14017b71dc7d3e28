//! Lines over an index: norms along the residual stream, sine and cosine curves, losses.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::settings::GlyphSet;
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
pub(super) const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

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
        let (top, bottom) = (self.digits.format_short(max), self.digits.format_short(min));
        let theme = &look.theme;
        // Without colours the points tell curves apart.
        let braille = theme.depth != Depth::None || look.glyphs.braille && self.series.len() == 1;
        // Lines for the names, one for the ends of the axis; the plot keeps at least half.
        let names = self.names(area, braille, look);
        let above = names.last().map_or(1, |n| n.1 + 1);
        let above = above.min((area.height / 2).max(1));
        let between = between((min, max), area.height - above - 1).map(|(line, x)| (line, self.digits.format_short(x)));
        let inner = between.as_ref().map_or(0, |(_, text)| look.width(text));
        let axis = look.width(&top).max(look.width(&bottom)).max(inner).min(area.width / 3);
        let plot = Rect::new(area.x + axis + 1, area.y + above, area.width - axis - 1, area.height - above - 1);
        for (y, text) in [(plot.y, &top), (plot.bottom() - 1, &bottom)] {
            let text = look.fit(text, axis, Align::Right);
            put(buf, area, (area.x, y), &text, axis, theme.dim, look);
        }
        if let Some((line, text)) = between {
            let y = plot.y + line;
            put(buf, area, (area.x, y), &look.fit(&text, axis, Align::Right), axis, theme.dim, look);
            if text == "0" {
                let dashes = look.glyphs.frame[0].repeat(plot.width.into());
                put(buf, plot, (plot.x, y), &dashes, plot.width, theme.border, look);
            }
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

        // One curve is drawn in braille; several in half blocks, each in its own colour, where there are colours.
        let ink = match (self.series.len(), theme.depth) {
            (1, _) if look.glyphs.braille => Ink::Braille,
            (_, Depth::None) => Ink::Points,
            _ if look.glyphs.set == GlyphSet::Unicode => Ink::Halves,
            _ => Ink::Points,
        };
        let (fine_x, fine_y) = ink.fine();
        let columns = usize::from(plot.width) * fine_x;
        let rows = usize::from(plot.height) * fine_y;
        // Which curves go through each pixel.
        let mut through = vec![0_u32; columns * rows];
        for (i, series) in self.series.iter().enumerate().take(32) {
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
                // Steep parts are joined up, from the middle between both points on.
                let (from, to) = before.map_or((row, row), |b| (b.min(row), b.max(row)));
                for row in from..=to {
                    through[row * columns + column] |= 1 << i;
                }
                before = Some(row);
            }
        }
        Self::curves(&through, (columns, rows), ink, plot, buf, look);
        if let Some(cursor) = self.cursor.filter(|c| *c < n) {
            let share = cursor as f64 / (n.max(2) - 1) as f64;
            let x = plot.x + (share * f64::from(plot.width - 1)).round() as u16;
            for y in plot.top()..plot.bottom() {
                // A line behind the curves.
                if let Some(cell) = buf.cell_mut((x, y))
                    && cell.symbol() == " "
                {
                    cell.set_symbol(look.glyphs.frame[1]).set_style(theme.dim);
                }
            }
        }
    }
}

/// A line between the first and the last of a plot, and its number: 0 where it is well inside, else the middle; none
/// where the plot is low.
fn between((min, max): (f64, f64), height: u16) -> Option<(u16, f64)> {
    let high = height.saturating_sub(1);
    if high < 6 || min >= max || !(max - min).is_finite() {
        return None;
    }
    let zero = (max / (max - min) * f64::from(high)).round();
    if zero >= 2.0 && zero <= f64::from(high - 2) {
        return Some((zero as u16, 0.0));
    }
    let line = high / 2;
    Some((line, max - (max - min) * f64::from(line) / f64::from(high)))
}

/// How curves become characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ink {
    Braille,
    Halves,
    Points,
}

impl Ink {
    /// Pixels of a character: columns and rows.
    fn fine(self) -> (usize, usize) {
        match self {
            Ink::Braille => (2, 4),
            Ink::Halves => (1, 2),
            Ink::Points => (1, 1),
        }
    }
}

/// Which of the curves through a pixel is seen: where several are equal they take turns, so that both are seen.
fn seen(through: u32, column: usize) -> Option<usize> {
    let all = through.count_ones() as usize;
    let which = (column / 2).checked_rem(all)?;
    (0..32).filter(|i| through & (1 << i) != 0).nth(which)
}

impl Chart<'_> {
    fn curves(through: &[u32], (columns, rows): (usize, usize), ink: Ink, plot: Rect, buf: &mut Buffer, look: &Look) {
        let at = |row: usize, column: usize| {
            if row < rows { seen(through[row * columns + column], column) } else { None }
        };
        let (fine_x, fine_y) = ink.fine();
        for y in 0..usize::from(plot.height) {
            for x in 0..usize::from(plot.width) {
                let place = (plot.x + x as u16, plot.y + y as u16);
                let (text, style) = match ink {
                    Ink::Braille => {
                        let mut dots = 0;
                        for (i, column) in DOTS.iter().enumerate().take(fine_x) {
                            for (j, dot) in column.iter().enumerate().take(fine_y) {
                                if at(y * fine_y + j, x * fine_x + i).is_some() {
                                    dots |= dot;
                                }
                            }
                        }
                        let glyph = char::from_u32(0x2800 + u32::from(dots)).filter(|_| dots != 0);
                        match glyph {
                            Some(glyph) => (String::from(glyph), colour(0, look)),
                            None => continue,
                        }
                    }
                    Ink::Halves => match (at(2 * y, x), at(2 * y + 1, x)) {
                        (Some(a), Some(b)) if a == b => ("█".to_owned(), colour(a, look)),
                        (Some(a), Some(b)) => {
                            let style = colour(a, look);
                            ("▀".to_owned(), colour(b, look).fg.map_or(style, |c| style.bg(c)))
                        }
                        (Some(a), None) => ("▀".to_owned(), colour(a, look)),
                        (None, Some(b)) => ("▄".to_owned(), colour(b, look)),
                        (None, None) => continue,
                    },
                    Ink::Points => match at(y, x) {
                        Some(a) => (look.glyphs.points[a % look.glyphs.points.len()].to_owned(), colour(a, look)),
                        None => continue,
                    },
                };
                put(buf, plot, place, &text, 1, style, look);
            }
        }
    }

    /// Column, line and text of each name: the mark that its line is drawn with comes before it.
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
    let curves = &look.palette.curves;
    match curves[series % curves.len()] {
        Some(colour) => Style::new().fg(colour),
        None => look.theme.text,
    }
}

#[cfg(test)]
mod tests {
    use super::seen;

    #[test]
    fn equal_curves_take_turns() {
        let both: Vec<_> = (0..8).map(|column| seen(0b101, column)).collect();
        assert_eq!(both, [0, 0, 2, 2, 0, 0, 2, 2].map(Some));
        assert_eq!((seen(0, 3), seen(0b10, 5)), (None, Some(1)));
    }
}
