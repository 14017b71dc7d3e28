//! Values of the language: numbers in f64 under a shape, owned or seen in a recorded tensor without a copy.

use std::fmt;
use std::sync::Arc;

use ndarray::{ArrayView6, ShapeBuilder};
use smallvec::SmallVec;

use crate::program::NodeId;
use crate::tensor::slice::ResolvedSlice;
use crate::tensor::{Axis, MAX_RANK, Shape, Value};
use crate::trace::AnyValue;
use crate::trace::derive::Cell;

/// A value: a scalar, or a tensor of at most [`MAX_RANK`] axes.
#[derive(Clone)]
pub struct Array {
    shape: Shape,
    start: usize,
    strides: [usize; MAX_RANK],
    source: Source,
    origin: Option<(usize, NodeId)>,
    /// A whole recorded part whose first axis, a batch of 1, is left out.
    batch_left_out: bool,
    truth: bool,
}

/// Shows numbers in order, each time it is called.
pub(super) type Scan<'s> = &'s mut dyn FnMut(&mut dyn FnMut(f64));

#[derive(Clone)]
enum Source {
    Own(Arc<[f64]>),
    Recorded(AnyValue),
}

/// Calls `$body` with the numbers of an array as a `$view` of `ndarray`, and what makes an f64 of an element.
macro_rules! with_view {
    ($array:expr, $view:ident, $number:ident => $body:expr) => {{
        macro_rules! of {
            ($data:expr, $to:expr) => {{
                let ($view, $number) = ($array.view($data), $to);
                $body
            }};
        }
        match &$array.source {
            Source::Own(data) => of!(data, |x: f64| x),
            Source::Recorded(AnyValue::F32(Value::Float(t))) => of!(t.data(), f64::from),
            Source::Recorded(AnyValue::F64(Value::Float(t))) => of!(t.data(), |x: f64| x),
            Source::Recorded(AnyValue::F32(Value::Int(t)) | AnyValue::F64(Value::Int(t))) => {
                of!(t.data(), |x| x as f64)
            }
            Source::Recorded(AnyValue::F32(Value::Bool(t)) | AnyValue::F64(Value::Bool(t))) => {
                of!(t.data(), |x| f64::from(u8::from(x)))
            }
        }
    }};
}

impl Array {
    /// Numbers in row-major order.
    ///
    /// # Panics
    /// Where their count is not that of the shape.
    pub fn new(shape: Shape, data: Vec<f64>) -> Self {
        assert_eq!(shape.len(), data.len(), "numbers of {shape}");
        Self {
            shape,
            start: 0,
            strides: shape.strides(),
            source: Source::Own(data.into()),
            origin: None,
            batch_left_out: false,
            truth: false,
        }
    }

    /// One number.
    pub fn scalar(x: f64) -> Self {
        Self::new(Shape::SCALAR, vec![x])
    }

    /// Part of the recorded tensor of node `node` of run `run`, not copied.
    pub fn of(run: usize, node: NodeId, value: AnyValue, part: &ResolvedSlice) -> Self {
        let whole = part.of.strides();
        let shape = part.shape();
        let mut strides = [0; MAX_RANK];
        let kept = (0..part.of.rank()).filter(|d| part.kept[*d]);
        for (to, from) in strides.iter_mut().zip(kept) {
            *to = whole[from];
        }
        Self {
            shape,
            start: part.ranges.iter().zip(whole).map(|(r, s)| r.start * s).sum(),
            strides,
            source: Source::Recorded(value),
            origin: Some((run, node)),
            batch_left_out: part.of.dims().first() == Some(&1) && !part.kept[0],
            truth: false,
        }
    }

    /// Marks it as true or false (1 or 0).
    #[must_use]
    pub(super) fn with_truth(mut self, truth: bool) -> Self {
        self.truth = truth;
        self
    }

    /// Whether `indices` begin with one of a batch of 1 that is left out of the shape, as tensors are indexed where
    /// they are whole.
    pub(super) fn counts_batch(&self, indices: usize) -> bool {
        self.batch_left_out && indices == self.shape.rank() + 1
    }

    /// Lengths and names of the axes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether its numbers mean true (1) and false (0).
    pub fn is_truth(&self) -> bool {
        self.truth
    }

    /// The number of a scalar.
    pub fn number(&self) -> Option<f64> {
        (self.shape.rank() == 0).then(|| self.read(self.start))
    }

    fn read(&self, at: usize) -> f64 {
        match &self.source {
            Source::Own(data) => data[at],
            Source::Recorded(v) => v.get(at),
        }
    }

    fn offset(&self, flat: usize) -> usize {
        let at = self.shape.unflat(flat);
        let rank = self.shape.rank();
        self.start + (0..rank).map(|d| at[d] * self.strides[d]).sum::<usize>()
    }

    /// Run and cell that the number at position `flat` was recorded in; `None` where it was computed here.
    pub fn cell(&self, flat: usize) -> Option<(usize, Cell)> {
        let (run, node) = self.origin?;
        let flat = self.offset(flat);
        Some((run, Cell { node, flat }))
    }

