//! What happened.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::tui::draw::Look;
use crate::tui::pictures::nothing;
use crate::tui::screen::Shown;
use crate::tui::widgets::status;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let all = app.ui.messages.all();
    if all.len() == 0 {
        return nothing(area, buf, "tui.no_log", look);
    }
    let text = status::messages(all, area.width, look);
    text.render(area, buf, usize::MAX, None, look);
}
