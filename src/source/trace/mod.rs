//! A trace folder: a run kept in open formats, written as the run goes and opened without reading it.
//!
//! ```text
//! manifest.json        what it is: version, producer, runs, the nodes of each in order (path, shape, type, step), parts
//! session.json         programs, inputs and vocabularies: what derivations and what-if need
//! steps.json           the walkthrough: numbers, titles, notes, symbols, slices
//! parts.jsonl          one line a finished part, appended when its file is whole
//! run0-00001.f64.safetensors, …      values, named by path; a part is written under another name and renamed
//! weights-00001.f64.safetensors, …   parameters that are in no file of their own
//! constants-00001.f64.safetensors, … constants and masks of the programs, named `RUN:PATH`
//! ```
//!
//! Whatever ends the recording, the parts that `parts.jsonl` lists are whole.

mod read;
mod write;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::tensor::{Axis, DType, Precision, Shape};

pub(crate) use read::checksum;
pub use read::{Damaged, Folder, FolderSource};
pub use write::{Class, PartWriter, Planned, Writer};

/// What `format` in a manifest says.
pub const FORMAT: &str = "tui-transformer trace";

/// The version of the format that is written; older ones are read.
pub const VERSION: u32 = 1;

/// The name of the manifest.
pub const MANIFEST: &str = "manifest.json";

/// The name of the programs' file.
pub const SESSION: &str = "session.json";

/// The name of the walkthrough's file.
pub const STEPS: &str = "steps.json";

/// The name of the list of finished parts.
pub const JOURNAL: &str = "parts.jsonl";

/// Whether `path` is a trace folder: one with a manifest.
pub fn is_trace_folder(path: &Path) -> bool {
    path.is_dir() && (path.join(MANIFEST).is_file() || path.join(JOURNAL).is_file())
}

/// A node of a run, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Its path, the name of its tensor.
    pub path: String,
    /// Lengths of its axes.
    pub shape: Vec<usize>,
    /// Names of its axes.
    pub axes: Vec<Axis>,
    /// `F32`, `F64`, `I64` or `BOOL`.
    pub dtype: String,
    /// The numbered step that shows it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The part that holds its value; none where it was left out, and for parameters, which are among the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// Its name.
    pub name: String,
    /// Whether its values are kept; else they are computed when they are looked at.
    pub kept: bool,
    /// Its nodes, in order of evaluation.
    #[serde(default)]
    pub nodes: Vec<NodeEntry>,
}

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartEntry {
    /// Its name.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32 (IEEE 802.3) of the whole file.
    pub crc32: u32,
    /// Tensors in it.
    pub tensors: usize,
}

/// A parameter whose numbers are those of a tensor in a file that the folder does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightEntry {
    /// Path of the parameter.
    pub path: String,
    /// The file.
    pub file: String,
    /// Its length.
    pub file_bytes: u64,
    /// The tensor's name there.
    pub tensor: String,
    /// CRC-32 of the tensor's bytes.
    pub crc32: u32,
}

/// What a trace folder is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The program that wrote it.
    pub producer: String,
    /// Name of the scenario or model.
    pub name: String,
    /// Number type of the runs.
    pub precision: Precision,
    /// Whether the recording came to its end.
    pub complete: bool,
    /// Runs.
    pub runs: Vec<RunEntry>,
    /// Parts; while the recording goes on, they are in [`JOURNAL`].
    #[serde(default)]
    pub parts: Vec<PartEntry>,
    /// Parameters by reference.
    #[serde(default)]
    pub weights: Vec<WeightEntry>,
}

/// What the file calls a type of element.
pub fn dtype_name(dtype: DType, precision: Precision) -> &'static str {
    match (dtype, precision) {
        (DType::Float, Precision::F32) => "F32",
        (DType::Float, Precision::F64) => "F64",
        (DType::Int, _) => "I64",
        (DType::Bool, _) => "BOOL",
    }
}

/// A node as the manifest lists it.
pub fn entry(path: &str, shape: &Shape, dtype: DType, precision: Precision) -> NodeEntry {
    NodeEntry {
        path: path.to_owned(),
        shape: shape.dims().to_vec(),
        axes: shape.axes().to_vec(),
        dtype: dtype_name(dtype, precision).to_owned(),
        step: None,
        part: None,
    }
}
