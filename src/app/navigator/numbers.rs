//! The numbers that are shown of a run: exact, or rounded each step; and what is counted of them once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use super::Navigator;
use crate::app::measure::{Measures, Origin, Part};
use crate::app::medians::Medians;
use crate::app::of_session::OfSession;
use crate::program::NodeId;
use crate::session::locate::step_of;
use crate::session::{Session, Steps};
use crate::text::Msg;
use crate::trace::stats::Tally;
use crate::trace::{AnyTrace, Rounding};

/// A trace that is shown.
pub enum TraceRef<'a> {
    /// As computed.
    Exact(&'a AnyTrace),
    /// Rounded each step.
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

/// The steps listed, and the step of each node.
type StepsOfNodes = (Arc<Steps>, Arc<Vec<Option<usize>>>);

/// Whether numbers are rounded, and what was counted of them.
#[derive(Default)]
pub struct Numbers {
    round: Option<Rounding>,
    coming: Option<Coming>,
    /// Steps of the nodes of each run, in the steps that were listed then.
    steps: RefCell<OfSession<HashMap<usize, StepsOfNodes>>>,
    /// Ranges and counts of every cell, pyramids, pictures.
    pub measures: Measures,
    /// Whether long work goes on in a thread.
    background: bool,
}

impl Numbers {
    /// What the shown numbers are rounded to each step.
    pub fn round(&self) -> Option<Rounding> {
        self.round
    }

    /// The trace that is shown of a run.
    pub fn trace<'a>(&self, session: &'a Session, run: usize) -> Option<TraceRef<'a>> {
        match self.round {
            None => session.trace(run).ok().map(TraceRef::Exact),
            Some(rounding) => session.rounded(run, rounding).ok().map(TraceRef::Rounded),
        }
    }

    /// Whether something is being computed or read in the background.
    pub fn is_busy(&self) -> bool {
        self.rounding().is_some() || self.measures.is_waiting()
    }

    /// The rounding of a run that is being computed.
    pub fn rounding(&self) -> Option<Rounding> {
        let coming = self.coming.as_ref()?;
        coming.done.as_ref().map(|_| coming.rounding)
    }

    pub(super) fn round_to(
        &mut self,
        session: &Arc<Session>,
        run: Option<usize>,
        rounding: Option<Rounding>,
        background: bool,
    ) {
        self.background = background;
        let (Some(rounding), Some(run), true) = (rounding, run, background) else {
            self.round = rounding;
            self.coming = None;
            return;
        };
        if session.has_rounded(run, rounding) {
            self.round = Some(rounding);
            self.coming = None;
            return;
        }
        self.round = None;
        match &mut self.coming {
            Some(going) if going.is_of(session, run, rounding) => {
                let news = going.done.as_ref().map(Receiver::try_recv);
                if news == Some(Err(TryRecvError::Disconnected)) {
                    going.done = None;
                }
            }
            _ => self.coming = Some(Coming::begin(session, run, rounding)),
        }
    }
}

/// A rounded run that is being computed.
#[derive(Debug)]
struct Coming {
    session: Arc<Session>,
    run: usize,
    rounding: Rounding,
    /// Hears of the end; gone where the run cannot be computed.
    done: Option<Receiver<()>>,
}

impl Coming {
    fn begin(session: &Arc<Session>, run: usize, rounding: Rounding) -> Self {
        let (told, done) = channel();
        let own = Arc::clone(session);
        thread::spawn(move || {
            if own.rounded(run, rounding).is_ok() {
                // Nobody may wait any more.
                let _ = told.send(());
            }
        });
        Self { session: Arc::clone(session), run, rounding, done: Some(done) }
    }

    fn is_of(&self, session: &Arc<Session>, run: usize, rounding: Rounding) -> bool {
        Arc::ptr_eq(&self.session, session) && (self.run, self.rounding) == (run, rounding)
    }
}

/// How shown numbers are rounded, in words.
pub fn rounded_words(rounding: Rounding) -> Msg {
    match rounding {
        Rounding::Decimals(digits) => Msg::new("tui.rounded").arg("digits", digits),
        Rounding::Type(t) => Msg::new("tui.rounded_type").arg("type", t),
    }
}

/// Cells up to which a table is searched, or copied as text.
pub const MAX_SCANNED: usize = 1 << 16;

impl Navigator {
    /// Mean Euclidean norm of a tensor's rows; `None` while they are read, and where they were not computed.
    pub fn mean_norm(&self, run: usize, node: NodeId) -> Option<f64> {
        let rows = self.numbers.measures.rows(self.origin(run, node), None)?;
        Some(rows.mean_norm(0..rows.norms.len()))
    }

    /// How long the ops of a run take, as the median of several runs; `None` while it is measured.
    pub fn medians(&self, run: usize) -> Option<Arc<Medians>> {
        self.numbers.measures.medians(self.origin(run, NodeId(0)))
    }

    /// The step that shows each node of a run, or the first that shows what comes of it.
    pub fn steps_of_nodes(&self, run: usize) -> Arc<Vec<Option<usize>>> {
        let mut kept = self.numbers.steps.borrow_mut();
        let kept = kept.get_mut(&self.session);
        if let Some((steps, made)) = kept.get(&run)
            && Arc::ptr_eq(steps, &self.steps)
        {
            return Arc::clone(made);
        }
        let program = &self.session.runs[run].program;
        let of = program.nodes().map(|(id, _)| step_of(&self.session, &self.steps, run, id));
        let made: Arc<Vec<Option<usize>>> = Arc::new(of.collect());
        kept.insert(run, (Arc::clone(&self.steps), Arc::clone(&made)));
        made
    }

    /// Where a tensor is that is shown, for its measures.
    pub fn origin(&self, run: usize, node: NodeId) -> Origin<'_> {
        Origin { session: &self.session, run, node, round: self.round(), live: self.numbers.background }
    }

    /// Range and counts over every cell of a part of a tensor; `None` while it is being read.
    pub fn tally(&self, run: usize, node: NodeId, part: Part) -> Option<Tally> {
        self.numbers.measures.tally(self.origin(run, node), part)
    }
}
