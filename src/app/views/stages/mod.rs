//! Training next to inference, stage by stage.

mod model;

use crate::app::action::Action;
use crate::app::navigator::Navigator;
use crate::app::views::words::{TableResult, Words};
use crate::app::views::{Context, ViewState};
use crate::text::Lang;

pub use model::table;

/// Its table, and where it is scrolled to.
#[derive(Debug, Default)]
pub struct State {
    /// Scrolling.
    pub words: Words,
}

impl State {
    /// The table.
    ///
    /// # Errors
    /// What the scenario lacks for it.
    pub fn table(&self, nav: &Navigator, lang: Lang) -> TableResult {
        self.words.table(nav, 0, lang, model::table)
    }
}

impl ViewState for State {
    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        self.words.scroll(action, cx.nav, cx.page)
    }
}
