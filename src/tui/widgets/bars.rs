//! Labelled horizontal bars, such as the probabilities of the most likely words.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::text::{Align, NumberFormat};
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, follow, put};
use crate::tui::scale::Scale;

/// One bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Its label. Untrusted.
    pub label: String,
    /// Its value.
    pub value: f64,
    /// Whether it is pointed out (the word that was taken, the target).
    pub marked: bool,
    /// What it was before edits: drawn as a ghost.
    pub before: Option<f64>,
}

/// Bars.
pub struct Bars<'a> {
    /// The bars, in order.
    pub bars: &'a [Bar],
    /// Value of a full bar.
    pub full: f64,
    /// How numbers print.
    pub digits: NumberFormat,
    /// The chosen bar.
    pub selected: Option<usize>,
    /// First bar to show; moved where the chosen one would be out of sight.
    pub offset: usize,
}

/// The `k` largest of `values`, largest first, equal ones in order; NaN last.
pub fn top(values: &[f64], k: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..values.len()).collect();
    let down = |a: &usize, b: &usize| {
        let (x, y) = (values[*a], values[*b]);
        match (x.is_nan(), y.is_nan()) {
            (false, false) => y.total_cmp(&x),
            (a, b) => a.cmp(&b),
        }
        .then(a.cmp(b))
    };
    if k < order.len() {
        order.select_nth_unstable_by(k, down);
        order.truncate(k);
    }
    order.sort_unstable_by(down);
    order
}

impl Bars<'_> {
    /// Draws the bars; returns the first one shown.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> usize {
        let area = area.intersection(buf.area);
        let height = usize::from(area.height);
        let n = self.bars.len();
        let offset = match self.selected {
            Some(at) => follow(self.offset, at, height, n),
            None => self.offset.min(n.saturating_sub(height)),
        };
        let shown = &self.bars[offset..n.min(offset + height)];
        let widest = |f: &dyn Fn(&Bar) -> u16| shown.iter().map(f).max().unwrap_or(0);
        let label = widest(&|b| look.width(&b.label)).min(area.width / 3);
        let number = widest(&|b| look.width(&self.digits.format_short(b.value))).min(area.width / 3);
        // What the numbers were, at the right end.
        let was = |b: &Bar| b.before.map_or_else(String::new, |x| format!("({})", self.digits.format_short(x)));
        let ghosts = widest(&|b| look.width(&was(b)));
        let ghosts = if ghosts > 0 { ghosts + 1 } else { 0 };
        let room = area.width.saturating_sub(label + number + 3 + ghosts);
        let scale = Scale::positive(0.0, self.full);
        for (i, bar) in shown.iter().enumerate() {
            let y = area.y + i as u16;
            let here = self.selected == Some(offset + i);
            let style = match (here, bar.marked) {
                (true, _) => look.theme.text.patch(look.theme.cursor),
                (_, true) => look.theme.accent,
                _ => look.theme.text,
            };
            let mark = if bar.marked { look.glyphs.here } else { " " };
            let mut x = area.x;
            x += put(buf, area, (x, y), mark, 1, style, look);
            let text = look.fit(&bar.label, label, Align::Left);
            x += put(buf, area, (x, y), &text, label, style, look) + 1;
            let text = look.fit(&self.digits.format_short(bar.value), number, Align::Right);
            x += put(buf, area, (x, y), &text, number, style, look) + 1;
            let length = scale.position(bar.value.abs());
            let kind = CellKind::of(bar.value);
            let cell = scale.style(bar.value.abs(), kind, &look.theme, &look.palette);
            // The colour of a value is a ground; a bar is drawn in it. Without colours there is none.
            let colour = cell.bg.map_or(look.theme.text, |c| look.theme.text.fg(c));
            let long = put(buf, area, (x, y), &strip(length, room, look), room, colour, look);
            if let Some(before) = bar.before {
                let at = (scale.position(before.abs()) * f64::from(room)).round() as u16;
                // Lost: a shade up to where it ended; gained: a line in the bar where it ended.
                let shade = look.glyphs.shades[1];
                for k in long..at.min(room) {
                    put(buf, area, (x + k, y), shade, 1, look.theme.dim, look);
                }
                if at < long
                    && let Some(cell) = buf.cell_mut((x + at, y))
                {
                    let ground = colour.fg.unwrap_or(ratatui::style::Color::Reset);
                    cell.set_symbol(look.glyphs.frame[1]).set_style(look.theme.text.bg(ground));
                }
                let text = look.fit(&was(bar), ghosts, Align::Right);
                put(buf, area, (x + room, y), &text, ghosts, look.theme.dim, look);
            }
        }
        offset
    }
}

/// A bar of `share` (0 to 1) of `width` cells.
fn strip(share: f64, width: u16, look: &Look) -> String {
    let glyphs = look.glyphs.bar;
    let eighths = glyphs.len();
    let total = (share.clamp(0.0, 1.0) * f64::from(width) * eighths as f64).round() as usize;
    let mut text = glyphs[eighths - 1].repeat(total / eighths);
    if !total.is_multiple_of(eighths) {
        text.push_str(glyphs[total % eighths - 1]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::top;

    #[test]
    fn the_largest_first_and_ties_in_order() {
        let values = [0.1, f64::NAN, 0.5, 0.5, -1.0];
        assert_eq!(top(&values, 3), [2, 3, 0]);
        assert_eq!(top(&values, 9), [2, 3, 0, 4, 1]);
        assert_eq!(top(&values, 0), [0; 0]);
        assert_eq!(top(&[], 2), [0; 0]);
    }
}
