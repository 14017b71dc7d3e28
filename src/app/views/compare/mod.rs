//! Two values of a tensor, A, B and B − A: this run and the reference it was compared with, before and after edits, or
//! exact and rounded numbers.

mod pairs;

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use crate::app::measure::{AT_ONCE, part};
use crate::app::navigator::Navigator;
use crate::app::navigator::is_masked;
use crate::app::of_session::OfSession;
use crate::app::slot::{Seen, Slot};
use crate::app::views::ViewState;
use crate::debug::compare::bound::Bound;
use crate::debug::compare::{Checked, Error, Mode, Options, Reference, Report, State as Verdict, stretches};
use crate::explain::line::MASKED_BELOW;
use crate::program::NodeId;
use crate::session::RunKind;
use crate::trace::Rounding;
use crate::trace::stats::{Tally, Window};
use crate::walkthrough::{Role, Step};

use pairs::value;
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
    summaries: RefCell<OfSession<HashMap<Key, Slot<Summary>>>>,
    pictures: RefCell<OfSession<HashMap<PictureKey, Slot<Vec<Tally>>>>>,
    /// Runs that are rounded in the background.
    rounded: RefCell<OfSession<HashMap<(usize, Rounding), Slot<()>>>>,
    theirs: RefCell<OfSession<HashMap<NodeId, Theirs>>>,
    states: RefCell<OfSession<HashMap<NodeId, Verdict>>>,
    /// How far off each node is, in order.
    errors: OfSession<Vec<Error>>,
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
        *self.errors.get_mut(&nav.session) = compared.report.errors();
        self.summaries.get_mut().get_mut(&nav.session).clear();
        self.pictures.get_mut().get_mut(&nav.session).clear();
        self.theirs.get_mut().get_mut(&nav.session).clear();
        *self.compared.get_mut(&nav.session) = Some(Arc::new(compared));
    }

    /// Whether a comparison was made.
    pub fn is_there(&self, nav: &Navigator) -> bool {
        self.found(nav).is_some()
    }

    /// The error along the run in so many columns at most, and the column of `node`; `None` where run `run` was not
    /// compared, or nothing differs at all.
    pub fn growth(&self, nav: &Navigator, run: usize, node: NodeId, columns: usize) -> Option<(Vec<Error>, usize)> {
        self.found(nav).filter(|c| c.report.run == run)?;
        let all = stretches(self.errors.get(&nav.session)?, columns)?;
        let here = all.partition_point(|e| e.node < node).min(all.len() - 1);
        Some((all, here))
    }

    /// What a scan of `cells` cells found; `None` while they are read.
    fn summary(
        &self,
        nav: &Navigator,
        key: Key,
        cells: usize,
        make: impl FnOnce() -> Summary + Send + 'static,
    ) -> Option<Arc<Summary>> {
        let mut kept = self.summaries.borrow_mut();
        look(nav, kept.get_mut(&nav.session), key, cells > AT_ONCE, || Some(make()))
    }

    /// Whether run `run` is there with rounded numbers; else it is computed in the background, or at once where it is
    /// small or nobody watches.
    fn has_rounded(&self, nav: &Navigator, run: usize, rounding: Rounding) -> bool {
        if nav.session.has_rounded(run, rounding) {
            return true;
        }
        let cells: usize = nav.session.runs[run].program.nodes().map(|(_, n)| n.shape.len()).sum();
        let session = Arc::clone(&nav.session);
        let make = move || session.rounded(run, rounding).ok().map(|_| ());
        let mut kept = self.rounded.borrow_mut();
        look(nav, kept.get_mut(&nav.session), (run, rounding), cells > AT_ONCE, make).is_some()
    }

    /// The picture of a plane of A (0), B (1) or B − A (2), of so many rows and columns: what is in each pixel. Every cell
    /// of the plane is read, once for each size of the picture; `None` while that is done in the background.
    pub fn picture(
        &self,
        nav: &Navigator,
        pairs: &Pairs,
        which: usize,
        (rows, cols): (usize, usize),
    ) -> Option<Arc<Vec<Tally>>> {
        let mut kept = self.pictures.borrow_mut();
        let kept = kept.get_mut(&nav.session);
        let key = (pairs.key, pairs.plane.window(), which, (rows, cols));
        if kept.len() >= PICTURES && !kept.contains_key(&key) {
            kept.clear();
        }
        let plane = pairs.plane.clone();
        let masked = which < 2 && is_masked(&nav.session.runs[pairs.key.0].program, pairs.key.1);
        let (a, b) = (pairs.a.clone(), pairs.b.clone());
        let many = plane.rows * plane.cols > AT_ONCE;
        look(nav, kept, key, many, move || {
            let pixel = |(r, c): (usize, usize)| {
                let mut tally = Tally::default();
                for row in part(plane.rows, r, rows) {
                    for col in part(plane.cols, c, cols) {
                        let x = value(&a, &b, which, plane.flat(row, col));
                        tally.take(x.unwrap_or(0.0), x.is_none_or(|x| masked && x < MASKED_BELOW));
                    }
                }
                tally
            };
            Some((0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))).map(pixel).collect())
        })
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

/// What is kept under a key, made where it is not there yet; `None` while that goes on, or where there is none.
fn look<K: Eq + Hash, T: Send + Sync + 'static>(
    nav: &Navigator,
    kept: &mut HashMap<K, Slot<T>>,
    key: K,
    long: bool,
    make: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<Arc<T>> {
    let slot = match kept.entry(key) {
        Entry::Occupied(slot) => slot.into_mut(),
        Entry::Vacant(place) => place.insert(Slot::new(long && nav.is_live(), make)?),
    };
    let seen = slot.look();
    if matches!(seen, Seen::Coming) {
        nav.numbers.measures.wait();
    }
    seen.made()
}

impl ViewState for State {
    const OF_STEP: bool = true;
}
