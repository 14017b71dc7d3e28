//! A table: two axes of a tensor, as plain data.

use std::collections::HashSet;

use crate::app::measure::{self, Kind};
use crate::program::{NodeId, Program, Role};
use crate::tensor::{Axis, Shape};
use crate::trace::stats::Window;
use crate::walkthrough::View;

/// Two axes of a tensor, the others fixed: what a table shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Position of cell (0, 0) in the whole tensor.
    pub start: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Distance of rows.
    pub row_stride: usize,
    /// Distance of columns.
    pub col_stride: usize,
    /// Axis of the rows in the whole tensor, where there is one, and the first row's place on it.
    pub row_axis: Option<(usize, usize)>,
    /// Axis of the columns.
    pub col_axis: Option<(usize, usize)>,
    /// The fixed axes that are longer than 1: name, place, length.
    pub fixed: Vec<(Axis, usize, usize)>,
    /// Place on the batch axis.
    pub batch: usize,
}

impl Plane {
    fn new(shape: &Shape, kept: &[usize], base: &[usize], lens: &[usize]) -> Self {
        let strides = shape.strides();
        let start = base.iter().zip(strides).map(|(i, s)| i * s).sum();
        let col = kept.last().copied();
        let row = kept.len().checked_sub(2).map(|i| kept[i]);
        let len = |axis: Option<usize>| axis.map_or(1, |a| lens[a]);
        let fixed = (0..shape.rank())
            .filter(|d| Some(*d) != row && Some(*d) != col && shape.dims()[*d] > 1)
            .map(|d| (shape.axes()[d], base[d], shape.dims()[d]))
            .collect();
        let batch = shape.axes().iter().position(|a| *a == Axis::Batch);
        Self {
            start,
            rows: len(row),
            cols: len(col),
            row_stride: row.map_or(0, |a| strides[a]),
            col_stride: col.map_or(0, |a| strides[a]),
            row_axis: row.map(|a| (a, base[a])),
            col_axis: col.map(|a| (a, base[a])),
            fixed,
            batch: batch.map_or(0, |a| base[a]),
        }
    }

    /// The last two axes of a view, the others where the cursor is.
    pub fn of_view(view: &View, index: &[usize]) -> Self {
        let shape = view.cells.of;
        let kept: Vec<usize> = (0..shape.rank()).filter(|d| view.cells.kept[*d]).collect();
        let plane = &kept[kept.len().saturating_sub(2)..];
        let mut base: Vec<usize> = view.cells.ranges.iter().map(|r| r.start).collect();
        for (d, at) in kept.iter().zip(index) {
            if !plane.contains(d) {
                base[*d] += at;
            }
        }
        let lens: Vec<usize> = view.cells.ranges.iter().map(std::ops::Range::len).collect();
        Self::new(&shape, plane, &base, &lens)
    }

    /// The last two axes of a tensor, the others where `flat` is.
    pub fn around(shape: &Shape, flat: usize) -> Self {
        let at = shape.unflat(flat);
        let rank = shape.rank();
        let plane: Vec<usize> = (rank.saturating_sub(2)..rank).collect();
        let base: Vec<usize> = (0..rank).map(|d| if plane.contains(&d) { 0 } else { at[d] }).collect();
        Self::new(shape, &plane, &base, shape.dims())
    }

    /// Rows as columns.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            row_axis: self.col_axis,
            col_axis: self.row_axis,
            ..self
        }
    }

    /// Where its cells are, for exact statistics.
    pub fn window(&self) -> Window {
        let Self { start, rows, cols, row_stride, col_stride, .. } = *self;
        Window { start, rows, cols, row_stride, col_stride }
    }

    /// The head it is of, where it is of one of several.
    pub fn head(&self) -> Option<usize> {
        let heads = |a: &Axis| matches!(a, Axis::Head | Axis::KvHead);
        self.fixed.iter().find(|(axis, ..)| heads(axis)).map(|(_, at, _)| *at)
    }

    /// Position in the whole tensor of a cell.
    pub fn flat(&self, row: usize, col: usize) -> usize {
        self.start + row * self.row_stride + col * self.col_stride
    }

    /// Row and column of a position in the whole tensor.
    pub fn find(&self, flat: usize) -> Option<(usize, usize)> {
        let rest = flat.checked_sub(self.start)?;
        let split = |rest: usize, stride: usize| (rest.checked_div(stride).unwrap_or(0), rest % stride.max(1));
        let (row, col) = if self.row_stride >= self.col_stride {
            let (row, rest) = split(rest, self.row_stride);
            (row, split(rest, self.col_stride).0)
        } else {
            let (col, rest) = split(rest, self.col_stride);
            (split(rest, self.row_stride).0, col)
        };
        (row < self.rows && col < self.cols && self.flat(row, col) == flat).then_some((row, col))
    }

    /// All cells, row after row.
    pub fn cells(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows).flat_map(move |r| (0..self.cols).map(move |c| self.flat(r, c)))
    }

    /// Cells of the cursor's row.
    pub fn row_of(&self, index: &[usize]) -> impl Iterator<Item = usize> + '_ {
        let row = index.len().checked_sub(2).map_or(0, |d| index[d]).min(self.rows.saturating_sub(1));
        (0..self.cols).map(move |c| self.flat(row, c))
    }
}

/// A table of the stage.
#[derive(Clone, Debug)]
pub struct TableModel {
    /// Symbol.
    pub symbol: String,
    /// Run.
    pub run: usize,
    /// Node.
    pub node: NodeId,
    /// What of it.
    pub plane: Plane,
    /// Position of the view in the step; `None` for an operand.
    pub view: Option<usize>,
    /// Row and column of the cursor, in the table it is in.
    pub cursor: Option<(usize, usize)>,
    /// Cells that the cursor cell reads.
    pub lit: HashSet<(usize, usize)>,
    /// What its numbers are.
    pub kind: Kind,
    /// Scores with a mask.
    pub masked: bool,
    /// Whether it is a result of the step.
    pub result: bool,
    /// Whether the formula of the step names it.
    pub named: bool,
    /// What is written before it: `·` before the second factor of a product; empty for nothing.
    pub sign: &'static str,
}

impl TableModel {
    /// A plane of a tensor of `program`, coloured as its kind is.
    pub fn in_program(program: &Program, run: usize, node: NodeId, symbol: String, plane: Plane) -> Self {
        let (kind, masked) = (measure::kind(program, node), is_masked(program, node));
        Self { kind, masked, ..Self::of(run, node, symbol, plane) }
    }

    /// A plane of a tensor, without a cursor.
    pub fn of(run: usize, node: NodeId, symbol: String, plane: Plane) -> Self {
        Self {
            symbol,
            run,
            node,
            plane,
            view: None,
            cursor: None,
            lit: HashSet::new(),
            kind: Kind::Signed,
            masked: false,
            result: false,
            named: false,
            sign: "",
        }
    }
}

/// Whether a formula has `symbol` in it as a word of its own; transposed or not.
pub fn names(formula: &str, symbol: &str) -> bool {
    let bare = |word: &'_ str| word.trim_end_matches('ᵀ').to_owned();
    let symbol = bare(symbol);
    formula.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '\'')).any(|word| bare(word) == symbol)
}

/// Whether a tensor's lowest values are masked cells.
pub fn is_masked(program: &Program, node: NodeId) -> bool {
    matches!(program.node(node).name.last(), Role::MaskedScores | Role::MaskBias)
}
