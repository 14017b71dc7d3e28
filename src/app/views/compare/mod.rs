//! Two columns: this run and the reference it was compared with, or exact and rounded numbers.

use std::sync::Arc;

use crate::app::navigator::Navigator;
use crate::app::of_session::OfSession;
use crate::app::views::ViewState;
use crate::debug::compare::{Checked, Mode, Reference, Report};
use crate::program::NodeId;

/// A comparison that was made.
#[derive(Debug)]
pub(in crate::app) struct Compared {
    pub report: Report,
    pub reference: Reference,
}

/// How a node compares.
#[derive(Debug)]
pub struct Standing<'a> {
    /// What the run was compared with.
    pub reference: &'a str,
    /// What each node was computed from.
    pub mode: Mode,
    /// What was found of it.
    pub checked: Option<&'a Checked>,
    /// The reference's cells in our order, where it has the node and the shapes fit.
    pub theirs: Option<Vec<Option<f64>>>,
}

/// What the last comparison of the session found.
#[derive(Debug, Default)]
pub struct State {
    compared: OfSession<Option<Arc<Compared>>>,
}

impl State {
    /// The last comparison.
    pub(in crate::app) fn found(&self, nav: &Navigator) -> Option<&Arc<Compared>> {
        self.compared.get(&nav.session)?.as_ref()
    }

    /// Keeps a comparison.
    pub(in crate::app) fn keep(&mut self, nav: &Navigator, compared: Compared) {
        *self.compared.get_mut(&nav.session) = Some(Arc::new(compared));
    }

    /// How a node compares; `None` where its run was not compared.
    pub fn standing(&self, nav: &Navigator, run: usize, node: NodeId) -> Option<Standing<'_>> {
        let Compared { report, reference } = self.found(nav)?.as_ref();
        if report.run != run {
            return None;
        }
        let checked = report.of(node);
        let node = nav.session.runs[run].program.node(node);
        let theirs = checked.and_then(|c| c.against.as_ref()).and_then(|against| reference.beside(against, node));
        Some(Standing { reference: &report.reference, mode: report.mode, checked, theirs })
    }
}

impl ViewState for State {
    const OF_STEP: bool = true;
}