    /// The number at position `flat`, in row-major order of its own shape.
    pub fn get(&self, flat: usize) -> f64 {
        self.read(self.offset(flat))
    }

    /// Its part of `data`, under as many axes of length 1 before its own as are missing: with a fixed number of axes
    /// rows of a few numbers are read four times as fast.
    fn view<'d, E>(&self, data: &'d [E]) -> ArrayView6<'d, E> {
        let rank = self.shape.rank();
        let (mut dims, mut strides) = ([1; MAX_RANK], [0; MAX_RANK]);
        dims[MAX_RANK - rank..].copy_from_slice(self.shape.dims());
        strides[MAX_RANK - rank..].copy_from_slice(&self.strides[..rank]);
        ArrayView6::from_shape(dims.strides(strides), &data[self.start..]).expect("a part is inside")
    }

    /// Shows all its numbers, in row-major order.
    pub fn scan(&self, see: &mut dyn FnMut(f64)) {
        with_view!(self, view, number => view.iter().for_each(|x| see(number(*x))));
    }

    /// All its numbers, in row-major order.
    pub fn to_vec(&self) -> Vec<f64> {
        let mut all = Vec::with_capacity(self.shape.len());
        self.scan(&mut |x| all.push(x));
        all
    }

    pub(super) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let mut data = Vec::with_capacity(self.shape.len());
        self.scan(&mut |x| data.push(f(x)));
        Self::new(self.shape, data)
    }

    /// Each row of the last axis changed.
    pub(super) fn rows(&self, change: impl Fn(&mut [f64])) -> Self {
        let mut data = self.to_vec();
        let width = self.shape.dims().last().copied().unwrap_or(1).max(1);
        data.chunks_mut(width).for_each(change);
        Self::new(self.shape, data)
    }

    /// One number for each fibre along `axis`, which goes away; of the whole where there is none. `fold` may scan its
    /// fibre several times.
    pub(super) fn fold_along(&self, axis: Option<usize>, fold: &mut dyn FnMut(Scan<'_>) -> f64) -> Self {
        let Some(axis) = axis else {
            return Self::scalar(fold(&mut |see| self.scan(see)));
        };
        let before = MAX_RANK - self.shape.rank();
        let mut rest = self.clone();
        rest.drop_axis(axis);
        let mut data = Vec::with_capacity(rest.shape.len());
        with_view!(self, view, number => for fibre in view.lanes(ndarray::Axis(before + axis)) {
            data.push(fold(&mut |see| fibre.iter().for_each(|x| see(number(*x)))));
        });
        Self::new(rest.shape, data)
    }

    fn drop_axis(&mut self, axis: usize) {
        let dims: SmallVec<[(Axis, usize); MAX_RANK]> =
            self.shape.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, dim)| dim).collect();
        self.strides.copy_within(axis + 1.., axis);
        self.shape = Shape::named(&dims);
        self.batch_left_out = false;
    }

    /// One place of an axis, which goes away. The place must be inside.
    pub(super) fn at(mut self, axis: usize, place: usize) -> Self {
        self.start += place * self.strides[axis];
        self.drop_axis(axis);
        self
    }

    /// Places of an axis. They must be inside.
    pub(super) fn range(mut self, axis: usize, range: std::ops::Range<usize>) -> Self {
        self.start += range.start * self.strides[axis];
        self.shape = self.shape.with_dim(axis, range.len());
        self.batch_left_out = false;
        self
    }

    /// The last two axes exchanged; a vector stays.
    pub(super) fn transposed(mut self) -> Self {
        let rank = self.shape.rank();
        if rank >= 2 {
            let mut dims: SmallVec<[(Axis, usize); MAX_RANK]> = self.shape.iter().collect();
            dims.swap(rank - 2, rank - 1);
            self.strides.swap(rank - 2, rank - 1);
            self.shape = Shape::named(&dims);
            self.batch_left_out = false;
        }
        self
    }

    /// The shape of two put together cell by cell: axes right-aligned, equal or 1.
    pub(super) fn common(&self, other: &Self) -> Option<Shape> {
        broadcast(&self.shape, &other.shape)
    }

    /// Both seen under `shape`, put together cell by cell.
    pub(super) fn zip(&self, other: &Self, shape: Shape, f: impl Fn(f64, f64) -> f64) -> Self {
        let (a, b) = (self.spread(&shape), other.spread(&shape));
        let mut data = Vec::with_capacity(shape.len());
        // A scalar next to a large tensor is the common case.
        if let (true, Some(y)) = (shape.same_dims(&self.shape), other_number(&b, &shape)) {
            self.scan(&mut |x| data.push(f(x, y)));
        } else {
            let mut others = b.to_vec().into_iter();
            a.scan(&mut |x| data.extend(others.next().map(|y| f(x, y))));
        }
        Self::new(shape, data)
    }

    /// The same cells under a larger shape, repeated along new axes and along those of length 1.
    fn spread(&self, shape: &Shape) -> Self {
        let shift = shape.rank() - self.shape.rank();
        let mut strides = [0; MAX_RANK];
        for d in 0..self.shape.rank() {
            if self.shape.dims()[d] != 1 {
                strides[d + shift] = self.strides[d];
            }
        }
        Self { shape: *shape, strides, ..self.clone() }
    }

    /// Matrix product over the last two axes, leading axes right-aligned; a vector is a row on the left and a column
    /// on the right. Before anything is made, `allow` sees how many cells the largest part has and how many
    /// multiplications there are.
    pub(super) fn product(&self, other: &Self, allow: impl Fn(usize, usize) -> bool) -> Result<Self, Unfit> {
        let (a, b) = (self.as_matrix(true), other.as_matrix(false));
        let ([m, k], [k2, n]) = (a.last_two(), b.last_two());
        let lead = |x: &Self| x.shape.iter().take(x.shape.rank() - 2).collect::<SmallVec<[_; 6]>>();
        let leading = broadcast(&Shape::named(&lead(&a)), &Shape::named(&lead(&b)));
        let Some(leading) = leading.filter(|_| k == k2 && self.shape.rank() * other.shape.rank() > 0) else {
            return Err(Unfit::Shapes);
        };
        let times = |by: &[usize]| by.iter().try_fold(leading.len(), |w, x| w.checked_mul(*x));
        let made = [times(&[m, n]), times(&[m, k]), times(&[k, n])];
        let made = made.into_iter().try_fold(0, |most, n| Some(n?.max(most)));
        if !matches!((made, times(&[m, n, k])), (Some(cells), Some(work)) if allow(cells, work)) {
            return Err(Unfit::Large);
        }
        let whole = |x: &Self| {
            let dims: SmallVec<[_; 6]> = leading.iter().chain(x.shape.iter().skip(x.shape.rank() - 2)).collect();
            x.spread(&Shape::named(&dims)).to_vec()
        };
        let (x, y) = (whole(&a), whole(&b));
        let mut data = vec![0.0; leading.len() * m * n];
        for (i, row) in data.chunks_mut(n.max(1)).enumerate() {
            let matrix = i / m.max(1);
            for j in 0..k {
                let factor = x[i * k + j];
                let line = &y[(matrix * k + j) * n..][..n];
                row.iter_mut().zip(line).for_each(|(sum, b)| *sum += factor * b);
            }
        }
        let mut dims: SmallVec<[(Axis, usize); MAX_RANK]> = leading.iter().collect();
        if self.shape.rank() > 1 {
            dims.extend(a.shape.iter().rev().nth(1));
        }
        if other.shape.rank() > 1 {
            dims.extend(b.shape.iter().next_back());
        }
        Ok(Self::new(Shape::named(&dims), data))
    }

    /// With two axes at least: a vector becomes a row (or a column).
    fn as_matrix(&self, row: bool) -> Self {
        if self.shape.rank() >= 2 {
            return self.clone();
        }
        let len = self.shape.len();
        let axis = self.shape.axes().first().copied().unwrap_or_default();
        let mut out = self.clone();
        let step = self.strides[0];
        out.strides = [0; MAX_RANK];
        if row {
            out.shape = Shape::named(&[(Axis::Other, 1), (axis, len)]);
            out.strides[1] = step;
        } else {
            out.shape = Shape::named(&[(axis, len), (Axis::Other, 1)]);
            out.strides[0] = step;
        }
        out
    }

    fn last_two(&self) -> [usize; 2] {
        let d = self.shape.dims();
        [d[d.len() - 2], d[d.len() - 1]]
    }

    /// Whether both have the same shape and the same numbers; NaN is itself here, and −0 is 0.
    pub fn same_as(&self, other: &Self) -> bool {
        self.shape.same_dims(&other.shape) && {
            let (a, b) = (self.to_vec(), other.to_vec());
            a.iter().zip(&b).all(|(x, y)| same(*x, *y))
        }
    }
}

