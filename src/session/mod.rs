//! A scenario opened: its words, its parameters, its runs (executed when first looked at) and its numbered steps.

mod check;
mod edits;
pub mod generation;
mod given;
mod inputs;
pub mod insight;
mod labels;
mod live;
pub mod locate;
mod losses;
mod memory;
mod messages;
mod open;
pub mod padding;
mod rebuild;
mod recorded;
mod recorded_plan;
mod remarks;
mod runs;
mod stages;
mod steps;
mod trace_folder;
mod trace_open;
pub mod training;
mod written;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::model::Outputs;
use crate::model::config::ModelConfig;
use crate::model::params::ParamSpec;
use crate::program::optimiser::Optimiser;
use crate::program::{Program, Side};
use crate::scenario::schema::{self, Scenario};
use crate::scenario::tokenise::Vocab;
use crate::scenario::weights::Coverage;
use crate::tensor::Precision;
use crate::text::NumberFormat;
use crate::text::number::MAX_DIGITS;
use crate::trace::train::TrainStep;
use crate::trace::{AnyTrace, Bindings, Pinned, Rounding, RunError};
use crate::walkthrough::Detail;

pub use check::MAX_BEAMS;
pub use inputs::Inputs;
pub use labels::Labels;
use live::Live;
pub use live::{Patient, Progress};
pub use open::{Options, open};
pub use recorded::open_recording;
pub use stages::{Table, stages};
pub use steps::{ShownCell, Steps};
pub use trace_folder::{RecordOptions, Written, globs};
pub use trace_open::open_trace;
pub use written::view;

/// What a run is.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum RunKind {
    /// Teacher-forced forward pass.
    Training,
    /// The training pass and its gradients.
    Backward,
    /// The training pass, its gradients and the optimiser's update.
    Update,
    /// Token by token.
    Inference,
    /// Teacher-forced forward pass without dropout and loss.
    Forward,
    /// The encoder only.
    Encode,
    /// What another program computed: values without arithmetic.
    Recorded,
}

/// Parameters of either number type.
#[derive(Clone, Debug)]
pub enum AnyBindings {
    /// In f32.
    F32(Bindings<f32>),
    /// In f64.
    F64(Bindings<f64>),
}

/// A run of a scenario.
#[derive(Debug)]
pub struct Run {
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: RunKind,
    /// Its program.
    pub program: Arc<Program>,
    /// Its main nodes; those of a generation are found by path.
    pub outputs: Outputs,
    /// Sequences that it reads.
    pub inputs: Arc<Inputs>,
    /// What an update reads besides the parameters; of a run of that kind.
    train_step: Option<(Arc<TrainStep>, Optimiser)>,
    /// Cells that are edited while it goes on.
    held: Arc<Pinned>,
    trace: OnceLock<Result<AnyTrace, RunError>>,
    live: Live,
    rounded: Mutex<HashMap<Rounding, Arc<AnyTrace>>>,
}

/// A scenario opened.
#[derive(Debug)]
pub struct Session {
    /// The scenario.
    pub scenario: Scenario,
    /// Where it came from; what it names is looked for next to it.
    pub origin: Option<PathBuf>,
    /// The text of its file, where it was read from one; what is saved keeps the comments.
    pub text: Option<Arc<str>>,
    /// Number type.
    pub precision: Precision,
    /// How its runs round every number before it is used.
    pub rounding: Option<Rounding>,
    /// Vocab of the source.
    pub source_words: Vocab,
    /// Vocab of the target.
    pub target_words: Vocab,
    /// Sequences, as ids; those of the runs that change none.
    pub inputs: Arc<Inputs>,
    /// Parameters of the model.
    pub specs: Vec<ParamSpec>,
    /// Their values.
    pub params: AnyBindings,
    /// Updates made on them since they were loaded; then the optimiser's memory is among them.
    pub updates: u64,
    /// Where these came from.
    pub coverage: Coverage,
    /// Runs, in order.
    pub runs: Vec<Run>,
    /// The walkthrough: all of it where the scenario has one, else the plan of the first run.
    pub steps: Arc<Steps>,
    /// Detail of automatic plans.
    pub detail: Detail,
    /// Bytes of computed values that a run keeps in memory at most.
    budget: Option<u64>,
    /// The session that this one is an edit of; what its runs computed is not computed again.
    base: Option<Arc<Session>>,
    run_steps: Mutex<HashMap<usize, Arc<Steps>>>,
    /// Itself, where its runs go on in threads.
    own: OnceLock<Weak<Session>>,
    /// Whether whole runs are waited for all the same.
    patient: AtomicBool,
    /// The model type of the checkpoint that it is of, once it is requested.
    model_type: OnceLock<Option<String>>,
}

