//! The map: embeddings, layers and blocks as boxes, the current one lit; Enter goes there.

use crate::app::views::ViewState;

mod model;

pub use model::{Block, BlockKind, Group, Map, crumbs};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const OF_STEP: bool = true;
}
