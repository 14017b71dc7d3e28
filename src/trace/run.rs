//! The interpreter: node after node, a sink looking on.

use std::sync::Arc;
use std::time::Instant;

use super::{Bindings, Lost, Rounder, Trace, evaluate};
use crate::kernels;
use crate::parallel;
use crate::program::{Leaf, Node, NodeId, Op, Program, Role};
use crate::tensor::{DType, Pool, Precision, Real, Shape, Value};

/// What a sink wants after seeing a node.
#[derive(Debug)]
pub enum Flow<T: Real> {
    /// Go on.
    Go,
    /// Go on with this value in place of the computed one (same shape and kind).
    Replace(Value<T>),
    /// Stop after this node.
    Stop,
}

/// Sees every node's value as it is computed, in a thread of the kernels' pool.
pub trait Sink<T: Real>: Send {
    /// Called after each node, leaves included.
    fn node(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T>;

    /// Called when the value is in the trace.
    fn kept(&mut self, _trace: &Trace<T>, _id: NodeId) {}
}

/// Looks at nothing.
impl<T: Real> Sink<T> for () {
    fn node(&mut self, _: &Program, _: NodeId, _: &Value<T>) -> Flow<T> {
        Flow::Go
    }
}

impl<T: Real, F: FnMut(&Program, NodeId, &Value<T>) -> Flow<T> + Send> Sink<T> for F {
    fn node(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        self(program, id, value)
    }
}

/// One sink after another: the second sees what the first puts in place. Where it stops the run, its word counts.
#[derive(Debug)]
pub struct ChainSink<'b, A, B>(pub A, pub &'b mut B);

impl<T: Real, A: Sink<T>, B: Sink<T>> Sink<T> for ChainSink<'_, A, B> {
    fn node(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        match self.0.node(program, id, value) {
            Flow::Go => self.1.node(program, id, value),
            Flow::Replace(other) => match self.1.node(program, id, &other) {
                Flow::Go => Flow::Replace(other),
                flow => flow,
            },
            Flow::Stop => Flow::Stop,
        }
    }
}

/// Which values stay in memory. Parameters and inputs always do.
#[derive(Clone, Debug, Default)]
pub enum Keep {
    /// All.
    #[default]
    All,
    /// Those marked; the others go after their last reader and are recomputed on demand.
    Only(Arc<[bool]>),
}

impl Keep {
    /// As many values as `bytes` hold: first the keys and values of a decoding, of which each call keeps its own, and the
    /// stream between the blocks, from which a block is computed again, then the smallest.
    pub fn within(program: &Program, precision: Precision, bytes: u64) -> Self {
        let each = |node: &Node| match (node.dtype, precision) {
            (DType::Bool, _) => 1,
            (DType::Float, Precision::F32) => 4,
            (DType::Float, Precision::F64) | (DType::Int, _) => 8,
        };
        let all_of = |node: &Node| node.shape.len() as u64 * each(node);
        let cost = |node: &Node| match node.name.last() {
            Role::KeyCache | Role::ValueCache => {
                (0, node.inputs.last().map_or(0, |&added| all_of(program.node(added))))
            }
            Role::Residual(_) => (1, all_of(node)),
            _ => (2, all_of(node)),
        };
        let computed = program.nodes().filter(|(_, node)| !matches!(node.op, Op::Leaf(_)));
        let mut all: Vec<(u8, u64, NodeId)> = computed
            .map(|(id, node)| {
                let (rank, size) = cost(node);
                (rank, size, id)
            })
            .collect();
        if all.iter().map(|(_, size, _)| size).sum::<u64>() <= bytes {
            return Keep::All;
        }
        all.sort_unstable();
        let mut left = bytes;
        let mut kept = vec![false; program.len()];
        for (_, size, id) in all {
            if let Some(rest) = left.checked_sub(size) {
                left = rest;
                kept[id.index()] = true;
            }
        }
        Keep::Only(kept.into())
    }

    /// Only the nodes for which `keep` holds.
    pub fn only(program: &Program, keep: impl Fn(NodeId) -> bool) -> Self {
        Keep::Only(program.nodes().map(|(id, _)| keep(id)).collect())
    }
}

