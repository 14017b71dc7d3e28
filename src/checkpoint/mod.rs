//! A checkpoint as a source: a Hugging Face folder or a GGUF file becomes a scenario, with its weights by reference, that the session
//! opens like any other.
//!
//! Nothing here knows a family: [`family`] files say what a configuration means (`settings`) and which tensors the
//! parameters are (`tensors`).

pub mod chat;
pub mod family;
mod gguf;
pub mod inputs;
mod json;
mod nearest;
mod runs;
mod settings;
mod tensors;
mod values;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::model::params::{VocabSizes, parameters};
use crate::model::validate::validate;
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::files::Weighty;
use crate::scenario::schema::{Scenario, Vocabulary, Weights};
use crate::scenario::{self, Loaded};
use crate::source::{Gguf, Tokenizer};
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

/// Whether a source is a checkpoint: a folder with a configuration, or a GGUF file.
pub fn is_checkpoint(source: &Path) -> bool {
    let gguf = source.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf"));
    gguf || source.is_dir() && source.join("config.json").symlink_metadata().is_ok()
}

/// Opens a checkpoint.
///
/// # Errors
/// The first thing that is wrong with it; further ones are counted.
pub fn open(source: &Path, given: &Given) -> Result<Opened, Diagnostic> {
    let place = Place::of(source)?;
    let name = place.config.to_string_lossy().into_owned();
    let whole = |msg: Msg| {
        let help = msg.help();
        Diagnostic::whole(&name, msg, help)
    };
    let weights_path = place.folder.join(&place.weights);
    let of_weights = |msg: Msg, at: String| {
        let help = msg.help();
        Diagnostic { at, ..Diagnostic::whole(&weights_path.to_string_lossy(), msg, help) }
    };
    let locate = |name: &str| Ok(place.folder.join(name));
    let opened =
        || Weighty::<f32>::open(&place.weights, &locate, &|_| true).map_err(|msg| of_weights(msg, String::new()));
    // What is wrong with the configuration comes before what is wrong with the weights.
    let (config, tensors) = if place.gguf {
        let tensors = opened()?;
        (gguf::config(tensors.gguf()), tensors)
    } else {
        let config = json::object(&place.config).map_err(whole)?;
        family_of(&place, given, &config).map_err(whole)?;
        (config, opened()?)
    };
    let family = family_of(&place, given, &config).map_err(whole)?;
    let tensors = Arc::new(tensors);
    let values = values::Values::new(&family, &config, &tensors).map_err(whole)?;
    let model = settings::model(&family, &values).map_err(whole)?;
    let vocab = VocabSizes { source: model.source_words, target: model.target_words };
    if let Some(problem) = validate(&model.config, vocab).into_iter().next() {
        let at = format!("{} ({})", problem.field, family.file);
        return Err(Diagnostic { at, ..Diagnostic::whole(&name, problem.msg, problem.help) });
    }
    let specs = parameters(&model.config, vocab).map_err(|e| whole(Msg::new("scenario.build").arg("why", e)))?;
    let found = tensors::find(&family, &values, &model, &specs, &tensors).map_err(|problems| {
        let more = problems.len().saturating_sub(1);
        let first = problems.into_iter().next().unwrap_or_else(|| Msg::new("checkpoint.no_file"));
        let at = if more > 0 { format!("{} (+{more})", family.file) } else { family.file.clone() };
        of_weights(first, at)
    })?;
    let used: BTreeSet<&str> = found.iter().flat_map(|f| &f.from).map(String::as_str).collect();
    let unused: Vec<String> = tensors.names().filter(|n| !used.contains(n)).map(globset::escape).collect();
    let names = found.iter().flat_map(|f| f.from.iter().map(|name| (name.clone(), f.path.clone()))).collect();
    let generation = generation(&place, &config).map_err(whole)?;
    let tokenizer = tokenizer(&place, tensors.gguf()).map_err(whole)?;
    let mut notes = Vec::new();
    let chat = given.chat.then(|| chat::Chat::open(source)).transpose().map_err(whole)?;
    let (tokenizer, chat) = (tokenizer.as_ref(), chat.as_ref());
    let reads = runs::Reads { family: &family, values: &values, model: &model, tokenizer, chat };
    let mut scenario = runs::scenario(&reads, given, &generation, &mut notes).map_err(whole)?;
    scenario.name = called(source);
    scenario.precision = Precision::F32;
    scenario.weights =
        Weights { files: vec![tensors::weight_file(place.weights, &found, unused)], ..Weights::default() };
    Ok(Opened { scenario, origin: place.config, names, notes })
}

