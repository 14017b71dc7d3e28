//! What-if in the debugger: edits, ablations, undo and redo, saving. The edited session takes the place of the one
//! before, at the same step.

use std::path::Path;
use std::sync::Arc;

use super::edited::{ablation, describe};
use super::inquire::wrong;
use super::{Navigator, Spot};
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::Text;
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::overlay::PromptKind;
use crate::app::ui::Ui;
use crate::debug::expr::{ExprError, Fault};
use crate::debug::whatif::{self, Command, Edit, EditContext, Report, Slip, WhatIf};
use crate::program::NodeId;
use crate::scenario::diagnostic::Problem;
use crate::scenario::{syntax, write};
use crate::session::{Session, Steps};
use crate::text::{Msg, escape};

/// Most problems that one message tells.
const MAX_PROBLEMS: usize = 3;

impl Navigator {
    /// Does an edit, an ablation, undo, redo or saving.
    pub(super) fn edit(&mut self, action: &Action, ui: &mut Ui, effects: &mut Vec<Effect>) {
        let told = match action {
            Action::Edit(Text(text)) if text.is_empty() => self.edit_list(ui).map(Some),
            Action::Edit(Text(text)) => self.edited(text, Command::edit(text), ui),
            Action::Ablate(Text(text)) => self.edited(text, Command::ablate(text), ui),
            Action::EditCell => {
                let name = self.cell_to_type().unwrap_or_default();
                ui.prompt(PromptKind::Command, &format!("edit {name}"), self);
                Ok(None)
            }
            Action::Undo | Action::Redo => self.undo_or_redo(*action == Action::Undo, ui),
            Action::SaveAs(Text(name)) => self.save(name).map(|effect| {
                self.saved = self.edit_lines();
                effects.push(effect);
                None
            }),
            _ => Ok(None),
        };
        match told {
            Ok(Some(answer)) => ui.answer(answer),
            Ok(None) => {}
            Err(msg) => ui.say(Level::Error, msg),
        }
    }

    /// The cell under the cursor as an edit begins: `Q1[0,1] = `.
    fn cell_to_type(&self) -> Option<String> {
        let view = self.view()?;
        let index: Vec<String> = self.index.iter().map(ToString::to_string).collect();
        // The symbols of sub-steps are no names outside of them.
        let name = if self.depth() > 0 || self.is_aside() {
            let shape = view.cells.of;
            let index = shape.unflat(self.cell()?.1.flat);
            let path = &self.session.runs[view.run].program.node(view.node).path;
            let index: Vec<String> = index[..shape.rank()].iter().map(ToString::to_string).collect();
            format!("{path}[{}]", index.join(","))
        } else if index.is_empty() {
            view.symbol.clone()
        } else {
            format!("{}[{}]", view.symbol, index.join(","))
        };
        Some(format!("{name} = "))
    }

    /// The edits of this session; where another took its place, they begin anew.
    fn what_if(&mut self) -> &mut WhatIf {
        let mine = |w: &WhatIf| Arc::ptr_eq(w.session(), &self.session);
        if !self.what_if.as_ref().is_some_and(mine) {
            self.what_if = Some(WhatIf::new(Arc::clone(&self.session)));
        }
        let session = &self.session;
        self.what_if.get_or_insert_with(|| WhatIf::new(Arc::clone(session)))
    }

    fn edited(&mut self, text: &str, command: Result<Command, Slip>, ui: &mut Ui) -> Result<Option<Answer>, Msg> {
        let command = match command {
            Ok(command) => command,
            Err(slip) => return Ok(slipped(ui, text, slip)),
        };
        let cursor = self.cell().map(|(run, cell)| {
            let shape = self.session.runs[run].program.node(cell.node).shape;
            let index = shape.unflat(cell.flat)[..shape.rank()].to_vec();
            (run, cell.node, index)
        });
        let run = self.step().map_or(0, |s| s.run);
        let (steps, shown) = (Arc::clone(&self.steps), self.step().cloned());
        let here = EditContext {
            run: cursor.as_ref().map_or(run, |c| c.0),
            steps: &steps,
            at: self.at,
            shown: shown.as_ref(),
            cursor: cursor.as_ref().map(|c| (c.1, c.2.as_slice())),
        };
        let resolved = self.what_if().resolve(text, &command, &here);
        let edit = match resolved {
            Ok(edit) => edit,
            Err(slip) => return Ok(slipped(ui, text, slip)),
        };
        let what = describe(&edit);
        if let (Command::Here, Edit::Recorded(edit)) = (&command, &edit) {
            // A replay does not know where the cursor was.
            ui.rename_last(&Action::Ablate(Text(ablation(edit))));
        }
        let applied = self.what_if().apply(edit);
        applied.map_err(|p| self.problems(&p))?;
        self.swap();
        let title = Msg::new("edit.done").arg("what", what);
        let report = self.report(here.run)?;
        Ok(Some(self.told(title, &report, ui.settings.digits)))
    }

    fn undo_or_redo(&mut self, undo: bool, ui: &mut Ui) -> Result<Option<Answer>, Msg> {
        let done = if undo { self.what_if().undo() } else { self.what_if().redo() };
        let done = done.map(|e| e.map(describe));
        let key = match (undo, done.map_err(|p| self.problems(&p))?) {
            (true, None) => "edit.nothing_to_undo",
            (false, None) => "edit.nothing_to_redo",
            (_, Some(what)) => {
                self.swap();
                let key = if undo { "edit.undone" } else { "edit.redone" };
                let left = self.edit_count();
                let msg = Msg::new(key).arg("what", what).arg("left", left);
                ui.say(Level::Done, msg);
                return Ok(None);
            }
        };
        ui.say(Level::Info, Msg::new(key));
        Ok(None)
    }

