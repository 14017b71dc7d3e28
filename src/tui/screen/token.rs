//! One token followed through all steps.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::lists::nothing;
use crate::app::app::App;
use crate::app::debugger::Debugger;
use crate::tensor::Axis;
use crate::text::{Align, Msg};
use crate::tui::draw::{Look, follow, put};
use crate::walkthrough::View;

/// Numbers of a row that are written, as far as there is room.
const WRITTEN: usize = 64;
/// Numbers of a row that its norm is of.
const NORMED: usize = 4096;

/// A token of a sentence: whose it is and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    side: &'static str,
    call: Option<String>,
    batch: usize,
    at: usize,
}

/// A row of a view that belongs to the token.
struct Row {
    /// Position of the step.
    step: usize,
    /// Position of the view in it.
    view: usize,
    /// Positions of its numbers in the whole tensor: the first, the distance, how many.
    first: usize,
    stride: usize,
    len: usize,
}

/// The axis of a view that its rows run along: tokens, with nothing but columns beside.
fn token_axis(view: &View) -> Option<usize> {
    let axes = view.cells.of.axes();
    let axis = axes.iter().position(|a| matches!(a, Axis::Token | Axis::Query))?;
    let last = axes.len() - 1;
    let columns = (axis + 1..=last).filter(|d| view.cells.ranges[*d].len() > 1);
    let leading = (0..axis).all(|d| view.cells.ranges[d].len() == 1);
    (axis < last && leading && columns.eq(std::iter::once(last))).then_some(axis)
}

/// The token of row `row` of a view.
fn token_of(d: &Debugger, view: &View, row: usize) -> Option<Token> {
    let axis = token_axis(view)?;
    let (side, call) = d.session.sentence_of(view.run, view.node, axis);
    let batch = view.cells.of.axes().iter().position(|a| *a == Axis::Batch);
    let range = &view.cells.ranges[axis];
    Some(Token {
        side,
        // A source sentence is the same in every call.
        call: call.filter(|_| side == "target").map(str::to_owned),
        batch: batch.map_or(0, |d| view.cells.ranges[d].start),
        at: range.start + row.min(range.len().saturating_sub(1)),
    })
}

/// The token that the cursor is at, else the first one of the nearest tensor before that has rows of tokens.
fn token_here(d: &Debugger) -> Option<(Token, &View)> {
    let view = d.view()?;
    let row = d.index().len().checked_sub(2).map_or(0, |i| d.index()[i]);
    if let Some(token) = token_of(d, view, row) {
        return Some((token, view));
    }
    let list = d.steps.list();
    let near = (0..=d.position()).rev().chain(d.position() + 1..list.len());
    let mut views = near.filter_map(|i| list.get(i)).flat_map(|s| &s.views);
    views.find_map(|v| Some((token_of(d, v, 0).filter(|_| v.run == view.run)?, v)))
}

/// The row of a view that is the token's.
fn row_in(d: &Debugger, step: usize, at: usize, view: &View, token: &Token) -> Option<Row> {
    let axis = token_axis(view)?;
    let range = view.cells.ranges[axis].clone();
    let same = range.contains(&token.at).then(|| token.at - range.start)?;
    if token_of(d, view, same)? != *token {
        return None;
    }
    let shape = view.cells.of;
    let mut first: Vec<usize> = view.cells.ranges.iter().map(|r| r.start).collect();
    first[axis] = token.at;
    let last = shape.rank() - 1;
    Some(Row {
        step,
        view: at,
        first: shape.flat(&first),
        stride: shape.strides()[last],
        len: view.cells.ranges[last].len(),
    })
}

/// One row (token) followed through all steps.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let Some((token, here)) = token_here(d) else {
        return nothing(area, buf, "tui.no_token", look);
    };
    let list = d.steps.list();
    let height = usize::from(area.height.saturating_sub(1));
    let rows_of = |i: usize| {
        let own = |v: &&View| list[i].run == here.run && v.run == here.run;
        let views = list[i].views.iter().enumerate();
        views.filter(move |(_, v)| own(v)).filter_map(|(k, v)| row_in(d, i, k, v, &token)).collect::<Vec<Row>>()
    };
    // No more than a screen of rows before and after: the rest of a long run is not looked at.
    let next = (d.position() + 1).min(list.len());
    let before = (0..next).rev();
    let before = before.flat_map(|i| rows_of(i).into_iter().rev());
    let mut rows: Vec<Row> = before.take(height.max(1)).collect();
    rows.reverse();
    let at = rows.len().saturating_sub(1);
    rows.extend((next..list.len()).flat_map(rows_of).take(height));
    let labels = d.session.view_labels(here).0;
    let first = token_axis(here).map_or(0, |a| here.cells.ranges[a].start);
    let name = token.at.checked_sub(first).and_then(|at| labels.get(at));
    let title = Msg::new("tui.token_title")
        .arg("row", token.at + 1)
        .arg("token", name.cloned().unwrap_or_default())
        .render(look.lang);
    let style = look.theme.title;
    put(buf, area, (area.x, area.y), &title, area.width, style, look);
    let middle = at.saturating_sub(height / 2);
    let first = follow(middle, at, height.max(1), rows.len());
    for (k, row) in rows.iter().enumerate().skip(first).take(height) {
        let line = Rect { y: area.y + 1 + (k - first) as u16, height: 1, ..area };
        one(app, row, k == at, line, buf, look);
    }
}

/// Step, symbol, norm and numbers of a row.
fn one(app: &App, row: &Row, current: bool, line: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let step = &d.steps.list()[row.step];
    let view = &step.views[row.view];
    let Some(value) = d.trace(view.run).and_then(|t| t.get(view.node)) else {
        return;
    };
    let number = |c: usize| value.get(row.first + c * row.stride);
    let squares = (0..row.len.min(NORMED)).map(|c| number(c).powi(2));
    let norm = squares.sum::<f64>().sqrt();
    let digits = app.ui.settings.digits;
    // Written until the line is full, so that what is cut off can be seen to be.
    let mut text = String::new();
    for c in 0..row.len.min(WRITTEN) {
        if text.chars().count() > usize::from(line.width) {
            break;
        }
        let apart = if c == 0 { " " } else { "  " };
        text.push_str(apart);
        text.push_str(&digits.format(number(c)));
    }
    let style = if current { look.theme.accent } else { look.theme.text };
    let head = format!("{:>4} {}", step.label(), view.symbol);
    let pieces = [
        (look.fit(&head, 18, Align::Left), style),
        (look.fit(&format!("‖{}‖", digits.format(norm)), 12, Align::Right), look.theme.dim),
        (text, style),
    ];
    let mut x = line.x;
    for (text, style) in pieces {
        let left = line.right().saturating_sub(x);
        x += put(buf, line, (x, line.y), &text, left, style, look);
    }
}
