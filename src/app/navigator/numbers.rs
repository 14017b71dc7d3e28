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

/// The steps listed, the step of each node, and the nodes of each step.
type StepsOfNodes = (Arc<Steps>, Arc<Vec<Option<usize>>>, Arc<NodesOfSteps>);

/// The nodes that steps show, or that lead to what they show.
#[derive(Debug, Default)]
pub struct NodesOfSteps {
    /// By step, then in the order in which they are computed.
    nodes: Vec<NodeId>,
    /// Where each step's begin; one more than there are steps.
    starts: Vec<usize>,
}

impl NodesOfSteps {
    fn new(steps: usize, of_nodes: &[Option<usize>]) -> Self {
        let mut all: Vec<(usize, NodeId)> =
            of_nodes.iter().enumerate().filter_map(|(id, step)| Some(((*step)?, NodeId(id as u32)))).collect();
        all.sort_unstable();
        let starts = (0..=steps).map(|step| all.partition_point(|(s, _)| *s < step)).collect();
        Self { nodes: all.into_iter().map(|(_, id)| id).collect(), starts }
    }

    /// Those of the step at a position.
    pub fn of(&self, step: usize) -> &[NodeId] {
        match (self.starts.get(step), self.starts.get(step + 1)) {
            (Some(a), Some(b)) => &self.nodes[*a..*b],
            _ => &[],
        }
    }
}

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
        let (reported, done) = channel();
        let own = Arc::clone(session);
        thread::spawn(move || {
            if own.rounded(run, rounding).is_ok() {
                // Nobody may wait any more.
                let _ = reported.send(());
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
        self.nodes_and_steps(run).1
    }

    /// The nodes of a run that each step shows, or that lead to what it shows first.
    pub fn nodes_of_steps(&self, run: usize) -> Arc<NodesOfSteps> {
        self.nodes_and_steps(run).2
    }

    fn nodes_and_steps(&self, run: usize) -> StepsOfNodes {
        let mut kept = self.numbers.steps.borrow_mut();
        let kept = kept.get_mut(&self.session);
        if let Some(made) = kept.get(&run).filter(|made| Arc::ptr_eq(&made.0, &self.steps)) {
            return made.clone();
        }
        let program = &self.session.runs[run].program;
        let of = program.nodes().map(|(id, _)| step_of(&self.session, &self.steps, run, id));
        let of_nodes: Vec<Option<usize>> = of.collect();
        let nodes = NodesOfSteps::new(self.steps.list().len(), &of_nodes);
        let made = (Arc::clone(&self.steps), Arc::new(of_nodes), Arc::new(nodes));
        kept.insert(run, made.clone());
        made
    }

    /// Where a tensor is that is shown, for its measures.
    pub fn origin(&self, run: usize, node: NodeId) -> Origin<'_> {
        Origin { session: &self.session, run, node, round: self.round(), live: self.numbers.background }
    }

    /// Whether long work goes on in the background: somebody watches.
    pub fn is_live(&self) -> bool {
        self.numbers.background
    }

    /// Range and counts over every cell of a part of a tensor; `None` while it is being read.
    pub fn tally(&self, run: usize, node: NodeId, part: Part) -> Option<Tally> {
        self.numbers.measures.tally(self.origin(run, node), part)
    }
}
