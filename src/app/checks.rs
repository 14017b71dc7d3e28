//! `checks`: what the lints find, as a list to go on from, as marks of steps, and from one failed step to the next.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::answer::Answer;
use super::messages::Level;
use super::navigator::Navigator;
use super::of_session::OfSession;
use super::ui::Ui;
use crate::debug::expected::{self, Compared};
use crate::debug::lints::{self, Finding};
use crate::report;
use crate::scenario::lint::Severity;
use crate::session::locate::step_of_cell;
use crate::session::{Session, Steps};
use crate::text::{Lang, Msg};

/// By position in a list of steps, the gravest finding.
type Failed = BTreeMap<usize, usize>;

/// What the lints found of a session. They run when they are first needed, not before: they look at every number of
/// every run.
#[derive(Debug, Default)]
pub struct Checks {
    found: OfSession<Option<Vec<Finding>>>,
    /// Expected values, compared.
    expected: OfSession<Vec<Compared>>,
    listed: RefCell<Option<(Arc<Steps>, Failed)>>,
}

fn place(session: &Session, steps: &Steps, found: &[Finding]) -> Failed {
    let mut failed = Failed::new();
    for (i, f) in found.iter().enumerate() {
        for (run, cell) in f.places(session) {
            let Some(at) = step_of_cell(session, steps, run, cell) else {
                continue;
            };
            let gravest = failed.entry(at).or_insert(i);
            if found[*gravest].severity < f.severity {
                *gravest = i;
            }
        }
    }
    failed
}

impl Checks {
    /// The findings by step of the steps listed.
    fn by_step<T>(&self, nav: &Navigator, found: &[Finding], of: impl Fn(&Failed) -> T) -> T {
        let mut listed = self.listed.borrow_mut();
        match &*listed {
            Some((steps, failed)) if Arc::ptr_eq(steps, &nav.steps) => of(failed),
            _ => {
                let failed = place(&nav.session, &nav.steps, found);
                let out = of(&failed);
                *listed = Some((Arc::clone(&nav.steps), failed));
                out
            }
        }
    }

    /// The gravest finding at position `at` of the steps listed, once the lints have run.
    pub fn failed(&self, nav: &Navigator, at: usize) -> Option<Severity> {
        let found = self.found.get(&nav.session)?.as_ref()?;
        let finding = self.by_step(nav, found, |failed| failed.get(&at).copied())?;
        Some(found[finding].severity)
    }

    fn check(&mut self, session: &Arc<Session>) -> Result<Vec<Finding>, Msg> {
        let found = self.found.get_mut(session);
        if found.is_none() {
            *found = Some(lints::check(session, |_| true).map_err(|e| e.message())?);
            *self.expected.get_mut(session) = expected::compare(session)?;
            self.listed.take();
        }
        Ok(found.clone().unwrap_or_default())
    }

    /// All findings, the gravest first; choosing one jumps to its place.
    pub(super) fn list(&mut self, nav: &Navigator, ui: &mut Ui) {
        match self.check(&nav.session) {
            Ok(found) => {
                let expected = self.expected.get_mut(&nav.session);
                ui.answer(answer(&nav.session, &found, expected, ui.settings.lang));
            }
            Err(msg) => ui.say(Level::Error, msg),
        }
    }

    /// To the next (or previous) step with an error or a warning, around; says what is wrong there.
    pub(super) fn go(&mut self, forward: bool, nav: &mut Navigator, ui: &mut Ui) {
        let found = match self.check(&nav.session) {
            Ok(found) => found,
            Err(msg) => return ui.say(Level::Error, msg),
        };
        let grave = |i: usize| found[i].severity > Severity::Info;
        let here: Vec<(usize, usize)> = self.by_step(nav, &found, |failed| {
            failed.iter().filter(|(_, i)| grave(**i)).map(|(step, i)| (*step, *i)).collect()
        });
        let at = nav.position();
        let next = if forward {
            here.iter().find(|(step, _)| *step > at).or(here.first())
        } else {
            here.iter().rfind(|(step, _)| *step < at).or(here.last())
        };
        let target = match next {
            Some((step, i)) => Some((Some(*step), &found[*i])),
            // Those of runs that are not listed.
            None => (0..found.len()).find(|i| grave(*i)).map(|i| (None, &found[i])),
        };
        let Some((step, finding)) = target else {
            let key = if found.is_empty() { "checks.none" } else { "checks.none_failed" };
            return ui.say(Level::Info, Msg::new(key));
        };
        match (step, finding.place(&nav.session)) {
            (Some(step), place) => {
                nav.jump_to(step);
                let shown = place.and_then(|(run, cell)| nav.step()?.view_of(run, cell));
                if let Some((view, index)) = shown {
                    nav.select(view, &index);
                }
            }
            (None, Some((run, _))) if nav.run != Some(run) => {
                nav.leave();
                nav.choose_run(Some(run));
                return self.go(forward, nav, ui);
            }
            (None, _) => {}
        }
        // An error of the run, not of the command: a script goes on.
        ui.say(Level::Warning, report::lints::line(&nav.session, finding, ui.settings.lang).text);
    }
}

/// Cells of one expectation that are listed.
const MAX_CELLS: usize = 64;

fn answer(session: &Session, found: &[Finding], expected: &[Compared], lang: Lang) -> Answer {
    if found.is_empty() && expected.iter().all(|e| e.wrong.is_empty()) {
        return Answer::new(Msg::new("checks.none"));
    }
    let expected = report::expected::lines(session, expected, MAX_CELLS, lang);
    let findings = report::lints::lines(session, found, usize::MAX, lang);
    Answer::of(report::lints::counts(found, "checks.title"), expected.into_iter().chain(findings))
}
