//! Norms along the residual stream, and the same head in every layer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::layers::{Stream, heads_across};
use crate::text::{Align, tr};
use crate::tui::draw::{Look, put};
use crate::tui::pictures::maps;
use crate::tui::screen::Shown;
use crate::tui::widgets::chart::{Chart, Series};

/// Norms along the residual stream, and a list of what each point is.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let d = &app.nav;
    let Some(stream) = Stream::of(d) else { return };
    if stream.nodes.is_empty() {
        put(buf, area, (area.x, area.y), tr(look.lang, "tui.no_layers"), area.width, look.theme.dim, look);
        return;
    }
    let names = &stream.names;
    let series = stream.curves(d).into_iter().map(|c| Series { name: c.name(look.lang), values: c.values });
    let series: Vec<Series> = series.collect();
    put(buf, area, (area.x, area.y), tr(look.lang, "tui.layers_title"), area.width, look.theme.title, look);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    // The same head in every layer has the lower part, where there is room for it.
    let maps = heads_across(d, look.lang);
    let lower = if maps.len() > 1 && area.height >= 24 { area.height * 2 / 5 } else { 0 };
    maps::maps(app, &maps, Rect { y: area.bottom() - lower, height: lower, ..area }, buf, look);
    let area = Rect { height: area.height - lower, ..area };
    let listed = (names.len() as u16).min(area.height / 2);
    let chart = Rect { height: area.height - listed, ..area };
    Chart {
        series: &series,
        digits: app.ui.settings.digits,
        ends: (&names[0], names.last().map_or("", String::as_str)),
        cursor: stream.cursor,
    }
    .render(chart, buf, look);
    let list = Rect { y: chart.bottom(), height: listed, ..area };
    let norm = |i: usize| {
        let norm = d.mean_norm(stream.run, stream.nodes[i]);
        app.ui.settings.digits.format(norm)
    };
    points(names, &norm, stream.cursor, list, buf, look);
}

/// The points of the curves as a list around the one that one is at, and how many there are where not all are seen.
fn points(
    names: &[String],
    norm: &dyn Fn(usize) -> String,
    cursor: Option<usize>,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) {
    let all = names.len();
    let height = usize::from(area.height);
    let seen = if all > height { height.saturating_sub(1) } else { all };
    let at = cursor.unwrap_or(0);
    let first = at.saturating_sub(seen / 2).min(all - seen);
    for (y, i) in (area.y..).zip(first..first + seen) {
        let (mark, style) =
            if Some(i) == cursor { (look.glyphs.here, look.theme.accent) } else { (" ", look.theme.text) };
        let name = look.fit(&names[i], 34.min(area.width), Align::Left);
        let text = format!("{mark} {name} {}", norm(i));
        put(buf, area, (area.x, y), &text, area.width, style, look);
    }
    if seen < all && area.height > 0 {
        let [_, _, above, below] = look.glyphs.more;
        let above = if first > 0 { above } else { " " };
        let below = if first + seen < all { below } else { " " };
        let text = format!("{above}{below} {}-{}/{all}", first + 1, first + seen);
        let at = (area.x, area.bottom() - 1);
        put(buf, area, at, &text, area.width, look.theme.accent, look);
    }
}
