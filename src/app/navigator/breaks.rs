//! Breakpoints and watches: setting, listing, running to the next one.

use super::Navigator;
use super::inquire::{brief, wrong};
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::Text;
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::debug::breaks::{Direction, Reason, Spec, Stop, Watch, value};
use crate::debug::eval_context::EvalContext;
use crate::text::{Msg, NumberFormat, escape};
use crate::trace::derive::Cell;

impl Navigator {
    /// `break [SPEC]`: at the step one is in where nothing is said; the same again takes it away.
    pub(super) fn set_break(&mut self, text: &str, once: bool, ui: &mut Ui) {
        let mut text = text.trim().to_owned();
        if text.is_empty() {
            let Some(step) = self.steps.list().get(self.at) else {
                return;
            };
            text = step.label();
            // A replay may be elsewhere.
            let said = Text(text.clone());
            ui.rename_last(&if once { Action::TBreak(said) } else { Action::Break(said) });
        }
        let same = |b: &&crate::debug::breaks::Breakpoint| b.spec.text() == text;
        if let Some(id) = self.breaks.breakpoints().iter().find(same).map(|b| b.id) {
            return self.delete_break(&id.to_string(), ui);
        }
        let timeline = self.timeline();
        let spec = Spec::parse(&text, &self.scope(&timeline));
        match spec {
            Err(e) => wrong(ui, &text, &e),
            Ok(spec) => {
                let spec = if once { spec.once() } else { spec };
                let id = self.breaks.add(spec);
                let msg = Msg::new("break.set").arg("id", id).arg("what", escape(&text));
                ui.say(Level::Done, msg);
            }
        }
    }

    /// Whether a breakpoint says that it is about a step.
    pub fn has_break(&self, at: usize) -> bool {
        let breakpoints = self.breaks.breakpoints();
        if breakpoints.is_empty() {
            return false;
        }
        let timeline = self.timeline();
        let here = EvalContext { at, ..self.scope(&timeline) };
        breakpoints.iter().any(|b| b.spec.is_at(&here))
    }

    /// `breaks`: all breakpoints and watches.
    pub fn break_list(&self, number: NumberFormat) -> Answer {
        let (breakpoints, watches) = (self.breaks.breakpoints(), self.breaks.watches());
        let title = if breakpoints.is_empty() && watches.is_empty() { "break.none" } else { "break.title" };
        let mut answer = Answer::new(Msg::new(title));
        for b in breakpoints {
            let once = b.spec.is_once();
            let msg = Msg::new(if once { "break.row_once" } else { "break.row" })
                .arg("id", b.id)
                .arg("what", escape(b.spec.text()))
                .arg("hits", b.hits);
            answer.push(Row::new(msg).delete(Action::Delete(Text(b.id.to_string()))));
        }
        for row in self.watch_rows(number) {
            answer.push(row);
        }
        answer
    }

    /// The watches with their values at this step.
    pub fn watch_rows(&self, number: NumberFormat) -> Vec<Row> {
        let timeline = self.timeline();
        let here = EvalContext { past: true, ..self.scope(&timeline) };
        let row = |w: &Watch| {
            let id = w.id.to_string();
            let what = escape(w.expr.text()).into_owned();
            let (msg, level, action) = match value(w, &here) {
                Ok(Some(x)) => {
                    let cell = x.number().and_then(|_| x.cell(0));
                    let msg = Msg::new("watch.row").arg("value", brief(&x, number));
                    let go = cell.map(|(run, cell)| self.go_to_cell(run, cell));
                    (msg, Level::Info, go)
                }
                Ok(None) => (Msg::new("watch.not_yet"), Level::Info, None),
                Err(e) => (Msg::new("watch.error").arg("why", e.msg), Level::Warning, None),
            };
            let row = Row::new(msg.arg("id", &id).arg("what", what)).level(level).delete(Action::Unwatch(Text(id)));
            Row { action, ..row }
        };
        self.breaks.watches().iter().map(row).collect()
    }

