//! The tables of a step: what the cursor cell reads, then the step's own tensors.

use crate::app::navigator::{Navigator, Plane, TableModel, TraceRef, names};
use crate::explain::Explainer;
use crate::export::document::step_formula;
use crate::program::{Binary, NodeId, Op, Program, Role as Quantity};
use crate::trace::derive::Cell;
use crate::walkthrough::{Role, View};

/// What the stage shows.
#[derive(Clone, Debug, Default)]
pub struct StageModel {
    /// Tables, operands first.
    pub tables: Vec<TableModel>,
}

impl StageModel {
    /// Tables of the current step: what the cursor cell reads, then the step's own tensors.
    pub fn of(nav: &Navigator) -> Self {
        let Some(step) = nav.step() else {
            return Self::default();
        };
        let reads = Reads::of(nav);
        let own: Vec<TableModel> = step
            .views
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let place = place_like_cursor(nav, v);
                let index = if i == nav.view_position() { nav.index() } else { &place };
                let plane = Plane::of_view(v, index);
                let mut table = table(nav, v.run, v.node, v.symbol.clone(), plane);
                table.view = Some(i);
                table.result = v.role == Role::Result;
                if i == nav.view_position() {
                    table.cursor = nav.cell().and_then(|(_, c)| table.plane.find(c.flat));
                }
                table
            })
            .collect();
        let mut tables: Vec<TableModel> = Vec::new();
        if let Some(view) = nav.view() {
            for Read { cell: c, by } in reads.far.iter().chain(&reads.near) {
                let shown = own
                    .iter()
                    .chain(&tables)
                    .any(|t| t.run == view.run && t.node == c.node && t.plane.find(c.flat).is_some());
                let skipped = is_zero_shift(nav, view.run, *c) || is_recast(nav, view.run, *c, *by);
                if shown || skipped {
                    continue;
                }
                tables.push(operand(nav, view, *c, *by));
            }
        }
        let operands = tables.len();
        tables.extend(own);
        let formula = step_formula(&nav.session, &nav.steps, nav.position(), step);
        for table in &mut tables {
            table.named = names(&formula, &table.symbol);
        }
        let Some(run) = nav.view().map(|v| v.run) else {
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

impl Reads {
    /// Cells that the cursor cell reads, and those read through a number on the way (the unscaled score) that the
    /// step shows too.
    fn of(nav: &Navigator) -> Self {
        let Some((run, cell)) = nav.cell() else {
            return Self::default();
        };
        let Some(trace) = nav.trace(run) else {
            return Self::default();
        };
        let explainer = Explainer::new(&trace);
        let by = |node: NodeId| move |cell: Cell| Read { cell, by: node };
        let near: Vec<Read> = explainer.reads(cell).into_iter().map(by(cell.node)).collect();
        let on_the_way = |node: NodeId| {
            nav.step().is_some_and(|s| {
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
        Self { near, far }
    }
}

/// Where a view is that the cursor is not in: in the cursor's sentence and head, where it has them too.
fn place_like_cursor(nav: &Navigator, view: &View) -> Vec<usize> {
    let shape = view.shape();
    let mut place = vec![0; shape.rank()];
    let Some(here) = nav.view() else { return place };
    let of_cursor = here.shape();
    for (d, at) in place.iter_mut().enumerate() {
        let axis = of_cursor.axes().iter().position(|a| *a == shape.axes()[d]);
        let cursor = axis.and_then(|a| nav.index().get(a));
        *at = cursor.copied().filter(|i| *i < shape.dims()[d]).unwrap_or(0);
    }
    place
}

/// Whether a cell is the shift of a softmax that did not need one.
fn is_zero_shift(nav: &Navigator, run: usize, c: Cell) -> bool {
    let name = &nav.session.runs[run].program.node(c.node).name;
    let zero = |t: TraceRef<'_>| t.get(c.node).is_some_and(|v| v.get(c.flat) == 0.0);
    *name.last() == Quantity::Shift && nav.trace(run).is_some_and(zero)
}

/// Whether the node that reads a cell is the same tensor in another shape, under the only name it has.
fn is_recast(nav: &Navigator, run: usize, c: Cell, by: NodeId) -> bool {
    let op = &nav.session.runs[run].program.node(by).op;
    let name = || nav.session.cell_name(&nav.steps, run, c, nav.position());
    matches!(op, Op::Reshape) && name().is_none()
}

/// The table of a tensor that the step reads and does not show itnav.
fn operand(nav: &Navigator, view: &View, c: Cell, by: NodeId) -> TableModel {
    let program = &nav.session.runs[view.run].program;
    let slice = view.slice.clone();
    let mut symbol = nav
        .session
        .cell_name(&nav.steps, view.run, c, nav.position())
        .and_then(|n| n.split('[').next().map(str::to_owned))
        .unwrap_or_else(|| nav.session.tensor_name(&nav.steps, view.run, c.node, &slice, nav.position()));
    let whole = Plane::around(&program.node(c.node).shape, c.flat);
    // What has a name of its own is shown as far as the name goes: the rows of a weight that make one head. A single
    // row of a table is not what the other rows of the result read.
    let named = nav.steps.locate(view.run, c, nav.position());
    let named = named.map(|n| Plane::of_view(&nav.steps.list()[n.step].views[n.view], &n.index));
    let axes = |p: &Plane| (p.row_axis.map(|a| a.0), p.col_axis.map(|a| a.0));
    let mut plane = named.filter(|p| axes(p) == axes(&whole) && p.rows > 1 && p.cols > 1).unwrap_or(whole);
    let (place, transposed, sign) = place_of(program, by, c.node);
    // Rows meet columns, as in the formula.
    if transposed && plane.row_axis.is_some() {
        plane = plane.transposed();
        symbol.push('ᵀ');
    }
    let mut table = table(nav, view.run, c.node, symbol, plane);
    if place == Some(1) {
        table.sign = sign;
    }
    table
}

fn table(nav: &Navigator, run: usize, node: NodeId, symbol: String, plane: Plane) -> TableModel {
    TableModel::in_program(&nav.session.runs[run].program, run, node, symbol, plane)
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
    // The product is behind the sum with the bias and the split into heads, which have no names of their own.
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

/// The sign between the two operands.
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
