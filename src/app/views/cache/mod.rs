//! What each decoding call finds in the KV cache and adds to it.

mod model;

use crate::app::action::Action;
use crate::app::navigator::Navigator;
use crate::app::views::words::{TableResult, Words};
use crate::app::views::{Context, ViewState};
use crate::session::RunKind;
use crate::text::Lang;

pub use model::row;

/// Its table, and where it is scrolled to.
#[derive(Debug, Default)]
pub struct State {
    /// Scrolling.
    pub words: Words,
}

impl State {
    /// The run it is of: the one looked at, else the first of its kind; `None` where there is none.
    pub fn run(nav: &Navigator) -> Option<usize> {
        nav.run_of_kind(&RunKind::Inference)
    }

    /// The table of a run.
    ///
    /// # Errors
    /// What the scenario lacks for it.
    pub fn table(&self, nav: &Navigator, run: usize, lang: Lang) -> TableResult {
        self.words.table(nav, run, lang, model::table)
    }
}

impl ViewState for State {
    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        self.words.scroll(action, cx.nav, cx.page)
    }
}
