//! Two columns: this run and the reference it was compared with, or exact and rounded numbers.

use crate::app::views::ViewState;

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const OF_STEP: bool = true;
}
