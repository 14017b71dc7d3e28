//! How a tensor of the reference corresponds to a node: as a whole, or with a part of its cells.

use serde::Deserialize;

use super::layout::Layout;
use crate::program::{Leaf, Mask, Node, Op, reason};
use crate::tensor::{Axis, MAX_RANK, Shape, Tensor};

/// What a reference's tensor tells of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Reading {
    /// All its cells.
    #[default]
    Whole,
    /// Those of all positions, or of the last ones only: who generates needs no others.
    LastRows,
    /// Labels; every negative one is ignored.
    Labels,
    /// Labels that the reference shifts itself: its next position holds the label of this one.
    NextLabels,
    /// The first components of each row only: those that rotate.
    Leading,
    /// All its cells, and in each row one more at the end: that of a sink.
    WithSink,
    /// Which keys may be seen (1) or are padding (0), where no other rule hides them.
    SeenKeys,
}

/// A tensor of the reference as our node lies.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    /// Its cells; NaN where it has none.
    pub tensor: Tensor<f64>,
    /// Which cells it has; all of them unless said.
    pub there: Option<Vec<bool>>,
    /// The sequence that it is of, where ours has no batch and the reference's sequences differ.
    pub row: Option<usize>,
}

impl Fitted {
    fn whole(tensor: Tensor<f64>) -> Self {
        Self { tensor, there: None, row: None }
    }

    /// What is known of cells one by one.
    fn partial(shape: Shape, cell: impl Fn(usize) -> Option<f64>) -> Self {
        let cells: Vec<Option<f64>> = (0..shape.len()).map(cell).collect();
        let data: Vec<f64> = cells.iter().map(|c| c.unwrap_or(f64::NAN)).collect();
        Self { tensor: Tensor::new(shape, data), there: Some(cells.iter().map(Option::is_some).collect()), row: None }
    }

    /// Its cells; `None` where it has none.
    pub fn cells(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        let there = |i: usize| self.there.as_ref().is_none_or(|there| there[i]);
        let cells = self.tensor.data().iter().enumerate();
        cells.map(move |(i, &x)| there(i).then_some(x))
    }

    /// All cells, `ours` where the reference has none.
    pub fn filled(&self, ours: &dyn Fn(usize) -> f64) -> Tensor<f64> {
        if self.there.is_none() {
            return self.tensor.clone();
        }
        let data: Vec<f64> = (self.cells().enumerate()).map(|(i, theirs)| theirs.unwrap_or_else(|| ours(i))).collect();
        Tensor::new(*self.tensor.shape(), data)
    }
}

impl Reading {
    /// One of our numbers as the reference would say it: labels that are ignored are all alike.
    pub(super) fn ours(self, x: f64) -> f64 {
        match self {
            Reading::Labels | Reading::NextLabels => x.max(IGNORED),
            _ => x,
        }
    }
}

/// The label that denotes all that are ignored.
const IGNORED: f64 = -1.0;

/// A tensor of the reference as ours lies; `None` where it does not fit. Axes of length 1 may be there or not.
pub(super) fn fit(found: &Tensor<f64>, layout: Option<&Layout>, reading: Reading, node: &Node) -> Option<Fitted> {
    let wanted = node.shape;
    match reading {
        Reading::Whole => with_batch(found, layout, &wanted),
        Reading::Leading => whole(found, layout, &wanted).map(Fitted::whole).or_else(|| leading(found, wanted)),
        Reading::WithSink => whole(found, layout, &wanted).or_else(|| without_sink(found, wanted)).map(Fitted::whole),
        Reading::LastRows => whole(found, layout, &wanted).map(Fitted::whole).or_else(|| last_rows(found, wanted)),
        Reading::Labels | Reading::NextLabels => {
            let labels = whole(found, layout, &wanted)?;
            let row = wanted.dims().last().copied().unwrap_or(1);
            let ahead = usize::from(reading == Reading::NextLabels);
            Some(Fitted::partial(wanted, |flat| {
                let inside = flat % row + ahead < row;
                inside.then(|| labels.data()[flat + ahead].max(IGNORED))
            }))
        }
        Reading::SeenKeys => match &node.op {
            Op::Leaf(Leaf::Mask(mask)) => seen_keys(found, mask, wanted),
            _ => None,
        },
    }
}

fn whole(found: &Tensor<f64>, layout: Option<&Layout>, wanted: &Shape) -> Option<Tensor<f64>> {
    let long = |s: &Shape| -> Vec<usize> { s.dims().iter().copied().filter(|n| *n != 1).collect() };
    let as_it_is = |found: &Tensor<f64>| match layout {
        Some(layout) => layout.arrange(found, wanted),
        None => (long(found.shape()) == long(wanted)).then(|| found.reshaped(*wanted)),
    };
    as_it_is(found)
        // A table without a batch may be recorded without one, and one that has a batch with it.
        .or_else(|| {
            let same = layout.is_some_and(Layout::drops_batch) && long(found.shape()) == long(wanted);
            same.then(|| found.reshaped(*wanted))
        })
        // PyTorch's own modules may put the tokens before the sequences.
        .or_else(|| {
            let swapped = tokens_first(found).filter(|_| wanted.axes().contains(&Axis::Batch))?;
            as_it_is(&swapped)
        })
        // Some modules see all tokens of the batch in one row of tokens.
        .or_else(|| as_it_is(&unflattened(found, wanted)?))
}

