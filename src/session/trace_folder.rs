//! A session whose runs are kept in a folder, written as they go.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use super::{AnyBindings, Inputs, Run, RunKind, Session};
use crate::model::Outputs;
use crate::model::params::ParamSpec;
use crate::program::{Blob, Leaf, NodeId, Op, Program, ProgramDoc};
use crate::scenario;
use crate::scenario::tokenise::Vocab;
use crate::scenario::weights::Coverage;
use crate::source::measures::MEASURES;
use crate::source::recording::{Dtype, Recorded, Recording};
use crate::source::trace::{
    Class, FORMAT, MANIFEST, Manifest, PartWriter, Planned, RunEntry, SESSION, STEPS, VERSION, WeightEntry, Writer,
    checksum, entry,
};
use crate::tensor::{Precision, Real, Shape, Value};
use crate::text::{Lang, Msg, escape};
use crate::trace::{
    Bindings, ChainSink, Flow, Keep, PinnedSink, Rounder, Rounding, RunError, Settings, Sink, run_with,
};
use crate::with_any;

/// Bytes of numbers in a part.
const PART_BYTES: usize = 32 << 20;

/// What to keep.
#[derive(Clone, Debug, Default)]
pub struct RecordOptions {
    /// Only this run; those that the walkthrough shows unless given.
    pub run: Option<usize>,
    /// Only nodes whose path one of these globs fits; the others are computed when they are looked at.
    pub only: Vec<String>,
    /// Parameters of files are kept in the folder too.
    pub with_weights: bool,
    /// Replace a trace that is there.
    pub overwrite: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Values of nodes.
    pub nodes: usize,
    /// Bytes of all parts.
    pub bytes: u64,
    /// Parts.
    pub parts: usize,
    /// Parameters that are kept by reference to their file.
    pub referred: usize,
}

/// A run in `session.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct RunDoc {
    pub(super) name: String,
    pub(super) kind: RunKind,
    pub(super) outputs: Outputs,
    /// Which of the inputs.
    pub(super) inputs: usize,
    pub(super) program: ProgramDoc,
}

/// `session.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct SessionDoc {
    /// The scenario, in RON.
    pub(super) scenario: String,
    pub(super) origin: Option<PathBuf>,
    pub(super) precision: Precision,
    /// How the runs rounded every number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rounding: Option<Rounding>,
    pub(super) detail: crate::walkthrough::Detail,
    pub(super) updates: u64,
    pub(super) specs: Vec<ParamSpec>,
    pub(super) coverage: Coverage,
    pub(super) source_words: Vocab,
    pub(super) target_words: Vocab,
    pub(super) inputs: Vec<Inputs>,
    pub(super) runs: Vec<RunDoc>,
}

/// Paths of nodes that are kept.
///
/// # Errors
/// A glob that is none.
pub fn globs(only: &[String]) -> Result<GlobSet, Msg> {
    let wrong = |glob: &str, e: &globset::Error| {
        Msg::new("record.glob").arg("glob", escape(glob)).arg("why", escape(&e.to_string()))
    };
    let mut set = GlobSetBuilder::new();
    for glob in only {
        set.add(Glob::new(glob).map_err(|e| wrong(glob, &e))?);
    }
    set.build().map_err(|e| wrong("", &e))
}

/// An error of the system while a folder is written.
fn unwritten(folder: &Path, e: &io::Error) -> Msg {
    Msg::new("record.failed").arg("folder", escape(&folder.to_string_lossy())).arg("why", escape(&e.to_string()))
}

/// Makes sure of a folder that can be written: an empty one, or one with a trace, where that may be replaced. Says
/// whether there is one.
fn is_taken(folder: &Path, overwrite: bool) -> Result<bool, Msg> {
    let failed = |e: io::Error| unwritten(folder, &e);
    fs::create_dir_all(folder).map_err(failed)?;
    let there: Vec<PathBuf> =
        fs::read_dir(folder).map_err(failed)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(failed)?;
    if there.is_empty() {
        return Ok(false);
    }
    let name = |p: &PathBuf| p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let ours = |p: &PathBuf| {
        let name = name(p);
        let name = name.strip_suffix(".part").unwrap_or(&name);
        let part = ["run", "weights-", "constants-"].iter().any(|start| name.starts_with(start));
        [MANIFEST, SESSION, STEPS, crate::source::trace::JOURNAL].contains(&name)
            || part && name.ends_with(".safetensors")
            || name == MEASURES && fs::symlink_metadata(p).is_ok_and(|m| m.is_dir())
    };
    let folder_name = escape(&folder.to_string_lossy()).into_owned();
    if !crate::source::trace::is_trace_folder(folder) || !there.iter().all(ours) {
        return Err(Msg::new("record.not_empty").arg("folder", folder_name));
    }
    if !overwrite {
        return Err(Msg::new("export.file.exists").arg("path", folder_name));
    }
    Ok(true)
}

