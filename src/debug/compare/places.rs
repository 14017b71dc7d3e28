//! Which numbered step a node belongs to.

use std::sync::Arc;

use super::report::{Place, StepAt};
use crate::program::NodeId;
use crate::session::{Session, Steps};
use crate::trace::derive::Cell;

/// The steps of a run, and of the runs whose nodes it begins with.
pub(super) struct Places<'s> {
    session: &'s Session,
    run: usize,
    lists: Vec<(usize, Arc<Steps>)>,
    /// For each node the first step that shows it, or else what is computed from it.
    first: Vec<Option<StepAt>>,
}

impl<'s> Places<'s> {
    pub(super) fn new(session: &'s Session, run: usize) -> Self {
        let forward = session.forward_of(run).unwrap_or(run);
        let mut places = Self {
            session,
            run,
            lists: (forward..=run).rev().map(|r| (r, session.steps_of(r))).collect(),
            first: Vec::new(),
        };
        let program = &session.runs[run].program;
        let mut first: Vec<Option<StepAt>> = vec![None; program.len()];
        for (id, _) in program.nodes().rev() {
            first[id.index()] = places.shown(id).next().or_else(|| {
                let mut users = program.users(id).iter();
                users.find_map(|user| first[user.index()].clone())
            });
        }
        places.first = first;
        places
    }

    /// The steps that show a node, the run's own first.
    fn shown(&self, node: NodeId) -> impl Iterator<Item = StepAt> + '_ {
        self.lists.iter().flat_map(move |(run, steps)| {
            steps.showing(*run, node).iter().map(|&position| Self::at(*run, steps, position))
        })
    }

    fn at(run: usize, steps: &Steps, position: usize) -> StepAt {
        StepAt { run, position, label: steps.list()[position].label() }
    }

    /// A node at the first step that shows one of `cells`; at the first that shows it where none does.
    pub(super) fn of_cells(&self, node: NodeId, cells: impl Iterator<Item = usize>) -> Place {
        let mut best: Option<StepAt> = None;
        for flat in cells {
            let cell = Cell { node, flat };
            let found =
                (self.lists.iter()).find_map(|(run, steps)| Some((*run, steps, steps.locate(*run, cell, 0)?.step)));
            if let Some((run, steps, position)) = found
                && best.as_ref().is_none_or(|b| b.position > position)
            {
                best = Some(Self::at(run, steps, position));
            }
        }
        self.place(node, best.or_else(|| self.first[node.index()].clone()))
    }

    /// A node at the first step that shows it.
    pub(super) fn of(&self, node: NodeId) -> Place {
        self.place(node, self.first[node.index()].clone())
    }

    /// A node at the last step that shows it and is not after `limit`.
    pub(super) fn before(&self, node: NodeId, limit: Option<&StepAt>) -> Place {
        let fits = |s: &StepAt| limit.is_none_or(|l| l.run == s.run && s.position <= l.position);
        let last = self.shown(node).filter(fits).max_by_key(|s| s.position);
        self.place(node, last.or_else(|| self.first[node.index()].clone()))
    }

    fn place(&self, node: NodeId, step: Option<StepAt>) -> Place {
        Place { node, path: self.session.runs[self.run].program.node(node).path.to_string(), step }
    }
}
