//! What keys do in views that have a cursor of their own, and what these views need before they are drawn.

use super::{Navigator, Page};
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::app::ui::{Focus, Ui};
use crate::app::view::View;

impl Navigator {
    /// Does an action that the view shown takes for itself; false where it takes it not.
    pub(super) fn panel(&mut self, action: &Action, ui: &mut Ui, page: Page, effects: &mut Vec<Effect>) -> bool {
        if *action == Action::Back && self.update.is_some() {
            return self.back_from_update(ui);
        }
        match ui.view {
            View::Step if ui.focus != Focus::Steps => {
                self.words_of(View::Step).is_some() && self.scroll_words(action, page)
            }
            View::Stages | View::Teacher | View::Cache => self.scroll_words(action, page),
            View::Training => self.in_training(action, ui),
            View::Side => {
                let page = (page.rows.max(1) as i64, page.cols.max(1) as i64);
                self.in_side(action, ui, page, effects)
            }
            _ => false,
        }
    }

    /// Makes what the view shown shows.
    pub fn prepare(&mut self, ui: &mut Ui) {
        match ui.view {
            View::Training => self.show_training(ui),
            View::Side => self.show_side(),
            _ if self.training.is_busy() => self.hear(ui, false),
            _ => {}
        }
    }

    /// One step on while playing; false at the end.
    pub fn play_on(&mut self, ui: &Ui) -> bool {
        match ui.view {
            View::Training => self.play_training(),
            _ => self.go_by(1),
        }
    }

    /// Out of an opened update one is back at the pictures of the training.
    fn back_from_update(&mut self, ui: &mut Ui) -> bool {
        let here = self.spot();
        let Some(spot) = self.jumps.back(here) else {
            return false;
        };
        self.restore(&spot);
        if self.update.is_none() {
            ui.view = View::Training;
        }
        true
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
            Action::HalfUp => now.saturating_sub(height.div_ceil(2)),
            Action::HalfDown => now + height.div_ceil(2),
            Action::Top | Action::RowStart => 0,
            Action::Bottom | Action::RowEnd => page.last_line,
            _ => return false,
        };
        self.scroll = to.min(page.last_line);
        true
    }
}
