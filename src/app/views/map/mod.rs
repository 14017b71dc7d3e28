//! The map: embeddings, layers and blocks as boxes, the current one lit; Enter goes there.

use crate::app::action::Action;
use crate::app::view::View;
use crate::app::views::{Context, ViewState};

mod model;

pub use model::{Block, BlockKind, Group, Map, crumbs};

/// It has no state of its own.
#[derive(Debug, Default)]
pub struct State;

impl ViewState for State {
    const OF_STEP: bool = true;

    /// Enter opens the step that the map has lit.
    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        let opens = *action == Action::Follow;
        if opens {
            cx.ui.view = View::Step;
        }
        opens
    }
}
