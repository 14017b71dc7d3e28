//! `compare`, and from difference to difference.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::{self, CompareArgs};
use crate::app::effect::{Effect, Wanted};
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::app::view::View;
use crate::app::views::compare::Compared;
use crate::debug::compare::words::{list, verdict, worst};
use crate::debug::compare::{Checked, Failed, Options, Reference, Report, State, compare as find, is_file_of_tensors};
use crate::text::{Lang, Msg, NumberFormat, escape};
use crate::trace::derive::Cell;

/// Differences that are listed.
const MAX_ROWS: usize = 200;

/// `compare NAME [cumulative] [--rtol R] …`: with a file of tensors, a scenario, or another run of this one; without a
/// name, what the last comparison found.
pub fn compare(app: &mut App, asked: &CompareArgs) {
    let nav = &app.nav;
    if asked.name.is_empty() {
        match app.views.compare.found(nav) {
            Some(c) => app.ui.answer(answer(nav, &c.report, app.ui.settings.lang)),
            None => app.ui.say(Level::Info, Msg::new("compare.none_yet")),
        }
        return;
    }
    let run = nav.run_here();
    let path = PathBuf::from(&asked.name);
    if let Some(other) = nav.session.run_named(&asked.name)
        && !is_file_of_tensors(&path)
    {
        let called = format!("{} / {}", nav.session.scenario.name, asked.name);
        let options = Options { mode: asked.mode, tolerance: asked.tolerance, names: None, rounding: nav.round() };
        match nav.session.trace(other) {
            Ok(trace) => {
                let reference = Reference::from_trace(&called, trace);
                compare_with(app, reference, run, &options);
            }
            Err(e) => app.ui.say(Level::Error, Msg::new("compare.cannot_run").arg("why", escape(&e.to_string()))),
        }
        return;
    }
    app.ui.effects.push(Effect::Reference(Wanted {
        path,
        run,
        name: nav.session.runs[run].name.clone(),
        mode: asked.mode,
        tolerance: asked.tolerance,
        rounding: nav.round(),
        map: asked.map.clone(),
    }));
}

/// Compares run `run` with a reference that was read: both columns are shown, and a line says what was found.
pub fn compare_with(app: &mut App, reference: Reference, run: usize, options: &Options) {
    let App { nav, ui, views, .. } = app;
    match find(&nav.session, run, &reference, options) {
        Ok(report) => {
            let answer = answer(nav, &report, ui.settings.lang);
            ui.say(Level::Info, summary(&report, &answer, ui.settings.lang));
            ui.answers.push(answer);
            ui.view = View::Compare;
            let first = report.verdict().map(|first| first.place.node);
            let run = report.run;
            views.compare.keep(nav, Compared { report, reference, bound: OnceLock::new() });
            // The first difference is what one compares for; a script says where it goes.
            if let Some(node) = first.filter(|_| ui.interactive) {
                let here = nav.state();
                let worst = views.compare.found(nav).and_then(|c| first_cell(c.report.of(node)?).map(|c| c.flat));
                if nav.steps.list().iter().all(|s| s.run != run) {
                    nav.choose_run(Some(run));
                }
                nav.visit(run, Cell { node, flat: worst.unwrap_or(0) });
                nav.jumps.leave(here);
            }
        }
        Err(Failed::Nothing(msg)) => ui.say(Level::Error, msg),
        Err(Failed::Run(e)) => {
            ui.say(Level::Error, Msg::new("compare.cannot_run").arg("why", escape(&e.to_string())));
        }
    }
}

fn answer(nav: &Navigator, report: &Report, lang: Lang) -> Answer {
    let mut answer = Answer::new(
        Msg::new("compare.answer")
            .arg("run", escape(&nav.session.runs[report.run].name))
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
    if let Some(chart) = report.growth() {
        answer.push(Row::new(Msg::new("compare.growth").arg("chart", chart)));
    }
    answer
}

/// To the next difference after where one is, or the one before; says which it is.
pub fn go_to_difference(app: &mut App, forward: bool) {
    let App { nav, ui, views, .. } = app;
    let Some(compared) = views.compare.found(nav).cloned() else {
        ui.say(Level::Info, Msg::new("compare.none_yet"));
        return;
    };
    let report = &compared.report;
    let all: Vec<&Checked> = (report.each()).filter(|c| c.state == State::Diverged).collect();
    let node = (nav.step().map(|s| s.run) == Some(report.run)).then(|| nav.view().map(|v| v.node)).flatten();
    let at = match (node, forward) {
        (Some(node), true) => all.iter().position(|c| c.place.node > node),
        (Some(node), false) => all.iter().rposition(|c| c.place.node < node),
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
    let here = nav.state();
    let cell = Cell { node: checked.place.node, flat: first_cell(checked).map_or(0, |c| c.flat) };
    if nav.steps.list().iter().all(|s| s.run != report.run) {
        nav.choose_run(Some(report.run));
    }
    nav.visit(report.run, cell);
    nav.jumps.leave(here);
    ui.say(
        Level::Info,
        Msg::new("compare.nth")
            .arg("at", at + 1)
            .arg("of", all.len())
            .arg("what", line(checked, ui.settings.lang).render(ui.settings.lang)),
    );
}

/// A comparison in one line: how many differ, and the first.
fn summary(report: &Report, answer: &Answer, lang: Lang) -> Msg {
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
