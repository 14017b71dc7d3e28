//! The part of the application that steps through a session: where one is, where one came from, what is looked at.

mod breaks;
mod chain;
mod checks;
mod compare;
mod compare_asked;
mod edited;
mod edits;
mod facts;
mod follow;
mod inquire;
mod model;
mod nav;
mod panel;
mod place;
mod powers;
mod quiz;
mod rounding;
mod search;
mod side;
mod sides;
mod tables;
mod training;
mod trees;
mod update;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::jumps::{Bookmarks, Jumps};
use super::measure::{Measures, Origin, Part};
use crate::debug::breaks::Breaks;
use crate::debug::timeline::Timeline;
use crate::debug::whatif::{Before, WhatIf};
use crate::program::NodeId;
use crate::session::{Session, Steps};
use crate::text::{Lang, Msg};
use crate::trace::AnyTrace;
use crate::trace::derive::Cell;
use crate::trace::stats::Tally;
use crate::walkthrough::{Step, View};

pub use chain::{Chain, chain};
pub use compare::Standing;
pub use facts::{Facts, Totals};
pub use model::{Plane, StageModel, TableModel, TreeRow};
pub use side::{Half, Seen, Side};
pub use tables::{RenderedTable, TableResult, TextTable};
pub use training::{Picture, Scatter, Training};
pub use update::{MAX_TERMS, Page};

/// A place one can return to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Updates made on the parameters, where one is in an opened update.
    pub update: Option<u64>,
    /// Which run's steps.
    pub run: Option<usize>,
    /// Position in the list.
    pub at: usize,
    /// Positions in the lists of sub-steps, outermost first.
    pub inner: Vec<usize>,
    /// A tensor outside the numbered steps, where a jump went to one.
    pub aside: Option<u32>,
    /// Which view of the step.
    pub view: usize,
    /// Which cell of the view.
    pub index: Vec<usize>,
}

/// Values before edits, by run, node and rounding.
type Befores = HashMap<(usize, NodeId, Option<u8>), Before>;

/// One level of sub-steps.
#[derive(Clone, Debug)]
struct Level {
    steps: Vec<Step>,
    at: usize,
}

/// The debugger's state over one session.
pub struct Navigator {
    /// What an opened update leads back to.
    base: Arc<Session>,
    /// Updates made on the parameters of `session`, where it is an opened update.
    update: Option<u64>,
    /// Whether somebody watches: then long work goes on in the background.
    pub live: bool,
    training: Training,
    side: Option<Result<Side, Msg>>,
    /// The scenario, its runs and steps.
    pub session: Arc<Session>,
    /// Whose steps are listed: `None` for the whole walkthrough, else a run.
    pub run: Option<usize>,
    /// The steps listed.
    pub steps: Arc<Steps>,
    at: usize,
    inner: Vec<Level>,
    /// A tensor outside the numbered steps that a jump went to.
    aside: Option<Step>,
    view: usize,
    index: Vec<usize>,
    /// Which number of the derivation Enter goes into; `None`: the one that weighs most.
    term: Option<usize>,
    /// Language of derivations.
    pub lang: Lang,
    /// Round to so many decimals as one goes.
    pub round: Option<u8>,
    rounding: Option<rounding::Rounding>,
    /// First line shown of a table of words.
    pub scroll: usize,
    /// Phases folded in the list.
    pub folded: BTreeSet<usize>,
    /// Where one came from.
    pub jumps: Jumps<Spot>,
    /// Marked places.
    pub bookmarks: Bookmarks<Spot>,
    /// What the last comparison found.
    compared: Option<Arc<compare::Compared>>,
    /// Breakpoints and watches.
    pub breaks: Breaks,
    timeline: RefCell<Option<(Arc<Steps>, Arc<Timeline>)>>,
    /// What the lints found, once they were asked for.
    checked: Option<checks::Checked>,
    /// Ranges and counts of every cell, pyramids, pictures.
    pub measures: Measures,
    norms: RefCell<HashMap<(usize, NodeId, bool), f64>>,
    rounded: RefCell<HashMap<(usize, u8), Arc<AnyTrace>>>,
    totals: RefCell<HashMap<usize, Totals>>,
    words: RefCell<HashMap<(TextTable, Lang), TableResult>>,
    /// Edits of the session, where there were any.
    what_if: Option<WhatIf>,
    /// The edits that were written to a file last.
    saved: Vec<String>,
    quiz: Option<quiz::Open>,
    befores: RefCell<Befores>,
    changed_steps: RefCell<HashMap<(Option<usize>, usize), bool>>,
}

