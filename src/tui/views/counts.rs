//! What the model is made of and what it costs.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::counts::tables;
use crate::text::{NumberFormat, tr};
use crate::tui::draw::{Look, put};
use crate::tui::shown::Shown;
use crate::tui::widgets::chart::{Chart, Series};

/// Rows of the chart, where there is room for it.
const CHART: u16 = 12;

/// Cost against length as a chart, and all tables below.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let Some(counts) = app.views.counts.counts(&app.nav.session) else {
        put(buf, area, (area.x, area.y), tr(look.lang, "counts.none"), area.width, look.theme.dim, look);
        return;
    };
    let mut lines = Vec::new();
    for table in tables(counts, &app.nav.session, look.lang) {
        if !lines.is_empty() {
            lines.push((String::new(), look.theme.text));
        }
        lines.push((table.title.clone(), look.theme.title));
        for (i, line) in table.lines().into_iter().enumerate() {
            lines.push((line, if i == 0 { look.theme.dim } else { look.theme.text }));
        }
        lines.extend(table.notes.iter().map(|n| (n.clone(), look.theme.dim)));
    }
    let chart = if area.height >= 2 * CHART { CHART } else { 0 };
    let list = Rect { height: area.height - chart, ..area };
    let height = usize::from(list.height);
    shown.page.list = height.max(1);
    let first = app.views.counts.first.min(lines.len().saturating_sub(height));
    for (y, (line, style)) in (list.y..).zip(lines.iter().skip(first).take(height)) {
        put(buf, list, (list.x, y), line, list.width, *style, look);
    }
    if chart == 0 || counts.lengths.len() < 2 {
        return;
    }
    // Powers of two, on both axes: a straight line is a power of the length.
    let series: Vec<Series> = (counts.curves.iter())
        .map(|c| Series {
            name: tr(look.lang, &format!("counts.kind.{}", c.kind.name())).to_owned(),
            values: c.points.iter().map(|w| (w.flops.max(1) as f64).log2()).collect(),
        })
        .collect();
    let place = Rect { y: list.bottom(), height: chart, ..area };
    put(buf, place, (place.x, place.y), tr(look.lang, "counts.chart"), place.width, look.theme.title, look);
    let (first, last) = (counts.lengths[0].to_string(), counts.lengths[counts.lengths.len() - 1].to_string());
    Chart { series: &series, digits: NumberFormat::Decimals(1), ends: (&first, &last), cursor: None }.render(
        Rect { y: place.y + 1, height: chart - 1, ..place },
        buf,
        look,
    );
}
