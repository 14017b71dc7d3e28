//! Opening a trace folder: what is whole is opened, what is not is named.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::{FORMAT, JOURNAL, MANIFEST, Manifest, PartEntry, VERSION, WeightEntry};
use crate::parallel;
use crate::program::{NodeId, Program};
use crate::source::measures::MEASURES;
use crate::source::recording::{Recorded, Recording};
use crate::tensor::{Real, Shape, Value};
use crate::text::{Msg, escape};
use crate::trace::{Home, ValueSource};

/// Largest file of text in a folder.
const LARGEST_TEXT: u64 = 1 << 30;

/// Folders up to this size are verified when they are opened; parts of larger ones when they are looked at.
const VERIFIED_AT_ONCE: u64 = 128 << 20;

/// A part that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Its file.
    pub file: String,
    /// What is wrong with it.
    pub why: Msg,
}

/// An opened folder.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// What it says it is.
    pub manifest: Manifest,
    /// Parts that are whole, by name, with their tensors.
    parts: HashMap<String, Arc<Part>>,
    /// The others.
    pub damaged: Vec<Damaged>,
}

/// A part and its tensors by name.
#[derive(Debug)]
struct Part {
    entry: PartEntry,
    tensors: HashMap<String, Recorded>,
    /// Whether its checksum was found right or wrong.
    verified: OnceLock<bool>,
    /// Where it is, where it holds text and no tensors.
    text: Option<PathBuf>,
}

impl Part {
    /// Whether its bytes are those that were written. Read once.
    fn is_right(&self) -> bool {
        if let Some(known) = self.verified.get() {
            return *known;
        }
        let right = if let Some(path) = &self.text {
            text(path).is_ok_and(|bytes| crc32fast::hash(&bytes) == self.entry.crc32)
        } else {
            let map = self.tensors.values().find_map(Recorded::range).map(|r| r.0);
            map.is_none_or(|map| crc32(map) == self.entry.crc32)
        };
        // Whoever was first: nobody waits for a thread that does this in the background.
        *self.verified.get_or_init(|| right)
    }
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// Where it has no manifest that can be read, or one of a newer version.
    pub fn open(path: &Path) -> Result<Self, Msg> {
        let broken = |file: &str, why: String| {
            Msg::new("trace.broken")
                .arg("folder", escape(&path.to_string_lossy()))
                .arg("file", file)
                .arg("why", escape(&why))
        };
        let text = text(&path.join(MANIFEST)).map_err(|why| broken(MANIFEST, why))?;
        let mut manifest: Manifest = serde_json::from_slice(&text).map_err(|e| broken(MANIFEST, e.to_string()))?;
        if manifest.format != FORMAT {
            return Err(broken(MANIFEST, format!("format {:?}", manifest.format)));
        }
        if manifest.version > VERSION {
            let msg = Msg::new("trace.newer").arg("folder", escape(&path.to_string_lossy()));
            return Err(msg.arg("version", manifest.version).arg("known", VERSION));
        }
        if !manifest.complete {
            manifest.parts = journal(path);
        }
        let mut out = Self { path: path.to_owned(), manifest, parts: HashMap::new(), damaged: Vec::new() };
        let all: u64 = out.manifest.parts.iter().fold(0, |sum: u64, p| sum.saturating_add(p.bytes));
        for entry in out.manifest.parts.clone() {
            let read = part(path, &entry).and_then(|part| {
                let fine = all > VERIFIED_AT_ONCE || part.is_right();
                if fine { Ok(part) } else { Err(Msg::new("trace.part.checksum")) }
            });
            match read {
                Ok(part) => drop(out.parts.insert(entry.file, Arc::new(part))),
                Err(why) => out.damaged.push(Damaged { file: entry.file, why }),
            }
        }
        Ok(out)
    }

    /// A file of text in the folder, its checksum verified.
    ///
    /// # Errors
    /// Where it cannot be read, or is not what was written.
    pub fn text(&self, name: &str) -> Result<Vec<u8>, Msg> {
        let broken = |why: String| {
            Msg::new("trace.broken")
                .arg("folder", escape(&self.path.to_string_lossy()))
                .arg("file", name)
                .arg("why", escape(&why))
        };
        text(&self.path.join(name)).map_err(broken)
    }

    /// The tensor `name` of the parts whose file begins with `prefix`.
    fn find(&self, prefix: &str, name: &str) -> Option<(&Arc<Part>, &Recorded)> {
        let mut parts = self.parts.iter().filter(|(file, _)| file.starts_with(prefix));
        parts.find_map(|(_, part)| Some((part, part.tensors.get(name)?)))
    }

