//! The application: the interface, the place one is at, the views and the tools.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::action::Action;
use super::ahead::Ahead;
use super::args::RunName;
use super::checks::Checks;
use super::command::Names;
use super::live::Live;
use super::navigator::Navigator;
use super::page::Page;
use super::quiz::Open;
use super::settings::Settings;
use super::ui::Ui;
use super::view::View;
use super::views::compare::Compared;
use super::views::{Context, Views};
use super::what_if::Edits;
use crate::debug::breaks::Breaks;
use crate::debug::compare::bound::Bound;
use crate::debug::compare::{Reference, Report};
use crate::session::Session;
use crate::text::Lang;

/// Time between polls of work that goes on in the background: often enough to be seen moving.
const POLL: Duration = Duration::from_millis(80);

/// The whole state.
pub struct App {
    /// Settings, focus, overlays, messages.
    pub ui: Ui,
    /// The session and where one is in it.
    pub nav: Navigator,
    /// The states of the views.
    pub views: Views,
    /// Breakpoints and watches.
    pub breaks: Breaks,
    /// What the lints found.
    pub checks: Checks,
    /// Edits of the session.
    pub edits: Edits,
    /// The quiz that is open.
    pub quiz: Option<Open>,
    /// The source that is open.
    pub live: Live,
    /// What the last frame showed, so that pages have its size.
    pub page: Page,
    /// Where the recorded commands have led to.
    pub(super) placed: Vec<Action>,
    /// What is read before it is looked at.
    ahead: Ahead,
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
        for (_, node) in self.session.runs[self.run_here()].program.nodes() {
            add(&node.path);
        }
        out
    }

    fn hits(&self, text: &str, lang: Lang, limit: usize) -> Option<(usize, Vec<(String, String)>)> {
        super::find::hits(self, text, lang, limit)
    }

    fn runs(&self) -> Vec<String> {
        self.session.runs.iter().map(|r| r.name.clone()).collect()
    }
}

impl App {
    /// Over a session, at the first step of the walkthrough or of run `run`.
    pub fn new(session: Arc<Session>, run: Option<usize>, settings: Settings) -> Self {
        let mut app = Self {
            ui: Ui::new(settings),
            nav: Navigator::new(session, run),
            views: Views::default(),
            breaks: Breaks::default(),
            checks: Checks::default(),
            edits: Edits::default(),
            quiz: None,
            live: Live::default(),
            page: Page::default(),
            placed: Vec::new(),
            ahead: Ahead::default(),
        };
        app.settle();
        if let Some(run) = run {
            let name = app.nav.session.runs[run].name.clone();
            app.ui.record.push(Action::Run(RunName(name)));
        }
        app.placed = super::record::place_commands(&app.nav);
        app
    }

    /// The views, and what they may use.
    pub(super) fn split(&mut self) -> (&mut Views, Context<'_>) {
        (&mut self.views, Context { nav: &mut self.nav, ui: &mut self.ui, page: self.page })
    }

    /// Time to the next tick; `None` where nothing moves by itself.
    pub fn interval(&self) -> Option<Duration> {
        if self.ui.motion.is_some() {
            return Some(super::motion::FRAME);
        }
        let busy = self.views.is_busy() || self.nav.numbers.is_busy() || self.nav.session.going().is_some();
        self.ui.play.interval().or(self.ui.count_interval()).or(busy.then_some(POLL))
    }

    /// Shows a run next to a recording that it was compared with.
    pub fn lay(&mut self, report: Report, reference: Reference, bound: Bound) {
        let bound = OnceLock::from(Some(Arc::new(bound)));
        if self.nav.steps.list().iter().all(|s| s.run != report.run) {
            self.nav.choose_run(Some(report.run));
        }
        self.views.compare.keep(&self.nav, Compared { report, reference, bound });
        self.ui.view = View::Compare;
    }

    /// Brings what depends on settings and place up to date.
    pub fn settle(&mut self) {
        let (views, mut cx) = self.split();
        views.prepare(&mut cx);
        let rounding = self.ui.settings.rounding.at(self.ui.settings.decimals());
        self.nav.round_to(rounding, self.ui.interactive);
        self.ui.step_label = self.nav.label();
        self.ui.export_stem = format!("{}-{}", file_stem(&self.nav.session.scenario.name), self.ui.step_label);
        self.ahead.follow(&self.nav);
    }
}

/// A scenario's name as part of a file's.
pub(super) fn file_stem(name: &str) -> String {
    let safe: String =
        name.chars().map(|c| if c.is_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
    if safe.is_empty() { "scenario".to_owned() } else { safe }
}
