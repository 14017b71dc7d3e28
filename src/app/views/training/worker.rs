//! The thread that trains, so that the screen goes on. It owns the trainer; orders come in and news go out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::Instant;

use crate::program::optimiser::Optimiser;
use crate::session::insight::{TrainProbe, probe};
use crate::session::training::TrainSteps;
use crate::session::{AnyBindings, Session};
use crate::tensor::Real;
use crate::text::Msg;
use crate::trace::Bindings;
use crate::trace::train::{Retention, State, Stopped};

/// Probes and states that are kept; beyond, every second one is dropped.
const KEPT: usize = 64;

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// So many updates more.
    Train(u64),
    /// A probe at the model after so many updates.
    Snapshot(u64),
    /// A session over the model after so many updates.
    Open(u64),
}

/// What was done.
#[derive(Debug)]
pub enum News {
    /// An update was made: the loss before it, and the mean time of an update since the order, in seconds.
    Made(f64, f64),
    /// A probe on the way: probes are taken every so many updates.
    Passed(Box<TrainProbe>, u64),
    /// A probe that was ordered.
    Seen(Box<TrainProbe>),
    /// A session that was ordered.
    Opened(u64, Box<Session>),
    /// An order cannot be done; none where no order can be done any more.
    Failed(Option<Order>, Msg),
    /// An order is done with.
    Done(Order),
}

/// A thread at work. Dropping it stops it.
#[derive(Debug)]
pub struct Worker {
    orders: Sender<Order>,
    news: Receiver<News>,
    stop: Arc<AtomicBool>,
    /// Orders not yet done.
    pending: Vec<Order>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The thread sees it after the update that it is at; nobody waits for that.
        self.stop();
    }
}

impl Worker {
    /// Begins to train run `run` of `session` by `rule`. Of the embeddings, `tokens` are looked at.
    pub fn new(session: Arc<Session>, run: usize, rule: Optimiser, tokens: Vec<usize>) -> Self {
        let (orders, taken) = channel();
        let (reported, news) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || {
            let job = Job { session: &session, run, rule: &rule, tokens: &tokens, news: &reported, stop: &stopped };
            match &session.params {
                AnyBindings::F32(b) => job.work(b, AnyBindings::F32, &taken),
                AnyBindings::F64(b) => job.work(b, AnyBindings::F64, &taken),
            }
        });
        Self { orders, news, stop, pending: Vec::new() }
    }

    /// Orders something.
    pub fn order(&mut self, order: Order) {
        if matches!(order, Order::Train(_)) {
            self.stop.store(false, Ordering::Relaxed);
        }
        if self.orders.send(order).is_ok() {
            self.pending.push(order);
        }
    }

    /// Whether an order is not yet done.
    pub fn is_pending(&self, order: Order) -> bool {
        self.pending.contains(&order)
    }

    /// Whether anything is not yet done.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether updates are being made.
    pub fn is_training(&self) -> bool {
        self.pending.iter().any(|o| matches!(o, Order::Train(_)))
    }

    /// Ends the training that goes on; what is done is kept.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The next news; `wait` waits for them while anything is to be done.
    pub fn news(&mut self, wait: bool) -> Option<News> {
        let news = if wait && self.is_busy() {
            self.news.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            self.news.try_recv()
        };
        match news {
            Ok(news) => {
                if let News::Done(order) = news
                    && let Some(at) = self.pending.iter().position(|o| *o == order)
                {
                    self.pending.remove(at);
                }
                Some(news)
            }
            // The thread is gone: nothing that was ordered will come.
            Err(TryRecvError::Disconnected) if self.is_busy() => {
                self.pending.clear();
                Some(News::Failed(None, Msg::new("training.gone")))
            }
            Err(_) => None,
        }
    }
}

struct Job<'a> {
    session: &'a Session,
    run: usize,
    rule: &'a Optimiser,
    tokens: &'a [usize],
    news: &'a Sender<News>,
    stop: &'a AtomicBool,
}

impl Job<'_> {
    fn work<T: Real>(&self, start: &Bindings<T>, any: fn(Bindings<T>) -> AnyBindings, orders: &Receiver<Order>) {
        let train_steps = || TrainSteps::new(self.session, self.run, self.rule.clone(), None, 0);
        let state = State { update: self.session.updates, values: start.clone() };
        let retention = Retention { every: 1, most: KEPT, ..Retention::default() };
        let mut trainer = train_steps().trainer(state, Vec::new(), retention);
        let mut looking = train_steps();
        // Where nobody listens any more, there is nothing to do either.
        let tell = |news: News| self.news.send(news).is_ok();
        let failed = |order, e: &Stopped| tell(News::Failed(Some(order), e.into()));
        let mut stride = 1;
        let mut passed = 0;
        for order in orders {
            match order {
                Order::Train(updates) => {
                    let began = Instant::now();
                    for done in 1..=updates {
                        if self.stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let at = trainer.state().update;
                        if at.is_multiple_of(stride) {
                            let seen = probe(&mut looking, self.rule, trainer.state().clone(), self.tokens);
                            match seen {
                                Ok(seen) => tell(News::Passed(Box::new(seen), stride)),
                                Err(e) => failed(order, &e),
                            };
                            passed += 1;
                            if passed > KEPT {
                                stride *= 2;
                                passed = passed.div_ceil(2);
                            }
                        }
                        let made = match trainer.step() {
                            Ok(loss) => {
                                let pace = began.elapsed().as_secs_f64() / done as f64;
                                tell(News::Made(loss, pace))
                            }
                            Err(e) => {
                                failed(order, &e);
                                false
                            }
                        };
                        if !made {
                            break;
                        }
                    }
                }
                Order::Snapshot(update) => {
                    let seen =
                        trainer.state_at(update).and_then(|state| probe(&mut looking, self.rule, state, self.tokens));
                    match seen {
                        Ok(seen) => tell(News::Seen(Box::new(seen))),
                        Err(e) => failed(order, &e),
                    };
                }
                Order::Open(update) => {
                    match trainer.state_at(update) {
                        Ok(state) => {
                            let session = self.session.at_update(update, any(state.values));
                            tell(News::Opened(update, Box::new(session)))
                        }
                        Err(e) => failed(order, &e),
                    };
                }
            }
            if !tell(News::Done(order)) {
                return;
            }
        }
    }
}