impl Session {
    /// The run called `name`.
    pub fn run_named(&self, name: &str) -> Option<usize> {
        self.runs.iter().position(|r| r.name == name)
    }

    /// Names of the tensors that a parameter was read from; `None` where it was not read from a file.
    pub fn tensors_of(&self, path: &str) -> Option<Vec<String>> {
        self.scenario.weights.files.iter().rev().find_map(|file| {
            let made = file.made.get(path).map(|made| made.from.clone());
            made.or_else(|| file.names.get(path).map(|name| vec![name.clone()]))
        })
    }

    /// Names of all tensors that parameters were read from.
    pub fn tensor_names(&self) -> Vec<&str> {
        let files = self.scenario.weights.files.iter();
        files.flat_map(|f| f.made.values().flat_map(|m| &m.from).chain(f.names.values())).map(String::as_str).collect()
    }

    /// `model_type` of the checkpoint that was opened.
    pub fn model_type(&self) -> Option<&str> {
        let read = || -> Option<String> {
            let origin = self.origin.as_ref()?;
            if origin.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf")) {
                let file = crate::source::TensorFile::open(origin).ok()?;
                return Some(format!("gguf-{}", file.gguf.as_ref()?.architecture()?));
            }
            let config =
                origin.file_name().filter(|name| *name == "config.json").and_then(|_| std::fs::read(origin).ok())?;
            let config: serde_json::Value = serde_json::from_slice(&config).ok()?;
            Some(config.get("model_type")?.as_str()?.to_owned())
        };
        self.model_type.get_or_init(read).as_deref()
    }

    /// The model of run `run`: the scenario's, unless the run has one of its own.
    pub fn model_of(&self, run: usize) -> &ModelConfig {
        let name = &self.runs[run].name;
        let own = self.scenario.runs.iter().find(|r| r.name() == name);
        own.and_then(|r| r.with().model.as_ref()).unwrap_or(&self.scenario.model)
    }

    /// Vocab that ids of `side` denote.
    pub fn words(&self, side: Side) -> &Vocab {
        match side {
            Side::Source => &self.source_words,
            Side::Target => &self.target_words,
        }
    }
}

impl Session {
    /// The same, with the text that it was read from.
    #[must_use]
    pub fn read_from(self, text: &str) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    /// How the scenario wants its numbers printed, if it says so.
    pub fn decimals(&self) -> Option<NumberFormat> {
        self.scenario.digits.map(|d| NumberFormat::Decimals(d.min(MAX_DIGITS)))
    }

    /// The files that it was read from: the scenario, its weights, its corpora and tokenizers.
    pub fn files(&self) -> Vec<PathBuf> {
        let Some(origin) = &self.origin else { return Vec::new() };
        let folder = origin.parent().unwrap_or(std::path::Path::new(""));
        let weights = self.scenario.weights.files.iter().map(|f| folder.join(&f.path));
        let vocabularies = [Some(&self.scenario.vocabulary), self.scenario.target_vocabulary.as_ref()];
        let corpora = vocabularies.into_iter().flatten().filter_map(|v| match v {
            schema::Vocabulary::Characters(c) => c.corpus_file.as_ref().map(|f| folder.join(f)),
            schema::Vocabulary::Tokenizer { file, .. } => Some(folder.join(file)),
            schema::Vocabulary::Words(_) | schema::Vocabulary::Size(_) => None,
        });
        std::iter::once(origin.clone()).chain(weights).chain(corpora).collect()
    }

    /// Settings of the first training run.
    pub fn optimiser(&self) -> Optimiser {
        self.scenario
            .runs
            .iter()
            .find_map(|r| match r {
                schema::Run::Training { optimiser, .. } => Some(optimiser.clone()),
                _ => None,
            })
            .unwrap_or_default()
    }
}
