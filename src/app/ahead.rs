//! Reading ahead: what the next steps show of a kept run is brought from its file, and its checksum verified, before a key
//! leads there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::navigator::Navigator;
use super::slot::in_background;
use crate::program::NodeId;

/// Steps after and before the one looked at.
const AFTER: usize = 8;
const BEFORE: usize = 3;

/// What is read for the steps around one.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The visit that was read for last: reading for one before it stops.
    visit: Arc<AtomicU64>,
}

impl Ahead {
    /// Reads, in the background, what the steps around the one looked at show and are computed from.
    pub(super) fn follow(&self, nav: &Navigator) {
        if !nav.is_live() || self.visit.swap(nav.arrivals(), Ordering::Relaxed) == nav.arrivals() {
            return;
        }
        let (steps, at) = (nav.steps.list(), nav.position());
        let around = steps.iter().skip(at).take(AFTER).chain(steps[..at.min(steps.len())].iter().rev().take(BEFORE));
        let mut wanted: Vec<(usize, NodeId)> = Vec::new();
        for view in around.flat_map(|step| &step.views) {
            let inputs = &nav.session.runs[view.run].program.node(view.node).inputs;
            wanted.extend([view.node].iter().chain(inputs).map(|node| (view.run, *node)));
        }
        let mut seen = std::collections::HashSet::new();
        wanted.retain(|one| seen.insert(*one));
        let (session, current, visit) = (Arc::clone(&nav.session), Arc::clone(&self.visit), nav.arrivals());
        in_background(move || {
            for (run, node) in wanted {
                if current.load(Ordering::Relaxed) != visit {
                    return;
                }
                session.read_ahead(run, node);
            }
        });
    }
}
