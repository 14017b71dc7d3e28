//! A training run: what was made of it, what was seen on the way, and where one looks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::worker::{News, Order, Worker};
use crate::app::args::Train;
use crate::app::head_facts::{HeadFacts, Pattern};
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::app::view::View;
use crate::app::views::Context;
use crate::program::{Side, Site};
use crate::scenario::schema::Optimiser;
use crate::session::Session;
use crate::session::insight::{Plane, TrainProbe, embedding_table};
use crate::text::{Msg, NumberFormat};

/// Updates where neither the command nor the scenario says how many.
const UPDATES: u64 = 100;
/// Embeddings that are followed.
const MAX_TOKENS: usize = 64;
/// Requested snapshots that are kept next to those on the way.
const MAX_SEEN: usize = 64;

/// One picture of a training run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray)]
pub enum Picture {
    /// Loss.
    Loss,
    /// Norms of the gradients.
    Gradients,
    /// One attention map.
    Attention,
    /// Embeddings on a plane.
    Embeddings,
}

impl Picture {
    /// All of them, in the order they are shown.
    pub const ALL: &[Picture] = <Self as strum::VariantArray>::VARIANTS;
}

/// Where the embeddings lie at each point that was looked at, on the plane of the last one.
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    /// By updates made, one place a token.
    pub places: BTreeMap<u64, Vec<[f64; 2]>>,
    /// Least and greatest of each direction, over all points.
    pub bounds: [(f64, f64); 2],
    /// How many probes it was made of, and the last of them.
    made_of: (usize, u64),
}

/// A head that begins to follow a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// After how many updates it was first seen.
    pub update: u64,
    /// Position of its attention map.
    pub map: usize,
    /// Path of its weights, and the head.
    pub head: (String, usize),
    /// The pattern.
    pub pattern: Pattern,
}

/// A training run that goes on, or was stopped. Updates are made by a thread, and any point of the run can be looked
/// at or opened.
#[derive(Debug, Default)]
pub struct State {
    worker: Option<Worker>,
    /// What is trained, once training was opened.
    session: Option<Arc<Session>>,
    /// The training run of it.
    pub run: Option<usize>,
    /// Its rule.
    pub rule: Optimiser,
    /// The loss before each update.
    pub losses: Vec<f64>,
    /// Updates that are to be made.
    pub goal: u64,
    /// Time that one update takes, in seconds, probes included.
    pub pace: f64,
    /// Where one looks: so many updates are made.
    pub at: u64,
    /// Whether one looks at the newest.
    follow: bool,
    /// Which attention map.
    pub map: usize,
    /// The one picture that has all the room; all of them where none.
    pub only: Option<Picture>,
    /// Tokens whose embeddings are followed.
    pub tokens: Vec<usize>,
    /// Where they lie.
    pub scatter: Scatter,
    /// Heads that begin to follow a pattern, in order.
    pub events: Vec<Event>,
    /// Why there is nothing more.
    pub failed: Option<Msg>,
    /// Probes on the way, every `stride` updates.
    passed: BTreeMap<u64, Arc<TrainProbe>>,
    /// Requested snapshots, oldest first.
    seen: Vec<Arc<TrainProbe>>,
    /// Points that cannot be looked at.
    unseen: BTreeSet<u64>,
    /// The update that will be gone into when it is there.
    opening: Option<u64>,
}

