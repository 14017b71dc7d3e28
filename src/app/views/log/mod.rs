//! What happened, newest last; Enter goes to where it happened.

use crate::app::action::Action;
use crate::app::view::View;
use crate::app::views::{Context, Hint, ViewState};

/// Which message is chosen, counted back from the newest.
#[derive(Debug, Default)]
pub struct State {
    back: usize,
}

impl State {
    /// Position of the chosen message among `len`.
    pub fn chosen(&self, len: usize) -> usize {
        len.saturating_sub(1).saturating_sub(self.back)
    }
}

impl ViewState for State {
    const TAKES_KEYS: bool = true;

    fn hints() -> Vec<Hint> {
        vec![
            (vec![Action::Up, Action::Down], "tui.hint.choose"),
            (vec![Action::Follow], "tui.hint.go"),
            (vec![Action::Cancel], "tui.hint.close"),
            (vec![Action::Help], "tui.hint.help"),
        ]
    }

    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        let len = cx.ui.messages.all().len();
        let page = cx.page.rows.max(1);
        let back = self.back.min(len.saturating_sub(1));
        self.back = match action {
            Action::Up => back + 1,
            Action::Down => back.saturating_sub(1),
            Action::PageUp => back + page,
            Action::PageDown => back.saturating_sub(page),
            Action::HalfUp => back + page.div_ceil(2),
            Action::HalfDown => back.saturating_sub(page.div_ceil(2)),
            Action::Top | Action::RowStart => len,
            Action::Bottom | Action::RowEnd => 0,
            Action::Follow => {
                if let Some(place) = cx.ui.messages.all().nth(self.chosen(len)).and_then(|m| m.place.clone()) {
                    cx.nav.leave();
                    cx.nav.restore(&place);
                    cx.ui.view = View::Step;
                }
                return true;
            }
            _ => return false,
        }
        .min(len.saturating_sub(1));
        true
    }
}
