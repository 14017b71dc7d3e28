//! Which session one is in: the one that was opened, an edited one in its place, or an update of its training.

use std::sync::Arc;

use super::{NavState, Navigator};
use crate::program::NodeId;
use crate::session::{Session, Steps};

/// Opened updates that are kept for the way back.
const MAX_OPENED: usize = 8;

/// The sessions of opened updates.
pub(super) struct Updates {
    /// What an opened update leads back to.
    base: Arc<Session>,
    /// Updates made on the parameters of the session, where it is an opened update.
    made: Option<u64>,
    opened: Vec<(u64, Arc<Session>)>,
}

impl Updates {
    pub(super) fn new(session: &Arc<Session>) -> Self {
        Self { base: Arc::clone(session), made: None, opened: Vec::new() }
    }
}

impl Navigator {
    /// The session that an opened update leads back to; the one one is in where none is opened.
    pub fn base(&self) -> &Arc<Session> {
        if self.updates.made.is_some() { &self.updates.base } else { &self.session }
    }

    /// Updates made on the parameters, in an opened update.
    pub fn update_opened(&self) -> Option<u64> {
        self.updates.made
    }

    /// The session of an update that was opened before.
    pub fn opened(&self, made: u64) -> Option<Arc<Session>> {
        self.updates.opened.iter().find(|(u, _)| *u == made).map(|(_, s)| Arc::clone(s))
    }

    /// Forgets the updates that were opened: the model is trained anew.
    pub fn drop_opened(&mut self) {
        self.leave_update();
        self.updates.opened.clear();
    }

    /// Opens the update that is made after `made` updates: the steps of run `run` of its session become the list.
    pub fn open_update(&mut self, made: u64, session: Arc<Session>, run: usize) {
        self.leave();
        if self.updates.made.is_none() && !Arc::ptr_eq(&self.updates.base, &self.session) {
            self.updates.base = Arc::clone(&self.session);
            self.updates.opened.clear();
        }
        if self.opened(made).is_none() {
            if self.updates.opened.len() == MAX_OPENED {
                self.updates.opened.remove(0);
            }
            self.updates.opened.push((made, Arc::clone(&session)));
        }
        self.look_into(Some(made), session);
        self.choose_run(Some(run));
    }

    /// Back from an opened update to the scenario as it was loaded.
    pub fn leave_update(&mut self) {
        if self.updates.made.is_some() {
            let base = Arc::clone(&self.updates.base);
            self.look_into(None, base);
            self.choose_run(None);
        }
    }

    /// Goes to the session in which a place was left.
    pub(super) fn return_to(&mut self, update: Option<u64>) {
        if update == self.updates.made {
            return;
        }
        match update {
            None => {
                let base = Arc::clone(&self.updates.base);
                self.look_into(None, base);
            }
            Some(made) => {
                if let Some(session) = self.opened(made) {
                    self.look_into(update, session);
                }
            }
        }
    }

    fn look_into(&mut self, update: Option<u64>, session: Arc<Session>) {
        self.session = session;
        self.updates.made = update;
        let run = self.run;
        self.choose_run(run);
    }

    /// Puts another session (an edited one) in place of the one before, at the same step and cell.
    pub fn replace_session(&mut self, next: Arc<Session>) {
        let before = std::mem::replace(&mut self.session, next);
        let shared = before.runs.len() == self.session.runs.len()
            && (before.runs.iter().zip(&self.session.runs)).all(|(a, b)| Arc::ptr_eq(&a.program, &b.program));
        if shared {
            return;
        }
        // Runs, steps and tensors may have other numbers now.
        let old = Arc::clone(&self.steps);
        let here = self.state();
        let run = |r: usize| self.session.run_named(&before.runs[r].name);
        self.run = self.run.and_then(run);
        self.steps = self.run.map_or_else(|| Arc::clone(&self.session.steps), |r| self.session.steps_of(r));
        let moved = |place: &NavState| self.moved(place, &before, &old);
        let (place, jumps) = (moved(&here), self.jumps.map(moved));
        let marks = self.bookmarks.map(moved);
        (self.jumps, self.bookmarks) = (jumps, marks);
        if self.steps.list().len() != old.list().len() {
            self.folded.clear();
        }
        let first = NavState { update: self.update_opened(), run: self.run, ..NavState::default() };
        self.restore(&place.unwrap_or(first));
    }

    /// A place of the steps listed before, in those listed now.
    fn moved(&self, place: &NavState, before: &Session, old: &Steps) -> Option<NavState> {
        let named = |run: usize| self.session.run_named(&before.runs.get(run)?.name);
        let run = match place.run {
            None => None,
            Some(r) => Some(named(r)?),
        };
        if run != self.run {
            return None;
        }
        let number = old.list().get(place.at)?.number[0];
        // The same number, else the nearest before it.
        let list = self.steps.list();
        let at = list.partition_point(|s| s.number[0] <= number).checked_sub(1)?;
        let aside = match place.aside {
            None => None,
            Some((of, node)) => {
                let path = &before.runs[of].program.node(NodeId(node)).path;
                let of = named(of)?;
                Some((of, self.session.runs[of].program.find(path)?.0))
            }
        };
        Some(NavState { run, at, aside, ..place.clone() })
    }
}
