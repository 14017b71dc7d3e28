//! `:checks`: what the lints find, as a list to go on from, as marks of steps, and from one failed step to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Navigator;
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::Place;
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::debug::expected::{self, Compared};
use crate::debug::lints::{self, Finding};
use crate::scenario::lint::{Lint, Severity};
use crate::session::locate::step_of_cell;
use crate::session::{Session, Steps};
use crate::text::number::exact;
use crate::text::{Lang, Msg, tr};

/// What the lints found of a session. They run when they are asked for, not before: they look at every number of
/// every run.
#[derive(Debug)]
pub(super) struct Checked {
    session: Arc<Session>,
    found: Vec<Finding>,
    /// Expected values, compared.
    expected: Vec<Compared>,
    /// The steps that `failed` speaks of, and by position in them the gravest finding.
    listed: Arc<Steps>,
    failed: BTreeMap<usize, usize>,
}

impl Checked {
    /// Puts findings beside the steps of `listed`.
    fn list(&mut self, listed: &Arc<Steps>) {
        self.listed = Arc::clone(listed);
        self.failed.clear();
        for (i, f) in self.found.iter().enumerate() {
            for (run, cell) in f.places(&self.session) {
                let Some(at) = step_of_cell(&self.session, listed, run, cell) else {
                    continue;
                };
                let gravest = self.failed.entry(at).or_insert(i);
                if self.found[*gravest].severity < f.severity {
                    *gravest = i;
                }
            }
        }
    }
}

impl Navigator {
    /// The gravest finding at position `at` of the steps listed, once the lints have run.
    pub fn failed(&self, at: usize) -> Option<Severity> {
        let checked = self.checked.as_ref().filter(|c| self.is_current(c))?;
        let finding = *checked.failed.get(&at)?;
        Some(checked.found[finding].severity)
    }

    fn is_current(&self, c: &Checked) -> bool {
        Arc::ptr_eq(&c.session, &self.session) && Arc::ptr_eq(&c.listed, &self.steps)
    }

    /// Brings findings and their places up to date.
    fn check(&mut self) -> Result<&Checked, Msg> {
        let checked = match self.checked.take() {
            Some(c) if Arc::ptr_eq(&c.session, &self.session) => c,
            _ => {
                let found = lints::check(&self.session, |_| true).map_err(|e| e.message())?;
                let expected = expected::compare(&self.session)?;
                let session = Arc::clone(&self.session);
                Checked { session, found, expected, listed: Arc::default(), failed: BTreeMap::new() }
            }
        };
        self.checked = Some(checked);
        self.list_findings();
        Ok(self.checked.as_ref().expect("it was put there"))
    }

    /// Other steps are listed: findings stand beside them.
    pub(super) fn list_findings(&mut self) {
        let steps = Arc::clone(&self.steps);
        if let Some(checked) = &mut self.checked
            && !Arc::ptr_eq(&checked.listed, &steps)
        {
            checked.list(&steps);
        }
    }

    /// All findings, the gravest first; choosing one goes to its place.
    pub(super) fn checks(&mut self, ui: &mut Ui) {
        let lang = ui.settings.lang;
        match self.check() {
            Ok(checked) => {
                let answer = answer(checked, lang);
                ui.answer(answer);
            }
            Err(msg) => ui.say(Level::Error, msg),
        }
    }

