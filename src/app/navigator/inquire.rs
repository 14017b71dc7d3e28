//! Expressions on the screen and in scripts: what they are evaluated over, `print`, and how cells and values are named.

use std::sync::Arc;

use super::Navigator;
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::Place;
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::debug::breaks::Position;
use crate::debug::eval_context::{EvalContext, Values};
use crate::debug::expr::{Array, Expr, ExprError, Fault};
use crate::debug::timeline::Timeline;
use crate::explain::Explainer;
use crate::program::NodeId;
use crate::session::locate::Address;
use crate::text::{Msg, NumberFormat, escape, width};
use crate::trace::AnyValue;
use crate::trace::derive::Cell;

/// Most rows and columns that are printed of a tensor.
const MAX_PRINTED: usize = 64;

impl Values for Navigator {
    fn value(&self, run: usize, node: NodeId) -> Option<AnyValue> {
        self.trace(run)?.get(node)
    }
}

impl Navigator {
    /// The index of the steps that are listed.
    pub(super) fn timeline(&self) -> Arc<Timeline> {
        let mut kept = self.timeline.borrow_mut();
        if let Some((steps, timeline)) = &*kept
            && Arc::ptr_eq(steps, &self.steps)
        {
            return Arc::clone(timeline);
        }
        let made = Arc::new(Timeline::new(&self.session, &self.steps));
        *kept = Some((Arc::clone(&self.steps), Arc::clone(&made)));
        made
    }

    /// The place one is at, as expressions see it.
    pub(super) fn scope<'a>(&'a self, timeline: &'a Timeline) -> EvalContext<'a> {
        EvalContext {
            session: &self.session,
            steps: &self.steps,
            timeline,
            values: self,
            at: self.at,
            past: false,
            shown: self.step(),
            it: None,
        }
    }

    /// The place one is at, as breakpoints see it.
    pub(super) fn at_position(&self, timeline: &Timeline) -> Position {
        let beside = self.aside.as_ref().and_then(|s| s.views.first());
        let inside = beside.map(|v| (v.run, v.node));
        Position { step: self.at, inside: inside.filter(|i| timeline.hidden(self.at).contains(i)) }
    }

    /// The cell that `text` names, such as `A1[0,2]`; the one under the cursor where it is empty.
    ///
    /// # Errors
    /// Where it cannot be read, or is not one recorded number.
    pub(super) fn cell_called(&self, text: &str) -> Result<Option<(usize, Cell)>, ExprError> {
        if text.is_empty() {
            return Ok(self.cell());
        }
        let timeline = self.timeline();
        let array = Expr::parse(text)?.eval(&self.scope(&timeline))?;
        let cell = array.number().and_then(|_| array.cell(0));
        cell.map(Some).ok_or_else(|| {
            let at = 0..text.chars().count();
            ExprError::new(Fault::Value, at, Msg::new("expr.not_a_cell"))
        })
    }

    /// What a cell is called: by a symbol where one of the steps shows it, or something it was moved to; else by its path.
    pub(super) fn call(&self, x: &Explainer<'_>, run: usize, cell: Cell) -> String {
        let symbol = |c: &Cell| self.session.cell_name(&self.steps, run, *c, self.at);
        let moves = crate::debug::tree::moves(x, cell);
        moves.iter().find_map(symbol).unwrap_or_else(|| self.path_of(run, cell))
    }

    /// The path of a cell with its index, batches of 1 left out: `encoder.0.ffn.act[3][1]`.
    pub(super) fn path_of(&self, run: usize, cell: Cell) -> String {
        let path = &self.session.runs[run].program.node(cell.node).path;
        let index = self.index_of(run, cell);
        let index: Vec<String> = index.iter().map(|i| format!("[{i}]")).collect();
        format!("{path}{}", index.concat())
    }

    fn index_of(&self, run: usize, cell: Cell) -> Vec<usize> {
        Address::of_node(&self.session, run, cell.node).and_then(|t| t.part.index_of(cell.flat)).unwrap_or_default()
    }

    /// The command that goes to a cell.
    pub(super) fn go_to_cell(&self, run: usize, cell: Cell) -> Action {
        let r = &self.session.runs[run];
        let shape = r.program.node(cell.node).shape;
        let path = &r.program.node(cell.node).path;
        Action::Go(Place {
            name: format!("{}:{path}", r.name),
            index: shape.unflat(cell.flat)[..shape.rank()].to_vec(),
        })
    }

