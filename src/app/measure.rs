//! What is known of the numbers of a tensor: exact ranges and counts, and the pyramids that pictures are made from.
//!
//! Every cell is read. Small tensors are read at once; where somebody watches, large ones are read in the background
//! and are pending until then. Without a terminal (`snapshot`, `play`) everything is waited for.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::ops::Range;
use std::sync::{Arc, Weak};

use super::head_facts::HeadFacts;
use super::kept;
use super::lens_table::{LensTable, Way};
use super::medians::Medians;
use super::row_facts::RowFacts;
use super::similar::{COMPARED, Similar};
use super::slot::{Seen, Slot};
use crate::explain::line::MASKED_BELOW;
use crate::program::{Leaf, NodeId, Op, Part as RolePart, Program, Role, ScopeKind};
use crate::session::Session;
use crate::source::measures::Shelf;
use crate::tensor::Axis;
use crate::trace::stats::{Mask, Pyramid, Tally, Window, tally, tally_where};
use crate::trace::{AnyValue, Rounding};

/// What the numbers of a tensor are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// From 0 to 1; the rows sum to 1.
    Probability,
    /// Of either sign.
    #[default]
    Signed,
    /// From 0 up: exponentials, their sums, variances.
    Positive,
}

/// Cells up to which a tensor is read at once, and all that a frame reads so: a fraction of a millisecond.
pub const AT_ONCE: usize = 1 << 15;
/// Parts of a range that cells are counted in.
pub const BINS: usize = 16;
/// Pictures that are kept.
const PICTURES: usize = 512;

/// Where a tensor is.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The session.
    pub session: &'a Arc<Session>,
    /// The run.
    pub run: usize,
    /// The node.
    pub node: NodeId,
    /// What every step is rounded to, where it is.
    pub round: Option<Rounding>,
    /// Whether long work goes on in the background.
    pub live: bool,
}

type Key = (usize, NodeId, Option<Rounding>);

/// Which cells of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// All.
    Whole,
    /// Those of one head.
    Head(usize),
    /// Two axes.
    Plane(Window),
}

type Slots<K, T> = RefCell<HashMap<K, Slot<T>>>;

/// The caches of a session.
#[derive(Default)]
pub struct Measures {
    of: RefCell<Weak<Session>>,
    tallies: Slots<(Key, Part), Tally>,
    pyramids: Slots<(Key, Window), Pyramid>,
    pictures: Slots<(Key, Window, usize, usize), Vec<Tally>>,
    heads: Slots<(Key, Window), HeadFacts>,
    spreads: Slots<(Key, Window), Vec<u64>>,
    rows: Slots<(Key, Option<NodeId>), RowFacts>,
    lenses: Slots<Key, LensTable>,
    similar: Slots<Key, Similar>,
    medians: Slots<usize, Medians>,
    waiting: Cell<bool>,
    /// Cells that were read at once for this frame.
    read: Cell<usize>,
}

impl Measures {
    /// A frame is drawn: what it reads at once is counted from here.
    pub fn begin_frame(&self) {
        self.read.set(0);
    }

    /// Whether a frame may still read `cells` at once. Many tensors that are small alone (the heads of a layer) are as
    /// much to read as a large one.
    fn affords(&self, cells: usize) -> bool {
        let read = self.read.get().saturating_add(cells);
        let affords = read <= AT_ONCE;
        if affords {
            self.read.set(read);
        }
        affords
    }

    fn is_of(&self, session: &Arc<Session>) -> bool {
        std::ptr::eq(self.of.borrow().as_ptr(), Arc::as_ptr(session))
    }

    /// What is kept belongs to one session: with another one everything begins anew.
    fn of_session(&self, session: &Arc<Session>) {
        if self.is_of(session) {
            return;
        }
        *self.of.borrow_mut() = Arc::downgrade(session);
        self.tallies.borrow_mut().clear();
        self.pyramids.borrow_mut().clear();
        self.pictures.borrow_mut().clear();
        self.heads.borrow_mut().clear();
        self.spreads.borrow_mut().clear();
        self.rows.borrow_mut().clear();
        self.lenses.borrow_mut().clear();
        self.similar.borrow_mut().clear();
        self.medians.borrow_mut().clear();
        self.waiting.set(false);
    }

