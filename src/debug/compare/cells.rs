//! The cells of a tensor, wherever they are kept, block by block.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::parallel;
use crate::tensor::{Real, Value};
use crate::trace::AnyValue;

/// Cells of a block: both sides in f64 stay in the nearest cache.
pub(super) const BLOCK: usize = 1024;

/// Blocks that one thread takes at a time.
const TAKEN: usize = 128;

/// Cells of a tensor, wherever they are kept, as `f64`: ids as they are, masks as 0 and 1.
#[derive(Clone, Copy)]
pub enum Cells<'a> {
    /// In memory or in a mapped file, with numbers in f32.
    F32(&'a Value<f32>),
    /// In memory or in a mapped file, with numbers in f64.
    F64(&'a Value<f64>),
    /// In f64.
    Wide(&'a [f64]),
}

impl<'a> From<&'a AnyValue> for Cells<'a> {
    fn from(value: &'a AnyValue) -> Self {
        match value {
            AnyValue::F32(value) => Cells::F32(value),
            AnyValue::F64(value) => Cells::F64(value),
        }
    }
}

impl<'a> Cells<'a> {
    /// Those of a value in either number type.
    ///
    /// # Panics
    /// Never: there are two number types.
    pub fn of<T: Real>(value: &'a Value<T>) -> Self {
        let any: &dyn std::any::Any = value;
        match any.downcast_ref::<Value<f32>>() {
            Some(value) => Cells::F32(value),
            None => Cells::F64(any.downcast_ref().expect("numbers are f32 or f64")),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Cells::F32(value) => value.shape().len(),
            Cells::F64(value) => value.shape().len(),
            Cells::Wide(all) => all.len(),
        }
    }

    /// Fills `out` with the cells from `from` on.
    pub(super) fn read(&self, from: usize, out: &mut [f64]) {
        fn each<T: Real>(value: &Value<T>, from: usize, out: &mut [f64]) {
            fn fill<E: Copy>(all: &[E], out: &mut [f64], of: impl Fn(E) -> f64) {
                for (out, x) in out.iter_mut().zip(all) {
                    *out = of(*x);
                }
            }
            let here = from..from + out.len();
            match value {
                Value::Float(t) => fill(&t.data()[here], out, Real::to_f64),
                Value::Int(t) => fill(&t.data()[here], out, |x| x as f64),
                Value::Bool(t) => fill(&t.data()[here], out, |x| f64::from(u8::from(x))),
            }
        }
        match self {
            Cells::Wide(all) => out.copy_from_slice(&all[from..from + out.len()]),
            Cells::F32(value) => each(value, from, out),
            Cells::F64(value) => each(value, from, out),
        }
    }

    /// Cell `i`.
    pub(super) fn get(&self, i: usize) -> f64 {
        match self {
            Cells::F32(value) => value.get(i),
            Cells::F64(value) => value.get(i),
            Cells::Wide(all) => all[i],
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.len()];
        parallel::pieces(&mut out, BLOCK, &|start, out| self.read(start, out));
        out
    }

    /// The largest absolute value below `limit`; 0 where there is none.
    pub(super) fn largest(&self, limit: f64) -> f64 {
        let largest = |share: usize| {
            let (mut most, mut block) = (0.0f64, [0.0; BLOCK]);
            each_block(share, self.len(), |at, n| {
                self.read(at, &mut block[..n]);
                most = block[..n].iter().map(|x| x.abs()).filter(|x| *x < limit).fold(most, f64::max);
            });
            most
        };
        parallel::map(shares(self.len()), largest).into_iter().fold(0.0, f64::max)
    }

    /// A number that tensors of other bits have, too, once in 2⁶⁴ times.
    pub(super) fn checksum(&self) -> u64 {
        let (mut hasher, mut block) = (DefaultHasher::new(), [0.0; BLOCK]);
        for at in (0..self.len()).step_by(BLOCK) {
            let n = BLOCK.min(self.len() - at);
            self.read(at, &mut block[..n]);
            block[..n].iter().for_each(|x| x.to_bits().hash(&mut hasher));
        }
        hasher.finish()
    }

    /// Whether a cell is at or below `limit`.
    pub(super) fn any_below(&self, limit: f64) -> bool {
        let below = |share: usize| {
            let (mut found, mut block) = (false, [0.0; BLOCK]);
            each_block(share, self.len(), |at, n| {
                self.read(at, &mut block[..n]);
                found |= block[..n].iter().any(|x| *x <= limit);
            });
            found
        };
        parallel::map(shares(self.len()), below).contains(&true)
    }
}

/// Where threads start.
pub(super) fn shares(len: usize) -> usize {
    len.div_ceil(TAKEN * BLOCK)
}

/// Calls `of` with the start and the length of each block of a thread's share.
pub(super) fn each_block(share: usize, len: usize, mut of: impl FnMut(usize, usize)) {
    let start = share * TAKEN * BLOCK;
    let end = (start + TAKEN * BLOCK).min(len);
    for at in (start..end).step_by(BLOCK) {
        of(at, BLOCK.min(end - at));
    }
}
