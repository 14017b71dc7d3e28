//! All heads of a layer next to each other: the weights of the attention one is in (or the nearest before).

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::heads::{heads, tables};
use crate::text::tr;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::maps;
use crate::tui::screen::Shown;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let d = &app.nav;
    let Some((run, node)) = heads(d) else {
        put(buf, area, (area.x, area.y), tr(look.lang, "tui.no_heads"), area.width, look.theme.dim, look);
        return;
    };
    let path = &d.session.runs[run].program.node(node).path;
    put(buf, area, (area.x, area.y), path, area.width, look.theme.dim, look);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let tables = tables(d, (run, node), |head| format!("{} {}", tr(look.lang, "tui.head"), head + 1));
    maps::maps(app, &tables, area, buf, look);
}
