//! What a run is compared with: the tensors of a file, or the trace of another run.

use std::collections::BTreeMap;
use std::path::Path;

use super::fit::fit;
use super::measure::Unit;
use super::report::Against;
use crate::checkpoint::inputs::Sides;
use crate::checkpoint::{self, Given};
use crate::parallel;
use crate::program::{Node, NodeId};
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::tensors::{Stored, read_tensors};
use crate::scenario::{self, Loaded};
use crate::session::{self, Session};
use crate::source::recording::{Dtype, Recorded, Recording};
use crate::source::trace::is_trace_folder;
use crate::tensor::{DType, Precision, Tensor, Value};
use crate::text::{Msg, escape};
use crate::trace::{AnyTrace, AnyValue};

/// Why there is no reference.
#[derive(Clone, Debug)]
pub enum Unopened {
    /// What is wrong with the file, or with the run.
    Said(Msg),
    /// All that is wrong with the scenario.
    Wrong(Vec<Diagnostic>),
}

impl From<Msg> for Unopened {
    fn from(msg: Msg) -> Self {
        Self::Said(msg)
    }
}

/// Whether a name is that of a file of tensors; else it is a scenario.
pub fn is_file_of_tensors(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| ["safetensors", "npz"].contains(&e.to_lowercase().as_str()))
}

/// More binary digits than a number has by chance that binary32 has: two in three of its own.
const MANY_DIGITS: u32 = 16;

/// Where a tensor's numbers are.
#[derive(Clone, Debug)]
enum Data {
    /// Read from a file.
    Read(Tensor<f64>),
    /// In a file, and read when it is compared.
    File(Recorded),
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
    /// Whether binary32 has all its numbers, and they use its digits: what is round has few in every type, and so has
    /// what is left where numbers cancel.
    narrow: bool,
    data: Data,
}

/// What a recording says of its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedModel {
    /// Its family, as Hugging Face names it.
    pub model_type: Option<String>,
    /// The class of each module.
    pub classes: BTreeMap<String, String>,
    /// Names of what the model was given.
    pub inputs: Vec<String>,
}

impl RecordedModel {
    fn of(bytes: &[u8]) -> Self {
        let metadata = safetensors::SafeTensors::read_metadata(bytes).ok().and_then(|(_, m)| m.metadata().clone());
        Self::from_metadata(&metadata.unwrap_or_default().into_iter().collect())
    }

    fn from_metadata(metadata: &BTreeMap<String, String>) -> Self {
        let json = |key: &str| metadata.get(key).map_or("null", String::as_str);
        Self {
            model_type: metadata.get("model_type").filter(|t| !t.is_empty()).cloned(),
            classes: serde_json::from_str(json("classes")).unwrap_or_default(),
            inputs: serde_json::from_str(json("inputs")).unwrap_or_default(),
        }
    }
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
    /// What the file says of the model that was recorded.
    pub model: RecordedModel,
    trace: Option<AnyTrace>,
}

impl Reference {
    /// The tensors of a file, or a run of a scenario, as `name` says: of several runs the one called `run`, else the
    /// first where any will do (`asked` is false). A checkpoint reads `inputs`, with the family file that is given.
    ///
    /// # Errors
    /// Where the file or the scenario cannot be read, or has no such run, or the run cannot run.
    pub fn open(
        name: &Path,
        run: &str,
        asked: bool,
        precision: Option<Precision>,
        inputs: &Given,
    ) -> Result<Self, Unopened> {
        let called = name.to_string_lossy();
        if is_file_of_tensors(name) {
            std::fs::metadata(name).map_err(|e| {
                Msg::new("compare.read").arg("file", escape(&called)).arg("why", escape(&e.to_string()))
            })?;
            return Ok(Self::from_recording(&called, Recording::open(name)?));
        }
        if is_trace_folder(name) {
            let (other, _) = session::open_trace(name, session::Options::default())?;
            return Self::of_session(&other, run, asked);
        }
        let loaded = if checkpoint::is_checkpoint(name) {
            checkpoint::load(name, inputs).map(|(loaded, _)| loaded)
        } else {
            scenario::load(name)
        };
        let Loaded { scenario, text, file, origin } = loaded.map_err(|d| Unopened::Wrong(vec![d]))?;
        let options = session::Options { precision, ..session::Options::default() };
        let other = session::open(scenario, origin.as_deref(), options).map_err(|problems| {
            let reported = problems.into_iter();
            Unopened::Wrong(reported.map(|p| Diagnostic::located(&file, &text, p)).collect())
        })?;
        Self::of_session(&other, run, asked)
    }

