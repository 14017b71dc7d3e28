//! `:compare`: the run beside a reference, and from difference to difference.

use std::path::PathBuf;
use std::sync::Arc;

use super::Navigator;
use super::compare_asked::Asked;
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args;
use crate::app::effect::{Effect, Wanted};
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::app::view::View;
use crate::debug::compare::words::{list, verdict, worst};
use crate::debug::compare::{Checked, Failed, Mode, Options, Reference, Report, State, compare, is_file_of_tensors};
use crate::program::NodeId;
use crate::text::{Lang, Msg, NumberFormat, escape};
use crate::trace::derive::Cell;

/// A comparison that was made.
#[derive(Debug)]
pub(super) struct Compared {
    report: Report,
    reference: Reference,
}

/// How a node stands in a comparison.
#[derive(Debug)]
pub struct Standing<'a> {
    /// What the run was compared with.
    pub reference: &'a str,
    /// What each node was computed from.
    pub mode: Mode,
    /// What was found of it.
    pub checked: Option<&'a Checked>,
    /// The reference's cells as ours lie, where it has the node and the shapes fit.
    pub theirs: Option<Vec<Option<f64>>>,
}

/// Differences that are listed.
const MAX_ROWS: usize = 200;

impl Navigator {
    /// `:compare NAME [cumulative] [--rtol R] …`: with a file of tensors, a scenario, or another run of this one; without
    /// a name, what the last comparison found.
    pub(super) fn compare(&mut self, text: &str, ui: &mut Ui, effects: &mut Vec<Effect>) {
        let asked = match Asked::parse(text) {
            Ok(asked) => asked,
            Err(msg) => return ui.say(Level::Error, msg),
        };
        if asked.name.is_empty() {
            match &self.compared {
                Some(c) => ui.answer(self.compared_answer(&c.report, ui.settings.lang)),
                None => ui.say(Level::Info, Msg::new("compare.none_yet")),
            }
            return;
        }
        let run = self.step().map(|s| s.run).or(self.run).unwrap_or(0);
        let path = PathBuf::from(&asked.name);
        if let Some(other) = self.session.run_named(&asked.name)
            && !is_file_of_tensors(&path)
        {
            let called = format!("{} / {}", self.session.scenario.name, asked.name);
            let options = Options { mode: asked.mode, tolerance: asked.tolerance, names: None };
            match self.session.trace(other) {
                Ok(trace) => {
                    let reference = Reference::from_trace(&called, trace);
                    self.compare_with(reference, run, &options, ui);
                }
                Err(e) => ui.say(Level::Error, Msg::new("compare.cannot_run").arg("why", escape(&e.to_string()))),
            }
            return;
        }
        effects.push(Effect::Reference(Wanted {
            path,
            run,
            name: self.session.runs[run].name.clone(),
            mode: asked.mode,
            tolerance: asked.tolerance,
            map: asked.map,
        }));
    }

    /// Compares run `run` with a reference that was read: both columns are shown, and a line says what was found.
    pub fn compare_with(&mut self, reference: Reference, run: usize, options: &Options, ui: &mut Ui) {
        match compare(&self.session, run, &reference, options) {
            Ok(report) => {
                let answer = self.compared_answer(&report, ui.settings.lang);
                ui.say(Level::Info, told(&report, &answer, ui.settings.lang));
                ui.answers.push(answer);
                ui.view = View::Compare;
                self.compared = Some(Arc::new(Compared { report, reference }));
            }
            Err(Failed::Nothing(msg)) => ui.say(Level::Error, msg),
            Err(Failed::Run(e)) => {
                ui.say(Level::Error, Msg::new("compare.cannot_run").arg("why", escape(&e.to_string())))
            }
        }
    }

