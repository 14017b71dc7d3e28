//! A recording: the named tensors of a safetensors or npz file, in order, mapped and not read before they are looked at.
//!
//! [`Recording::open`] reads names, shapes and number types only. Files may be cut off or lie: what is inside the file
//! is opened, the rest is listed with the reason ([`Recording::unreadable`]).

mod axes;
mod module;
mod npz;
mod order;
mod safetensors;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use half::{bf16, f16};
use memmap2::Mmap;

use crate::parallel;
use crate::program::{BuildError, Builder, NodeId, Program};
use crate::source::measures::next_to;
use crate::tensor::mapped::{Mapped, forget, map_file};
use crate::tensor::{DType, Elem, Plain, Precision, Real, Shape, Tensor, Value, float8};
use crate::text::{Msg, escape};
use crate::trace::{Home, ValueSource};

pub use axes::{InputIds, name_axes};
pub use module::ModuleName;
pub use order::{modules, natural, phase};

pub use ::safetensors::Dtype;

/// Whether a name is that of a file of tensors.
pub fn is_file_of_tensors(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| ["safetensors", "npz"].contains(&e.to_lowercase().as_str()))
}

/// Where the numbers of a tensor are.
#[derive(Clone, Debug)]
enum Data {
    /// Row-major and little endian, from this byte of a mapped file.
    Mapped(Arc<Mmap>, usize),
    /// A member of an npz archive that has to be unpacked, swapped or transposed.
    Packed(npz::Member),
}

/// A tensor of a recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its name; untrusted.
    pub name: String,
    /// Its shape, axes named as far as they are known.
    pub shape: Shape,
    /// The number type in the file.
    pub stored: Dtype,
    data: Data,
}

/// The tensors of a file.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The file.
    pub name: String,
    /// Text that the file says about itself.
    pub metadata: BTreeMap<String, String>,
    /// Its tensors: in the order of the metadata, else sorted by name, numbers as numbers.
    pub tensors: Vec<Recorded>,
    /// Names of what cannot be read, and why: a number type that is none of ours, a range outside the file.
    pub unreadable: Vec<(String, String)>,
    /// Size and age of the file when it was opened; empty where they are not known.
    stamp: String,
}

impl Recording {
    /// Opens a safetensors or npz file. Nothing but its headers is read.
    ///
    /// # Errors
    /// Where there is no such file, or it is neither, or has no tensor that can be read.
    pub fn open(path: &Path) -> Result<Self, Msg> {
        let called = path.to_string_lossy().into_owned();
        let unread = |e: std::io::Error| {
            Msg::new("scenario.unreadable").arg("file", escape(&called)).arg("why", escape(&e.to_string()))
        };
        // An empty file cannot be mapped, and holds nothing.
        let meta = std::fs::metadata(path).map_err(unread)?;
        if meta.len() == 0 {
            return Err(broken(&called, "0 bytes"));
        }
        let map = map_file(path).map_err(unread)?;
        let zip = map.starts_with(b"PK");
        let mut read =
            if zip { npz::open(&map) } else { safetensors::open(&map) }.map_err(|why| broken(&called, &why))?;
        read.name = called;
        let age = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        read.stamp = age.map_or_else(String::new, |age| format!("{} bytes of {}", meta.len(), age.as_nanos()));
        if read.tensors.is_empty() {
            return Err(match read.unreadable.first() {
                Some((name, why)) => Msg::new("recording.nothing_readable")
                    .arg("file", escape(&read.name))
                    .arg("count", read.unreadable.len())
                    .arg("name", escape(name))
                    .arg("why", escape(why)),
                None => Msg::new("compare.empty").arg("reference", escape(&read.name)),
            });
        }
        order::sort(&mut read);
        name_axes(&mut read);
        Ok(read)
    }

    /// The number type that holds all its numbers: f64 where one of its tensors is of that type.
    pub fn precision(&self) -> Precision {
        let wide = self.tensors.iter().any(|t| t.stored == Dtype::F64);
        if wide { Precision::F64 } else { Precision::F32 }
    }

