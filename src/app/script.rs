//! The commands of a session, as a script that `play` and `--play` run again: what was set, edited, broken at and
//! asked for, and where one was when it was. Walking is kept as the places it led to.

use std::sync::Arc;

use super::action::{Action, Group};
use super::app::App;
use super::args::Text;
use super::effect::Effect;
use super::messages::Level;
use super::navigator::Navigator;
use crate::text::Msg;

/// Whether an action is kept as it is: it changes or asks for something, and is no way of going somewhere.
fn is_kept(action: &Action) -> bool {
    match action {
        Action::Run(_) | Action::Bookmark | Action::Why(_) | Action::WhereTo(_) => true,
        // What is written outside is no part of a session, and would be there already.
        Action::EditCell
        | Action::SaveAs(_)
        | Action::SaveSession(_)
        | Action::Accept
        | Action::Mouse
        | Action::Messages
        | Action::Redraw
        | Action::Suspend
        | Action::Interrupt
        | Action::Quit
        | Action::QuitNow
        // These only go somewhere.
        | Action::Continue
        | Action::ReverseContinue
        | Action::NextFailed
        | Action::PrevFailed
        | Action::NextDiff
        | Action::PrevDiff => false,
        _ => !matches!(action.spec().group, Group::Walk | Group::Move | Group::Why | Group::Find | Group::Export),
    }
}

/// The commands that lead to where one is.
fn place(d: &Navigator) -> Vec<String> {
    let Some(step) = d.step() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    if d.is_aside() {
        let path = step.views.first().map(|v| &d.session.runs[v.run].program.node(v.node).path);
        lines.extend(path.map(|path| format!("go {path}")));
    } else {
        lines.push(format!("step {}", step.label()));
    }
    lines
}

/// The command that puts the cursor where it is, where that is not where one arrives.
fn cursor(d: &Navigator) -> Option<String> {
    let view = d.view()?;
    if d.index().iter().all(|i| *i == 0) || d.depth() > 0 {
        return None;
    }
    let index: Vec<String> = d.index().iter().map(ToString::to_string).collect();
    let name = if d.is_aside() {
        d.session.runs[view.run].program.node(view.node).path.to_string()
    } else {
        view.symbol.clone()
    };
    Some(format!("go {name}[{}]", index.join(",")))
}

impl App {
    /// Brings the record up to date after an action: what failed is taken out, what went somewhere becomes the place.
    /// `before` is the length of the record before the action, `here` where one was, `said` the messages until then.
    pub(super) fn record(&mut self, before: usize, here: &[String], said: u64) {
        let new = self.ui.record.split_off(before);
        let messages = self.ui.messages.since(said);
        if messages.iter().any(|m| m.level == Level::Error) {
            return;
        }
        for line in new {
            let Ok(action) = Action::parse(&line) else {
                continue;
            };
            if is_kept(&action) {
                if here != self.placed.as_slice() {
                    self.ui.record.extend_from_slice(here);
                }
                self.ui.record.push(line);
                // A run's steps begin at its first one, an edited session goes on where one was.
                self.placed = match action {
                    Action::Run(_) => place(&self.nav),
                    _ => here.to_vec(),
                };
            }
        }
    }

    /// Where one is, as commands that lead there: to the step and, where an action reads the cursor, to the cell.
    pub(super) fn place_lines(&self) -> Vec<String> {
        let mut lines = place(&self.nav);
        lines.extend(cursor(&self.nav));
        lines
    }

    /// The record as a file of commands that ends where one is.
    pub(super) fn session_script(&self, name: &str) -> Result<Effect, Msg> {
        let file = if name.is_empty() { format!("{}.commands", self.ui.export_stem) } else { name.to_owned() };
        let scenario = &self.nav.session.scenario.name;
        let scenario = scenario.replace(['\n', '\r'], " ");
        let mut text = format!("# {scenario}\n");
        let here = self.place_lines();
        let end = if here == self.placed { &[][..] } else { &here };
        // The command that asks for this is the last one, and no part of it.
        let kept = |l: &&String| !l.starts_with(Action::SaveSession(Text::default()).name());
        for line in self.ui.record.iter().filter(kept).chain(end) {
            if line.contains(['\n', '\r']) {
                return Err(Msg::new("tui.said.not_a_line"));
            }
            text.push_str(line);
            text.push('\n');
        }
        Ok(Effect::Write { path: file.into(), bytes: Arc::new(text.into_bytes()), overwrite: false })
    }
}