/// The first update at which each head follows a pattern that it did not follow at the start.
fn events(all: &[Arc<TrainProbe>]) -> Vec<Event> {
    let mut known: BTreeSet<(usize, &'static str)> = BTreeSet::new();
    let mut events = Vec::new();
    for (i, probe) in all.iter().enumerate() {
        for (at, map) in probe.look.attention.iter().enumerate() {
            let cols = map.weights.first().map_or(0, Vec::len);
            // The future is masked, which has no weight at all.
            let masked = |r: usize, c: usize| map.weights[r][c] == 0.0;
            let facts = HeadFacts::of(map.weights.len(), cols, &|r, c| map.weights[r][c], &masked);
            let Some((pattern, _)) = facts.pattern.filter(|(p, _)| *p != Pattern::Uniform) else { continue };
            if known.insert((at, pattern.key())) && i > 0 {
                let head = (map.path.clone(), map.head);
                events.push(Event { update: probe.look.update, map: at, head, pattern });
            }
        }
    }
    events
}

impl State {
    /// Updates made.
    pub fn made(&self) -> u64 {
        self.losses.len() as u64
    }

    /// Whether updates are being made.
    pub fn is_training(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::is_training)
    }

    /// Whether news will come.
    pub fn is_busy(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::is_busy)
    }

    /// All that was looked at, by updates made.
    pub fn probes(&self) -> impl Iterator<Item = &Arc<TrainProbe>> {
        let mut all: Vec<_> = self.passed.values().chain(&self.seen).collect();
        all.sort_by_key(|g| g.look.update);
        all.dedup_by_key(|g| g.look.update);
        all.into_iter()
    }

    /// What is known of the current point: a probe there, or the nearest one.
    pub fn probe(&self) -> Option<&Arc<TrainProbe>> {
        self.probes().min_by_key(|g| g.look.update.abs_diff(self.at))
    }

    fn has(&self, update: u64) -> bool {
        self.passed.contains_key(&update) || self.seen.iter().any(|g| g.look.update == update)
    }

    /// Orders a look at the point one is at, where there is none yet.
    fn want(&mut self) {
        let at = self.at;
        if self.failed.is_none() && !self.has(at) && !self.unseen.contains(&at) {
            self.order(Order::Snapshot(at));
        }
    }

    /// What became of the training that was requested up to `asked` updates.
    fn said(&self, asked: u64, number: NumberFormat) -> Msg {
        let key = if self.made() < asked { "training.stopped" } else { "training.done" };
        let loss = |l: Option<&f64>| l.map_or_else(String::new, |l| number.format(*l));
        Msg::new(key)
            .arg("made", self.made())
            .arg("asked", asked)
            .arg("first", loss(self.losses.first()))
            .arg("last", loss(self.losses.last()))
    }

    /// Goes to another point.
    pub(super) fn go(&mut self, to: u64) {
        self.at = to.min(self.made());
        self.follow = self.at == self.made();
    }

    fn order(&mut self, order: Order) {
        if let Some(worker) = self.worker.as_mut().filter(|w| !w.is_pending(order)) {
            worker.order(order);
        }
    }

    fn keep(&mut self, seen: TrainProbe) {
        if self.has(seen.look.update) {
            return;
        }
        if self.seen.len() == MAX_SEEN {
            self.seen.remove(0);
        }
        self.seen.push(Arc::new(seen));
    }

    /// Places the embeddings anew where there are other probes than before.
    fn place(&mut self) {
        let all: Vec<Arc<TrainProbe>> = self.probes().cloned().collect();
        let Some(last) = all.last() else { return };
        let made_of = (all.len(), last.look.update);
        if self.scatter.made_of == made_of {
            return;
        }
        let plane = Plane::of(&last.rows);
        let mut scatter = Scatter { bounds: [(f64::INFINITY, f64::NEG_INFINITY); 2], made_of, ..Scatter::default() };
        for probe in &all {
            let places: Vec<[f64; 2]> = probe.rows.iter().map(|r| plane.project(r)).collect();
            for place in &places {
                for (bound, x) in scatter.bounds.iter_mut().zip(place) {
                    *bound = (bound.0.min(*x), bound.1.max(*x));
                }
            }
            scatter.places.insert(probe.look.update, places);
        }
        self.scatter = scatter;
        self.events = events(&all);
    }

    /// Words of the tokens whose embeddings are followed.
    pub fn followed(&self, nav: &Navigator, token: usize) -> String {
        let session = self.session.as_ref().unwrap_or(&nav.session);
        let program = self.run.map(|r| &session.runs[r].program);
        let table = program.and_then(|p| embedding_table(p).map(|id| p.node(id).name.site));
        let side = table.and_then(Site::side).unwrap_or(Side::Target);
        let words = session.words(side);
        words.word(token as i64)
    }

    /// Makes what the view shows; the first time, a look at the model as it is.
    pub(super) fn show(&mut self, cx: &mut Context<'_>) {
        let base = Arc::clone(cx.nav.base());
        if self.session.as_ref().is_some_and(|s| !Arc::ptr_eq(s, &base)) {
            // The model was edited since: what was trained before is not this model.
            *self = Self::default();
            cx.ui.say(Level::Info, Msg::new("training.edited"));
        }
        if self.run.is_none() && self.failed.is_none() {
            self.begin(&base);
        }
        self.want();
        self.listen(cx, !cx.ui.interactive);
    }

    fn begin(&mut self, session: &Arc<Session>) {
        let Some(run) = session.training_run() else {
            self.failed = Some(Msg::new("train.no_loss"));
            return;
        };
        let settings = session.optimiser_of(run);
        let program = &session.runs[run].program;
        let table = embedding_table(program).map(|id| program.node(id));
        let held = table.map_or(0, |n| n.shape.dims().first().copied().unwrap_or(0));
        let source = table.is_some_and(|n| n.name.site.side() == Some(Side::Source));
        let tokens: Vec<usize> = if held <= MAX_TOKENS {
            (0..held).collect()
        } else {
            // Of a large vocabulary, the words that the sentences have.
            let inputs = &session.runs[run].inputs;
            let read = if source { &inputs.source } else { &inputs.target };
            let ids = read.as_ref().map_or(&[][..], |s| s.ids.as_slice());
            let mut ids: Vec<usize> = ids.iter().map(|id| *id as usize).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.truncate(MAX_TOKENS);
            ids
        };
        *self = Self {
            worker: Some(Worker::new(Arc::clone(session), run, settings.clone(), tokens.clone())),
            session: Some(Arc::clone(session)),
            run: Some(run),
            rule: settings,
            tokens,
            follow: true,
            ..Self::default()
        };
    }

    /// Trains, stops, or begins anew.
    pub(in crate::app) fn train(&mut self, what: Train, cx: &mut Context<'_>) {
        cx.ui.view = View::Training;
        if what == Train::Reset {
            cx.nav.drop_opened();
            *self = Self::default();
        }
        self.show(cx);
        if let Some(why) = &self.failed {
            return cx.ui.say(Level::Error, why.clone());
        }
        match what {
            Train::Reset => {}
            Train::Stop => {
                if !self.end() {
                    cx.ui.say(Level::Info, Msg::new("training.not_going"));
                }
            }
            Train::More(updates) => {
                let own = self.rule.steps;
                let updates = updates.unwrap_or(if own == 0 { UPDATES } else { own });
                self.goal = self.goal.max(self.made()) + updates;
                self.follow = true;
                if let Some(worker) = &mut self.worker {
                    worker.order(Order::Train(updates));
                }
                self.listen(cx, !cx.ui.interactive);
            }
        }
    }

    /// Ends the training that goes on, and keeps what is done; false where none goes on.
    pub(super) fn end(&mut self) -> bool {
        let going = self.is_training();
        if let Some(worker) = &self.worker {
            worker.stop();
        }
        going
    }

    /// Takes in what the worker reports; `wait` waits until it has done all.
    pub(super) fn listen(&mut self, cx: &mut Context<'_>, wait: bool) {
        let mut received = false;
        while let Some(news) = self.worker.as_mut().and_then(|worker| worker.news(wait)) {
            received = true;
            self.take(news, cx);
            // While updates are made, probes on the way come by themselves.
            if !self.is_busy() {
                self.want();
            }
        }
        if received {
            self.place();
        }
    }

    fn take(&mut self, news: News, cx: &mut Context<'_>) {
        let t = self;
        match news {
            News::Made(loss, pace) => {
                t.losses.push(loss);
                t.pace = pace;
                if t.follow {
                    t.at = t.made();
                }
            }
            News::Passed(probe, stride) => {
                t.passed.insert(probe.look.update, Arc::new(*probe));
                t.passed.retain(|update, _| update.is_multiple_of(stride));
            }
            News::Seen(probe) => t.keep(*probe),
            News::Opened(update, session) => {
                if t.opening.take_if(|u| *u == update).is_some() {
                    t.go_into(update, Arc::new(*session), cx);
                }
            }
            News::Failed(order, why) => {
                if let Some(Order::Snapshot(update)) = order {
                    t.unseen.insert(update);
                }
                t.opening = None;
                cx.ui.say(Level::Error, why);
            }
            News::Done(Order::Train(_)) if !t.is_training() => {
                let asked = t.goal;
                t.goal = t.made();
                let number = cx.ui.settings.digits;
                cx.ui.say(Level::Done, t.said(asked, number));
            }
            News::Done(_) => {}
        }
    }

    /// Opens the update that is made on the model after `made` updates.
    pub(super) fn open(&mut self, made: u64, cx: &mut Context<'_>) {
        if let Some(session) = cx.nav.opened(made) {
            return self.go_into(made, session, cx);
        }
        self.opening = Some(made);
        self.order(Order::Open(made));
        self.listen(cx, !cx.ui.interactive);
    }

    /// The steps of an update become the list.
    fn go_into(&mut self, made: u64, session: Arc<Session>, cx: &mut Context<'_>) {
        let Some(update) = self.run.and_then(|r| session.update_of(r)) else {
            return cx.ui.say(Level::Error, Msg::new("train.no_loss"));
        };
        cx.nav.open_update(made, session, update);
        cx.ui.view = View::Step;
    }

    /// Opens an update, counted from 1, training up to it where it was not reached; none: back to the scenario.
    pub(in crate::app) fn update(&mut self, update: Option<u64>, cx: &mut Context<'_>) {
        let Some(update) = update else {
            return cx.nav.leave_update();
        };
        self.show(cx);
        if let Some(why) = self.failed.clone() {
            return cx.ui.say(Level::Error, why);
        }
        let (made, wanted) = (self.made(), update - 1);
        if wanted > made {
            self.train(Train::More(Some(wanted - made)), cx);
        }
        self.open(wanted, cx);
    }

    /// To another attention map, around.
    pub(super) fn turn_map(&mut self, forward: bool) {
        let maps = self.probe().map_or(0, |g| g.look.attention.len()).max(1);
        self.map = (self.map.min(maps - 1) + if forward { 1 } else { maps - 1 }) % maps;
    }

    /// To another picture: all of them, then each, around.
    pub(super) fn turn_picture(&mut self, forward: bool) {
        let n = Picture::ALL.len();
        let at = self.only.and_then(|o| Picture::ALL.iter().position(|p| *p == o)).map_or(0, |a| a + 1);
        self.only = ((at + if forward { 1 } else { n }) % (n + 1)).checked_sub(1).map(|a| Picture::ALL[a]);
    }
}
