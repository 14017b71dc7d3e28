//! npz archives of NumPy: numbers of the usual kinds, as tensors.
//!
//! An archive is a zip of `.npy` files, one an array.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use half::f16;
use ndarray::ArrayD;
use ndarray_npy::{ReadDataError, ReadNpyError, ReadNpyExt, ReadableElement};
use py_literal::Value as Descr;
use zip::ZipArchive;

use super::tensors::{Stored, Tensors};
use crate::tensor::{MAX_RANK, Real, Shape, Tensor};

/// All arrays of an archive, by name without `.npy`.
///
/// # Errors
/// Where the archive is broken.
pub fn read<T: Real>(bytes: &[u8]) -> Result<Tensors<T>, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let mut out = Tensors { numbers: BTreeMap::new(), stored: BTreeMap::new(), unreadable: BTreeMap::new() };
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).map_err(|e| e.to_string())?;
        let name = file.name().to_owned();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| format!("{name}: {e}"))?;
        let key = name.trim_end_matches(".npy").to_owned();
        match array(&bytes) {
            Ok((tensor, stored)) => {
                out.numbers.insert(key.clone(), tensor);
                out.stored.insert(key, stored);
            }
            Err(kind) => drop(out.unreadable.insert(key, kind)),
        }
    }
    Ok(out)
}

/// A number of IEEE 754 binary16, which the reader of arrays does not know.
struct Half(f16);

impl ReadableElement for Half {
    fn read_to_end_exact_vec<R: Read>(mut reader: R, descr: &Descr, len: usize) -> Result<Vec<Self>, ReadDataError> {
        let of: fn([u8; 2]) -> f16 = match descr.as_string().map(String::as_str) {
            Some("<f2") => f16::from_le_bytes,
            Some(">f2") => f16::from_be_bytes,
            _ => return Err(ReadDataError::WrongDescriptor(descr.clone())),
        };
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        let (all, rest) = bytes.as_chunks::<2>();
        if all.len() < len {
            return Err(ReadDataError::MissingData);
        }
        let extra = (all.len() - len) * 2 + rest.len();
        if extra > 0 {
            return Err(ReadDataError::ExtraBytes(extra));
        }
        Ok(all.iter().map(|b| Half(of(*b))).collect())
    }
}

/// One array; `Err` is what it is instead of an array of numbers: its type, its shape, or `?`.
fn array<T: Real>(bytes: &[u8]) -> Result<(Tensor<T>, Stored), String> {
    type Read<T> = fn(&[u8]) -> Result<Tensor<T>, ReadNpyError>;
    let kinds: [(Read<T>, Stored); 12] = [
        (|b| of(b, |x: f64| x), Stored::F64),
        (|b| of(b, |x: f32| x.into()), Stored::F32),
        (|b| of(b, |x: Half| x.0.to_f64()), Stored::F16),
        (|b| of(b, |x: i64| x as f64), Stored::Int),
        (|b| of(b, |x: i32| x.into()), Stored::Int),
        (|b| of(b, |x: bool| u8::from(x).into()), Stored::Small("b1")),
        (|b| of(b, |x: u8| x.into()), Stored::Small("u1")),
        (|b| of(b, |x: i8| x.into()), Stored::Small("i1")),
        (|b| of(b, |x: u16| x.into()), Stored::Small("u2")),
        (|b| of(b, |x: i16| x.into()), Stored::Small("i2")),
        (|b| of(b, |x: u32| x.into()), Stored::Small("u4")),
        (|b| of(b, |x: u64| x as f64), Stored::Small("u8")),
    ];
    let mut descr = None;
    for (read, stored) in kinds {
        match read(bytes) {
            Ok(tensor) => return Ok((tensor, stored)),
            // Another type may fit.
            Err(ReadNpyError::WrongDescriptor(d)) => descr = Some(d),
            Err(ReadNpyError::WrongNdim(_, n)) => return Err(format!("{n}-d")),
            Err(_) => return Err("?".to_owned()),
        }
    }
    Err(match descr {
        Some(Descr::String(name)) => name,
        Some(other) => other.to_string(),
        None => "?".to_owned(),
    })
}

