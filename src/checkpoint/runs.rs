//! The runs that a checkpoint has: the forward pass, training where there is something to predict, and generation.

use serde_json::{Map, Value as Json};

use super::chat::Chat;
use super::family::{Expr, Family};
use super::inputs::{Given, Sides, flags, input};
use super::settings::Model;
use super::values::Values;
use crate::model::params::cacheable;
use crate::scenario::schema::{
    Changes, Decode, Input, Labels, Optimiser, OptimiserKind, Prefix, Run, Scenario, Text, Vocabulary, Weights,
};
use crate::source::Tokenizer;
use crate::text::{Msg, escape};

/// New tokens of the run that generates; `generate` makes as many as it is given.
const NEW: usize = 8;

/// Ids of the default sentence where there is no tokenizer.
const IDS: [i64; 6] = [3, 4, 5, 6, 7, 8];

/// The sentence that is read where none is given.
const SENTENCE: &str = "The capital of France is";

/// What a checkpoint reads with.
pub struct Reads<'a> {
    /// Its family.
    pub family: &'a Family,
    /// The family's expressions.
    pub values: &'a Values,
    /// Its model.
    pub model: &'a Model,
    /// Its tokenizer and the file of it.
    pub tokenizer: Option<&'a (Tokenizer, String)>,
    /// Its chat template, where what is read goes through it.
    pub chat: Option<&'a Chat>,
}

/// The scenario without its weights.
///
/// # Errors
/// Inputs that the checkpoint cannot read.
pub fn scenario(
    reads: &Reads<'_>,
    given: &Given,
    generation: &Map<String, Json>,
    notes: &mut Vec<Msg>,
) -> Result<Scenario, Msg> {
    let model = reads.model;
    let sides = sides(reads, given, notes)?;
    let (encodes, decodes) = (model.config.encoder.is_some(), model.config.decoder.is_some());
    let first = input(sides.ids.clone(), sides.mask, sides.types);
    let target = sides.target.map(|ids| input(ids, None, None));
    let (source, target) = match (encodes, decodes) {
        (true, true) => (Some(first), target),
        (true, false) => (Some(first), None),
        (false, _) => (None, Some(first)),
    };
    let mut runs = vec![Run::Forward { name: "forward".to_owned(), with: Box::default() }];
    runs.extend(training(model, source.as_ref(), target.as_ref()));
    runs.extend(generates(model, target.as_ref(), source.as_ref(), generation));
    let vocabulary = |size| match reads.tokenizer {
        Some((_, file)) => Vocabulary::Tokenizer { file: file.clone(), size: Some(size) },
        None => Vocabulary::Size(size),
    };
    Ok(Scenario {
        digits: None,
        name: String::new(),
        title: Text::default(),
        note: Text::default(),
        precision: crate::tensor::Precision::F32,
        vocabulary: vocabulary(model.source_words),
        target_vocabulary: (model.target_words != model.source_words).then(|| vocabulary(model.target_words)),
        model: model.config.clone(),
        weights: Weights::default(),
        source,
        target,
        labels: Labels::None,
        runs,
        end: ends(generation),
        edits: Vec::new(),
        remarks: std::collections::BTreeMap::new(),
        symbols: std::collections::BTreeMap::new(),
        walkthrough: Vec::new(),
        expected: Vec::new(),
        allow: Vec::new(),
    })
}

/// Ids that end a generation.
fn ends(generation: &Map<String, Json>) -> Option<Vec<i64>> {
    match generation.get("eos_token_id")? {
        Json::Array(all) => Some(all.iter().filter_map(Json::as_i64).collect()),
        one => one.as_i64().map(|id| vec![id]),
    }
}

/// What is read: as given, or a default.
fn sides(reads: &Reads<'_>, given: &Given, notes: &mut Vec<Msg>) -> Result<Sides, Msg> {
    let Reads { family, values, model, tokenizer, chat } = *reads;
    let both = model.config.encoder.is_some() && model.config.decoder.is_some();
    let mut sides = match &given.file {
        Some(path) => Sides::open(path)?,
        None => given.rows.clone().unwrap_or_default(),
    };
    let ids = |ids: Vec<u32>| -> Vec<i64> { ids.into_iter().map(i64::from).collect() };
    let encode = |text: &str, pair: Option<&str>| {
        let (tokenizer, _) = tokenizer.ok_or_else(|| Msg::new("checkpoint.no_tokenizer"))?;
        tokenizer.encode(text, pair, true)
    };
    let mut text = given.text.as_deref();
    if given.is_empty() && tokenizer.is_some() {
        notes.push(Msg::new("checkpoint.default_text").arg("text", SENTENCE));
        text = Some(SENTENCE);
    }
    if let Some(text) = text {
        let e = match chat {
            // The template writes special tokens itself.
            Some(chat) => {
                let (tokenizer, _) = tokenizer.ok_or_else(|| Msg::new("checkpoint.no_tokenizer"))?;
                tokenizer.encode(&chat.render(given.system.as_deref(), text)?, None, false)?
            }
            None => encode(text, given.pair.as_deref())?,
        };
        if e.ids.is_empty() {
            return Err(Msg::new("scenario.no_tokens"));
        }
        if given.pair.is_some() && model.config.embedding.token_types > 1 {
            sides.types = Some(vec![ids(e.type_ids)]);
        }
        sides.ids = vec![ids(e.ids)];
    }
    if let Some(text) = &given.target_text {
        if !both {
            return Err(Msg::new("input.no_target"));
        }
        // The decoder reads its first token, then the text without what the tokenizer adds around it.
        let (tokenizer, _) = tokenizer.ok_or_else(|| Msg::new("checkpoint.no_tokenizer"))?;
        let mut row = vec![start(family, values)?];
        row.extend(ids(tokenizer.encode(text, None, false)?.ids));
        sides.target = Some(vec![row]);
    }
    if let Some(ids) = &given.ids {
        sides.ids = vec![ids.clone()];
    }
    if sides.ids.is_empty() {
        let ids: Vec<i64> = IDS.into_iter().filter(|id| *id < model.source_words as i64).collect();
        let ids = if ids.is_empty() { vec![0] } else { ids };
        let shown: Vec<String> = ids.iter().map(i64::to_string).collect();
        notes.push(Msg::new("checkpoint.default_ids").arg("ids", shown.join(" ")));
        sides.ids = vec![ids];
    }
    if let Some(ids) = &given.target_ids {
        if !both {
            return Err(Msg::new("input.no_target"));
        }
        sides.target = Some(vec![ids.clone()]);
    }
    flags(given, &mut sides);
    if both && sides.target.is_none() {
        sides.target = Some(vec![vec![start(family, values)?]; sides.ids.len()]);
    }
    fits(model, &sides)?;
    Ok(sides)
}

