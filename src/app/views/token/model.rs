//! Which token is followed, and its rows in the steps.

use crate::app::navigator::Navigator;
use crate::program::Side;
use crate::tensor::Axis;
use crate::walkthrough::View;

/// A token of a sentence: whose it is and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Of the source or the target.
    pub side: Side,
    /// The decoding call of a target.
    pub call: Option<u32>,
    /// Which sentence.
    pub batch: usize,
    /// Position in it.
    pub at: usize,
}

/// A row of a view that belongs to the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Position of the step.
    pub step: usize,
    /// Position of the view in it.
    pub view: usize,
    /// Positions of its numbers in the whole tensor: the first.
    pub first: usize,
    /// Distance.
    pub stride: usize,
    /// How many.
    pub len: usize,
}

/// The axis of a view that its rows run along: tokens, with nothing but columns next to them.
fn token_axis(view: &View) -> Option<usize> {
    let axes = view.cells.of.axes();
    let axis = axes.iter().position(|a| matches!(a, Axis::Token | Axis::Query))?;
    let last = axes.len() - 1;
    let columns = (axis + 1..=last).filter(|d| view.cells.ranges[*d].len() > 1);
    let leading = (0..axis).all(|d| view.cells.ranges[d].len() == 1);
    (axis < last && leading && columns.eq(std::iter::once(last))).then_some(axis)
}

/// The token of row `row` of a view.
fn token_of(nav: &Navigator, view: &View, row: usize) -> Option<Token> {
    let axis = token_axis(view)?;
    let (side, call) = nav.session.sentence_of(view.run, view.node, axis);
    let batch = view.cells.of.axes().iter().position(|a| *a == Axis::Batch);
    let range = &view.cells.ranges[axis];
    Some(Token {
        side,
        // A source sentence is the same in every call.
        call: call.filter(|_| side == Side::Target),
        batch: batch.map_or(0, |d| view.cells.ranges[d].start),
        at: range.start + row.min(range.len().saturating_sub(1)),
    })
}

/// The token that the cursor is at, else the first one of the nearest tensor before that has rows of tokens.
fn token_here(nav: &Navigator) -> Option<(Token, &View)> {
    let view = nav.view()?;
    let row = nav.index().len().checked_sub(2).map_or(0, |i| nav.index()[i]);
    if let Some(token) = token_of(nav, view, row) {
        return Some((token, view));
    }
    let list = nav.steps.list();
    let near = (0..=nav.position()).rev().chain(nav.position() + 1..list.len());
    let mut views = near.filter_map(|i| list.get(i)).flat_map(|s| &s.views);
    views.find_map(|v| Some((token_of(nav, v, 0).filter(|_| v.run == view.run)?, v)))
}

/// The row of a view that is the token's.
fn row_in(nav: &Navigator, step: usize, at: usize, view: &View, token: &Token) -> Option<Row> {
    let axis = token_axis(view)?;
    let range = view.cells.ranges[axis].clone();
    let same = range.contains(&token.at).then(|| token.at - range.start)?;
    if token_of(nav, view, same)? != *token {
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

/// A token in the steps around the place one is at.
#[derive(Debug)]
pub struct Rows {
    /// The token.
    pub token: Token,
    /// Its word; empty where it has none.
    pub word: String,
    /// Its rows, in the order of the steps.
    pub rows: Vec<Row>,
    /// Which of them is the one at or before the place one is at.
    pub at: usize,
}

impl Rows {
    /// At most `most` rows before and after; `None` where no tensor near has rows of tokens.
    pub fn around(nav: &Navigator, most: usize) -> Option<Self> {
        let (token, here) = token_here(nav)?;
        let list = nav.steps.list();
        let rows_of = |i: usize| {
            let own = |v: &&View| list[i].run == here.run && v.run == here.run;
            let views = list[i].views.iter().enumerate();
            views.filter(move |(_, v)| own(v)).filter_map(|(k, v)| row_in(nav, i, k, v, &token)).collect::<Vec<Row>>()
        };
        // The rest of a long run is not looked at.
        let next = (nav.position() + 1).min(list.len());
        let before = (0..next).rev();
        let before = before.flat_map(|i| rows_of(i).into_iter().rev());
        let mut rows: Vec<Row> = before.take(most.max(1)).collect();
        rows.reverse();
        let at = rows.len().saturating_sub(1);
        rows.extend((next..list.len()).flat_map(rows_of).take(most));
        let first = token_axis(here).map_or(0, |a| here.cells.ranges[a].start);
        let labels = nav.session.view_labels(here).0;
        let word = token.at.checked_sub(first).and_then(|at| labels.get(at)).cloned().unwrap_or_default();
        Some(Self { token, word, rows, at })
    }
}
