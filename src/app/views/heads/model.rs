//! Which attention the heads are of, which query is looked at, and what it takes from where.

use crate::app::head_facts::HeadFacts;
use crate::app::measure::Kind;
use crate::app::navigator::{Navigator, Plane, TableModel};
use crate::program::{Leaf, Name, NodeId, Op, Role};
use crate::tensor::Axis;

/// The attention weights of the layer one is in, else the nearest ones before, else the first of the run, else those
/// of any run.
pub fn heads(nav: &Navigator) -> Option<(usize, NodeId)> {
    let weights_of = |run: usize| -> Vec<NodeId> {
        let program = &nav.session.runs[run].program;
        let is = |id: &NodeId| {
            let name = &program.node(*id).name;
            name.site.is_attention() && *name.last() == Role::Weights
        };
        program.nodes().map(|(id, _)| id).filter(is).collect()
    };
    let Some(view) = nav.view() else {
        // A step without a tensor: those of its run.
        let run = nav.step().map_or(0, |s| s.run);
        let mut runs = std::iter::once(run).chain((0..nav.session.runs.len()).filter(move |r| *r != run));
        return runs.find_map(|r| Some((r, *weights_of(r).first()?)));
    };
    let program = &nav.session.runs[view.run].program;
    let here = program.node(view.node);
    if here.shape.axes().contains(&Axis::Head) && !matches!(here.op, Op::Leaf(Leaf::Parameter)) {
        return Some((view.run, view.node));
    }
    let all = weights_of(view.run);
    let layer = |name: &Name| name.site.layer().map(|layer| (name.is_gradient(), name.call, layer));
    let same = layer(&here.name).and_then(|at| all.iter().find(|id| layer(&program.node(**id).name) == Some(at)));
    let near = same.or_else(|| all.iter().rev().find(|id| **id <= view.node)).or(all.first());
    near.map(|id| (view.run, *id)).or_else(|| {
        let mut others = (0..nav.session.runs.len()).filter(|r| *r != view.run);
        others.find_map(|r| Some((r, *weights_of(r).first()?)))
    })
}

/// The place of the cursor on the batch, and on the axis of queries (or tokens); the first where it has none.
fn cursor(nav: &Navigator) -> (usize, usize) {
    let Some((run, cell)) = nav.cell() else { return (0, 0) };
    let shape = nav.session.runs[run].program.node(cell.node).shape;
    let at = shape.unflat(cell.flat);
    let on = |wanted: &[Axis]| shape.axes().iter().position(|a| wanted.contains(a)).map_or(0, |d| at[d]);
    (on(&[Axis::Batch]), on(&[Axis::Query, Axis::Token]))
}

/// All heads of one attention.
#[derive(Debug)]
pub struct Attention {
    /// Run.
    pub run: usize,
    /// Node.
    pub node: NodeId,
    /// Which sentence, and how many there are.
    pub batch: (usize, usize),
    /// The row that is looked at in all heads.
    pub query: usize,
    /// One table a head.
    pub tables: Vec<TableModel>,
    /// Whether the rows are probabilities over keys.
    pub weights: bool,
}

/// What a query takes from one key: the mean of the heads, and the head that takes most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct From {
    /// Position of the key.
    pub key: usize,
    /// Mean over the heads.
    pub mean: f64,
    /// The head with the largest weight, and that weight.
    pub strongest: (usize, f64),
}

impl Attention {
    /// The heads at the place one is at; `name` names the head of a number.
    pub fn of(nav: &Navigator, name: impl Fn(usize) -> String) -> Option<Self> {
        let (run, node) = heads(nav)?;
        let program = &nav.session.runs[run].program;
        let shape = program.node(node).shape;
        let (batch, query) = cursor(nav);
        let axis = shape.axes().iter().position(|a| matches!(a, Axis::Head | Axis::KvHead));
        let of_batch = shape.axes().iter().position(|a| *a == Axis::Batch);
        let batches = of_batch.map_or(1, |d| shape.dims()[d]);
        let batch = batch.min(batches - 1);
        let strides = shape.strides();
        let start = of_batch.map_or(0, |d| batch * strides[d]);
        let kind = crate::app::measure::kind(program, node);
        let masked = *program.node(node).name.last() == Role::MaskedScores;
        // Heads that share keys are a group of their own axis.
        let group = shape.axes().iter().position(|a| *a == Axis::Group);
        let n = axis.map_or(1, |a| shape.dims()[a]);
        let in_group = group.map_or(1, |g| shape.dims()[g]);
        let tables: Vec<TableModel> = (0..n * in_group)
            .map(|h| {
                let first =
                    axis.map_or(0, |a| h / in_group * strides[a]) + group.map_or(0, |g| h % in_group * strides[g]);
                let table = TableModel::of(run, node, name(h), Plane::around(&shape, start + first));
                TableModel { kind, masked, ..table }
            })
            .collect();
        let rows = tables.first()?.plane.rows;
        let weights = kind == Kind::Probability && shape.axes().contains(&Axis::Key);
        Some(Self { run, node, batch: (batch, batches), query: query.min(rows.saturating_sub(1)), tables, weights })
    }

    /// What the query takes from each key, in the order of the keys.
    pub fn from(&self, nav: &Navigator) -> Vec<From> {
        let Some(value) = nav.trace(self.run).and_then(|t| t.get(self.node)) else {
            return Vec::new();
        };
        let keys = self.tables.first().map_or(0, |t| t.plane.cols);
        let of = |key: usize| {
            let all = self.tables.iter().map(|t| value.get(t.plane.flat(self.query, key)));
            let all: Vec<f64> = all.collect();
            let strongest = all
                .iter()
                .copied()
                .enumerate()
                .fold((0, f64::NEG_INFINITY), |best, (h, p)| if p > best.1 { (h, p) } else { best });
            From { key, mean: all.iter().sum::<f64>() / all.len().max(1) as f64, strongest }
        };
        (0..keys).map(of).collect()
    }
}

/// What a head does; `None` while its weights are being read.
pub fn facts(nav: &Navigator, table: &TableModel) -> Option<HeadFacts> {
    let origin = nav.origin(table.run, table.node);
    Some(*nav.numbers.measures.heads(origin, table.plane.window())?)
}
