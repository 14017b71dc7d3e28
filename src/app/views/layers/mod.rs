//! The residual stream, stage by stage and token by token; the heads of all layers.

use crate::app::views::ViewState;

mod model;

pub use model::{Stage, Stream, all_heads};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {}