    /// How a node stands in the comparison of its run; `None` where its run was not compared.
    pub fn beside(&self, run: usize, node: NodeId) -> Option<Standing<'_>> {
        let Compared { report, reference } = self.compared.as_deref()?;
        if report.run != run {
            return None;
        }
        let checked = report.of(node);
        let node = self.session.runs[run].program.node(node);
        let theirs = checked.and_then(|c| c.against.as_ref()).and_then(|against| reference.beside(against, node));
        Some(Standing { reference: &report.reference, mode: report.mode, checked, theirs })
    }

    fn compared_answer(&self, report: &Report, lang: Lang) -> Answer {
        let mut answer = Answer::new(
            Msg::new("compare.answer")
                .arg("run", escape(&self.session.runs[report.run].name))
                .arg("reference", escape(&report.reference))
                .arg("match", report.count(State::Match))
                .arg("drift", report.count(State::Drift))
                .arg("diverged", report.count(State::Diverged))
                .arg("unchecked", report.count(State::Unchecked)),
        );
        match report.verdict() {
            None => answer.push(Row::new(Msg::new("compare.good")).level(Level::Done)),
            Some(first) => {
                let places = [Some(&first.place), first.last_match.as_ref()];
                for (i, msg) in verdict(first, lang).into_iter().enumerate() {
                    let mut row = Row::new(msg);
                    if i == 0 {
                        row = row.level(Level::Warning);
                    }
                    if let Some(place) = places.get(i).copied().flatten() {
                        row = row.action(go(&place.path, &[]));
                    }
                    answer.push(row);
                }
            }
        }
        let beyond = |c: &&Checked| matches!(c.state, State::Diverged | State::Drift);
        for checked in report.each().filter(beyond).take(MAX_ROWS) {
            let level = if checked.state == State::Diverged { Level::Warning } else { Level::Info };
            let cell = first_cell(checked);
            let index = cell.map_or(&[][..], |c| &c.index);
            answer.push(Row::new(line(checked, lang)).level(level).action(go(&checked.place.path, index)));
        }
        let more = report.each().filter(beyond).count();
        if let Some(left) = more.checked_sub(MAX_ROWS).filter(|n| *n > 0) {
            answer.push(Row::new(Msg::new("compare.more").arg("count", left)));
        }
        if !report.unmatched.is_empty() {
            let names = list(report.unmatched.iter().map(String::as_str), lang);
            let msg = Msg::new("compare.unmatched").arg("count", report.unmatched.len());
            answer.push(Row::new(msg.arg("names", names)));
        }
        answer
    }

    /// To the next difference after where one is, or the one before; says which it is.
    pub(super) fn go_to_difference(&mut self, forward: bool, ui: &mut Ui) {
        let Some(compared) = self.compared.clone() else {
            ui.say(Level::Info, Msg::new("compare.none_yet"));
            return;
        };
        let report = &compared.report;
        let all: Vec<&Checked> = (report.each()).filter(|c| c.state == State::Diverged).collect();
        let here = (self.step().map(|s| s.run) == Some(report.run)).then(|| self.view().map(|v| v.node)).flatten();
        let at = match (here, forward) {
            (Some(here), true) => all.iter().position(|c| c.place.node > here),
            (Some(here), false) => all.iter().rposition(|c| c.place.node < here),
            (None, true) => (!all.is_empty()).then_some(0),
            (None, false) => all.len().checked_sub(1),
        };
        let Some(at) = at else {
            let key = match (all.is_empty(), forward) {
                (true, _) => "compare.good",
                (false, true) => "compare.no_next",
                (false, false) => "compare.no_previous",
            };
            ui.say(Level::Info, Msg::new(key));
            return;
        };
        let checked = all[at];
        let spot = self.spot();
        let cell = Cell { node: checked.place.node, flat: first_cell(checked).map_or(0, |c| c.flat) };
        if self.steps.list().iter().all(|s| s.run != report.run) {
            self.choose_run(Some(report.run));
        }
        self.visit(report.run, cell);
        self.jumps.leave(spot);
        ui.say(
            Level::Info,
            Msg::new("compare.nth")
                .arg("at", at + 1)
                .arg("of", all.len())
                .arg("what", line(checked, ui.settings.lang).render(ui.settings.lang)),
        );
    }
}

/// A comparison in one line: how many differ, and the first.
fn told(report: &Report, answer: &Answer, lang: Lang) -> Msg {
    let summary = answer.title.render(lang);
    match report.verdict() {
        None => Msg::new("compare.told_good").arg("summary", summary),
        Some(first) => Msg::new("compare.told").arg("summary", summary).arg("path", escape(&first.place.path)),
    }
}

fn first_cell(checked: &Checked) -> Option<&crate::debug::compare::CellPair> {
    checked.against.as_ref()?.cells.first()
}

fn go(path: &str, index: &[usize]) -> Action {
    Action::Go(args::Place { name: path.to_owned(), index: index.to_vec() })
}

/// A node in a line: path, state, how far apart, and the worst cell.
fn line(checked: &Checked, lang: Lang) -> Msg {
    let state = match checked.state {
        State::Diverged => "compare.state.diverged",
        State::Drift => "compare.state.drift",
        State::Match => "compare.state.match",
        State::Unchecked => "compare.state.unchecked",
    };
    let step = checked.place.step.as_ref();
    let measure = checked.against.as_ref().and_then(|a| a.measure.as_ref());
    let size = |x: f64| NumberFormat::Scientific(1).format(x);
    Msg::new("compare.row")
        .arg("step", step.map_or("-", |s| &s.label))
        .arg("path", escape(&checked.place.path))
        .arg("state", Msg::new(state).render(lang))
        .arg("rms", measure.map_or_else(|| "-".to_owned(), |m| size(m.rms)))
        .arg("max", measure.map_or_else(|| "-".to_owned(), |m| size(m.max)))
        .arg("worst", worst(checked, NumberFormat::Shortest).render(lang))
}