    /// What a checkpoint reads that is compared with run `run`: the same ids.
    pub fn inputs(session: &Session, run: usize) -> Given {
        let inputs = &session.runs[run].inputs;
        Given { rows: Sides::of(inputs.source.as_ref(), inputs.target.as_ref()), ..Given::default() }
    }

    /// A run of another session.
    fn of_session(other: &Session, run: &str, asked: bool) -> Result<Self, Unopened> {
        let theirs = match other.run_named(run) {
            Some(i) => i,
            None if !asked => 0,
            None => {
                let names: Vec<&str> = other.runs.iter().map(|r| r.name.as_str()).collect();
                return Err(Msg::new("compare.no_run")
                    .arg("scenario", escape(&other.scenario.name))
                    .arg("name", escape(run))
                    .arg("names", escape(&names.join(", ")))
                    .into());
            }
        };
        let cannot = |e: &crate::trace::RunError| Msg::new("compare.cannot_run").arg("why", e);
        let trace = other.trace(theirs).map_err(cannot)?;
        let called = format!("{} / {}", other.scenario.name, other.runs[theirs].name);
        Ok(Self::from_trace(&called, trace))
    }

    /// The tensors of a recording, each read when it is compared.
    pub fn from_recording(name: &str, mut recording: Recording) -> Self {
        recording.tensors.sort_by(|a, b| a.name.cmp(&b.name));
        // Only binary64 numbers need a look: they may all be ones that binary32 has.
        let wide = |t: &Recorded| t.stored == Dtype::F64;
        let fits = |t: &Recorded| t.numbers().is_none_or(|n| all_in(&n, |x| f64::from(x as f32)));
        let doubles: Vec<&Recorded> = recording.tensors.iter().filter(|t| wide(t)).collect();
        let widened = parallel::map(doubles.len(), |i| fits(doubles[i])).into_iter().all(|fits| fits);
        let model = RecordedModel::from_metadata(&recording.metadata);
        let narrow = |tensor: &Recorded| wide(tensor) && tensor.numbers().is_some_and(|n| is_narrow(&n));
        let narrow = parallel::map(recording.tensors.len(), |i| narrow(&recording.tensors[i]));
        let one = |(tensor, narrow): (Recorded, bool)| {
            let unit = match tensor.stored {
                Dtype::F64 if !widened => Some(Unit::F64),
                Dtype::F64 | Dtype::F32 => Some(Unit::F32),
                Dtype::F16 => Some(Unit::F16),
                Dtype::BF16 | Dtype::F8_E4M3 | Dtype::F8_E5M2 => Some(Unit::Bf16),
                _ => None,
            };
            Named { narrow, name: tensor.name.clone(), unit, data: Data::File(tensor) }
        };
        let tensors = recording.tensors.into_iter().zip(narrow).map(one).collect();
        Self { name: name.to_owned(), tensors, unreadable: recording.unreadable, model, trace: None }
    }

