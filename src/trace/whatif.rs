//! What-if: a trace in which some cells were edited, or whose program or parameters changed a little. Only what
//! depends on the change is computed again, and a node whose new value has the same bits passes nothing on; the rest
//! shares memory with the trace it came from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::derive::Cell;
use super::run::{among_kernels, bound_value, check_ids};
use super::{Bindings, Flow, RunError, Settings, Sink, Trace, evaluate};
use crate::kernels;
use crate::program::{Affine, Constant, Leaf, Node, NodeId, Op, Program};
use crate::tensor::{Elem, Real, Tensor, Value};

/// One edited cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edit {
    /// Which.
    pub cell: Cell,
    /// Its new value: a number, an id, or 0/1 for a mask.
    pub value: f64,
}

/// Cells that keep a value of their own, whatever their operands say: by node, then by position.
#[derive(Clone, Debug, Default)]
pub struct Pinned(BTreeMap<NodeId, BTreeMap<usize, f64>>);

impl Pinned {
    /// Holds a cell; the last value counts.
    pub fn hold(&mut self, edit: Edit) {
        let of = self.0.entry(edit.cell.node).or_default();
        of.insert(edit.cell.flat, edit.value);
    }

    /// Whether no cell is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Pinned cells of a node, by position.
    pub fn of(&self, node: NodeId) -> Option<&BTreeMap<usize, f64>> {
        self.0.get(&node)
    }

    /// The value that a cell is held at.
    pub fn get(&self, cell: Cell) -> Option<f64> {
        self.of(cell.node)?.get(&cell.flat).copied()
    }

    /// Nodes with held cells, in order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.keys().copied()
    }

    /// Number of held cells.
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// `value`, which node `id` has otherwise, with its held cells.
    ///
    /// # Panics
    /// Where a held cell lies outside the value.
    pub fn apply<T: Real>(&self, id: NodeId, value: Value<T>) -> Value<T> {
        fn put<E: Elem>(t: &Tensor<E>, cells: &BTreeMap<usize, f64>, of: impl Fn(f64) -> E) -> Tensor<E> {
            let mut data = t.data().to_vec();
            for (&flat, &x) in cells {
                data[flat] = of(x);
            }
            Tensor::new(*t.shape(), data)
        }
        let Some(cells) = self.of(id) else {
            return value;
        };
        match &value {
            Value::Float(t) => Value::Float(put(t, cells, T::from_f64)),
            Value::Int(t) => Value::Int(put(t, cells, |x| x as i64)),
            Value::Bool(t) => Value::Bool(put(t, cells, |x| x != 0.0)),
        }
    }
}

impl PartialEq for Pinned {
    /// Equal bits: NaN is itself, 0 is not −0.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.nodes().eq(other.nodes())
            && self.nodes().all(|id| same_cells(self.of(id), other.of(id)))
    }
}

fn same_cells(a: Option<&BTreeMap<usize, f64>>, b: Option<&BTreeMap<usize, f64>>) -> bool {
    let bits = |m: Option<&BTreeMap<usize, f64>>| -> Vec<(usize, u64)> {
        m.into_iter().flatten().map(|(i, x)| (*i, x.to_bits())).collect()
    };
    bits(a) == bits(b)
}

/// A sink that puts held cells in place.
#[derive(Debug)]
pub struct PinnedSink<'h>(pub &'h Pinned);

