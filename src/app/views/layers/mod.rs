//! Norms along the residual stream; the same head in every layer.

use crate::app::views::ViewState;

mod model;

pub use model::{Curve, Stream, heads_across};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {}
