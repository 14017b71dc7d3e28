//! The view `stages`: a table of words.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::tui::draw::Look;
use crate::tui::pictures::words;
use crate::tui::shown::Shown;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let state = &app.views.stages;
    let made = state.table(&app.nav, look.lang);
    words::table(app, &made, None, state.words.line(&app.nav), area, buf, look, shown);
}