    /// To the next (or previous) step with an error or a warning, around; says what is wrong there.
    pub(super) fn go_to_failed(&mut self, forward: bool, ui: &mut Ui) {
        let (at, listed) = (self.at, self.run);
        let checked = match self.check() {
            Ok(checked) => checked,
            Err(msg) => return ui.say(Level::Error, msg),
        };
        let grave = |i: usize| checked.found[i].severity > Severity::Info;
        let here = checked.failed.iter().filter(|(_, i)| grave(**i));
        let here: Vec<(usize, usize)> = here.map(|(step, i)| (*step, *i)).collect();
        let next = if forward {
            here.iter().find(|(step, _)| *step > at).or(here.first())
        } else {
            here.iter().rfind(|(step, _)| *step < at).or(here.last())
        };
        let target = match next {
            Some((step, i)) => Some((Some(*step), checked.found[*i].clone())),
            // Those of runs that are not listed.
            None => (0..checked.found.len()).find(|i| grave(*i)).map(|i| (None, checked.found[i].clone())),
        };
        let Some((step, finding)) = target else {
            let key = if checked.found.is_empty() { "checks.none" } else { "checks.none_failed" };
            return ui.say(Level::Info, Msg::new(key));
        };
        let place = finding.place(&self.session);
        match (step, place) {
            (Some(step), place) => {
                self.jump_to(step);
                let shown = place.and_then(|(run, cell)| self.step()?.view_of(run, cell));
                if let Some((view, index)) = shown {
                    self.select(view, &index);
                }
            }
            (None, Some((run, _))) if listed != Some(run) => {
                self.leave();
                self.choose_run(Some(run));
                return self.go_to_failed(forward, ui);
            }
            (None, _) => {}
        }
        // An error of the run, not of the command: a script goes on.
        let text = line(&self.session, &finding, ui.settings.lang);
        ui.say(Level::Warning, text);
    }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Info => Level::Info,
        Severity::Warning => Level::Warning,
        Severity::Error => Level::Error,
    }
}

/// Cells of one expectation that are listed.
const MAX_CELLS: usize = 64;

fn answer(checked: &Checked, lang: Lang) -> Answer {
    let of = |s: Severity| checked.found.iter().filter(|f| f.severity == s).count();
    if checked.found.is_empty() && checked.expected.iter().all(|e| e.wrong.is_empty()) {
        return Answer::new(Msg::new("checks.none"));
    }
    let title = Msg::new("checks.title")
        .arg("errors", of(Severity::Error))
        .arg("warnings", of(Severity::Warning))
        .arg("infos", of(Severity::Info));
    let mut answer = Answer::new(title);
    for e in &checked.expected {
        let run = &checked.session.runs[e.run].name;
        for w in e.wrong.iter().take(MAX_CELLS) {
            let index = w.bracketed();
            let text = Msg::new("check.expected_cell")
                .arg("run", run)
                .arg("path", &e.path)
                .arg("cell", index)
                .arg("expected", exact(w.expected))
                .arg("found", exact(w.found));
            let place = Place { name: format!("{run}:{}", e.path), index: w.index.clone() };
            answer.push(Row::new(text).level(Level::Error).action(Action::Go(place)));
        }
    }
    let mut sorted: Vec<&Finding> = checked.found.iter().collect();
    sorted.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let mut explained: Vec<Lint> = Vec::new();
    for f in sorted {
        let mut row = Row::new(line(&checked.session, f, lang)).level(level(f.severity));
        if let (Some(run), Some(_)) = (f.run, f.node) {
            let run = &checked.session.runs[run].name;
            row = row.action(Action::Go(Place { name: format!("{run}:{}", f.path), index: f.cell.clone() }));
        }
        answer.push(row);
        if f.severity > Severity::Info && !explained.contains(&f.lint) {
            explained.push(f.lint);
            for (key, text) in [("check.lint.why", f.why()), ("check.lint.mend", f.mend())] {
                answer.push(Row::new(Msg::new(key).arg("text", text.render(lang))));
            }
        }
    }
    answer
}

/// One finding as a line.
fn line(session: &Session, f: &Finding, lang: Lang) -> Msg {
    let run = f.run.map(|r| session.runs[r].name.clone());
    let step = f.step(session).map(|s| {
        let parts: Vec<String> = s.iter().map(u32::to_string).collect();
        parts.join(".")
    });
    let place = match (run, step) {
        (None, _) => Msg::new("check.lint.place.weights"),
        (Some(run), Some(step)) => Msg::new("check.lint.place.step").arg("run", run).arg("step", step),
        (Some(run), None) => Msg::new("check.lint.place.run").arg("run", run),
    };
    let key = if f.allowed { "check.lint.allowed" } else { "check.lint" };
    let severity = match f.severity {
        Severity::Error => "severity.error",
        Severity::Warning => "severity.warning",
        Severity::Info => "severity.info",
    };
    Msg::new(key)
        .arg("severity", tr(lang, severity))
        .arg("lint", f.lint.id())
        .arg("place", place.render(lang))
        .arg("what", f.msg.render(lang))
}
