//! What is known when: at which step of a list each node has been computed, which nodes no step shows, and where a
//! symbol is shown.

use crate::program::{NodeId, Op};
use crate::session::generation::frame_of;
use crate::session::{Session, Steps};

/// An index of a step list.
#[derive(Debug, Default)]
pub struct Timeline {
    /// By run and node: the step that it is computed for; empty for a run that no step is of.
    computed: Vec<Vec<usize>>,
    /// By step: nodes computed on the way to it that no step shows.
    hidden: Vec<Vec<(usize, NodeId)>>,
    /// By step: the decoding call it is of, or that came before.
    frames: Vec<Option<usize>>,
}

/// Of nodes that no step needs.
const NEVER: usize = usize::MAX;

impl Timeline {
    /// Indexes `steps`. A node is computed for the first step that shows it, or shows something made of it.
    pub fn new(session: &Session, steps: &Steps) -> Self {
        let list = steps.list();
        let runs = &session.runs;
        let mut t = Self {
            computed: vec![Vec::new(); runs.len()],
            hidden: vec![Vec::new(); list.len()],
            frames: Vec::with_capacity(list.len()),
        };
        let mut shown: Vec<Vec<bool>> = vec![Vec::new(); runs.len()];
        let mut last = vec![0; runs.len()];
        let mut frames = vec![None; runs.len()];
        for (at, step) in list.iter().enumerate() {
            for view in &step.views {
                let (run, program) = (view.run, &runs[view.run].program);
                if shown[run].is_empty() {
                    shown[run] = vec![false; program.len()];
                    t.computed[run] = vec![NEVER; program.len()];
                }
                shown[run][view.node.index()] = true;
                last[run] = at;
                let computed = &mut t.computed[run];
                let mut wanted = vec![view.node];
                while let Some(node) = wanted.pop() {
                    if computed[node.index()] == NEVER {
                        computed[node.index()] = at;
                        wanted.extend(&program.node(node).inputs);
                    }
                }
            }
            let mut nodes = step.views.iter().map(|v| runs[v.run].program.node(v.node));
            let frame = nodes.find_map(frame_of).or(frames[step.run]);
            frames[step.run] = frame;
            t.frames.push(frame);
        }
        for (run, computed) in t.computed.iter_mut().enumerate() {
            for (i, step) in computed.iter_mut().enumerate() {
                // What no step needs goes with the last one.
                *step = (*step).min(last[run]);
                if !shown[run][i] {
                    t.hidden[*step].push((run, NodeId(i as u32)));
                }
            }
        }
        t
    }

    /// Whether node `node` of run `run` has been computed at step `at`. What is given always has, and so has a run that
    /// the list has no steps of.
    pub fn is_computed(&self, session: &Session, run: usize, node: NodeId, at: usize) -> bool {
        let computed = &self.computed[run];
        computed.is_empty()
            || matches!(session.runs[run].program.node(node).op, Op::Leaf(_))
            || computed[node.index()] <= at
    }

    /// Nodes computed on the way to step `at` that no step shows, with their run, in order.
    pub fn hidden(&self, at: usize) -> &[(usize, NodeId)] {
        self.hidden.get(at).map_or(&[], Vec::as_slice)
    }

    /// The decoding call that step `at` is of; between calls, the one before.
    pub fn frame(&self, at: usize) -> Option<usize> {
        self.frames.get(at).copied().flatten()
    }
}
