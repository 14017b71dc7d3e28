//! The header of a safetensors file, read with distrust: every range is checked against the file, so that a file that
//! was cut off opens as far as it goes.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use memmap2::Mmap;
use safetensors::Dtype;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::{Data, Recorded, Recording, is_known};
use crate::tensor::{MAX_RANK, Shape};

/// Longest header: that of the format.
const MAX_HEADER: u64 = 100_000_000;

/// Where a tensor is.
#[derive(Debug, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// A header, in its own order.
#[derive(Debug, Default)]
struct Header {
    metadata: BTreeMap<String, String>,
    tensors: Vec<(String, Entry)>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        header.metadata = map.next_value()?;
                    } else {
                        header.tensors.push((name, map.next_value()?));
                    }
                }
                Ok(header)
            }
        }
        from.deserialize_map(Entries)
    }
}

/// Reads the header of a mapped file.
///
/// # Errors
/// What is wrong with it, as far as nothing can be opened.
pub(super) fn open(map: &Arc<Mmap>) -> Result<Recording, String> {
    let (length, rest) = map.split_first_chunk::<8>().ok_or_else(|| format!("{} bytes", map.len()))?;
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER || length as usize > rest.len() {
        return Err(format!("header of {length} bytes in a file of {}", map.len()));
    }
    let header: Header = serde_json::from_slice(&rest[..length as usize]).map_err(|e| e.to_string())?;
    let start = 8 + length as usize;
    let mut out = Recording { metadata: header.metadata, ..Recording::default() };
    let mut names = HashSet::with_capacity(header.tensors.len());
    let mut ranges: Vec<(usize, usize, usize)> = Vec::with_capacity(header.tensors.len());
    for (name, entry) in header.tensors {
        if !names.insert(name.clone()) {
            return Err(format!("{name}: twice"));
        }
        match recorded(map, start, &name, &entry) {
            Ok(tensor) => {
                ranges.push((entry.data_offsets.0, entry.data_offsets.1, out.tensors.len()));
                out.tensors.push(tensor);
            }
            Err(why) => out.unreadable.push((name, why)),
        }
    }
    // Two tensors of the same bytes are no recording of anything.
    ranges.retain(|r| r.0 < r.1);
    ranges.sort_unstable();
    if let Some(pair) = ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        let name = |i: usize| &out.tensors[pair[i].2].name;
        return Err(format!("{} overlaps {}", name(0), name(1)));
    }
    Ok(out)
}

/// A tensor of the header; `Err` is why it cannot be read.
fn recorded(map: &Arc<Mmap>, start: usize, name: &str, entry: &Entry) -> Result<Recorded, String> {
    let dtype: Dtype = serde_json::from_value(serde_json::Value::String(entry.dtype.clone()))
        .ok()
        .filter(|d| is_known(*d))
        .ok_or_else(|| entry.dtype.clone())?;
    if entry.shape.len() > MAX_RANK {
        return Err(format!("{:?}", entry.shape));
    }
    let shape = Shape::new(&entry.shape);
    let (from, to) = entry.data_offsets;
    let bytes = shape.checked_len().and_then(|n| n.checked_mul(dtype.bitsize())).map(|bits| bits / 8);
    if bytes.is_none() || to.checked_sub(from) != bytes {
        return Err(format!("{:?} {} in bytes {from}..{to}", entry.shape, entry.dtype));
    }
    let end = start.checked_add(to).ok_or_else(|| format!("bytes {from}..{to}"))?;
    if end > map.len() {
        return Err(format!("bytes {from}..{to} of {}", map.len() - start));
    }
    Ok(Recorded { name: name.to_owned(), shape, stored: dtype, data: Data::Mapped(Arc::clone(map), start + from) })
}
