//! The positional encoding: position × dimension as a picture, how alike positions are, its curves or clock hands.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::similar::Similar;
use crate::app::views::positions::Encoding;
use crate::text::{Align, Msg, tr};
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, follow, put};
use crate::tui::pictures::grid::{self, Values};
use crate::tui::pictures::nothing;
use crate::tui::pictures::source::{Labelled, Source};
use crate::tui::scale::Scale;
use crate::tui::shown::Shown;
use crate::tui::widgets::chart::{Chart, Series};
use crate::tui::widgets::{clock, legend};

/// Narrowest and lowest area that has more than the table.
const SMALL: (u16, u16) = (50, 16);
/// Curves that are drawn.
const CURVES: usize = 6;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let Some(encoding) = Encoding::of(d) else { return nothing(area, buf, "tui.no_positions", look) };
    let table = &encoding.table;
    let Some(source) = Source::new(app, table, app.ui.settings.digits) else { return };
    let at = app.views.positions.at.min(table.plane.rows.saturating_sub(1));
    shown.page.rows = 8;
    let (roomy, tall) = (area.width >= SMALL.0, area.height >= SMALL.1);
    let upper = if tall { area.height - (area.height / 2).min(22) } else { area.height };
    let left = if roomy { area.width / 2 } else { area.width };
    let place = Rect { width: left.saturating_sub(u16::from(roomy) * 2), height: upper.saturating_sub(1), ..area };
    picture(app, &source, at, place, buf, look);
    if roomy {
        let place = Rect { x: area.x + left, width: area.width - left, height: upper.saturating_sub(1), ..area };
        similar(app, &encoding, &source, at, place, buf, look);
    }
    if !tall {
        return;
    }
    let below = Rect { y: area.y + upper, height: area.height - upper, ..area };
    match encoding.sines.and_then(|id| d.trace(table.run)?.get(id)) {
        Some(sines) => clocks(app, &source, &|r, c| sines.get(table.plane.flat(r, c)), at, below, buf, look),
        None => curves(app, &source, at, below, buf, look),
    }
}

/// Position × dimension.
fn picture(app: &App, source: &Source<'_>, at: usize, area: Rect, buf: &mut Buffer, look: &Look) {
    let table = source.table;
    let path = &app.nav.session.runs[table.run].program.node(table.node).path;
    let title = Msg::new("tui.positions.table").arg("path", path).render(look.lang);
    put(buf, area, (area.x, area.y), &title, area.width, look.theme.title, look);
    let scale = source.scale(app);
    let line = Rect { y: area.y + 1, height: u16::from(area.height > 1), ..area };
    legend::render(line, buf, &scale, source.digits, look);
    let body = Rect { y: area.y + 2.min(area.height), height: area.height.saturating_sub(2), ..area };
    grid::draw(app, source, &Labelled::new(&app.nav, table), &scale, Some(at), body, buf, look);
}

/// p·p′ of all pairs of positions.
fn similar(app: &App, encoding: &Encoding, source: &Source<'_>, at: usize, area: Rect, buf: &mut Buffer, look: &Look) {
    let title = tr(look.lang, "tui.positions.similar");
    let Some(found) = encoding.similar(&app.nav) else {
        put(buf, area, (area.x, area.y), tr(look.lang, "tui.legend.pending"), area.width, look.theme.dim, look);
        return;
    };
    let n = found.positions.len();
    let mut title = title.to_owned();
    if n < encoding.table.plane.rows {
        let some = Msg::new("tui.positions.some").arg("count", n).arg("all", encoding.table.plane.rows);
        title = format!("{title} · {}", some.render(look.lang));
    }
    put(buf, area, (area.x, area.y), &title, area.width, look.theme.title, look);
    let scale = scale(&found);
    let line = Rect { y: area.y + 1, height: u16::from(area.height > 1), ..area };
    legend::render(line, buf, &scale, source.digits, look);
    let labels = Labelled::new(&app.nav, source.table);
    let label = |i: usize| match labels.row(found.positions[i]) {
        text if text.is_empty() => found.positions[i].to_string(),
        text => text,
    };
    let body = Rect { y: area.y + 2.min(area.height), height: area.height.saturating_sub(2), ..area };
    let cursor = found.positions.iter().rposition(|p| *p <= at).map(|i| (i, i));
    Values {
        size: (n, n),
        cell: &|r, c| (found.at(r, c), CellKind::of(found.at(r, c))),
        kept: None,
        row_label: &label,
        column_label: &label,
        scale,
        digits: source.digits,
        cursor,
    }
    .render(body, buf, look);
}

