//! How input changes the application.

use std::sync::Arc;

use super::action::{Action, Group};
use super::app::App;
use super::breakpoints;
use super::commands::perform;
use super::effect::Effect;
use super::input::Input;
use super::messages::Level;
use super::motion::Motion;
use super::overlay::Overlay;
use super::record::{place_commands, record};
use super::view::View;
use crate::text::{Msg, escape};

/// Whether an action may read numbers of runs that nobody looked at yet.
fn reads(action: &Action) -> bool {
    !matches!(action.spec().group, Group::Walk | Group::Move | Group::View | Group::App)
        || matches!(action, Action::Train(_) | Action::Update(_))
}

impl App {
    /// Takes in one event; says what is to be done outside.
    pub fn input(&mut self, input: &Input) -> Vec<Effect> {
        if *input == Input::Changed {
            return vec![Effect::Open(None)];
        }
        if *input == Input::Tick
            && let Some(motion) = self.ui.motion
        {
            self.ui.motion = motion.next();
            return Vec::new();
        }
        let actions = self.ui.input(input, &self.nav);
        if *input == Input::Tick && actions.is_empty() {
            if self.ui.play.on {
                let (views, mut cx) = self.split();
                let goes_on = views.tick(&mut cx);
                self.ui.play.on = goes_on;
                // Slow enough to be followed: each step is computed before one's eyes.
                let shows = self.ui.view == View::Step && self.ui.settings.motion && self.ui.interactive;
                self.ui.motion = (goes_on && shows && self.ui.play.per_second() <= 2.0).then(Motion::default);
            }
            self.settle();
            return std::mem::take(&mut self.ui.effects);
        }
        actions.into_iter().flat_map(|action| self.act(action)).collect()
    }

    /// Does an action; says what is to be done outside.
    pub fn act(&mut self, action: Action) -> Vec<Effect> {
        // Esc ends what takes long before anything else.
        let stops = action == Action::Interrupt || action == Action::Cancel && self.ui.overlays.is_empty();
        if action == Action::Interrupt
            && let Some(run) = self.nav.session.going().filter(|_| self.nav.session.stop())
        {
            let name = escape(&self.nav.session.runs[run].name).into_owned();
            self.ui.say(Level::Info, Msg::new("tui.said.stopped").arg("run", name));
            return Vec::new();
        }
        if stops && self.views.stop() && action == Action::Cancel {
            self.settle();
            return Vec::new();
        }
        // A script is not asked; on the screen a question is put.
        let unsaved = self.edits.unsaved(&self.nav);
        if action == Action::Quit && self.ui.interactive && unsaved > 0 {
            self.ui.overlays.push(Overlay::Confirm {
                question: Msg::new("tui.ask.unsaved").arg("count", unsaved),
                effect: Box::new(Effect::Quit),
            });
            return Vec::new();
        }
        let recorded = self.ui.record.len();
        let said = self.ui.messages.said();
        let here = place_commands(&self.nav);
        if let Some(rest) = self.ui.update(action, &self.nav) {
            self.with_numbers(&rest);
        }
        self.settle();
        self.ui.messages.happened_at(said, &self.nav.state());
        record(&mut self.ui, &self.nav, &mut self.placed, recorded, &here, said);
        std::mem::take(&mut self.ui.effects)
    }

    /// Does what the interface left of an action. What reads numbers waits for a run that was not begun; while one goes on
    /// it is refused.
    fn with_numbers(&mut self, action: &Action) {
        let session = Arc::clone(&self.nav.session);
        if let Some(run) = session.going().filter(|_| reads(action) && action.spec().group != Group::Find) {
            let share = session.progress(run).map_or(0.0, |p| p.share * 100.0);
            let msg = Msg::new("tui.said.running").arg("run", escape(&session.runs[run].name));
            return self.ui.say(Level::Info, msg.arg("share", format!("{share:.0}")));
        }
        let _patient = (reads(action) && session.going().is_none()).then(|| session.patiently());
        let (views, mut cx) = self.split();
        if !views.act(action, &mut cx) {
            perform(self, action);
        }
    }

    /// Whether a breakpoint is about the step at a position of the list.
    pub fn has_break(&self, at: usize) -> bool {
        breakpoints::is_at(&self.nav, &self.breaks, at)
    }
}
