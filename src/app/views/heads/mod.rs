//! All heads of a layer next to each other.

use crate::app::views::ViewState;

mod facts;
mod model;

pub use facts::{HeadFacts, Pattern};
pub use model::{Attention, From, heads};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const OF_STEP: bool = true;
}
