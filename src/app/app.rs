//! The application: the interface and the debugger, and how input changes them.

use std::sync::Arc;
use std::time::Duration;

use super::action::Action;
use super::answer::Answer;
use super::args::{ExportArgs, Text};
use super::command::Names;
use super::effect::{Effect, Found, Report};
use super::input::Input;
use super::messages::{Level, Message};
use super::navigator::{Navigator, Page};
use super::overlay::Overlay;
use super::ui::{Settings, Ui};
use super::view::View;
use crate::export::document::{self, document};
use crate::export::select::Selection;
use crate::export::{Format, Options, Writer};
use crate::session::Session;
use crate::text::{Msg, NumberFormat};

/// What became of one command, for a script.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// What it said.
    pub messages: Vec<Message>,
    /// What it found.
    pub answers: Vec<Answer>,
    /// What is to be done outside.
    pub effects: Vec<Effect>,
    /// Whether one is elsewhere now.
    pub moved: bool,
    /// The derivation of the cell one is at, where one moved.
    pub line: Option<String>,
}

/// Time from look to look at work that goes on by itself.
const NEWS: Duration = Duration::from_millis(80);

/// The whole state.
pub struct App {
    /// Settings, focus, overlays, messages.
    pub ui: Ui,
    /// The session and where one is in it.
    pub nav: Navigator,
    /// What the last frame showed, so that pages have its size.
    pub page: Page,
    /// Where the recorded commands have led to.
    pub(super) placed: Vec<String>,
}

impl Names for Navigator {
    fn places(&self, prefix: &str, limit: usize) -> Vec<String> {
        let lower = prefix.to_lowercase();
        let mut out: Vec<String> = Vec::new();
        let mut add = |name: &str| {
            if out.len() < limit && name.to_lowercase().starts_with(&lower) && !out.iter().any(|o| o == name) {
                out.push(name.to_owned());
            }
        };
        for step in self.steps.list() {
            for view in &step.views {
                add(&view.symbol);
            }
        }
        let run = self.step().map_or(0, |s| s.run);
        for (_, node) in self.session.runs[run].program.nodes() {
            add(&node.path);
        }
        out
    }
}

impl App {
    /// Over a session, at the first step of the walkthrough or of run `run`.
    pub fn new(session: Arc<Session>, run: Option<usize>, settings: Settings) -> Self {
        let mut app = Self {
            ui: Ui::new(settings),
            nav: Navigator::new(session, run),
            page: Page::default(),
            placed: Vec::new(),
        };
        app.settle();
        if let Some(run) = run {
            let name = app.nav.session.runs[run].name.clone();
            app.ui.record.push(Action::Run(Text(name)).line());
        }
        app.placed = app.place_lines();
        app
    }

    /// Takes in one event; says what is to be done outside.
    pub fn input(&mut self, input: &Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        if *input == Input::Tick {
            if self.ui.play.on && !self.nav.play_on(&self.ui) {
                self.ui.play.on = false;
            }
            self.settle();
            return effects;
        }
        if let Some(action) = self.ui.input(input, &self.nav) {
            self.act(action, &mut effects);
        }
        effects
    }

    /// Does an action.
    pub fn act(&mut self, action: Action, effects: &mut Vec<Effect>) {
        // Esc ends what takes long before anything else.
        if action == Action::Cancel && self.ui.overlays.is_empty() && self.nav.stop_training() {
            return self.settle();
        }
        if action == Action::Interrupt {
            self.nav.stop_training();
        }
        // Enter opens the step that the map has lit.
        let on_map = self.ui.view == View::Map && self.ui.overlays.is_empty();
        let action = if on_map && action == Action::Follow { Action::View(View::Step) } else { action };
        // A script says what it means, a person is asked.
        let unsaved = self.nav.unsaved_edits();
        if action == Action::Quit && self.nav.live && unsaved > 0 {
            self.ui.overlays.push(Overlay::Confirm {
                question: Msg::new("tui.ask.unsaved").arg("count", unsaved),
                effect: Box::new(Effect::Quit),
            });
            return;
        }
        let recorded = self.ui.record.len();
        let said = self.ui.messages.said();
        let here = self.place_lines();
        if let Some(rest) = self.ui.update(action, &self.nav, effects) {
            match rest {
                Action::Export(args) => self.export(&args, effects),
                Action::SaveSession(Text(name)) => match self.session_script(&name) {
                    Ok(effect) => effects.push(effect),
                    Err(msg) => self.ui.say(Level::Error, msg),
                },
                rest => self.nav.update(&rest, &mut self.ui, self.page, effects),
            }
        }
        self.settle();
        self.record(recorded, &here, said);
    }

