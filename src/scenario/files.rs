//! A file of weights as it is looked into: names, shapes and number types at once, numbers when a parameter is filled.
//!
//! safetensors files stay mapped in their own number type; the shards of an index are one file; npz archives are read.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::path::Path;

use rayon::prelude::*;
use serde::Deserialize;

use super::rewrite::Plan;
use super::tensors::{Number, Stored, Tensors, read_tensors};
use crate::tensor::Real;
use crate::text::{Msg, escape};

/// The bytes of a file.
#[derive(Debug)]
pub enum Bytes {
    /// Read into memory.
    Read(Vec<u8>),
    /// Mapped.
    Mapped(memmap2::Mmap),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::Read(bytes)
    }
}

impl Bytes {
    /// Maps a file; empty ones are no map.
    ///
    /// # Errors
    /// Those of the system.
    pub fn map(file: &std::fs::File) -> std::io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::Read(Vec::new()));
        }
        // SAFETY: the map is only read, and only as bytes, of which every pattern is a value. Who cuts the file while it
        // is mapped ends the program by a signal of the system, as with every program that maps files; no memory of
        // this process is touched.
        Ok(Bytes::Mapped(unsafe { memmap2::Mmap::map(file)? }))
    }
}

/// What is known of a tensor without reading it.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its shape.
    pub dims: Vec<usize>,
    /// The type of its elements; the type's name where they are no numbers for weights.
    pub stored: Result<Stored, String>,
    place: Option<(usize, Range<usize>, Number)>,
}

/// A file of weights, or all shards of one.
#[derive(Debug)]
pub struct Weighty<T: Real> {
    tensors: BTreeMap<String, Info>,
    buffers: Vec<Bytes>,
    read: Option<Tensors<T>>,
}

/// The index of a checkpoint in shards.
#[derive(Deserialize)]
struct ShardIndex {
    weight_map: BTreeMap<String, String>,
}

/// Whether a name is that of an index of shards.
pub fn is_index(name: &str) -> bool {
    name.ends_with(".index.json")
}

impl<T: Real> Weighty<T> {
    /// The file called `name`; `open` gives the bytes of a file by name.
    ///
    /// # Errors
    /// What is broken, and where.
    pub fn open(name: &str, open: &dyn Fn(&str) -> Result<Bytes, Msg>) -> Result<Self, Msg> {
        let mut all = Self { tensors: BTreeMap::new(), buffers: Vec::new(), read: None };
        if is_index(name) {
            all.shards(name, &open(name)?, open)?;
        } else {
            all.add(name, open(name)?)?;
        }
        Ok(all)
    }

    fn shards(&mut self, name: &str, index: &[u8], open: &dyn Fn(&str) -> Result<Bytes, Msg>) -> Result<(), Msg> {
        let index: ShardIndex = serde_json::from_slice(index).map_err(|e| broken(name, &e.to_string()))?;
        let files: std::collections::BTreeSet<&String> = index.weight_map.values().collect();
        for file in files {
            // A shard lies next to its index; anything else would read files that nobody named.
            if Path::new(file).file_name().is_none_or(|f| f != file.as_str()) {
                return Err(Msg::new("weights.shard_path").arg("file", escape(name)).arg("shard", escape(file)));
            }
            let path = Path::new(name).with_file_name(file).to_string_lossy().into_owned();
            self.add(&path, open(&path)?)?;
        }
        match index.weight_map.iter().find(|(tensor, _)| !self.tensors.contains_key(*tensor)) {
            Some((tensor, file)) => {
                Err(Msg::new("weights.not_in_shard").arg("name", escape(tensor)).arg("file", escape(file)))
            }
            None => Ok(()),
        }
    }

    fn add(&mut self, name: &str, bytes: Bytes) -> Result<(), Msg> {
        let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
        if extension == "npz" {
            let read = read_tensors::<T>(name, &bytes)?;
            for (key, tensor) in &read.numbers {
                let stored = read.stored.get(key).copied().unwrap_or(Stored::F64);
                let info = Info { dims: tensor.shape().dims().to_vec(), stored: usable(stored), place: None };
                self.tensors.insert(key.clone(), info);
            }
            for (key, kind) in &read.unreadable {
                let info = Info { dims: Vec::new(), stored: Err(kind.clone()), place: None };
                self.tensors.insert(key.clone(), info);
            }
            self.read = Some(read);
            return Ok(());
        }
        let (header, metadata) =
            safetensors::SafeTensors::read_metadata(&bytes).map_err(|e| broken(name, &e.to_string()))?;
        // The header is a length of eight bytes and that many.
        let start = header + 8;
        if bytes.len() - start < metadata.data_len() {
            return Err(Msg::new("weights.cut_short")
                .arg("file", escape(name))
                .arg("wanted", start + metadata.data_len())
                .arg("found", bytes.len()));
        }
        for (key, info) in metadata.tensors() {
            let number = Number::of(info.dtype);
            let place = number.map(|number| {
                (self.buffers.len(), start + info.data_offsets.0..start + info.data_offsets.1, number)
            });
            let stored = number.map_or_else(|| Err(format!("{:?}", info.dtype)), |n| usable(n.stored()));
            self.tensors.insert(key, Info { dims: info.shape.clone(), stored, place });
        }
        self.buffers.push(bytes);
        Ok(())
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
        let (buffer, range, number) = self.tensors.get(name)?.place.as_ref()?;
        let bytes = &self.buffers[*buffer][range.clone()];
        let mut out = vec![T::default(); bytes.len() / number.width()];
        number.widen(bytes, &mut out);
        Some(out)
    }

    /// Fills `out` with a tensor as `plan` rewrites it. Nothing where there is no such tensor of numbers.
    ///
    /// # Panics
    /// Where `out` has another length than the plan.
    pub fn fill(&self, name: &str, plan: &Plan, out: &mut [T]) {
        assert_eq!(out.len(), plan.dims().iter().product::<usize>(), "a slice of the plan's length");
        let each = |out: &mut [T], read: &(dyn Fn(usize) -> f64 + Sync)| {
            out.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
                for (j, x) in chunk.iter_mut().enumerate() {
                    *x = T::from_f64(plan.element(i * CHUNK + j, read));
                }
            });
        };
        match (&self.read, self.tensors.get(name).and_then(|info| info.place.as_ref())) {
            (Some(read), _) => {
                if let Some(tensor) = read.numbers.get(name) {
                    each(out, &|at| tensor.data()[at].to_f64());
                }
            }
            (None, Some((buffer, range, number))) => {
                let bytes = &self.buffers[*buffer][range.clone()];
                if plan.is_plain() {
                    let width = number.width();
                    out.par_chunks_mut(CHUNK).zip(bytes.par_chunks(CHUNK * width)).for_each(|(out, bytes)| {
                        number.widen(bytes, out);
                    });
                } else {
                    each(out, &|at| number.at(bytes, at));
                }
            }
            (None, None) => {}
        }
    }
}

/// Elements that one task widens.
const CHUNK: usize = 1 << 15;

fn usable(stored: Stored) -> Result<Stored, String> {
    match stored {
        Stored::Small(name) => Err(name.to_owned()),
        other => Ok(other),
    }
}

fn broken(name: &str, why: &str) -> Msg {
    Msg::new("weights.broken_file").arg("file", escape(name)).arg("why", escape(why))
}
