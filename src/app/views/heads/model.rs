//! Which attention the heads are of, and their tables.

use crate::app::navigator::{Navigator, Plane, TableModel};
use crate::program::{Leaf, NodeId, Op};
use crate::tensor::Axis;

/// The attention weights of the layer one is in, else the first ones of the run.
pub fn heads(nav: &Navigator) -> Option<(usize, NodeId)> {
    let view = nav.view()?;
    let program = &nav.session.runs[view.run].program;
    let here = program.node(view.node);
    if here.shape.axes().contains(&Axis::Head) && !matches!(here.op, Op::Leaf(Leaf::Parameter)) {
        return Some((view.run, view.node));
    }
    let weights = |id: &NodeId| program.node(*id).path.ends_with("attn.weights");
    let layer: String = here.path.split('.').take(2).collect::<Vec<_>>().join(".");
    let all: Vec<_> = program.nodes().map(|(id, _)| id).filter(weights).collect();
    let same = all.iter().find(|id| program.node(**id).path.starts_with(&format!("{layer}.")));
    same.or_else(|| all.iter().rev().find(|id| **id <= view.node)).or(all.first()).map(|id| (view.run, *id))
}

/// One table a head; `name` names the head of a number.
pub fn tables(nav: &Navigator, (run, node): (usize, NodeId), name: impl Fn(usize) -> String) -> Vec<TableModel> {
    let shape = nav.session.runs[run].program.node(node).shape;
    let axis = shape.axes().iter().position(|a| matches!(a, Axis::Head | Axis::KvHead)).unwrap_or(0);
    let per = shape.len() / shape.dims()[..=axis].iter().product::<usize>().max(1);
    (0..shape.dims()[axis]).map(|h| TableModel::of(run, node, name(h), Plane::around(&shape, h * per))).collect()
}
