//! The few rewrites between a tensor as a file has it and the parameter that it is: each says where an element comes
//! from, so that a parameter is filled in one pass over the file, without a copy for each rewrite.

use serde::{Deserialize, Serialize};

/// One rewrite. They are applied in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Rewrite {
    /// The last two axes change places.
    Transpose,
    /// Along an axis, the indices `from`, `from + step`, … below `to`.
    Slice {
        /// The axis, counted from 0.
        axis: usize,
        /// First index.
        from: usize,
        /// The index after the last one.
        to: usize,
        /// Distance of the indices; 1 unless given.
        #[serde(default = "one")]
        step: usize,
    },
    /// Rows that several parts share by turns: the rows are `groups` blocks of `of` equal parts each, and of every block
    /// the `count` parts from `from` on are taken. A fused query-key-value matrix that is laid out head by head is
    /// `groups: heads, of: 3`, and its keys are `from: 1`.
    Parts {
        /// Blocks.
        groups: usize,
        /// Parts of a block.
        of: usize,
        /// The first part taken.
        from: usize,
        /// How many parts; 1 unless given.
        #[serde(default = "one")]
        count: usize,
    },
    /// The rows of each of so many heads, from pairs that rotate together side by side to halves: row 2i goes to i,
    /// row 2i + 1 to d/2 + i.
    Halves(usize),
    /// The inverse of `Halves`.
    Pairs(usize),
    /// The same elements in order, under other lengths.
    Reshape(Vec<usize>),
    /// This number is added to each element.
    Add(f64),
    /// Each element is multiplied by this number.
    Multiply(f64),
}

fn one() -> usize {
    1
}

/// A rewrite that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The rewrite.
    pub rewrite: String,
    /// The shape that it was to be applied to.
    pub shape: String,
}

/// Rewrites bound to the shape of one tensor.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    dims: Vec<usize>,
    steps: Vec<Step>,
}

/// How an element's place (or value) comes from the one before.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// `[outer, rows, cols]` from `[outer, cols, rows]`.
    Transpose {
        rows: usize,
        cols: usize,
    },
    /// `[outer, kept, inner]` from `[outer, len, inner]`.
    Slice {
        len: usize,
        kept: usize,
        inner: usize,
        from: usize,
        step: usize,
    },
    /// `[heads, 2, half, inner]` from `[heads, half, 2, inner]`, or the other way around.
    Regroup {
        a: usize,
        b: usize,
        inner: usize,
    },
    Add(f64),
    Multiply(f64),
}

impl Plan {
    /// The rewrites of a tensor of shape `dims`.
    ///
    /// # Errors
    /// The first rewrite that does not fit.
    pub fn new(dims: &[usize], rewrites: &[Rewrite]) -> Result<Self, Unfit> {
        let mut plan = Self { dims: dims.to_vec(), steps: Vec::new() };
        for rewrite in rewrites {
            if plan.push(rewrite).is_none() {
                return Err(Unfit { rewrite: format!("{rewrite:?}"), shape: shape(&plan.dims) });
            }
        }
        Ok(plan)
    }

    fn push(&mut self, rewrite: &Rewrite) -> Option<()> {
        let rank = self.dims.len();
        match *rewrite {
            Rewrite::Transpose => {
                if rank < 2 {
                    return None;
                }
                self.dims.swap(rank - 2, rank - 1);
                self.steps.push(Step::Transpose { rows: self.dims[rank - 2], cols: self.dims[rank - 1] });
            }
            Rewrite::Slice { axis, from, to, step } => {
                let len = *self.dims.get(axis)?;
                if step == 0 || from >= to || to > len {
                    return None;
                }
                let kept = (to - from).div_ceil(step);
                let inner = product(&self.dims[axis + 1..]);
                self.dims[axis] = kept;
                self.steps.push(Step::Slice { len, kept, inner, from, step });
            }
            Rewrite::Parts { groups, of, from, count } => {
                let rows = *self.dims.first()?;
                let blocks = groups.checked_mul(of).filter(|n| *n > 0 && rows.is_multiple_of(*n))?;
                if count == 0 || from.checked_add(count)? > of {
                    return None;
                }
                let part = rows / blocks;
                let inner = part * product(&self.dims[1..]);
                self.dims[0] = groups * count * part;
                self.steps.push(Step::Slice { len: of, kept: count, inner, from, step: 1 });
            }
            Rewrite::Halves(heads) | Rewrite::Pairs(heads) => {
                let rows = *self.dims.first()?;
                let pairs = heads.checked_mul(2).filter(|n| *n > 0 && rows.is_multiple_of(*n))?;
                let half = rows / pairs;
                let inner = product(&self.dims[1..]);
                let to_halves = matches!(rewrite, Rewrite::Halves(_));
                let (a, b) = if to_halves { (2, half) } else { (half, 2) };
                self.steps.push(Step::Regroup { a, b, inner });
            }
            Rewrite::Reshape(ref dims) => {
                let all = |d: &[usize]| d.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
                if all(dims)? != product(&self.dims) {
                    return None;
                }
                self.dims.clone_from(dims);
            }
            Rewrite::Add(x) => self.steps.push(Step::Add(x)),
            Rewrite::Multiply(x) => self.steps.push(Step::Multiply(x)),
        }
        Some(())
    }

