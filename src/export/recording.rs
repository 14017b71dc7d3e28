//! The values of a run as a file of tensors, named by our paths: safetensors or npz.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use ndarray_npy::{WritableElement, WriteNpyExt};
use safetensors::Dtype;

use crate::program::NodeId;
use crate::tensor::{DType, Precision, Real, Tensor, Value};
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

/// More than the header of an array takes.
const HEADER: usize = 1 << 16;

/// Writes the values of `nodes`, each under its path.
///
/// # Errors
/// Those of `out`.
pub fn write(kind: Kind, trace: &AnyTrace, nodes: &[NodeId], out: &mut dyn Write) -> io::Result<()> {
    match kind {
        Kind::Safetensors => {
            let order: Vec<&str> = nodes.iter().map(|id| &*trace.program().node(*id).path).collect();
            let order = serde_json::to_string(&order)?;
            let metadata = BTreeMap::from([("format", "tui-transformer"), ("order", order.as_str())]);
            safetensors(trace, nodes, &metadata, out)
        }
        Kind::Npz => {
            // One value after the other: sizes and checksums follow the numbers, nothing is gone back to.
            let mut archive = zip::ZipWriter::new_stream(out);
            for id in nodes {
                let node = trace.program().node(*id);
                let bytes = node.shape.len() * stored(trace, *id).bitsize() / 8;
                let options = zip::write::SimpleFileOptions::default()
                    .compression_method(zip::CompressionMethod::Stored)
                    .large_file(bytes.saturating_add(HEADER) > u32::MAX as usize);
                archive.start_file(format!("{}.npy", node.path), options)?;
                match trace {
                    AnyTrace::F32(t) => array(t, *id, &mut archive)?,
                    AnyTrace::F64(t) => array(t, *id, &mut archive)?,
                }
            }
            archive.finish()?;
            Ok(())
        }
    }
}

/// A node's value as an array of NumPy.
fn array<T: Real + WritableElement>(trace: &Trace<T>, id: NodeId, out: &mut dyn Write) -> io::Result<()> {
    fn whole<E: crate::tensor::Elem + WritableElement>(t: &Tensor<E>, out: &mut dyn Write) -> io::Result<()> {
        if t.is_whole() {
            return t.view().write_npy(out).map_err(io::Error::other);
        }
        let joined: Vec<E> = t.pieces().flatten().copied().collect();
        Tensor::new(*t.shape(), joined).view().write_npy(out).map_err(io::Error::other)
    }
    match trace.value(id) {
        Value::Float(t) => whole(&t, out),
        Value::Int(t) => whole(&t, out),
        Value::Bool(t) => whole(&t, out),
    }
}

/// Writes a safetensors file, one value after the other: the header is known before any value is.
fn safetensors(
    trace: &AnyTrace,
    nodes: &[NodeId],
    metadata: &BTreeMap<&str, &str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let program = trace.program();
    // The largest elements first, as the format wants it: then all are aligned.
    let mut nodes: Vec<(Dtype, NodeId)> = nodes.iter().map(|id| (stored(trace, *id), *id)).collect();
    nodes.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| program.node(*x).path.cmp(&program.node(*y).path)));
    let mut header = format!("{{\"__metadata__\":{}", serde_json::to_string(metadata)?);
    let mut offset = 0;
    for (dtype, id) in &nodes {
        let node = program.node(*id);
        let end = offset + node.shape.len() * dtype.bitsize() / 8;
        let (name, dtype) = (serde_json::to_string(&*node.path)?, serde_json::to_string(dtype)?);
        let shape = serde_json::to_string(node.shape.dims())?;
        write!(header, ",{name}:{{\"dtype\":{dtype},\"shape\":{shape},\"data_offsets\":[{offset},{end}]}}")
            .map_err(io::Error::other)?;
        offset = end;
    }
    header.push('}');
    let mut header = header.into_bytes();
    header.resize(header.len().next_multiple_of(size_of::<u64>()), b' ');
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    for (_, id) in nodes {
        match trace.value(id) {
            AnyValue::F32(Value::Float(t)) => little_endian(t.pieces(), f32::to_le_bytes, out),
            AnyValue::F64(Value::Float(t)) => little_endian(t.pieces(), f64::to_le_bytes, out),
            AnyValue::F32(Value::Int(t)) | AnyValue::F64(Value::Int(t)) => {
                little_endian(t.pieces(), i64::to_le_bytes, out)
            }
            AnyValue::F32(Value::Bool(t)) | AnyValue::F64(Value::Bool(t)) => {
                little_endian(t.pieces(), |x| [u8::from(x)], out)
            }
        }?;
    }
    Ok(())
}

/// Elements that are written at a time.
const WRITTEN: usize = 1 << 14;

fn little_endian<'a, E: Copy + 'a, const N: usize>(
    pieces: impl Iterator<Item = &'a [E]>,
    bytes: impl Fn(E) -> [u8; N],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(WRITTEN * N);
    for part in pieces.flat_map(|piece| piece.chunks(WRITTEN)) {
        buffer.clear();
        for x in part {
            buffer.extend_from_slice(&bytes(*x));
        }
        out.write_all(&buffer)?;
    }
    Ok(())
}

/// The number type that a node is written in.
fn stored(trace: &AnyTrace, id: NodeId) -> Dtype {
    match (trace.program().node(id).dtype, trace.precision()) {
        (DType::Float, Precision::F32) => Dtype::F32,
        (DType::Float, Precision::F64) => Dtype::F64,
        (DType::Int, _) => Dtype::I64,
        (DType::Bool, _) => Dtype::BOOL,
    }
}
