//! What the screen shows of a step, as plain data: a tree of steps, and tables of operands and results.

use std::collections::HashSet;

use super::Navigator;
use crate::app::measure::{self, Kind};
use crate::explain::Explainer;
use crate::export::document::step_formula;
use crate::program::{Binary, NodeId, Op, Program, Role as Quantity};
use crate::tensor::{Axis, Shape};
use crate::trace::derive::Cell;
use crate::trace::stats::Window;
use crate::walkthrough::{Role, View};

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
    /// What stands before it: `·` before the second factor of a product; empty for nothing.
    pub sign: &'static str,
}

/// What the stage shows.
#[derive(Clone, Debug, Default)]
pub struct StageModel {
    /// Tables, operands first.
    pub tables: Vec<TableModel>,
}

/// A row of the step list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeRow {
    /// A phase: position of its first step, number of steps, whether folded.
    Phase {
        /// Position of its first step.
        first: usize,
        /// Position of its last step.
        last: usize,
        /// Whether its steps are hidden.
        folded: bool,
    },
    /// A step, by position.
    Step(usize),
    /// A sub-step of the current step: depth and position in its level.
    Inner {
        /// Level, from 1.
        depth: usize,
        /// Position.
        at: usize,
    },
}

impl Navigator {
    /// The rows of the step list, with the row of the current step.
    pub fn tree(&self) -> (Vec<TreeRow>, usize) {
        let list = self.steps.list();
        let mut rows = Vec::new();
        let mut current = 0;
        let mut i = 0;
        while i < list.len() {
            let last = (i..list.len()).take_while(|j| list[*j].phase == list[i].phase).last().unwrap_or(i);
            let folded = self.folded.contains(&i);
            if (i..=last).contains(&self.at) {
                current = rows.len();
            }
            rows.push(TreeRow::Phase { first: i, last, folded });
            if !folded {
                for step in i..=last {
                    if step == self.at {
                        current = rows.len();
                    }
                    rows.push(TreeRow::Step(step));
                    if step == self.at {
                        for (depth, level) in self.inner.iter().enumerate() {
                            for at in 0..level.steps.len() {
                                if depth + 1 == self.inner.len() && at == level.at {
                                    current = rows.len();
                                }
                                rows.push(TreeRow::Inner { depth: depth + 1, at });
                            }
                        }
                    }
                }
            }
            i = last + 1;
        }
        (rows, current)
    }

    /// The step that a row of sub-steps stands for.
    pub fn inner_step(&self, depth: usize, at: usize) -> Option<&crate::walkthrough::Step> {
        self.inner.get(depth.checked_sub(1)?)?.steps.get(at)
    }

