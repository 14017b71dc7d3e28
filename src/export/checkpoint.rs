//! The state of a training run as one safetensors file: parameters by their paths, the optimiser's memory under the
//! paths of its leaves (`update.<parameter>.m_before`), the losses so far (`training.losses`).
//!
//! The file is also a set of weights for a scenario: readers that look for parameters find them by path. It is
//! written whole or not at all, so a kill leaves the last one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use safetensors::{Dtype, SafeTensors, View};

use super::file::{Error, write_file};
use crate::program::{Name, Pass, Role};
use crate::scenario::guard::{self, Kind};
use crate::tensor::{Precision, Real, Shape, Tensor, Value};
use crate::text::{Msg, escape};
use crate::trace::train::State;

/// Tensor of the losses.
const LOSSES: &str = "training.losses";
/// Metadata: updates made.
const UPDATE: &str = "tui-transformer.update";
/// Tensor of one number: updates over which the learning rate follows its course. No metadata, which are written in any
/// order: the same state is the same bytes.
const SCHEDULE: &str = "training.schedule";

struct Raw {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for Raw {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

fn raw<T: Real>(t: &Tensor<T>) -> Raw {
    let (dtype, bytes) = match T::PRECISION {
        Precision::F64 => (Dtype::F64, t.data().iter().flat_map(|x| x.bits().to_le_bytes()).collect()),
        Precision::F32 => (Dtype::F32, t.data().iter().flat_map(|x| (x.bits() as u32).to_le_bytes()).collect()),
    };
    Raw { dtype, shape: t.shape().dims().to_vec(), bytes }
}

/// Writes the state of a training run; an existing file is replaced at once or not at all.
///
/// # Errors
/// See [`write_file`].
pub fn save<T: Real>(path: &Path, state: &State<T>, losses: &[f64]) -> Result<(), Error> {
    save_scheduled(path, state, losses, None)
}

/// As [`save`], with the length of the training's schedule in updates: a training that goes on from the file follows
/// the same course.
///
/// # Errors
/// See [`write_file`].
pub fn save_scheduled<T: Real>(
    path: &Path,
    state: &State<T>,
    losses: &[f64],
    schedule: Option<u64>,
) -> Result<(), Error> {
    let mut tensors: Vec<(String, Raw)> = state
        .values
        .iter()
        .filter(|(path, _)| {
            let name = Name::parse(path);
            let memory =
                matches!(name.last(), Role::FirstMomentBefore | Role::SecondMomentBefore | Role::VelocityBefore);
            name.pass != Pass::Update || memory
        })
        .filter_map(|(name, value)| match value {
            Value::Float(t) => Some((name.to_string(), raw(t))),
            _ => None,
        })
        .collect();
    if !losses.is_empty() {
        let t = Tensor::new(Shape::new(&[losses.len()]), losses.to_vec());
        tensors.push((LOSSES.to_owned(), raw(&t)));
    }
    if let Some(over) = schedule {
        tensors.push((SCHEDULE.to_owned(), raw(&Tensor::new(Shape::new(&[1]), vec![over as f64]))));
    }
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let metadata = HashMap::from([(UPDATE.to_owned(), state.update.to_string())]);
    write_file(path, true, |out| {
        let bytes = safetensors::serialize(tensors, Some(metadata)).map_err(std::io::Error::other)?;
        out.write_all(&bytes)
    })
}

/// Reads the state of a training run and its losses.
///
/// # Errors
/// Where the file cannot be read, is no safetensors file, holds no training state, or holds numbers that are neither
/// F32 nor F64.
pub fn load<T: Real>(path: &Path) -> Result<(State<T>, Vec<f64>), Msg> {
    load_scheduled(path).map(|(state, losses, _)| (state, losses))
}

/// A state, its losses, and the length of the schedule where the file says it.
type Scheduled<T> = (State<T>, Vec<f64>, Option<u64>);

/// As [`load`], with the length of the training's schedule, where the file says it.
///
/// # Errors
/// As [`load`].
pub fn load_scheduled<T: Real>(path: &Path) -> Result<Scheduled<T>, Msg> {
    let name = escape(&path.to_string_lossy()).into_owned();
    let unreadable = |why: &dyn std::fmt::Display| Msg::new("train.checkpoint.read").arg("path", &name).arg("why", why);
    let bytes = guard::read(path, guard::MAX_TENSORS)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|e| match guard::kind(&name, &bytes) {
        None | Some(Kind::Safetensors) => unreadable(&e),
        Some(kind) => kind.msg(&path.to_string_lossy()),
    })?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| unreadable(&e))?;
    let update = header
        .metadata()
        .as_ref()
        .and_then(|m| m.get(UPDATE)?.parse().ok())
        .ok_or_else(|| Msg::new("train.checkpoint.not_ours").arg("path", &name))?;
    let mut schedule = None;
    let mut state = State::new(HashMap::new());
    state.update = update;
    let mut losses = Vec::new();
    for (tensor, view) in tensors.iter() {
        let numbers: Vec<f64> = match view.dtype() {
            Dtype::F64 => chunks(view.data(), f64::from_le_bytes),
            Dtype::F32 => chunks(view.data(), |b| f64::from(f32::from_le_bytes(b))),
            other => {
                return Err(Msg::new("train.checkpoint.dtype")
                    .arg("path", &name)
                    .arg("name", escape(tensor))
                    .arg("dtype", format!("{other:?}")));
            }
        };
        if tensor == LOSSES {
            losses = numbers;
            continue;
        }
        if tensor == SCHEDULE {
            schedule = numbers.first().map(|over| *over as u64);
            continue;
        }
        if view.shape().len() > crate::tensor::MAX_RANK {
            return Err(unreadable(&format!("{} has {} axes", escape(tensor), view.shape().len())));
        }
        let data: Vec<T> = numbers.into_iter().map(T::from_f64).collect();
        let value = Value::Float(Tensor::new(Shape::new(view.shape()), data));
        state.values.insert(Arc::from(tensor), value);
    }
    Ok((state, losses, schedule))
}

fn chunks<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    let (all, _) = bytes.as_chunks::<N>();
    all.iter().map(|&b| read(b)).collect()
}
