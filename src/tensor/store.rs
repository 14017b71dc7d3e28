//! Tensor storage: shared, contiguous, row-major; freed memory goes back to a pool.

use std::fmt::{self, Debug};
use std::sync::{Arc, OnceLock};

use ndarray::ArrayViewD;
use serde::{Deserialize, Serialize};

use super::arena::{Memory, Pool};
use super::elem::{Elem, Plain};
use super::grown::Grown;
use super::mapped::Mapped;
use super::{Real, Shape};

/// Kind of element a node produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DType {
    /// The run's number type.
    Float,
    /// `i64`: token ids and other indices.
    Int,
    /// `bool`: masks, true where masked.
    Bool,
}

impl<E: Elem> Pool<E> {
    /// A zeroed or reused buffer of `len` elements. Reused elements hold old values: the caller writes all.
    pub fn take(self: &Arc<Self>, len: usize) -> Buffer<E> {
        Buffer { data: self.memory(len), home: Some(Arc::clone(self)), elsewhere: None }
    }
}

/// A buffer and the pool it returns to.
#[derive(Debug)]
pub struct Buffer<E: Elem> {
    data: Memory<E>,
    home: Option<Arc<Pool<E>>>,
    /// Where the elements are, where not in `data`.
    elsewhere: Option<Elsewhere<E>>,
}

/// Elements that are not in a buffer of their own.
#[derive(Debug)]
enum Elsewhere<E: Elem> {
    /// In a file.
    Mapped(Mapped<E>),
    /// Made when they are first looked at.
    Later(Later<E>),
    /// In a block that grows; put together when they are first looked at as one.
    Grown(Grown<E>, OnceLock<Vec<E>>),
}

/// Elements that are made when they are first looked at.
struct Later<E> {
    len: usize,
    made: OnceLock<Vec<E>>,
    make: Box<dyn Fn() -> Vec<E> + Send + Sync>,
}

impl<E: Elem> Later<E> {
    fn get(&self) -> &[E] {
        self.made.get_or_init(|| {
            let made = (self.make)();
            assert_eq!(made.len(), self.len, "as many elements as were promised");
            made
        })
    }
}

impl<E> fmt::Debug for Later<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Later({} elements, made: {})", self.len, self.made.get().is_some())
    }
}

impl<E: Elem> Buffer<E> {
    /// The elements.
    pub fn as_mut_slice(&mut self) -> &mut [E] {
        self.data.as_mut_slice()
    }

    fn as_slice(&self) -> &[E] {
        match &self.elsewhere {
            None => self.data.as_slice(),
            Some(Elsewhere::Mapped(mapped)) => mapped.as_slice(),
            Some(Elsewhere::Later(later)) => later.get(),
            Some(Elsewhere::Grown(grown, _)) if grown.run() == grown.len() => grown.part(0),
            Some(Elsewhere::Grown(_, whole)) => whole.get_or_init(|| self.pieces().collect::<Vec<_>>().concat()),
        }
    }

    /// The elements that lie next to each other, run after run.
    fn pieces(&self) -> impl Iterator<Item = &[E]> {
        let runs = match &self.elsewhere {
            Some(Elsewhere::Grown(grown, _)) => grown.len() / grown.run().max(1),
            _ => 1,
        };
        (0..runs).map(|i| match &self.elsewhere {
            Some(Elsewhere::Grown(grown, _)) => grown.part(i),
            _ => self.as_slice(),
        })
    }

    fn len(&self) -> usize {
        match &self.elsewhere {
            Some(Elsewhere::Later(later)) => later.len,
            Some(Elsewhere::Grown(grown, _)) => grown.len(),
            _ => self.as_slice().len(),
        }
    }

    /// `len` elements that `make` gives when they are first looked at. It must not wait for work that may look at them: no
    /// shared pool of threads.
    pub fn later(len: usize, make: impl Fn() -> Vec<E> + Send + Sync + 'static) -> Self {
        let later = Later { len, made: OnceLock::new(), make: Box::new(make) };
        Self { data: Memory::Heap(Vec::new()), home: None, elsewhere: Some(Elsewhere::Later(later)) }
    }
}

impl<E: Elem> From<Vec<E>> for Buffer<E> {
    fn from(data: Vec<E>) -> Self {
        Self { data: Memory::Heap(data), home: None, elsewhere: None }
    }
}

impl<E: Plain> From<Mapped<E>> for Buffer<E> {
    fn from(mapped: Mapped<E>) -> Self {
        Self { data: Memory::Heap(Vec::new()), home: None, elsewhere: Some(Elsewhere::Mapped(mapped)) }
    }
}