/// Where the parts of a checkpoint are.
struct Place {
    folder: PathBuf,
    /// What says how the model is built.
    config: PathBuf,
    /// The file of weights, in the folder.
    weights: String,
    gguf: bool,
}

impl Place {
    fn of(source: &Path) -> Result<Self, Diagnostic> {
        if !source.is_dir() {
            let folder = source.parent().map(Path::to_owned).unwrap_or_default();
            let weights = source.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            return Ok(Self { folder, config: source.to_owned(), weights, gguf: true });
        }
        // A link that leads nowhere is there: its own error says more than that nothing was found.
        let there = |name: &&str| source.join(name).symlink_metadata().is_ok();
        let folder = source.to_owned();
        if let Some(weights) = WEIGHTS.into_iter().find(there) {
            return Ok(Self { config: folder.join("config.json"), weights: weights.to_owned(), folder, gguf: false });
        }
        let name = source.to_string_lossy();
        let msg = Msg::new("checkpoint.no_weights").arg("folder", escape(&name)).arg("files", WEIGHTS.join(", "));
        let help = msg.help();
        Err(Diagnostic::whole(&name, msg, help))
    }
}

/// The tokenizer of a checkpoint, and the file that it is in; `None` where there is none.
fn tokenizer(place: &Place, gguf: Option<&Gguf>) -> Result<Option<(Tokenizer, String)>, Msg> {
    if let Some(header) = gguf.filter(|_| place.gguf) {
        if header.get("tokenizer.ggml.model").is_none() {
            return Ok(None);
        }
        return Ok(Some((Tokenizer::of_gguf(header, &place.weights)?, place.weights.clone())));
    }
    let file = place.folder.join("tokenizer.json");
    if file.symlink_metadata().is_err() {
        return Ok(None);
    }
    Ok(Some((Tokenizer::open(&file)?, "tokenizer.json".to_owned())))
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

/// The text of the scenario that a checkpoint is, which may be saved anywhere: its files are named by whole paths.
///
/// # Errors
/// As [`open`].
pub fn written(source: &Path, given: &Given) -> Result<String, Diagnostic> {
    let mut scenario = open(source, given)?.scenario;
    let folder = if source.is_dir() { source } else { source.parent().unwrap_or(source) };
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let whole = |name: &mut String| *name = folder.join(&*name).to_string_lossy().into_owned();
    scenario.weights.files.iter_mut().for_each(|file| whole(&mut file.path));
    for vocabulary in std::iter::once(&mut scenario.vocabulary).chain(&mut scenario.target_vocabulary) {
        if let Vocabulary::Tokenizer { file, .. } = vocabulary {
            whole(file);
        }
    }
    Ok(scenario::write(&scenario))
}

/// The name of a folder.
fn called(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.file_name().map_or_else(|| "checkpoint".to_owned(), |n| n.to_string_lossy().into_owned())
}

/// The user's own family file, one in the folder, or the one that comes with the program.
fn family_of(place: &Place, given: &Given, config: &Map<String, Json>) -> Result<Family, Msg> {
    if let Some(path) = &given.family {
        return Family::open(path);
    }
    let own = place.folder.join("family.ron");
    if !place.gguf && own.symlink_metadata().is_ok() {
        return Family::open(&own);
    }
    let Some(model_type) = config.get("model_type").and_then(Json::as_str) else {
        return Err(Msg::new("checkpoint.no_model_type"));
    };
    let fits = |f: &&Family| f.model_types.iter().any(|t| t == model_type);
    family::embedded().find(fits).cloned().ok_or_else(|| nearest::unknown(model_type, config))
}

/// What `generation_config.json` says, else the configuration.
fn generation(place: &Place, config: &Map<String, Json>) -> Result<Map<String, Json>, Msg> {
    let file = place.folder.join("generation_config.json");
    let mut all = config.clone();
    if !place.gguf && file.symlink_metadata().is_ok() {
        let own = json::object(&file)?;
        all.extend(own.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(all)
}