    /// The tensors of a safetensors or npz file. Where all its binary64 numbers are ones that binary32 has, that is
    /// what they were computed in.
    ///
    /// # Errors
    /// Where the file is neither, or broken.
    pub fn from_file(name: &str, bytes: &[u8]) -> Result<Self, Msg> {
        let read = read_tensors::<f64>(name, bytes)?;
        let is_f64 = |name: &str| read.stored.get(name) == Some(&Stored::F64);
        let widened =
            read.numbers.iter().filter(|(name, _)| is_f64(name)).all(|(_, t)| all_in(t, |x| f64::from(x as f32)));
        let tensors = read
            .numbers
            .into_iter()
            .map(|(name, tensor)| {
                let unit = match read.stored.get(&name) {
                    Some(Stored::F64) if !widened => Some(Unit::F64),
                    Some(Stored::F64 | Stored::F32) => Some(Unit::F32),
                    Some(Stored::F16) => Some(Unit::F16),
                    Some(Stored::Bf16) => Some(Unit::Bf16),
                    Some(Stored::Int | Stored::Small(_)) | None => None,
                };
                Named { narrow: is_narrow(&tensor), name, unit, data: Data::Read(tensor) }
            })
            .collect();
        Ok(Self {
            name: name.to_owned(),
            tensors,
            unreadable: read.unreadable.into_iter().collect(),
            model: RecordedModel::of(bytes),
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
                narrow: false,
                data: Data::Node(id),
            })
            .collect();
        let model = RecordedModel::default();
        Self { name: name.to_owned(), tensors, unreadable: Vec::new(), model, trace: Some(trace.clone()) }
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
            (Data::File(tensor), _) => {
                let nothing = || Tensor::new(tensor.shape, vec![f64::NAN; tensor.shape.len()]);
                tensor.numbers().unwrap_or_else(nothing)
            }
            (Data::Node(id), Some(trace)) => {
                let value = trace.value(*id);
                let shape = *value.shape();
                Tensor::new(shape, (0..shape.len()).map(|i| value.get(i)).collect::<Vec<_>>())
            }
            (Data::Node(_), None) => unreachable!("a node of no run"),
        }
    }

    /// The numbers of tensor `i` as they are kept: those of a file are read where they lie, in the least of our two
    /// number types that has them all.
    ///
    /// # Panics
    /// Where there is no such tensor.
    pub fn value(&self, i: usize) -> AnyValue {
        match (&self.tensors[i].data, &self.trace) {
            (Data::File(tensor), _) => {
                let read = match tensor.stored {
                    Dtype::F64 => tensor.read::<f64>().map(AnyValue::F64),
                    _ => tensor.read::<f32>().map(AnyValue::F32),
                };
                read.unwrap_or_else(|| AnyValue::F64(Value::Float(self.tensor(i))))
            }
            (Data::Node(id), Some(trace)) => trace.value(*id),
            _ => AnyValue::F64(Value::Float(self.tensor(i))),
        }
    }

    /// Number of cells of tensor `i`; nothing is read.
    ///
    /// # Panics
    /// Where there is no such tensor.
    pub fn len(&self, i: usize) -> usize {
        match (&self.tensors[i].data, &self.trace) {
            (Data::Read(tensor), _) => tensor.shape().len(),
            (Data::File(tensor), _) => tensor.shape.len(),
            (Data::Node(id), Some(trace)) => trace.program().node(*id).shape.len(),
            (Data::Node(_), None) => unreachable!("a node of no run"),
        }
    }

    /// Lets the memory go that tensor `i` was mapped to; it is read again where it is wanted again.
    pub fn let_go(&self, i: usize) {
        if let Data::File(tensor) = &self.tensors[i].data {
            tensor.let_go();
        }
    }

    /// The tensor that corresponded to a node, as ours lies, cell by cell; `None` where it does not fit.
    pub fn beside(&self, against: &Against, node: &Node) -> Option<Vec<Option<f64>>> {
        let found = self.tensor(against.tensor);
        let fitted = fit(&found, against.layout.as_ref(), against.reading, node)?;
        Some(fitted.cells().collect())
    }

    /// The number type that tensor `i` comes from, where it denotes a node that `computes`. The numbers of a
    /// binary64 tensor may all be ones that binary32 has: then this step was computed in that, as transformers does
    /// with softmax and rotary angles in a model of any type. What only moves numbers says nothing of how it was
    /// computed.
    pub(super) fn unit(&self, i: usize, computes: bool) -> Option<Unit> {
        let named = &self.tensors[i];
        match named.unit {
            Some(Unit::F64) if computes && named.narrow => Some(Unit::F32),
            unit => unit,
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

/// Whether a number type that rounds so has all numbers of a tensor.
fn all_in(tensor: &Tensor<f64>, rounded: impl Fn(f64) -> f64) -> bool {
    // What hides a score is the least number of its type, or −∞: it says nothing of how scores were computed.
    let has = |&x: &f64| x.is_nan() || x.abs() > f64::from(f32::MAX) || rounded(x) == x;
    tensor.data().iter().all(has)
}

fn is_narrow(tensor: &Tensor<f64>) -> bool {
    let digits = |x: f64| 53 - (x.to_bits() & ((1 << 52) - 1) | 1 << 52).trailing_zeros();
    all_in(tensor, |x| f64::from(x as f32)) && tensor.data().iter().any(|x| digits(*x) > MANY_DIGITS)
}