/// Where a trace is written that is to replace one, and where that one is put meanwhile: next to it.
fn beside(folder: &Path) -> [PathBuf; 2] {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    ["new", "old"].map(|end| folder.with_file_name(format!(".tui-transformer-{name}-{end}.part")))
}

/// Parts of one kind, begun and ended as their tensors come.
struct Parts<'w> {
    writer: &'w mut Writer,
    prefix: String,
    /// Tensors of the parts to come, by class.
    plan: BTreeMap<Class, VecDeque<Vec<Planned>>>,
    open: BTreeMap<Class, PartWriter>,
    begun: BTreeMap<Class, usize>,
}

impl<'w> Parts<'w> {
    /// Parts that hold `tensors`, in this order.
    fn new(writer: &'w mut Writer, prefix: &str, tensors: impl Iterator<Item = (Class, Planned)>) -> Self {
        let mut plan: BTreeMap<Class, VecDeque<Vec<Planned>>> = BTreeMap::new();
        let mut sizes: BTreeMap<Class, usize> = BTreeMap::new();
        for (class, tensor) in tensors {
            let bytes = tensor.shape.len() * class.size();
            let (list, size) = (plan.entry(class).or_default(), sizes.entry(class).or_default());
            if list.is_empty() || *size + bytes > PART_BYTES {
                list.push_back(Vec::new());
                *size = 0;
            }
            *size += bytes;
            if let Some(last) = list.back_mut() {
                last.push(tensor);
            }
        }
        Self { writer, prefix: prefix.to_owned(), plan, open: BTreeMap::new(), begun: BTreeMap::new() }
    }

    /// Writes the next tensor of a class; gives the part that it is in.
    fn put(&mut self, class: Class, write: impl FnOnce(&mut PartWriter) -> io::Result<()>) -> io::Result<String> {
        let mut part = if let Some(part) = self.open.remove(&class) {
            part
        } else {
            let number = self.begun.entry(class).or_insert(0);
            *number += 1;
            let tensors = self.plan.get_mut(&class).and_then(VecDeque::pop_front).unwrap_or_default();
            self.writer.part(&format!("{}-{number:05}", self.prefix), class, &tensors)?
        };
        write(&mut part)?;
        let name = part.name().to_owned();
        if part.is_full() {
            self.writer.finish(part)?;
        } else {
            self.open.insert(class, part);
        }
        Ok(name)
    }
}

/// A sink that keeps what it sees.
struct Recorder<'w, 'p> {
    parts: Parts<'w>,
    precision: Precision,
    chosen: &'p [bool],
    /// The part of each node.
    places: Vec<Option<String>>,
    failed: Option<io::Error>,
}

impl Recorder<'_, '_> {
    fn keep<T: Real>(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> io::Result<()> {
        if self.chosen[id.index()] {
            let class = Class::of(program.node(id).dtype, self.precision);
            self.places[id.index()] = Some(self.parts.put(class, |part| part.value(value))?);
        }
        Ok(())
    }
}

impl<T: Real> Sink<T> for Recorder<'_, '_> {
    fn node(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        match self.keep(program, id, value) {
            Ok(()) => Flow::Go,
            Err(e) => {
                self.failed = Some(e);
                Flow::Stop
            }
        }
    }
}

impl Session {
    /// Keeps runs in a folder. What is written at any moment is whole, whatever ends the recording; a trace that is
    /// replaced stays until the new one is.
    ///
    /// # Errors
    /// A folder that holds something else, a glob that is none, a run that cannot run, the system.
    pub fn record(&self, folder: &Path, options: &RecordOptions) -> Result<Written, Msg> {
        globs(&options.only)?;
        // A name such as `.` has no place next to it.
        let folder = &fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let taken = is_taken(folder, options.overwrite)?;
        let [new, old] = beside(folder);
        // What a recording that was killed left.
        for left in [&new, &old] {
            let _ = fs::remove_dir_all(left);
        }
        if !taken {
            return self.record_into(folder, options);
        }
        let failed = |e: io::Error| unwritten(folder, &e);
        fs::create_dir(&new).map_err(failed)?;
        let written = self.record_into(&new, options).inspect_err(|_| drop(fs::remove_dir_all(&new)))?;
        fs::rename(folder, &old).and_then(|()| fs::rename(&new, folder)).map_err(failed)?;
        let _ = fs::remove_dir_all(&old);
        Ok(written)
    }

