//! `compare`, and from difference to difference.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::CompareArgs;
use crate::app::effect::{Effect, Wanted};
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::app::view::View;
use crate::app::views::compare::Compared;
use crate::debug::compare::{Checked, Failed, Options, Reference, Report, State, compare as find, is_file_of_tensors};
use crate::report;
use crate::text::{Lang, Msg, escape};
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
    let title = report::compare::counts(report, "compare.answer")
        .arg("run", escape(&nav.session.runs[report.run].name))
        .arg("reference", escape(&report.reference));
    let lines = report::compare::verdict(report, lang).into_iter();
    let lines = lines.chain(report::compare::table(report, None, MAX_ROWS, lang));
    let lines = lines.chain(report::compare::rest(report, lang));
    Answer { rows: lines.map(Row::from).collect(), ..Answer::new(title) }
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
            .arg("what", report::compare::line(report, checked, ui.settings.lang).render(ui.settings.lang)),
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
