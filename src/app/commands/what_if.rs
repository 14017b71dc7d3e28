//! `edit`, `ablate`, `undo`, `redo`, `save`.

use std::path::Path;

use crate::app::action::Action;
use crate::app::answer::Answer;
use crate::app::app::{App, file_stem};
use crate::app::args::{Change, FileName, Sentence};
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::app::overlay::PromptKind;
use crate::app::ui::Ui;
use crate::app::what_if::Edits;
use crate::debug::expr::{ExprError, Fault};
use crate::debug::whatif::{self, Command, Edit, EditContext, Report, Slip};
use crate::report::Line;
use crate::report::what_if::{ablation, describe, lines};
use crate::scenario::diagnostic::Problem;
use crate::scenario::{patched, syntax, write};
use crate::text::{Lang, Msg, escape};

/// Most problems that one message lists.
const MAX_PROBLEMS: usize = 3;

/// `edit [CHANGE]`: without one, all edits and what they came to in the run looked at.
pub fn edit(app: &mut App, Change(text): &Change) {
    if text.is_empty() { list(app) } else { apply(app, text, Command::edit(text)) }
}

/// `input [TEXT]`: another text is read; without one, says what is read now.
pub fn input(app: &mut App, Sentence(text): &Sentence) {
    if text.is_empty() {
        let read = app.nav.session.text_of(app.nav.run_here());
        return app.ui.say(Level::Info, Msg::new("edit.reads").arg("text", escape(&read)));
    }
    apply(app, text, Ok(Command::Input(whatif::unquoted(text).to_owned())));
}

/// `ablate [WHAT]`.
pub fn ablate(app: &mut App, Change(text): &Change) {
    apply(app, text, Command::ablate(text));
}

/// `edit-cell`: the command line, with the cell under the cursor in it.
pub fn begin_edit(app: &mut App) {
    let name = cell_to_type(&app.nav).unwrap_or_default();
    app.ui.prompt(PromptKind::Command, &format!("edit {name}"), &app.nav);
}

/// `undo`.
pub fn undo(app: &mut App) {
    undo_or_redo(app, true);
}

/// `redo`.
pub fn redo(app: &mut App) {
    undo_or_redo(app, false);
}

/// `flip`: between the numbers before the edits and those with them.
pub fn flip(app: &mut App) {
    let App { nav, ui, edits, .. } = app;
    let Some(other) = edits.other(nav) else { return ui.say(Level::Info, Msg::new("edit.nothing_to_flip")) };
    nav.replace_session(other);
    let key = if edits.is_flipped(nav) { "edit.flipped" } else { "edit.flipped_back" };
    ui.say(Level::Info, Msg::new(key));
}

/// `save [FILE]`: the scenario that is opened, edits and all.
pub fn save(app: &mut App, FileName(name): &FileName) {
    match scenario(&mut app.edits, &app.nav, name) {
        Ok(effect) => {
            app.edits.saved_now(&app.nav);
            app.ui.effects.push(effect);
        }
        Err(msg) => app.ui.say(Level::Error, msg),
    }
}

/// The cell under the cursor as an edit begins: `Q1[0,1] = `.
fn cell_to_type(nav: &Navigator) -> Option<String> {
    let view = nav.view()?;
    let index: Vec<String> = nav.index().iter().map(ToString::to_string).collect();
    // The symbols of sub-steps are no names outside of them.
    let name = if nav.depth() > 0 || nav.is_aside() {
        let shape = view.cells.of;
        let index = shape.unflat(nav.cell()?.1.flat);
        let path = &nav.session.runs[view.run].program.node(view.node).path;
        let index: Vec<String> = index[..shape.rank()].iter().map(ToString::to_string).collect();
        format!("{path}[{}]", index.join(","))
    } else if index.is_empty() {
        view.symbol.clone()
    } else {
        format!("{}[{}]", view.symbol, index.join(","))
    };
    Some(format!("{name} = "))
}

fn apply(app: &mut App, text: &str, command: Result<Command, Slip>) {
    unflip(app);
    let App { nav, ui, edits, .. } = app;
    let command = match command {
        Ok(command) => command,
        Err(slip) => return slipped(ui, text, slip),
    };
    let cursor = nav.cell().map(|(run, cell)| {
        let shape = nav.session.runs[run].program.node(cell.node).shape;
        let index = shape.unflat(cell.flat)[..shape.rank()].to_vec();
        (run, cell.node, index)
    });
    let here = EditContext {
        run: cursor.as_ref().map_or(nav.run_here(), |c| c.0),
        steps: &nav.steps,
        at: nav.position(),
        shown: nav.step(),
        cursor: cursor.as_ref().map(|c| (c.1, c.2.as_slice())),
    };
    let run = here.run;
    let edit = match edits.what_if(&nav.session).resolve(text, &command, &here) {
        Ok(edit) => edit,
        Err(slip) => return slipped(ui, text, slip),
    };
    let what = describe(&edit);
    if let (Command::Here, Edit::Recorded(edit)) = (&command, &edit) {
        // A replay does not know where the cursor was.
        ui.rename_last(Action::Ablate(Change(ablation(edit))));
    }
    if let Err(problems) = edits.what_if(&nav.session).apply(edit) {
        return ui.say(Level::Error, refused(&problems, ui.settings.lang));
    }
    swap(edits, nav);
    // Begun, where it goes on in a thread; most end at once.
    let _ = nav.session.trace(run.min(nav.session.runs.len() - 1));
    if nav.session.going().is_some() {
        return ui.say(Level::Done, Msg::new("edit.going").arg("what", what));
    }
    let title = Msg::new("edit.done").arg("what", &what);
    match report(edits, nav, run) {
        Ok(report) => {
            let logged = Msg::new("edit.logged").arg("what", what).arg("changed", report.changed.len());
            ui.messages.note(Level::Done, logged, nav.state());
            ui.answer(Answer::of(
                title,
                lines(&nav.session, &nav.steps, &report, ui.settings.digits, ui.settings.lang),
            ));
        }
        Err(msg) => ui.say(Level::Error, msg),
    }
}

