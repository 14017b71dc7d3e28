//! Numbered steps with an index: which step shows a cell, and what it is called there.

use std::collections::HashMap;
use std::sync::Arc;

use super::{RunKind, Session};
use crate::program::NodeId;
use crate::tensor::Slice;
use crate::trace::derive::Cell;
use crate::walkthrough::{Step, expand};

/// Where a cell is shown: step, view of the step, index in the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position of the step in its list.
    pub step: usize,
    /// Position of the view in the step.
    pub view: usize,
    /// Index of the cell in the view.
    pub index: Vec<usize>,
}

/// A list of numbered steps.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    list: Vec<Step>,
    places: HashMap<(usize, NodeId), Vec<usize>>,
}

impl Steps {
    /// Indexes a list.
    pub fn new(list: Vec<Step>) -> Self {
        let mut places: HashMap<(usize, NodeId), Vec<usize>> = HashMap::new();
        for (i, step) in list.iter().enumerate() {
            for view in &step.views {
                let steps = places.entry((view.run, view.node)).or_default();
                if steps.last() != Some(&i) {
                    steps.push(i);
                }
            }
        }
        Self { list, places }
    }

    /// The steps, in order.
    pub fn list(&self) -> &[Step] {
        &self.list
    }

    /// Position of the step with this number.
    pub fn position(&self, number: u32) -> Option<usize> {
        self.list.iter().position(|s| s.number == [number])
    }

    /// The nearest step at or before `from` that shows `cell`, else the first one after.
    pub fn locate(&self, run: usize, cell: Cell, from: usize) -> Option<Place> {
        let steps = self.places.get(&(run, cell.node))?;
        let split = steps.partition_point(|s| *s <= from);
        let near = steps[..split].iter().rev().chain(&steps[split..]);
        near.copied().find_map(|step| {
            let (view, index) = self.list[step].view_of(run, cell)?;
            Some(Place { step, view, index })
        })
    }

    /// `Q1[0][2]`: what a cell is called, seen from step `from`.
    pub fn cell_name(&self, run: usize, cell: Cell, from: usize) -> Option<String> {
        let place = self.locate(run, cell, from)?;
        Some(self.list[place.step].views[place.view].cell_name(&place.index))
    }

    /// What a tensor seen through `slice` is called, seen from step `from`.
    pub fn tensor_name(
        &self,
        run: usize,
        node: NodeId,
        slice: &Slice,
        from: usize,
    ) -> Option<String> {
        let steps = self.places.get(&(run, node))?;
        let split = steps.partition_point(|s| *s <= from);
        let mut views = steps[..split]
            .iter()
            .rev()
            .chain(&steps[split..])
            .flat_map(|s| {
                self.list[*s]
                    .views
                    .iter()
                    .filter(|v| v.run == run && v.node == node)
            });
        let first = views.clone().next()?;
        let same = views.find(|v| v.slice == *slice);
        if same.is_none() && *slice == Slice::all() && !first.slice.is_all() {
            // Only parts of it have names.
            return None;
        }
        Some(same.unwrap_or(first).symbol.clone())
    }
}

impl Session {
    /// Numbered steps of one run: those of the walkthrough, else an automatic plan.
    pub fn steps_of(&self, run: usize) -> Arc<Steps> {
        let mut made = self
            .run_steps
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let steps = made.entry(run).or_insert_with(|| {
            let own: Vec<Step> = self
                .steps
                .list()
                .iter()
                .filter(|s| s.run == run)
                .cloned()
                .collect();
            Arc::new(Steps::new(if own.is_empty() {
                self.plan_of(run)
            } else {
                own
            }))
        });
        Arc::clone(steps)
    }

    /// The sub-step at `path` (`[40, 1]`), or the whole step (`[40]`).
    pub fn step_at(&self, steps: &Steps, path: &[u32]) -> Option<Step> {
        let mut step = steps.list().get(steps.position(*path.first()?)?)?.clone();
        for part in &path[1..] {
            let inner = expand(&self.runs[step.run].program, &step);
            step = inner.into_iter().nth((*part as usize).checked_sub(1)?)?;
        }
        Some(step)
    }

    /// What a cell is called in `steps`, seen from step `from`; a forward cell of a backward run may be named by the
    /// walkthrough of its forward run, whose nodes it shares.
    pub fn cell_name(&self, steps: &Steps, run: usize, cell: Cell, from: usize) -> Option<String> {
        steps.cell_name(run, cell, from).or_else(|| {
            let forward = self.forward_of(run)?;
            self.steps.cell_name(forward, cell, usize::MAX)
        })
    }

    /// What a tensor is called in `steps`; else the end of its path.
    pub fn tensor_name(
        &self,
        steps: &Steps,
        run: usize,
        node: NodeId,
        slice: &Slice,
        from: usize,
    ) -> String {
        let forward = || {
            self.steps
                .tensor_name(self.forward_of(run)?, node, slice, usize::MAX)
        };
        steps
            .tensor_name(run, node, slice, from)
            .or_else(forward)
            .unwrap_or_else(|| {
                let path = &self.runs[run].program.node(node).path;
                let mut parts: Vec<&str> = path.rsplit('.').take(2).collect();
                parts.reverse();
                parts.join(".")
            })
    }

    /// The forward run whose nodes a backward run begins with.
    pub fn forward_of(&self, run: usize) -> Option<usize> {
        (self.runs[run].kind == RunKind::Backward).then(|| run - 1)
    }
}
