//! One token followed through all steps.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::token::{Row, Rows};
use crate::text::{Align, Msg};
use crate::tui::draw::{Look, follow, put};
use crate::tui::pictures::nothing;
use crate::tui::screen::Shown;

/// Numbers of a row that are written, as far as there is room.
const WRITTEN: usize = 64;
/// Numbers of a row that its norm is of.
const NORMED: usize = 4096;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let height = usize::from(area.height.saturating_sub(1));
    let Some(Rows { token, word, rows, at }) = Rows::around(&app.nav, height) else {
        return nothing(area, buf, "tui.no_token", look);
    };
    let title = Msg::new("tui.token_title").arg("row", token.at + 1).arg("token", word).render(look.lang);
    let style = look.theme.title;
    put(buf, area, (area.x, area.y), &title, area.width, style, look);
    let middle = at.saturating_sub(height / 2);
    let first = follow(middle, at, height.max(1), rows.len());
    for (k, row) in rows.iter().enumerate().skip(first).take(height) {
        let line = Rect { y: area.y + 1 + (k - first) as u16, height: 1, ..area };
        one(app, row, k == at, line, buf, look);
    }
}

/// Step, symbol, norm and numbers of a row.
fn one(app: &App, row: &Row, current: bool, line: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.nav;
    let step = &d.steps.list()[row.step];
    let view = &step.views[row.view];
    let Some(value) = d.trace(view.run).and_then(|t| t.get(view.node)) else {
        return;
    };
    let number = |c: usize| value.get(row.first + c * row.stride);
    let squares = (0..row.len.min(NORMED)).map(|c| number(c).powi(2));
    let norm = squares.sum::<f64>().sqrt();
    let digits = app.ui.settings.digits;
    // Written until the line is full, so that what is cut off can be seen to be.
    let mut text = String::new();
    for c in 0..row.len.min(WRITTEN) {
        if text.chars().count() > usize::from(line.width) {
            break;
        }
        let apart = if c == 0 { " " } else { "  " };
        text.push_str(apart);
        text.push_str(&digits.format(number(c)));
    }
    let style = if current { look.theme.accent } else { look.theme.text };
    let head = format!("{:>4} {}", step.label(), view.symbol);
    let pieces = [
        (look.fit(&head, 18, Align::Left), style),
        (look.fit(&format!("‖{}‖", digits.format(norm)), 12, Align::Right), look.theme.dim),
        (text, style),
    ];
    let mut x = line.x;
    for (text, style) in pieces {
        let left = line.right().saturating_sub(x);
        x += put(buf, line, (x, line.y), &text, left, style, look);
    }
}