    /// Keeps runs in an empty folder.
    fn record_into(&self, folder: &Path, options: &RecordOptions) -> Result<Written, Msg> {
        let only = globs(&options.only)?;
        let kept: Vec<usize> = if let Some(run) = options.run {
            vec![run]
        } else {
            let mut shown: Vec<usize> = self.steps.list().iter().map(|s| s.run).collect();
            shown.sort_unstable();
            shown.dedup();
            if shown.is_empty() { vec![0] } else { shown }
        };
        let failed = |e: io::Error| unwritten(folder, &e);
        let mut writer = Writer::begin(folder).map_err(failed)?;
        let (doc, constants) = self.document();
        let small = writer.file(SESSION, &doc).map_err(failed)?;
        writer.parts.push(small);
        write_constants(&mut writer, &constants).map_err(failed)?;
        let weights = with_any_bindings(&self.params, self, &mut writer, options.with_weights).map_err(failed)?;
        let mut manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            producer: concat!("tui-transformer ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: self.scenario.name.clone(),
            precision: self.precision,
            complete: false,
            runs: self.run_entries(&kept),
            parts: Vec::new(),
            weights,
        };
        writer.file(MANIFEST, &manifest).map_err(failed)?;
        let mut written = Written { referred: manifest.weights.len(), ..Written::default() };
        for &run in &kept {
            let places = self.record_run(run, &only, &options.only, &mut writer, folder)?;
            let entries = &mut manifest.runs[run].nodes;
            for (entry, place) in entries.iter_mut().zip(places) {
                written.nodes += usize::from(place.is_some());
                entry.part = place;
            }
        }
        self.number_nodes(&mut manifest, &kept);
        let small = writer.file(STEPS, &self.steps_document()).map_err(failed)?;
        writer.parts.push(small);
        manifest.complete = true;
        manifest.parts.clone_from(&writer.parts);
        writer.file(MANIFEST, &manifest).map_err(failed)?;
        written.bytes = writer.parts.iter().map(|p| p.bytes).sum();
        written.parts = writer.parts.len();
        Ok(written)
    }

    fn run_entries(&self, kept: &[usize]) -> Vec<RunEntry> {
        let entries = self.runs.iter().enumerate().map(|(i, run)| {
            let kept = kept.contains(&i);
            let nodes = run.program.nodes().filter(|_| kept);
            let nodes = nodes.map(|(_, n)| entry(&n.path, &n.shape, n.dtype, self.precision));
            RunEntry { name: run.name.clone(), kept, nodes: nodes.collect() }
        });
        entries.collect()
    }

    /// Writes the values of a run; gives the part of each node.
    fn record_run(
        &self,
        run: usize,
        only: &GlobSet,
        patterns: &[String],
        writer: &mut Writer,
        folder: &Path,
    ) -> Result<Vec<Option<String>>, Msg> {
        let r = &self.runs[run];
        let program = &r.program;
        let is_param = |path: &str| match &self.params {
            AnyBindings::F32(b) => b.contains_key(path),
            AnyBindings::F64(b) => b.contains_key(path),
        };
        let chosen: Vec<bool> = program
            .nodes()
            .map(|(_, n)| match &n.op {
                // As the run read them, they are not what is in the file.
                Op::Leaf(Leaf::Parameter) if is_param(&n.path) => self.rounding.is_some(),
                Op::Leaf(Leaf::Parameter | Leaf::Input(_)) => true,
                _ => patterns.is_empty() || only.is_match(&*n.path),
            })
            .collect();
        let planned = program
            .nodes()
            .filter(|(id, _)| chosen[id.index()])
            .map(|(_, n)| (Class::of(n.dtype, self.precision), Planned { name: n.path.to_string(), shape: n.shape }));
        let parts = Parts::new(writer, &format!("run{run}"), planned);
        let places = vec![None; program.len()];
        let mut recorder = Recorder { parts, precision: self.precision, chosen: &chosen, places, failed: None };
        let cannot = |e: &RunError| Msg::new("compare.cannot_run").arg("why", e);
        // What an inference run made is known when it is whole; what was computed is not computed again.
        if r.trace.get().is_some() || matches!(r.kind, RunKind::Inference | RunKind::Recorded) {
            let trace = self.trace(run).map_err(cannot)?;
            for (id, _) in program.nodes().filter(|(id, _)| chosen[id.index()] && trace.reached(*id)) {
                let done = with_any!(AnyTrace, trace, t => recorder.keep(program, id, &t.value(id)));
                done.map_err(|e| unwritten(folder, &e))?;
            }
        } else {
            match &*self.bindings(run) {
                AnyBindings::F32(b) => stream(r, b, self.rounding, &mut recorder).map_err(|e| cannot(&e))?,
                AnyBindings::F64(b) => stream(r, b, self.rounding, &mut recorder).map_err(|e| cannot(&e))?,
            }
        }
        match recorder.failed.take() {
            Some(e) => Err(unwritten(folder, &e)),
            None => Ok(recorder.places),
        }
    }