    /// Tables of the current step: what the cursor cell reads, then the step's own tensors.
    pub fn stage(&self) -> StageModel {
        let Some(step) = self.step() else {
            return StageModel::default();
        };
        let reads = self.reads();
        let own: Vec<TableModel> = step
            .views
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let index = if i == self.view { self.index.as_slice() } else { &[] };
                let plane = Plane::of_view(v, index);
                let mut table = self.table(v.run, v.node, v.symbol.clone(), plane);
                table.view = Some(i);
                table.result = v.role == Role::Result;
                if i == self.view {
                    table.cursor = self.cell().and_then(|(_, c)| table.plane.find(c.flat));
                }
                table
            })
            .collect();
        let mut tables: Vec<TableModel> = Vec::new();
        if let Some(view) = self.view() {
            for Read { cell: c, by } in reads.far.iter().chain(&reads.near) {
                let shown = own
                    .iter()
                    .chain(&tables)
                    .any(|t| t.run == view.run && t.node == c.node && t.plane.find(c.flat).is_some());
                let skipped = self.is_zero_shift(view.run, *c) || self.is_recast(view.run, *c, *by);
                if shown || skipped {
                    continue;
                }
                tables.push(self.operand(view, *c, *by));
            }
        }
        let operands = tables.len();
        tables.extend(own);
        let formula = step_formula(&self.session, &self.steps, self.at, step);
        for table in &mut tables {
            table.named = names(&formula, &table.symbol);
        }
        let Some(run) = self.view().map(|v| v.run) else {
            return StageModel { tables };
        };
        for (i, table) in tables.iter_mut().enumerate().filter(|(_, t)| t.run == run) {
            // A tensor of the step itself shows what is read at once; those before it also what is read through it.
            let far: &[Read] = if i < operands { &reads.far } else { &[] };
            table.lit = reads
                .near
                .iter()
                .chain(far)
                .filter(|r| r.cell.node == table.node)
                .filter_map(|r| table.plane.find(r.cell.flat))
                .collect();
        }
        StageModel { tables }
    }

    /// Cells that the cursor cell reads, and those read through a number on the way (the unscaled score) that the
    /// step shows too.
    fn reads(&self) -> Reads {
        let Some((run, cell)) = self.cell() else {
            return Reads::default();
        };
        let Some(trace) = self.trace(run) else {
            return Reads::default();
        };
        let explainer = Explainer::new(&trace);
        let by = |node: NodeId| move |cell: Cell| Read { cell, by: node };
        let near: Vec<Read> = explainer.reads(cell).into_iter().map(by(cell.node)).collect();
        let on_the_way = |node: NodeId| {
            self.step().is_some_and(|s| {
                let mut views = s.views.iter();
                views.any(|v| v.run == run && v.node == node && v.role == Role::Auxiliary)
            })
        };
        let mut through: Vec<Cell> = Vec::new();
        for read in &near {
            let new = !through.iter().any(|c| c.node == read.cell.node);
            if new && read.cell.node != cell.node && on_the_way(read.cell.node) {
                through.push(read.cell);
            }
        }
        let mut far = Vec::new();
        for c in through {
            far.extend(explainer.reads(c).into_iter().map(by(c.node)));
        }
        Reads { near, far }
    }

    /// Whether a cell is the shift of a softmax that did not need one.
    fn is_zero_shift(&self, run: usize, c: Cell) -> bool {
        let name = &self.session.runs[run].program.node(c.node).name;
        let zero = |t: super::TraceRef<'_>| t.get(c.node).is_some_and(|v| v.get(c.flat) == 0.0);
        *name.last() == Quantity::Shift && self.trace(run).is_some_and(zero)
    }

    /// Whether the node that reads a cell is the same tensor in another shape, under the only name it has.
    fn is_recast(&self, run: usize, c: Cell, by: NodeId) -> bool {
        let op = &self.session.runs[run].program.node(by).op;
        let name = || self.session.cell_name(&self.steps, run, c, self.at);
        matches!(op, Op::Reshape) && name().is_none()
    }

    /// The table of a tensor that the step reads and does not show itself.
    fn operand(&self, view: &View, c: Cell, by: NodeId) -> TableModel {
        let program = &self.session.runs[view.run].program;
        let slice = view.slice.clone();
        let mut symbol = self
            .session
            .cell_name(&self.steps, view.run, c, self.at)
            .and_then(|n| n.split('[').next().map(str::to_owned))
            .unwrap_or_else(|| self.session.tensor_name(&self.steps, view.run, c.node, &slice, self.at));
        let mut plane = Plane::around(&program.node(c.node).shape, c.flat);
        let (place, transposed, sign) = place_of(program, by, c.node);
        // Rows meet columns, as in the formula.
        if transposed && plane.row_axis.is_some() {
            plane = plane.transposed();
            symbol.push('ᵀ');
        }
        let mut table = self.table(view.run, c.node, symbol, plane);
        if place == Some(1) {
            table.sign = sign;
        }
        table
    }

    fn table(&self, run: usize, node: NodeId, symbol: String, plane: Plane) -> TableModel {
        let program = &self.session.runs[run].program;
        TableModel {
            kind: measure::kind(program, node),
            masked: is_masked(program, node),
            ..TableModel::of(run, node, symbol, plane)
        }
    }
}

impl TableModel {
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
pub(super) fn names(formula: &str, symbol: &str) -> bool {
    let bare = |word: &'_ str| word.trim_end_matches('ᵀ').to_owned();
    let symbol = bare(symbol);
    formula.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '\'')).any(|word| bare(word) == symbol)
}

/// A cell that is read, and the node that reads it.
struct Read {
    cell: Cell,
    by: NodeId,
}

/// What the cursor cell reads.
#[derive(Default)]
struct Reads {
    /// At once.
    near: Vec<Read>,
    /// Through a number on the way.
    far: Vec<Read>,
}

/// Which operand the node is of what reads it on the way to `by` (behind what only moves cells), whether it is read
/// transposed, and the sign between the operands.
fn place_of(program: &Program, by: NodeId, node: NodeId) -> (Option<usize>, bool, &'static str) {
    let base = |mut id: NodeId| {
        while id != node && program.node(id).op.moves_only() && program.node(id).inline {
            id = program.node(id).inputs[0];
        }
        id
    };
    // The product stands behind the sum with the bias and the split into heads, which have no names of their own.
    let mut open = vec![by];
    while let Some(id) = open.pop() {
        let reader = program.node(id);
        let place = reader.inputs.iter().position(|i| base(*i) == node);
        if let Some(place) = place.filter(|_| !reader.op.moves_only()) {
            let transposed = match (&reader.op, place) {
                (Op::MatMul { transpose_a, .. }, 0) => *transpose_a,
                (Op::MatMul { transpose_b, .. }, 1) => *transpose_b,
                _ => false,
            };
            return (Some(place), transposed, sign(&reader.op));
        }
        let inner = reader.inputs.iter().rev();
        open.extend(inner.filter(|i| program.node(**i).inline));
    }
    (None, false, "")
}

/// What stands between the two operands.
fn sign(op: &Op) -> &'static str {
    match op {
        Op::MatMul { .. } => "·",
        Op::Binary(Binary::Add) => "+",
        Op::Binary(Binary::Sub) => "-",
        Op::Binary(Binary::Mul) => "⊙",
        Op::Binary(Binary::Div | Binary::DivOrZero) => "/",
        _ => "",
    }
}

/// Whether a tensor's lowest values are masked cells.
pub(super) fn is_masked(program: &Program, node: NodeId) -> bool {
    matches!(program.node(node).name.last(), Quantity::MaskedScores | Quantity::MaskBias)
}