    /// A program of recorded leaves, one a tensor, in order.
    ///
    /// # Errors
    /// Where a tensor is too large to have an address.
    pub fn program(&self) -> Result<Program, BuildError> {
        let mut b = Builder::new();
        for tensor in &self.tensors {
            b.recorded(&tensor.name, tensor.dtype(), tensor.shape)?;
        }
        Ok(b.finish())
    }

    /// The tensor called `name`.
    pub fn find(&self, name: &str) -> Option<&Recorded> {
        self.tensors.iter().find(|t| t.name == name)
    }
}

fn broken(file: &str, why: &str) -> Msg {
    Msg::new("weights.broken_file").arg("file", escape(file)).arg("why", escape(why))
}

impl<T: Real> ValueSource<T> for Recording {
    fn has(&self, id: NodeId) -> bool {
        id.index() < self.tensors.len()
    }

    fn read(&self, id: NodeId) -> Option<Value<T>> {
        self.tensors.get(id.index())?.read()
    }

    fn read_ahead(&self, id: NodeId) {
        if let Some(tensor) = self.tensors.get(id.index()) {
            tensor.read_ahead();
        }
    }

    fn let_go(&self, id: NodeId) {
        if let Some(tensor) = self.tensors.get(id.index()) {
            tensor.let_go();
        }
    }

    fn home(&self, id: NodeId) -> Option<Home> {
        let known = id.index() < self.tensors.len() && !self.stamp.is_empty();
        known.then(|| Home { measures: next_to(Path::new(&self.name)), stamp: self.stamp.clone() })
    }
}

impl Recorded {
    /// Kind of element: whole numbers are ids, `BOOL` a mask.
    pub fn dtype(&self) -> DType {
        match self.stored {
            Dtype::BOOL => DType::Bool,
            Dtype::U8 | Dtype::I8 | Dtype::U16 | Dtype::I16 | Dtype::U32 | Dtype::I32 | Dtype::U64 | Dtype::I64 => {
                DType::Int
            }
            _ => DType::Float,
        }
    }

    /// Its value; `None` where its bytes cannot be unpacked. Numbers of the run's own type are not copied.
    pub fn read<T: Real>(&self) -> Option<Value<T>> {
        match &self.data {
            Data::Mapped(map, start) => self.mapped(map, *start),
            Data::Packed(member) => member.read(self),
        }
    }

    /// Its numbers as `f64`, whatever they are in the file; ids as they are, masks as 0 and 1.
    pub fn numbers(&self) -> Option<Tensor<f64>> {
        Some(match self.read::<f64>()? {
            Value::Float(t) => t,
            Value::Int(t) => Tensor::new(*t.shape(), t.data().iter().map(|&x| x as f64).collect::<Vec<_>>()),
            Value::Bool(t) => {
                Tensor::new(*t.shape(), t.data().iter().map(|&x| f64::from(u8::from(x))).collect::<Vec<_>>())
            }
        })
    }

    fn mapped<T: Real>(&self, map: &Arc<Mmap>, start: usize) -> Option<Value<T>> {
        fn here<E: Plain>(map: &Arc<Mmap>, start: usize, shape: Shape) -> Option<Tensor<E>> {
            Some(Tensor::new(shape, Mapped::<E>::new(map, start, shape.len())?))
        }
        let own = match (self.stored, T::PRECISION) {
            (Dtype::I64, _) => here::<i64>(map, start, self.shape).map(Value::Int),
            (Dtype::F32, Precision::F32) | (Dtype::F64, Precision::F64) => {
                here::<T>(map, start, self.shape).map(Value::Float)
            }
            _ => None,
        };
        let bytes = map.get(start..start + self.bytes()?)?;
        own.or_else(|| widened(self.stored, self.shape, bytes))
    }

