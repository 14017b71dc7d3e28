//! A file of weights as it is looked into: names, shapes and number types at once, numbers when a parameter is filled.
//!
//! safetensors and GGUF files stay mapped in their own number type; the shards of an index are one file; npz archives are
//! read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use safetensors::Dtype;
use serde::Deserialize;

use super::guard::{self, Kind};
use super::rewrite::Plan;
use super::tensors::{Stored, Tensors, read_wanted};
use crate::source::gguf::Gguf;
use crate::source::tensor_file::widen;
use crate::source::{Mapped, NumberType, TensorFile};
use crate::tensor::mapped::forget;
use crate::tensor::{Precision, Real};
use crate::text::{Msg, escape};

/// What is known of a tensor without reading it.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its shape.
    pub dims: Vec<usize>,
    /// `Err`: its elements are no numbers for weights; the name of their type.
    pub usable: Result<(), String>,
    /// Which of the files.
    file: usize,
}

/// A file of weights, or all shards of one.
#[derive(Debug)]
pub struct Weighty<T: Real> {
    tensors: BTreeMap<String, Info>,
    files: Vec<TensorFile>,
    read: Option<Tensors<T>>,
}

/// The index of a checkpoint in shards.
#[derive(Deserialize)]
struct ShardIndex {
    weight_map: BTreeMap<String, String>,
}