/// An array whose elements are `E`.
fn of<T: Real, E: ReadableElement>(bytes: &[u8], widen: impl Fn(E) -> f64) -> Result<Tensor<T>, ReadNpyError> {
    let array = ArrayD::<E>::read_npy(bytes)?;
    if array.ndim() > MAX_RANK {
        return Err(ReadNpyError::WrongNdim(Some(MAX_RANK), array.ndim()));
    }
    let shape = Shape::new(array.shape());
    // Whatever the order in memory, this is the logical one.
    let numbers: Vec<T> = array.into_iter().map(|x| T::from_f64(widen(x))).collect();
    Ok(Tensor::new(shape, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let len = u16::try_from(header.len()).expect("a short header");
        [b"\x93NUMPY\x01\x00", &len.to_le_bytes()[..], header.as_bytes(), data].concat()
    }

    fn values(descr: &str, data: &[u8]) -> Vec<f64> {
        let shape = format!("({},)", data.len() / (descr.as_bytes()[3] - b'0') as usize);
        let read = array::<f64>(&npy(descr, "False", &shape, data));
        read.unwrap_or_else(|e| panic!("{descr}: {e}")).0.data().to_vec()
    }

    #[test]
    fn numbers_of_every_type_and_order_of_bytes() {
        let half = |x: f32| f16::from_f32(x);
        assert_eq!(values("'<f2'", &half(-1.5).to_le_bytes()), [-1.5]);
        assert_eq!(values("'>f2'", &half(0.25).to_be_bytes()), [0.25]);
        assert_eq!(values("'>f4'", &2.5_f32.to_be_bytes()), [2.5]);
        assert_eq!(values("'<f8'", &0.1_f64.to_le_bytes()), [0.1]);
        assert_eq!(values("'|b1'", &[1, 0]), [1.0, 0.0]);
        assert_eq!(values("'|i1'", &[255]), [-1.0]);
        assert_eq!(values("'|u1'", &[255]), [255.0]);
        assert_eq!(values("'<i2'", &(-300_i16).to_le_bytes()), [-300.0]);
        assert_eq!(values("'<u2'", &60_000_u16.to_le_bytes()), [60_000.0]);
        assert_eq!(values("'>i4'", &(-7_i32).to_be_bytes()), [-7.0]);
        assert_eq!(values("'<u4'", &7_u32.to_le_bytes()), [7.0]);
        assert_eq!(values("'<i8'", &(-9_i64).to_le_bytes()), [-9.0]);
        assert_eq!(values("'>u8'", &9_u64.to_be_bytes()), [9.0]);
    }

    #[test]
    fn columns_first_becomes_rows_first() {
        let columns = npy("'|u1'", "True", "(2, 3)", &[1, 4, 2, 5, 3, 6]);
        let (t, _) = array::<f64>(&columns).expect("an array");
        assert_eq!(t.shape().dims(), [2, 3]);
        assert_eq!(t.data(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let scalar = array::<f64>(&npy("'|u1'", "True", "()", &[3])).expect("a number");
        assert_eq!(scalar.0.data(), [3.0]);
    }

    #[test]
    fn what_is_no_array_of_numbers_is_named() {
        let kind = |bytes: &[u8]| array::<f64>(bytes).expect_err("no numbers");
        assert_eq!(kind(&npy("'<c8'", "False", "(1,)", &[0; 8])), "<c8");
        let pair = "[('a', '<f4'), ('b', '<i4')]";
        assert_eq!(kind(&npy(pair, "False", "(1,)", &[0; 8])), pair);
        assert_eq!(kind(&npy("'<f4'", "False", "(3,)", &[0; 8])), "?");
        assert_eq!(kind(b"text"), "?");
        let deep = npy("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", &[0; 4]);
        assert_eq!(kind(&deep), "9-d");
    }
}
