//! Slices of a tensor by axis name, as people write them: `head=0`, `out=0..2`, `head=1,token=-1`.

use std::fmt;
use std::ops::Range;

use ndarray::ArrayViewD;

use super::{Axis, Elem, Shape, Tensor};

/// A slice that cannot be read, or does not fit a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// Two commas with nothing between them.
    #[error("`{0}` has an empty part")]
    EmptyPart(String),
    /// A part without `=`.
    #[error("`{0}` is not of the form axis=index or axis=from..to")]
    NoEquals(String),
    /// No axis has this name.
    #[error("there is no axis `{0}`")]
    UnknownAxis(String),
    /// An axis is named twice.
    #[error("axis `{0}` is named twice")]
    AxisTwice(String),
    /// An index or a bound is not a whole number.
    #[error("`{0}` is not a whole number")]
    NotANumber(String),
    /// The tensor does not have the axis.
    #[error("there is no axis {axis} in {shape}")]
    NoSuchAxis {
        /// The axis.
        axis: &'static str,
        /// Shape of the tensor.
        shape: Shape,
    },
    /// An index or a bound is outside the axis.
    #[error("{axis}={index} is outside: the axis has length {len}")]
    Outside {
        /// The axis.
        axis: &'static str,
        /// The index.
        index: i64,
        /// Length of the axis.
        len: usize,
    },
    /// A range takes nothing.
    #[error("`{slice}` takes nothing of axis {axis}")]
    Nothing {
        /// The axis.
        axis: &'static str,
        /// The slice.
        slice: Slice,
    },
}

/// What is taken of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// One index; the axis goes away. Negative counts from the end.
    At(i64),
    /// Indices from the first to before the second; open where `None`. The axis stays.
    Range(Option<i64>, Option<i64>),
}

/// A slice: at most one [`Pick`] an axis; axes not named are taken whole. The default takes everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    picks: Vec<(Axis, Pick)>,
}

impl Slice {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// One index of one axis.
    pub fn at(axis: Axis, index: i64) -> Self {
        Self { picks: vec![(axis, Pick::At(index))] }
    }

    /// The picks, in the order written.
    pub fn picks(&self) -> &[(Axis, Pick)] {
        &self.picks
    }

    /// Whether everything is taken.
    pub fn is_all(&self) -> bool {
        self.picks.is_empty()
    }

    /// The same slice with one more pick.
    #[must_use]
    pub fn and(mut self, axis: Axis, pick: Pick) -> Self {
        self.picks.push((axis, pick));
        self
    }

    /// Reads `axis=index` or `axis=from..to` parts, separated by commas. Either bound may be left out.
    ///
    /// # Errors
    /// The part that cannot be read.
    pub fn parse(text: &str) -> Result<Self, SliceError> {
        let mut slice = Self::default();
        for part in text.split(',').map(str::trim) {
            if part.is_empty() {
                if text.trim().is_empty() {
                    break;
                }
                return Err(SliceError::EmptyPart(text.to_owned()));
            }
            let Some((name, pick)) = part.split_once('=') else {
                return Err(SliceError::NoEquals(part.to_owned()));
            };
            let name = name.trim();
            let Ok(axis) = name.parse::<Axis>() else {
                return Err(SliceError::UnknownAxis(name.to_owned()));
            };
            if slice.picks.iter().any(|(a, _)| *a == axis) {
                return Err(SliceError::AxisTwice(name.to_owned()));
            }
            slice.picks.push((axis, Self::parse_pick(pick.trim())?));
        }
        Ok(slice)
    }

