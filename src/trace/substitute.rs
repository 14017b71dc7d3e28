//! What a node would be if another one had had a different value: only the nodes between the two are computed, the
//! trace itself stays as it is.

use std::collections::HashMap;

use super::{AnyTrace, AnyValue, Trace, evaluate};
use crate::program::{NodeId, Program};
use crate::tensor::{Real, Value};

/// The nodes on a way from `at` to `want`, in order, both included; empty where `want` does not depend on `at`.
pub fn between(program: &Program, at: NodeId, want: NodeId) -> Vec<NodeId> {
    if at > want {
        return Vec::new();
    }
    let first = at.index();
    let n = want.index() + 1 - first;
    // Downwards from `at`, then upwards from `want`.
    let mut after = vec![false; n];
    after[0] = true;
    for i in 1..n {
        let node = program.node(NodeId((first + i) as u32));
        after[i] = node.inputs.iter().any(|input| input.index() >= first && after[input.index() - first]);
    }
    let mut before = vec![false; n];
    before[n - 1] = after[n - 1];
    for i in (0..n).rev().filter(|i| after[*i]) {
        if before[i] {
            for input in &program.node(NodeId((first + i) as u32)).inputs {
                if input.index() >= first && after[input.index() - first] {
                    before[input.index() - first] = true;
                }
            }
        }
    }
    (0..n).filter(|i| before[*i]).map(|i| NodeId((first + i) as u32)).collect()
}

impl<T: Real> Trace<T> {
    /// The value that `want` would have if node `at` had had `value` and everything else were computed as it was;
    /// `None` where `want` does not depend on `at`, where the shapes differ, or where the run did not get there.
    ///
    /// # Panics
    /// Never: operands of what lies between the two were computed or are.
    pub fn value_if(&self, want: NodeId, at: NodeId, value: &Value<T>) -> Option<Value<T>> {
        let program = &self.program;
        let nodes = between(program, at, want);
        let fits = program.node(at).shape.same_dims(value.shape()) && self.reached(want);
        if !fits || nodes.is_empty() {
            return None;
        }
        let mut fresh: HashMap<NodeId, Value<T>> = HashMap::from([(at, value.reshaped(program.node(at).shape))]);
        for &id in &nodes[1..] {
            let kept: Vec<(NodeId, Value<T>)> = program
                .node(id)
                .inputs
                .iter()
                .filter(|i| !fresh.contains_key(i))
                .map(|i| (*i, self.value(*i)))
                .collect();
            let made = {
                let operand = |i: NodeId| match fresh.get(&i) {
                    Some(value) => value,
                    None => &kept.iter().find(|(n, _)| *n == i).expect("an operand of this node").1,
                };
                evaluate(program, id, &operand, &self.pool)
            };
            fresh.insert(id, made);
        }
        fresh.remove(&want)
    }
}

impl AnyTrace {
    /// As [`Trace::value_if`], with the value that node `from` has in this trace.
    pub fn value_if_from(&self, want: NodeId, at: NodeId, from: NodeId) -> Option<AnyValue> {
        match self {
            AnyTrace::F32(t) => t.value_if(want, at, &t.get(from)?).map(AnyValue::F32),
            AnyTrace::F64(t) => t.value_if(want, at, &t.get(from)?).map(AnyValue::F64),
        }
    }
}
