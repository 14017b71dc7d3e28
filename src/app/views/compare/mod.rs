//! Two values of a tensor, A, B and B − A: this run and the reference it was compared with, before and after edits, or
//! exact and rounded numbers.

mod pairs;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::app::navigator::Navigator;
use crate::app::of_session::OfSession;
use crate::app::views::ViewState;
use crate::debug::compare::bound::Bound;
use crate::debug::compare::{Checked, Mode, Options, Reference, Report, State as Verdict};
use crate::program::NodeId;
use crate::session::RunKind;
use crate::trace::Rounding;
use crate::trace::stats::{Tally, Window};
use crate::walkthrough::{Role, Step};

pub use pairs::{Differing, Kind, Pairs, Side, Summary, change, ulps};

/// Pictures that are kept.
const PICTURES: usize = 64;

/// A comparison that was made.
#[derive(Debug)]
pub(in crate::app) struct Compared {
    pub report: Report,
    pub reference: Reference,
    /// Our program on the reference's numbers; made when it is wanted.
    pub bound: OnceLock<Option<Arc<Bound>>>,
}

/// How a node compares.
#[derive(Debug)]
pub struct Standing<'a> {
    /// What the run was compared with.
    pub reference: &'a str,
    /// What each node was computed from.
    pub mode: Mode,
    /// What was found of it.
    pub checked: Option<&'a Checked>,
    /// The reference's cells in our order, where it has the node and the shapes fit.
    pub theirs: Option<Arc<Vec<Option<f64>>>>,
}

/// Run, node, rounding, and which part of the tensor: its first cell and how many there are.
type Key = (usize, NodeId, Option<Rounding>, usize, usize);
/// A picture of a plane of one of A, B and B − A, of so many rows and columns.
type PictureKey = (Key, Window, usize, (usize, usize));
/// The reference's cells of a node, where it has it.
type Theirs = Option<Arc<Vec<Option<f64>>>>;

/// What the last comparison of the session found.
#[derive(Debug, Default)]
pub struct State {
    compared: OfSession<Option<Arc<Compared>>>,
    /// What scans of every cell found, since the last comparison.
    summaries: RefCell<OfSession<HashMap<Key, Arc<Summary>>>>,
    pictures: RefCell<OfSession<HashMap<PictureKey, Arc<Vec<Tally>>>>>,
    theirs: RefCell<OfSession<HashMap<NodeId, Theirs>>>,
    states: RefCell<OfSession<HashMap<NodeId, Verdict>>>,
}

impl State {
    /// The last comparison.
    pub(in crate::app) fn found(&self, nav: &Navigator) -> Option<&Arc<Compared>> {
        self.compared.get(&nav.session)?.as_ref()
    }

    /// Keeps a comparison.
    pub(in crate::app) fn keep(&mut self, nav: &Navigator, compared: Compared) {
        let states = compared.report.each().map(|c| (c.place.node, c.state)).collect();
        *self.states.get_mut().get_mut(&nav.session) = states;
        self.summaries.get_mut().get_mut(&nav.session).clear();
        self.pictures.get_mut().get_mut(&nav.session).clear();
        self.theirs.get_mut().get_mut(&nav.session).clear();
        *self.compared.get_mut(&nav.session) = Some(Arc::new(compared));
    }

    /// Whether a comparison was made.
    pub fn is_there(&self, nav: &Navigator) -> bool {
        self.found(nav).is_some()
    }

    fn summary(&self, nav: &Navigator, key: Key, make: impl FnOnce() -> Summary) -> Arc<Summary> {
        let mut kept = self.summaries.borrow_mut();
        Arc::clone(kept.get_mut(&nav.session).entry(key).or_insert_with(|| Arc::new(make())))
    }

    /// The picture of a plane of A (0), B (1) or B − A (2), of so many rows and columns: what is in each pixel. `make` reads
    /// every cell of the plane; that is done once for each size of the picture, not for each frame.
    pub fn picture(
        &self,
        nav: &Navigator,
        pairs: &Pairs,
        part: usize,
        size: (usize, usize),
        make: impl FnOnce() -> Vec<Tally>,
    ) -> Arc<Vec<Tally>> {
        let mut kept = self.pictures.borrow_mut();
        let kept = kept.get_mut(&nav.session);
        let key = (pairs.key, pairs.plane.window(), part, size);
        if kept.len() >= PICTURES && !kept.contains_key(&key) {
            kept.clear();
        }
        Arc::clone(kept.entry(key).or_insert_with(|| Arc::new(make())))
    }

    /// How a step compares: as the worst of its results; `None` where nothing was compared or nothing is computed.
    pub fn of_step(&self, nav: &Navigator, step: &Step) -> Option<Verdict> {
        let run = self.found(nav)?.report.run;
        let states = self.states.borrow();
        let states = states.get(&nav.session)?;
        let results = step.views.iter().filter(|v| v.run == run && v.role == Role::Result);
        let rank = |state: &Verdict| match state {
            Verdict::Diverged => 3,
            Verdict::Drift => 2,
            Verdict::Match => 1,
            Verdict::Unchecked => 0,
        };
        results.map(|v| states.get(&v.node).copied().unwrap_or(Verdict::Unchecked)).max_by_key(rank)
    }

    /// Our program on the numbers of what run `run` was compared with; `None` where it was not.
    pub fn bound(&self, nav: &Navigator, run: usize) -> Option<Arc<Bound>> {
        let compared = self.found(nav)?;
        if compared.report.run != run || nav.session.runs[run].kind == RunKind::Recorded {
            return None;
        }
        let make = || {
            let bound = Bound::new(&nav.session, run, &compared.reference, &Options::default());
            bound.ok().map(Arc::new)
        };
        compared.bound.get_or_init(make).clone()
    }

    /// As [`State::bound`], where it is made already.
    pub fn bound_made(&self, nav: &Navigator, run: usize) -> Option<Arc<Bound>> {
        let compared = self.found(nav).filter(|c| c.report.run == run)?;
        compared.bound.get()?.clone()
    }

    /// How a node compares; `None` where its run was not compared.
    pub fn standing(&self, nav: &Navigator, run: usize, node: NodeId) -> Option<Standing<'_>> {
        let Compared { report, reference, .. } = self.found(nav)?.as_ref();
        if report.run != run {
            return None;
        }
        let checked = report.of(node);
        let theirs = || {
            let of = nav.session.runs[run].program.node(node);
            let against = checked.and_then(|c| c.against.as_ref())?;
            reference.beside(against, of).map(Arc::new)
        };
        let mut kept = self.theirs.borrow_mut();
        let theirs = kept.get_mut(&nav.session).entry(node).or_insert_with(theirs).clone();
        Some(Standing { reference: &report.reference, mode: report.mode, checked, theirs })
    }
}

impl ViewState for State {
    const OF_STEP: bool = true;
}
