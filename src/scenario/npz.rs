//! npz archives of NumPy: numbers of the usual kinds, as tensors.
//!
//! An archive is a zip of `.npy` files, one an array.

use std::io::{Cursor, Read};

use half::f16;
use ndarray::ArrayD;
use ndarray_npy::{ReadDataError, ReadNpyError, ReadNpyExt, ReadableElement};
use py_literal::Value as Descr;
use zip::ZipArchive;

use super::stored::{Stored, Tensors};
use crate::tensor::{MAX_RANK, Real, Shape, Tensor};

/// Most bytes of the description of an array: its type, order and shape. NumPy itself reads 10,000 unless set otherwise.
const MAX_HEADER: usize = 64 << 10;
/// Deepest nesting of brackets in a description; the parser's work grows with a power of it.
const MAX_DEPTH: usize = 6;
/// A deflated byte denotes at most so many.
const MAX_RATIO: u64 = 1032;

/// The arrays of an archive for whose names `wanted` holds, by name without `.npy`; the others are listed, not unpacked.
///
/// # Errors
/// Where the archive is broken.
pub fn read<T: Real>(bytes: &[u8], wanted: &dyn Fn(&str) -> bool) -> Result<Tensors<T>, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let mut out = Tensors::default();
    for i in 0..archive.len() {
        let file = archive.by_index(i).map_err(|e| e.to_string())?;
        let name = file.name().to_owned();
        let key = name.trim_end_matches(".npy").to_owned();
        if !wanted(&key) {
            out.skipped.insert(key);
            continue;
        }
        // What an archive says of a size is believed where its bytes can be so many.
        let size = file.size();
        if size > file.compressed_size().saturating_mul(MAX_RATIO) {
            return Err(format!(
                "{name} says it has {size} bytes, more than its {} packed ones hold",
                file.compressed_size()
            ));
        }
        let unpacked = match unpacked(file, size) {
            Ok(unpacked) => unpacked,
            Err(Unpacked::Broken(why)) => return Err(format!("{name}: {why}")),
            Err(Unpacked::Unfit(why)) => {
                out.unreadable.insert(key, why);
                continue;
            }
        };
        match header_fits(&unpacked).and_then(|()| array(&unpacked)) {
            Ok((tensor, stored)) => {
                out.numbers.insert(key.clone(), tensor);
                out.stored.insert(key, stored);
            }
            Err(kind) => drop(out.unreadable.insert(key, kind)),
        }
    }
    Ok(out)
}

/// Why an array was not unpacked.
#[derive(Debug)]
enum Unpacked {
    /// The archive is broken, or too large.
    Broken(String),
    /// The array is not what it says.
    Unfit(String),
}

/// The `size` bytes of a file in an archive. The description is looked at before the rest is unpacked.
fn unpacked(file: impl Read, size: u64) -> Result<Vec<u8>, Unpacked> {
    let broken = |e: std::io::Error| Unpacked::Broken(e.to_string());
    // One more, so that the end is met: there the checksum of the archive is compared.
    let mut file = file.take(size.saturating_add(1));
    let mut bytes = Vec::new();
    let head = (MAX_HEADER + 12) as u64;
    file.by_ref().take(head).read_to_end(&mut bytes).map_err(broken)?;
    // What is no array, or one with another amount of numbers than its shape says, is not unpacked any further.
    if let Some(said) = said(&bytes).and_then(|said| said.size())
        && said != u128::from(size)
    {
        return Err(Unpacked::Unfit(format!("its shape needs {said} bytes, and it has {size}")));
    }
    let left = usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(bytes.len());
    if bytes.try_reserve_exact(left).is_err() {
        return Err(Unpacked::Broken(format!("there is no memory for its {size} bytes")));
    }
    file.read_to_end(&mut bytes).map_err(broken)?;
    Ok(bytes)
}

/// Where the description of an array begins and ends.
fn header(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let (start, len) = match *bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([a, b]))),
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d, ..] => {
            (12, usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?)
        }
        _ => return None,
    };
    Some(start..start.checked_add(len)?)
}

/// Whether the description of an array is there, short and shallow: only then it is parsed.
fn header_fits(bytes: &[u8]) -> Result<(), String> {
    let Some(range) = header(bytes) else { return Err("?".to_owned()) };
    if range.len() > MAX_HEADER {
        return Err(format!("a header of {} bytes", range.len()));
    }
    let Some(text) = bytes.get(range) else { return Err("?".to_owned()) };
    let mut depth = 0_usize;
    for b in text {
        match b {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err("a header nested too deep".to_owned());
        }
    }
    Ok(())
}

/// What an array says of itself.
#[derive(Debug, PartialEq)]
struct Said {
    /// Elements.
    cells: u128,
    /// Bytes of an element, where its type is a simple one.
    width: Option<u128>,
    /// Bytes of the description, which is part of the array.
    head: usize,
}

