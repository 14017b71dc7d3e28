//! Two runs side by side.

use crate::app::action::Action;
use crate::app::views::{Hint, ViewState};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const TAKES_KEYS: bool = true;

    fn hints() -> Vec<Hint> {
        vec![
            (vec![Action::Prev, Action::Next], "tui.hint.path"),
            (vec![Action::PrevDiff, Action::NextDiff], "tui.hint.difference"),
            (vec![Action::PrevTerm, Action::NextTerm], "tui.hint.cell"),
            (vec![Action::NextTable], "tui.hint.other"),
            (vec![Action::Follow], "tui.hint.to_step"),
            (vec![Action::Cancel], "tui.hint.close"),
            (vec![Action::Help], "tui.hint.help"),
        ]
    }
}