    fn parse_pick(text: &str) -> Result<Pick, SliceError> {
        let number = |t: &str| t.trim().parse::<i64>().map_err(|_| SliceError::NotANumber(t.to_owned()));
        let bound = |t: &str| {
            if t.trim().is_empty() { Ok(None) } else { number(t).map(Some) }
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Pick::Range(bound(from)?, bound(to)?)),
            None => Ok(Pick::At(number(text)?)),
        }
    }

    /// The indices taken of a tensor of `shape`.
    ///
    /// # Errors
    /// Where an axis is not there, an index is outside or a range is empty.
    pub fn resolve(&self, shape: &Shape) -> Result<ResolvedSlice, SliceError> {
        let mut ranges: Vec<Range<usize>> = shape.dims().iter().map(|&n| 0..n).collect();
        let mut kept = vec![true; shape.rank()];
        for (axis, pick) in &self.picks {
            let Some(at) = shape.axes().iter().position(|a| a == axis) else {
                return Err(SliceError::NoSuchAxis { axis: axis.name(), shape: *shape });
            };
            let len = shape.dims()[at];
            let outside = |i: i64| SliceError::Outside { axis: axis.name(), index: i, len };
            let from_end = |i: i64| {
                if i < 0 { i.saturating_add(len as i64) } else { i }
            };
            match *pick {
                Pick::At(i) => {
                    let index = usize::try_from(from_end(i)).map_err(|_| outside(i))?;
                    if index >= len {
                        return Err(outside(i));
                    }
                    ranges[at] = index..index + 1;
                    kept[at] = false;
                }
                Pick::Range(from, to) => {
                    let bound = |i: Option<i64>, default: usize| match i {
                        None => Ok(default),
                        Some(i) => {
                            usize::try_from(from_end(i)).ok().filter(|&index| index <= len).ok_or_else(|| outside(i))
                        }
                    };
                    let range = bound(from, 0)?..bound(to, len)?;
                    if range.is_empty() {
                        return Err(SliceError::Nothing { axis: axis.name(), slice: self.clone() });
                    }
                    ranges[at] = range;
                }
            }
        }
        Ok(ResolvedSlice { of: *shape, ranges, kept })
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (axis, pick)) in self.picks.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}=", axis.name())?;
            match pick {
                Pick::At(i) => write!(f, "{i}")?,
                Pick::Range(from, to) => {
                    if let Some(i) = from {
                        write!(f, "{i}")?;
                    }
                    f.write_str("..")?;
                    if let Some(i) = to {
                        write!(f, "{i}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for Slice {
    type Err = SliceError;

    fn from_str(text: &str) -> Result<Self, SliceError> {
        Self::parse(text)
    }
}

/// A slice of a tensor of a known shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSlice {
    /// Shape of the whole tensor.
    pub of: Shape,
    /// Indices taken, one range an axis of the whole tensor.
    pub ranges: Vec<Range<usize>>,
    /// Which axes the slice still has.
    pub kept: Vec<bool>,
}

impl ResolvedSlice {
    /// Shape of the slice.
    pub fn shape(&self) -> Shape {
        let dims: Vec<(Axis, usize)> = self
            .of
            .axes()
            .iter()
            .zip(&self.ranges)
            .zip(&self.kept)
            .filter(|(_, kept)| **kept)
            .map(|((axis, range), _)| (*axis, range.len()))
            .collect();
        Shape::named(&dims)
    }

    /// Flat position in the whole tensor of the element at `index` of the slice (one entry a kept axis).
    pub fn flat(&self, index: &[usize]) -> usize {
        let mut given = index.iter();
        self.ranges.iter().zip(&self.kept).zip(self.of.dims()).fold(0, |at, ((range, kept), n)| {
            let i = if *kept { given.next().copied().unwrap_or(0) } else { 0 };
            at * n + range.start + i
        })
    }

    /// Flat positions of all its elements, in row-major order.
    pub fn flats(&self) -> impl Iterator<Item = usize> + '_ {
        let shape = self.shape();
        (0..shape.len()).map(move |i| self.flat(&shape.unflat(i)[..shape.rank()]))
    }

    /// Index in the slice of the element at flat position `flat` of the whole tensor, where it is inside.
    pub fn index_of(&self, flat: usize) -> Option<Vec<usize>> {
        let index = self.of.unflat(flat);
        let mut out = Vec::with_capacity(self.ranges.len());
        for ((i, range), kept) in index.iter().zip(&self.ranges).zip(&self.kept) {
            if !range.contains(i) {
                return None;
            }
            if *kept {
                out.push(i - range.start);
            }
        }
        Some(out)
    }

    /// What the slice takes of `tensor` (of the shape this was resolved for).
    pub fn view<'t, E: Elem>(&self, tensor: &'t Tensor<E>) -> ArrayViewD<'t, E> {
        let mut view = tensor.view();
        for (d, (range, kept)) in self.ranges.iter().zip(&self.kept).enumerate().rev() {
            match kept {
                true => view.slice_axis_inplace(ndarray::Axis(d), range.clone().into()),
                false => view = view.index_axis_move(ndarray::Axis(d), range.start),
            }
        }
        view
    }

    /// The same, copied row-major, of a tensor that grew too.
    pub fn copied<E: Elem>(&self, tensor: &Tensor<E>) -> Vec<E> {
        if !tensor.is_whole() {
            return self.flats().map(|i| tensor.at(i)).collect();
        }
        self.view(tensor).iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape::named(&[(Axis::Head, 2), (Axis::Token, 3), (Axis::DK, 2)])
    }

    fn values(text: &str) -> (Vec<usize>, Vec<i64>) {
        let whole = Tensor::new(shape(), (0..12).collect::<Vec<i64>>());
        let part = Slice::parse(text).expect("a slice").resolve(&shape()).expect("inside");
        let flats: Vec<i64> = part.flats().map(|i| whole.data()[i]).collect();
        assert_eq!((part.view(&whole).shape(), part.copied(&whole)), (part.shape().dims(), flats));
        (part.shape().dims().to_vec(), part.copied(&whole))
    }

    #[test]
    fn one_index_drops_its_axis_and_a_range_keeps_it() {
        assert_eq!(values("head=1,token=-1"), (vec![2], vec![10, 11]));
        assert_eq!(values("head=1,token=-1.."), (vec![1, 2], vec![10, 11]));
        assert_eq!(values("token=1..2, d_k = 0"), (vec![2, 1], vec![2, 8]));
        assert_eq!(values("").1.len(), 12);
        assert_eq!(values("token=..-2").1, [0, 1, 6, 7]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in [
            "head",
            "head=",
            "head=x",
            "heads=0",
            "head=0,",
            "head=0,head=1",
            ",",
            "head=0..x",
            "head=99999999999999999999",
        ] {
            assert!(Slice::parse(text).is_err(), "{text}");
        }
        for text in
            ["head=2", "head=-3", "vocab=0", "token=2..1", "token=0..4", "token=3..", "head=-9223372036854775808"]
        {
            let slice = Slice::parse(text).expect(text);
            assert!(slice.resolve(&shape()).is_err(), "{text}");
        }
    }

    #[test]
    fn positions_go_to_the_whole_and_back_and_text_reads_back() {
        let slice = Slice::parse("head=1,token=1..").expect("a slice");
        assert_eq!(Slice::parse(&slice.to_string()), Ok(slice.clone()));
        let slice = slice.resolve(&shape()).expect("inside");
        assert_eq!(slice.flat(&[1, 0]), 10);
        assert_eq!(slice.index_of(10), Some(vec![1, 0]));
        assert_eq!(slice.index_of(0), None);
        assert_eq!(slice.flats().collect::<Vec<_>>(), [8, 9, 10, 11]);
    }
}
