//! Running a program and keeping every number.
//!
//! [`run`] interprets a program; a [`Sink`] sees each node's value and may go on, replace it or stop. The result is a
//! [`Trace`]: the program plus one tensor a node (as far as the retention policy keeps it; the rest is recomputed on
//! demand, with the same bits). [`mod@derive`] gives the arithmetic of any cell, [`provenance`] what reads it,
//! [`Trace::what_if`] a trace in which some cells were edited.

pub mod derive;
mod eval;
pub mod gradcheck;
pub mod provenance;
mod rounding;
mod run;
pub mod stats;
mod stored;
mod substitute;
pub mod train;
mod whatif;

use std::collections::HashMap;
use std::sync::Arc;

use crate::kernels::Contract;
use crate::program::{NodeId, Program};
use crate::tensor::{Pool, Precision, Real, Value};

pub use eval::evaluate;
pub use rounding::{Lost, NodeRounding, RoundMode, Rounder, Rounding};
pub use run::{ChainSink, Flow, Keep, RunError, Settings, Sink, run, run_with};
pub use stored::{Home, ValueSource};
pub use substitute::between;
pub use whatif::{Edit, Pinned, PinnedSink, rerun};

/// Values of parameters and inputs, by path.
pub type Bindings<T> = HashMap<Arc<str>, Value<T>>;

/// A run: the program and the value of each node.
#[derive(Clone, Debug)]
pub struct Trace<T: Real> {
    program: Arc<Program>,
    /// `None` where the value was let go; it can be recomputed.
    values: Vec<Option<Value<T>>>,
    /// Time of each node, in nanoseconds (0 where not measured).
    nanos: Vec<u64>,
    /// Nodes whose value was put in place of the computed one.
    replaced: Vec<NodeId>,
    /// How every number was rounded before it was used.
    rounder: Option<Rounder>,
    /// What that lost, by node.
    lost: Vec<Lost>,
    /// Single cells that were.
    held: Arc<Pinned>,
    /// How the CPU that ran it accumulates products.
    contract: Contract,
    /// The last node that ran, where a sink stopped the run.
    stopped: Option<NodeId>,
    pool: Arc<Pool<T>>,
    /// Where values are that were computed before.
    stored: Option<Arc<stored::Stored<T>>>,
}

impl<T: Real> Trace<T> {
    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The trace up to `id`, as where a sink stopped there.
    #[must_use]
    pub fn up_to(&self, id: NodeId) -> Self {
        Self { stopped: Some(id), ..self.clone() }
    }

    /// How products were accumulated.
    pub fn contract(&self) -> Contract {
        self.contract
    }

    /// Where the memory of its values comes from, and goes to.
    pub fn pool(&self) -> &Arc<Pool<T>> {
        &self.pool
    }

    /// The last node that ran, where a sink stopped the run.
    pub fn stopped(&self) -> Option<NodeId> {
        self.stopped
    }

    /// Time that a node took, in nanoseconds; 0 where it was not measured.
    pub fn nanos(&self, id: NodeId) -> u64 {
        self.nanos.get(id.index()).copied().unwrap_or(0)
    }

    /// Nodes whose value was put in place of the computed one.
    pub fn replaced(&self) -> &[NodeId] {
        &self.replaced
    }

    /// How every number was rounded before it was used, where it was.
    pub fn rounder(&self) -> Option<&Rounder> {
        self.rounder.as_ref()
    }

    /// What rounding lost of the numbers of a node.
    pub fn lost(&self, id: NodeId) -> Lost {
        self.lost.get(id.index()).copied().unwrap_or_default()
    }

    /// A value of `id` as this run has it: rounded, where it rounds.
    fn rounded(&self, id: NodeId, value: Value<T>) -> Value<T> {
        let rounded = self.rounder.as_ref().and_then(|r| r.round(&self.program, id, &value));
        rounded.map_or(value, |(rounded, _)| rounded)
    }

    /// With every number rounded before it is used: what is computed on demand, and what is edited.
    #[must_use]
    pub fn with_rounder(mut self, rounder: Option<Rounder>) -> Self {
        self.rounder = rounder;
        self
    }

    /// Whether the run got as far as `id`.
    pub fn reached(&self, id: NodeId) -> bool {
        self.stopped.is_none_or(|last| id <= last) && self.stored.as_ref().is_none_or(|s| s.is_available(id))
    }