    /// Says of each node which numbered step shows it first.
    fn number_nodes(&self, manifest: &mut Manifest, kept: &[usize]) {
        for &run in kept {
            let program = &self.runs[run].program;
            let nodes = &mut manifest.runs[run].nodes;
            for (entry, (id, _)) in nodes.iter_mut().zip(program.nodes()) {
                let at = self.steps.first_showing(run, id);
                entry.step = at.and_then(|at| self.steps.list()[at].number.first().copied());
            }
        }
    }

    /// `steps.json`.
    fn steps_document(&self) -> serde_json::Value {
        let step = |s: &crate::walkthrough::Step| {
            let views = s.views.iter().map(|v| {
                let program = &self.runs[v.run].program;
                serde_json::json!({
                    "symbol": v.symbol,
                    "run": self.runs[v.run].name,
                    "path": &*program.node(v.node).path,
                    "slice": v.slice.to_string(),
                })
            });
            serde_json::json!({
                "number": s.number,
                "section": s.section,
                "phase": s.phase,
                "run": self.runs[s.run].name,
                "title": { "en": s.title.render(Lang::En), "zh": s.title.render(Lang::Zh) },
                "note": { "en": s.note.render(Lang::En), "zh": s.note.render(Lang::Zh) },
                "formula": s.formula,
                "views": views.collect::<Vec<_>>(),
            })
        };
        serde_json::Value::Array(self.steps.list().iter().map(step).collect())
    }

