//! The header of a GGUF file: its metadata and where its tensors are. Every length is checked against the bytes that are
//! there before anything of that size is made.

use std::collections::BTreeMap;

use super::entry::{Entry, NumberType};
use super::ggml::GgmlType;
use super::mapped::Mapped;
use crate::tensor::MAX_RANK;
use crate::text::{Msg, escape};

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Meta {
    /// An integer of any width.
    Int(i128),
    /// A number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Meta>),
}

impl Meta {
    /// As an integer.
    pub fn int(&self) -> Option<i128> {
        match self {
            Self::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// As a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(i) => Some(*i as f64),
            Self::Float(x) => Some(*x),
            _ => None,
        }
    }

    /// As true or false.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// As a text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(t) => Some(t),
            _ => None,
        }
    }

    /// As a list.
    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }
}

/// What a GGUF file says before its tensors.
#[derive(Clone, Debug, Default)]
pub struct Gguf {
    /// Metadata by key, such as `llama.block_count`.
    pub metadata: BTreeMap<String, Meta>,
}

impl Gguf {
    /// Metadata of `key`.
    pub fn get(&self, key: &str) -> Option<&Meta> {
        self.metadata.get(key)
    }

    /// The architecture, such as `llama`.
    pub fn architecture(&self) -> Option<&str> {
        self.get("general.architecture")?.text()
    }
}

/// The bytes that a GGUF file begins with.
pub const MAGIC: &[u8; 4] = b"GGUF";

/// Lists of lists go no deeper.
const MAX_DEPTH: usize = 4;

/// Reads the header of `file`: its metadata, and its tensors with the place of their bytes.
///
/// # Errors
/// Where the file is no GGUF file of version 2 or 3, is cut off or contradicts itself, or has a tensor of a number type
/// that is not read here.
pub fn read(file: &Mapped) -> Result<(Gguf, Vec<Entry>), Msg> {
    let mut r = Reader { bytes: file, at: 0 };
    header(&mut r, file).map_err(|e| match e {
        Fault::Broken(key) => Msg::new(key).arg("file", file.name()),
        Fault::Other(msg) => msg,
    })
}

/// Why a header is not read.
enum Fault {
    /// It is cut off or contradicts itself; the key of the message.
    Broken(&'static str),
    /// Another message.
    Other(Msg),
}

type Read<T> = Result<T, Fault>;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

const CUT_OFF: Fault = Fault::Broken("source.gguf_cut_off");

impl<'a> Reader<'a> {
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, n: usize) -> Read<&'a [u8]> {
        let bytes = self.bytes.get(self.at..).and_then(|b| b.get(..n)).ok_or(CUT_OFF)?;
        self.at += n;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        Ok(*self.take(N)?.first_chunk().ok_or(CUT_OFF)?)
    }

    fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Read<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of things that each take at least `size` bytes: more than could be there is a lie.
    fn count(&mut self, size: usize) -> Read<usize> {
        let n = usize::try_from(self.u64()?).map_err(|_| CUT_OFF)?;
        if n > self.left() / size { Err(CUT_OFF) } else { Ok(n) }
    }

    fn text(&mut self) -> Read<String> {
        let n = self.count(1)?;
        let bytes = self.take(n)?;
        // Pieces of a vocabulary may be any bytes.
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn value(&mut self, kind: u32, depth: usize) -> Read<Meta> {
        Ok(match kind {
            0 => Meta::Int(self.array().map(u8::from_le_bytes)?.into()),
            1 => Meta::Int(self.array().map(i8::from_le_bytes)?.into()),
            2 => Meta::Int(self.array().map(u16::from_le_bytes)?.into()),
            3 => Meta::Int(self.array().map(i16::from_le_bytes)?.into()),
            4 => Meta::Int(self.u32()?.into()),
            5 => Meta::Int(self.array().map(i32::from_le_bytes)?.into()),
            6 => Meta::Float(self.array().map(f32::from_le_bytes)?.into()),
            7 => Meta::Bool(self.take(1)? != [0]),
            8 => Meta::Text(self.text()?),
            9 if depth < MAX_DEPTH => {
                let of = self.u32()?;
                let n = self.count(smallest(of))?;
                let mut items = Vec::new();
                items.try_reserve(n).map_err(|_| Fault::Broken("source.gguf_too_large"))?;
                for _ in 0..n {
                    items.push(self.value(of, depth + 1)?);
                }
                Meta::List(items)
            }
            10 => Meta::Int(self.u64()?.into()),
            11 => Meta::Int(self.array().map(i64::from_le_bytes)?.into()),
            12 => Meta::Float(self.array().map(f64::from_le_bytes)?),
            _ => return Err(Fault::Broken("source.gguf_value_type")),
        })
    }
}