    /// All edits, and what they came to in the run looked at.
    fn edit_list(&mut self, ui: &Ui) -> Result<Answer, Msg> {
        let run = self.step().map_or(0, |s| s.run);
        let list = self.edit_lines();
        if list.is_empty() {
            return Ok(Answer::new(Msg::new("edit.none")));
        }
        let report = self.report(run)?;
        let title = Msg::new("edit.list").arg("count", list.len());
        let mut answer = Answer::new(title.clone());
        for line in list {
            answer.push(Row::plain(line));
        }
        let told = self.told(title, &report, ui.settings.digits);
        answer.rows.extend(told.rows);
        Ok(answer)
    }

    fn report(&mut self, run: usize) -> Result<Report, Msg> {
        // The run may stand at another place, where an edit brought runs or took some away.
        let run = run.min(self.session.runs.len() - 1);
        let steps = Arc::clone(&self.steps);
        let report = self.what_if().report(run, &steps);
        report.map_err(|e| Msg::new("edit.cannot_run").arg("run", escape(&self.session.runs[run].name)).arg("why", e))
    }

    /// The scenario of what is opened, edits and all, as a file.
    fn save(&mut self, name: &str) -> Result<Effect, Msg> {
        let stem = |s: &Session| crate::app::app::file_stem(&s.scenario.name);
        let name = if name.is_empty() { format!("{}-edited.ron", stem(&self.session)) } else { name.to_owned() };
        let path = Path::new(&name);
        let folder = path.parent().unwrap_or(Path::new(""));
        let scenario = whatif::saved(self.what_if(), folder)?;
        let text = write(&scenario);
        // What could not be opened again is not written.
        let back = syntax::read(&name, &text).map(|back| write(&back));
        if back.as_ref().ok() != Some(&text) {
            return Err(Msg::new("edit.unwritable"));
        }
        Ok(Effect::Write { path: path.to_owned(), bytes: Arc::new(text.into_bytes()), overwrite: false })
    }

    /// Puts the edited session in place of the one before, at the same step and cell.
    fn swap(&mut self) {
        let Some(next) = self.what_if.as_ref().map(|w| Arc::clone(w.session())) else {
            return;
        };
        let before = std::mem::replace(&mut self.session, next);
        self.forget();
        let shared = before.runs.len() == self.session.runs.len()
            && (before.runs.iter().zip(&self.session.runs)).all(|(a, b)| Arc::ptr_eq(&a.program, &b.program));
        if shared {
            return;
        }
        // Runs, steps and tensors may have other numbers now.
        let old = Arc::clone(&self.steps);
        let here = self.spot();
        let run = |r: usize| self.session.run_named(&before.runs[r].name);
        let listed = self.run.map(run);
        self.run = listed.flatten();
        self.steps = self.run.map_or_else(|| Arc::clone(&self.session.steps), |r| self.session.steps_of(r));
        let moved = |spot: &Spot| self.moved(spot, &before, &old);
        let (place, jumps) = (moved(&here), self.jumps.map(moved));
        let marks = self.bookmarks.map(moved);
        (self.jumps, self.bookmarks) = (jumps, marks);
        if self.steps.list().len() != old.list().len() {
            self.folded.clear();
        }
        let place = place.unwrap_or_else(|| Spot {
            update: self.update_opened(),
            run: self.run,
            at: 0,
            inner: Vec::new(),
            aside: None,
            view: 0,
            index: Vec::new(),
        });
        self.restore(&place);
    }

    /// A place of the steps listed before, in those listed now.
    fn moved(&self, spot: &Spot, before: &Session, old: &Steps) -> Option<Spot> {
        let run = match spot.run {
            None => None,
            Some(r) => Some(self.session.run_named(&before.runs.get(r)?.name)?),
        };
        if run != self.run {
            return None;
        }
        let number = old.list().get(spot.at)?.number[0];
        // The same number, else the nearest before it.
        let list = self.steps.list();
        let at = list.partition_point(|s| s.number[0] <= number).checked_sub(1)?;
        let mut aside = None;
        if let Some(node) = spot.aside {
            let of = old.list().get(spot.at)?.run;
            let path = &before.runs[of].program.node(NodeId(node)).path;
            let now = &self.session.runs[list[at].run].program;
            aside = Some(now.find(path)?.0);
        }
        Some(Spot {
            update: spot.update,
            run,
            at,
            inner: spot.inner.clone(),
            aside,
            view: spot.view,
            index: spot.index.clone(),
        })
    }

    fn problems(&self, problems: &[Problem]) -> Msg {
        let one = |p: &Problem| {
            let said = p.msg.render(self.lang);
            // The place of what was just edited is known.
            let at = if p.at.is_empty() || p.at.starts_with("edits[") {
                String::new()
            } else {
                format!("{}: ", escape(&p.at))
            };
            let help = p.help.as_ref().map(|h| format!(" · {}", h.render(self.lang)));
            format!("{at}{said}{}", help.unwrap_or_default())
        };
        let mut said: Vec<String> = problems.iter().take(MAX_PROBLEMS).map(one).collect();
        if problems.len() > MAX_PROBLEMS {
            let more = Msg::new("edit.more_problems").arg("count", problems.len() - MAX_PROBLEMS);
            said.push(more.render(self.lang));
        }
        Msg::new("edit.refused").arg("why", said.join("; "))
    }
}

/// Says what is wrong with a line as with an expression: its column, and the line with carets.
fn slipped(ui: &mut Ui, text: &str, slip: Slip) -> Option<Answer> {
    let start = slip.column - 1;
    let error = ExprError { fault: Fault::Syntax, at: start..start + 1, msg: slip.msg, help: slip.help };
    wrong(ui, text, &error);
    None
}