    /// Whether the value of `id` is in memory, or in the file that the trace was opened from.
    pub fn is_kept(&self, id: NodeId) -> bool {
        self.values.get(id.index()).is_some_and(Option::is_some) || self.stored.as_ref().is_some_and(|s| s.has(id))
    }

    /// The value of `id`, recomputed from the nearest kept ones where it was let go.
    ///
    /// # Panics
    /// Where the run stopped before `id`.
    pub fn value(&self, id: NodeId) -> Value<T> {
        if let Some(v) = self.kept(id) {
            return v.clone();
        }
        if self.stored.as_ref().is_some_and(|s| s.has(id) || !s.is_available(id)) {
            return self.unreadable(id);
        }
        assert!(self.reached(id), "{} was not reached", self.program.node(id).path);
        self.recompute(id)
    }

    /// The value of `id`, where the run got that far.
    pub fn get(&self, id: NodeId) -> Option<Value<T>> {
        (id.index() < self.program.len() && self.reached(id)).then(|| self.value(id))
    }

    /// The value at `path`.
    pub fn at(&self, path: &str) -> Option<Value<T>> {
        self.program.find(path).and_then(|id| self.get(id))
    }

    /// Bytes held by kept values (shared memory counted at each node, but for keys and values that grow).
    pub fn bytes(&self) -> usize {
        let each = |value: &Value<T>| match value {
            Value::Float(t) => t.own_len() * size_of::<T>(),
            Value::Int(t) => t.own_len() * 8,
            Value::Bool(t) => t.own_len(),
        };
        self.values.iter().flatten().map(each).sum()
    }

    fn recompute(&self, id: NodeId) -> Value<T> {
        // Operands come before their readers: collect what is missing, then evaluate in order.
        let mut missing = vec![id];
        let mut at = 0;
        while at < missing.len() {
            for &input in &self.program.node(missing[at]).inputs {
                if !self.is_kept(input) && !missing.contains(&input) {
                    missing.push(input);
                }
            }
            at += 1;
        }
        missing.sort_unstable();
        let mut fresh: HashMap<NodeId, Value<T>> = HashMap::new();
        for &node in &missing {
            let value = {
                let operand = |i: NodeId| fresh.get(&i).or_else(|| self.kept(i)).expect("operands come first");
                evaluate(&self.program, node, &operand, &self.pool)
            };
            fresh.insert(node, self.rounded(node, value));
        }
        fresh.remove(&id).expect("it was evaluated last")
    }
}

/// A trace of either number type.
#[derive(Clone, Debug)]
pub enum AnyTrace {
    /// In f32.
    F32(Trace<f32>),
    /// In f64.
    F64(Trace<f64>),
}

/// A value of either number type.
#[derive(Clone, Debug)]
pub enum AnyValue {
    /// In f32.
    F32(Value<f32>),
    /// In f64.
    F64(Value<f64>),
}

/// Runs an expression on the trace inside an [`AnyTrace`] (or the value inside an [`AnyValue`]).
#[macro_export]
macro_rules! with_any {
    ($enum:ident, $any:expr, $x:ident => $body:expr) => {
        match $any {
            $crate::trace::$enum::F32($x) => $body,
            $crate::trace::$enum::F64($x) => $body,
        }
    };
}

impl AnyTrace {
    /// A trace of either number type.
    ///
    /// # Panics
    /// Never: there are two number types.
    pub fn of<T: Real>(trace: Trace<T>) -> Self {
        let any: Box<dyn std::any::Any> = Box::new(trace);
        match any.downcast::<Trace<f32>>() {
            Ok(trace) => Self::F32(*trace),
            Err(other) => Self::F64(*other.downcast().expect("numbers are f32 or f64")),
        }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        with_any!(AnyTrace, self, t => t.program())
    }

    /// The trace, where it is in f32.
    pub fn f32(&self) -> Option<&Trace<f32>> {
        match self {
            AnyTrace::F32(t) => Some(t),
            AnyTrace::F64(_) => None,
        }
    }

    /// The trace, where it is in f64.
    pub fn f64(&self) -> Option<&Trace<f64>> {
        match self {
            AnyTrace::F64(t) => Some(t),
            AnyTrace::F32(_) => None,
        }
    }

