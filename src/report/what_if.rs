//! What edits changed: loss, predictions, changed cells; and how an edit is written.

use super::{About, Level, Line};
use crate::debug::whatif::{Edit, Prediction, Report};
use crate::scenario::edit;
use crate::session::{Session, Steps};
use crate::text::{Lang, Msg, NumberFormat, escape};

/// Most tensors that are listed; so many predictions, too.
const MAX_LISTED: usize = 12;

/// What edits changed in a run of `session`, of which `steps` are listed.
pub fn lines(session: &Session, steps: &Steps, report: &Report, number: NumberFormat, lang: Lang) -> Vec<Line> {
    let mut lines = Vec::new();
    let number = |x: f64| number.format(x);
    if report.lost_steps > 0 {
        let msg = Msg::new("edit.lost_steps").arg("count", report.lost_steps);
        lines.push(Line::new(msg).level(Level::Warning));
    }
    if let Some((before, after)) = report.loss {
        let same = before.to_bits() == after.to_bits();
        let msg = Msg::new(if same { "edit.same_loss" } else { "edit.loss" }).arg("before", number(before));
        lines.push(Line::new(msg.arg("after", number(after))));
    }
    if report.places > 0 {
        let same = report.predictions.is_empty();
        let msg = Msg::new(if same { "edit.same_predictions" } else { "edit.predictions" });
        lines.push(Line::new(msg.arg("changed", report.predictions.len()).arg("of", report.places)));
    }
    let predictions = report.predictions.iter().take(MAX_LISTED);
    lines.extend(predictions.map(|(before, after)| Line::new(prediction(before.as_ref(), after.as_ref(), &number))));
    let msg = Msg::new("edit.changed").arg("changed", report.changed.len()).arg("nodes", report.nodes);
    lines.push(Line::new(msg.arg("run", escape(&report.run))));
    if let Some(step) = report.first_step.and_then(|at| steps.list().get(at)) {
        let msg = Msg::new("edit.first_step").arg("step", step.label()).arg("title", step.title.render(lang));
        lines.push(Line::new(msg).about(About::Step(step.number.clone())));
    }
    // Numbers inside a written line are no tensors that a user looks at.
    let program = &session.runs[session.run_named(&report.run).unwrap_or(0)].program;
    let changed: Vec<_> = report.changed.iter().filter(|c| !program.node(c.node).inline).collect();
    lines.extend(changed.iter().take(MAX_LISTED).map(|c| {
        let msg = Msg::new("edit.node").arg("path", &c.path).arg("cells", c.cells).arg("of", c.of);
        Line::new(msg).about(About::Node { run: None, path: c.path.to_string(), index: Vec::new() })
    }));
    if changed.len() > MAX_LISTED {
        lines.push(Line::new(Msg::new("edit.more").arg("count", changed.len() - MAX_LISTED)));
    }
    lines
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