    /// `session.json`, and the long constants by run and path.
    fn document(&self) -> (SessionDoc, Vec<(String, Shape, Blob)>) {
        let mut inputs: Vec<&Arc<Inputs>> = vec![&self.inputs];
        let mut constants = Vec::new();
        let mut runs = Vec::new();
        for (i, run) in self.runs.iter().enumerate() {
            let known = inputs.iter().position(|known| Arc::ptr_eq(known, &run.inputs));
            let at = known.unwrap_or_else(|| {
                inputs.push(&run.inputs);
                inputs.len() - 1
            });
            let (program, blobs) = ProgramDoc::of(&run.program);
            constants.extend(blobs.into_iter().map(|(id, blob)| {
                let node = run.program.node(id);
                (format!("{i}:{}", node.path), node.shape, blob)
            }));
            let (name, kind, outputs) = (run.name.clone(), run.kind.clone(), run.outputs);
            runs.push(RunDoc { name, kind, outputs, inputs: at, program });
        }
        let doc = SessionDoc {
            scenario: scenario::write(&self.scenario),
            origin: self.origin.clone(),
            precision: self.precision,
            rounding: self.rounding,
            detail: self.detail,
            updates: self.updates,
            specs: self.specs.clone(),
            coverage: self.coverage.clone(),
            source_words: self.source_words.kept(),
            target_words: self.target_words.kept(),
            inputs: inputs.into_iter().map(|i| Inputs::clone(i)).collect(),
            runs,
        };
        (doc, constants)
    }
}

/// Runs a program whose values nobody keeps in memory.
fn stream<T: Real>(
    run: &Run,
    bindings: &Bindings<T>,
    rounding: Option<Rounding>,
    recorder: &mut Recorder<'_, '_>,
) -> Result<(), RunError> {
    let rounder = rounding.map(Rounder::from);
    let keep = Keep::only(&run.program, |_| false);
    let settings = Settings { keep, timed: false, rounder, ..Settings::default() };
    let mut sink = ChainSink(PinnedSink(&run.held), recorder);
    run_with(&run.program, bindings, &settings, &mut sink).map(drop)
}

fn write_constants(writer: &mut Writer, constants: &[(String, Shape, Blob)]) -> io::Result<()> {
    let class = |blob: &Blob| match blob {
        Blob::Float(_) => Class::F64,
        Blob::Int(_) => Class::I64,
        Blob::Reasons(_) => Class::U8,
    };
    let planned =
        constants.iter().map(|(name, shape, blob)| (class(blob), Planned { name: name.clone(), shape: *shape }));
    let mut parts = Parts::new(writer, "constants", planned);
    for (_, _, blob) in constants {
        parts.put(class(blob), |part| match blob {
            Blob::Float(x) => part.elements(x, |x| x.to_bits().to_le_bytes()),
            Blob::Int(x) => part.elements(x, |x| x.to_le_bytes()),
            Blob::Reasons(x) => part.elements(x, |x| [*x]),
        })?;
    }
    Ok(())
}

/// Writes the parameters that are in no file; gives the others.
fn with_any_bindings(
    params: &AnyBindings,
    session: &Session,
    writer: &mut Writer,
    with_weights: bool,
) -> io::Result<Vec<WeightEntry>> {
    match params {
        AnyBindings::F32(b) => write_weights(b, session, writer, with_weights),
        AnyBindings::F64(b) => write_weights(b, session, writer, with_weights),
    }
}

fn write_weights<T: Real>(
    params: &Bindings<T>,
    session: &Session,
    writer: &mut Writer,
    with_weights: bool,
) -> io::Result<Vec<WeightEntry>> {
    let mut all: Vec<(&Arc<str>, &Value<T>)> = params.iter().collect();
    all.sort_by(|a, b| a.0.cmp(b.0));
    let mut referred = Vec::new();
    if !with_weights {
        let files = weight_files(session);
        all.retain(|(path, value)| match files.iter().find_map(|file| reference(file, path, value)) {
            Some(entry) => {
                referred.push(entry);
                false
            }
            None => true,
        });
    }
    let class = |value: &Value<T>| Class::of(value.dtype(), T::PRECISION);
    let planned =
        all.iter().map(|(path, value)| (class(value), Planned { name: path.to_string(), shape: *value.shape() }));
    let mut parts = Parts::new(writer, "weights", planned);
    for (_, value) in &all {
        parts.put(class(value), |part| part.value(value))?;
    }
    Ok(referred)
}

/// Files of weights that can be referred to, each with its name as it is written down.
fn weight_files(session: &Session) -> Vec<(String, u64, Recording)> {
    let folder = session.origin.as_deref().and_then(Path::parent);
    let files = session.scenario.weights.files.iter().filter_map(|file| {
        let path = folder.map_or_else(|| PathBuf::from(&file.path), |f| f.join(&file.path));
        let whole = fs::canonicalize(path).ok()?;
        let length = fs::metadata(&whole).ok()?.len();
        let recording = Recording::open(&whole).ok()?;
        Some((whole.to_str()?.to_owned(), length, recording))
    });
    files.collect()
}

/// The tensor of a file that has the very bytes of a parameter: that of its name first, else any other.
fn reference<T: Real>(file: &(String, u64, Recording), path: &str, value: &Value<T>) -> Option<WeightEntry> {
    let Value::Float(ours) = value else { return None };
    let dtype = if T::PRECISION == Precision::F64 { Dtype::F64 } else { Dtype::F32 };
    let same = |t: &&Recorded| {
        let fits = t.stored == dtype && t.shape.same_dims(ours.shape()) && t.range().is_some();
        let theirs = fits.then(|| t.read::<T>()).flatten();
        theirs.is_some_and(|theirs| theirs.same_bits(value))
    };
    let named = file.2.find(path).filter(same);
    let tensor = named.or_else(|| file.2.tensors.iter().find(same))?;
    Some(WeightEntry {
        path: path.to_owned(),
        file: file.0.clone(),
        file_bytes: file.1,
        tensor: tensor.name.clone(),
        crc32: checksum(tensor)?,
    })
}
