//! A long sum as bars: the largest terms with their signs, what the others add up to, and the result.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::explain::{Explainer, Sum};
use crate::text::{Align, Msg};
use crate::tui::draw::{Look, put};

/// Sums with more terms than this are bars.
pub const LONG: usize = 12;

/// The sum of the cursor's cell, where it is a long one.
pub fn long(app: &App) -> Option<Sum> {
    let d = &app.nav;
    let (run, cell) = d.cell()?;
    let trace = d.trace(run)?;
    Explainer::new(&trace).sum_of(cell).filter(|s| s.terms.len() > LONG)
}

/// Draws the sum in the area; gives the lines used.
pub fn draw(app: &App, sum: &Sum, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
    let d = &app.nav;
    let (Some((run, _)), Some(view)) = (d.cell(), d.view()) else { return 0 };
    let Some(trace) = d.trace(run) else { return 0 };
    if area.height < 2 {
        return 0;
    }
    let x = Explainer::new(&trace);
    let digits = app.ui.settings.digits;
    let number = |v: f64| digits.format_nonzero(v);
    let bars = usize::from(area.height - 1).min(8);
    let top = sum.top(bars);
    let chosen = d.chosen_cell();
    let texts: Vec<String> = top
        .order
        .iter()
        .map(|i| {
            let t = &sum.terms[*i];
            let left = x.number(t.cell, digits);
            let short = |text: String, v: f64| if text == "0" && v != 0.0 { digits.format_short(v) } else { text };
            let left = short(left, x.value(t.cell));
            match t.times {
                Some(b) => format!("{left}×{}", short(x.number(b, digits), x.value(b))),
                None => left,
            }
        })
        .collect();
    let widest = |f: &dyn Fn(usize) -> u16| (0..texts.len()).map(f).max().unwrap_or(0);
    let label = widest(&|i| look.width(&texts[i])).min(area.width / 3);
    let values: Vec<String> = top.order.iter().map(|i| signed(number(sum.terms[*i].value))).collect();
    let value = widest(&|i| look.width(&values[i])).min(area.width / 4);
    let room = area.width.saturating_sub(label + value + 4).min(64);
    let most = top.order.first().map_or(1.0, |i| sum.terms[*i].value.abs());
    let (middle, theme) = (room / 2, &look.theme);
    let so_far = app.ui.motion.map_or(usize::MAX, |m| m.of(top.order.len()));
    for (i, (y, at)) in (area.y..area.bottom()).zip(&top.order).enumerate().take(so_far) {
        let term = &sum.terms[*at];
        let is_chosen = chosen.is_some_and(|c| c == term.cell || Some(c) == term.times);
        let style = if is_chosen { theme.text.patch(theme.cursor) } else { theme.lit };
        let mut left = area.x;
        let text = look.fit(&texts[i], label, Align::Right);
        put(buf, area, (left, y), &text, label, style, look);
        left += label + 1;
        // The bar begins at the middle line: negative terms to the left of it.
        let share = if most > 0.0 && term.value.is_finite() { term.value.abs() / most } else { 1.0 };
        let long = ((share * f64::from(middle)).round() as u16).max(1).min(middle.max(1));
        let negative = term.value < 0.0;
        let t = if negative { 0.12 } else { 0.88 };
        let colour = look.palette.at(crate::tui::colour::Ramp::Diverging, t).map_or(theme.text, |c| theme.text.fg(c.0));
        let from = if negative { left + middle - long } else { left + middle + 1 };
        put(buf, area, (left + middle, y), look.glyphs.frame[1], 1, theme.dim, look);
        let full = look.glyphs.bar[look.glyphs.bar.len() - 1].repeat(usize::from(long));
        put(buf, area, (from, y), &full, long, colour, look);
        let at = (left + 2 * middle + 2, y);
        put(buf, area, at, &look.fit(&values[i], value, Align::Right), value, theme.text, look);
    }
    let y = area.y + top.order.len() as u16;
    let name = view.cell_name(d.index());
    let divided = sum.divided.map_or_else(String::new, |n| format!("/{n}"));
    let text = Msg::new("tui.sum.rest")
        .arg("name", name)
        .arg("top", top.order.len())
        .arg("all", sum.terms.len())
        .arg("share", format!("{:.0}", top.share * 100.0))
        .arg("others", top.others)
        .arg("rest", number(top.rest))
        .arg("divided", divided)
        .arg("result", number(sum.value))
        .render(look.lang);
    put(buf, area, (area.x, y), &text, area.width, theme.accent, look);
    top.order.len() as u16 + 1
}

fn signed(text: String) -> String {
    if text.starts_with('-') || text == "NaN" { text } else { format!("+{text}") }
}