impl<T: Real> Sink<T> for PinnedSink<'_> {
    fn node(&mut self, _: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        match self.0.of(id) {
            Some(_) => Flow::Replace(self.0.apply(id, value.clone())),
            None => Flow::Go,
        }
    }
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
        let mut held = Pinned::clone(&self.held);
        let mut own = vec![false; program.len()];
        for edit in edits {
            held.hold(*edit);
            own[edit.cell.node.index()] = true;
        }
        let mut dirty = vec![false; program.len()];
        let mut changed = Vec::new();
        let first = own.iter().position(|own| *own).unwrap_or(program.len());
        for (id, node) in program.nodes().skip(first) {
            if !self.reached(id) {
                break;
            }
            let stale = node.inputs.iter().any(|i| dirty[i.index()]);
            if !own[id.index()] && !stale {
                continue;
            }
            // What a sink put in place of a whole value stays; held cells alone are put in again.
            let whole = self.held.of(id).is_none() && self.replaced.contains(&id);
            let mut value = if stale && !whole {
                let fetched: Vec<(NodeId, Value<T>)> = node.inputs.iter().map(|&i| (i, next.value(i))).collect();
                let operand = |i: NodeId| &fetched.iter().find(|(n, _)| *n == i).expect("an operand of this node").1;
                self.rounded(id, evaluate(&program, id, &operand, &self.pool))
            } else {
                self.value(id)
            };
            value = held.apply(id, value);
            if own[id.index()] && !next.replaced.contains(&id) {
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
        next.held = Arc::new(held);
        // A value that was let go must not be recomputed from what it no longer depends on: it is recomputed from
        // the nearest kept values, and those of changed nodes are all kept.
        (next, changed)
    }

    /// The cells that keep a value of their own.
    pub fn held(&self) -> &Pinned {
        &self.held
    }

    /// With the cells that a [`PinnedSink`] held while this ran: derivations then know that they are given.
    #[must_use]
    pub fn with_held(mut self, held: Arc<Pinned>) -> Self {
        self.held = held;
        self
    }
}

/// A run of `program` with held cells that takes from `donors` whatever cannot have changed: the value of a node of
/// the same path and operation whose operands have the same bits. Without donors everything is computed. Donors may
/// be runs of other programs. The sink looks on, and may stop the run; it replaces nothing.
///
/// # Errors
/// As [`run_with`](super::run_with).
///
/// # Panics
/// Where a held cell lies outside its node.
pub fn rerun<T: Real>(
    program: &Arc<Program>,
    bindings: &Bindings<T>,
    held: &Arc<Pinned>,
    settings: &Settings<T>,
    donors: &[&Trace<T>],
    sink: &mut impl Sink<T>,
) -> Result<Trace<T>, RunError> {
    among_kernels(program, || rerun_here(program, bindings, held, settings, donors, sink))
}

fn rerun_here<T: Real>(
    program: &Arc<Program>,
    bindings: &Bindings<T>,
    held: &Arc<Pinned>,
    settings: &Settings<T>,
    donors: &[&Trace<T>],
    sink: &mut dyn Sink<T>,
) -> Result<Trace<T>, RunError> {
    let n = program.len();
    let mut next = Trace {
        program: Arc::clone(program),
        values: vec![None; n],
        nanos: vec![0; n],
        replaced: held.nodes().collect(),
        rounder: None,
        lost: Vec::new(),
        held: Arc::clone(held),
        contract: kernels::contract(),
        stopped: None,
        pool: Arc::clone(&settings.pool),
        stored: None,
    };
    let mut donors: Vec<ReuseSource<'_, T>> = donors.iter().map(|d| ReuseSource::new(d, program)).collect();
    for (id, node) in program.nodes() {
        let bound = matches!(node.op, Op::Leaf(Leaf::Parameter | Leaf::Input(_)));
        let mut taken = None;
        if !bound {
            taken = donors.iter().enumerate().find_map(|(d, donor)| {
                let (value, whole) = donor.take(program, id, held)?;
                Some((d, value, whole))
            });
        }
        let from = taken.as_ref().filter(|t| t.2).map(|t| t.0);
        let value = if bound {
            held.apply(id, bound_value(program, id, bindings)?)
        } else if let Some((d, value, whole)) = taken {
            next.nanos[id.index()] = donors[d].nanos(id);
            if whole { value } else { held.apply(id, value) }
        } else if matches!(node.op, Op::Leaf(Leaf::Recorded(_))) {
            held.apply(id, bound_value(program, id, bindings)?)
        } else {
            check_ids(program, id, &next.values)?;
            let start = Instant::now();
            let operand = |i: NodeId| next.values[i.index()].as_ref().expect("operands come first");
            let value = evaluate(program, id, &operand, &settings.pool);
            next.nanos[id.index()] = start.elapsed().as_nanos() as u64;
            held.apply(id, value)
        };
        // The memory of a donor's equal value is shared, so that the next comparison is one of pointers.
        let mut kept = value;
        for (d, donor) in donors.iter_mut().enumerate() {
            if let Some(theirs) = donor.meet(id, node, &kept, from == Some(d)) {
                kept = theirs.reshaped(node.shape);
            }
        }
        let flow = sink.node(program, id, &kept);
        next.values[id.index()] = Some(kept);
        sink.kept(&next, id);
        if matches!(flow, Flow::Stop) {
            next.stopped = Some(id);
            break;
        }
    }
    Ok(next)
}

