//! How a tensor of the reference stands beside a node: as a whole, or with a part of its cells.

use serde::Deserialize;

use super::layout::Layout;
use crate::program::{Leaf, Mask, Node, Op, reason};
use crate::tensor::{Shape, Tensor};

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
}

impl Fitted {
    fn whole(tensor: Tensor<f64>) -> Self {
        Self { tensor, there: None }
    }

    /// What is known of cells one by one.
    fn partial(shape: Shape, cell: impl Fn(usize) -> Option<f64>) -> Self {
        let cells: Vec<Option<f64>> = (0..shape.len()).map(cell).collect();
        let data: Vec<f64> = cells.iter().map(|c| c.unwrap_or(f64::NAN)).collect();
        Self { tensor: Tensor::new(shape, data), there: Some(cells.iter().map(Option::is_some).collect()) }
    }

    /// Its cells; `None` where it has none.
    pub fn cells(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        let there = |i: usize| self.there.as_ref().is_none_or(|there| there[i]);
        let cells = self.tensor.data().iter().enumerate();
        cells.map(move |(i, &x)| there(i).then_some(x))
    }

    /// All cells, `ours` where the reference has none.
    pub fn filled(&self, ours: &dyn Fn(usize) -> f64) -> Tensor<f64> {
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

/// The label that stands for all that are ignored.
const IGNORED: f64 = -1.0;

/// A tensor of the reference as ours lies; `None` where it does not fit. Axes of length 1 may be there or not.
pub(super) fn fit(found: &Tensor<f64>, layout: Option<&Layout>, reading: Reading, node: &Node) -> Option<Fitted> {
    let wanted = node.shape;
    match reading {
        Reading::Whole => whole(found, layout, &wanted).map(Fitted::whole),
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
    if let Some(layout) = layout {
        return layout.arrange(found, wanted);
    }
    let long = |s: &Shape| -> Vec<usize> { s.dims().iter().copied().filter(|n| *n != 1).collect() };
    (long(found.shape()) == long(wanted)).then(|| found.reshaped(*wanted))
}

/// `[batch, last, width]` beside `[batch, token, width]`.
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

/// `[batch, key]` beside a mask `[…, query, key]`, whose cells say what is hidden. Without an axis of the batch, the
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
