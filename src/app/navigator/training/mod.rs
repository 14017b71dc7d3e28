//! Training on the screen: updates are made by a thread of its own, and any point of the run can be looked at or
//! opened.

mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Navigator;
use crate::app::action::Action;
use crate::app::asked::Train;
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::app::view::View;
use crate::program::{Side, Site};
use crate::scenario::schema::Optimiser;
use crate::session::Session;
use crate::session::insight::{Plane, TrainProbe, embedding_table};
use crate::session::training::optimiser;
use crate::text::{Msg, NumberFormat};

use worker::{News, Order, Worker};

/// Updates where neither the command nor the scenario says how many.
const UPDATES: u64 = 100;
/// Embeddings that are followed.
const MAX_TOKENS: usize = 64;
/// Glances kept beside those on the way: places that one stopped at.
const MAX_SEEN: usize = 64;
/// Opened updates that are kept for the way back.
const MAX_OPENED: usize = 8;

/// One picture of a training run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub const ALL: [Picture; 4] = [Picture::Loss, Picture::Gradients, Picture::Attention, Picture::Embeddings];
}

/// Where the embeddings lie at each point that was looked at, on the plane of the last one.
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    /// By updates made, one place a token.
    pub places: BTreeMap<u64, Vec<[f64; 2]>>,
    /// Least and greatest of each direction, over all points.
    pub bounds: [(f64, f64); 2],
    /// How many glances it was made of, and the last of them.
    made_of: (usize, u64),
}

/// A training run that goes on, or was stopped.
#[derive(Debug, Default)]
pub struct Training {
    worker: Option<Worker>,
    /// What is trained, once it was asked for.
    session: Option<Arc<Session>>,
    /// The training run of it.
    pub run: Option<usize>,
    /// Its rule.
    pub rule: Optimiser,
    /// The loss before each update.
    pub losses: Vec<f64>,
    /// Updates that are to be made.
    pub goal: u64,
    /// Time that one update takes, in seconds, glances included.
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
    /// Why there is nothing more.
    pub failed: Option<Msg>,
    /// Glances on the way, every `stride` updates.
    passed: BTreeMap<u64, Arc<TrainProbe>>,
    /// Glances that were asked for, oldest first.
    seen: Vec<Arc<TrainProbe>>,
    /// Points that cannot be looked at.
    unseen: BTreeSet<u64>,
    opened: Vec<(u64, Arc<Session>)>,
    /// The update that will be gone into when it is there.
    opening: Option<u64>,
}

impl Training {
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
    pub fn glances(&self) -> impl Iterator<Item = &Arc<TrainProbe>> {
        let mut all: Vec<_> = self.passed.values().chain(&self.seen).collect();
        all.sort_by_key(|g| g.look.update);
        all.dedup_by_key(|g| g.look.update);
        all.into_iter()
    }

