//! The one place where effects are executed. The screen, `play`, `--play FILE` and `snapshot -e` run commands through
//! it and differ only in their [`Front`]: where copied text goes, whether questions can be put, what there is to redraw.

use std::sync::Arc;

use super::action::{Action, Group};
use super::answer::{Answer, Row};
use super::app::App;
use super::commands::compare;
use super::effect::{Effect, Found, Report};
use super::keymap::Keymap;
use super::messages::{Level, Message};
use super::overlay::Overlay;
use crate::export::file;
use crate::text::{Lang, Msg, escape};

/// What one front has and another has not.
pub trait Front {
    /// Takes copied text; gives what is said of it, nothing where the text itself is printed.
    ///
    /// # Errors
    /// Why it cannot.
    fn copy(&mut self, text: &str, done: Msg) -> Result<Option<Msg>, Msg>;

    /// Captures the mouse, or leaves it to the terminal.
    ///
    /// # Errors
    /// Why it cannot.
    fn mouse(&mut self, on: bool) -> Result<(), Msg>;

    /// Stops as the shell's Ctrl-Z does (`suspend`), or draws everything anew.
    ///
    /// # Errors
    /// Why it cannot.
    fn screen(&mut self, suspend: bool) -> Result<(), Msg>;
}

/// What became of a command.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was said.
    pub messages: Vec<Message>,
    /// What was found.
    pub answers: Vec<Answer>,
    /// Whether one is elsewhere now.
    pub moved: bool,
    /// Whether to leave.
    pub quit: bool,
}

impl Outcome {
    /// What could not be done, if anything.
    pub fn error(&self) -> Option<&Msg> {
        self.messages.iter().find(|m| m.level == Level::Error).map(|m| &m.text)
    }
}

/// Executes effects in order and reports in `app` what became of each; true where it is to be left.
pub fn execute(app: &mut App, effects: Vec<Effect>, front: &mut dyn Front) -> bool {
    let mut quit = false;
    for effect in effects {
        match effect {
            Effect::Quit => quit = true,
            Effect::Open(line) => {
                let said = app.ui.messages.said();
                app.open_source(line.as_deref());
                app.ui.messages.happened_at(said, &app.nav.state());
            }
            effect => {
                let session = Arc::clone(&app.nav.session);
                let _patient = session.going().is_none().then(|| session.patiently());
                let report = one(app, effect, front);
                take(app, report);
            }
        }
    }
    quit
}

fn one(app: &App, effect: Effect, front: &mut dyn Front) -> Report {
    let silent = |done: Result<(), Msg>| done.map_or_else(Report::Failed, |()| Report::Silent);
    match effect {
        Effect::Quit | Effect::Open(_) => Report::Silent,
        Effect::Suspend => silent(front.screen(true)),
        Effect::Redraw => silent(front.screen(false)),
        Effect::Mouse(on) => silent(front.mouse(on)),
        Effect::Copy { text, done } => match front.copy(&text, done) {
            Ok(Some(done)) => Report::Done(done),
            Ok(None) => Report::Silent,
            Err(why) => Report::Failed(why),
        },
        Effect::Write { path, bytes, overwrite } => {
            match file::write_file(&path, overwrite, |out| out.write_all(&bytes)) {
                Ok(()) => {
                    let shown = path.to_string_lossy();
                    let done = Msg::new("tui.said.written").arg("path", escape(&shown)).arg("bytes", bytes.len());
                    Report::Done(done)
                }
                Err(error) if error.msg.key == "export.file.exists" && !overwrite => {
                    Report::Exists { why: error.msg, again: Effect::Write { path, bytes, overwrite: true } }
                }
                Err(error) => Report::Failed(error.msg),
            }
        }
        Effect::Reference(wanted) => wanted.read(&app.nav.session),
        Effect::Record { path, what, overwrite } => what.write(path, overwrite),
    }
}

fn take(app: &mut App, report: Report) {
    let said = app.ui.messages.said();
    match report {
        Report::Reference(found) => {
            let Found { reference, run, options } = *found;
            compare::compare_with(app, reference, run, &options);
            app.settle();
        }
        // No question can be put.
        Report::Exists { why, .. } if !app.ui.interactive => app.ui.report(Report::Failed(why)),
        report => app.ui.report(report),
    }
    app.ui.messages.happened_at(said, &app.nav.state());
}

impl App {
    /// Runs a command to its end and gives what became of it, as a script wants it: nothing is left open over the
    /// screen, and there is always something to print.
    pub fn run(&mut self, action: &Action, front: &mut dyn Front) -> Outcome {
        let before = self.nav.state();
        let said = self.ui.messages.said();
        self.ui.answers.clear();
        let mut outcome = Outcome::default();
        let effects = self.act(action.clone());
        // What is copied, and leaving, show by themselves.
        let shown = effects.iter().any(|e| matches!(e, Effect::Copy { .. } | Effect::Quit));
        outcome.quit = execute(self, effects, front);
        outcome.answers = std::mem::take(&mut self.ui.answers);
        outcome.moved = self.nav.state() != before;
        if let Some(answer) = self.opened() {
            outcome.answers.push(answer);
        }
        self.ui.overlays.clear();
        outcome.messages = self.ui.messages.since(said);
        if !shown && outcome.messages.is_empty() && outcome.answers.is_empty() && !outcome.moved {
            let goes = matches!(action.spec().group, Group::Walk | Group::Move | Group::Why | Group::Find);
            let msg = match action {
                // The place is printed, though it is the same.
                _ if goes && !matches!(action, Action::Toggle | Action::FoldAll | Action::UnfoldAll | Action::Play) => {
                    outcome.moved = true;
                    return outcome;
                }
                Action::View(_) | Action::NextView | Action::PrevView => {
                    Msg::new("play.view").arg("view", self.ui.view.name())
                }
                _ => Msg::new("play.on_screen").arg("command", escape(&action.line())),
            };
            outcome.messages.push(Message::new(Level::Info, msg));
        }
        outcome
    }

    /// What a command opened over the screen, as an answer.
    fn opened(&self) -> Option<Answer> {
        match self.ui.overlays.last()? {
            Overlay::Help { .. } => Some(help(&self.ui.keymap, self.ui.settings.lang)),
            Overlay::Messages { .. } => {
                let rows = self.ui.messages.all().map(|m| Row::new(m.text.clone()).level(m.level));
                Some(Answer { title: Msg::new("tui.messages.title"), rows: rows.collect() })
            }
            Overlay::Palette(_) | Overlay::Prompt(_) | Overlay::Export(_) => {
                Some(Answer::new(Msg::new("play.needs_argument")))
            }
            _ => None,
        }
    }
}

/// All commands with their arguments and keys, by group.
fn help(keymap: &Keymap, lang: Lang) -> Answer {
    let mut answer = Answer::new(Msg::new("tui.help.title"));
    for &group in Group::ALL {
        answer.push(Row::new(Msg::new(group.key())));
        for spec in super::action::SPECS.iter().filter(|s| s.group == group) {
            let keys = keymap.bindings().iter().filter(|b| b.action.line() == spec.name);
            let mut keys: Vec<String> = keys.map(|b| b.keys.label(false)).collect();
            keys.dedup();
            keys.truncate(2);
            let usage = if spec.usage.is_empty() { String::new() } else { format!(" {}", spec.usage) };
            let about = crate::text::tr(lang, spec.key);
            let keys = if keys.is_empty() { String::new() } else { format!("  [{}]", keys.join(" ")) };
            answer.push(Row::plain(format!("  {}{usage}: {about}{keys}", spec.name)));
        }
    }
    answer
}