    /// Whether something requested is still being read. Polled once a tick.
    pub fn is_waiting(&self) -> bool {
        self.waiting.replace(false)
    }

    /// Range and counts of a part of a tensor; `None` while it is being read, or where there is no such value.
    pub fn tally(&self, of: Origin<'_>, part: Part) -> Option<Tally> {
        let n = match part {
            Part::Plane(w) => w.rows * w.cols,
            _ => of.len(),
        };
        let made = self.get(&self.tallies, (of.key(), part), of, n, move |o| match part {
            Part::Whole => o.with(|value, mask| kept::whole(o.shelf(n), o.live, value, mask)),
            Part::Head(head) => o.with(|value, mask| {
                let shape = *value.shape();
                let axis = shape.axes().iter().position(|a| matches!(a, Axis::Head | Axis::KvHead));
                match axis.map(|a| (shape.strides()[a], shape.dims()[a])) {
                    Some((stride, n)) => tally_where(value, mask, |i| i / stride % n == head),
                    None => tally(value, mask),
                }
            }),
            Part::Plane(window) => o.pyramid(window).map(|p| p.whole()),
        });
        made.map(|t| *t)
    }

    /// The pyramid of a plane; `None` while it is being built.
    pub fn pyramid(&self, of: Origin<'_>, window: Window) -> Option<Arc<Pyramid>> {
        let n = window.rows * window.cols;
        self.get(&self.pyramids, (of.key(), window), of, n, move |o| o.pyramid(window))
    }

    /// What a head of attention does; `None` while its weights are being read.
    pub fn heads(&self, of: Origin<'_>, window: Window) -> Option<Arc<HeadFacts>> {
        let n = window.rows * window.cols;
        self.get(&self.heads, (of.key(), window), of, n, move |o| o.with(|v, m| HeadFacts::read(v, m, window)))
    }

