//! Values that a run computed before, read from where they were kept: a trace folder, a recording.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::Trace;
use crate::kernels;
use crate::program::{Leaf, NodeId, Op, Program};
use crate::tensor::{DType, Real, Tensor, Value};

/// Where the values of a program's nodes are kept.
pub trait ValueSource<T: Real>: fmt::Debug + Send + Sync {
    /// Whether the value of `id` is there. Cheap: nothing is read.
    fn has(&self, id: NodeId) -> bool;

    /// The value of `id`, of the node's shape and kind; `None` where it is not there or cannot be read.
    fn read(&self, id: NodeId) -> Option<Value<T>>;

    /// Brings the value of `id` from its file, and finds out whether it is as it was written: it is looked at soon.
    fn read_ahead(&self, _id: NodeId) {}

    /// Lets the memory go that the value of `id` was mapped to: it is not looked at again soon.
    fn let_go(&self, _id: NodeId) {}

    /// Where the value of `id` is kept; `None` where that is not one place that is known.
    fn home(&self, _id: NodeId) -> Option<Home> {
        None
    }
}

/// Where a value is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The folder for what is found out about it.
    pub measures: PathBuf,
    /// What is another one when the value is: the checksum of its part, the size and age of its file.
    pub stamp: String,
}

/// Values of a source, each read when it is first looked at.
#[derive(Debug)]
pub(super) struct Stored<T: Real> {
    source: Arc<dyn ValueSource<T>>,
    read: Vec<OnceLock<Option<Value<T>>>>,
    /// Nodes that have a value: kept ones, and those that can be computed from kept ones.
    available: Vec<bool>,
}

impl<T: Real> Stored<T> {
    pub(super) fn has(&self, id: NodeId) -> bool {
        self.source.has(id)
    }

    pub(super) fn is_available(&self, id: NodeId) -> bool {
        self.available.get(id.index()).copied().unwrap_or(false)
    }

    /// The value of `id`, read once.
    pub(super) fn get(&self, id: NodeId) -> Option<&Value<T>> {
        let slot = self.read.get(id.index())?;
        if let Some(known) = slot.get() {
            return known.as_ref();
        }
        // Not within `get_or_init`: what is read on several threads may let this one take up other work, which may be to read
        // the same value.
        let value = self.source.has(id).then(|| self.source.read(id)).flatten();
        slot.get_or_init(|| value).as_ref()
    }
}

impl<T: Real> Trace<T> {
    /// The trace of a run of `program` whose values are in `source`. A node that is not there is computed from those
    /// that are, with the same bits; one that cannot be was not reached.
    pub fn stored(program: &Arc<Program>, source: Arc<dyn ValueSource<T>>) -> Self {
        let mut available = vec![false; program.len()];
        for (id, node) in program.nodes() {
            let bound = matches!(node.op, Op::Leaf(Leaf::Parameter | Leaf::Input(_) | Leaf::Recorded(_)));
            available[id.index()] =
                source.has(id) || !bound && node.inputs.iter().all(|input| available[input.index()]);
        }
        let read = std::iter::repeat_with(OnceLock::new).take(program.len()).collect();
        Self {
            program: Arc::clone(program),
            values: vec![None; program.len()],
            nanos: Vec::new(),
            replaced: Vec::new(),
            rounder: None,
            lost: Vec::new(),
            held: Arc::default(),
            contract: kernels::contract(),
            stopped: None,
            pool: Arc::default(),
            stored: Some(Arc::new(Stored { source, read, available })),
        }
    }

    /// The value of `id` where it is in memory or in the source.
    pub(super) fn kept(&self, id: NodeId) -> Option<&Value<T>> {
        let here = self.values.get(id.index())?.as_ref();
        here.or_else(|| self.stored.as_ref()?.get(id))
    }

    /// The value of `id`, as [`Trace::value`]; one that has to be read is not kept.
    ///
    /// # Panics
    /// Where the run did not get that far.
    pub fn once(&self, id: NodeId) -> Value<T> {
        let stored = self.stored.as_ref().filter(|_| self.values.get(id.index()).is_some_and(Option::is_none));
        let Some(stored) = stored.filter(|s| s.has(id)) else { return self.value(id) };
        match stored.read.get(id.index()).and_then(OnceLock::get) {
            Some(Some(value)) => value.clone(),
            _ => stored.source.read(id).unwrap_or_else(|| self.unreadable(id)),
        }
    }

    /// Brings the value of `id` from its file, where it is kept in one: it is looked at soon.
    pub fn read_ahead(&self, id: NodeId) {
        if let Some(stored) = self.stored.as_ref().filter(|_| self.values.get(id.index()).is_some_and(Option::is_none))
        {
            stored.source.read_ahead(id);
        }
    }

    /// Lets the memory go that the value of `id` was mapped to.
    pub fn let_go(&self, id: NodeId) {
        if let Some(stored) = &self.stored {
            stored.source.let_go(id);
        }
    }

    /// Where the value of `id` is kept, where this trace has it from there: it was neither computed nor edited.
    pub fn home(&self, id: NodeId) -> Option<Home> {
        let computed = self.values.get(id.index())?.is_some() || self.replaced.contains(&id);
        if computed { None } else { self.stored.as_ref()?.source.home(id) }
    }

    /// What denotes a value that was there when the source was opened and cannot be read any more.
    pub(super) fn unreadable(&self, id: NodeId) -> Value<T> {
        let node = self.program.node(id);
        let n = node.shape.len();
        match node.dtype {
            DType::Float => Value::Float(Tensor::new(node.shape, vec![T::from_f64(f64::NAN); n])),
            DType::Int => Value::Int(Tensor::new(node.shape, vec![-1; n])),
            DType::Bool => Value::Bool(Tensor::new(node.shape, vec![false; n])),
        }
    }
}
