//! The positional encoding.

use crate::app::views::ViewState;

mod model;

pub use model::encoding;

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {}