    /// Bytes that its elements take.
    pub fn bytes(&self) -> Option<usize> {
        self.shape.checked_len()?.checked_mul(self.stored.bitsize())?.checked_div(8)
    }

    /// Lets the memory go that its part of the file was mapped to.
    pub fn let_go(&self) {
        if let Some((map, range)) = self.range() {
            forget(map, range);
        }
    }

    /// Has the system bring the bytes of a mapped tensor from the disk.
    pub fn read_ahead(&self) {
        #[cfg(unix)]
        if let Some((map, range)) = self.range() {
            // Where the system does not, they come when they are looked at.
            let _ = map.advise_range(memmap2::Advice::WillNeed, range.start, range.len());
        }
    }

    /// Where it is in the mapped file, where it lies there as it is.
    pub fn range(&self) -> Option<(&Arc<Mmap>, std::ops::Range<usize>)> {
        match &self.data {
            Data::Mapped(map, start) => Some((map, *start..*start + self.bytes()?)),
            Data::Packed(_) => None,
        }
    }
}

/// Number types that are read.
fn is_known(dtype: Dtype) -> bool {
    use Dtype::{BF16, BOOL, F8_E4M3, F8_E5M2, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(dtype, BOOL | U8 | I8 | U16 | I16 | U32 | I32 | U64 | I64 | F16 | BF16 | F32 | F64 | F8_E4M3 | F8_E5M2)
}

/// Little-endian elements as a value of `shape`.
fn widened<T: Real>(dtype: Dtype, shape: Shape, bytes: &[u8]) -> Option<Value<T>> {
    fn each<E: Elem, const N: usize>(bytes: &[u8], of: impl Fn([u8; N]) -> E + Sync) -> Vec<E> {
        let (all, _) = bytes.as_chunks::<N>();
        let mut out = vec![E::default(); all.len()];
        parallel::pieces(&mut out, 1 << 16, &|start, out| {
            out.iter_mut().zip(&all[start..]).for_each(|(out, b)| *out = of(*b));
        });
        out
    }
    let real = |x: f64| T::from_f64(x);
    let float = |data| Some(Value::Float(Tensor::new(shape, data)));
    let int = |data| Some(Value::Int(Tensor::new(shape, data)));
    match dtype {
        Dtype::F64 => float(each(bytes, |b| real(f64::from_le_bytes(b)))),
        Dtype::F32 => float(each(bytes, |b| real(f64::from(f32::from_le_bytes(b))))),
        Dtype::F16 => float(each(bytes, |b| real(f16::from_le_bytes(b).to_f64()))),
        Dtype::BF16 => float(each(bytes, |b| real(bf16::from_le_bytes(b).to_f64()))),
        Dtype::F8_E4M3 => float(each(bytes, |[b]: [u8; 1]| real(float8::e4m3_to_f64(b)))),
        Dtype::F8_E5M2 => float(each(bytes, |[b]: [u8; 1]| real(float8::e5m2_to_f64(b)))),
        Dtype::I64 => int(each(bytes, i64::from_le_bytes)),
        Dtype::I32 => int(each(bytes, |b| i32::from_le_bytes(b).into())),
        Dtype::I16 => int(each(bytes, |b| i16::from_le_bytes(b).into())),
        Dtype::I8 => int(each(bytes, |b| i8::from_le_bytes(b).into())),
        Dtype::U8 => int(each(bytes, |[b]: [u8; 1]| b.into())),
        Dtype::U16 => int(each(bytes, |b| u16::from_le_bytes(b).into())),
        Dtype::U32 => int(each(bytes, |b| u32::from_le_bytes(b).into())),
        // A number beyond 2⁶³ is none that an id has; it keeps its bits.
        Dtype::U64 => int(each(bytes, |b| u64::from_le_bytes(b).cast_signed())),
        Dtype::BOOL => Some(Value::Bool(Tensor::new(shape, each(bytes, |[b]: [u8; 1]| b != 0)))),
        _ => None,
    }
}