    /// The shape after the rewrites.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Whether nothing changes.
    pub fn is_plain(&self) -> bool {
        self.steps.is_empty()
    }

    /// Rows and columns of the result, where it is one matrix transposed.
    pub fn transposes(&self) -> Option<(usize, usize)> {
        match (&self.steps[..], &self.dims[..]) {
            (&[Step::Transpose { rows, cols }], &[_, _]) => Some((rows, cols)),
            _ => None,
        }
    }

    /// Element `flat` of the result, from the elements of the file.
    pub fn element(&self, flat: usize, read: impl FnOnce(usize) -> f64) -> f64 {
        let mut at = flat;
        for step in self.steps.iter().rev() {
            at = match *step {
                Step::Transpose { rows, cols } => {
                    let (outer, inside) = (at / (rows * cols), at % (rows * cols));
                    outer * rows * cols + inside % cols * rows + inside / cols
                }
                Step::Slice { len, kept, inner, from, step } => {
                    let (outer, i, j) = (at / (kept * inner), at / inner % kept, at % inner);
                    (outer * len + from + i * step) * inner + j
                }
                Step::Regroup { a, b, inner } => {
                    let block = a * b * inner;
                    let (outer, i, j, k) = (at / block, at / (b * inner) % a, at / inner % b, at % inner);
                    outer * block + (j * a + i) * inner + k
                }
                Step::Add(_) | Step::Multiply(_) => at,
            };
        }
        let mut x = read(at);
        for step in &self.steps {
            match *step {
                Step::Add(y) => x += y,
                Step::Multiply(y) => x *= y,
                _ => {}
            }
        }
        x
    }
}

fn product(dims: &[usize]) -> usize {
    dims.iter().product()
}

/// A shape as messages write it: `24 × 16`.
pub fn shape(dims: &[usize]) -> String {
    if dims.is_empty() {
        return "1".to_owned();
    }
    dims.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(dims: &[usize], rewrites: &[Rewrite]) -> (Vec<usize>, Vec<f64>) {
        let plan = Plan::new(dims, rewrites).expect("rewrites that fit");
        let n = plan.dims().iter().product();
        (plan.dims().to_vec(), (0..n).map(|i| plan.element(i, |at| at as f64)).collect())
    }

    #[test]
    fn each_rewrite_takes_its_elements() {
        let slice = |axis, from, to, step| Rewrite::Slice { axis, from, to, step };
        let parts = |groups, of, from, count| Rewrite::Parts { groups, of, from, count };
        assert_eq!(made(&[2, 3], &[Rewrite::Transpose]), (vec![3, 2], vec![0., 3., 1., 4., 2., 5.]));
        assert_eq!(made(&[2, 2, 2], &[Rewrite::Transpose]).1, [0., 2., 1., 3., 4., 6., 5., 7.]);
        assert_eq!(made(&[4, 2], &[slice(0, 1, 3, 1)]), (vec![2, 2], vec![2., 3., 4., 5.]));
        assert_eq!(made(&[2, 4], &[slice(1, 1, 4, 2)]), (vec![2, 2], vec![1., 3., 5., 7.]));
        // Two heads, each of a query, key and value of one row.
        assert_eq!(made(&[6], &[parts(2, 3, 1, 1)]), (vec![2], vec![1., 4.]));
        // Two groups of two queries, a key and a value, each of two rows.
        assert_eq!(made(&[16], &[parts(2, 4, 0, 2)]), (vec![8], vec![0., 1., 2., 3., 8., 9., 10., 11.]));
        assert_eq!(made(&[8], &[Rewrite::Halves(2)]).1, [0., 2., 1., 3., 4., 6., 5., 7.]);
        assert_eq!(made(&[12], &[Rewrite::Halves(2), Rewrite::Pairs(2)]).1, (0..12).map(f64::from).collect::<Vec<_>>());
        assert_eq!(
            made(&[1, 3], &[Rewrite::Reshape(vec![3]), Rewrite::Multiply(2.0), Rewrite::Add(1.0)]).1,
            [1., 3., 5.]
        );
    }

    #[test]
    fn rewrites_in_a_row_are_applied_in_order() {
        let rewrites = [Rewrite::Slice { axis: 1, from: 3, to: 6, step: 1 }, Rewrite::Transpose];
        assert_eq!(made(&[2, 9], &rewrites), (vec![3, 2], vec![3., 12., 4., 13., 5., 14.]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (dims, rewrite) in [
            (&[4][..], Rewrite::Transpose),
            (&[4], Rewrite::Slice { axis: 0, from: 2, to: 5, step: 1 }),
            (&[4], Rewrite::Slice { axis: 1, from: 0, to: 1, step: 1 }),
            (&[7], Rewrite::Parts { groups: 2, of: 3, from: 0, count: 1 }),
            (&[6], Rewrite::Parts { groups: usize::MAX, of: 3, from: 0, count: 1 }),
            (&[6], Rewrite::Halves(4)),
            (&[6], Rewrite::Reshape(vec![2, 2])),
        ] {
            assert!(Plan::new(dims, std::slice::from_ref(&rewrite)).is_err(), "{rewrite:?}");
        }
    }
}
