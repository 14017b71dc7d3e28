//! Probabilities of one row as bars.

use crate::app::views::ViewState;

mod model;

pub use model::Distribution;

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const OF_STEP: bool = true;
}