impl<T: Real> Weighty<T> {
    /// The file called `name`, at the path that `locate` gives. Of an archive only the arrays for whose names `wanted`
    /// holds are unpacked.
    ///
    /// # Errors
    /// What is broken, and where.
    pub fn open(
        name: &str,
        locate: &dyn Fn(&str) -> Result<PathBuf, Msg>,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Self, Msg> {
        let mut all = Self { tensors: BTreeMap::new(), files: Vec::new(), read: None };
        if name.ends_with(".index.json") {
            all.shards(name, locate, wanted)?;
        } else {
            all.add(name, &locate(name)?, wanted)?;
        }
        Ok(all)
    }

    fn shards(
        &mut self,
        name: &str,
        locate: &dyn Fn(&str) -> Result<PathBuf, Msg>,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), Msg> {
        let bytes = Mapped::open(&locate(name)?)?;
        let index: ShardIndex = serde_json::from_slice(&bytes).map_err(|e| broken(name, &e.to_string()))?;
        let files: BTreeSet<&String> = index.weight_map.values().collect();
        for file in files {
            // A shard is next to its index; anything else would read files that nobody named.
            if Path::new(file).file_name().is_none_or(|f| f != file.as_str()) {
                return Err(Msg::new("weights.shard_path").arg("file", escape(name)).arg("shard", escape(file)));
            }
            let path = Path::new(name).with_file_name(file).to_string_lossy().into_owned();
            self.add(&path, &locate(&path)?, wanted)?;
        }
        match index.weight_map.iter().find(|(tensor, _)| !self.tensors.contains_key(*tensor)) {
            Some((tensor, file)) => {
                Err(Msg::new("weights.not_in_shard").arg("name", escape(tensor)).arg("file", escape(file)))
            }
            None => Ok(()),
        }
    }

    fn add(&mut self, name: &str, path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<(), Msg> {
        let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
        let mapped = Mapped::open(path)?;
        match guard::kind(name, &mapped) {
            None | Some(Kind::Safetensors | Kind::Npz | Kind::Gguf) => {}
            Some(other) => return Err(other.msg(name)),
        }
        let file = self.files.len();
        if extension == "npz" {
            let read = read_wanted::<T>(name, &mapped, wanted)?;
            for (key, tensor) in &read.numbers {
                let usable = match read.stored.get(key) {
                    Some(Stored::Small(kind)) => Err((*kind).to_owned()),
                    _ => Ok(()),
                };
                self.tensors.insert(key.clone(), Info { dims: tensor.shape().dims().to_vec(), usable, file });
            }
            for (key, kind) in &read.unreadable {
                self.tensors.insert(key.clone(), Info { dims: Vec::new(), usable: Err(kind.clone()), file });
            }
            for key in &read.skipped {
                self.tensors.insert(key.clone(), Info { dims: Vec::new(), usable: Err("?".to_owned()), file });
            }
            self.read = Some(read);
            return Ok(());
        }
        let opened = TensorFile::open(path)?;
        for entry in opened.entries() {
            let usable = match entry.number_type {
                NumberType::Ggml(_)
                | NumberType::Plain(Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16 | Dtype::I64 | Dtype::I32) => {
                    Ok(())
                }
                NumberType::Plain(other) => Err(format!("{other:?}")),
            };
            self.tensors.insert(entry.name.clone(), Info { dims: entry.shape.clone(), usable, file });
        }
        self.files.push(opened);
        Ok(())
    }

    /// What a GGUF file says before its tensors.
    pub fn gguf(&self) -> Option<&Gguf> {
        self.files.first()?.gguf.as_ref()
    }

    /// Names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// What is known of a tensor.
    pub fn info(&self, name: &str) -> Option<&Info> {
        self.tensors.get(name)
    }

    /// All numbers of a tensor, of whatever type; `None` where it has none.
    pub fn numbers(&self, name: &str) -> Option<Vec<T>> {
        if let Some(read) = &self.read {
            return read.numbers.get(name).map(|tensor| tensor.data().to_vec());
        }
        let file = &self.files[self.tensors.get(name)?.file];
        let entry = file.get(name)?;
        let bytes = file.bytes(entry);
        // Elements and bytes of what can be widened by itself.
        let (elements, size) = match entry.number_type {
            NumberType::Plain(t) => (1, t.bitsize() / 8),
            NumberType::Ggml(t) => t.block(),
        };
        if size == 0 {
            return None;
        }
        let mut out = vec![T::default(); bytes.len() / size * elements];
        let known = AtomicBool::new(true);
        in_chunks(&mut out, elements, CHUNK, |from, out| {
            let (from, count) = (from / elements * size, out.len() / elements * size);
            let mut cells = out.iter_mut();
            let read = widen(entry.number_type, &bytes[from..from + count], |x| {
                if let Some(cell) = cells.next() {
                    *cell = T::from_f64(x);
                }
            });
            if !read {
                known.store(false, Ordering::Relaxed);
            }
        });
        self.let_go(name);
        known.into_inner().then_some(out)
    }

    /// The bytes of a tensor are not looked at again: a copy of its numbers is used from now on.
    fn let_go(&self, name: &str) {
        let Some(file) = self.tensors.get(name).and_then(|info| self.files.get(info.file)) else { return };
        if let (Some(map), Some(entry)) = (file.file().map(), file.get(name)) {
            forget(map, entry.range.clone());
        }
    }

    /// The numbers of a tensor where they are in the file; `None` where they are of another type there, or not aligned.
    pub fn in_place(&self, name: &str) -> Option<crate::tensor::mapped::Mapped<T>> {
        let file = &self.files[self.tensors.get(name).filter(|_| self.read.is_none())?.file];
        let entry = file.get(name)?;
        let stored = match T::PRECISION {
            Precision::F32 => Dtype::F32,
            Precision::F64 => Dtype::F64,
        };
        let same = entry.number_type == NumberType::Plain(stored) && entry.range.len() % size_of::<T>() == 0;
        let map = file.file().map().filter(|_| same)?;
        crate::tensor::mapped::Mapped::new(map, entry.range.start, entry.range.len() / size_of::<T>())
    }

    /// Whether numbers are read from the file when they are requested, not before.
    pub fn is_mapped(&self) -> bool {
        self.read.is_none()
    }

    /// The numbers of a tensor as `plan` rewrites it; `None` where it has none.
    pub fn rewritten(&self, name: &str, plan: &Plan) -> Option<Vec<T>> {
        let mapped = self.in_place(name).filter(|_| !plan.is_plain());
        let read = if mapped.is_some() { Vec::new() } else { self.numbers(name)? };
        if plan.is_plain() {
            return Some(read);
        }
        let numbers = mapped.as_ref().map_or(&read[..], |mapped| mapped.as_slice());
        let mut out = vec![T::default(); plan.dims().iter().product()];
        if let Some((rows, columns)) = plan.transposes().filter(|_| !out.is_empty()) {
            in_chunks(&mut out, columns, CHUNK, |from, out| transpose(numbers, rows, from / columns, columns, out));
        } else {
            in_chunks(&mut out, 1, CHUNK, |from, out| {
                for (i, cell) in out.iter_mut().enumerate() {
                    *cell = T::from_f64(plan.element(from + i, |at| numbers[at].to_f64()));
                }
            });
        }
        if mapped.is_some() {
            self.let_go(name);
        }
        Some(out)
    }
}

/// Rows from `first` on of the matrix `[.., columns]` that is the transposed `[columns, rows]`, in tiles that stay in
/// cache.
fn transpose<T: Copy>(numbers: &[T], rows: usize, first: usize, columns: usize, out: &mut [T]) {
    const TILE: usize = 32;
    for (block, out) in out.chunks_mut(TILE * columns).enumerate() {
        let row = first + block * TILE;
        let height = out.len() / columns;
        for column in (0..columns).step_by(TILE) {
            for j in column..(column + TILE).min(columns) {
                let from = &numbers[j * rows + row..][..height];
                for (i, x) in from.iter().enumerate() {
                    out[i * columns + j] = *x;
                }
            }
        }
    }
}

/// Elements that are worth a thread.
const CHUNK: usize = 1 << 18;

/// Fills `out` in parts of whole blocks of `block` elements, of which `worth` are worth a thread, each with the index of its first element, on all cores. In
/// threads of its own: weights are widened while others wait for them, and a job of the shared pool could be one of those.
pub(super) fn in_chunks<T: Send>(out: &mut [T], block: usize, worth: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = (out.len() / worth).clamp(1, cores);
    let each = out.len().div_ceil(parts).next_multiple_of(block).max(1);
    if parts == 1 {
        return fill(0, out);
    }
    std::thread::scope(|scope| {
        for (i, part) in out.chunks_mut(each).enumerate() {
            let fill = &fill;
            scope.spawn(move || fill(i * each, part));
        }
    });
}

fn broken(name: &str, why: &str) -> Msg {
    Msg::new("weights.broken_file").arg("file", escape(name)).arg("why", escape(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_matrix_is_made_in_tiles() {
        for (rows, columns) in [(1, 1), (1, 70), (70, 1), (33, 45), (64, 96)] {
            let numbers: Vec<usize> = (0..rows * columns).collect();
            let mut out = vec![0; numbers.len()];
            in_chunks(&mut out, columns, 7, |from, out| transpose(&numbers, rows, from / columns, columns, out));
            let wanted = (0..rows).flat_map(|i| (0..columns).map(move |j| j * rows + i));
            assert!(out.into_iter().eq(wanted), "{rows} × {columns}");
        }
    }
}