/// A run that cannot start: a parameter or input is missing, or has another shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// No value was given.
    #[error("{path} has no value (its shape is {shape})")]
    Unbound {
        /// Path of the parameter or input.
        path: String,
        /// Its shape.
        shape: Shape,
    },
    /// The value has another shape or kind.
    #[error("{path} is {wanted}, the value given is {found}")]
    Shape {
        /// Path of the parameter or input.
        path: String,
        /// Shape in the program.
        wanted: Shape,
        /// Shape of the value.
        found: Shape,
    },
    /// It goes on in a thread, and nothing of it can be shown yet.
    #[error("it is still being computed")]
    Running,
    /// There is no memory for its value.
    #[error("{path} is {shape}, {bytes} bytes, more than there is memory for")]
    Memory {
        /// Path of the node.
        path: String,
        /// Its shape.
        shape: Shape,
        /// Bytes of its value.
        bytes: u128,
    },
    /// An id lies outside its table.
    #[error("{path}: id {id} is outside the table of {rows} rows")]
    Id {
        /// Path of the gather.
        path: String,
        /// The id.
        id: i64,
        /// Rows of the table.
        rows: usize,
    },
}

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Settings<T: Real> {
    /// Which values stay.
    pub keep: Keep,
    /// Whether to measure the time of each node.
    pub timed: bool,
    /// Memory to reuse.
    pub pool: Arc<Pool<T>>,
    /// How every number is rounded before it is used.
    pub rounder: Option<Rounder>,
}

impl<T: Real> Default for Settings<T> {
    fn default() -> Self {
        Self { keep: Keep::All, timed: true, pool: Arc::default(), rounder: None }
    }
}

/// Runs `program`, keeping every value.
///
/// # Errors
/// Where a parameter or input is missing or misshapen, or an id lies outside its table.
pub fn run<T: Real>(program: &Arc<Program>, bindings: &Bindings<T>) -> Result<Trace<T>, RunError> {
    run_with(program, bindings, &Settings::default(), &mut ())
}

/// Runs `program`.
///
/// # Errors
/// Where a parameter or input is missing or misshapen, an id lies outside its table, or there is no memory for a value.
///
/// # Panics
/// Where a kernel does not keep the accumulation contract on this machine.
pub fn run_with<T: Real>(
    program: &Arc<Program>,
    bindings: &Bindings<T>,
    settings: &Settings<T>,
    sink: &mut impl Sink<T>,
) -> Result<Trace<T>, RunError> {
    among_kernels(program, || interpret(program, bindings, settings, sink))
}

/// Elements of a program from which on its kernels use several threads.
const THREADED: usize = 1 << 16;

/// Runs `f` in a thread of the pool that kernels divide their work in: one from outside would hand over each piece, and
/// sleep until it is done.
pub(super) fn among_kernels<R: Send>(program: &Program, f: impl FnOnce() -> R + Send) -> R {
    if program.nodes().any(|(_, node)| node.shape.len() >= THREADED) { parallel::inside(f) } else { f() }
}

/// Compiled once a number type, not once a sink.
fn interpret<T: Real>(
    program: &Arc<Program>,
    bindings: &Bindings<T>,
    settings: &Settings<T>,
    sink: &mut dyn Sink<T>,
) -> Result<Trace<T>, RunError> {
    let n = program.len();
    let mut trace = Trace {
        program: Arc::clone(program),
        values: vec![None; n],
        nanos: vec![0; if settings.timed { n } else { 0 }],
        replaced: Vec::new(),
        rounder: settings.rounder.clone(),
        lost: vec![Lost::default(); if settings.rounder.is_some() { n } else { 0 }],
        held: Arc::default(),
        contract: kernels::contract(),
        stopped: None,
        pool: Arc::clone(&settings.pool),
        stored: None,
    };
    if matches!(settings.keep, Keep::All) {
        // It goes on by itself.
        drop(settings.pool.prepare(bytes_of::<T>(program)));
    }
    let mut left: Vec<u32> = match &settings.keep {
        Keep::All => Vec::new(),
        Keep::Only(_) => program.nodes().map(|(id, _)| program.users(id).len() as u32).collect(),
    };
    for (id, node) in program.nodes() {
        let start = settings.timed.then(Instant::now);
        let bound = matches!(node.op, Op::Leaf(Leaf::Parameter | Leaf::Input(_) | Leaf::Recorded(_)));
        let mut value = if bound {
            bound_value(program, id, bindings)?
        } else {
            check_ids(program, id, &trace.values)?;
            has_room::<T>(&node.path, node.shape)?;
            let operand = |i: NodeId| trace.values[i.index()].as_ref().expect("operands come first");
            evaluate(program, id, &operand, &settings.pool)
        };
        if let Some(rounder) = &settings.rounder
            && let Some((rounded, lost)) = rounder.round(program, id, &value)
        {
            value = rounded;
            trace.lost[id.index()] = lost;
        }
        if let Some(start) = start {
            trace.nanos[id.index()] = start.elapsed().as_nanos() as u64;
        }
        let stop = match sink.node(program, id, &value) {
            Flow::Go => false,
            Flow::Stop => true,
            Flow::Replace(other) => {
                debug_assert!(other.shape().same_dims(&node.shape));
                value = other.reshaped(node.shape);
                trace.replaced.push(id);
                false
            }
        };
        trace.values[id.index()] = Some(value);
        sink.kept(&trace, id);
        if let Keep::Only(keep) = &settings.keep {
            for (i, &input) in node.inputs.iter().enumerate() {
                if node.inputs[..i].contains(&input) {
                    continue;
                }
                left[input.index()] -= 1;
                let leaf = matches!(program.node(input).op, Op::Leaf(_));
                if left[input.index()] == 0 && !keep[input.index()] && !leaf {
                    trace.values[input.index()] = None;
                }
            }
            if program.users(id).is_empty() && !keep[id.index()] && !matches!(node.op, Op::Leaf(_)) {
                trace.values[id.index()] = None;
            }
        }
        if stop {
            trace.stopped = Some(id);
            break;
        }
    }
    Ok(trace)
}