/// `[batch·token, …]` as `[batch, token, …]`.
fn unflattened(found: &Tensor<f64>, wanted: &Shape) -> Option<Tensor<f64>> {
    let (&batch, &rows) = (wanted.dims().first()?, found.shape().dims().first()?);
    let fits = wanted.axes().first() == Some(&Axis::Batch) && batch > 1 && rows.is_multiple_of(batch);
    let dims: Vec<usize> = [batch, rows / batch.max(1)].iter().chain(&found.shape().dims()[1..]).copied().collect();
    (fits && dims.len() <= MAX_RANK).then(|| found.reshaped(Shape::new(&dims)))
}

/// As [`whole`]; where ours has no batch, sequences of the reference that differ are no table of positions: the first
/// one that differs is what is compared.
fn with_batch(found: &Tensor<f64>, layout: Option<&Layout>, wanted: &Shape) -> Option<Fitted> {
    // Rows of a batch next to a table without one, as our own paths name it.
    let bare = |rest: &[usize]| layout.is_none() && !wanted.axes().contains(&Axis::Batch) && rest == wanted.dims();
    let drops = |rest: &[usize]| layout.is_some_and(Layout::drops_batch) || bare(rest);
    if let Some((batch, rest)) = found.shape().dims().split_first().filter(|(_, rest)| drops(rest)) {
        let size: usize = rest.iter().product();
        let rows: Vec<&[f64]> = found.data().chunks(size.max(1)).collect();
        let other = rows.iter().position(|row| row.iter().zip(rows[0]).any(|(a, b)| a.to_bits() != b.to_bits()));
        if let Some(row) = other.filter(|_| rows.len() == *batch && found.shape().rank() > wanted.rank()) {
            let dims: Vec<usize> = [1].iter().chain(rest).copied().collect();
            let one = Tensor::new(Shape::new(&dims), rows[row].to_vec());
            return Some(Fitted { row: Some(row), ..Fitted::whole(whole(&one, layout, wanted)?) });
        }
        if bare(rest) && *batch > 0 {
            return Some(Fitted::whole(Tensor::new(*wanted, rows[0].to_vec())));
        }
    }
    whole(found, layout, wanted).map(Fitted::whole)
}

/// `[token, batch, …]` as `[batch, token, …]`.
fn tokens_first(found: &Tensor<f64>) -> Option<Tensor<f64>> {
    let &[tokens, batch, ref rest @ ..] = found.shape().dims() else {
        return None;
    };
    let size: usize = rest.iter().product();
    let mut data = Vec::with_capacity(found.data().len());
    for b in 0..batch {
        for t in 0..tokens {
            data.extend_from_slice(&found.data()[(t * batch + b) * size..][..size]);
        }
    }
    let dims: Vec<usize> = [batch, tokens].iter().chain(rest).copied().collect();
    Some(Tensor::new(Shape::new(&dims), data))
}

/// The first components of rows: `[…, rotating]` of `[…, width]`.
fn leading(found: &Tensor<f64>, wanted: Shape) -> Option<Fitted> {
    let (theirs, ours) = (found.shape().dims(), wanted.dims());
    let (&r, &width) = (theirs.last()?, ours.last()?);
    let fits = theirs.len() == ours.len() && theirs[..theirs.len() - 1] == ours[..ours.len() - 1] && r < width;
    fits.then(|| {
        Fitted::partial(wanted, |flat| (flat % width < r).then(|| found.data()[flat / width * r + flat % width]))
    })
}

/// `[…, width]` of `[…, width + 1]`.
fn without_sink(found: &Tensor<f64>, wanted: Shape) -> Option<Tensor<f64>> {
    let (theirs, ours) = (found.shape().dims(), wanted.dims());
    let ((&more, outer), (&width, own)) = (theirs.split_last()?, ours.split_last()?);
    let rows = found.data().chunks(more.max(1));
    let data: Vec<f64> = rows.flat_map(|row| &row[..width.min(row.len())]).copied().collect();
    (outer == own && more == width + 1).then(|| Tensor::new(wanted, data))
}

/// `[batch, last, width]` next to `[batch, token, width]`.
fn last_rows(found: &Tensor<f64>, wanted: Shape) -> Option<Fitted> {
    let &[batch, tokens, width] = wanted.dims() else {
        return None;
    };
    let rows = match *found.shape().dims() {
        [b, rows, w] if (b, w) == (batch, width) => rows,
        [rows, w] if (1, width) == (batch, w) => rows,
        _ => return None,
    };
    let lacks = tokens.checked_sub(rows)?;
    Some(Fitted::partial(wanted, |flat| {
        let (b, row, w) = (flat / width / tokens, flat / width % tokens, flat % width);
        Some(found.data()[(b * rows + row.checked_sub(lacks)?) * width + w])
    }))
}

/// `[batch, key]` next to a mask `[…, query, key]`, whose cells say what is hidden. Without an axis of the batch, the
/// mask holds for all of it.
fn seen_keys(found: &Tensor<f64>, mask: &Mask, wanted: Shape) -> Option<Fitted> {
    let keys = *wanted.dims().last()?;
    let batch = match wanted.dims() {
        [batch, .., _, _] => *batch,
        _ => 1,
    };
    let rows = match *found.shape().dims() {
        [rows, k] if k == keys => rows,
        [k] if k == keys => 1,
        _ => return None,
    };
    if batch != 1 && batch != rows {
        return None;
    }
    let each = wanted.len() / batch.max(1);
    Some(Fitted::partial(wanted, |flat| {
        let (b, key) = (flat / each, flat % keys);
        let hidden = |row: usize| found.data()[row * keys + key] == 0.0;
        let padded = if batch == rows { hidden(b) } else { (0..rows).any(hidden) };
        let by_padding = mask.reasons[flat] & !reason::PADDING == 0;
        by_padding.then(|| f64::from(u8::from(padded)))
    }))
}