impl Said {
    /// Bytes of all; `None` where the type does not say.
    fn size(&self) -> Option<u128> {
        self.cells.checked_mul(self.width?)?.checked_add(self.head as u128)
    }
}

/// `None` where there is no shape, or more elements than can be counted.
fn said(bytes: &[u8]) -> Option<Said> {
    let range = header(bytes)?;
    let head = range.end;
    let text = std::str::from_utf8(bytes.get(range)?).ok()?;
    let after = |name: &str| Some(text[text.find(name)? + name.len()..].trim_start_matches([' ', ':']));
    let width = || -> Option<u128> {
        let descr = after("'descr'")?.strip_prefix('\'')?;
        let descr = &descr[..descr.find('\'')?];
        let width: u128 = descr.get(2..)?.parse().ok()?;
        // Strings of NumPy count in characters of four bytes.
        Some(if descr.as_bytes()[1] == b'U' { width * 4 } else { width })
    };
    let shape = after("'shape'")?.strip_prefix('(')?;
    let shape = &shape[..shape.find(')')?];
    let dims = shape.split(',').map(str::trim).filter(|d| !d.is_empty());
    let cells =
        dims.map(|d| d.trim_end_matches('L').parse::<u128>().ok()).try_fold(1_u128, |n, d| n.checked_mul(d?))?;
    Some(Said { cells, width: width(), head })
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
    // The reader takes memory for as many elements as the shape says before it looks at their type.
    if said(bytes).is_none_or(|said| said.cells > bytes.len() as u128) {
        return Err("?".to_owned());
    }
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
    fn sizes_are_known_before_anything_is_unpacked() {
        let array = npy("'<f8'", "False", "(2, 3)", &[0; 48]);
        assert_eq!(said(&array).and_then(|s| s.size()), Some(array.len() as u128));
        assert!(unpacked(&array[..], array.len() as u64).is_ok());
        let huge = npy("'<f8'", "False", "(1000000, 1000000)", &[0; 8]);
        let unfit = unpacked(&huge[..], huge.len() as u64);
        assert!(matches!(unfit, Err(Unpacked::Unfit(why)) if why.contains("8000000000")));
        let overflow = npy("'<f8'", "False", "(99999999999999999999, 99999999999999999999)", &[0; 8]);
        assert_eq!(said(&overflow).and_then(|s| s.size()), None);
        let scalar = npy("'<f4'", "False", "()", &[0; 4]);
        assert_eq!(said(&scalar).and_then(|s| s.size()), Some(scalar.len() as u128));
    }

    #[test]
    fn what_is_not_wanted_is_not_unpacked() {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, value) in [("a", 1.5_f64), ("b", 2.5)] {
            archive.start_file(format!("{name}.npy"), stored).expect("begins");
            let data = value.to_le_bytes().repeat(1000);
            std::io::Write::write_all(&mut archive, &npy("'<f8'", "False", "(1000,)", &data)).expect("writes");
        }
        let mut bytes = archive.finish().expect("ends").into_inner();
        // Read to its end, the second array does not have the checksum that the archive says.
        let at = bytes.windows(8).rposition(|w| w == 2.5_f64.to_le_bytes()).expect("its numbers");
        bytes[at] ^= 1;
        let first = read::<f64>(&bytes, &|name| name == "a").expect("what is wanted is whole");
        assert!(first.numbers.contains_key("a") && first.skipped.contains("b"));
        let all = read::<f64>(&bytes, &|_| true).expect_err("the second is damaged");
        assert!(all.starts_with("b.npy: "), "{all}");
    }

    #[test]
    fn what_is_no_array_of_numbers_is_named() {
        let kind = |bytes: &[u8]| array::<f64>(bytes).expect_err("no numbers");
        assert_eq!(kind(&npy("'<c8'", "False", "(1,)", &[0; 8])), "<c8");
        let pair = "[('a', '<f4'), ('b', '<i4')]";
        assert_eq!(kind(&npy(pair, "False", "(1,)", &[0; 8])), pair);
        assert_eq!(kind(&npy("'<f4'", "False", "(3,)", &[0; 8])), "?");
        assert_eq!(kind(b"text"), "?");
        // Of a type that is none, so that its size is not known, with more elements than bytes.
        assert_eq!(kind(&npy("'<f<'", "False", "(1000000000000,)", &[0; 8])), "?");
        let nested = npy(&format!("{}'<f4'{}", "(".repeat(40), ")".repeat(40)), "False", "(1,)", &[0; 4]);
        assert!(header_fits(&nested).is_err());
        let deep = npy("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", &[0; 4]);
        assert_eq!(kind(&deep), "9-d");
    }
}
