//! The view `cache`: a table of words.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::view::View;
use crate::tui::draw::Look;
use crate::tui::pictures::words;
use crate::tui::screen::Shown;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    words::view(app, View::Cache, area, buf, look, shown);
}
