//! One token followed through all steps.

use crate::app::views::ViewState;

mod model;

pub use model::{Row, Rows};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const OF_STEP: bool = true;
}
