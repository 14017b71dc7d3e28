//! Tensors in files: safetensors and npz, their numbers and the types these are stored in.

use std::collections::BTreeMap;
use std::path::Path;

use super::npz;
use crate::tensor::{MAX_RANK, Real, Shape, Tensor};
use crate::text::{Msg, escape};

/// The type of a tensor's elements in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// Integers of 32 or 64 bits.
    Int,
    /// True and false, unsigned and short integers: ids, masks, or codes of quantised weights, which are no numbers by
    /// themselves. The name of the type.
    Small(&'static str),
}

/// The tensors of a file.
#[derive(Clone, Debug)]
pub struct Tensors<T: Real> {
    /// Those of numbers, by name.
    pub numbers: BTreeMap<String, Tensor<T>>,
    /// The type in the file of each of these.
    pub stored: BTreeMap<String, Stored>,
    /// The others: their type or shape, by name.
    pub unreadable: BTreeMap<String, String>,
}

/// All tensors of a safetensors or npz file.
///
/// # Errors
/// Where the file is neither, or broken.
pub fn read_tensors<T: Real>(name: &str, bytes: &[u8]) -> Result<Tensors<T>, Msg> {
    let broken = |why: String| Msg::new("weights.broken_file").arg("file", escape(name)).arg("why", escape(&why));
    let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    if extension == "npz" {
        return npz::read(bytes).map_err(broken);
    }
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| broken(e.to_string()))?;
    let mut out = Tensors { numbers: BTreeMap::new(), stored: BTreeMap::new(), unreadable: BTreeMap::new() };
    for (key, view) in file.iter() {
        if view.shape().len() > MAX_RANK {
            let shape = format!("{:?}", view.shape());
            out.unreadable.insert(key.to_owned(), shape);
        } else if let Some((data, stored)) = numbers::<T>(view.dtype(), view.data()) {
            let tensor = Tensor::new(Shape::new(view.shape()), data);
            out.numbers.insert(key.to_owned(), tensor);
            out.stored.insert(key.to_owned(), stored);
        } else {
            let dtype = format!("{:?}", view.dtype());
            out.unreadable.insert(key.to_owned(), dtype);
        }
    }
    Ok(out)
}

/// Little-endian numbers; `None` for a type that is not known.
fn numbers<T: Real>(dtype: safetensors::Dtype, data: &[u8]) -> Option<(Vec<T>, Stored)> {
    let number = Number::of(dtype)?;
    let mut out = vec![T::default(); data.len() / number.width()];
    number.widen(data, &mut out);
    Some((out, number.stored()))
}

/// A little-endian number type whose elements can be read one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(safetensors::Dtype);

impl Number {
    /// The type of that name; `None` where it has no elements of whole bytes that are numbers.
    pub(super) fn of(dtype: safetensors::Dtype) -> Option<Self> {
        use safetensors::Dtype as D;
        let known = [D::F64, D::F32, D::F16, D::BF16, D::I64, D::I32, D::BOOL, D::U8, D::I8, D::I16, D::U16, D::U32, D::U64];
        known.contains(&dtype).then_some(Self(dtype))
    }

    pub(super) fn stored(self) -> Stored {
        use safetensors::Dtype as D;
        match self.0 {
            D::F64 => Stored::F64,
            D::F32 => Stored::F32,
            D::F16 => Stored::F16,
            D::BF16 => Stored::Bf16,
            D::I64 | D::I32 => Stored::Int,
            D::BOOL => Stored::Small("BOOL"),
            D::U8 => Stored::Small("U8"),
            D::I8 => Stored::Small("I8"),
            D::I16 => Stored::Small("I16"),
            D::U16 => Stored::Small("U16"),
            D::U32 => Stored::Small("U32"),
            _ => Stored::Small("U64"),
        }
    }

    /// Bytes of an element.
    pub(super) fn width(self) -> usize {
        self.0.bitsize() / 8
    }

    /// Element `i`, exactly, except integers beyond 2⁵³.
    pub(super) fn at(self, data: &[u8], i: usize) -> f64 {
        let width = self.width();
        let mut x = [0.0f64];
        self.widen(&data[i * width..(i + 1) * width], &mut x);
        x[0]
    }

    /// All elements.
    pub(super) fn widen<T: Real>(self, data: &[u8], out: &mut [T]) {
        use safetensors::Dtype as D;
        fn each<T: Real, const N: usize>(data: &[u8], out: &mut [T], of: impl Fn([u8; N]) -> f64) {
            for (b, x) in data.chunks_exact(N).zip(out) {
                *x = T::from_f64(of(b.try_into().expect("N bytes")));
            }
        }
        match self.0 {
            D::F64 => each(data, out, f64::from_le_bytes),
            D::F32 => each(data, out, |b| f64::from(f32::from_le_bytes(b))),
            D::F16 => each(data, out, |b| half::f16::from_le_bytes(b).to_f64()),
            D::BF16 => each(data, out, |b| half::bf16::from_le_bytes(b).to_f64()),
            D::I64 => each(data, out, |b| i64::from_le_bytes(b) as f64),
            D::I32 => each(data, out, |b| f64::from(i32::from_le_bytes(b))),
            D::BOOL => each(data, out, |[b]: [u8; 1]| f64::from(u8::from(b != 0))),
            D::U8 => each(data, out, |[b]: [u8; 1]| f64::from(b)),
            D::I8 => each(data, out, |b| f64::from(i8::from_le_bytes(b))),
            D::I16 => each(data, out, |b| f64::from(i16::from_le_bytes(b))),
            D::U16 => each(data, out, |b| f64::from(u16::from_le_bytes(b))),
            D::U32 => each(data, out, |b| f64::from(u32::from_le_bytes(b))),
            _ => each(data, out, |b| u64::from_le_bytes(b) as f64),
        }
    }
}
