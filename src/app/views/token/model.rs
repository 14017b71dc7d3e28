//! Which token is followed, and its rows in the steps.

use crate::app::navigator::Navigator;
use crate::program::{NodeId, Side};
use crate::tensor::{Axis, Slice};
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

/// A row of a tensor that belongs to the token; of a tensor with heads there is one a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Position of the step that shows the tensor, or the first thing that comes of it.
    pub step: usize,
    /// Its run.
    pub run: usize,
    /// Its node.
    pub node: NodeId,
    /// What it is called: by the step, or where no step shows it by the end of its path.
    pub symbol: String,
    /// Position among the step's tensors; none where no step shows it.
    pub view: Option<usize>,
    /// Which head, where the tensor has several.
    pub head: Option<usize>,
    /// Positions of its numbers in the whole tensor: the first.
    pub first: usize,
    /// Distance.
    pub stride: usize,
    /// How many.
    pub len: usize,
}

/// Axes that a tensor has one row a token for each place of.
fn is_head(axis: Axis) -> bool {
    matches!(axis, Axis::Head | Axis::KvHead | Axis::Group)
}

/// The axis of a view that its rows run along: tokens, with nothing but columns next to them, and sentences and heads
/// before or between. Of a tensor with one number a token it is the last.
fn token_axis(view: &View) -> Option<usize> {
    let axes = view.cells.of.axes();
    let axis = axes.iter().position(|a| matches!(a, Axis::Token | Axis::Query))?;
    let last = axes.len() - 1;
    let free = |d: usize| axes[d] == Axis::Batch || is_head(axes[d]) || view.cells.ranges[d].len() == 1;
    (0..last).filter(|d| *d != axis).all(free).then_some(axis)
}

/// The token of row `row` of a view, in sentence `batch`.
fn token_of(nav: &Navigator, view: &View, row: usize, batch: usize) -> Option<Token> {
    let axis = token_axis(view)?;
    let (side, call) = nav.session.sentence_of(view.run, view.node, axis);
    let of_batch = view.cells.of.axes().iter().position(|a| *a == Axis::Batch);
    let batch = of_batch.map_or(Some(0), |d| view.cells.ranges[d].contains(&batch).then_some(batch))?;
    let range = &view.cells.ranges[axis];
    Some(Token {
        side,
        // A source sentence is the same in every call.
        call: call.filter(|_| side == Side::Target),
        batch,
        at: range.start + row.min(range.len().saturating_sub(1)),
    })
}

/// The token that the cursor is at, else the first one of the nearest tensor before that has rows of tokens.
fn token_here(nav: &Navigator) -> Option<(Token, &View)> {
    let view = nav.view()?;
    let at = || {
        let (_, cell) = nav.cell()?;
        let axis = token_axis(view)?;
        Some(view.cells.of.unflat(cell.flat)[axis].saturating_sub(view.cells.ranges[axis].start))
    };
    let batch = nav.batch();
    if let Some(token) = token_of(nav, view, at().unwrap_or(0), batch) {
        return Some((token, view));
    }
    let list = nav.steps.list();
    let near = (0..=nav.position()).rev().chain(nav.position() + 1..list.len());
    let mut views = near.filter_map(|i| list.get(i)).flat_map(|s| &s.views);
    views.find_map(|v| Some((token_of(nav, v, 0, batch).filter(|_| v.run == view.run)?, v)))
}

/// The rows of a view that are the token's.
fn rows_in(nav: &Navigator, step: usize, at: Option<usize>, view: &View, token: &Token) -> Vec<Row> {
    let of = || {
        let axis = token_axis(view)?;
        let range = view.cells.ranges[axis].clone();
        let same = range.contains(&token.at).then(|| token.at - range.start)?;
        (token_of(nav, view, same, token.batch)? == *token).then_some(axis)
    };
    let Some(axis) = of() else { return Vec::new() };
    let shape = view.cells.of;
    let axes = shape.axes();
    let last = shape.rank() - 1;
    let mut starts: Vec<Vec<usize>> = vec![view.cells.ranges.iter().map(|r| r.start).collect()];
    for d in 0..shape.rank() {
        match axes[d] {
            _ if d == axis => starts.iter_mut().for_each(|s| s[d] = token.at),
            Axis::Batch => starts.iter_mut().for_each(|s| s[d] = token.batch),
            a if is_head(a) && d < last => {
                let places = view.cells.ranges[d].clone();
                let at = |start: &Vec<usize>, place: usize| {
                    let mut start = start.clone();
                    start[d] = place;
                    start
                };
                starts = starts.iter().flat_map(|s| places.clone().map(move |p| at(s, p))).collect();
            }
            _ => {}
        }
    }
    // Heads that share keys are counted through.
    let head = |start: &[usize]| {
        let of = (0..last).filter(|d| is_head(axes[*d]) && shape.dims()[*d] > 1);
        of.fold(None, |head: Option<usize>, d| Some(head.unwrap_or(0) * shape.dims()[d] + start[d]))
    };
    let row = |start: Vec<usize>| Row {
        step,
        run: view.run,
        node: view.node,
        symbol: view.symbol.clone(),
        view: at,
        head: head(&start),
        first: shape.flat(&start),
        stride: shape.strides()[last],
        len: if axis == last { 1 } else { view.cells.ranges[last].len() },
    };
    starts.into_iter().map(row).collect()
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
        let nodes = nav.nodes_of_steps(here.run);
        let program = &nav.session.runs[here.run].program;
        let rows_of = |i: usize| -> Vec<Row> {
            let shown = list[i].views.iter().enumerate().filter(|(_, v)| list[i].run == here.run && v.run == here.run);
            let mut rows: Vec<Row> = shown.flat_map(|(k, v)| rows_in(nav, i, Some(k), v, &token)).collect();
            // What leads to them and no step shows; the same numbers in another shape are not listed twice.
            let is_shown = |id: NodeId| list[i].views.iter().any(|v| (v.run, v.node) == (here.run, id));
            let hidden = |id: &&NodeId| {
                let node = program.node(**id);
                !node.inline && !node.op.moves_only() && !is_shown(**id)
            };
            for id in nodes.of(i).iter().filter(hidden) {
                let symbol = program.node(*id).name.tail(1);
                if let Ok(view) = View::new(program, here.run, *id, symbol, Slice::default()) {
                    rows.extend(rows_in(nav, i, None, &view, &token));
                }
            }
            // In the order in which they are computed.
            rows.sort_by_key(|r| r.node);
            rows
        };
        // The rest of a long run is not looked at.
        let next = (nav.position() + 1).min(list.len());
        let before = (0..next).rev();
        let before = before.flat_map(|i| rows_of(i).into_iter().rev());
        let mut rows: Vec<Row> = before.take(most.max(1)).collect();
        rows.reverse();
        // Of the tensor looked at, the row of the head looked at.
        let here_is = |r: &Row| r.step == nav.position() && r.view == Some(nav.view_position()) && nav.depth() == 0;
        let of_head = rows.iter().rposition(|r| here_is(r) && r.head.is_none_or(|h| h == nav.head()));
        let at = of_head.unwrap_or(rows.len().saturating_sub(1));
        rows.extend((next..list.len()).flat_map(rows_of).take(most));
        let labels = token_axis(here).map(|a| nav.session.axis_labels(here.run, here.node, a, token.batch));
        let word = labels.and_then(|l| l.get(token.at)).unwrap_or_default();
        Some(Self { token, word, rows, at })
    }
}