    /// An expression that is one cell, wherever one is: `training:encoder.0.ffn.act[3,1]`.
    pub(super) fn pinned(&self, run: usize, cell: Cell) -> String {
        let r = &self.session.runs[run];
        let index: Vec<String> = self.index_of(run, cell).iter().map(ToString::to_string).collect();
        let name = format!("{}:{}", r.name, r.program.node(cell.node).path);
        let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':'));
        let name = if plain && name.starts_with(char::is_alphabetic) { name } else { format!("\"{name}\"") };
        if index.is_empty() { name } else { format!("{name}[{}]", index.join(",")) }
    }

    /// `print EXPRESSION`.
    pub(super) fn print(&self, text: &str, ui: &mut Ui) {
        let number = ui.settings.digits;
        let target = self.view().map(Address::of_view);
        let shown = |text: &str| -> Result<Array, ExprError> {
            let timeline = self.timeline();
            let mut here = self.scope(&timeline);
            here.it = target.as_ref();
            Expr::parse(text)?.eval(&here)
        };
        // Nothing said: what one looks at.
        let asked = if text.is_empty() { "it" } else { text };
        match shown(asked) {
            Err(e) => wrong(ui, asked, &e),
            Ok(array) => {
                let name = match &target {
                    Some(t) if text.is_empty() => t.name.clone(),
                    _ => text.to_owned(),
                };
                let mut answer = printed(&name, &array, number);
                // Enter goes to where a row begins.
                let width = array.shape().dims().last().copied().unwrap_or(1);
                for (r, row) in answer.rows.iter_mut().enumerate() {
                    if let Some((run, cell)) = array.cell(r * width).filter(|_| array.shape().rank() < 3) {
                        row.action = Some(self.go_to_cell(run, cell));
                    }
                }
                ui.answer(answer);
            }
        }
    }
}

/// Says what is wrong with `text`: what and how to mend it, and the text with carets.
pub(super) fn wrong(ui: &mut Ui, text: &str, e: &ExprError) {
    let lang = ui.settings.lang;
    let (line, carets) = e.marked(text);
    let first = Msg::new("expr.at_column").arg("column", e.column()).arg("what", e.msg.render(lang)).render(lang);
    let mut answer = Answer::new(Msg::new("expr.here"));
    for text in [line, carets] {
        answer.push(Row::plain(text).level(Level::Error));
    }
    ui.answer(answer);
    let all = match &e.help {
        Some(help) => format!("{first} · {}", help.render(lang)),
        None => first,
    };
    ui.say(Level::Error, Msg::new("tui.answer.plain").arg("text", all));
}

/// A number as it is printed: truth in words.
pub(super) fn value(array: &Array, x: f64, number: NumberFormat) -> String {
    match (array.is_truth(), x == 0.0) {
        (true, true) => "false".to_owned(),
        (true, false) => "true".to_owned(),
        _ => number.format(x),
    }
}

/// A value in a line: the number, or the shape and the first numbers.
pub(super) fn brief(array: &Array, number: NumberFormat) -> String {
    if let Some(x) = array.number() {
        return value(array, x, number);
    }
    let n = array.shape().len();
    let mut first: Vec<String> = (0..n.min(6)).map(|i| value(array, array.get(i), number)).collect();
    if n > 6 {
        first.push("…".to_owned());
    }
    format!("{} [{}]", array.shape(), first.join(" "))
}

/// A value as an answer: a number in the title, a tensor in rows.
fn printed(text: &str, array: &Array, number: NumberFormat) -> Answer {
    let text = escape(text);
    if let Some(x) = array.number() {
        let title = format!("{text} = {}", value(array, x, number));
        return Answer::new(Msg::new("tui.answer.plain").arg("text", title));
    }
    let shape = array.shape();
    let title = format!("{text}: {shape}");
    let mut answer = Answer::new(Msg::new("tui.answer.plain").arg("text", title));
    let cols = shape.dims()[shape.rank() - 1].max(1);
    let rows = if shape.rank() > 1 { shape.dims()[shape.rank() - 2].max(1) } else { 1 };
    let all = shape.len() / cols;
    let shown: Vec<Vec<String>> = (0..all.min(MAX_PRINTED))
        .map(|r| {
            let cells = (0..cols.min(MAX_PRINTED)).map(|c| array.get(r * cols + c));
            cells.map(|x| value(array, x, number)).collect()
        })
        .collect();
    let widest = shown.iter().flatten().map(|t| width(t)).max().unwrap_or(0);
    for (r, cells) in shown.iter().enumerate() {
        // More than two axes: which matrix this is.
        if shape.rank() > 2 && r % rows == 0 {
            let at = shape.unflat(r * cols);
            let place: Vec<String> = at[..shape.rank() - 2].iter().map(ToString::to_string).collect();
            answer.push(Row::plain(format!("[{}, :, :]", place.join(", "))));
        }
        let mut line: Vec<String> = cells.iter().map(|t| format!("{}{t}", " ".repeat(widest - width(t)))).collect();
        if cols > MAX_PRINTED {
            line.push("…".to_owned());
        }
        answer.push(Row::plain(line.join("  ")));
    }
    if all > MAX_PRINTED {
        answer.push(Row::new(Msg::new("print.more_rows").arg("count", all - MAX_PRINTED)));
    }
    answer
}
