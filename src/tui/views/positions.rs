//! The positional encoding as a heatmap, and its curves.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::positions::encoding;
use crate::text::tr;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::maps;
use crate::tui::pictures::source::Source;
use crate::tui::screen::Shown;
use crate::tui::widgets::chart::{Chart, Series};

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let d = &app.nav;
    let Some(table) = encoding(d) else {
        put(buf, area, (area.x, area.y), tr(look.lang, "tui.no_positions"), area.width, look.theme.dim, look);
        return;
    };
    let path = &d.session.runs[table.run].program.node(table.node).path;
    let Some(source) = Source::new(app, &table, app.ui.settings.digits) else {
        return;
    };
    put(buf, area, (area.x, area.y), path, area.width, look.theme.title, look);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let half = area.height / 2;
    let upper = Rect { height: half, ..area };
    maps::map(app, &table, upper, buf, look);
    // One curve a column; the first ones turn fastest.
    let series: Vec<Series> = (0..table.plane.cols.min(4))
        .map(|c| Series {
            name: format!("[{c}]"),
            values: (0..table.plane.rows.min(512)).map(|r| source.get(r, c)).collect(),
        })
        .collect();
    let last = table.plane.rows.saturating_sub(1).to_string();
    Chart { series: &series, digits: app.ui.settings.digits, ends: ("0", &last), cursor: None }.render(
        Rect { y: area.y + half, height: area.height - half, ..area },
        buf,
        look,
    );
}
