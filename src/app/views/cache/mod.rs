//! What each decoding call finds in the KV cache and adds to it.

use crate::app::views::ViewState;

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {}
