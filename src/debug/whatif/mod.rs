//! What-if: edits of an opened scenario, one after another, with undo and redo. The edited session shares with the
//! one it came from everything that the edits do not touch.

mod command;
mod report;
mod resolve;
mod save;
mod tokens;

use std::sync::Arc;

use crate::scenario::diagnostic::Problem;
use crate::scenario::{self, edit};
use crate::session::Session;
use crate::text::Msg;

pub use command::{Change, Command, Operation, Slip, unquoted};
pub use report::{Before, Changed, Changes, Prediction, Report, predictions, step_changed};
pub use resolve::EditContext;
pub use save::saved;
pub use tokens::TokenPlace;

/// One thing that is edited.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Recorded values: a cell, a head, a layer, a position.
    Recorded(edit::Edit),
    /// A token.
    Token {
        /// Which.
        place: TokenPlace,
        /// Its new id.
        id: i64,
    },
    /// Another text that is read.
    Input(String),
    /// A setting of the scenario.
    Setting {
        /// Its path, such as `model.norm.eps`.
        field: String,
        /// Its value, as a scenario writes it.
        value: String,
    },
}

/// An opened scenario and its edits.
#[derive(Debug)]
pub struct WhatIf {
    base: Arc<Session>,
    current: Arc<Session>,
    done: Vec<Edit>,
    undone: Vec<Edit>,
}

impl WhatIf {
    /// No edits yet.
    pub fn new(session: Arc<Session>) -> Self {
        Self { base: Arc::clone(&session), current: session, done: Vec::new(), undone: Vec::new() }
    }

    /// The session without the edits.
    pub fn base(&self) -> &Arc<Session> {
        &self.base
    }

    /// The session with the edits.
    pub fn session(&self) -> &Arc<Session> {
        &self.current
    }

    /// The edits that hold, in order.
    pub fn edits(&self) -> &[Edit] {
        &self.done
    }

    /// The edits that were undone, the next to be redone last.
    pub fn undone(&self) -> &[Edit] {
        &self.undone
    }

    /// Edits; what depends on it is computed again in the runs that were looked at. Undone edits are forgotten.
    ///
    /// # Errors
    /// What is wrong with the edit, alone or with those before it. Nothing has changed then.
    pub fn apply(&mut self, edit: Edit) -> Result<(), Vec<Problem>> {
        let mut done = self.done.clone();
        done.push(edit);
        self.rebuild(done)?;
        self.undone.clear();
        Ok(())
    }

    /// Takes the last edit back; `None` where there is none.
    ///
    /// # Errors
    /// Where what is left cannot run; nothing has changed then.
    pub fn undo(&mut self) -> Result<Option<&Edit>, Vec<Problem>> {
        let mut done = self.done.clone();
        let Some(last) = done.pop() else {
            return Ok(None);
        };
        self.rebuild(done)?;
        self.undone.push(last);
        Ok(self.undone.last())
    }

    /// Makes the edit again that was taken back last; `None` where there is none.
    ///
    /// # Errors
    /// As [`WhatIf::apply`].
    pub fn redo(&mut self) -> Result<Option<&Edit>, Vec<Problem>> {
        let Some(edit) = self.undone.last().cloned() else {
            return Ok(None);
        };
        let mut done = self.done.clone();
        done.push(edit);
        self.rebuild(done)?;
        self.undone.pop();
        Ok(self.done.last())
    }

    fn rebuild(&mut self, done: Vec<Edit>) -> Result<(), Vec<Problem>> {
        let next = if done.is_empty() {
            Arc::clone(&self.base)
        } else {
            let mut scenario = self.base.scenario.clone();
            for edit in &done {
                self.edit(&mut scenario, edit).map_err(|p| vec![p])?;
            }
            Arc::new(self.base.edited(&scenario)?)
        };
        if !next.carry_in_background(&self.current)
            && let Err((run, why)) = next.carry(&self.current)
        {
            let msg = Msg::new("edit.cannot_run").arg("run", crate::text::escape(&next.runs[run].name)).arg("why", why);
            return Err(vec![Problem::new("", msg)]);
        }
        self.current = next;
        self.done = done;
        Ok(())
    }

    fn edit(&self, scenario: &mut scenario::Scenario, edit: &Edit) -> Result<(), Problem> {
        match edit {
            Edit::Recorded(edit) => {
                scenario.edits.push(edit.clone());
                Ok(())
            }
            Edit::Token { place, id } => {
                let words = self.base.words(place.side);
                tokens::put(scenario, place, *id, words)
            }
            Edit::Input(text) => {
                let read = self.base.with_text(scenario, text);
                *scenario = read.map_err(|msg| Problem::new("input", msg))?;
                Ok(())
            }
            Edit::Setting { field, value } => {
                *scenario = scenario::set(scenario, field, value)?;
                Ok(())
            }
        }
    }
}
