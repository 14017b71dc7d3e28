//! A checkpoint as a source: a Hugging Face folder becomes a scenario, with its weights by reference, that the session
//! opens like any other.
//!
//! Nothing here knows a family: [`family`] files say what a configuration means ([`settings`]) and which tensors the
//! parameters are ([`tensors`]).

pub mod family;
pub mod inputs;
mod json;
mod nearest;
mod runs;
mod settings;
mod tensors;
mod values;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use crate::model::params::{VocabSizes, parameters};
use crate::model::validate::validate;
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::files::{Bytes, Weighty};
use crate::scenario::schema::{Scenario, Weights};
use crate::scenario::{self, Loaded};
use crate::tensor::Precision;
use crate::text::{Msg, escape};
use family::Family;
pub use inputs::Given;

/// A checkpoint as it was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The scenario that it is.
    pub scenario: Scenario,
    /// What the scenario's files are next to.
    pub origin: PathBuf,
    /// Their names and our paths, for each parameter; a name more than once where a tensor is taken apart.
    pub names: Vec<(String, String)>,
    /// What was assumed, to be said on standard error.
    pub notes: Vec<Msg>,
}

/// Files that weights are in, the first that is there.
const WEIGHTS: [&str; 2] = ["model.safetensors", "model.safetensors.index.json"];

/// Whether a source is a checkpoint: a folder, but no trace of ours.
pub fn is_checkpoint(source: &Path) -> bool {
    source.is_dir() && source.join("config.json").symlink_metadata().is_ok()
}

/// Maps a file.
///
/// # Errors
/// Where it cannot be read.
pub(crate) fn map(path: &Path) -> Result<Bytes, Msg> {
    let unreadable = |e: std::io::Error| {
        Msg::new("scenario.unreadable").arg("file", escape(&path.to_string_lossy())).arg("why", e)
    };
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        return Err(Msg::new("checkpoint.no_file").arg("file", escape(&path.to_string_lossy())));
    }
    std::fs::File::open(path).and_then(|file| Bytes::map(&file)).map_err(unreadable)
}

/// Opens a checkpoint.
///
/// # Errors
/// The first thing that is wrong with it; further ones are counted.
pub fn open(folder: &Path, given: &Given) -> Result<Opened, Diagnostic> {
    let file = folder.join("config.json");
    let name = file.to_string_lossy().into_owned();
    let whole = |msg: Msg| {
        let help = msg.help();
        Diagnostic::whole(&name, msg, help)
    };
    let config = json::object(&file).map_err(whole)?;
    let family = family_of(folder, given, &config).map_err(whole)?;
    let weights = weights(folder).map_err(whole)?;
    let open = |name: &str| map(&folder.join(name));
    let tensors = Weighty::<f32>::open(&weights, &open).map_err(|msg| {
        let help = msg.help();
        Diagnostic::whole(&folder.join(&weights).to_string_lossy(), msg, help)
    })?;
    let in_file: BTreeSet<String> = tensors.names().map(str::to_owned).collect();
    let values = values::Values::new(&family, &config, in_file).map_err(whole)?;
    let model = settings::model(&family, &values).map_err(whole)?;
    let vocab = VocabSizes { source: model.source_words, target: model.target_words };
    if let Some(problem) = validate(&model.config, vocab).into_iter().next() {
        let at = format!("{} ({})", problem.field, family.file);
        return Err(Diagnostic { at, ..Diagnostic::whole(&name, problem.msg, problem.help) });
    }
    let specs = parameters(&model.config, vocab);
    let found = tensors::find(&family, &values, &model, &specs, &tensors).map_err(|problems| {
        let more = problems.len() - 1;
        let first = problems.into_iter().next().unwrap_or_else(|| Msg::new("checkpoint.no_file"));
        let help = first.help();
        let at = if more > 0 { format!("{} (+{more})", family.file) } else { family.file.clone() };
        Diagnostic { at, ..Diagnostic::whole(&folder.join(&weights).to_string_lossy(), first, help) }
    })?;
    let used: BTreeSet<&String> = found.iter().flat_map(|f| &f.from).collect();
    let unused: Vec<String> =
        tensors.names().filter(|n| !used.contains(&(*n).to_owned())).map(globset::escape).collect();
    let names =
        found.iter().flat_map(|f| f.from.iter().map(|name| (name.clone(), f.path.clone()))).collect();
    let generation = generation(folder, &config).map_err(whole)?;
    let mut notes = Vec::new();
    let mut scenario = runs::scenario(&family, &values, &model, given, &generation, &mut notes).map_err(whole)?;
    scenario.name = called(folder);
    scenario.precision = Precision::F32;
    scenario.weights =
        Weights { files: vec![tensors::weight_file(weights, &found, unused)], ..Weights::default() };
    Ok(Opened { scenario, origin: file, names, notes })
}

/// The same as a scenario that was loaded.
///
/// # Errors
/// As [`open`].
pub fn load(folder: &Path, given: &Given) -> Result<(Loaded, Vec<Msg>), Diagnostic> {
    let opened = open(folder, given)?;
    let file = folder.to_string_lossy().into_owned();
    let text = scenario::write(&opened.scenario);
    let loaded = Loaded { scenario: opened.scenario, text, file, origin: Some(opened.origin) };
    Ok((loaded, opened.notes))
}

/// The name of a folder.
fn called(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.file_name().map_or_else(|| "checkpoint".to_owned(), |n| n.to_string_lossy().into_owned())
}

/// The file of weights in a folder.
fn weights(folder: &Path) -> Result<String, Msg> {
    // A link that leads nowhere is there: its own error says more than that nothing was found.
    let there = |name: &&str| folder.join(name).symlink_metadata().is_ok();
    WEIGHTS.into_iter().find(there).map(str::to_owned).ok_or_else(|| {
        Msg::new("checkpoint.no_weights").arg("folder", escape(&folder.to_string_lossy())).arg("files", WEIGHTS.join(", "))
    })
}

/// The user's own family file, one in the folder, or the one that comes with the program.
fn family_of(folder: &Path, given: &Given, config: &Map<String, Json>) -> Result<Family, Msg> {
    if let Some(path) = &given.family {
        return Family::open(path);
    }
    let own = folder.join("family.ron");
    if own.symlink_metadata().is_ok() {
        return Family::open(&own);
    }
    let Some(model_type) = config.get("model_type").and_then(Json::as_str) else {
        return Err(Msg::new("checkpoint.no_model_type"));
    };
    let fits = |f: &&Family| f.model_types.iter().any(|t| t == model_type);
    family::embedded().find(fits).cloned().ok_or_else(|| nearest::unknown(model_type, config))
}

/// What `generation_config.json` says, else the configuration.
fn generation(folder: &Path, config: &Map<String, Json>) -> Result<Map<String, Json>, Msg> {
    let file = folder.join("generation_config.json");
    let mut all = config.clone();
    if file.symlink_metadata().is_ok() {
        let own = json::object(&file)?;
        all.extend(own.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(all)
}
