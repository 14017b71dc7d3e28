//! What-if: edits, ablations, undo and redo, saving; and what they changed. The edited session takes the place of the
//! one before, at the same step.

use crate::trace::Rounding;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::navigator::Navigator;
use super::of_session::OfSession;
use crate::debug::whatif::{self, Before, Changes, WhatIf};
use crate::program::NodeId;
use crate::report::what_if::describe;
use crate::session::Session;
use crate::text::Lang;

/// Values before edits, by run, node and rounding.
type Befores = HashMap<(usize, NodeId, Option<Rounding>), Before>;

/// The edits of a session.
#[derive(Debug, Default)]
pub struct Edits {
    what_if: Option<WhatIf>,
    /// The edits that were written to a file last.
    saved: Vec<String>,
    befores: RefCell<OfSession<Befores>>,
    changed: RefCell<OfSession<HashMap<(Option<usize>, usize), bool>>>,
}

impl Edits {
    /// The edits, where there are any in this session.
    fn active(&self, nav: &Navigator) -> Option<&WhatIf> {
        let w = self.what_if.as_ref().filter(|w| Arc::ptr_eq(w.session(), &nav.session))?;
        (!w.edits().is_empty()).then_some(w)
    }

    /// Whether the edits are there, but what is shown is the session without them.
    pub fn is_flipped(&self, nav: &Navigator) -> bool {
        let before = |w: &WhatIf| Arc::ptr_eq(w.base(), &nav.session) && !Arc::ptr_eq(w.session(), w.base());
        self.what_if.as_ref().is_some_and(before)
    }

    /// The other of the two sessions, with or without the edits; `None` where there are no edits.
    pub(super) fn other(&self, nav: &Navigator) -> Option<Arc<Session>> {
        let w = self.what_if.as_ref()?;
        if self.is_flipped(nav) {
            return Some(Arc::clone(w.session()));
        }
        self.active(nav).map(|w| Arc::clone(w.base()))
    }

    /// The edits of this session, to change them; where another took its place, they begin anew.
    pub(super) fn what_if(&mut self, session: &Arc<Session>) -> &mut WhatIf {
        let of = |w: &WhatIf| Arc::ptr_eq(w.session(), session) || Arc::ptr_eq(w.base(), session);
        if !self.what_if.as_ref().is_some_and(of) {
            self.what_if = None;
        }
        self.what_if.get_or_insert_with(|| WhatIf::new(Arc::clone(session)))
    }

    /// Number of edits.
    pub fn count(&self, nav: &Navigator) -> usize {
        self.active(nav).map_or(0, |w| w.edits().len())
    }

    /// The edits, as they are written.
    pub(super) fn lines(&self, nav: &Navigator) -> Vec<String> {
        let flipped = self.what_if.as_ref().filter(|_| self.is_flipped(nav));
        let edits = self.active(nav).or(flipped).map_or(&[][..], WhatIf::edits);
        edits.iter().map(describe).collect()
    }

    /// The edited session.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        self.what_if.as_ref().map(|w| Arc::clone(w.session()))
    }

    /// The edits of this session, in order.
    pub(super) fn all(&self, nav: &Navigator) -> Vec<whatif::Edit> {
        self.active(nav).map_or_else(Vec::new, |w| w.edits().to_vec())
    }

    /// Makes `edits` in another session. Returns those that do not fit it, and why.
    pub(super) fn make_again(
        &mut self,
        session: &Arc<Session>,
        edits: Vec<whatif::Edit>,
        lang: Lang,
    ) -> Vec<(String, String)> {
        let mut what_if = WhatIf::new(Arc::clone(session));
        let mut lost = Vec::new();
        for edit in edits {
            let name = describe(&edit);
            if let Err(problems) = what_if.apply(edit) {
                lost.push((name, problems.first().map(|p| p.msg.render(lang)).unwrap_or_default()));
            }
        }
        self.what_if = Some(what_if);
        lost
    }

    /// The edits were written to a file.
    pub(super) fn saved_now(&mut self, nav: &Navigator) {
        self.saved = self.lines(nav);
    }

    /// Number of edits, where they are not those that were saved last.
    pub fn unsaved(&self, nav: &Navigator) -> usize {
        let edits = self.lines(nav);
        if edits == self.saved { 0 } else { edits.len() }
    }

    /// Loss before and after the edits, of the run looked at where it has one, else of the first that has.
    pub fn loss(&self, nav: &Navigator) -> Option<(f64, f64)> {
        let w = self.active(nav)?;
        let of = |s: &Session, run: usize| {
            let id = s.runs[run].outputs.loss?;
            Some(s.trace(run).ok()?.get(id)?.get(0))
        };
        let runs = &nav.session.runs;
        let with_loss = |r: &usize| runs[*r].outputs.loss.is_some();
        let run = Some(nav.run_here()).filter(with_loss).or_else(|| (0..runs.len()).find(with_loss))?;
        let before = w.base().run_named(&runs[run].name)?;
        of(w.base(), before).zip(of(&nav.session, run))
    }

    /// The value that a tensor had before the edits.
    pub fn before(&self, nav: &Navigator, run: usize, node: NodeId) -> Before {
        let Some(w) = self.active(nav) else {
            return Before::Same;
        };
        let key = (run, node, nav.round());
        if let Some(known) = self.befores.borrow().get(&nav.session).and_then(|b| b.get(&key)) {
            return known.clone();
        }
        let found = value_before(w, nav, run, node).unwrap_or(Before::Same);
        self.befores.borrow_mut().get_mut(&nav.session).insert(key, found.clone());
        found
    }

    /// Whether the step at a position of the list shows a changed cell.
    pub fn step_changed(&self, nav: &Navigator, at: usize) -> bool {
        let Some(w) = self.active(nav) else {
            return false;
        };
        let key = (nav.run, at);
        if let Some(known) = self.changed.borrow().get(&nav.session).and_then(|c| c.get(&key)) {
            return *known;
        }
        let step = nav.steps.list().get(at);
        let changed = step.is_some_and(|s| whatif::step_changed(w.base(), &nav.session, s));
        self.changed.borrow_mut().get_mut(&nav.session).insert(key, changed);
        changed
    }
}

fn value_before(w: &WhatIf, nav: &Navigator, run: usize, node: NodeId) -> Option<Before> {
    let Some(rounding) = nav.round() else {
        let changes = Changes::of(w.base(), &nav.session, run).ok()?;
        return Some(changes.map_or(Before::None, |c| c.before(node)));
    };
    let Some(old) = w.base().run_named(&nav.session.runs[run].name) else {
        return Some(Before::None);
    };
    let before = w.base().rounded(old, rounding).ok()?;
    let after = nav.session.rounded(run, rounding).ok()?;
    Some(Changes::between(&before, &after).before(node))
}
