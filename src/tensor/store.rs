//! Tensor storage: shared, contiguous, row-major; freed memory goes back to a pool.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Real, Shape};

/// Kind of element a node produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// The run's number type.
    Float,
    /// `i64`: token ids and other indices.
    Int,
    /// `bool`: masks, true where masked.
    Bool,
}

/// An element type of a tensor.
pub trait Elem: Copy + Default + Debug + Send + Sync + PartialEq + 'static {}
impl Elem for f32 {}
impl Elem for f64 {}
impl Elem for i64 {}
impl Elem for bool {}

/// Memory kept for reuse. A buffer taken from a pool returns to it when its last tensor goes, so that a
/// second run of the same program maps no fresh pages (fresh pages cost 25 to 60 % of a forward pass).
#[derive(Debug)]
pub struct Pool<E> {
    free: Mutex<HashMap<usize, Vec<Vec<E>>>>,
}

impl<E> Default for Pool<E> {
    fn default() -> Self {
        Self {
            free: Mutex::new(HashMap::new()),
        }
    }
}

impl<E: Elem> Pool<E> {
    /// A zeroed or reused buffer of `len` elements. Reused elements hold old values: the caller writes all.
    pub fn take(self: &Arc<Self>, len: usize) -> Buffer<E> {
        let reused = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(&len)
            .and_then(Vec::pop);
        Buffer {
            data: reused.unwrap_or_else(|| vec![E::default(); len]),
            home: Some(Arc::clone(self)),
        }
    }
}

/// A buffer and the pool it returns to.
#[derive(Debug)]
pub struct Buffer<E: Elem> {
    data: Vec<E>,
    home: Option<Arc<Pool<E>>>,
}

impl<E: Elem> Buffer<E> {
    /// The elements.
    pub fn as_mut_slice(&mut self) -> &mut [E] {
        &mut self.data
    }
}

impl<E: Elem> From<Vec<E>> for Buffer<E> {
    fn from(data: Vec<E>) -> Self {
        Self { data, home: None }
    }
}

impl<E: Elem> Drop for Buffer<E> {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            let data = std::mem::take(&mut self.data);
            home.free
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(data.len())
                .or_default()
                .push(data);
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
        assert_eq!(
            shape.len(),
            data.data.len(),
            "shape {shape} does not hold {} elements",
            data.data.len()
        );
        Self {
            shape,
            data: Arc::new(data),
        }
    }

    /// A scalar.
    pub fn scalar(x: E) -> Self {
        Self::new(Shape::SCALAR, vec![x])
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The elements, row-major.
    pub fn data(&self) -> &[E] {
        &self.data.data
    }

    /// The same elements under another shape of the same length.
    ///
    /// # Panics
    /// Where the lengths differ.
    #[must_use]
    pub fn reshaped(&self, shape: Shape) -> Self {
        assert_eq!(
            shape.len(),
            self.shape.len(),
            "cannot see {} as {shape}",
            self.shape
        );
        Self {
            shape,
            data: Arc::clone(&self.data),
        }
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
            Value::Float(t) => t.data()[flat].to_f64(),
            Value::Int(t) => t.data()[flat] as f64,
            Value::Bool(t) => f64::from(u8::from(t.data()[flat])),
        }
    }

    /// The bits of element `flat`; two values are the same if their bits are.
    pub fn bits(&self, flat: usize) -> u64 {
        match self {
            Value::Float(t) => t.data()[flat].bits(),
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
        self.dtype() == other.dtype()
            && self.shape().same_dims(other.shape())
            && (0..self.shape().len()).all(|i| self.bits(i) == other.bits(i))
    }
}
