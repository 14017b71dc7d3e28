//! What-if: a trace in which some cells were edited. Only what depends on an edited cell is computed again, and a
//! node whose new value has the same bits passes nothing on; the rest shares memory with the trace it came from.

use std::sync::Arc;

use super::derive::Cell;
use super::{Trace, evaluate};
use crate::program::NodeId;
use crate::tensor::{Real, Tensor, Value};

/// One edited cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edit {
    /// Which.
    pub cell: Cell,
    /// Its new value: a number, an id, or 0/1 for a mask.
    pub value: f64,
}

impl<T: Real> Trace<T> {
    /// The trace that a run with these cells edited would have given, bit for bit. Edited cells of computed nodes
    /// keep their edit although their operands may say otherwise.
    ///
    /// # Panics
    /// Where an edit lies outside its node.
    #[must_use]
    pub fn what_if(&self, edits: &[Edit]) -> Self {
        self.changed_nodes(edits).0
    }

    /// As [`Trace::what_if`], with the nodes whose value changed, in order.
    ///
    /// # Panics
    /// Where an edit lies outside its node.
    pub fn changed_nodes(&self, edits: &[Edit]) -> (Self, Vec<NodeId>) {
        let mut next = self.clone();
        let program = Arc::clone(&self.program);
        let mut dirty = vec![false; program.len()];
        let mut changed = Vec::new();
        let first = edits
            .iter()
            .map(|e| e.cell.node.index())
            .min()
            .unwrap_or(program.len());
        for (id, node) in program.nodes().skip(first) {
            if !self.reached(id) {
                break;
            }
            let own: Vec<&Edit> = edits.iter().filter(|e| e.cell.node == id).collect();
            let stale = node.inputs.iter().any(|i| dirty[i.index()]);
            if own.is_empty() && !stale {
                continue;
            }
            let held = self.replaced.contains(&id);
            let mut value = if stale && !held {
                let fetched: Vec<(NodeId, Value<T>)> =
                    node.inputs.iter().map(|&i| (i, next.value(i))).collect();
                let operand = |i: NodeId| {
                    &fetched
                        .iter()
                        .find(|(n, _)| *n == i)
                        .expect("an operand of this node")
                        .1
                };
                evaluate(&program, id, &operand, &self.pool)
            } else {
                self.value(id)
            };
            if !own.is_empty() {
                value = edited(&value, &own);
                next.replaced.push(id);
            }
            let old = self.get(id).expect("it was reached");
            if value.same_bits(&old) {
                continue;
            }
            dirty[id.index()] = true;
            changed.push(id);
            next.values[id.index()] = Some(value);
        }
        // A value that was let go must not be recomputed from what it no longer depends on: it is recomputed from
        // the nearest kept values, and those of changed nodes are all kept.
        (next, changed)
    }
}

fn edited<T: Real>(value: &Value<T>, edits: &[&Edit]) -> Value<T> {
    fn put<E: crate::tensor::Elem>(
        t: &Tensor<E>,
        edits: &[&Edit],
        of: impl Fn(f64) -> E,
    ) -> Tensor<E> {
        let mut data = t.data().to_vec();
        for e in edits {
            data[e.cell.flat] = of(e.value);
        }
        Tensor::new(*t.shape(), data)
    }
    match value {
        Value::Float(t) => Value::Float(put(t, edits, T::from_f64)),
        Value::Int(t) => Value::Int(put(t, edits, |x| x as i64)),
        Value::Bool(t) => Value::Bool(put(t, edits, |x| x != 0.0)),
    }
}