/// Bytes of the buffers that a run takes which keeps every value.
pub fn bytes_of<T: Real>(program: &Program) -> usize {
    let own = |node: &Node| match (node.dtype, &node.op) {
        // What is bound has memory, what is only seen under another shape shares it.
        (DType::Float, Op::Leaf(Leaf::Parameter | Leaf::Input(_) | Leaf::Recorded(_)) | Op::Reshape) => 0,
        (DType::Float, _) if matches!(node.name.last(), Role::KeyCache | Role::ValueCache) => 0,
        (DType::Float, _) => Pool::<T>::room(node.shape.len()),
        _ => 0,
    };
    program.nodes().map(|(_, node)| own(node)).sum()
}

/// Elements from which on memory is tried before it is taken: an allocation that fails ends the process.
const LARGE: usize = 1 << 18;

/// Whether there is memory for the value of a node.
fn has_room<T: Real>(path: &str, shape: Shape) -> Result<(), RunError> {
    let len = shape.len();
    if len < LARGE || Vec::<T>::new().try_reserve_exact(len.saturating_add(len / 8)).is_ok() {
        return Ok(());
    }
    Err(RunError::Memory { path: path.to_owned(), shape, bytes: len as u128 * size_of::<T>() as u128 })
}

pub(super) fn bound_value<T: Real>(
    program: &Program,
    id: NodeId,
    bindings: &Bindings<T>,
) -> Result<Value<T>, RunError> {
    let node = program.node(id);
    let Some(value) = bindings.get(&node.path) else {
        return Err(RunError::Unbound { path: node.path.to_string(), shape: node.shape });
    };
    if !value.shape().same_dims(&node.shape) || value.dtype() != node.dtype {
        return Err(RunError::Shape { path: node.path.to_string(), wanted: node.shape, found: *value.shape() });
    }
    if let Value::Float(numbers) = value {
        // Weights that are read when they are first looked at are read here, and not by a thread of a kernel.
        numbers.data();
    }
    Ok(value.reshaped(node.shape))
}

pub(super) fn check_ids<T: Real>(program: &Program, id: NodeId, values: &[Option<Value<T>>]) -> Result<(), RunError> {
    use crate::program::Pick;
    let node = program.node(id);
    let (Op::Gather(pick) | Op::ScatterAdd(pick)) = &node.op else {
        return Ok(());
    };
    let table = program.node(node.inputs[0]).shape;
    let rows = match pick {
        Pick::Rows => table.dims()[0],
        Pick::Along => table.dims()[table.rank() - 1],
    };
    let Some(Value::Int(ids)) = &values[node.inputs[1].index()] else {
        return Ok(());
    };
    match ids.data().iter().find(|&&i| i < 0 || i as usize >= rows) {
        Some(&bad) => Err(RunError::Id { path: node.path.to_string(), id: bad, rows }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Axis;

    #[test]
    fn a_value_that_memory_does_not_hold_is_named() {
        let shape = Shape::named(&[(Axis::Other, 1 << 40), (Axis::Other, 1 << 18)]);
        let error = has_room::<f64>("decoder.0.self_attn.scores", shape).expect_err("there is no such memory");
        assert!(matches!(&error, RunError::Memory { bytes, .. } if *bytes == 1 << 61));
        assert_eq!(error.to_string().find("decoder.0.self_attn.scores is"), Some(0), "{error}");
        assert_eq!(has_room::<f32>("x", Shape::named(&[(Axis::Other, 1 << 20)])), Ok(()));
    }
}
