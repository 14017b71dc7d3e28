//! What edits changed, on the screen and as an answer: values before, changed cells and steps, loss and predictions.

use super::Navigator;
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::{Place, StepTarget};
use crate::app::messages::Level;
use crate::debug::whatif::{self, Before, Changes, Edit, Prediction, Report, WhatIf};
use crate::program::NodeId;
use crate::scenario::edit;
use crate::session::Session;
use crate::text::{Msg, NumberFormat, escape};

/// Most tensors that an answer lists; so many predictions, too.
const MAX_LISTED: usize = 12;

impl Navigator {
    /// The edits, where there are any.
    fn active(&self) -> Option<&WhatIf> {
        let mine = |w: &&WhatIf| std::sync::Arc::ptr_eq(w.session(), &self.session);
        let w = self.what_if.as_ref().filter(mine)?;
        (!w.edits().is_empty()).then_some(w)
    }

    /// Number of edits that hold.
    pub fn edit_count(&self) -> usize {
        self.active().map_or(0, |w| w.edits().len())
    }

    /// The edits that hold, as they are told.
    pub(super) fn edit_lines(&self) -> Vec<String> {
        let edits = self.active().map_or(&[][..], WhatIf::edits);
        edits.iter().map(describe).collect()
    }

    /// Number of edits that hold, where they are not those that were saved last.
    pub fn unsaved_edits(&self) -> usize {
        let edits = self.edit_lines();
        if edits == self.saved { 0 } else { edits.len() }
    }

    /// Loss before and after the edits, of the run looked at where it has one, else of the first that has.
    pub fn edited_loss(&self) -> Option<(f64, f64)> {
        let w = self.active()?;
        let of = |s: &Session, run: usize| {
            let id = s.runs[run].outputs.loss?;
            Some(s.trace(run).ok()?.get(id)?.get(0))
        };
        let here = self.step().map_or(0, |s| s.run);
        let with_loss = |r: &usize| self.session.runs[*r].outputs.loss.is_some();
        let run = Some(here).filter(with_loss).or_else(|| (0..self.session.runs.len()).find(with_loss))?;
        let before = w.base().run_named(&self.session.runs[run].name)?;
        of(w.base(), before).zip(of(&self.session, run))
    }

    /// The value that a tensor had before the edits.
    pub fn before(&self, run: usize, node: NodeId) -> Before {
        let Some(w) = self.active() else {
            return Before::Same;
        };
        let key = (run, node, self.round);
        if let Some(known) = self.befores.borrow().get(&key) {
            return known.clone();
        }
        let found = self.value_before(w, run, node).unwrap_or(Before::Same);
        self.befores.borrow_mut().insert(key, found.clone());
        found
    }

    fn value_before(&self, w: &WhatIf, run: usize, node: NodeId) -> Option<Before> {
        let Some(digits) = self.round else {
            let changes = Changes::of(w.base(), &self.session, run).ok()?;
            return Some(changes.map_or(Before::None, |c| c.before(node)));
        };
        let Some(old) = w.base().run_named(&self.session.runs[run].name) else {
            return Some(Before::None);
        };
        let before = w.base().rounded(old, digits).ok()?;
        let after = self.session.rounded(run, digits).ok()?;
        Some(Changes::between(&before, &after).before(node))
    }

    /// Whether the step at a position of the list shows a changed cell.
    pub fn step_changed(&self, at: usize) -> bool {
        let Some(w) = self.active() else {
            return false;
        };
        let key = (self.run, at);
        if let Some(known) = self.changed_steps.borrow().get(&key) {
            return *known;
        }
        let step = self.steps.list().get(at);
        let changed = step.is_some_and(|s| whatif::step_changed(w.base(), &self.session, s));
        self.changed_steps.borrow_mut().insert(key, changed);
        changed
    }

