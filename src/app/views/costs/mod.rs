//! Shapes and cost of every op of the run.

use crate::app::views::ViewState;

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const OF_STEP: bool = true;
}