fn scale(found: &Similar) -> Scale {
    let tally = crate::trace::stats::Tally::of(found.products.iter().copied());
    Scale::of(crate::app::measure::Kind::Signed, &tally)
}

/// Some dimensions over the positions; the first ones turn fastest.
fn curves(app: &App, source: &Source<'_>, at: usize, area: Rect, buf: &mut Buffer, look: &Look) {
    let plane = &source.table.plane;
    let title = tr(look.lang, "tui.positions.curves");
    put(buf, area, (area.x, area.y), title, area.width, look.theme.title, look);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let n = plane.cols.min(CURVES);
    let series: Vec<Series> = (0..n)
        .map(|i| {
            // The first two dimensions, then some at equal distances.
            let c = if plane.cols <= CURVES || i < 2 { i } else { 2 + (i - 2) * (plane.cols - 2) / (CURVES - 2) };
            let values = (0..plane.rows.min(4096)).map(|r| source.get(r, c)).collect();
            Series { name: Msg::new("tui.positions.dimension").arg("n", c).render(look.lang), values }
        })
        .collect();
    let last = format!("{} {}", tr(look.lang, "tui.hint.position"), plane.rows.saturating_sub(1));
    Chart { series: &series, digits: app.ui.settings.digits, ends: ("0", &last), cursor: Some(at) }
        .render(area, buf, look);
}

/// The angle of each pair of dimensions at the positions from `at` on, as hands of clocks.
#[allow(clippy::too_many_arguments, reason = "two tables and where they go")]
fn clocks(
    app: &App,
    cosines: &Source<'_>,
    sine: &dyn Fn(usize, usize) -> f64,
    at: usize,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) {
    let theme = &look.theme;
    let plane = &cosines.table.plane;
    put(buf, area, (area.x, area.y), tr(look.lang, "tui.positions.clocks"), area.width, theme.title, look);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let labels = Labelled::new(&app.nav, cosines.table);
    let label = |r: usize| format!("{r} {}", labels.row(r)).trim_end().to_owned();
    let gutter = (0..plane.rows.min(99)).map(|r| look.width(&label(r))).max().unwrap_or(0).min(10) + 1;
    let (w, h) = (clock::SIZE.0 + 3, clock::SIZE.1 + 1);
    let columns = usize::from(area.width.saturating_sub(gutter) / w).min(plane.cols);
    // Positions side by side where there are few pairs.
    let beside = if columns == 0 { 0 } else { usize::from(area.width / (gutter + columns as u16 * w)).max(1) };
    let lines = usize::from(area.height.saturating_sub(1) / h);
    let count = (beside * lines).min(plane.rows);
    if count == 0 {
        return;
    }
    let first = follow(at.saturating_sub(count / 2), at, count, plane.rows);
    for k in 0..count {
        let (block, line) = (k / lines, k % lines);
        let position = first + k;
        let x = area.x + block as u16 * (gutter + columns as u16 * w);
        let y = area.y + 1 + line as u16 * h;
        let style = if position == at { theme.accent } else { theme.label };
        put(buf, area, (x, y + 1), &look.cut(&label(position), gutter - 1), gutter, style, look);
        for c in 0..columns {
            let left = x + gutter + c as u16 * w;
            if line == 0 {
                let text = Msg::new("tui.positions.pair").arg("n", c).render(look.lang);
                put(buf, area, (left, area.y), &text, w - 1, theme.label, look);
            }
            let (cos, sin) = (cosines.get(position, c), sine(position, c));
            let place = Rect { x: left, y, width: w, height: h }.intersection(area);
            let hand = if position == at { theme.accent } else { theme.text };
            clock::render((cos, sin), place, buf, (theme.border, hand), look);
            let degrees = libm::atan2(sin, cos).to_degrees().rem_euclid(360.0);
            let text = look.fit(&format!("{degrees:.1}°"), clock::SIZE.0, Align::Right);
            put(buf, area, (left, y + clock::SIZE.1), &text, w, theme.dim, look);
        }
    }
}