    /// The tensor `name` of the parts whose file begins with `prefix`, where their checksum is right.
    pub fn tensor(&self, prefix: &str, name: &str) -> Option<Recorded> {
        let (part, tensor) = self.find(prefix, name)?;
        part.is_right().then(|| tensor.clone())
    }

    /// Names of all tensors in the parts whose file begins with `prefix`.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let parts = self.parts.iter().filter(|(file, _)| file.starts_with(prefix));
        parts.flat_map(|(_, part)| part.tensors.keys().cloned()).collect()
    }

    /// Where the values of a run are: those of its own parts, and of the weights for parameters.
    pub fn source(&self, run: usize, program: &Program, weights: &HashMap<String, Recorded>) -> FolderSource {
        let prefix = format!("run{run}-");
        let mut by_name: HashMap<&str, (&Arc<Part>, &Recorded)> = HashMap::new();
        for (_, part) in self.parts.iter().filter(|(file, _)| file.starts_with(&prefix)) {
            by_name.extend(part.tensors.iter().map(|(name, t)| (name.as_str(), (part, t))));
        }
        let one = |node: &crate::program::Node| {
            let (part, tensor) = match by_name.get(&*node.path) {
                Some((part, tensor)) => (Some(Arc::clone(part)), *tensor),
                None => (None, weights.get(&*node.path)?),
            };
            let fits = tensor.shape.same_dims(&node.shape) && tensor.dtype() == node.dtype;
            fits.then(|| Kept { part, tensor: tensor.clone(), shape: node.shape })
        };
        let nodes = program.nodes().map(|(_, node)| one(node)).collect();
        FolderSource { nodes, measures: self.path.join(MEASURES) }
    }

    /// Verifies every part; gives those that are not as they were written, and how many are right.
    pub fn verify(&self) -> (usize, Vec<Damaged>) {
        let mut damaged = self.damaged.clone();
        let mut right = 0;
        for entry in &self.manifest.parts {
            match self.parts.get(&entry.file) {
                Some(part) if part.is_right() => right += 1,
                Some(_) => {
                    damaged.push(Damaged { file: entry.file.clone(), why: Msg::new("trace.part.checksum") });
                }
                None => {}
            }
        }
        for (weight, found) in self.referred() {
            match found {
                Ok(tensor) if checksum(&tensor) == Some(weight.crc32) => right += 1,
                Ok(_) => damaged.push(Damaged {
                    file: weight.file.clone(),
                    why: Msg::new("trace.weight.changed").arg("path", escape(&weight.path)),
                }),
                Err(why) => damaged.push(Damaged { file: weight.file.clone(), why }),
            }
        }
        (right, damaged)
    }

    /// The parameters: those in the folder, and those in files of their own. What cannot be read is named.
    pub fn weights(&self) -> (HashMap<String, Recorded>, Vec<Damaged>) {
        let mut out: HashMap<String, Recorded> = HashMap::new();
        for (file, part) in &self.parts {
            if file.starts_with("weights-") {
                out.extend(part.tensors.iter().map(|(name, t)| (name.clone(), t.clone())));
            }
        }
        let mut lost: Vec<Damaged> = Vec::new();
        for (weight, found) in self.referred() {
            match found {
                Ok(tensor) => drop(out.insert(weight.path.clone(), tensor)),
                Err(why) if lost.iter().any(|l| l.file == weight.file) => drop(why),
                Err(why) => lost.push(Damaged { file: weight.file.clone(), why }),
            }
        }
        (out, lost)
    }

    /// The parameters that are in files of their own. Each file is opened and indexed once, however many it has.
    fn referred(&self) -> Vec<(&WeightEntry, Result<Recorded, Msg>)> {
        let mut files: HashMap<(&str, u64), Result<HashMap<String, Recorded>, Msg>> = HashMap::new();
        let mut out = Vec::with_capacity(self.manifest.weights.len());
        for weight in &self.manifest.weights {
            let indexed = || {
                let file = opened(&self.path, weight)?;
                Ok(file.tensors.into_iter().map(|t| (t.name.clone(), t)).collect())
            };
            let found = match files.entry((&weight.file, weight.file_bytes)).or_insert_with(indexed) {
                Ok(tensors) => tensors.get(&weight.tensor).cloned().ok_or_else(|| Msg::new("trace.weight.gone")),
                Err(why) => Err(why.clone()),
            };
            out.push((weight, found));
        }
        out
    }
}

/// CRC-32, on all cores.
fn crc32(bytes: &[u8]) -> u32 {
    const PIECE: usize = 2 << 20;
    let piece = |i: usize| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[i * PIECE..bytes.len().min((i + 1) * PIECE)]);
        hasher
    };
    let mut all = crc32fast::Hasher::new();
    for piece in parallel::map(bytes.len().div_ceil(PIECE), piece) {
        all.combine(&piece);
    }
    all.finalize()
}

