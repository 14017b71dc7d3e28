//! Where one is: which run's steps are listed, which step and sub-step, which tensor of it and which cell; where one
//! came from, and what is bookmarked. Knows no view.

mod chain;
mod choice;
mod cursor;
mod drill_down;
mod numbers;
mod place;
mod scope;
mod sessions;
mod table;
mod tree;
mod walk;

use crate::trace::Rounding;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::jumps::{Bookmarks, Jumps};
use super::of_session::OfSession;
use crate::debug::timeline::Timeline;
use crate::session::{RunKind, Session, Steps};
use crate::text::{Lang, Msg};
use crate::trace::derive::Cell;
use crate::walkthrough::{LocalizedText, Step, View};

pub use chain::{Chain, chain};
pub use choice::Part;
pub use drill_down::MAX_TERMS;
pub use numbers::{MAX_SCANNED, Numbers, TraceRef, rounded_words};
pub use scope::Trail;
pub use table::{Plane, TableModel, is_masked, names};
pub use tree::TreeRow;

/// A place that one can return to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NavState {
    /// Updates made on the parameters, in an opened update.
    pub update: Option<u64>,
    /// Which run's steps.
    pub run: Option<usize>,
    /// Position in the list.
    pub at: usize,
    /// Positions in the lists of sub-steps, outermost first.
    pub inner: Vec<usize>,
    /// Run and node of a tensor outside the numbered steps, where a jump went to one.
    pub aside: Option<(usize, u32)>,
    /// Which view of the step.
    pub view: usize,
    /// Which cell of the view.
    pub index: Vec<usize>,
}

/// One level of sub-steps.
#[derive(Clone, Debug)]
struct Level {
    steps: Vec<Step>,
    at: usize,
}

/// Where one is in a session.
pub struct Navigator {
    /// The scenario, its runs and steps.
    pub session: Arc<Session>,
    /// Whose steps are listed: `None` for the whole walkthrough, else a run.
    pub run: Option<usize>,
    /// The steps listed.
    pub steps: Arc<Steps>,
    /// The numbers that are shown of a run: exact or rounded.
    pub numbers: Numbers,
    /// Phases folded in the list.
    pub folded: BTreeSet<usize>,
    /// Where one came from.
    pub jumps: Jumps<NavState>,
    /// Marked places.
    pub bookmarks: Bookmarks<NavState>,
    /// A cell whose value is not shown: an open question asks for it.
    pub hidden: Option<(usize, Cell)>,
    updates: sessions::Updates,
    at: usize,
    inner: Vec<Level>,
    /// A tensor outside the numbered steps that a jump went to.
    aside: Option<Step>,
    view: usize,
    index: Vec<usize>,
    /// Which number of the derivation Enter goes into; `None`: the one that weighs most.
    term: Option<usize>,
    arrivals: u64,
    chosen: choice::Chosen,
    timeline: RefCell<OfSession<Option<(Arc<Steps>, Arc<Timeline>)>>>,
    trails: RefCell<OfSession<scope::Trails>>,
}

impl Navigator {
    /// At the first step of the walkthrough, or of run `run`.
    pub fn new(session: Arc<Session>, run: Option<usize>) -> Self {
        let steps = run.map_or_else(|| Arc::clone(&session.steps), |r| session.steps_of(r));
        let mut nav = Self {
            updates: sessions::Updates::new(&session),
            session,
            run,
            steps,
            numbers: Numbers::default(),
            folded: BTreeSet::new(),
            jumps: Jumps::default(),
            bookmarks: Bookmarks::default(),
            hidden: None,
            at: 0,
            inner: Vec::new(),
            aside: None,
            view: 0,
            index: Vec::new(),
            term: None,
            arrivals: 0,
            chosen: choice::Chosen::default(),
            timeline: RefCell::default(),
            trails: RefCell::default(),
        };
        nav.arrive();
        nav
    }

    /// The step looked at; `None` where there are no steps at all.
    pub fn step(&self) -> Option<&Step> {
        if let Some(step) = &self.aside {
            return Some(step);
        }
        match self.inner.last() {
            Some(level) => level.steps.get(level.at),
            None => self.steps.list().get(self.at),
        }
    }

    /// Number of the step looked at; empty where there is none.
    pub fn label(&self) -> String {
        self.step().map(Step::label).unwrap_or_default()
    }