    /// What is known of the point one looks at: a glance there, or the nearest one.
    pub fn glance(&self) -> Option<&Arc<TrainProbe>> {
        self.glances().min_by_key(|g| g.look.update.abs_diff(self.at))
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

    /// What became of the training that was asked for up to `asked` updates.
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
    fn go(&mut self, to: u64) {
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

    /// Places the embeddings anew where there are other glances than before.
    fn place(&mut self) {
        let all: Vec<Arc<TrainProbe>> = self.glances().cloned().collect();
        let Some(last) = all.last() else { return };
        let made_of = (all.len(), last.look.update);
        if self.scatter.made_of == made_of {
            return;
        }
        let plane = Plane::of(&last.rows);
        let mut scatter = Scatter { bounds: [(f64::INFINITY, f64::NEG_INFINITY); 2], made_of, ..Scatter::default() };
        for glance in &all {
            let places: Vec<[f64; 2]> = glance.rows.iter().map(|r| plane.project(r)).collect();
            for place in &places {
                for (bound, x) in scatter.bounds.iter_mut().zip(place) {
                    *bound = (bound.0.min(*x), bound.1.max(*x));
                }
            }
            scatter.places.insert(glance.look.update, places);
        }
        self.scatter = scatter;
    }
}

impl Navigator {
    /// The training run of the screen.
    pub fn training(&self) -> &Training {
        &self.training
    }

    /// Words of the tokens whose embeddings are followed.
    pub fn followed(&self, token: usize) -> String {
        let t = &self.training;
        let session = t.session.as_ref().unwrap_or(&self.session);
        let program = t.run.map(|r| &session.runs[r].program);
        let table = program.and_then(|p| embedding_table(p).map(|id| p.node(id).name.site));
        let side = table.and_then(Site::side).unwrap_or(Side::Target);
        let words = session.words(side);
        words.word(token as i64)
    }

    /// Makes what the training view shows; the first time, a look at the model as it is.
    pub(super) fn show_training(&mut self, ui: &mut Ui) {
        let other = |s: &Arc<Session>| !Arc::ptr_eq(s, &self.session);
        if self.update.is_none() && self.training.session.as_ref().is_some_and(other) {
            // The model was edited since: what was learned before is not its own.
            self.training = Training::default();
            ui.say(Level::Info, Msg::new("training.edited"));
        }
        if self.training.run.is_none() && self.training.failed.is_none() {
            self.begin_training();
        }
        self.training.want();
        self.hear(ui, !self.live);
    }

    fn begin_training(&mut self) {
        let session = Arc::clone(match self.update {
            None => &self.session,
            Some(_) => &self.base,
        });
        let Some(run) = session.training_run() else {
            self.training.failed = Some(Msg::new("train.no_loss"));
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
        let rule = optimiser(&settings);
        self.training = Training {
            worker: Some(Worker::new(Arc::clone(&session), run, rule, tokens.clone())),
            session: Some(session),
            run: Some(run),
            rule: settings,
            tokens,
            follow: true,
            ..Training::default()
        };
    }

    /// Trains, stops, or begins anew.
    pub(super) fn train(&mut self, what: Train, ui: &mut Ui) {
        ui.view = View::Training;
        if what == Train::Reset {
            self.leave_update();
            self.training = Training::default();
        }
        self.show_training(ui);
        if let Some(why) = &self.training.failed {
            let why = why.clone();
            return ui.say(Level::Error, why);
        }
        match what {
            Train::Reset => {}
            Train::Stop => {
                if !self.stop_training() {
                    ui.say(Level::Info, Msg::new("training.not_going"));
                }
            }
            Train::More(updates) => {
                let own = self.training.rule.steps as u64;
                let updates = updates.unwrap_or(if own == 0 { UPDATES } else { own });
                let t = &mut self.training;
                t.goal = t.goal.max(t.made()) + updates;
                t.follow = true;
                if let Some(worker) = &mut t.worker {
                    worker.order(Order::Train(updates));
                }
                self.hear(ui, !self.live);
            }
        }
    }

    /// Ends the training that goes on, and keeps what is done; false where none goes on.
    pub fn stop_training(&mut self) -> bool {
        let going = self.training.is_training();
        if let Some(worker) = &self.training.worker {
            worker.stop();
        }
        going
    }

    /// Takes in what the worker has to tell; `wait` waits until it has done all.
    pub fn hear(&mut self, ui: &mut Ui, wait: bool) {
        let mut heard = false;
        while let Some(news) = self.training.worker.as_mut().and_then(|worker| worker.news(wait)) {
            heard = true;
            self.take(news, ui);
            // While updates are made, glances on the way come by themselves.
            if !self.training.is_busy() {
                self.training.want();
            }
        }
        if heard {
            self.training.place();
        }
    }

    fn take(&mut self, news: News, ui: &mut Ui) {
        let t = &mut self.training;
        match news {
            News::Made(loss, pace) => {
                t.losses.push(loss);
                t.pace = pace;
                if t.follow {
                    t.at = t.made();
                }
            }
            News::Passed(glance, stride) => {
                t.passed.insert(glance.look.update, Arc::new(*glance));
                t.passed.retain(|update, _| update.is_multiple_of(stride));
            }
            News::Seen(glance) => t.keep(*glance),
            News::Opened(update, session) => {
                let session = Arc::new(*session);
                if t.opened.len() == MAX_OPENED {
                    t.opened.remove(0);
                }
                t.opened.push((update, Arc::clone(&session)));
                if t.opening.take_if(|u| *u == update).is_some() {
                    self.go_into(update, session, ui);
                }
            }
            News::Failed(order, why) => {
                if let Some(Order::Snapshot(update)) = order {
                    t.unseen.insert(update);
                }
                t.opening = None;
                ui.say(Level::Error, why);
            }
            News::Done(Order::Train(_)) if !t.is_training() => {
                let asked = t.goal;
                t.goal = t.made();
                let number = ui.settings.digits;
                ui.say(Level::Done, t.said(asked, number));
            }
            News::Done(_) => {}
        }
    }

    /// Opens the update that is made on the model after `made` updates.
    fn open_update(&mut self, made: u64, ui: &mut Ui) {
        let opened = self.training.opened.iter().find(|(u, _)| *u == made);
        if let Some(session) = opened.map(|(_, s)| Arc::clone(s)) {
            return self.go_into(made, session, ui);
        }
        self.training.opening = Some(made);
        self.training.order(Order::Open(made));
        self.hear(ui, !self.live);
    }

    /// The steps of an update become the list.
    fn go_into(&mut self, made: u64, session: Arc<Session>, ui: &mut Ui) {
        let Some(update) = self.training.run.and_then(|r| session.update_of(r)) else {
            return ui.say(Level::Error, Msg::new("train.no_loss"));
        };
        self.leave();
        if self.update.is_none() {
            self.base = Arc::clone(&self.session);
        }
        self.look_into(Some(made), session);
        self.choose_run(Some(update));
        ui.view = View::Step;
    }

    /// Back from an opened update to the scenario as it was loaded, if one is in one.
    fn leave_update(&mut self) {
        if self.update.is_some() {
            let base = Arc::clone(&self.base);
            self.look_into(None, base);
            self.choose_run(None);
        }
    }

    /// Goes to the session in which a place was left.
    pub(super) fn return_to(&mut self, update: Option<u64>) {
        if update == self.update {
            return;
        }
        let Some(made) = update else {
            let base = Arc::clone(&self.base);
            return self.look_into(None, base);
        };
        let opened = self.training.opened.iter().find(|(u, _)| *u == made);
        if let Some(session) = opened.map(|(_, s)| Arc::clone(s)) {
            self.look_into(Some(made), session);
        }
    }

    /// Opens an update, counted from 1, training up to it where it was not reached; none: back to the scenario.
    pub(super) fn update_command(&mut self, update: Option<u64>, ui: &mut Ui) {
        let Some(update) = update else {
            return self.leave_update();
        };
        self.show_training(ui);
        if let Some(why) = self.training.failed.clone() {
            return ui.say(Level::Error, why);
        }
        let (made, wanted) = (self.training.made(), update - 1);
        if wanted > made {
            self.train(Train::More(Some(wanted - made)), ui);
        }
        self.open_update(wanted, ui);
    }

    /// What keys do in the training view; false for those that do there what they do elsewhere.
    pub(super) fn in_training(&mut self, action: &Action, ui: &mut Ui) -> bool {
        let t = &mut self.training;
        let maps = t.glance().map_or(0, |g| g.look.attention.len()).max(1);
        match action {
            Action::Left | Action::Prev | Action::PrevTerm => t.go(t.at.saturating_sub(1)),
            Action::Right | Action::Next | Action::NextTerm => t.go(t.at + 1),
            Action::PageUp => t.go(t.at.saturating_sub(10)),
            Action::PageDown => t.go(t.at.saturating_add(10)),
            Action::HalfUp => t.go(t.at.saturating_sub(5)),
            Action::HalfDown => t.go(t.at.saturating_add(5)),
            Action::First | Action::RowStart | Action::Top => t.go(0),
            Action::Last | Action::RowEnd | Action::Bottom => t.go(u64::MAX),
            Action::Up | Action::AxisPrev => t.map = (t.map.min(maps - 1) + maps - 1) % maps,
            Action::Down | Action::AxisNext => t.map = (t.map.min(maps - 1) + 1) % maps,
            Action::NextTable | Action::PrevTable => {
                let n = Picture::ALL.len();
                let at = t.only.and_then(|o| Picture::ALL.iter().position(|p| *p == o));
                // All of them, then each, around.
                let at = at.map_or(0, |a| a + 1);
                let by = if *action == Action::NextTable { 1 } else { n };
                t.only = ((at + by) % (n + 1)).checked_sub(1).map(|a| Picture::ALL[a]);
            }
            Action::Follow => {
                let at = t.at;
                self.open_update(at, ui);
            }
            _ => return false,
        }
        true
    }

    /// One update on while playing; false at the last one.
    pub(super) fn play_training(&mut self) -> bool {
        let t = &mut self.training;
        let more = t.at < t.made();
        t.go(t.at + 1);
        more || t.is_training()
    }
}