    /// `delete N`, `delete all`.
    pub(super) fn delete_break(&mut self, text: &str, ui: &mut Ui) {
        self.remove(text, false, ui);
    }

    /// `watch [EXPRESSION]`: the cell under the cursor where nothing is said; all watches where there is none.
    pub(super) fn set_watch(&mut self, text: &str, ui: &mut Ui) {
        let mut text = text.trim().to_owned();
        if text.is_empty() {
            match self.cell() {
                Some((run, cell)) => text = self.pinned(run, cell),
                None => return self.answer_watches(ui),
            }
        }
        let timeline = self.timeline();
        let mut breaks = std::mem::take(&mut self.breaks);
        let made = breaks.watch(&text, &self.scope(&timeline));
        self.breaks = breaks;
        match made {
            Err(e) => wrong(ui, &text, &e),
            Ok(_) => self.answer_watches(ui),
        }
    }

    fn answer_watches(&self, ui: &mut Ui) {
        let rows = self.watch_rows(ui.settings.digits);
        let title = if rows.is_empty() { "watch.none" } else { "watch.title" };
        let title = Msg::new(title);
        ui.answer(Answer { title, rows });
    }

    /// `unwatch N`, `unwatch EXPRESSION`, `unwatch all`.
    pub(super) fn unset_watch(&mut self, text: &str, ui: &mut Ui) {
        self.remove(text, true, ui);
    }

    fn remove(&mut self, text: &str, watches: bool, ui: &mut Ui) {
        let text = text.trim();
        let named = || {
            let of_watch = self.breaks.watches().iter().find(|w| w.expr.text() == text);
            let of_break = self.breaks.breakpoints().iter().find(|b| b.spec.text() == text);
            of_watch.map(|w| w.id).or(of_break.map(|b| b.id))
        };
        if text == "all" {
            let count = self.breaks.clear(watches);
            return ui.say(Level::Done, Msg::new("break.cleared").arg("count", count));
        }
        let id = text.parse::<u32>().ok().or_else(named);
        match id.filter(|id| self.breaks.remove(*id)) {
            Some(id) => ui.say(Level::Done, Msg::new("break.removed").arg("id", id)),
            None => ui.say(Level::Error, Msg::new("break.no_such").arg("what", escape(text))),
        }
    }

    /// `continue` and `reverse-continue`: to where something stops.
    pub(super) fn run_on(&mut self, direction: Direction, ui: &mut Ui) {
        let timeline = self.timeline();
        let from = self.at_position(&timeline);
        if self.breaks.breakpoints().is_empty() && self.breaks.watches().is_empty() {
            return ui.say(Level::Info, Msg::new("break.none"));
        }
        let mut breaks = std::mem::take(&mut self.breaks);
        let before = breaks.breakpoints().to_vec();
        let stop = breaks.run(&self.scope(&timeline), from, direction);
        self.breaks = breaks;
        let now = self.breaks.breakpoints();
        for gone in before.iter().filter(|b| !now.iter().any(|n| n.id == b.id)) {
            ui.forget(|a| match a {
                Action::Break(Text(text)) | Action::TBreak(Text(text)) => text.trim() == gone.spec.text(),
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
        self.leave();
        self.stop_at(&stop);
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
        ui.say(level, Msg::new("tui.answer.plain").arg("text", all.join(" · ")));
    }

    fn stop_at(&mut self, stop: &Stop) {
        self.arrive_at(stop.at.step);
        let cell = stop.reasons.iter().find_map(|r| match r {
            Reason::Break { met, .. } => met.as_ref()?.cell,
            Reason::Watch { change, .. } => change.cell,
            Reason::Error { .. } => None,
        });
        if let Some((run, node)) = stop.at.inside {
            let flat = cell.filter(|(r, c)| *r == run && c.node == node).map_or(0, |(_, c)| c.flat);
            return self.show_cell(run, Cell { node, flat });
        }
        if let Some((run, cell)) = cell
            && let Some((view, index)) = self.here(run, cell)
        {
            self.select(view, &index);
        }
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