impl<E: Elem> Drop for Buffer<E> {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.take_back(std::mem::replace(&mut self.data, Memory::Heap(Vec::new())));
        }
    }
}

/// A tensor. Cloning shares the elements.
#[derive(Clone, Debug)]
pub struct Tensor<E: Elem> {
    shape: Shape,
    data: Arc<Buffer<E>>,
}

impl<E: Elem> Tensor<E> {
    /// A tensor of `shape` over `data`, in row-major order.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn new(shape: Shape, data: impl Into<Buffer<E>>) -> Self {
        let data = data.into();
        let len = data.len();
        assert_eq!(shape.len(), len, "shape {shape} does not hold {len} elements");
        Self { shape, data: Arc::new(data) }
    }

    /// A scalar.
    pub fn scalar(x: E) -> Self {
        Self::new(Shape::SCALAR, vec![x])
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The elements, row-major. Those of a tensor that [grew](Tensor::grown) are copied together the first time: what reads
    /// one after the other goes by [`pieces`](Tensor::pieces), what reads single ones by [`at`](Tensor::at).
    pub fn data(&self) -> &[E] {
        self.data.as_slice()
    }

    /// The elements as an array of `ndarray`; what its axes are is in [`shape`](Tensor::shape). It copies what
    /// [`data`](Tensor::data) copies: nothing, but for a tensor that grew.
    #[expect(clippy::missing_panics_doc, reason = "a tensor has as many elements as its shape says")]
    pub fn view(&self) -> ArrayViewD<'_, E> {
        ArrayViewD::from_shape(self.shape.dims(), self.data()).expect("as many elements as the shape says")
    }

    /// Whether [`data`](Tensor::data) copies nothing.
    pub fn is_whole(&self) -> bool {
        !matches!(&self.data.elsewhere, Some(Elsewhere::Grown(grown, whole)) if grown.run() < grown.len() && whole.get().is_none())
    }

    /// The elements, row-major, in slices of any length, without copying.
    pub fn pieces(&self) -> impl Iterator<Item = &[E]> {
        self.data.pieces()
    }

    /// Element `flat`, row-major, without copying the others.
    ///
    /// # Panics
    /// Where there is none.
    pub fn at(&self, flat: usize) -> E {
        match &self.data.elsewhere {
            Some(Elsewhere::Grown(grown, _)) => grown.part(flat / grown.run())[flat % grown.run()],
            _ => self.data()[flat],
        }
    }

    /// Part `i` of as many equal parts of `size` elements as there are, without copying where a tensor that grew is cut so.
    ///
    /// # Panics
    /// Where there is none.
    pub fn part(&self, i: usize, size: usize) -> &[E] {
        match &self.data.elsewhere {
            Some(Elsewhere::Grown(grown, _)) if grown.run() == size => grown.part(i),
            _ => &self.data()[i * size..][..size],
        }
    }

    /// `before` followed by `more` along the middle axis, seen as `[outer, ·, inner]`. What is appended to the result is
    /// appended to its memory, so that each tensor of such a chain takes the memory of its own rows.
    ///
    /// # Panics
    /// Where `shape` does not hold as many elements as both.
    pub fn grown(shape: Shape, before: &Self, more: &Self, (outer, inner): (usize, usize)) -> Self {
        let longer = match &before.data.elsewhere {
            Some(Elsewhere::Grown(grown, _)) if grown.is_split(outer, inner) => grown.append(more.data()),
            _ => None,
        };
        let grown = longer.unwrap_or_else(|| Grown::new(before.data(), more.data(), outer, inner));
        let elsewhere = Some(Elsewhere::Grown(grown, OnceLock::new()));
        Self::new(shape, Buffer { data: Memory::Heap(Vec::new()), home: None, elsewhere })
    }

    /// Elements that are in memory for this tensor alone: those it added, where it grew from another.
    pub fn own_len(&self) -> usize {
        match &self.data.elsewhere {
            Some(Elsewhere::Grown(grown, whole)) => grown.added() + whole.get().map_or(0, Vec::len),
            _ => self.shape.len(),
        }
    }

    /// The same elements under another shape of the same length.
    ///
    /// # Panics
    /// Where the lengths differ.
    #[must_use]
    pub fn reshaped(&self, shape: Shape) -> Self {
        assert_eq!(shape.len(), self.shape.len(), "cannot see {} as {shape}", self.shape);
        Self { shape, data: Arc::clone(&self.data) }
    }

    /// Whether both share the same memory.
    pub fn shares_memory_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }
}

