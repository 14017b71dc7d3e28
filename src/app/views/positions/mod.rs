//! The positional encoding: its table, how alike positions are, and the angles of rotary positions.

use crate::app::action::Action;
use crate::app::views::{Context, Hint, ViewState};

mod model;

pub use model::Encoding;

/// The position that is pointed out.
#[derive(Debug, Default)]
pub struct State {
    /// Its number; kept inside the table where it is shown.
    pub at: usize,
}

impl ViewState for State {
    const TAKES_KEYS: bool = true;

    fn hints() -> Vec<Hint> {
        vec![
            (vec![Action::Up, Action::Down], "tui.hint.position"),
            (vec![Action::Next], "tui.hint.step"),
            (vec![Action::Help], "tui.hint.help"),
        ]
    }

    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        let Some(encoding) = Encoding::of(cx.nav) else { return false };
        let last = encoding.table.plane.rows.saturating_sub(1);
        let (at, page) = (self.at.min(last), cx.page.rows.max(1));
        let to = match action {
            Action::Up | Action::Left => at.saturating_sub(1),
            Action::Down | Action::Right => at + 1,
            Action::PageUp => at.saturating_sub(page),
            Action::PageDown => at + page,
            Action::HalfUp => at.saturating_sub(page.div_ceil(2)),
            Action::HalfDown => at + page.div_ceil(2),
            Action::Top | Action::RowStart => 0,
            Action::Bottom | Action::RowEnd => last,
            _ => return false,
        };
        self.at = to.min(last);
        true
    }
}
