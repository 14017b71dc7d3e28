//! The view `cache`: a table of words.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::cache::{State, row};
use crate::tui::draw::Look;
use crate::tui::pictures::words;
use crate::tui::shown::Shown;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let (d, state) = (&app.nav, &app.views.cache);
    let Some(run) = State::run(d) else {
        return words::no_run(area, buf, look);
    };
    let made = state.table(d, run, look.lang);
    words::table(app, &made, row(d, run), state.words.line(d), area, buf, look, shown);
}
