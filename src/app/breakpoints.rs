//! Breakpoints and watches as they are listed and marked.

use std::sync::Arc;

use super::action::Action;
use super::answer::{Answer, Row};
use super::args::{Expression, Text};
use super::messages::Level;
use super::navigator::{Navigator, Trail};
use crate::debug::breaks::{Breaks, Watch, value};
use crate::debug::eval_context::EvalContext;
use crate::debug::expr::Array;
use crate::text::{Msg, NumberFormat, escape};

/// Whether a breakpoint says that it is about a step.
pub fn is_at(nav: &Navigator, breaks: &Breaks, at: usize) -> bool {
    let breakpoints = breaks.breakpoints();
    if breakpoints.is_empty() {
        return false;
    }
    let timeline = nav.timeline();
    let here = EvalContext { at, ..nav.scope(&timeline) };
    breakpoints.iter().any(|b| b.spec.is_at(&here))
}

/// `breaks`: all breakpoints and watches.
pub fn list(nav: &Navigator, breaks: &Breaks, number: NumberFormat) -> Answer {
    let (breakpoints, watches) = (breaks.breakpoints(), breaks.watches());
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
    for row in watch_rows(nav, breaks, number) {
        answer.push(row);
    }
    answer
}

/// The watches with their values at this step.
pub fn watch_rows(nav: &Navigator, breaks: &Breaks, number: NumberFormat) -> Vec<Row> {
    let timeline = nav.timeline();
    let here = EvalContext { past: true, ..nav.scope(&timeline) };
    let row = |w: &Watch| {
        let id = w.id.to_string();
        let what = escape(w.expr.text()).into_owned();
        let (msg, level, action) = match value(w, &here) {
            Ok(Some(x)) => {
                let cell = x.number().and_then(|_| x.cell(0));
                let msg = Msg::new("watch.row").arg("value", brief(&x, number));
                let go = cell.map(|(run, cell)| nav.go_to_cell(run, cell));
                (msg, Level::Info, go)
            }
            Ok(None) => (Msg::new("watch.not_yet"), Level::Info, None),
            Err(e) => (Msg::new("watch.error").arg("why", e.msg), Level::Warning, None),
        };
        let row = Row::new(msg.arg("id", &id).arg("what", what)).level(level).delete(Action::Unwatch(Expression(id)));
        Row { action, ..row }
    };
    breaks.watches().iter().map(row).collect()
}

/// Most steps of a trail.
const TRAIL: usize = 256;

/// What a watch is along the steps. Kept: it is computed once for each session, list of steps and rounding.
pub fn trail(nav: &Navigator, watch: &Watch) -> Arc<Trail> {
    nav.trail(watch.expr.text(), || {
        let timeline = nav.timeline();
        let here = nav.scope(&timeline);
        let n = nav.steps.list().len();
        let most = n.min(TRAIL);
        let steps: Vec<usize> = (0..most).map(|i| (i * n + n - 1) / most).map(|at| at.min(n - 1)).collect();
        let number = |at: &usize| {
            let here = EvalContext { at: *at, past: true, shown: None, ..here };
            value(watch, &here).ok().flatten()?.number()
        };
        Trail { values: steps.iter().map(number).collect(), steps }
    })
}

/// A number as it is printed: truth in words.
pub fn number(array: &Array, x: f64, format: NumberFormat) -> String {
    match (array.is_truth(), x == 0.0) {
        (true, true) => "false".to_owned(),
        (true, false) => "true".to_owned(),
        _ => format.format(x),
    }
}

/// A value in a line: the number, or the shape and the first numbers.
pub fn brief(array: &Array, format: NumberFormat) -> String {
    if let Some(x) = array.number() {
        return number(array, x, format);
    }
    let n = array.shape().len();
    let mut first: Vec<String> = (0..n.min(6)).map(|i| number(array, array.get(i), format)).collect();
    if n > 6 {
        first.push("…".to_owned());
    }
    format!("{} [{}]", array.shape(), first.join(" "))
}
