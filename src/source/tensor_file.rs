//! The tensors of a safetensors or GGUF file: described by its header, mapped, widened when they are read.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

pub use super::entry::{Entry, NumberType};
use super::gguf::{self, Gguf};
use super::mapped::Mapped;
use crate::tensor::{MAX_RANK, Real, Shape, Tensor};
use crate::text::{Msg, escape};

/// A file of tensors.
#[derive(Clone, Debug)]
pub struct TensorFile {
    file: Mapped,
    entries: Vec<Entry>,
    index: HashMap<String, usize>,
    /// Metadata of a safetensors file.
    pub metadata: BTreeMap<String, String>,
    /// Metadata of a GGUF file.
    pub gguf: Option<Gguf>,
}

/// Bytes of the header of a safetensors file, at most (the limit of the format's own reader).
const MAX_HEADER: usize = 100_000_000;

impl TensorFile {
    /// Reads the header of the file at `path`; what kind it is, its first bytes say.
    ///
    /// # Errors
    /// Where it cannot be read, is neither a safetensors nor a GGUF file, or is broken.
    pub fn open(path: &Path) -> Result<Self, Msg> {
        let file = Mapped::open(path)?;
        let mut metadata = BTreeMap::new();
        let mut gguf = None;
        let entries = if file.starts_with(gguf::MAGIC) {
            let (header, entries) = gguf::read(&file)?;
            gguf = Some(header);
            entries
        } else {
            let (found, entries) = safetensors_header(&file)?;
            metadata = found;
            entries
        };
        let mut index = HashMap::new();
        for (i, entry) in entries.iter().enumerate() {
            if index.insert(entry.name.clone(), i).is_some() {
                let msg = Msg::new("source.tensor_twice").arg("file", file.name());
                return Err(msg.arg("name", escape(&entry.name)));
            }
        }
        Ok(Self { file, entries, index, metadata, gguf })
    }

    /// The file.
    pub fn file(&self) -> &Mapped {
        &self.file
    }

    /// Its tensors, in the order of their bytes (GGUF: of the header).
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The tensor called `name`.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.index.get(name).map(|i| &self.entries[*i])
    }

    /// The bytes of a tensor, as they are stored.
    pub fn bytes(&self, entry: &Entry) -> &[u8] {
        &self.file[entry.range.clone()]
    }

    /// A tensor's numbers, widened to `T`.
    ///
    /// # Errors
    /// Where it has too many axes, its numbers are of a type that is not read, or there is no memory for them.
    pub fn read<T: Real>(&self, entry: &Entry) -> Result<Tensor<T>, Msg> {
        let named = |key| Msg::new(key).arg("file", self.file.name()).arg("name", escape(&entry.name));
        if entry.shape.len() > MAX_RANK {
            return Err(named("source.too_many_axes").arg("axes", entry.shape.len()));
        }
        let shape = Shape::new(&entry.shape);
        let mut numbers: Vec<T> = Vec::new();
        numbers
            .try_reserve_exact(shape.len())
            .map_err(|_| named("source.too_large").arg("shape", format!("{:?}", entry.shape)))?;
        let known = widen(entry.number_type, self.bytes(entry), |x| numbers.push(T::from_f64(x)));
        if !known {
            return Err(named("source.number_type").arg("type", entry.number_type));
        }
        Ok(Tensor::new(shape, numbers))
    }
}

/// Gives each number of `data` to `put`; false where the type is not read.
pub fn widen(number_type: NumberType, data: &[u8], mut put: impl FnMut(f64)) -> bool {
    fn each<const N: usize>(data: &[u8], mut f: impl FnMut([u8; N])) -> bool {
        data.as_chunks::<N>().0.iter().for_each(|b| f(*b));
        true
    }
    match number_type {
        NumberType::Ggml(t) => {
            t.widen(data, put);
            true
        }
        NumberType::Plain(t) => match t {
            Dtype::F64 => each(data, |b| put(f64::from_le_bytes(b))),
            Dtype::F32 => each(data, |b| put(f32::from_le_bytes(b).into())),
            Dtype::F16 => each(data, |b| put(f16::from_le_bytes(b).to_f64())),
            Dtype::BF16 => each(data, |b| put(bf16::from_le_bytes(b).to_f64())),
            Dtype::I64 => each(data, |b| put(i64::from_le_bytes(b) as f64)),
            Dtype::I32 => each(data, |b| put(i32::from_le_bytes(b).into())),
            Dtype::I16 => each(data, |b| put(i16::from_le_bytes(b).into())),
            Dtype::I8 => each(data, |b| put(i8::from_le_bytes(b).into())),
            Dtype::U64 => each(data, |b| put(u64::from_le_bytes(b) as f64)),
            Dtype::U32 => each(data, |b| put(u32::from_le_bytes(b).into())),
            Dtype::U16 => each(data, |b| put(u16::from_le_bytes(b).into())),
            Dtype::U8 => each(data, |[b]: [u8; 1]| put(b.into())),
            Dtype::BOOL => each(data, |[b]: [u8; 1]| put(u8::from(b != 0).into())),
            _ => false,
        },
    }
}

fn safetensors_header(file: &Mapped) -> Result<(BTreeMap<String, String>, Vec<Entry>), Msg> {
    let broken = |why: &dyn fmt::Display| {
        Msg::new("source.safetensors_broken").arg("file", file.name()).arg("why", escape(&why.to_string()))
    };
    let (size, rest) =
        file.split_first_chunk::<8>().ok_or_else(|| Msg::new("source.unknown_kind").arg("file", file.name()))?;
    let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX);
    if size > MAX_HEADER.min(rest.len()) || rest.first() != Some(&b'{') {
        return Err(Msg::new("source.unknown_kind").arg("file", file.name()));
    }
    let (_, header) = SafeTensors::read_metadata(file).map_err(|e| broken(&e))?;
    let metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
    let start = 8 + size;
    let mut entries: Vec<Entry> = Vec::new();
    for (name, info) in header.tensors() {
        let (from, to) = info.data_offsets;
        let range = start.checked_add(from).zip(start.checked_add(to)).map(|(a, b)| a..b);
        let range = range.filter(|r| r.start <= r.end && r.end <= file.len());
        let range = range.ok_or_else(|| {
            let msg = Msg::new("source.tensor_outside").arg("file", file.name()).arg("name", escape(&name));
            msg.arg("shape", format!("{:?}", info.shape))
        })?;
        entries.push(Entry { name, shape: info.shape.clone(), number_type: NumberType::Plain(info.dtype), range });
    }
    entries.sort_by_key(|e| e.range.start);
    Ok((metadata, entries))
}
