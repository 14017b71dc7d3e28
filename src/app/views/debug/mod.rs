//! Breakpoints, watches, and the way back.

use crate::app::views::ViewState;

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {}