    /// The cells that keep a value of their own.
    pub fn held(&self) -> &Pinned {
        with_any!(AnyTrace, self, t => t.held())
    }

    /// The number type.
    pub fn precision(&self) -> Precision {
        match self {
            AnyTrace::F32(_) => Precision::F32,
            AnyTrace::F64(_) => Precision::F64,
        }
    }

    /// The value of a node; see [`Trace::value`].
    pub fn value(&self, id: NodeId) -> AnyValue {
        match self {
            AnyTrace::F32(t) => AnyValue::F32(t.value(id)),
            AnyTrace::F64(t) => AnyValue::F64(t.value(id)),
        }
    }

    /// The value of a node, not kept where it has to be read; see [`Trace::once`].
    pub fn once(&self, id: NodeId) -> AnyValue {
        match self {
            AnyTrace::F32(t) => AnyValue::F32(t.once(id)),
            AnyTrace::F64(t) => AnyValue::F64(t.once(id)),
        }
    }

    /// Brings a kept value from its file; see [`Trace::read_ahead`].
    pub fn read_ahead(&self, id: NodeId) {
        with_any!(AnyTrace, self, t => t.read_ahead(id));
    }

    /// Lets the memory go that a value was mapped to; see [`Trace::let_go`].
    pub fn let_go(&self, id: NodeId) {
        with_any!(AnyTrace, self, t => t.let_go(id));
    }

    /// The value of a node, where the run got that far.
    pub fn get(&self, id: NodeId) -> Option<AnyValue> {
        match self {
            AnyTrace::F32(t) => t.get(id).map(AnyValue::F32),
            AnyTrace::F64(t) => t.get(id).map(AnyValue::F64),
        }
    }

    /// Whether the value of `id` is in memory, or in the file that the trace was opened from.
    pub fn is_kept(&self, id: NodeId) -> bool {
        with_any!(AnyTrace, self, t => t.is_kept(id))
    }

    /// Where the value of `id` is kept; see [`Trace::home`].
    pub fn home(&self, id: NodeId) -> Option<Home> {
        with_any!(AnyTrace, self, t => t.home(id))
    }

    /// Whether the run got as far as `id`.
    pub fn reached(&self, id: NodeId) -> bool {
        with_any!(AnyTrace, self, t => t.reached(id))
    }

    /// What rounding lost of the numbers of a node.
    pub fn lost(&self, id: NodeId) -> Lost {
        with_any!(AnyTrace, self, t => t.lost(id))
    }

    /// Time of a node in nanoseconds.
    pub fn nanos(&self, id: NodeId) -> u64 {
        with_any!(AnyTrace, self, t => t.nanos(id))
    }

    /// How products were accumulated.
    pub fn contract(&self) -> Contract {
        with_any!(AnyTrace, self, t => t.contract())
    }

    /// A trace in which some cells were edited; see [`Trace::what_if`].
    #[must_use]
    pub fn what_if(&self, edits: &[Edit]) -> Self {
        match self {
            AnyTrace::F32(t) => AnyTrace::F32(t.what_if(edits)),
            AnyTrace::F64(t) => AnyTrace::F64(t.what_if(edits)),
        }
    }

    /// Bytes held by kept values.
    pub fn bytes(&self) -> usize {
        with_any!(AnyTrace, self, t => t.bytes())
    }
}

impl AnyValue {
    /// Its shape.
    pub fn shape(&self) -> &crate::tensor::Shape {
        with_any!(AnyValue, self, v => v.shape())
    }

    /// Its kind of element.
    pub fn dtype(&self) -> crate::tensor::DType {
        with_any!(AnyValue, self, v => v.dtype())
    }

    /// Element `flat` as `f64`.
    pub fn get(&self, flat: usize) -> f64 {
        with_any!(AnyValue, self, v => v.get(flat))
    }

    /// Bits of element `flat`.
    pub fn bits(&self, flat: usize) -> u64 {
        with_any!(AnyValue, self, v => v.bits(flat))
    }

    /// The number type.
    pub fn precision(&self) -> Precision {
        match self {
            AnyValue::F32(_) => Precision::F32,
            AnyValue::F64(_) => Precision::F64,
        }
    }
}
