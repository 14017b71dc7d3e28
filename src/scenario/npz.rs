//! npz archives of NumPy: numbers of the usual kinds, as tensors.
//!
//! An archive is a zip of `.npy` files: a magic word, a header that is a literal of Python (type, order, shape), and
//! the bare numbers.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use half::f16;
use zip::ZipArchive;

use super::tensors::{Stored, Tensors};
use crate::tensor::{MAX_RANK, Real, Shape, Tensor};

/// All arrays of an archive, by name without `.npy`.
///
/// # Errors
/// Where the archive is broken.
pub fn read<T: Real>(bytes: &[u8]) -> Result<Tensors<T>, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let mut out = Tensors {
        numbers: BTreeMap::new(),
        stored: BTreeMap::new(),
        unreadable: BTreeMap::new(),
    };
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).map_err(|e| e.to_string())?;
        let name = file.name().to_owned();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|e| format!("{name}: {e}"))?;
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

/// What the header of an array says.
struct Header<'a> {
    /// Its type as NumPy writes it, such as `<f4`.
    descr: &'a str,
    /// Whether the first axis is the one whose neighbours lie side by side.
    fortran: bool,
    shape: Vec<usize>,
    data: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"\x93NUMPY")?;
        let (len, start) = match rest {
            [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([*a, *b])), 4),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 6),
            _ => return None,
        };
        let text = rest.get(start..start + len)?;
        let text = std::str::from_utf8(text).ok()?;
        let shape = entry(text, "shape")?;
        let dims = shape.trim_matches(['(', ')']).split(',').map(str::trim);
        Some(Self {
            descr: entry(text, "descr")?,
            fortran: entry(text, "fortran_order")? == "True",
            shape: dims
                .filter(|d| !d.is_empty())
                .map(|d| d.parse().ok())
                .collect::<Option<_>>()?,
            data: &rest[start + len..],
        })
    }
}

/// The value of a key in a dictionary of Python, without quotes.
fn entry<'t>(dict: &'t str, key: &str) -> Option<&'t str> {
    let after = dict.split_once(&format!("'{key}':"))?.1.trim_start();
    if let Some(text) = after.strip_prefix('\'') {
        return Some(text.split_once('\'')?.0);
    }
    let mut depth = 0_usize;
    let end = after.find(|c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(c, ',' | '}')
    })?;
    Some(after[..end].trim_end())
}

/// One array; `Err` is what it is instead of an array of numbers: its type, its shape, or `?`.
fn array<T: Real>(bytes: &[u8]) -> Result<(Tensor<T>, Stored), String> {
    let unknown = || "?".to_owned();
    let header = Header::read(bytes).ok_or_else(unknown)?;
    if header.shape.len() > MAX_RANK {
        return Err(format!("{:?}", header.shape));
    }
    let (values, stored) =
        numbers::<T>(header.descr, header.data).ok_or_else(|| header.descr.to_owned())?;
    let shape = Shape::new(&header.shape);
    if shape.checked_len() != Some(values.len()) {
        return Err(unknown());
    }
    let values = if header.fortran {
        rows_first(&header.shape, &values)
    } else {
        values
    };
    Ok((Tensor::new(shape, values), stored))
}

/// Numbers of the type that `descr` names; `None` for another type, or where the bytes end within a number.
fn numbers<T: Real>(descr: &str, data: &[u8]) -> Option<(Vec<T>, Stored)> {
    fn each<T: Real, const N: usize>(
        data: &[u8],
        big: bool,
        of: impl Fn([u8; N]) -> f64,
    ) -> Option<Vec<T>> {
        let (all, rest) = data.as_chunks::<N>();
        let number = |mut bytes: [u8; N]| {
            if big {
                bytes.reverse();
            }
            T::from_f64(of(bytes))
        };
        rest.is_empty()
            .then(|| all.iter().map(|b| number(*b)).collect())
    }
    let (order, kind) = descr.split_at_checked(1)?;
    let big = match order {
        "<" | "|" => false,
        ">" => true,
        _ => return None,
    };
    let (values, stored) = match kind {
        "f8" => (each(data, big, f64::from_le_bytes), Stored::F64),
        "f4" => (
            each(data, big, |b| f64::from(f32::from_le_bytes(b))),
            Stored::F32,
        ),
        "f2" => (
            each(data, big, |b| f16::from_le_bytes(b).to_f64()),
            Stored::F16,
        ),
        "i8" => (
            each(data, big, |b| i64::from_le_bytes(b) as f64),
            Stored::Int,
        ),
        "i4" => (
            each(data, big, |b| f64::from(i32::from_le_bytes(b))),
            Stored::Int,
        ),
        "u8" => (
            each(data, big, |b| u64::from_le_bytes(b) as f64),
            Stored::Small("u8"),
        ),
        "u4" => (
            each(data, big, |b| f64::from(u32::from_le_bytes(b))),
            Stored::Small("u4"),
        ),
        "i2" => (
            each(data, big, |b| f64::from(i16::from_le_bytes(b))),
            Stored::Small("i2"),
        ),
        "u2" => (
            each(data, big, |b| f64::from(u16::from_le_bytes(b))),
            Stored::Small("u2"),
        ),
        "i1" => (
            each(data, big, |b| f64::from(i8::from_le_bytes(b))),
            Stored::Small("i1"),
        ),
        "u1" => (
            each(data, big, |[b]: [u8; 1]| f64::from(b)),
            Stored::Small("u1"),
        ),
        "b1" => (
            each(data, big, |[b]: [u8; 1]| f64::from(u8::from(b != 0))),
            Stored::Small("b1"),
        ),
        _ => return None,
    };
    Some((values?, stored))
}

/// The numbers of an array whose first axis runs fastest, with its last axis running fastest.
fn rows_first<T: Real>(dims: &[usize], values: &[T]) -> Vec<T> {
    (0..values.len())
        .map(|mut flat| {
            let mut strides = values.len();
            let mut at = 0;
            for &n in dims.iter().rev() {
                strides /= n;
                at += flat % n * strides;
                flat /= n;
            }
            values[at]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let len = u16::try_from(header.len()).expect("a short header");
        [
            b"\x93NUMPY\x01\x00",
            &len.to_le_bytes()[..],
            header.as_bytes(),
            data,
        ]
        .concat()
    }

    fn values(descr: &str, data: &[u8]) -> Vec<f64> {
        let shape = format!("({},)", data.len() / (descr.as_bytes()[3] - b'0') as usize);
        let read = array::<f64>(&npy(descr, "False", &shape, data));
        read.unwrap_or_else(|e| panic!("{descr}: {e}"))
            .0
            .data()
            .to_vec()
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
        assert_eq!(kind(&deep), "[1, 1, 1, 1, 1, 1, 1, 1, 1]");
    }
}
