//! The values of a run as a file of tensors, named by our paths: safetensors or npz.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Cursor, Write};

use ndarray::{ArrayD, IxDyn};
use ndarray_npy::{WritableElement, WriteNpyExt};
use safetensors::{Dtype, View};

use crate::program::NodeId;
use crate::tensor::{Real, Tensor, Value};
use crate::trace::{AnyTrace, AnyValue, Trace};

/// Kinds of files that a run is recorded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// safetensors.
    Safetensors,
    /// An npz archive of NumPy.
    Npz,
}

impl Kind {
    /// The kind that a file's ending says.
    pub fn of_path(path: &std::path::Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_lowercase().as_str() {
            "safetensors" => Some(Self::Safetensors),
            "npz" => Some(Self::Npz),
            _ => None,
        }
    }
}

/// Writes the values of `nodes`, each under its path.
///
/// # Errors
/// Those of `out`.
pub fn write(kind: Kind, trace: &AnyTrace, nodes: &[NodeId], out: &mut dyn Write) -> io::Result<()> {
    match kind {
        Kind::Safetensors => {
            let views = nodes.iter().map(|id| (trace.program().node(*id).path.to_string(), Node { trace, id: *id }));
            let order: Vec<&str> = nodes.iter().map(|id| &*trace.program().node(*id).path).collect();
            let order = serde_json::to_string(&order).map_err(io::Error::other)?;
            let metadata =
                HashMap::from([("format".to_owned(), "tui-transformer".to_owned()), ("order".to_owned(), order)]);
            let bytes = safetensors::serialize(views, Some(metadata)).map_err(io::Error::other)?;
            out.write_all(&bytes)
        }
        Kind::Npz => {
            let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
            let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            for id in nodes {
                archive.start_file(format!("{}.npy", trace.program().node(*id).path), options)?;
                match trace {
                    AnyTrace::F32(t) => array(t, *id, &mut archive)?,
                    AnyTrace::F64(t) => array(t, *id, &mut archive)?,
                }
            }
            out.write_all(archive.finish()?.get_ref())
        }
    }
}

/// A node's value as an array of NumPy.
fn array<T: Real + WritableElement>(trace: &Trace<T>, id: NodeId, out: &mut dyn Write) -> io::Result<()> {
    fn whole<E: crate::tensor::Elem + WritableElement>(t: &Tensor<E>, out: &mut dyn Write) -> io::Result<()> {
        let array = ArrayD::from_shape_vec(IxDyn(t.shape().dims()), t.pieces().flatten().copied().collect())
            .map_err(io::Error::other)?;
        array.write_npy(out).map_err(io::Error::other)
    }
    match trace.value(id) {
        Value::Float(t) => whole(&t, out),
        Value::Int(t) => whole(&t, out),
        Value::Bool(t) => whole(&t, out),
    }
}

/// A node whose bytes are made when they are written.
struct Node<'a> {
    trace: &'a AnyTrace,
    id: NodeId,
}

impl View for Node<'_> {
    fn dtype(&self) -> Dtype {
        use crate::tensor::{DType, Precision};
        match (self.trace.program().node(self.id).dtype, self.trace.precision()) {
            (DType::Float, Precision::F32) => Dtype::F32,
            (DType::Float, Precision::F64) => Dtype::F64,
            (DType::Int, _) => Dtype::I64,
            (DType::Bool, _) => Dtype::BOOL,
        }
    }

    fn shape(&self) -> &[usize] {
        self.trace.program().node(self.id).shape.dims()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        fn bytes<T: Real>(value: &Value<T>, width: usize) -> Vec<u8> {
            match value {
                Value::Float(t) => {
                    t.pieces().flatten().flat_map(|x| x.bits().to_le_bytes().into_iter().take(width)).collect()
                }
                Value::Int(t) => t.data().iter().flat_map(|x| x.to_le_bytes()).collect(),
                Value::Bool(t) => t.data().iter().map(|x| u8::from(*x)).collect(),
            }
        }
        Cow::Owned(match self.trace.value(self.id) {
            AnyValue::F32(v) => bytes(&v, 4),
            AnyValue::F64(v) => bytes(&v, 8),
        })
    }

    fn data_len(&self) -> usize {
        self.shape().iter().product::<usize>() * self.dtype().bitsize() / 8
    }
}
