//! Tables of words: what the runs did, stage by stage.

use std::sync::Arc;

use super::Debugger;
use crate::export::document::COMPARISON;
use crate::session::{Table, stages};
use crate::text::{Lang, Msg};

/// A table of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Words {
    /// Training beside inference.
    Stages,
}

/// A table, or why there is none.
pub type Made = Result<Arc<Table>, Msg>;

impl Debugger {
    /// A table of words, made when it is first asked for.
    ///
    /// # Errors
    /// What the scenario lacks for it, or why a run cannot run.
    pub fn words(&self, which: Words, lang: Lang) -> Made {
        if let Some(made) = self.words.borrow().get(&(which, lang)) {
            return made.clone();
        }
        let made = match which {
            Words::Stages => self.stage_table(lang),
        }
        .map(Arc::new);
        self.words.borrow_mut().insert((which, lang), made.clone());
        made
    }

    /// The table of the step looked at, where it is one of words: it has no tensors then.
    pub fn step_words(&self) -> Option<Words> {
        let step = self.step()?;
        (step.views.is_empty() && step.phase == COMPARISON).then_some(Words::Stages)
    }

    fn stage_table(&self, lang: Lang) -> Result<Table, Msg> {
        match stages(&self.session, lang) {
            Ok(Some(table)) => Ok(table),
            Ok(None) => Err(Msg::new("stages.none")),
            Err(e) => Err(Msg::new("cli.cannot_run").arg("why", e)),
        }
    }
}
