//! All heads of a layer next to each other.

use crate::app::views::ViewState;

mod model;

pub use model::{Attention, From, facts, heads, tables_of};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const OF_STEP: bool = true;
}