/// Shows the edits again where what is shown is without them: they are about to change.
fn unflip(app: &mut App) {
    let App { nav, edits, .. } = app;
    if edits.is_flipped(nav)
        && let Some(edited) = edits.other(nav)
    {
        nav.replace_session(edited);
    }
}

fn undo_or_redo(app: &mut App, undo: bool) {
    unflip(app);
    let App { nav, ui, edits, .. } = app;
    let what_if = edits.what_if(&nav.session);
    let done = if undo { what_if.undo() } else { what_if.redo() };
    let msg = match (undo, done.map(|e| e.map(describe))) {
        (_, Err(problems)) => return ui.say(Level::Error, refused(&problems, ui.settings.lang)),
        (true, Ok(None)) => Msg::new("edit.nothing_to_undo"),
        (false, Ok(None)) => Msg::new("edit.nothing_to_redo"),
        (_, Ok(Some(what))) => {
            swap(edits, nav);
            if undo {
                nav.session.give_back();
            }
            let key = if undo { "edit.undone" } else { "edit.redone" };
            let msg = Msg::new(key).arg("what", what).arg("left", edits.count(nav));
            return ui.say(Level::Done, msg);
        }
    };
    ui.say(Level::Info, msg);
}

fn list(app: &mut App) {
    let App { nav, ui, edits, .. } = app;
    let made = edits.lines(nav);
    if made.is_empty() {
        return ui.answer(Answer::new(Msg::new("edit.none")));
    }
    match report(edits, nav, nav.run_here()) {
        Ok(report) => {
            let title = Msg::new("edit.list").arg("count", made.len());
            let changed = lines(&nav.session, &nav.steps, &report, ui.settings.digits, ui.settings.lang);
            ui.answer(Answer::of(title, made.into_iter().map(Line::plain).chain(changed)));
        }
        Err(msg) => ui.say(Level::Error, msg),
    }
}

fn swap(edits: &Edits, nav: &mut Navigator) {
    if let Some(next) = edits.session() {
        nav.replace_session(next);
    }
}

fn report(edits: &mut Edits, nav: &Navigator, run: usize) -> Result<Report, Msg> {
    // The run may have another number, where an edit brought runs or took some away.
    let run = run.min(nav.session.runs.len() - 1);
    let report = edits.what_if(&nav.session).report(run, &nav.steps);
    report.map_err(|e| Msg::new("edit.cannot_run").arg("run", escape(&nav.session.runs[run].name)).arg("why", e))
}

fn scenario(edits: &mut Edits, nav: &Navigator, name: &str) -> Result<Effect, Msg> {
    let stem = file_stem(&nav.session.scenario.name);
    let name = if name.is_empty() { format!("{stem}-edited.ron") } else { name.to_owned() };
    let path = Path::new(&name);
    let folder = path.parent().unwrap_or(Path::new(""));
    let what_if = edits.what_if(&nav.session);
    let saved = whatif::saved(what_if, folder)?;
    let base = what_if.base();
    let text = match &base.text {
        Some(text) => patched(text, &saved),
        None => write(&saved),
    };
    // What could not be opened again is not written.
    if syntax::read(&name, &text).is_err() {
        return Err(Msg::new("edit.unwritable"));
    }
    Ok(Effect::write(path, text))
}

fn refused(problems: &[Problem], lang: Lang) -> Msg {
    let one = |p: &Problem| {
        let said = p.msg.render(lang);
        // The place of what was just edited is known.
        let at =
            if p.at.is_empty() || p.at.starts_with("edits[") { String::new() } else { format!("{}: ", escape(&p.at)) };
        let help = p.help.as_ref().map(|h| format!(" · {}", h.render(lang)));
        format!("{at}{said}{}", help.unwrap_or_default())
    };
    let mut said: Vec<String> = problems.iter().take(MAX_PROBLEMS).map(one).collect();
    if problems.len() > MAX_PROBLEMS {
        let more = Msg::new("edit.more_problems").arg("count", problems.len() - MAX_PROBLEMS);
        said.push(more.render(lang));
    }
    Msg::new("edit.refused").arg("why", said.join("; "))
}

/// Says what is wrong with a line as with an expression: its column, and the line with carets.
fn slipped(ui: &mut Ui, text: &str, slip: Slip) {
    let start = slip.column - 1;
    let error = ExprError { fault: Fault::Syntax, at: start..start + 1, msg: slip.msg, help: slip.help };
    ui.wrong(text, &error);
}
