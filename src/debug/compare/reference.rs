//! What a run is compared with: the tensors of a file, or the trace of another run.

use super::measure::Unit;
use crate::program::NodeId;
use crate::scenario::weights::{Stored, read_tensors};
use crate::tensor::{DType, Precision, Tensor};
use crate::text::Msg;
use crate::trace::AnyTrace;

/// Where a tensor's numbers are.
#[derive(Clone, Debug)]
enum Data {
    /// Read from a file.
    Read(Tensor<f64>),
    /// The value of a node of the other run.
    Node(NodeId),
}

/// A tensor of a reference.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name there.
    pub name: String,
    /// The number type that it comes from; `None` for ids and masks.
    pub unit: Option<Unit>,
    data: Data,
}

/// What a run is compared with.
#[derive(Clone, Debug)]
pub struct Reference {
    /// What it is called: a file, or a scenario and its run.
    pub name: String,
    /// Its tensors, in the order of the file or of the other run.
    pub tensors: Vec<Named>,
    /// Names and types of what holds no numbers that we know.
    pub unreadable: Vec<(String, String)>,
    trace: Option<AnyTrace>,
}

impl Reference {
    /// The tensors of a safetensors or npz file. Where all its binary64 numbers are ones that binary32 has, that is
    /// what they were computed in.
    ///
    /// # Errors
    /// Where the file is neither, or broken.
    pub fn from_file(name: &str, bytes: &[u8]) -> Result<Self, Msg> {
        let read = read_tensors::<f64>(name, bytes)?;
        let is_f64 = |name: &str| read.stored.get(name) == Some(&Stored::F64);
        let widened = read
            .numbers
            .iter()
            .filter(|(name, _)| is_f64(name))
            .all(|(_, t)| {
                t.data()
                    .iter()
                    .all(|&x| x.is_nan() || f64::from(x as f32) == x)
            });
        let tensors = read
            .numbers
            .into_iter()
            .map(|(name, tensor)| {
                let unit = match read.stored.get(&name) {
                    Some(Stored::F64) if !widened => Some(Unit::F64),
                    Some(Stored::F64 | Stored::F32) => Some(Unit::F32),
                    Some(Stored::F16) => Some(Unit::F16),
                    Some(Stored::Bf16) => Some(Unit::Bf16),
                    Some(Stored::Int) | None => None,
                };
                Named {
                    name,
                    unit,
                    data: Data::Read(tensor),
                }
            })
            .collect();
        Ok(Self {
            name: name.to_owned(),
            tensors,
            unreadable: read.unreadable.into_iter().collect(),
            trace: None,
        })
    }

    /// Every node of another run.
    pub fn from_trace(name: &str, trace: &AnyTrace) -> Self {
        let unit = match trace.precision() {
            Precision::F64 => Unit::F64,
            Precision::F32 => Unit::F32,
        };
        let tensors = trace
            .program()
            .nodes()
            .filter(|(id, _)| trace.reached(*id))
            .map(|(id, node)| Named {
                name: node.path.to_string(),
                unit: (node.dtype == DType::Float).then_some(unit),
                data: Data::Node(id),
            })
            .collect();
        Self {
            name: name.to_owned(),
            tensors,
            unreadable: Vec::new(),
            trace: Some(trace.clone()),
        }
    }

    /// Whether it is another run: then names are paths and nothing else.
    pub fn is_run(&self) -> bool {
        self.trace.is_some()
    }

    /// The numbers of tensor `i`: ids as they are, masks as 0 and 1.
    ///
    /// # Panics
    /// Where there is no such tensor.
    pub fn tensor(&self, i: usize) -> Tensor<f64> {
        match (&self.tensors[i].data, &self.trace) {
            (Data::Read(tensor), _) => tensor.clone(),
            (Data::Node(id), Some(trace)) => {
                let value = trace.value(*id);
                let shape = *value.shape();
                Tensor::new(
                    shape,
                    (0..shape.len()).map(|i| value.get(i)).collect::<Vec<_>>(),
                )
            }
            (Data::Node(_), None) => unreachable!("a node of no run"),
        }
    }

    /// Whether the other run has this node written inside the line of its reader.
    pub fn is_inline(&self, i: usize) -> bool {
        match (&self.tensors[i].data, &self.trace) {
            (Data::Node(id), Some(trace)) => trace.program().node(*id).inline,
            _ => false,
        }
    }
}