    /// Does an action and says what became of it, as a script wants it: nothing is left open over the screen.
    pub fn tell(&mut self, action: Action) -> Told {
        let before = self.nav.spot();
        let said = self.ui.messages.said();
        let mut told = Told::default();
        self.act(action, &mut told.effects);
        told.messages = self.ui.messages.since(said);
        told.answers = std::mem::take(&mut self.ui.answers);
        told.moved = self.nav.spot() != before;
        if told.moved {
            let number = self.ui.settings.digits;
            told.line = self.nav.line(number, usize::MAX).map(|l| l.text());
        }
        self.ui.overlays.clear();
        told
    }

    /// Takes in what became of an effect.
    pub fn report(&mut self, report: Report) {
        match report {
            Report::Reference(found) => {
                let Found { reference, run, options } = *found;
                self.nav.compare_with(reference, run, &options, &mut self.ui);
            }
            report => self.ui.report(report),
        }
    }

    /// As [`App::report`], and says what came of it, as a script wants it.
    pub fn tell_report(&mut self, report: Report) -> Told {
        let said = self.ui.messages.said();
        self.ui.answers.clear();
        self.report(report);
        self.ui.overlays.clear();
        Told {
            messages: self.ui.messages.since(said),
            answers: std::mem::take(&mut self.ui.answers),
            ..Told::default()
        }
    }

    /// Time to the next tick; `None` where nothing moves by itself.
    pub fn interval(&self) -> Option<Duration> {
        // What goes on by itself is looked after often enough to be seen moving.
        let busy = self.nav.training().is_busy() || self.nav.is_rounding().is_some() || self.nav.measures.is_waiting();
        let news = busy.then_some(NEWS);
        self.ui.play.interval().or(news)
    }

    /// Brings what depends on settings and place up to date.
    fn settle(&mut self) {
        self.nav.prepare(&mut self.ui);
        let digits = match self.ui.settings.digits {
            NumberFormat::Decimals(d) | NumberFormat::Scientific(d) => d,
            NumberFormat::Shortest | NumberFormat::Bits => 4,
        };
        let rounding = self.ui.settings.rounding.then_some(digits);
        self.nav.round_to(rounding);
        self.nav.lang = self.ui.settings.lang;
        let label = self.nav.step().map(crate::walkthrough::Step::label).unwrap_or_default();
        self.ui.step_label.clone_from(&label);
        self.ui.export_stem = format!("{}-{label}", file_stem(&self.nav.session.scenario.name));
    }

    fn export(&mut self, args: &ExportArgs, effects: &mut Vec<Effect>) {
        match self.exported(args) {
            Ok(effect) => effects.push(effect),
            Err(msg) => self.ui.refuse_export(1, msg),
        }
    }

    fn exported(&self, args: &ExportArgs) -> Result<Effect, Msg> {
        let d = &self.nav;
        let format = args.format.as_deref().map_or(Ok(Format::Text), Format::parse)?;
        let label = d.step().map(crate::walkthrough::Step::label).unwrap_or_default();
        let selection = Selection::parse(args.range.as_deref().unwrap_or(&label))?;
        let path = args.path.clone().unwrap_or_else(|| format!("{}.{}", self.ui.export_stem, format.extension()));
        let settings = &self.ui.settings;
        let options = Options {
            lang: settings.lang,
            number: settings.digits,
            array: selection.is_several(),
            ..Options::default()
        };
        let making = document::Settings {
            lang: settings.lang,
            number: settings.digits,
            round: d.round,
            derivations: 20_000,
            terms: usize::MAX,
            inputs: false,
        };
        let failed = |e: &dyn std::fmt::Display| Msg::new("tui.said.not_exported").arg("why", e);
        let mut bytes = Vec::new();
        let mut writer = Writer::begin(format, &options, &mut bytes).map_err(|e| failed(&e))?;
        let mut any = false;
        for (at, step) in d.steps.list().iter().enumerate() {
            let step = match &selection {
                Selection::One(path) if path.len() > 1 && path[0] == step.number[0] => {
                    d.session.step_at(&d.steps, path)
                }
                s if s.holds(step.number[0]) => Some(step.clone()),
                _ => None,
            };
            let Some(step) = step else { continue };
            let doc = document(&d.session, &d.steps, at, &step, &making).map_err(|e| failed(&e))?;
            writer.step(&doc).map_err(|e| failed(&e))?;
            any = true;
        }
        writer.end().map_err(|e| failed(&e))?;
        if !any {
            return Err(Msg::new("tui.said.no_step"));
        }
        Ok(Effect::Write { path: path.into(), bytes: Arc::new(bytes), overwrite: false })
    }
}

/// A scenario's name as part of a file's.
pub(super) fn file_stem(name: &str) -> String {
    let safe: String =
        name.chars().map(|c| if c.is_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
    if safe.is_empty() { "scenario".to_owned() } else { safe }
}
