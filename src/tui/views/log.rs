//! What happened, newest last, the chosen message marked.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::tui::draw::{Look, follow, put};
use crate::tui::pictures::nothing;
use crate::tui::shown::Shown;
use crate::tui::widgets::paragraph::Wrapped;
use crate::tui::widgets::status;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let all: Vec<_> = app.ui.messages.all().collect();
    if all.is_empty() {
        return nothing(area, buf, "tui.no_log", look);
    }
    let chosen = app.views.log.chosen(all.len());
    // Two cells for the mark of the chosen one.
    let width = area.width.saturating_sub(2);
    let texts: Vec<Wrapped> = all.iter().map(|m| status::messages(std::iter::once(*m), width, look)).collect();
    let before: usize = texts[..chosen].iter().map(Wrapped::height).sum();
    let height = usize::from(area.height);
    shown.page.rows = height.max(1);
    let lines: usize = texts.iter().map(Wrapped::height).sum();
    let last = before + texts[chosen].height().saturating_sub(1);
    let first = follow(lines.saturating_sub(height), last, height, lines).min(before);
    let mut line = 0;
    for (i, text) in texts.iter().enumerate() {
        for row in 0..text.height() {
            if let Some(y) = (line + row).checked_sub(first).filter(|y| *y < height) {
                let place = Rect { y: area.y + y as u16, height: 1, ..area };
                if i == chosen && row == 0 {
                    put(buf, place, (place.x, place.y), look.glyphs.here, 1, look.theme.accent, look);
                }
                let words = Rect { x: place.x + 2, width, ..place };
                text.render(words, buf, row, None, look);
            }
        }
        line += text.height();
    }
}
