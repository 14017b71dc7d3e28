//! What edits changed, as an answer: loss, predictions, changed cells; and how an edit is written.

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::{Place, StepTarget};
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::debug::whatif::{Edit, Prediction, Report};
use crate::scenario::edit;
use crate::text::{Lang, Msg, NumberFormat, escape};

/// Most tensors that an answer lists; so many predictions, too.
const MAX_LISTED: usize = 12;

/// What edits changed, as an answer.
pub fn answer(nav: &Navigator, title: Msg, report: &Report, number: NumberFormat, lang: Lang) -> Answer {
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
    if let Some(step) = report.first_step.and_then(|at| nav.steps.list().get(at)) {
        let msg = Msg::new("edit.first_step").arg("step", step.label()).arg("title", step.title.render(lang));
        let to = Action::Step(StepTarget::Number(step.number.clone()));
        answer.push(Row::new(msg).action(to));
    }
    // Numbers inside a written line are no tensors that a user looks at.
    let run = nav.session.run_named(&report.run).unwrap_or(0);
    let program = &nav.session.runs[run].program;
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
pub fn describe(edit: &Edit) -> String {
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
pub fn ablation(edit: &edit::Edit) -> String {
    match edit {
        edit::Edit::Head { attention, head, .. } => format!("head {attention}.{head}"),
        edit::Edit::Layer { layer, .. } => format!("layer {layer}"),
        edit::Edit::Block { block, .. } => format!("block {block}"),
        edit::Edit::Positions { side, .. } => format!("positions {}", side.name()),
        edit::Edit::Position { side, at, .. } => format!("position {} {at}", side.name()),
        edit::Edit::Cell { path, .. } => path.clone(),
    }
}