    /// How many cells of a plane are in each of [`BINS`] equal parts of its range; `None` while they are counted.
    pub fn spread(&self, of: Origin<'_>, window: Window) -> Option<Arc<Vec<u64>>> {
        let n = window.rows * window.cols;
        self.get(&self.spreads, (of.key(), window), of, n, move |o| {
            o.with(|value, mask| {
                let pyramid = kept::pyramid(o.shelf(n), o.live, value, mask, window);
                let (min, max) = pyramid.whole().range().unwrap_or_default();
                let mut counts = vec![0; BINS];
                for row in 0..window.rows {
                    for col in 0..window.cols {
                        let flat = window.flat(row, col);
                        let x = value.get(flat);
                        if x.is_finite() && !mask.has(flat) {
                            let share = if max > min { (x - min) / (max - min) } else { 0.0 };
                            counts[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
                        }
                    }
                }
                counts
            })
        })
    }

    /// Norms of the rows of a tensor, and their cosines with those of `before`; `None` while they are being read.
    pub fn rows(&self, of: Origin<'_>, before: Option<NodeId>) -> Option<Arc<RowFacts>> {
        let n = of.len() * if before.is_some() { 2 } else { 1 };
        self.get(&self.rows, (of.key(), before), of, n, move |o| {
            let other = before.and_then(|id| Owned { node: id, ..o.clone() }.with(|v, _| v.clone()));
            o.with(|value, _| RowFacts::read(value, other.as_ref()))
        })
    }

    /// What the output head would say after each stage of the residual stream; `None` while it is computed. `of` is the
    /// tensor of probabilities (or logits).
    pub fn lens(&self, of: Origin<'_>, way: &Way) -> Option<Arc<LensTable>> {
        // Exact numbers, whatever is shown: what is rounded each step has no head of its own.
        let of = Origin { round: None, ..of };
        let work = way.cost(&of.session.runs[of.run].program, of.node);
        let way = way.clone();
        self.get(&self.lenses, of.key(), of, work, move |o| {
            LensTable::compute(o.session.trace(o.run).ok()?, o.node, &way)
        })
    }

    /// Products of the rows of a plane with each other, and of those of `beside`, of the same shape; `None` while they
    /// are computed.
    pub fn similar(&self, of: Origin<'_>, window: Window, beside: Option<NodeId>) -> Option<Arc<Similar>> {
        let n = window.rows.min(COMPARED).pow(2) * window.cols;
        self.get(&self.similar, of.key(), of, n, move |o| {
            let other = beside.and_then(|id| Owned { node: id, ..o.clone() }.with(|v, _| v.clone()));
            o.with(|value, _| Similar::read(value, window, other.as_ref()))
        })
    }

    /// How long the ops of a run take; `None` while it is measured.
    pub fn medians(&self, of: Origin<'_>) -> Option<Arc<Medians>> {
        let of = Origin { round: None, ..of };
        self.get(&self.medians, of.run, of, usize::MAX, move |o| Medians::measure(&o.session, o.run))
    }

    /// A picture of a plane: the tally of each of `rows` × `cols` parts of nearly the same size; `None` while its cells
    /// are being read.
    pub fn picture(&self, of: Origin<'_>, window: Window, rows: usize, cols: usize) -> Option<Arc<Vec<Tally>>> {
        let key = (of.key(), window, rows, cols);
        if self.pictures.borrow().len() >= PICTURES && !self.pictures.borrow().contains_key(&key) {
            self.pictures.borrow_mut().clear();
        }
        // What was made before the pyramid was let go stays.
        let known = self.pictures.borrow().get(&key).map(Slot::look);
        if let Some(Seen::Made(made)) = known.filter(|_| self.is_of(of.session)) {
            return Some(made);
        }
        let pyramid = self.pyramid(of, window)?;
        self.get(&self.pictures, key, of, window.rows * window.cols, move |o| {
            o.with(|value, mask| {
                let of = |r: usize, c: usize| {
                    pyramid.rect(value, mask, part(window.rows, r, rows), part(window.cols, c, cols))
                };
                (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))).map(|(r, c)| of(r, c)).collect()
            })
        })
    }

    /// Something else than what is kept here is being read: it is requested again at the next tick.
    pub fn wait(&self) {
        self.waiting.set(true);
    }

    fn get<K: Eq + Hash + Copy, T: Send + Sync + 'static>(
        &self,
        slots: &Slots<K, T>,
        key: K,
        of: Origin<'_>,
        cells: usize,
        make: impl FnOnce(&Owned) -> Option<T> + Send + 'static,
    ) -> Option<Arc<T>> {
        self.of_session(of.session);
        // A run that goes on is not waited for: what it has not computed yet is requested again.
        if !of.is_there() {
            self.waiting.set(of.session.progress(of.run).is_some());
            return None;
        }
        let mut slots = slots.borrow_mut();
        let slot = match slots.entry(key) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(place) => {
                let owned = of.owned();
                place.insert(Slot::new(of.live && !self.affords(cells), move || make(&owned))?)
            }
        };
        let seen = slot.look();
        if matches!(seen, Seen::Coming) {
            self.waiting.set(true);
        }
        seen.made()
    }
}

/// Part `i` of `of` nearly equal parts of `n`: what a pixel of a picture shows.
pub fn part(n: usize, i: usize, of: usize) -> Range<usize> {
    let at = |i: usize| (n as u128 * i as u128 / of as u128) as usize;
    at(i)..at(i + 1)
}

impl Origin<'_> {
    fn key(&self) -> Key {
        (self.run, self.node, self.round)
    }

    fn is_there(&self) -> bool {
        self.round.is_some() || self.session.trace(self.run).is_ok_and(|trace| trace.reached(self.node))
    }

    fn len(&self) -> usize {
        self.session.runs[self.run].program.node(self.node).shape.len()
    }

    fn owned(&self) -> Owned {
        let Origin { session, run, node, round, live } = *self;
        Owned { session: Arc::clone(session), run, node, round, live }
    }

    /// Which cells are masked.
    pub fn mask(&self) -> Mask {
        self.owned().with(|_, mask| mask.clone()).unwrap_or_default()
    }
}

