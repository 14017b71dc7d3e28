//! Training: losses, gradients, attention and embeddings across updates.

use crate::app::action::Action;
use crate::app::views::{Hint, ViewState};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

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
}