/// CRC-32 of a tensor's bytes, where they lie in its file as they are.
pub(crate) fn checksum(tensor: &Recorded) -> Option<u32> {
    let (map, range) = tensor.range()?;
    Some(crc32(map.get(range)?))
}

/// Where a file of weights is: where it was, else next to the folder or in it, where both were moved.
fn located(folder: &Path, file: &str) -> PathBuf {
    let there = folder.join(file);
    let name = there.file_name().map(ToOwned::to_owned).unwrap_or_default();
    let moved = [folder.parent(), Some(folder)].into_iter().flatten().map(|f| f.join(&name));
    if there.is_file() { there } else { moved.into_iter().find(|p| p.is_file()).unwrap_or(there) }
}

/// A file of weights that a folder refers to.
fn opened(folder: &Path, weight: &WeightEntry) -> Result<Recording, Msg> {
    let path = located(folder, &weight.file);
    let length = fs::metadata(&path).map(|m| m.len()).map_err(|_| Msg::new("trace.weight.gone"))?;
    if length != weight.file_bytes {
        return Err(Msg::new("trace.weight.length").arg("found", length).arg("wanted", weight.file_bytes));
    }
    Recording::open(&path)
}

/// Parts whose line in the list of finished parts is whole.
fn journal(folder: &Path) -> Vec<PartEntry> {
    let text = text(&folder.join(JOURNAL)).unwrap_or_default();
    text.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// A regular file that is no link, up to a limit.
fn text(path: &Path) -> Result<Vec<u8>, String> {
    let meta = fs::symlink_metadata(path).map_err(|e| e.to_string())?;
    if !meta.is_file() || meta.len() > LARGEST_TEXT {
        return Err("not a file of this kind".to_owned());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|e| e.to_string())?;
    file.take(LARGEST_TEXT).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// Opens a part: a file of the folder itself, no link, of the length that was written.
fn part(folder: &Path, entry: &PartEntry) -> Result<Part, Msg> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !entry.file.chars().all(plain) || entry.file.starts_with('.') {
        return Err(Msg::new("trace.part.name"));
    }
    let path = folder.join(&entry.file);
    let meta = fs::symlink_metadata(&path).map_err(|_| Msg::new("trace.part.gone"))?;
    if !meta.is_file() {
        return Err(Msg::new("trace.part.link"));
    }
    if meta.len() != entry.bytes {
        return Err(Msg::new("trace.part.length").arg("found", meta.len()).arg("wanted", entry.bytes));
    }
    if path.extension().is_some_and(|e| e == "json") {
        let tensors = HashMap::new();
        return Ok(Part { entry: entry.clone(), tensors, verified: OnceLock::new(), text: Some(path) });
    }
    let file = Recording::open(&path)?;
    if file.tensors.len() != entry.tensors {
        return Err(Msg::new("trace.part.tensors").arg("found", file.tensors.len()).arg("wanted", entry.tensors));
    }
    let tensors = file.tensors.into_iter().map(|t| (t.name.clone(), t)).collect();
    Ok(Part { entry: entry.clone(), tensors, verified: OnceLock::new(), text: None })
}

/// A value that the folder holds.
#[derive(Debug)]
struct Kept {
    /// The part it is in; none for a parameter in a file of its own.
    part: Option<Arc<Part>>,
    tensor: Recorded,
    shape: Shape,
}

/// The values of a run of a folder.
#[derive(Debug)]
pub struct FolderSource {
    nodes: Vec<Option<Kept>>,
    /// The folder for what is found out about them.
    measures: PathBuf,
}

impl FolderSource {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.nodes.iter().flatten().count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Real> ValueSource<T> for FolderSource {
    fn has(&self, id: NodeId) -> bool {
        self.nodes.get(id.index()).is_some_and(Option::is_some)
    }

    fn read(&self, id: NodeId) -> Option<Value<T>> {
        let kept = self.nodes.get(id.index())?.as_ref()?;
        let right = kept.part.as_ref().is_none_or(|part| part.is_right());
        right.then(|| kept.tensor.read()).flatten().map(|value: Value<T>| value.reshaped(kept.shape))
    }

    fn read_ahead(&self, id: NodeId) {
        let Some(kept) = self.nodes.get(id.index()).and_then(Option::as_ref) else { return };
        kept.tensor.read_ahead();
        if let Some(part) = &kept.part {
            part.is_right();
        }
    }

    fn home(&self, id: NodeId) -> Option<Home> {
        let entry = &self.nodes.get(id.index())?.as_ref()?.part.as_ref()?.entry;
        let stamp = format!("{}, {} bytes, {:08x}", entry.file, entry.bytes, entry.crc32);
        Some(Home { measures: self.measures.clone(), stamp })
    }
}
