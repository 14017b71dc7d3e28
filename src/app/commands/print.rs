//! `print`: the value of an expression.

use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::Expression;
use crate::app::breakpoints::number as value;
use crate::debug::expr::{Array, Expr, ExprError};
use crate::session::locate::Address;
use crate::text::{Msg, NumberFormat, escape, width};

/// Most rows and columns that are printed of a tensor.
const MAX_PRINTED: usize = 64;

/// `print EXPRESSION`.
pub fn print(app: &mut App, Expression(text): &Expression) {
    let App { nav, ui, .. } = app;
    let number = ui.settings.digits;
    let target = nav.view().map(Address::of_view);
    let shown = |text: &str| -> Result<Array, ExprError> {
        let timeline = nav.timeline();
        let mut here = nav.scope(&timeline);
        here.it = target.as_ref();
        Expr::parse(text)?.eval(&here)
    };
    // Nothing said: what one looks at.
    let asked = if text.is_empty() { "it" } else { text };
    match shown(asked) {
        Err(e) => ui.wrong(asked, &e),
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
                    row.action = Some(nav.go_to_cell(run, cell));
                }
            }
            ui.answer(answer);
        }
    }
}

/// A value as an answer: a number in the title, a tensor in rows.
fn printed(text: &str, array: &Array, number: NumberFormat) -> Answer {
    let text = escape(text);
    if let Some(x) = array.number() {
        let title = format!("{text} = {}", value(array, x, number));
        return Answer::new(Msg::new("report.plain").arg("text", title));
    }
    let shape = array.shape();
    let title = format!("{text}: {shape}");
    let mut answer = Answer::new(Msg::new("report.plain").arg("text", title));
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

/// `grammar`: how expressions and breakpoints are written.
pub fn grammar(app: &mut App) {
    app.ui.answer(Answer {
        title: crate::debug::grammar::title(),
        rows: crate::debug::grammar::lines().into_iter().map(Row::new).collect(),
    });
}