    /// The run of the step looked at, else the one that is listed, else the first.
    pub fn run_here(&self) -> usize {
        self.step().map(|s| s.run).or(self.run).unwrap_or(0)
    }

    /// The run looked at where it is of this kind, else the first that is.
    pub fn run_of_kind(&self, kind: &RunKind) -> Option<usize> {
        let runs = &self.session.runs;
        let here = self.step().map(|s| s.run);
        here.filter(|r| runs[*r].kind == *kind).or_else(|| runs.iter().position(|r| r.kind == *kind))
    }

    /// Position of the numbered step in the list.
    pub fn position(&self) -> usize {
        self.at
    }

    /// How deep one is in sub-steps.
    pub fn depth(&self) -> usize {
        self.inner.len()
    }

    /// Whether a jump went to a tensor outside the numbered steps.
    pub fn is_aside(&self) -> bool {
        self.aside.is_some()
    }

    /// The view looked at.
    pub fn view(&self) -> Option<&View> {
        let step = self.step()?;
        step.views.get(self.view.min(step.views.len().checked_sub(1)?))
    }

    /// Position of the view in its step.
    pub fn view_position(&self) -> usize {
        self.view
    }

    /// Index of the cursor in the view.
    pub fn index(&self) -> &[usize] {
        &self.index
    }

    /// The cell under the cursor.
    pub fn cell(&self) -> Option<(usize, Cell)> {
        let view = self.view()?;
        (view.shape().rank() == self.index.len()).then(|| (view.run, view.cell(&self.index)))
    }

    /// The trace that is shown of a run: exact, or rounded each step.
    pub fn trace(&self, run: usize) -> Option<TraceRef<'_>> {
        self.numbers.trace(&self.session, run)
    }

    /// What the shown numbers are rounded to each step.
    pub fn round(&self) -> Option<Rounding> {
        self.numbers.round()
    }

    /// Rounds what is shown each step, or no more; `background` does it in a thread, and shows the
    /// exact numbers until then.
    pub fn round_to(&mut self, rounding: Option<Rounding>, background: bool) {
        let run = self.view().map(|v| v.run);
        self.numbers.round_to(&self.session, run, rounding, background);
    }

    /// Whether a step is bookmarked.
    pub fn is_marked(&self, at: usize) -> bool {
        let update = self.update_opened();
        self.bookmarks.all().iter().any(|s| s.update == update && s.run == self.run && s.at == at)
    }

    /// The place one is at.
    pub fn state(&self) -> NavState {
        NavState {
            update: self.update_opened(),
            run: self.run,
            at: self.at,
            inner: self.inner.iter().map(|l| l.at).collect(),
            aside: self.aside.as_ref().and_then(|s| s.views.first()).map(|v| (v.run, v.node.0)),
            view: self.view,
            index: self.index.clone(),
        }
    }

    /// How often one has arrived at a step: what belongs to a visit (a scrolled table) is kept under this number.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Where one is, as a line: `23 · 5.10 · title`.
    pub fn place(&self, lang: Lang) -> Option<String> {
        let step = self.step()?;
        let mut parts = vec![step.label()];
        if !step.section.is_empty() {
            parts.push(step.section.clone());
        }
        parts.push(self.title_of(step).render(lang));
        Some(parts.join(" · "))
    }

    /// The title of a step or sub-step. That of a softmax's shift says that none was needed where all of it is 0 in the
    /// numbers that are shown.
    pub fn title_of(&self, step: &Step) -> LocalizedText {
        let only = || <&[View; 1]>::try_from(step.views.as_slice()).ok().map(|[view]| view);
        let LocalizedText::Message(msg) = &step.title else { return step.title.clone() };
        let none = |view: &View| {
            let value = self.trace(view.run).and_then(|trace| trace.get(view.node));
            value.is_some_and(|value| view.cells.flats().all(|flat| value.get(flat) == 0.0))
        };
        if msg.key == "substep.shift" && only().is_some_and(none) {
            return LocalizedText::Message(Msg::new("substep.shift_none"));
        }
        step.title.clone()
    }

    /// Number and title of the step at a place of the steps listed.
    pub fn name_of(&self, place: &NavState, lang: Lang) -> Option<(String, String)> {
        let mut step = self.steps.list().get(place.at)?.clone();
        for at in &place.inner {
            step = self.session.expand(&step).into_iter().nth(*at)?;
        }
        Some((step.label(), self.title_of(&step).render(lang)))
    }
}
