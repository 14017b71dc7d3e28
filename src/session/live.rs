//! A run that goes on in a thread: how far it is, what it has computed so far, and how to stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::Session;
use crate::program::{NodeId, Program, cost};
use crate::tensor::{Precision, Real, Value};
use crate::trace::{AnyTrace, Flow, RunError, Sink, Trace};

/// Parts of a run that are shown while it goes on, at most.
const PARTS: usize = 32;

/// Time that whoever asks first waits: most runs end in it, and nothing flickers.
const PATIENCE: Duration = Duration::from_millis(40);

/// A run as it goes on.
#[derive(Debug, Default)]
pub(super) struct Live {
    begun: OnceLock<Instant>,
    ended: AtomicBool,
    stop: AtomicBool,
    /// Work done and in all, as [`weight`] counts it.
    done: AtomicU64,
    all: AtomicU64,
    parts: [OnceLock<AnyTrace>; PARTS],
    /// What the same run computed before an edit; what cannot have changed is taken from it.
    pub(super) donor: Mutex<Option<AnyTrace>>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Share of the work that is done, from 0 to 1.
    pub share: f64,
    /// Time that the rest will take; `None` where it is too early to say.
    pub left: Option<Duration>,
}

impl Live {
    fn is_running(&self) -> bool {
        self.begun.get().is_some() && !self.ended.load(Ordering::Acquire)
    }

    /// What is computed so far.
    fn part(&self) -> Option<&AnyTrace> {
        self.parts.iter().rev().find_map(OnceLock::get)
    }
}

/// Work of a node: arithmetic, and a little for each node.
fn weight(program: &Program, id: NodeId, precision: Precision) -> u64 {
    let cost = cost(program, id, precision);
    cost.flops + cost.read / 4 + 1_000
}

/// Work of a run, as [`weight`] counts it, from which on an edit does not wait for it.
const LONG: u64 = 1 << 26;

/// Counts the work of a run and publishes what is computed.
pub(super) struct Watching<'a> {
    live: &'a Live,
    precision: Precision,
    /// Share of the work after which the next part is published.
    next: f64,
}

impl<'a> Watching<'a> {
    pub(super) fn new(live: &'a Live, program: &Program, precision: Precision) -> Self {
        let all = program.nodes().map(|(id, _)| weight(program, id, precision)).sum();
        live.all.store(all, Ordering::Relaxed);
        Self { live, precision, next: 0.0 }
    }
}

impl<T: Real> Sink<T> for Watching<'_> {
    fn node(&mut self, program: &Program, id: NodeId, _: &Value<T>) -> Flow<T> {
        self.live.done.fetch_add(weight(program, id, self.precision), Ordering::Relaxed);
        if self.live.stop.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Go }
    }

    fn kept(&mut self, trace: &Trace<T>, id: NodeId) {
        let all = self.live.all.load(Ordering::Relaxed).max(1);
        let share = self.live.done.load(Ordering::Relaxed) as f64 / all as f64;
        if share < self.next || !self.live.is_running() {
            return;
        }
        if let Some(free) = self.live.parts.iter().find(|part| part.get().is_none()) {
            let _ = free.set(AnyTrace::of(trace.up_to(id)));
            self.next = share + 1.0 / PARTS as f64;
        }
    }
}

/// While it is there, a session waits for its runs.
#[derive(Debug)]
pub struct Patient<'a>(&'a Session);

impl Drop for Patient<'_> {
    fn drop(&mut self) {
        self.0.patient.store(false, Ordering::Relaxed);
    }
}

impl Session {
    /// [`trace`](Self::trace) waits for whole runs until the guard goes, also where runs go on in threads.
    pub fn patiently(&self) -> Patient<'_> {
        self.patient.store(true, Ordering::Relaxed);
        Patient(self)
    }

    /// Lets runs go on in threads from now on: [`trace`](Self::trace) then gives what there is, and does not wait.
    pub fn in_background(self: &Arc<Self>) {
        let _ = self.own.set(Arc::downgrade(self));
    }

    /// Where `before`, or what this session is an edit of, lets its runs go on in threads and has looked at one that takes
    /// long: lets those of this session do so too, which then take from `before` what cannot have changed. Whether it does.
    pub fn carry_in_background(self: &Arc<Self>, before: &Session) -> bool {
        let base = self.base().filter(|base| base.own.get().is_some());
        let looked_at = |s: &Session, name: &str| {
            let run = s.run_named(name)?;
            s.runs[run].trace.get()?.as_ref().ok().cloned()
        };
        let Some(base) = base else { return false };
        let long = |run: &super::Run| {
            let seen = looked_at(before, &run.name).or_else(|| looked_at(base, &run.name));
            seen.is_some()
                && run.program.nodes().map(|(id, _)| weight(&run.program, id, self.precision)).sum::<u64>() >= LONG
        };
        if !self.runs.iter().any(long) {
            return false;
        }
        for run in &self.runs {
            *run.live.donor.lock().unwrap_or_else(PoisonError::into_inner) = looked_at(before, &run.name);
        }
        self.in_background();
        true
    }

    /// Begins run `run` in a thread unless it was, and gives what there is of it.
    pub(super) fn trace_so_far(&self, run: usize) -> Result<&AnyTrace, &RunError> {
        const NOTHING_YET: &RunError = &RunError::Running;
        if self.patient.load(Ordering::Relaxed) {
            return self.finished(run);
        }
        let r = &self.runs[run];
        let own = self.own.get().and_then(std::sync::Weak::upgrade);
        if let Some(own) = own
            && r.live.begun.set(Instant::now()).is_ok()
        {
            let (reported, done) = mpsc::channel();
            thread::spawn(move || {
                let _ = own.finished(run);
                own.runs[run].live.ended.store(true, Ordering::Release);
                // Nobody may wait any more.
                let _ = reported.send(());
            });
            let _ = done.recv_timeout(PATIENCE);
        }
        match r.trace.get() {
            Some(made) => made.as_ref(),
            None => r.live.part().ok_or(NOTHING_YET),
        }
    }

    /// How far run `run` is; `None` where it does not go on.
    pub fn progress(&self, run: usize) -> Option<Progress> {
        let live = &self.runs[run].live;
        let begun = live.begun.get().filter(|_| live.is_running())?;
        let all = live.all.load(Ordering::Relaxed);
        let share = live.done.load(Ordering::Relaxed) as f64 / all.max(1) as f64;
        let spent = begun.elapsed();
        let left = (share > 0.02).then(|| spent.mul_f64((1.0 - share).max(0.0) / share));
        Some(Progress { share: share.min(1.0), left })
    }

    /// The first run that goes on.
    pub fn going(&self) -> Option<usize> {
        self.runs.iter().position(|r| r.live.is_running())
    }

    /// Stops the runs that go on; what they computed stays. `false` where there are none.
    pub fn stop(&self) -> bool {
        let going = self.runs.iter().filter(|r| r.live.is_running());
        going.map(|r| r.live.stop.store(true, Ordering::Relaxed)).count() > 0
    }
}
