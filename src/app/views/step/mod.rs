//! The step: formula, operands, results, derivation, note and facts; a table of words where the step compares runs.

mod facts;
mod stage;

use crate::app::action::Action;
use crate::app::navigator::Navigator;
use crate::app::ui::Focus;
use crate::app::views::words::{TableResult, Words};
use crate::app::views::{Context, ViewState, stages};
use crate::export::document::COMPARISON;
use crate::text::Lang;

pub use facts::{Facts, facts};
pub use stage::StageModel;

/// Where the table of a step that compares runs is scrolled to.
#[derive(Debug, Default)]
pub struct State {
    /// Scrolling.
    pub words: Words,
}

impl State {
    /// Whether the step compares runs in words and has no tensors.
    pub fn is_words(nav: &Navigator) -> bool {
        nav.step().is_some_and(|s| s.views.is_empty() && s.phase == COMPARISON)
    }

    /// Its table then.
    ///
    /// # Errors
    /// What the scenario lacks for it.
    pub fn table(&self, nav: &Navigator, lang: Lang) -> TableResult {
        self.words.table(nav, 0, lang, stages::table)
    }
}

impl ViewState for State {
    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        cx.ui.focus != Focus::Steps && Self::is_words(cx.nav) && self.words.scroll(action, cx.nav, cx.page)
    }
}