/// Whether the model has the ids, and the flags are as many as the ids.
fn fits(model: &Model, sides: &Sides) -> Result<(), Msg> {
    let both =
        [(&sides.ids, model.source_words)].into_iter().chain(sides.target.as_ref().map(|t| (t, model.target_words)));
    for (rows, size) in both {
        if let Some(id) = rows.iter().flatten().find(|id| usize::try_from(**id).map_or(true, |id| id >= size)) {
            return Err(Msg::new("input.id_outside")
                .arg("id", id)
                .arg("size", size)
                .arg("last", size.saturating_sub(1)));
        }
        if rows.iter().any(|row| row.len() != rows[0].len()) {
            return Err(Msg::new("input.ragged"));
        }
    }
    if let Some(target) = sides.target.as_ref().filter(|t| t.len() != sides.ids.len()) {
        return Err(Msg::new("scenario.batch").arg("source", sides.ids.len()).arg("target", target.len()));
    }
    let (rows, tokens) = (sides.ids.len(), sides.ids[0].len());
    let short = |given: usize, of: &str| {
        Msg::new("input.flags").arg("option", of).arg("found", given).arg("rows", rows).arg("tokens", tokens)
    };
    if let Some(mask) = &sides.mask
        && (mask.len() != rows || mask.iter().any(|row| row.len() != tokens))
    {
        return Err(short(mask.iter().flatten().count(), "mask"));
    }
    let Some(types) = &sides.types else {
        return Ok(());
    };
    let count = model.config.embedding.token_types;
    if count == 0 {
        return Err(Msg::new("scenario.no_types"));
    }
    if types.len() != rows || types.iter().any(|row| row.len() != tokens) {
        return Err(short(types.iter().flatten().count(), "types"));
    }
    match types.iter().flatten().find(|t| usize::try_from(**t).map_or(true, |t| t >= count)) {
        Some(id) => Err(Msg::new("scenario.type_outside").arg("id", id).arg("count", count)),
        None => Ok(()),
    }
}

/// The first id of the decoder of an encoder-decoder.
fn start(family: &Family, values: &Values) -> Result<i64, Msg> {
    let usual = Expr("decoder_start_token_id".into());
    let start = values.count("start", family.start.as_ref().unwrap_or(&usual), &[])?;
    start.map(|id| id as i64).ok_or_else(|| Msg::new("checkpoint.no_start").arg("family", escape(&family.file)))
}

/// A training run, where the model predicts tokens and there is one to predict.
fn training(model: &Model, source: Option<&Input>, target: Option<&Input>) -> Option<Run> {
    if model.config.output.none {
        return None;
    }
    let (read, labels) = match target {
        Some(target) => (target, Labels::Shifted),
        None => (source?, Labels::Unshifted),
    };
    // The last position of a sentence has nothing to predict.
    if labels == Labels::Shifted && read.ids.iter().any(|row| row.len() < 2) {
        return None;
    }
    let optimiser = Optimiser { kind: OptimiserKind::AdamW, lr: 1e-4, steps: 10, ..Optimiser::default() };
    let with = Box::new(Changes { labels: Some(labels), ..Changes::default() });
    Some(Run::Training { name: "training".to_owned(), optimiser, loss: crate::scenario::schema::Loss::default(), with })
}

/// The run that generates, where the model has a decoder with a head and reads one sentence.
fn generates(
    model: &Model,
    target: Option<&Input>,
    source: Option<&Input>,
    generation: &Map<String, Json>,
) -> Option<Run> {
    let target = target.filter(|_| model.config.decoder.is_some() && !model.config.output.none)?;
    if target.ids.len() != 1 || source.is_some_and(|s| s.ids.len() != 1) || target.real.is_some() {
        return None;
    }
    let from = Prefix::Ids(target.ids[0].clone());
    let number = |key: &str| generation.get(key).and_then(Json::as_f64).filter(|x| x.is_finite());
    let samples = generation.get("do_sample").and_then(Json::as_bool).unwrap_or(false);
    let decode = if samples {
        Decode::Sample {
            from,
            max_new: NEW,
            temperature: number("temperature").filter(|t| *t > 0.0).unwrap_or(1.0),
            top_k: number("top_k").filter(|k| *k >= 1.0).map(|k| k as usize),
            top_p: number("top_p").filter(|p| *p > 0.0 && *p < 1.0),
            min_p: None,
            repetition_penalty: 1.0,
            seed: 0,
        }
    } else {
        Decode::Greedy { from, max_new: NEW }
    };
    let kv_cache = cacheable(&model.config);
    Some(Run::Inference { name: "generation".to_owned(), decode, kv_cache, with: Box::default() })
}
