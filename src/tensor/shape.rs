//! Shapes and the names of axes.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most axes a tensor may have.
pub const MAX_RANK: usize = 6;

/// The name of an axis. It travels with a shape as a label; it takes no part in arithmetic.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Axis {
    /// Sequences of a batch.
    Batch,
    /// Attention heads.
    Head,
    /// Heads that keys and values have of their own (grouped queries).
    KvHead,
    /// Query heads that share one key/value head.
    Group,
    /// Positions of a sequence.
    Token,
    /// Positions that ask (rows of attention).
    Query,
    /// Positions that are looked at (columns of attention).
    Key,
    /// Width of a query or key.
    #[serde(rename = "d_k")]
    #[strum(serialize = "d_k")]
    DK,
    /// Width of a value.
    #[serde(rename = "d_v")]
    #[strum(serialize = "d_v")]
    DV,
    /// Width of the residual stream.
    DModel,
    /// Width inside the feed-forward network.
    #[serde(rename = "d_ff")]
    #[strum(serialize = "d_ff")]
    DFf,
    /// The vocabulary.
    Vocab,
    /// Experts of a mixture.
    Expert,
    /// Beams of a beam search.
    Beam,
    /// A reduced axis, of length 1.
    One,
    /// Rows of a weight matrix (what it produces).
    Out,
    /// Columns of a weight matrix (what it reads).
    In,
    /// No name.
    #[default]
    #[strum(serialize = "dim")]
    Other,
}

impl Axis {
    /// Its name, as used in slices and labels.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Lengths of the axes of a tensor, outermost first, with their names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    axes: [Axis; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// A scalar.
    pub const SCALAR: Shape = Shape { dims: [1; MAX_RANK], axes: [Axis::Other; MAX_RANK], rank: 0 };

    /// A shape without names.
    ///
    /// # Panics
    /// With more than [`MAX_RANK`] axes.
    pub fn new(dims: &[usize]) -> Self {
        assert!(dims.len() <= MAX_RANK, "rank {} is above {MAX_RANK}", dims.len());
        let mut shape = Self::SCALAR;
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape.rank = dims.len() as u8;
        shape
    }

    /// A shape with names.
    ///
    /// # Panics
    /// With more than [`MAX_RANK`] axes.
    pub fn named(dims: &[(Axis, usize)]) -> Self {
        let lengths: smallvec::SmallVec<[usize; MAX_RANK]> = dims.iter().map(|d| d.1).collect();
        let mut shape = Self::new(&lengths);
        for (slot, (axis, _)) in shape.axes.iter_mut().zip(dims) {
            *slot = *axis;
        }
        shape
    }

    /// Lengths, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank as usize]
    }

    /// Names, outermost first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes[..self.rank as usize]
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.dims().iter().product()
    }

    /// Number of elements, or `None` where it does not fit in memory addresses.
    pub fn checked_len(&self) -> Option<usize> {
        self.dims().iter().try_fold(1usize, |n, &d| n.checked_mul(d))
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row-major strides, in elements.
    pub fn strides(&self) -> [usize; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        let mut step = 1;
        for i in (0..self.rank()).rev() {
            strides[i] = step;
            step *= self.dims[i];
        }
        strides
    }

    /// Flat position of `index`. The index must have one entry an axis and lie inside.
    pub fn flat(&self, index: &[usize]) -> usize {
        debug_assert_eq!(index.len(), self.rank());
        index.iter().zip(self.dims()).fold(0, |at, (&i, &n)| at * n + i)
    }

    /// Index of the element at flat position `flat`; entries past the rank are 0.
    pub fn unflat(&self, mut flat: usize) -> [usize; MAX_RANK] {
        let mut index = [0; MAX_RANK];
        for i in (0..self.rank()).rev() {
            index[i] = flat % self.dims[i].max(1);
            flat /= self.dims[i].max(1);
        }
        index
    }

    /// The same lengths with other names.
    #[must_use]
    pub fn with_axes(mut self, axes: &[Axis]) -> Self {
        for (slot, axis) in self.axes.iter_mut().zip(axes) {
            *slot = *axis;
        }
        self
    }

    /// The same shape with axis `at` of length `len`.
    #[must_use]
    pub fn with_dim(mut self, at: usize, len: usize) -> Self {
        self.dims[at] = len;
        self
    }

    /// With one more axis at the end.
    ///
    /// # Panics
    /// Where there are [`MAX_RANK`] already.
    #[must_use]
    pub fn and(mut self, (axis, len): (Axis, usize)) -> Self {
        let at = self.rank();
        (self.dims[at], self.axes[at]) = (len, axis);
        self.rank += 1;
        self
    }

    /// The same shape with axis `at` named `axis`.
    #[must_use]
    pub fn with_axis(mut self, at: usize, axis: Axis) -> Self {
        self.axes[at] = axis;
        self
    }

    /// Lengths and names together, outermost first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Axis, usize)> + '_ {
        self.axes().iter().copied().zip(self.dims().iter().copied())
    }

    /// Whether the lengths are the same, whatever the names.
    pub fn same_dims(&self, other: &Shape) -> bool {
        self.dims() == other.dims()
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let dims = Vec::<(Axis, usize)>::deserialize(from)?;
        if dims.len() > MAX_RANK {
            return Err(serde::de::Error::custom(format!("rank {} is above {MAX_RANK}", dims.len())));
        }
        Ok(Shape::named(&dims))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, (axis, n)) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            match axis {
                Axis::Other => write!(f, "{n}")?,
                axis => write!(f, "{} {n}", axis.name())?,
            }
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
