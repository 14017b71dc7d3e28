//! Executing a session's runs, when they are first looked at.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

use super::generation::keep_of;
use super::live::Watching;
use super::{AnyBindings, Run, Session};
use crate::program::NodeId;
use crate::tensor::Real;
use crate::trace::train::State;
use crate::trace::{
    AnyTrace, Bindings, Keep, PinnedSink, Rounder, Rounding, RunError, Settings, Trace, rerun, run_with,
};
use crate::with_any;

impl Session {
    /// The trace of run `run`; where runs go on in threads, what there is of it.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn trace(&self, run: usize) -> Result<&AnyTrace, &RunError> {
        if self.own.get().is_some() {
            return self.trace_so_far(run);
        }
        self.finished(run)
    }

    /// The whole trace of run `run`, however long it takes.
    ///
    /// # Errors
    /// Where it cannot run.
    pub(super) fn finished(&self, run: usize) -> Result<&AnyTrace, &RunError> {
        let r = &self.runs[run];
        let made = r.trace.get_or_init(|| {
            let base = self.base.as_ref().and_then(|b| {
                let run = b.run_named(&r.name)?;
                b.finished(run).ok()
            });
            let before = r.live.donor.lock().unwrap_or_else(PoisonError::into_inner).take();
            let donors: Vec<&AnyTrace> = base.into_iter().chain(&before).collect();
            self.execute(r, self.rounding.map(Rounder::from), &donors)
        });
        made.as_ref()
    }

    /// Brings the value of a node from its file, where run `run` was opened from one.
    pub fn read_ahead(&self, run: usize, node: NodeId) {
        if let Some(Ok(trace)) = self.runs[run].trace.get() {
            trace.read_ahead(node);
        }
    }

    /// The trace of run `run` in which every number was rounded before it was used. To a number type, it is in f32.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn rounded(&self, run: usize, rounding: Rounding) -> Result<Arc<AnyTrace>, RunError> {
        let made = || self.runs[run].rounded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trace) = made().get(&rounding) {
            return Ok(Arc::clone(trace));
        }
        // The lock is not held meanwhile: a thread of the pool that waits for its kernels may take up another rounding.
        let trace = Arc::new(self.rounded_with(run, &rounding.into())?);
        Ok(Arc::clone(made().entry(rounding).or_insert(trace)))
    }

    /// As [`Session::rounded`], where some nodes may keep their numbers; not kept.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn rounded_with(&self, run: usize, rounder: &Rounder) -> Result<AnyTrace, RunError> {
        let r = &self.runs[run];
        if let (Rounding::Type(_), AnyBindings::F64(b)) = (rounder.to, &*self.bindings(run)) {
            let narrow: Bindings<f32> = b.iter().map(|(p, v)| (Arc::clone(p), v.to_f32())).collect();
            let settings = Settings { rounder: Some(rounder.clone()), ..Settings::default() };
            let trace = run_with(&r.program, &narrow, &settings, &mut PinnedSink(&r.held))?;
            return Ok(AnyTrace::F32(trace.with_held(Arc::clone(&r.held))));
        }
        self.execute(r, Some(rounder.clone()), &[])
    }

    /// Whether run `run`, rounded, is at hand; while it is computed it is not.
    pub fn has_rounded(&self, run: usize, rounding: Rounding) -> bool {
        let made = self.runs[run].rounded.try_lock();
        made.is_ok_and(|made| made.contains_key(&rounding))
    }

    /// Run `run` in f64, of the same parameters whatever their type: what there is to compare f32 with. Edits of the
    /// run do not act in it.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn in_f64(&self, run: usize) -> Result<Trace<f64>, RunError> {
        let bindings = match &*self.bindings(run) {
            AnyBindings::F64(b) => b.clone(),
            AnyBindings::F32(b) => b.iter().map(|(p, v)| (Arc::clone(p), v.to_f64())).collect(),
        };
        run_with(&self.runs[run].program, &bindings, &Settings::default(), &mut ())
    }

    /// Runs `run`, taking from `donors` what cannot be another.
    pub(super) fn execute(
        &self,
        run: &Run,
        rounder: Option<Rounder>,
        donors: &[&AnyTrace],
    ) -> Result<AnyTrace, RunError> {
        fn go<T: Real>(
            run: &Run,
            bindings: &Bindings<T>,
            rounder: Option<Rounder>,
            donors: &[&Trace<T>],
            budget: Option<u64>,
        ) -> Result<Trace<T>, RunError> {
            let (program, held) = (&run.program, &run.held);
            let rounds = rounder.is_some();
            let keep = match budget {
                // What is computed again would not be rounded as it was.
                _ if rounds => Keep::All,
                Some(bytes) => Keep::within(program, T::PRECISION, bytes),
                None => keep_of(program, T::PRECISION),
            };
            // Runs that share numbers share memory: what an edit lets go of, the next one takes.
            let pool = donors.first().map_or_else(Arc::default, |donor| Arc::clone(donor.pool()));
            let settings = Settings { keep, pool, rounder, ..Settings::default() };
            if held.is_empty() && (rounds || donors.is_empty()) {
                let mut watching = Watching::new(&run.live, program, T::PRECISION);
                return run_with(program, bindings, &settings, &mut watching);
            }
            if rounds {
                let trace = run_with(program, bindings, &settings, &mut PinnedSink(held))?;
                return Ok(trace.with_held(Arc::clone(held)));
            }
            let mut watching = Watching::new(&run.live, program, T::PRECISION);
            let trace = rerun(program, bindings, held, &settings, donors, &mut watching)?;
            Ok(trace.with_held(Arc::clone(held)))
        }
        Ok(match &*self.bindings_of(run) {
            AnyBindings::F64(b) => {
                let donors: Vec<_> = donors.iter().filter_map(|d| d.f64()).collect();
                AnyTrace::F64(go(run, b, rounder, &donors, self.budget)?)
            }
            AnyBindings::F32(b) => {
                let donors: Vec<_> = donors.iter().filter_map(|d| d.f32()).collect();
                AnyTrace::F32(go(run, b, rounder, &donors, self.budget)?)
            }
        })
    }

    /// Gives memory of numbers that were let go of back to the system.
    pub fn give_back(&self) {
        for made in self.runs.iter().filter_map(|run| run.trace.get()?.as_ref().ok()) {
            with_any!(AnyTrace, made, t => t.pool().give_back());
        }
    }

    /// Runs `run` afresh, keeping nothing; how long each node took, in nanoseconds.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn time(&self, run: usize) -> Result<Vec<u64>, RunError> {
        fn go<T: Real>(run: &Run, bindings: &Bindings<T>) -> Result<Vec<u64>, RunError> {
            let settings = Settings { keep: Keep::only(&run.program, |_| false), ..Settings::default() };
            let trace = run_with(&run.program, bindings, &settings, &mut PinnedSink(&run.held))?;
            Ok(run.program.nodes().map(|(id, _)| trace.nanos(id)).collect())
        }
        let of = &self.runs[run];
        match &*self.bindings_of(of) {
            AnyBindings::F64(b) => go(of, b),
            AnyBindings::F32(b) => go(of, b),
        }
    }

    /// What run `run` reads: the parameters, and of an update what its optimiser reads besides.
    pub fn bindings(&self, run: usize) -> Cow<'_, AnyBindings> {
        self.bindings_of(&self.runs[run])
    }

    fn bindings_of(&self, run: &Run) -> Cow<'_, AnyBindings> {
        fn bound<T: Real>(
            run: &Run,
            params: &Bindings<T>,
            updates: u64,
            rounder: Option<&Rounder>,
        ) -> Option<Bindings<T>> {
            let (train_step, optimiser) = run.train_step.as_ref()?;
            let mut state = State { update: updates, values: params.clone() };
            train_step.bind(optimiser, &mut state);
            // Every batch of the update is all sentences here: what the earlier ones left.
            for _ in 1..optimiser.accumulate {
                train_step.accumulate(&mut state, rounder.cloned()).ok()?;
            }
            Some(state.values)
        }
        let rounder = self.rounding.map(Rounder::from);
        let own = match &self.params {
            AnyBindings::F64(b) => bound(run, b, self.updates, rounder.as_ref()).map(AnyBindings::F64),
            AnyBindings::F32(b) => bound(run, b, self.updates, rounder.as_ref()).map(AnyBindings::F32),
        };
        own.map_or(Cow::Borrowed(&self.params), Cow::Owned)
    }
}
