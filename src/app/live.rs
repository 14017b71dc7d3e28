//! The source that is open: opened again where its files changed on disk, or another one in its place. What could be
//! opened last stays while what is on disk has an error.

use std::path::PathBuf;
use std::sync::Arc;

use super::answer::{Answer, Row};
use super::app::App;
use super::checks::Checks;
use super::messages::Level;
use super::navigator::Navigator;
use super::overlay::Overlay;
use super::views::Views;
use super::what_if::Edits;
use crate::debug::breaks::Breaks;
use crate::session::Session;
use crate::text::Msg;

/// What an [`Opener`] opened.
#[derive(Debug)]
pub struct Opened {
    /// The session.
    pub session: Session,
    /// What it is called in messages.
    pub name: String,
    /// What was assumed on the way.
    pub notes: Vec<Msg>,
}

/// Opens sources; how is known where the program was started.
pub trait Opener {
    /// Opens what `line` names (a source and its inputs, as on the command line), or without a line the source that is
    /// open.
    ///
    /// # Errors
    /// What is wrong with it, a line each: what and where first.
    fn open(&mut self, line: Option<&str>) -> Result<Opened, Vec<String>>;
}

/// The source that is open.
#[derive(Default)]
pub struct Live {
    /// Opens it again; nothing where the session has no source.
    pub opener: Option<Box<dyn Opener>>,
    /// Whether it is opened again by itself when its files change.
    pub watch: bool,
    /// What is wrong with what is on disk, where what is shown is from before.
    pub broken: Option<String>,
}

impl Live {
    /// The files that are watched; none where nothing is.
    pub fn files(&self, session: &Session) -> Vec<PathBuf> {
        if self.watch && self.opener.is_some() { session.files() } else { Vec::new() }
    }
}

/// Title of the list of what is wrong with a source.
const BROKEN: &str = "live.broken";

impl App {
    /// Opens `line`, or the source that is open again, and reports what came of it.
    pub(super) fn open_source(&mut self, line: Option<&str>) {
        let Some(opener) = self.live.opener.as_mut() else {
            return self.ui.say(Level::Error, Msg::new("live.no_source"));
        };
        let result = opener.open(line);
        // A list of what was wrong is about what was on disk before.
        self.ui.overlays.retain(|o| !matches!(o, Overlay::List { title, .. } if title.key == BROKEN));
        match result {
            Ok(opened) => {
                self.live.broken = None;
                let name = opened.name.clone();
                for note in &opened.notes {
                    self.ui.say(Level::Info, note.clone());
                }
                let lost = if line.is_some() {
                    self.replace(Arc::new(opened.session));
                    Vec::new()
                } else {
                    self.refresh(Arc::new(opened.session))
                };
                for (edit, why) in &lost {
                    self.ui.say(Level::Warning, Msg::new("live.edit_lost").arg("edit", edit).arg("why", why));
                }
                if lost.is_empty() {
                    let key = if line.is_some() { "live.opened" } else { "live.reloaded" };
                    self.ui.say(Level::Done, Msg::new(key).arg("name", crate::text::escape(&name)));
                }
            }
            Err(lines) => {
                let first = lines.first().cloned().unwrap_or_default();
                let mut answer = Answer::new(Msg::new(BROKEN));
                for line in &lines {
                    answer.push(Row::plain(line.clone()).level(Level::Error));
                }
                // What is typed meanwhile stays on top.
                if self.ui.overlays.is_empty() {
                    self.ui.answer(answer);
                } else {
                    self.ui.answers.push(answer);
                }
                if line.is_none() {
                    self.live.broken = Some(first.clone());
                }
                self.ui.say(Level::Error, Msg::new("live.not_opened").arg("why", first));
            }
        }
        self.settle();
    }

    /// Another source: everything begins anew but settings, view and the record of commands.
    fn replace(&mut self, session: Arc<Session>) {
        self.views.stop();
        self.nav = Navigator::new(session, None);
        self.views = Views::default();
        self.breaks = Breaks::default();
        self.checks = Checks::default();
        self.edits = Edits::default();
        self.quiz = None;
        self.placed = super::record::place_commands(&self.nav);
    }

    /// The same source once more: run, step, view and cell stay, and edits are made again. Returns those that could
    /// not be, and why.
    fn refresh(&mut self, session: Arc<Session>) -> Vec<(String, String)> {
        self.views.stop();
        self.nav.leave_update();
        let edits = self.edits.all(&self.nav);
        self.nav.replace_session(session);
        self.checks = Checks::default();
        if self.quiz.take().is_some() {
            self.nav.hidden = None;
            self.ui.say(Level::Info, Msg::new("live.quiz_ended"));
        }
        let lost = self.edits.make_again(&self.nav.session, edits, self.ui.settings.lang);
        if let Some(edited) = self.edits.session() {
            self.nav.replace_session(edited);
        }
        lost
    }
}
