//! Going from step to step.

use crate::app::app::App;
use crate::app::args::{Place, RunName, StepTarget};
use crate::app::messages::Level;
use crate::app::navigator::MAX_TERMS;
use crate::app::view::View;
use crate::text::{Msg, escape};

fn said(app: &mut App, done: bool, otherwise: &'static str) {
    if !done {
        app.ui.say(Level::Info, Msg::new(otherwise));
    }
}

/// `next`.
pub fn next(app: &mut App) {
    let done = app.nav.go_by(1);
    said(app, done, "tui.said.last");
}

/// `prev`.
pub fn prev(app: &mut App) {
    let done = app.nav.go_by(-1);
    said(app, done, "tui.said.first");
}

/// `in`.
pub fn step_in(app: &mut App) {
    let done = app.nav.step_in();
    said(app, done, "tui.said.primitive");
}

/// `out`.
pub fn step_out(app: &mut App) {
    let done = app.nav.step_out();
    said(app, done, "tui.said.outermost");
}

/// `step N`.
pub fn step(app: &mut App, target: &StepTarget) {
    if !app.nav.to_step(target) {
        app.ui.say(Level::Error, app.nav.no_step(target));
    }
}

/// `go PLACE`.
pub fn go(app: &mut App, place: &Place) {
    match app.nav.to_place(place) {
        Ok(None) => {}
        Ok(Some(others)) => app.ui.say(Level::Info, others),
        Err(why) => app.ui.say(Level::Error, why),
    }
}

/// `run [NAME]`: the steps of a run; without a name those of the next one, then all again.
pub fn run(app: &mut App, RunName(name): &RunName) {
    let nav = &mut app.nav;
    if name.is_empty() {
        let next = nav.run.map_or(0, |r| r + 1);
        nav.choose_run((next < nav.session.runs.len()).then_some(next));
    } else if let Some(run) = nav.session.run_named(name) {
        nav.choose_run(Some(run));
    } else {
        app.ui.say(Level::Error, Msg::new("tui.said.no_run").arg("name", escape(name)));
    }
}

/// `follow`: to where the chosen number of the derivation was made.
pub fn follow(app: &mut App) {
    let settings = &app.ui.settings;
    let line = app.nav.line(settings.lang, settings.digits, usize::MAX);
    let done = line.is_some_and(|line| app.nav.follow(&line));
    said(app, done, "tui.said.given");
}

/// `next-term` and `prev-term`.
pub fn turn_term(app: &mut App, forward: bool) {
    let settings = &app.ui.settings;
    if let Some(line) = app.nav.line(settings.lang, settings.digits, MAX_TERMS) {
        app.nav.turn_term(forward, &line);
    }
}

/// `back`: out of an opened update one is back at the pictures of the training.
pub fn back(app: &mut App) {
    let nav = &mut app.nav;
    let in_update = nav.update_opened().is_some();
    match nav.jumps.back(nav.state()) {
        Some(place) => {
            nav.restore(&place);
            if in_update && nav.update_opened().is_none() {
                app.ui.view = View::Training;
            }
        }
        None => app.ui.say(Level::Info, Msg::new("tui.said.no_way_back")),
    }
}

/// `forward`.
pub fn forward(app: &mut App) {
    let nav = &mut app.nav;
    match nav.jumps.forward(nav.state()) {
        Some(place) => nav.restore(&place),
        None => app.ui.say(Level::Info, Msg::new("tui.said.no_way_forward")),
    }
}