impl Navigator {
    /// At the first step of the walkthrough, or of run `run`.
    pub fn new(session: Arc<Session>, run: Option<usize>) -> Self {
        let steps = run.map_or_else(|| Arc::clone(&session.steps), |r| session.steps_of(r));
        let mut d = Self {
            base: Arc::clone(&session),
            update: None,
            live: false,
            training: Training::default(),
            side: None,
            session,
            run,
            steps,
            at: 0,
            inner: Vec::new(),
            aside: None,
            view: 0,
            index: Vec::new(),
            term: None,
            lang: Lang::En,
            round: None,
            rounding: None,
            scroll: 0,
            folded: BTreeSet::new(),
            jumps: Jumps::default(),
            bookmarks: Bookmarks::default(),
            compared: None,
            breaks: Breaks::default(),
            timeline: RefCell::default(),
            checked: None,
            measures: Measures::default(),
            norms: RefCell::default(),
            rounded: RefCell::default(),
            totals: RefCell::default(),
            words: RefCell::default(),
            what_if: None,
            saved: Vec::new(),
            quiz: None,
            befores: RefCell::default(),
            changed_steps: RefCell::default(),
        };
        d.arrive();
        d
    }

    /// Forgets what was computed from the session before.
    fn forget(&mut self) {
        self.measures.clear();
        self.norms.get_mut().clear();
        self.rounded.get_mut().clear();
        self.totals.get_mut().clear();
        self.befores.get_mut().clear();
        self.changed_steps.get_mut().clear();
        self.words.get_mut().clear();
        *self.timeline.get_mut() = None;
        self.checked = None;
        self.compared = None;
        self.side = None;
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

    /// The trace that is shown of a run: exact, or rounded as one goes.
    pub fn trace(&self, run: usize) -> Option<TraceRef<'_>> {
        match self.round {
            None => self.session.trace(run).ok().map(TraceRef::Exact),
            Some(digits) => {
                let mut made = self.rounded.borrow_mut();
                if let Some(trace) = made.get(&(run, digits)) {
                    return Some(TraceRef::Rounded(Arc::clone(trace)));
                }
                let trace = self.session.rounded(run, digits).ok()?;
                made.insert((run, digits), Arc::clone(&trace));
                Some(TraceRef::Rounded(trace))
            }
        }
    }

    /// Where a tensor is that is shown, for its measures.
    pub fn origin(&self, run: usize, node: NodeId) -> Origin<'_> {
        Origin { session: &self.session, run, node, round: self.round, live: self.live }
    }

    /// Range and counts over every cell of a part of a tensor; `None` while it is being read.
    pub fn tally(&self, run: usize, node: NodeId, part: Part) -> Option<Tally> {
        self.measures.tally(self.origin(run, node), part)
    }

    /// Updates made on the parameters, where one is in an opened update.
    pub fn update_opened(&self) -> Option<u64> {
        self.update
    }

    /// Looks into another session of the same scenario.
    fn look_into(&mut self, update: Option<u64>, session: Arc<Session>) {
        self.session = session;
        self.update = update;
        self.forget();
        let run = self.run;
        self.choose_run(run);
    }

    /// Whether a step is bookmarked.
    pub fn is_marked(&self, at: usize) -> bool {
        self.bookmarks.all().iter().any(|s| s.update == self.update && s.run == self.run && s.at == at)
    }

    /// The place one is at.
    pub fn spot(&self) -> Spot {
        Spot {
            update: self.update,
            run: self.run,
            at: self.at,
            inner: self.inner.iter().map(|l| l.at).collect(),
            aside: self.aside.as_ref().and_then(|s| s.views.first()).map(|v| v.node.0),
            view: self.view,
            index: self.index.clone(),
        }
    }
}

/// A trace that is shown.
pub enum TraceRef<'a> {
    /// As computed.
    Exact(&'a AnyTrace),
    /// Rounded as one goes.
    Rounded(Arc<AnyTrace>),
}

impl std::ops::Deref for TraceRef<'_> {
    type Target = AnyTrace;
    fn deref(&self) -> &AnyTrace {
        match self {
            TraceRef::Exact(t) => t,
            TraceRef::Rounded(t) => t,
        }
    }
}
