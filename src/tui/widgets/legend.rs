//! The legend of a scale on one line: its smallest number, its colours, its largest, and what has no colour.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::text::{Msg, NumberFormat, tr};
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::scale::{Kind, Scale};
use crate::tui::theme::Depth;

/// Most cells of the ramp.
const RAMP: u16 = 32;

/// The text at the right of the ramp: `1 NaN  3 +∞  2 -∞  6 masked`, the scale's word, the uniform value.
pub fn tail(scale: &Scale, digits: NumberFormat, look: &Look) -> String {
    let a = scale.apart;
    let mut parts = Vec::new();
    if scale.log {
        parts.push("log".to_owned());
    }
    for (n, what) in [(a.nan, "NaN"), (a.pos_inf, "+∞"), (a.neg_inf, "-∞")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    if a.masked > 0 {
        parts.push(Msg::new("tui.legend.masked").arg("count", a.masked).render(look.lang));
    }
    if let Some(uniform) = scale.uniform {
        parts.push(Msg::new("tui.legend.uniform").arg("value", digits.format(uniform)).render(look.lang));
    }
    parts.join("  ")
}

/// The legend without its colours: `-4..2.5  1 NaN`.
pub fn ends(scale: &Scale, digits: NumberFormat, look: &Look) -> String {
    if scale.pending {
        return tr(look.lang, "tui.legend.pending").to_owned();
    }
    let mut text = digits.format_short(scale.min);
    if scale.min < scale.max {
        text = format!("{text}..{}", digits.format_short(scale.max));
    }
    let tail = tail(scale, digits, look);
    if tail.is_empty() { text } else { format!("{text}  {tail}") }
}

/// Draws the legend in one line: `-4 ▇▇▇▇▇▇ 2.5  1 NaN`. Without colours the ramp is of glyphs. Returns the cells used.
pub fn render(area: Rect, buf: &mut Buffer, scale: &Scale, digits: NumberFormat, look: &Look) -> u16 {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return 0;
    }
    let theme = &look.theme;
    if scale.pending {
        return put(buf, area, (area.x, area.y), tr(look.lang, "tui.legend.pending"), area.width, theme.dim, look);
    }
    let (min, max) = (digits.format_short(scale.min), digits.format_short(scale.max));
    let tail = tail(scale, digits, look);
    let ends = look.width(&min).saturating_add(look.width(&max)).saturating_add(2);
    let after = if tail.is_empty() { 0 } else { look.width(&tail) + 2 };
    let mut x = area.x;
    let mut write = |x: &mut u16, text: &str, style| {
        let left = area.right().saturating_sub(*x);
        *x += put(buf, area, (*x, area.y), text, left, style, look);
    };
    // What is not finite matters more than the colours: the ramp is what becomes shorter.
    let ramp = area.width.saturating_sub(ends).saturating_sub(after).min(RAMP);
    write(&mut x, &min, theme.dim);
    if ramp < 3 || scale.min >= scale.max {
        if scale.min < scale.max {
            write(&mut x, " .. ", theme.dim);
            write(&mut x, &max, theme.dim);
        }
    } else {
        write(&mut x, " ", theme.text);
        let shades = look.glyphs.shades;
        let coloured = theme.depth != Depth::None;
        for i in 0..ramp {
            let t = (f64::from(i) + 0.5) / f64::from(ramp);
            let value = value_at(scale, t);
            let style = scale.style(value, CellKind::Value, theme, &look.palette);
            let shade = (scale.magnitude(value) * (shades.len() - 1) as f64).round() as usize;
            // A shade over a colour would mix it with that of the text.
            let shade = if coloured { 0 } else { shade.min(shades.len() - 1) };
            write(&mut x, shades[shade], style);
        }
        write(&mut x, " ", theme.text);
        write(&mut x, &max, theme.dim);
    }
    if !tail.is_empty() {
        write(&mut x, "  ", theme.text);
        let bad = scale.apart.nan + scale.apart.pos_inf + scale.apart.neg_inf > 0;
        write(&mut x, &tail, if bad { theme.bad } else { theme.dim });
    }
    x - area.x
}

/// The number at share `t` of the ramp, from the smallest to the largest; by decades where the scale is logarithmic.
fn value_at(scale: &Scale, t: f64) -> f64 {
    if scale.log && scale.kind != Kind::Signed {
        let top = scale.max;
        return top * libm::exp10(-6.0 * (1.0 - t));
    }
    if scale.log {
        // Both arms by their share of the ramp.
        let (low, high) = (scale.position(scale.min), scale.position(scale.max));
        let p = low + (high - low) * t;
        let s = (2.0 * p - 1.0).abs();
        let magnitude = if s == 0.0 { 0.0 } else { scale.ends().1 * libm::exp10(-6.0 * (1.0 - s)) };
        return magnitude.copysign(p - 0.5);
    }
    scale.min + (scale.max - scale.min) * t
}