    /// What edits changed, as an answer.
    pub(super) fn told(&self, title: Msg, report: &Report, number: NumberFormat) -> Answer {
        let mut answer = Answer::new(title);
        let number = |x: f64| number.format(x);
        if report.lost_steps > 0 {
            let msg = Msg::new("edit.lost_steps").arg("count", report.lost_steps);
            answer.push(Row::new(msg).level(Level::Warning));
        }
        if let Some((before, after)) = report.loss {
            let same = before.to_bits() == after.to_bits();
            let key = if same { "edit.same_loss" } else { "edit.loss" };
            let msg = Msg::new(key).arg("before", number(before));
            answer.push(Row::new(msg.arg("after", number(after))));
        }
        if report.places > 0 {
            let same = report.predictions.is_empty();
            let msg = Msg::new(if same { "edit.same_predictions" } else { "edit.predictions" });
            let msg = msg.arg("changed", report.predictions.len()).arg("of", report.places);
            answer.push(Row::new(msg));
        }
        for (before, after) in report.predictions.iter().take(MAX_LISTED) {
            answer.push(Row::new(prediction(before.as_ref(), after.as_ref(), &number)));
        }
        let msg = Msg::new("edit.changed")
            .arg("changed", report.changed.len())
            .arg("nodes", report.nodes)
            .arg("run", escape(&report.run));
        answer.push(Row::new(msg));
        if let Some(step) = report.first_step.and_then(|at| self.steps.list().get(at)) {
            let msg = Msg::new("edit.first_step").arg("step", step.label()).arg("title", step.title.render(self.lang));
            let to = Action::Step(StepTarget::Number(step.number.clone()));
            answer.push(Row::new(msg).action(to));
        }
        // Numbers inside a written line are no tensors that a person looks at.
        let run = self.session.run_named(&report.run).unwrap_or(0);
        let program = &self.session.runs[run].program;
        let changed = report.changed.iter();
        let changed: Vec<_> = changed.filter(|c| !program.node(c.node).inline).collect();
        for c in changed.iter().take(MAX_LISTED) {
            let place = Place { name: c.path.to_string(), index: Vec::new() };
            let msg = Msg::new("edit.node").arg("path", &c.path).arg("cells", c.cells).arg("of", c.of);
            answer.push(Row::new(msg).action(Action::Go(place)));
        }
        if changed.len() > MAX_LISTED {
            let more = changed.len() - MAX_LISTED;
            answer.push(Row::new(Msg::new("edit.more").arg("count", more)));
        }
        answer
    }
}

/// A prediction before and after.
fn prediction(before: Option<&Prediction>, after: Option<&Prediction>, number: &dyn Fn(f64) -> String) -> Msg {
    let one = |p: Option<&Prediction>| {
        p.map_or_else(|| "–".to_owned(), |p| format!("{} {}", escape(&p.word), number(p.prob)))
    };
    let place = after.or(before);
    let msg = match place.and_then(|p| p.call) {
        Some(call) => Msg::new("edit.prediction_call").arg("call", call),
        None => Msg::new("edit.prediction"),
    };
    msg.arg("sentence", place.map_or(0, |p| p.sentence))
        .arg("position", place.map_or(0, |p| p.position))
        .arg("before", one(before))
        .arg("after", one(after))
}

/// An edit as it could be typed.
pub(super) fn describe(edit: &Edit) -> String {
    match edit {
        Edit::Recorded(edit::Edit::Cell { path, at, value, .. }) => {
            let at: Vec<String> = at.iter().map(ToString::to_string).collect();
            format!("{}[{}] = {value}", escape(path), at.join(","))
        }
        Edit::Recorded(edit) => format!("ablate {}", ablation(edit)),
        Edit::Token { place, id } => {
            format!("token {} {}:{} = #{id}", place.side.name(), place.sentence, place.position)
        }
        Edit::Input(text) => format!("input = {}", escape(text)),
        Edit::Setting { field, value } => format!("{} = {}", escape(field), escape(value)),
    }
}

/// What is ablated, as it could be typed.
pub(super) fn ablation(edit: &edit::Edit) -> String {
    match edit {
        edit::Edit::Head { attention, head, .. } => format!("head {attention}.{head}"),
        edit::Edit::Layer { layer, .. } => format!("layer {layer}"),
        edit::Edit::Position { side, at, .. } => format!("position {} {at}", side.name()),
        edit::Edit::Cell { path, .. } => path.clone(),
    }
}
