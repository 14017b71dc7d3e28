//! Breakpoints and watches, then the way back.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::breakpoints::list;
use crate::text::tr;
use crate::tui::draw::{Look, put};
use crate::tui::shown::Shown;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let d = &app.nav;
    let trail = d.jumps.trail();
    // Breakpoints and watches first, then where one came from.
    let breaks = list(d, &app.breaks, app.ui.settings.digits);
    let mut y = area.y;
    let mut line = |y: u16, text: &str, style| {
        put(buf, area, (area.x, y), text, area.width, style, look);
    };
    line(y, &breaks.title.render(look.lang), look.theme.title);
    y += 1;
    for row in &breaks.rows {
        if y >= area.bottom() {
            return;
        }
        line(y, &row.text.render(look.lang), look.theme.text);
        y += 1;
    }
    if trail.is_empty() || y >= area.bottom() {
        return;
    }
    y += u16::from(y > area.y);
    line(y, tr(look.lang, "tui.trail_title"), look.theme.title);
    let steps = d.steps.list();
    let height = usize::from(area.bottom().saturating_sub(y + 1));
    let first = trail.len().saturating_sub(height);
    for (y, place) in (y + 1..area.bottom()).zip(&trail[first..]) {
        let Some(step) = steps.get(place.at) else {
            continue;
        };
        let symbol = step.views.get(place.view).map(|v| v.cell_name(&place.index)).unwrap_or_default();
        let text = format!("{:>4} {} {symbol}", step.label(), step.title.render(look.lang));
        line(y, &text, look.theme.text);
    }
}