/// Why there is no matrix product.
pub(super) enum Unfit {
    Shapes,
    Large,
}

/// Equal, or both NaN.
pub(super) fn same(x: f64, y: f64) -> bool {
    x == y || x.is_nan() && y.is_nan()
}

fn other_number(b: &Array, shape: &Shape) -> Option<f64> {
    (b.strides[..shape.rank()].iter().all(|s| *s == 0)).then(|| b.read(b.start))
}

/// Axes right-aligned, equal or 1; `None` where they do not fit or the result has too many cells to address.
fn broadcast(a: &Shape, b: &Shape) -> Option<Shape> {
    let rank = a.rank().max(b.rank());
    let dim = |s: &Shape, d: usize| (d + s.rank()).checked_sub(rank).map(|i| (s.axes()[i], s.dims()[i]));
    let mut dims: SmallVec<[(Axis, usize); MAX_RANK]> = SmallVec::new();
    for d in 0..rank {
        dims.push(match (dim(a, d), dim(b, d)) {
            (Some((x, m)), Some((_, n))) if m == n || n == 1 => (x, m),
            (Some((_, 1)) | None, Some(y)) => y,
            (Some(x), None) => x,
            _ => return None,
        });
    }
    let shape = Shape::named(&dims);
    shape.checked_len().map(|_| shape)
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.shape)?;
        f.debug_list().entries((0..self.shape.len().min(16)).map(|i| self.get(i))).finish()
    }
}
