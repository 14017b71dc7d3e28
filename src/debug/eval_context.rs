//! What names denote at a step: the language's view of a session.

use super::expr::{Array, NameFault, Scope};
use super::timeline::Timeline;
use crate::program::NodeId;
use crate::session::locate::{Address, Context, Unlocated, locate};
use crate::session::{Session, Steps};
use crate::text::{Msg, escape};
use crate::trace::AnyValue;
use crate::walkthrough::Step;

/// Where recorded values come from: the session's own runs, or runs that were rounded or edited.
pub trait Values {
    /// The value of a node of a run; `None` where the run did not get there.
    fn value(&self, run: usize, node: NodeId) -> Option<AnyValue>;

    /// Its value before the edits that are in force; `None` where there are none.
    fn unedited(&self, _run: usize, _node: NodeId) -> Option<AnyValue> {
        None
    }
}

impl Values for Session {
    fn value(&self, run: usize, node: NodeId) -> Option<AnyValue> {
        self.trace(run).ok()?.get(node)
    }
}

/// A step of a session, seen by expressions.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// The session.
    pub session: &'a Session,
    /// The steps that are listed.
    pub steps: &'a Steps,
    /// Their index.
    pub timeline: &'a Timeline,
    /// Recorded values.
    pub values: &'a dyn Values,
    /// Which step, by position.
    pub at: usize,
    /// What is on the screen, where that is more than the step itself: a sub-step, a tensor next to the steps. Its symbols come
    /// first.
    pub shown: Option<&'a Step>,
    /// Whether what is computed after this step is unknown, as it is for watches and breakpoints.
    pub past: bool,
    /// The tensor that a condition is about.
    pub it: Option<&'a Address>,
}

impl EvalContext<'_> {
    /// The run of the step.
    pub fn run(&self) -> usize {
        self.steps.list().get(self.at).map_or(0, |s| s.run)
    }

    /// What `name` is here; see [`locate`].
    ///
    /// # Errors
    /// Where it is nothing, or nothing yet.
    pub fn find(&self, name: &str) -> Result<Address, NameFault> {
        let computed = |run: usize, node: NodeId| self.timeline.is_computed(self.session, run, node, self.at);
        let context = Context {
            session: self.session,
            steps: self.steps,
            at: self.at,
            run: 0,
            shown: self.shown,
            past: if self.past { Some(&computed) } else { None },
        };
        match locate(name, &context) {
            Ok(found) => Ok(found.address),
            Err(Unlocated::Unknown(near)) => Err(NameFault::Unknown(near)),
            Err(Unlocated::NotYet) => Err(NameFault::NotYet),
        }
    }

    /// The recorded numbers of a target.
    ///
    /// # Errors
    /// Where the run did not get there.
    pub fn array(&self, target: &Address) -> Result<Array, NameFault> {
        let Some(value) = self.values.value(target.run, target.node) else {
            let path = &self.session.runs[target.run].program.node(target.node).path;
            let msg = Msg::new("expr.unreached").arg("name", escape(path));
            return Err(NameFault::Other(msg));
        };
        Ok(Array::of(target.run, target.node, value, &target.part))
    }

    /// What a target was before: before the edits in force; else where its symbol was shown last; else, for what no step
    /// shows, in the decoding call before.
    pub fn previous(&self, target: &Address) -> Option<Array> {
        let Address { run, node, part, .. } = target;
        if let Some(value) = self.values.unedited(*run, *node) {
            return Some(Array::of(*run, *node, value, part));
        }
        let places = self.steps.symbol(&target.name);
        let split = places.partition_point(|(step, _)| *step < self.at);
        if let Some((step, view)) = places[..split].last() {
            let view = &self.steps.list()[*step].views[*view];
            let same = view.run == *run && view.node == *node && view.cells == *part;
            return if same { None } else { self.array(&Address::of_view(view)).ok() };
        }
        let program = &self.session.runs[*run].program;
        let name = &program.node(*node).name;
        let node = program.named(&name.in_call(name.call?.checked_sub(1)?))?;
        self.array(&Address::of_node(self.session, *run, node)?).ok()
    }
}

impl Scope for EvalContext<'_> {
    fn named(&self, name: &str) -> Result<Array, NameFault> {
        self.array(&self.find(name)?)
    }

    fn it(&self) -> Option<Array> {
        self.array(self.it?).ok()
    }

    fn before(&self) -> Option<Array> {
        self.previous(self.it?)
    }
}
