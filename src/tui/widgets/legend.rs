//! The legend of a scale: its colours from end to end, with the numbers of the ends and the middle.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::text::NumberFormat;
use crate::tui::colour::{CellKind, Map, Scale};
use crate::tui::draw::{Look, put};
use crate::tui::theme::Depth;

/// Draws the legend in one line: `-4 ▇▇▇ 0 ▇▇▇ 4`, with the word `log` where the scale is. Returns the cells used.
pub fn render(area: Rect, buf: &mut Buffer, scale: &Scale, digits: NumberFormat, look: &Look) -> u16 {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return 0;
    }
    // A logarithmic sequential scale ends where its decades end, not at the least value.
    let min = if scale.log && scale.map == Map::Sequential {
        format!("<{}", NumberFormat::Scientific(1).format(scale.least()))
    } else {
        digits.format(scale.min)
    };
    let mut max = digits.format(scale.max);
    if scale.log {
        max.push_str(" log");
    }
    let middle = match scale.map {
        Map::Diverging => "0",
        Map::Sequential => "",
    };
    let texts = [min.as_str(), middle, max.as_str()].map(|t| look.width(t));
    let gaps = if middle.is_empty() { 2 } else { 4 };
    let taken = texts.iter().sum::<u16>().saturating_add(gaps);
    if taken > area.width {
        // No room for colours: the ends alone still say what the range is.
        let text = format!("{min} .. {max}");
        return put(buf, area, (area.x, area.y), &text, area.width, look.theme.dim, look);
    }
    let ramp = area.width.saturating_sub(taken).min(32);
    let mut x = area.x;
    let mut write = |x: &mut u16, text: &str, style| {
        let left = area.right().saturating_sub(*x);
        *x += put(buf, area, (*x, area.y), text, left, style, look);
    };
    let theme = &look.theme;
    let shades = look.glyphs.shades;
    let coloured = theme.depth != Depth::None;
    let steps =
        |write: &mut dyn FnMut(&mut u16, &str, ratatui::style::Style), x: &mut u16, from: f64, to: f64, n: u16| {
            for i in 0..n {
                let t = from + (to - from) * (f64::from(i) + 0.5) / f64::from(n);
                let value = scale.min + (scale.max - scale.min) * t;
                let linear = Scale { log: false, ..*scale };
                let style = linear.style(value, CellKind::Value, theme, &look.palette);
                let shade = (linear.magnitude(value) * (shades.len() - 1) as f64).round() as usize;
                // A shade over a colour would mix it with that of the text.
                let shade = if coloured { 0 } else { shade.min(shades.len() - 1) };
                write(x, shades[shade], style);
            }
        };
    write(&mut x, &min, theme.dim);
    write(&mut x, " ", theme.text);
    if middle.is_empty() {
        steps(&mut write, &mut x, 0.0, 1.0, ramp);
    } else {
        steps(&mut write, &mut x, 0.0, 0.5, ramp / 2);
        write(&mut x, " 0 ", theme.dim);
        steps(&mut write, &mut x, 0.5, 1.0, ramp / 2);
    }
    write(&mut x, " ", theme.text);
    write(&mut x, &max, theme.dim);
    x - area.x
}
