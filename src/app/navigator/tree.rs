//! The step list: phases with their steps, and the sub-steps one is in.

use super::Navigator;
use crate::walkthrough::Step;

/// A row of the step list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeRow {
    /// A phase: position of its first step, number of steps, whether folded.
    Phase {
        /// Position of its first step.
        first: usize,
        /// Position of its last step.
        last: usize,
        /// Whether its steps are hidden.
        folded: bool,
    },
    /// A step, by position.
    Step(usize),
    /// A sub-step of the current step: depth and position in its level.
    Inner {
        /// Level, from 1.
        depth: usize,
        /// Position.
        at: usize,
    },
}

impl Navigator {
    /// The rows of the step list, with the row of the current step.
    pub fn tree(&self) -> (Vec<TreeRow>, usize) {
        let list = self.steps.list();
        let mut rows = Vec::new();
        let mut current = 0;
        let mut i = 0;
        while i < list.len() {
            let last = (i..list.len()).take_while(|j| list[*j].phase == list[i].phase).last().unwrap_or(i);
            let folded = self.folded.contains(&i);
            if (i..=last).contains(&self.at) {
                current = rows.len();
            }
            rows.push(TreeRow::Phase { first: i, last, folded });
            if !folded {
                for step in i..=last {
                    if step == self.at {
                        current = rows.len();
                    }
                    rows.push(TreeRow::Step(step));
                    if step == self.at {
                        for (depth, level) in self.inner.iter().enumerate() {
                            for at in 0..level.steps.len() {
                                if depth + 1 == self.inner.len() && at == level.at {
                                    current = rows.len();
                                }
                                rows.push(TreeRow::Inner { depth: depth + 1, at });
                            }
                        }
                    }
                }
            }
            i = last + 1;
        }
        (rows, current)
    }

    /// The step of a row of sub-steps.
    pub fn inner_step(&self, depth: usize, at: usize) -> Option<&Step> {
        self.inner.get(depth.checked_sub(1)?)?.steps.get(at)
    }

    /// Folds or unfolds the phase whose first step is at position `first`.
    pub fn fold(&mut self, first: usize) {
        if !self.folded.remove(&first) {
            self.folded.insert(first);
        }
    }

    /// Folds or unfolds the phase one is in.
    pub fn toggle_fold(&mut self) {
        let list = self.steps.list();
        let Some(phase) = list.get(self.at).map(|s| &s.phase) else {
            return;
        };
        let first = (0..=self.at).rev().take_while(|i| list[*i].phase == *phase).last().unwrap_or(self.at);
        self.fold(first);
    }

    /// Folds or unfolds all phases.
    pub fn fold_all(&mut self, fold: bool) {
        self.folded.clear();
        if fold {
            let list = self.steps.list();
            self.folded = (0..list.len()).filter(|&i| i == 0 || list[i].phase != list[i - 1].phase).collect();
        }
    }
}
