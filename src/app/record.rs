//! A session is recorded as commands, and saved as a script that `play` and `--play` run again: what was set, edited, broken at and
//! requested, and where one was then. Walking is kept as the places it led to.

use super::action::{Action, Group};
use super::args::{Place, StepTarget};
use super::messages::Level;
use super::navigator::Navigator;
use super::ui::Ui;
use crate::walkthrough::View;

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

/// The command that leads to where one is.
fn place(nav: &Navigator) -> Vec<Action> {
    let Some(step) = nav.step() else {
        return Vec::new();
    };
    if nav.is_aside() {
        step.views.first().map(|v| go(path_of(nav, v), &[])).into_iter().collect()
    } else {
        vec![Action::Step(StepTarget::Number(step.number.clone()))]
    }
}

/// The command that puts the cursor where it is, where that is not where one arrives.
fn cursor(nav: &Navigator) -> Option<Action> {
    let view = nav.view()?;
    if nav.index().iter().all(|i| *i == 0) || nav.depth() > 0 {
        return None;
    }
    let name = if nav.is_aside() { path_of(nav, view) } else { view.symbol.clone() };
    Some(go(name, nav.index()))
}

fn path_of(nav: &Navigator, view: &View) -> String {
    nav.session.runs[view.run].program.node(view.node).path.to_string()
}

fn go(name: String, index: &[usize]) -> Action {
    Action::Go(Place { name, index: index.to_vec() })
}

/// Where one is, as commands that lead there: to the step and, where an action reads the cursor, to the cell.
pub(super) fn place_commands(nav: &Navigator) -> Vec<Action> {
    let mut commands = place(nav);
    commands.extend(cursor(nav));
    commands
}

/// Brings the record up to date after an action: what failed is taken out, what went somewhere becomes the place.
/// `before` is the length of the record before the action, `here` where one was, `said` the messages until then.
pub(super) fn record(
    ui: &mut Ui,
    nav: &Navigator,
    placed: &mut Vec<Action>,
    before: usize,
    here: &[Action],
    said: u64,
) {
    let new = ui.record.split_off(before);
    let messages = ui.messages.since(said);
    if messages.iter().any(|m| m.level == Level::Error) {
        return;
    }
    for action in new.into_iter().filter(is_kept) {
        if here != placed.as_slice() {
            ui.record.extend_from_slice(here);
        }
        // A run's steps begin at its first one, an edited session goes on where one was.
        *placed = match action {
            Action::Run(_) => place(nav),
            _ => here.to_vec(),
        };
        ui.record.push(action);
    }
}
