//! What keys do in views that have a cursor of their own.

use super::{Debugger, Page};
use crate::app::action::Action;
use crate::app::args::View;
use crate::app::ui::{Focus, Ui};

impl Debugger {
    /// Does an action that the view shown takes for itself; false where it takes it not.
    pub(super) fn panel(&mut self, action: &Action, ui: &mut Ui, page: Page) -> bool {
        let words = match ui.view {
            View::Step => self.step_words().is_some() && ui.focus != Focus::Steps,
            View::Stages => true,
            _ => false,
        };
        words && self.scroll_words(action, page)
    }

    /// Scrolls a table of words.
    fn scroll_words(&mut self, action: &Action, page: Page) -> bool {
        let height = page.rows.max(2) - 1;
        let now = self.scroll.min(page.last_line);
        let to = match action {
            Action::Up => now.saturating_sub(1),
            Action::Down => now + 1,
            Action::PageUp => now.saturating_sub(height),
            Action::PageDown => now + height,
            Action::Top | Action::RowStart => 0,
            Action::Bottom | Action::RowEnd => page.last_line,
            _ => return false,
        };
        self.scroll = to.min(page.last_line);
        true
    }
}
