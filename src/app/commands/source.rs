//! `reload`, `open`, `auto-reload`; and what opening a source does.

use std::sync::Arc;

use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::SourceLine;
use crate::app::checks::Checks;
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::app::overlay::Overlay;
use crate::app::record::place_commands;
use crate::app::views::Views;
use crate::app::what_if::Edits;
use crate::debug::breaks::Breaks;
use crate::session::Session;
use crate::text::Msg;

/// `reload`: the source once more, as it is on disk now.
pub fn reload(app: &mut App) {
    app.ui.effects.push(Effect::Open(None));
}

/// `open SOURCE`: another source in place of this one.
pub fn open(app: &mut App, SourceLine(line): &SourceLine) {
    if line.trim().is_empty() {
        return app.ui.say(Level::Error, Msg::new("live.which"));
    }
    let effect = Effect::Open(Some(line.clone()));
    let unsaved = app.edits.unsaved(&app.nav);
    if app.ui.interactive && unsaved > 0 {
        let question = Msg::new("tui.ask.unsaved").arg("count", unsaved);
        app.ui.overlays.push(Overlay::Confirm { question, effect: Box::new(effect) });
    } else {
        app.ui.effects.push(effect);
    }
}

/// `auto-reload`: reload by itself when the files change, or no more.
pub fn auto(app: &mut App) {
    let files = app.nav.session.files();
    if app.live.opener.is_none() || files.is_empty() {
        return app.ui.say(Level::Error, Msg::new("live.no_files"));
    }
    app.live.watch = !app.live.watch;
    let key = if app.live.watch { "live.watching" } else { "live.not_watching" };
    app.ui.say(Level::Info, Msg::new(key).arg("files", files.len()));
}

/// Title of the list of what is wrong with a source.
const BROKEN: &str = "live.broken";

impl App {
    /// Opens `line`, or the source that is open again, and reports what came of it.
    pub(in crate::app) fn open_source(&mut self, line: Option<&str>) {
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
        if let Some(number) = session.decimals() {
            self.ui.settings.digits = number;
        }
        self.nav = Navigator::new(session, None);
        self.views = Views::default();
        self.breaks = Breaks::default();
        self.checks = Checks::default();
        self.edits = Edits::default();
        self.quiz = None;
        self.placed = place_commands(&self.nav);
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
