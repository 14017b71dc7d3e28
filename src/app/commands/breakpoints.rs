//! Breakpoints and watches: setting, listing, running to the next one.

use crate::app::action::Action;
use crate::app::answer::Answer;
use crate::app::app::App;
use crate::app::args::{BreakSpec, Expression};
use crate::app::breakpoints::{brief, watch_rows};
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::debug::breaks::{Direction, Reason, Spec, Stop};
use crate::text::{Msg, NumberFormat, escape};
use crate::trace::derive::Cell;

/// `break [SPEC]`: at the step one is in where nothing is said; the same again takes it away.
pub fn set(app: &mut App, BreakSpec(text): &BreakSpec, once: bool) {
    let App { nav, ui, breaks, .. } = app;
    let mut text = text.trim().to_owned();
    if text.is_empty() {
        let Some(step) = nav.steps.list().get(nav.position()) else {
            return;
        };
        text = step.label();
        // A replay may be elsewhere.
        let said = BreakSpec(text.clone());
        ui.rename_last(if once { Action::TBreak(said) } else { Action::Break(said) });
    }
    let same = |b: &&crate::debug::breaks::Breakpoint| b.spec.text() == text;
    if let Some(id) = breaks.breakpoints().iter().find(same).map(|b| b.id) {
        return remove(app, &id.to_string(), false);
    }
    let timeline = nav.timeline();
    let spec = Spec::parse(&text, &nav.scope(&timeline));
    match spec {
        Err(e) => ui.wrong(&text, &e),
        Ok(spec) => {
            let spec = if once { spec.once() } else { spec };
            let id = breaks.add(spec);
            let msg = Msg::new("break.set").arg("id", id).arg("what", escape(&text));
            ui.say(Level::Done, msg);
        }
    }
}

/// `watch [EXPRESSION]`: the cell under the cursor where nothing is said; all watches where there is none.
pub fn watch(app: &mut App, Expression(text): &Expression) {
    let App { nav, ui, breaks, .. } = app;
    let mut text = text.trim().to_owned();
    if text.is_empty() {
        match nav.cell() {
            Some((run, cell)) => text = nav.pinned(run, cell),
            None => return answer_watches(app),
        }
    }
    let timeline = nav.timeline();
    let made = breaks.watch(&text, &nav.scope(&timeline));
    match made {
        Err(e) => ui.wrong(&text, &e),
        Ok(_) => answer_watches(app),
    }
}

fn answer_watches(app: &mut App) {
    let App { nav, ui, breaks, .. } = app;
    let rows = watch_rows(nav, breaks, ui.settings.digits);
    let title = if rows.is_empty() { "watch.none" } else { "watch.title" };
    let title = Msg::new(title);
    ui.answer(Answer { title, rows });
}

/// `delete N|all` and, with `watches`, `unwatch N|EXPRESSION|all`.
pub fn remove(app: &mut App, text: &str, watches: bool) {
    let App { ui, breaks, .. } = app;
    let text = text.trim();
    let named = || {
        let of_watch = breaks.watches().iter().find(|w| w.expr.text() == text);
        let of_break = breaks.breakpoints().iter().find(|b| b.spec.text() == text);
        of_watch.map(|w| w.id).or(of_break.map(|b| b.id))
    };
    if text == "all" {
        let count = breaks.clear(watches);
        return ui.say(Level::Done, Msg::new("break.cleared").arg("count", count));
    }
    let id = text.parse::<u32>().ok().or_else(named);
    match id.filter(|id| breaks.remove(*id)) {
        Some(id) => ui.say(Level::Done, Msg::new("break.removed").arg("id", id)),
        None => ui.say(Level::Error, Msg::new("break.no_such").arg("what", escape(text))),
    }
}

/// `continue` and `reverse-continue`: to where something stops.
pub fn run_on(app: &mut App, direction: Direction) {
    let App { nav, ui, breaks, .. } = app;
    let timeline = nav.timeline();
    let from = nav.at_position(&timeline);
    if breaks.breakpoints().is_empty() && breaks.watches().is_empty() {
        return ui.say(Level::Info, Msg::new("break.none"));
    }
    let before = breaks.breakpoints().to_vec();
    let stop = breaks.run(&nav.scope(&timeline), from, direction);
    let now = breaks.breakpoints();
    for gone in before.iter().filter(|b| !now.iter().any(|n| n.id == b.id)) {
        ui.unrecord(|a| match a {
            Action::Break(BreakSpec(text)) | Action::TBreak(BreakSpec(text)) => text.trim() == gone.spec.text(),
            _ => false,
        });
    }
    let Some(stop) = stop else {
        let key = match direction {
            Direction::Forward => "break.no_more",
            Direction::Back => "break.no_more_back",
        };
        return ui.say(Level::Info, Msg::new(key));
    };
    nav.leave();
    stop_at(nav, &stop);
    let number = ui.settings.digits;
    let mut said: Vec<Msg> = stop.reasons.iter().map(|r| reason(r, number)).collect();
    let failed = stop.reasons.iter().any(|r| matches!(r, Reason::Error { .. }));
    let level = if failed { Level::Warning } else { Level::Info };
    if said.len() == 1
        && let Some(one) = said.pop()
    {
        return ui.say(level, one);
    }
    // The message line has room for one: all are in the list.
    let lang = ui.settings.lang;
    let all: Vec<String> = said.iter().map(|m| m.render(lang)).collect();
    ui.say(level, Msg::new("report.plain").arg("text", all.join(" · ")));
}

fn stop_at(nav: &mut Navigator, stop: &Stop) {
    nav.arrive_at(stop.at.step);
    let cell = stop.reasons.iter().find_map(|r| match r {
        Reason::Break { met, .. } => met.as_ref()?.cell,
        Reason::Watch { change, .. } => change.cell,
        Reason::Error { .. } => None,
    });
    if let Some((run, node)) = stop.at.inside {
        let flat = cell.filter(|(r, c)| *r == run && c.node == node).map_or(0, |(_, c)| c.flat);
        return nav.show_cell(run, Cell { node, flat });
    }
    if let Some((run, cell)) = cell
        && let Some((view, index)) = nav.here(run, cell)
    {
        nav.select(view, &index);
    }
}

/// Why a run stopped, in a line.
fn reason(reason: &Reason, number: NumberFormat) -> Msg {
    match reason {
        Reason::Break { id, text, met: None } => Msg::new("break.stop").arg("id", id).arg("what", escape(text)),
        Reason::Break { id, text, met: Some(met) } => {
            Msg::new("break.stop_by").arg("id", id).arg("what", escape(text)).arg("how", met.message(number))
        }
        Reason::Watch { id, text, change } => Msg::new("watch.stop")
            .arg("id", id)
            .arg("what", escape(text))
            .arg("old", brief(&change.old, number))
            .arg("new", brief(&change.new, number)),
        Reason::Error { id, text, error } => Msg::new("break.stop_error")
            .arg("id", id)
            .arg("what", escape(text))
            .arg("column", error.column())
            .arg("why", &error.msg),
    }
}
