//! Executing a session's runs, when they are first looked at.

use std::borrow::Cow;
use std::sync::Arc;

use super::{AnyBindings, Run, Session};
use crate::tensor::Real;
use crate::trace::train::State;
use crate::trace::{AnyTrace, Bindings, RoundedSink, RunError, Settings, Sink, Trace, run_with};

impl Session {
    /// The trace of run `run`.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn trace(&self, run: usize) -> Result<&AnyTrace, &RunError> {
        let r = &self.runs[run];
        r.trace.get_or_init(|| self.execute(run, None)).as_ref()
    }

    /// The trace of run `run` in which every written number was rounded to `digits` decimals before it was used.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn rounded(&self, run: usize, digits: u8) -> Result<Arc<AnyTrace>, RunError> {
        let r = &self.runs[run];
        let mut made = r
            .rounded
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(trace) = made.get(&digits) {
            return Ok(Arc::clone(trace));
        }
        let trace = Arc::new(self.execute(run, Some(digits))?);
        made.insert(digits, Arc::clone(&trace));
        Ok(trace)
    }

    /// What run `run` reads: the parameters, and of an update what its optimiser reads besides.
    pub fn bindings(&self, run: usize) -> Cow<'_, AnyBindings> {
        fn bound<T: Real>(run: &Run, params: &Bindings<T>, updates: u64) -> Option<Bindings<T>> {
            let (lesson, optimiser) = run.lesson.as_ref()?;
            let mut state = State {
                update: updates,
                values: params.clone(),
            };
            lesson.bind(optimiser, &mut state);
            Some(state.values)
        }
        let run = &self.runs[run];
        let own = match &self.params {
            AnyBindings::F64(b) => bound(run, b, self.updates).map(AnyBindings::F64),
            AnyBindings::F32(b) => bound(run, b, self.updates).map(AnyBindings::F32),
        };
        own.map_or(Cow::Borrowed(&self.params), Cow::Owned)
    }

    fn execute(&self, run: usize, round: Option<u8>) -> Result<AnyTrace, RunError> {
        fn go<T: Real>(
            run: &Run,
            bindings: &Bindings<T>,
            sink: &mut impl Sink<T>,
        ) -> Result<Trace<T>, RunError> {
            run_with(&run.program, bindings, &Settings::default(), sink)
        }
        let bindings = self.bindings(run);
        let run = &self.runs[run];
        Ok(match (&*bindings, round) {
            (AnyBindings::F64(b), None) => AnyTrace::F64(go(run, b, &mut ())?),
            (AnyBindings::F64(b), Some(digits)) => {
                AnyTrace::F64(go(run, b, &mut RoundedSink { digits })?)
            }
            (AnyBindings::F32(b), None) => AnyTrace::F32(go(run, b, &mut ())?),
            (AnyBindings::F32(b), Some(digits)) => {
                AnyTrace::F32(go(run, b, &mut RoundedSink { digits })?)
            }
        })
    }
}