/// An [`Origin`] that a thread can take along.
#[derive(Clone)]
struct Owned {
    session: Arc<Session>,
    run: usize,
    node: NodeId,
    round: Option<Rounding>,
    live: bool,
}

impl Owned {
    /// Where what is found out about `cells` of its cells is kept; `None` where they are few, or not from a file.
    fn shelf(&self, cells: usize) -> Option<Shelf> {
        if self.round.is_some() || cells <= AT_ONCE {
            return None;
        }
        let scores = mask_scores(&self.session.runs[self.run].program, self.node);
        kept::shelf(&self.session, self.run, self.node, scores)
    }

    fn pyramid(&self, window: Window) -> Option<Pyramid> {
        let shelf = self.shelf(window.rows * window.cols);
        self.with(|value, mask| kept::pyramid(shelf, self.live, value, mask, window))
    }

    /// Calls `f` with the value and the mask; `None` where the run did not get there.
    fn with<T>(&self, f: impl FnOnce(&AnyValue, &Mask) -> T) -> Option<T> {
        let program = &self.session.runs[self.run].program;
        let scores = mask_scores(program, self.node);
        let read = |id: NodeId| -> Option<AnyValue> {
            match self.round {
                None => self.session.trace(self.run).ok()?.get(id),
                Some(rounding) => self.session.rounded(self.run, rounding).ok()?.get(id),
            }
        };
        let value = read(self.node)?;
        let mask = scores.and_then(read).map_or_else(Mask::none, |s| Mask::below(s, MASKED_BELOW));
        Some(f(&value, &mask))
    }
}

/// The masked scores that say which cells of a node are masked: the node itself, or those that its softmax reads.
pub fn mask_scores(program: &Program, node: NodeId) -> Option<NodeId> {
    let is_masked = |id: NodeId| matches!(program.node(id).name.last(), Role::MaskedScores | Role::MaskBias);
    if is_masked(node) {
        return Some(node);
    }
    let n = program.node(node);
    let ScopeKind::Softmax { input, .. } = program.scope(n.scope).kind else {
        return None;
    };
    // Exponentials, shifted scores and weights: one for each score.
    (is_masked(input) && program.node(input).shape.same_dims(&n.shape)).then_some(input)
}

/// What the numbers of a node are.
pub fn kind(program: &Program, node: NodeId) -> Kind {
    let n = program.node(node);
    if n.name.is_gradient() || matches!(n.op, Op::Leaf(Leaf::Parameter)) {
        return Kind::Signed;
    }
    let role = n.name.last();
    match (role.part(), role) {
        (RolePart::Softmax, Role::Weights)
        | (RolePart::Output, Role::Probs | Role::PredictedProbs | Role::TargetProbs)
        | (RolePart::Decoding, Role::TargetProb) => Kind::Probability,
        (RolePart::Softmax, Role::Exp | Role::Sum) | (RolePart::Norm, Role::Var | Role::MeanSquare) => Kind::Positive,
        (
            RolePart::Block
            | RolePart::Parameter
            | RolePart::Queries
            | RolePart::Keys
            | RolePart::QueryNorm
            | RolePart::KeyNorm
            | RolePart::QueriesOfScores
            | RolePart::KeysOfScores
            | RolePart::Scores
            | RolePart::Mask
            | RolePart::Softmax
            | RolePart::Context
            | RolePart::Norm
            | RolePart::FeedForward
            | RolePart::Residual
            | RolePart::Embedding
            | RolePart::Position
            | RolePart::Output
            | RolePart::Decoding
            | RolePart::Optimiser
            | RolePart::Arithmetic
            | RolePart::Unlisted,
            _,
        ) => Kind::Signed,
    }
}