/// The least bytes that a value of this kind takes.
fn smallest(kind: u32) -> usize {
    match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        9 => 12,
        _ => 8,
    }
}

/// A tensor as the header describes it.
struct Described {
    name: String,
    dims: Vec<usize>,
    kind: Result<GgmlType, String>,
    offset: usize,
}

fn header(r: &mut Reader<'_>, file: &Mapped) -> Read<(Gguf, Vec<Entry>)> {
    if r.take(4)? != MAGIC {
        return Err(Fault::Broken("source.gguf_magic"));
    }
    if !matches!(r.u32()?, 2 | 3) {
        return Err(Fault::Broken("source.gguf_version"));
    }
    let tensors = r.count(24)?;
    let values = r.count(13)?;
    let mut gguf = Gguf::default();
    for _ in 0..values {
        let key = r.text()?;
        let kind = r.u32()?;
        let value = r.value(kind, 0)?;
        gguf.metadata.insert(key, value);
    }
    let mut described = Vec::new();
    for _ in 0..tensors {
        let name = r.text()?;
        let rank = r.u32()? as usize;
        if rank > MAX_RANK {
            let msg = Msg::new("source.too_many_axes").arg("file", file.name()).arg("name", escape(&name));
            return Err(Fault::Other(msg.arg("axes", rank)));
        }
        let mut dims = Vec::new();
        for _ in 0..rank {
            dims.push(usize::try_from(r.u64()?).map_err(|_| CUT_OFF)?);
        }
        // The first of them is the innermost.
        dims.reverse();
        let kind = GgmlType::from_number(r.u32()?);
        let offset = usize::try_from(r.u64()?).map_err(|_| CUT_OFF)?;
        described.push(Described { name, dims, kind, offset });
    }
    let align = gguf.get("general.alignment").and_then(Meta::int).unwrap_or(32);
    let align = usize::try_from(align).ok().filter(|a| a.is_power_of_two() && *a <= 1 << 20);
    let align = align.ok_or(Fault::Broken("source.gguf_alignment"))?;
    let start = r.at.next_multiple_of(align);
    let entries = described.into_iter().map(|d| place(d, start, file)).collect::<Read<Vec<Entry>>>()?;
    Ok((gguf, entries))
}

fn place(d: Described, start: usize, file: &Mapped) -> Read<Entry> {
    let named = |key| Msg::new(key).arg("file", file.name()).arg("name", escape(&d.name));
    let kind = d.kind.map_err(|kind| Fault::Other(named("source.number_type").arg("type", kind)))?;
    let elements = d.dims.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
    let row = d.dims.last().copied().unwrap_or(1);
    let bytes = elements.and_then(|n| kind.bytes(n)).filter(|_| row.is_multiple_of(kind.block().0));
    let range = bytes.and_then(|n| {
        let from = start.checked_add(d.offset)?;
        let to = from.checked_add(n)?;
        (to <= file.len()).then_some(from..to)
    });
    let range =
        range.ok_or_else(|| Fault::Other(named("source.tensor_outside").arg("shape", format!("{:?}", d.dims))))?;
    Ok(Entry { name: d.name, shape: d.dims, number_type: NumberType::Ggml(kind), range })
}
