//! What the model is made of and what it costs: parameters, arithmetic, memory, cost against length.

mod model;

use std::sync::Arc;

use super::{Context, ViewState};
use crate::app::action::Action;
use crate::app::of_session::OfSession;
use crate::debug::counts::{Counts, Wanted};

pub use model::{TextTable, bytes_each, quantity, tables};

/// The counts of the run looked at, and how far the page is scrolled.
#[derive(Debug, Default)]
pub struct State {
    counts: OfSession<Option<(usize, Arc<Counts>)>>,
    /// The first line shown.
    pub first: usize,
}

impl State {
    /// The counts, where they belong to the session that is open.
    pub fn counts(&self, session: &Arc<crate::session::Session>) -> Option<&Arc<Counts>> {
        self.counts.get(session)?.as_ref().map(|(_, c)| c)
    }
}

impl ViewState for State {
    const TAKES_KEYS: bool = true;

    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        let page = cx.page.list.max(1);
        match action {
            Action::Up => self.first = self.first.saturating_sub(1),
            Action::Down => self.first += 1,
            Action::PageUp => self.first = self.first.saturating_sub(page),
            Action::PageDown => self.first += page,
            Action::Top => self.first = 0,
            _ => return false,
        }
        true
    }

    fn prepare(&mut self, cx: &mut Context<'_>, shown: bool) {
        let (session, run) = (&cx.nav.session, cx.nav.run_here());
        if !shown || self.counts.get(session).and_then(Option::as_ref).is_some_and(|(r, _)| *r == run) {
            return;
        }
        let counts = Counts::of(session, run, &Wanted::default()).ok();
        *self.counts.get_mut(session) = counts.map(|c| (run, Arc::new(c)));
    }
}
