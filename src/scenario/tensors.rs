//! Tensors in files: safetensors and npz, their numbers and the types these are stored in.

use std::path::Path;

use super::guard::{self, Kind};
use super::npz;
pub use super::stored::{Stored, Tensors};
use crate::tensor::{MAX_RANK, Real, Shape, Tensor};
use crate::text::{Msg, escape};

/// All tensors of a safetensors or npz file.
///
/// # Errors
/// Where the file is neither, or broken.
pub fn read_tensors<T: Real>(name: &str, bytes: &[u8]) -> Result<Tensors<T>, Msg> {
    read_wanted(name, bytes, &|_| true)
}

/// The tensors of a safetensors or npz file for whose names `wanted` holds; the others are listed only.
///
/// # Errors
/// As [`read_tensors`].
pub fn read_wanted<T: Real>(name: &str, bytes: &[u8], wanted: &dyn Fn(&str) -> bool) -> Result<Tensors<T>, Msg> {
    let broken = |why: String| Msg::new("weights.broken_file").arg("file", escape(name)).arg("why", escape(&why));
    let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    let kind = guard::kind(name, bytes);
    if kind == Some(Kind::Npz) || kind.is_none() && extension == "npz" {
        return npz::read(bytes, wanted).map_err(broken);
    }
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| match kind {
        None | Some(Kind::Safetensors) => broken(e.to_string()),
        Some(kind) => kind.msg(name),
    })?;
    let mut out = Tensors::default();
    for (key, view) in file.iter() {
        if !wanted(key) {
            out.skipped.insert(key.to_owned());
            continue;
        }
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
    use safetensors::Dtype;
    fn each<T: Real, const N: usize>(data: &[u8], of: impl Fn([u8; N]) -> f64) -> Vec<T> {
        data.chunks_exact(N).map(|b| T::from_f64(of(b.try_into().expect("N bytes")))).collect()
    }
    Some(match dtype {
        Dtype::F64 => (each(data, f64::from_le_bytes), Stored::F64),
        Dtype::F32 => (each(data, |b| f64::from(f32::from_le_bytes(b))), Stored::F32),
        Dtype::F16 => (each(data, |b| half::f16::from_le_bytes(b).to_f64()), Stored::F16),
        Dtype::BF16 => (each(data, |b| half::bf16::from_le_bytes(b).to_f64()), Stored::Bf16),
        Dtype::I64 => (each(data, |b| i64::from_le_bytes(b) as f64), Stored::Int),
        Dtype::I32 => (each(data, |b| f64::from(i32::from_le_bytes(b))), Stored::Int),
        Dtype::BOOL => (each(data, |[b]: [u8; 1]| f64::from(u8::from(b != 0))), Stored::Small("BOOL")),
        Dtype::U8 => (each(data, |[b]: [u8; 1]| f64::from(b)), Stored::Small("U8")),
        Dtype::I8 => (each(data, |b| f64::from(i8::from_le_bytes(b))), Stored::Small("I8")),
        Dtype::I16 => (each(data, |b| f64::from(i16::from_le_bytes(b))), Stored::Small("I16")),
        Dtype::U16 => (each(data, |b| f64::from(u16::from_le_bytes(b))), Stored::Small("U16")),
        Dtype::U32 => (each(data, |b| f64::from(u32::from_le_bytes(b))), Stored::Small("U32")),
        Dtype::U64 => (each(data, |b| u64::from_le_bytes(b) as f64), Stored::Small("U64")),
        _ => return None,
    })
}