/// The value of a node.
#[derive(Clone, Debug)]
pub enum Value<T: Real> {
    /// Numbers.
    Float(Tensor<T>),
    /// Ids and indices.
    Int(Tensor<i64>),
    /// Masks.
    Bool(Tensor<bool>),
}

impl<T: Real> Value<T> {
    /// The same in f64.
    pub fn to_f64(&self) -> Value<f64> {
        match self {
            Value::Float(t) => {
                let data: Vec<f64> = t.data().iter().map(|x| x.to_f64()).collect();
                Value::Float(Tensor::new(*t.shape(), data))
            }
            Value::Int(t) => Value::Int(t.clone()),
            Value::Bool(t) => Value::Bool(t.clone()),
        }
    }

    /// The same in f32, rounded.
    pub fn to_f32(&self) -> Value<f32> {
        match self {
            Value::Float(t) => {
                let data: Vec<f32> = t.data().iter().map(|x| x.to_f64() as f32).collect();
                Value::Float(Tensor::new(*t.shape(), data))
            }
            Value::Int(t) => Value::Int(t.clone()),
            Value::Bool(t) => Value::Bool(t.clone()),
        }
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        match self {
            Value::Float(t) => t.shape(),
            Value::Int(t) => t.shape(),
            Value::Bool(t) => t.shape(),
        }
    }

    /// Its kind of element.
    pub fn dtype(&self) -> DType {
        match self {
            Value::Float(_) => DType::Float,
            Value::Int(_) => DType::Int,
            Value::Bool(_) => DType::Bool,
        }
    }

    /// The numbers.
    ///
    /// # Panics
    /// Where it holds no numbers: the builder has checked kinds before anything runs.
    pub fn float(&self) -> &Tensor<T> {
        match self {
            Value::Float(t) => t,
            other => panic!("expected numbers, found {:?}", other.dtype()),
        }
    }

    /// The integers.
    ///
    /// # Panics
    /// Where it holds no integers.
    pub fn int(&self) -> &Tensor<i64> {
        match self {
            Value::Int(t) => t,
            other => panic!("expected integers, found {:?}", other.dtype()),
        }
    }

    /// The mask.
    ///
    /// # Panics
    /// Where it holds no mask.
    pub fn bool(&self) -> &Tensor<bool> {
        match self {
            Value::Bool(t) => t,
            other => panic!("expected a mask, found {:?}", other.dtype()),
        }
    }

    /// Element `flat` as `f64`: numbers exactly, integers as they are, masks as 0 or 1.
    pub fn get(&self, flat: usize) -> f64 {
        match self {
            Value::Float(t) => t.at(flat).to_f64(),
            Value::Int(t) => t.data()[flat] as f64,
            Value::Bool(t) => f64::from(u8::from(t.data()[flat])),
        }
    }

    /// The bits of element `flat`; two values are the same if their bits are.
    pub fn bits(&self, flat: usize) -> u64 {
        match self {
            Value::Float(t) => t.at(flat).bits(),
            Value::Int(t) => t.data()[flat] as u64,
            Value::Bool(t) => u64::from(t.data()[flat]),
        }
    }

    /// The same elements under another shape.
    #[must_use]
    pub fn reshaped(&self, shape: Shape) -> Self {
        match self {
            Value::Float(t) => Value::Float(t.reshaped(shape)),
            Value::Int(t) => Value::Int(t.reshaped(shape)),
            Value::Bool(t) => Value::Bool(t.reshaped(shape)),
        }
    }

    /// Whether all bits are equal.
    pub fn same_bits(&self, other: &Self) -> bool {
        if !self.shape().same_dims(other.shape()) {
            return false;
        }
        if self.shares_memory_with(other) {
            return true;
        }
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => {
                let mut cells = a.data().iter().zip(b.data());
                cells.all(|(a, b)| a.bits() == b.bits())
            }
            (Value::Int(a), Value::Int(b)) => a.data() == b.data(),
            (Value::Bool(a), Value::Bool(b)) => a.data() == b.data(),
            _ => false,
        }
    }

    /// Whether both share the same memory.
    pub fn shares_memory_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => a.shares_memory_with(b),
            (Value::Int(a), Value::Int(b)) => a.shares_memory_with(b),
            (Value::Bool(a), Value::Bool(b)) => a.shares_memory_with(b),
            _ => false,
        }
    }
}