/// A trace that values are taken from.
struct ReuseSource<'t, T: Real> {
    trace: &'t Trace<T>,
    /// The node of the same path and shape, by node of the new program.
    beside: Vec<Option<NodeId>>,
    /// Whether that node has the same bits.
    same: Vec<bool>,
}

impl<'t, T: Real> ReuseSource<'t, T> {
    fn new(trace: &'t Trace<T>, program: &Arc<Program>) -> Self {
        let theirs = trace.program();
        let one = Arc::ptr_eq(theirs, program);
        let beside = program.nodes().map(|(id, node)| {
            let other = if one { id } else { theirs.find(&node.path)? };
            let there = theirs.node(other);
            let fits = there.dtype == node.dtype && there.shape.same_dims(&node.shape);
            (fits && trace.is_kept(other)).then_some(other)
        });
        Self { trace, beside: beside.collect(), same: vec![false; program.len()] }
    }

    /// The value of node `id`, where it cannot be another here, and whether it has the node's held cells already.
    fn take(&self, program: &Program, id: NodeId, held: &Pinned) -> Option<(Value<T>, bool)> {
        let other = self.beside[id.index()]?;
        let theirs = self.trace.program();
        let (a, b) = (program.node(id), theirs.node(other));
        let alike = a.inputs.len() == b.inputs.len()
            && (a.inputs.iter().zip(&b.inputs))
                .all(|(i, j)| self.same[i.index()] && self.beside[i.index()] == Some(*j))
            && same_op(&a.op, &b.op);
        if !alike {
            return None;
        }
        let (ours, cells) = (held.of(id), self.trace.held.of(other));
        let whole = same_cells(ours, cells);
        let replaced = cells.is_some() || self.trace.replaced.contains(&other);
        if replaced && !(whole && cells.is_some()) {
            return None;
        }
        Some((self.trace.value(other).reshaped(a.shape), whole))
    }

    /// Notes whether the value of node `id` is the same here; gives this one's where its memory is another.
    fn meet(&mut self, id: NodeId, node: &Node, value: &Value<T>, taken: bool) -> Option<Value<T>> {
        let other = self.beside[id.index()]?;
        if taken {
            self.same[id.index()] = true;
            return None;
        }
        let theirs = self.trace.value(other);
        let same = value.same_bits(&theirs);
        self.same[id.index()] = same;
        let leaf = matches!(node.op, Op::Leaf(_));
        (same && !leaf && !value.shares_memory_with(&theirs)).then_some(theirs)
    }

    fn nanos(&self, id: NodeId) -> u64 {
        self.beside[id.index()].map_or(0, |other| self.trace.nanos(other))
    }
}

/// Whether two operations compute the same bits from the same operands; constants that are equal but have other bits
/// (0 and −0) do not.
fn same_op(a: &Op, b: &Op) -> bool {
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits();
    match (a, b) {
        (Op::Affine(a), Op::Affine(b)) => match (a, b) {
            (Affine::Add(x), Affine::Add(y)) | (Affine::Mul(x), Affine::Mul(y)) | (Affine::Div(x), Affine::Div(y)) => {
                same(*x, *y)
            }
            _ => false,
        },
        (Op::MaskFill { fill: x }, Op::MaskFill { fill: y }) => same(*x, *y),
        (Op::Leaf(Leaf::Constant(a)), Op::Leaf(Leaf::Constant(b))) => match (a, b) {
            (Constant::Filled(x), Constant::Filled(y)) => same(*x, *y),
            (Constant::Float(x), Constant::Float(y)) => {
                x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| same(*x, *y))
            }
            _ => a == b,
        },
        _ => a == b,
    }
}
