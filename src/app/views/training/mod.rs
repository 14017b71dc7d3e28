//! Training: losses, gradients, attention and embeddings across updates.

mod state;
mod worker;

use crate::app::action::Action;
use crate::app::views::{Context, Hint, ViewState};

pub use state::{Event, Picture, Scatter, State};

impl ViewState for State {
    const TAKES_KEYS: bool = true;

    fn hints() -> Vec<Hint> {
        vec![
            (vec![Action::Left, Action::Right], "tui.hint.update"),
            (vec![Action::PageUp, Action::PageDown], "tui.hint.ten"),
            (vec![Action::Up, Action::Down], "tui.hint.head"),
            (vec![Action::NextTable], "tui.hint.picture"),
            (vec![Action::Follow], "tui.hint.open"),
            (vec![Action::Play], "tui.hint.play"),
            (vec![Action::Cancel], "tui.hint.leave"),
            (vec![Action::Help], "tui.hint.help"),
        ]
    }

    fn prepare(&mut self, cx: &mut Context<'_>, shown: bool) {
        if shown {
            self.show(cx);
        } else if self.is_busy() {
            self.listen(cx, false);
        }
    }

    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        match action {
            Action::Left | Action::Prev | Action::PrevTerm => self.go(self.at.saturating_sub(1)),
            Action::Right | Action::Next | Action::NextTerm => self.go(self.at + 1),
            Action::PageUp => self.go(self.at.saturating_sub(10)),
            Action::PageDown => self.go(self.at.saturating_add(10)),
            Action::HalfUp => self.go(self.at.saturating_sub(5)),
            Action::HalfDown => self.go(self.at.saturating_add(5)),
            Action::First | Action::RowStart | Action::Top => self.go(0),
            Action::Last | Action::RowEnd | Action::Bottom => self.go(u64::MAX),
            Action::Up | Action::AxisPrev => self.turn_map(false),
            Action::Down | Action::AxisNext => self.turn_map(true),
            Action::NextTable => self.turn_picture(true),
            Action::PrevTable => self.turn_picture(false),
            Action::Follow => self.open(self.at, cx),
            _ => return false,
        }
        true
    }

    /// One update on; false at the last one.
    fn tick(&mut self, _: &mut Context<'_>) -> bool {
        let more = self.at < self.made();
        self.go(self.at + 1);
        more || self.is_training()
    }

    fn is_busy(&self) -> bool {
        State::is_busy(self)
    }

    fn stop(&mut self) -> bool {
        self.end()
    }
}
