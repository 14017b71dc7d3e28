//! Which attention the heads are of, which query is looked at, and what it takes from where.

use crate::app::head_facts::HeadFacts;
use crate::app::measure::Kind;
use crate::app::navigator::{Navigator, Plane, TableModel};
use crate::program::{Leaf, Name, NodeId, Op, Role, Site};
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
    let of_heads = |id: NodeId| {
        let node = program.node(id);
        node.shape.axes().contains(&Axis::Head) && !matches!(node.op, Op::Leaf(Leaf::Parameter))
    };
    // The same tensor of a layer that was chosen.
    let chosen = nav.layer_chosen();
    if let Some(layer) = chosen
        && let Site::Layer(stack, _, block) = here.name.site
    {
        let site = Site::Layer(stack, layer as u32, block);
        let there = program.named(&Name { site, ..here.name.clone() }).filter(|id| of_heads(*id));
        let weights = || program.named(&Name { call: here.name.call, ..Name::of(site).then(Role::Weights) });
        if let Some(id) = there.or_else(weights) {
            return Some((view.run, id));
        }
    }
    if of_heads(view.node) && chosen.is_none() {
        return Some((view.run, view.node));
    }
    let all = weights_of(view.run);
    if let Some(layer) = chosen {
        let of_layer = |id: &&NodeId| program.node(**id).name.site.layer().is_some_and(|(_, at)| at as usize == layer);
        if let Some(id) = all.iter().find(of_layer) {
            return Some((view.run, *id));
        }
    }
    let layer = |name: &Name| name.site.layer().map(|layer| (name.is_gradient(), name.call, layer));
    let same = layer(&here.name).and_then(|at| all.iter().find(|id| layer(&program.node(**id).name) == Some(at)));
    let near = same.or_else(|| all.iter().rev().find(|id| **id <= view.node)).or(all.first());
    near.map(|id| (view.run, *id)).or_else(|| {
        let mut others = (0..nav.session.runs.len()).filter(|r| *r != view.run);
        others.find_map(|r| Some((r, *weights_of(r).first()?)))
    })
}

/// The place of the cursor on the axis of queries (or tokens); the first where it has none.
fn query(nav: &Navigator) -> usize {
    let Some((run, cell)) = nav.cell() else { return 0 };
    let shape = nav.session.runs[run].program.node(cell.node).shape;
    let at = shape.unflat(cell.flat);
    shape.axes().iter().position(|a| matches!(a, Axis::Query | Axis::Token)).map_or(0, |d| at[d])
}

/// One table for each head of a tensor, of the sentence looked at; `name` names the head of a number.
pub fn tables_of(nav: &Navigator, run: usize, node: NodeId, name: impl Fn(usize) -> String) -> Vec<TableModel> {
    let program = &nav.session.runs[run].program;
    let shape = program.node(node).shape;
    let place = |wanted: &[Axis]| shape.axes().iter().position(|a| wanted.contains(a));
    let strides = shape.strides();
    let batch = place(&[Axis::Batch]).map_or(0, |d| nav.batch().min(shape.dims()[d].saturating_sub(1)) * strides[d]);
    // Heads that share keys are a group of their own axis.
    let (axis, group) = (place(&[Axis::Head, Axis::KvHead]), place(&[Axis::Group]));
    let n = axis.map_or(1, |a| shape.dims()[a]);
    let in_group = group.map_or(1, |g| shape.dims()[g]);
    let table = |h: usize| {
        let first = axis.map_or(0, |a| h / in_group * strides[a]) + group.map_or(0, |g| h % in_group * strides[g]);
        TableModel::in_program(program, run, node, name(h), Plane::around(&shape, batch + first))
    };
    (0..n * in_group).map(table).collect()
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
        let query = query(nav);
        let batches = shape.axes().iter().position(|a| *a == Axis::Batch).map_or(1, |d| shape.dims()[d]);
        let batch = nav.batch().min(batches.saturating_sub(1));
        let kind = crate::app::measure::kind(program, node);
        let tables = tables_of(nav, run, node, name);
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
