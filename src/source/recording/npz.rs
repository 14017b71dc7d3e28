//! npz archives of NumPy: the header of each member is read, its numbers when they are looked at.

use std::io::{Cursor, Read};
use std::sync::{Arc, LazyLock};

use memmap2::Mmap;
use ndarray::{ArrayViewD, ShapeBuilder};
use regex::Regex;
use safetensors::Dtype;
use zip::{CompressionMethod, ZipArchive};

use super::{Data, Recorded, Recording, widened};
use crate::tensor::{MAX_RANK, Real, Shape, Value};

/// Longest header of an array: NumPy's own is a line.
const MAX_HEADER: usize = 1 << 16;

/// Deflate packs no tighter than this.
const MAX_RATIO: u64 = 1032;

/// The bytes of a mapped file.
#[derive(Clone, Debug)]
struct Bytes(Arc<Mmap>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A member of an archive.
#[derive(Clone)]
pub(super) struct Member {
    archive: ZipArchive<Cursor<Bytes>>,
    index: usize,
    /// Bytes before the numbers.
    header: usize,
    big_endian: bool,
    /// Columns first.
    fortran: bool,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "member {}", self.index)
    }
}

/// What an array says of itself.
struct Header {
    length: usize,
    dtype: Dtype,
    big_endian: bool,
    fortran: bool,
    shape: Shape,
}

/// The arrays of an archive.
///
/// # Errors
/// Where it is no archive.
pub(super) fn open(map: &Arc<Mmap>) -> Result<Recording, String> {
    let mut archive = ZipArchive::new(Cursor::new(Bytes(Arc::clone(map)))).map_err(|e| e.to_string())?;
    let mut out = Recording::default();
    for index in 0..archive.len() {
        let shared = archive.clone();
        let mut file = archive.by_index(index).map_err(|e| e.to_string())?;
        let full = file.name().to_owned();
        let name = full.strip_suffix(".npy").unwrap_or(&full).to_owned();
        let (size, packed, plain) =
            (file.size(), file.compressed_size(), file.compression() == CompressionMethod::Stored);
        let start = file.data_start();
        match header(&mut file) {
            Err(why) => out.unreadable.push((name, why)),
            Ok(h) => {
                let bytes = h.shape.checked_len().and_then(|n| n.checked_mul(h.dtype.bitsize() / 8));
                let fits = bytes.is_some_and(|b| (b + h.length) as u64 == size)
                    && size <= packed.saturating_mul(if plain { 1 } else { MAX_RATIO });
                if !fits {
                    out.unreadable.push((name, format!("{} {:?} in {size} bytes", h.shape, h.dtype)));
                    continue;
                }
                let as_it_is = plain && !h.big_endian && (!h.fortran || h.shape.rank() < 2);
                let data = if as_it_is {
                    Data::Mapped(Arc::clone(map), start as usize + h.length)
                } else {
                    Data::Packed(Member {
                        archive: shared,
                        index,
                        header: h.length,
                        big_endian: h.big_endian,
                        fortran: h.fortran,
                    })
                };
                let inside = |d: &Data| match d {
                    Data::Mapped(_, at) => at.checked_add(bytes.unwrap_or(0)).is_some_and(|end| end <= map.len()),
                    Data::Packed(_) => true,
                };
                if inside(&data) {
                    out.tensors.push(Recorded { name, shape: h.shape, stored: h.dtype, data });
                } else {
                    out.unreadable.push((name, format!("{} bytes", map.len())));
                }
            }
        }
    }
    Ok(out)
}

/// The header at the start of a member; `Err` is what the member is instead of an array of numbers.
fn header(file: &mut impl Read) -> Result<Header, String> {
    static FIELDS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [r"'descr': *'([<>|=])([a-z])([0-9]+)'", r"'fortran_order': *(True|False)", r"'shape': *\(([0-9, ]*)\)"]
            .map(|r| Regex::new(r).expect("a pattern"))
    });
    let mut start = [0; 10];
    file.read_exact(&mut start).map_err(|_| "?".to_owned())?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err("?".to_owned());
    }
    let mut length = usize::from(u16::from_le_bytes([start[8], start[9]]));
    let mut before = 10;
    if start[6] > 1 {
        let mut more = [0; 2];
        file.read_exact(&mut more).map_err(|_| "?".to_owned())?;
        length = u32::from_le_bytes([start[8], start[9], more[0], more[1]]) as usize;
        before = 12;
    }
    if length > MAX_HEADER {
        return Err(format!("header of {length} bytes"));
    }
    let mut text = vec![0; length];
    file.read_exact(&mut text).map_err(|_| "?".to_owned())?;
    let text = String::from_utf8_lossy(&text);
    let [descr, order, dims] = &*FIELDS;
    let descr = descr.captures(&text).ok_or_else(|| text.chars().take(60).collect::<String>())?;
    let dtype = match (&descr[2], &descr[3]) {
        ("f", "8") => Dtype::F64,
        ("f", "4") => Dtype::F32,
        ("f", "2") => Dtype::F16,
        ("i", "8") => Dtype::I64,
        ("i", "4") => Dtype::I32,
        ("i", "2") => Dtype::I16,
        ("i", "1") => Dtype::I8,
        ("u", "8") => Dtype::U64,
        ("u", "4") => Dtype::U32,
        ("u", "2") => Dtype::U16,
        ("u", "1") => Dtype::U8,
        ("b", "1") => Dtype::BOOL,
        _ => return Err(format!("{}{}{}", &descr[1], &descr[2], &descr[3])),
    };
    let order = order.captures(&text).ok_or("?")?;
    let dims = dims.captures(&text).ok_or("?")?;
    let dims: Option<Vec<usize>> =
        dims[1].split(',').map(str::trim).filter(|d| !d.is_empty()).map(|d| d.parse().ok()).collect();
    let dims = dims.ok_or("?")?;
    if dims.len() > MAX_RANK {
        return Err(format!("{}-d", dims.len()));
    }
    Ok(Header {
        length: before + length,
        dtype,
        big_endian: &descr[1] == ">",
        fortran: &order[1] == "True",
        shape: Shape::new(&dims),
    })
}

impl Member {
    /// Unpacks its numbers.
    pub(super) fn read<T: Real>(&self, of: &Recorded) -> Option<Value<T>> {
        let mut archive = self.archive.clone();
        let file = archive.by_index(self.index).ok()?;
        let bytes = of.bytes()?;
        let mut data = Vec::new();
        data.try_reserve_exact(bytes + self.header).ok()?;
        file.take((bytes + self.header) as u64).read_to_end(&mut data).ok()?;
        let mut data = data.split_off(self.header.min(data.len()));
        if data.len() != bytes {
            return None;
        }
        let size = of.stored.bitsize() / 8;
        if self.big_endian {
            data.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        if self.fortran && of.shape.rank() > 1 {
            data = rows_first(&data, &of.shape, size);
        }
        widened(of.stored, of.shape, &data)
    }
}

/// Elements that lie columns first, as rows first.
fn rows_first(data: &[u8], shape: &Shape, size: usize) -> Vec<u8> {
    let mut dims = vec![size];
    dims.extend(shape.dims());
    let Ok(mut bytes) = ArrayViewD::from_shape(dims.f(), data) else { return Vec::new() };
    // The bytes of an element are next to each other before and after.
    for axis in 0..shape.rank() {
        bytes.swap_axes(axis, axis + 1);
    }
    bytes.iter().copied().collect()
}
