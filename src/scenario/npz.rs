//! npz archives of NumPy: numbers of the usual kinds, as tensors.

use std::collections::BTreeMap;
use std::io::Cursor;

use ndarray::{ArrayD, OwnedRepr};
use ndarray_npy::{NpzReader, ReadableElement};

use super::tensors::{Stored, Tensors};
use crate::tensor::{MAX_RANK, Real, Shape, Tensor};

/// All arrays of an archive, by name without `.npy`.
///
/// # Errors
/// Where the archive is broken.
pub fn read<T: Real>(bytes: &[u8]) -> Result<Tensors<T>, String> {
    let mut archive = NpzReader::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let names = archive.names().map_err(|e| e.to_string())?;
    let mut out = Tensors {
        numbers: BTreeMap::new(),
        stored: BTreeMap::new(),
        unreadable: BTreeMap::new(),
    };
    for name in names {
        let read = array::<T, f64>(&mut archive, &name, |x| x)
            .map(|t| (t, Stored::F64))
            .or_else(|| {
                Some((
                    array(&mut archive, &name, |x: f32| f64::from(x))?,
                    Stored::F32,
                ))
            })
            .or_else(|| Some((array(&mut archive, &name, |x: i64| x as f64)?, Stored::Int)))
            .or_else(|| {
                Some((
                    array(&mut archive, &name, |x: i32| f64::from(x))?,
                    Stored::Int,
                ))
            })
            .or_else(|| {
                let widen = |x: bool| f64::from(u8::from(x));
                Some((array(&mut archive, &name, widen)?, Stored::Int))
            })
            .or_else(|| small(&mut archive, &name));
        let key = name.trim_end_matches(".npy").to_owned();
        match read {
            Some((tensor, stored)) => {
                out.numbers.insert(key.clone(), tensor);
                out.stored.insert(key, stored);
            }
            None => drop(out.unreadable.insert(key, "npy".to_owned())),
        }
    }
    Ok(out)
}

/// An array of short or unsigned integers.
fn small<T: Real>(
    archive: &mut NpzReader<Cursor<&[u8]>>,
    name: &str,
) -> Option<(Tensor<T>, Stored)> {
    let found = array(archive, name, |x: u8| f64::from(x)).map(|t| (t, "u1"));
    let found = found.or_else(|| Some((array(archive, name, |x: i8| f64::from(x))?, "i1")));
    let found = found.or_else(|| Some((array(archive, name, |x: i16| f64::from(x))?, "i2")));
    let found = found.or_else(|| Some((array(archive, name, |x: u16| f64::from(x))?, "u2")));
    let found = found.or_else(|| Some((array(archive, name, |x: u32| f64::from(x))?, "u4")));
    let found = found.or_else(|| Some((array(archive, name, |x: u64| x as f64)?, "u8")));
    found.map(|(tensor, kind)| (tensor, Stored::Small(kind)))
}

fn array<T: Real, E: ReadableElement + Copy>(
    archive: &mut NpzReader<Cursor<&[u8]>>,
    name: &str,
    widen: impl Fn(E) -> f64,
) -> Option<Tensor<T>> {
    let array: ArrayD<E> = archive.by_name::<OwnedRepr<E>, ndarray::IxDyn>(name).ok()?;
    if array.ndim() > MAX_RANK {
        return None;
    }
    let shape = Shape::new(array.shape());
    // `iter` is in logical order, whatever the order in memory.
    Some(Tensor::new(
        shape,
        array
            .iter()
            .map(|&x| T::from_f64(widen(x)))
            .collect::<Vec<_>>(),
    ))
}
