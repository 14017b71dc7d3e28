//! Sentences to ids, padding, masks, labels.

use super::padding::{self, Added};
use crate::model::Sequences;
use crate::model::config::ModelConfig;
use crate::model::limits;
use crate::model::masks::GivenMask;
use crate::scenario::diagnostic::Problem;
use crate::scenario::schema::{Changes, Input, Labels, MaskInput, PadSide, PositionIds, Prefix, Scenario};
use crate::scenario::tokenise::{Token, Vocab};
use crate::text::{Msg, escape, nearest};

#[path = "vectors.rs"]
mod vectors;

/// What the stacks read.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Inputs {
    /// What the encoder reads.
    pub source: Option<Sequences>,
    /// What the decoder reads.
    pub target: Option<Sequences>,
    /// What each target position must predict, `[batch, token]`.
    pub labels: Option<Vec<i64>>,
    /// Tokens of the source as they were cut, one list a sentence.
    pub source_tokens: Vec<Vec<Token>>,
    /// Tokens of the target.
    pub target_tokens: Vec<Vec<Token>>,
}

impl Inputs {
    /// How many sentences there are; 1 where none are given.
    pub fn sentences(&self) -> usize {
        let read = self.target.as_ref().or(self.source.as_ref());
        read.map_or(1, |s| s.batch.max(1))
    }
}

/// What is to be tokenised, each with the field where it is.
#[derive(Clone, Debug)]
pub(super) struct Given<'a> {
    model: &'a ModelConfig,
    source: (String, Option<&'a Input>),
    target: (String, Option<&'a Input>),
    labels: (String, &'a Labels),
}

impl<'a> Given<'a> {
    /// What a scenario gives.
    pub(super) fn of(scenario: &'a Scenario) -> Self {
        Self {
            model: &scenario.model,
            source: ("source".into(), scenario.source.as_ref()),
            target: ("target".into(), scenario.target.as_ref()),
            labels: ("labels".into(), &scenario.labels),
        }
    }

    /// What a run that changes things gives; `at` is the field of the changes.
    pub(super) fn changed(scenario: &'a Scenario, changes: &'a Changes, at: &str) -> Self {
        let mut given = Self::of(scenario);
        if let Some(model) = &changes.model {
            given.model = model;
        }
        if let Some(input) = &changes.source {
            given.source = (format!("{at}.source"), Some(input));
        }
        if let Some(input) = &changes.target {
            given.target = (format!("{at}.target"), Some(input));
        }
        if let Some(labels) = &changes.labels {
            given.labels = (format!("{at}.labels"), labels);
        }
        given
    }
}

/// Tokenises all that is given. Unknown tokens, ids outside the vocabulary, sentences of no tokens and masks that do
/// not fit go to `found`; what they are in is left out then.
pub(super) fn inputs(given: &Given<'_>, source: &Vocab, target: &Vocab, found: &mut Vec<Problem>) -> Inputs {
    let mut out = Inputs::default();
    let (encodes, decodes) = (given.model.encoder.is_some(), given.model.decoder.is_some());
    let types = given.model.embedding.token_types;
    let beside = if encodes && types > 0 { Types::OfSource } else { Types::Of(types) };
    if let ((at, Some(input)), true) = (&given.source, encodes)
        && let Some((mut sequences, tokens)) = sequences(at, input, source, (Types::Of(types), given.model), found)
    {
        match cross(at, input, given, sequences.batch, sequences.tokens(), target) {
            Ok(cross) => sequences.cross = cross,
            Err(problem) => found.push(problem),
        }
        (out.source, out.source_tokens) = (Some(sequences), tokens);
    }
    if let ((at, Some(input)), true) = (&given.target, decodes)
        && let Some((sequences, tokens)) = sequences(at, input, target, (beside, given.model), found)
    {
        if input.cross_mask.is_some() {
            found.push(Problem::new(format!("{at}.cross_mask"), Msg::new("scenario.cross_of_target")));
        }
        (out.target, out.target_tokens) = (Some(sequences), tokens);
    }
    let (spoken, words) = if decodes { (&out.target, target) } else { (&out.source, source) };
    if let Some(s) = spoken {
        let (at, labels) = &given.labels;
        match self::labels(at, labels, s, words) {
            Ok(labels) => out.labels = labels,
            Err(problem) => found.push(problem),
        }
    }
    if let (Some(s), Some(t)) = (&out.source, &out.target)
        && s.batch != t.batch
    {
        let msg = Msg::new("scenario.batch").arg("source", s.batch);
        let at = given.target.0.as_str();
        found.push(Problem::new(at, msg.arg("target", t.batch)));
    }
    out
}

/// Which token types a side has.
#[derive(Clone, Copy)]
enum Types {
    /// So many; 0 for none.
    Of(usize),
    /// None, since the source next to it has them.
    OfSource,
}

/// The tokens of every sentence, before padding.
fn rows(at: &str, input: &Input, words: &Vocab, found: &mut Vec<Problem>) -> Vec<Vec<Token>> {
    let mut rows: Vec<Vec<Token>> = Vec::new();
    if !input.text.is_empty() && !input.ids.is_empty() {
        found.push(Problem::new(format!("{at}.ids"), Msg::new("scenario.text_and_ids")));
        return rows;
    }
    for (i, text) in input.text.iter().enumerate() {
        match words.encode(text) {
            Ok(tokens) if tokens.is_empty() => {
                let at = format!("{at}.text[{i}]");
                found.push(Problem::new(at, Msg::new("scenario.no_tokens")));
            }
            Ok(tokens) => rows.push(tokens),
            Err(msg) => {
                let help = text_help(&msg, words);
                found.push(Problem::new(format!("{at}.text[{i}]"), msg).help(help));
            }
        }
    }
    for (i, ids) in input.ids.iter().enumerate() {
        if ids.is_empty() {
            let at = format!("{at}.ids[{i}]");
            found.push(Problem::new(at, Msg::new("scenario.no_tokens")));
            continue;
        }
        let mut row = Vec::with_capacity(ids.len());
        for (j, &id) in ids.iter().enumerate() {
            match known(words, id) {
                Ok(text) => row.push(Token { text, id, unknown: false }),
                Err(msg) => {
                    let help = ids_help(words);
                    found.push(Problem::new(format!("{at}.ids[{i}][{j}]"), msg).help(help));
                }
            }
        }
        rows.push(row);
    }
    rows
}

fn ids_help(words: &Vocab) -> Msg {
    Msg::new("scenario.id_outside_help").arg("last", words.len().saturating_sub(1))
}

/// How to fix a text that has no tokens: the nearest word, where the unknown piece looks like a slip.
fn text_help(msg: &Msg, words: &Vocab) -> Msg {
    let token = msg.args.iter().find(|a| a.0 == "token").map(|a| &a.1);
    match token.map(|t| nearest(t, words.list().iter().map(String::as_str))) {
        Some(Some(near)) => Msg::new("diagnostic.did_you_mean").arg("name", escape(near)),
        Some(None) => Msg::new("scenario.unknown_token_help"),
        None => Msg::new("scenario.no_text_vocabulary_help"),
    }
}

/// Puts `<sos>` before and `<eos>` after each sentence, as asked for.
fn frame(at: &str, input: &Input, words: &Vocab, rows: &mut [Vec<Token>]) -> Result<(), Problem> {
    for (asked, name, field) in [(input.sos, "<sos>", "sos"), (input.eos, "<eos>", "eos")] {
        if !asked {
            continue;
        }
        let token = special(&format!("{at}.{field}"), name, words)?;
        for row in rows.iter_mut() {
            let end = if field == "sos" { 0 } else { row.len() };
            row.insert(end, token.clone());
        }
    }
    Ok(())
}

fn special(at: &str, name: &str, words: &Vocab) -> Result<Token, Problem> {
    let id = words.id(name).ok_or_else(|| Problem::new(at, Msg::new("scenario.no_special").arg("name", name)))?;
    Ok(Token { text: name.to_owned(), id, unknown: false })
}

/// The sequences of one side, padded, and the tokens they came from; `None` where something is wrong.
fn sequences(
    at: &str,
    input: &Input,
    words: &Vocab,
    (token_types, model): (Types, &ModelConfig),
    found: &mut Vec<Problem>,
) -> Option<(Sequences, Vec<Vec<Token>>)> {
    let before = found.len();
    let mut rows = rows(at, input, words, found);
    vectors::name_tokens(at, input, &mut rows, found);
    if rows.is_empty() && found.len() == before {
        found.push(Problem::new(at, Msg::new("scenario.no_tokens")));
    }
    if found.len() > before {
        return None;
    }
    let numbers = vectors::given(at, input, model, &rows, found);
    let padded = frame(at, input, words, &mut rows).and_then(|()| pad(at, input, words, &mut rows));
    let added = match padded {
        Ok(added) => added,
        Err(problem) => {
            found.push(problem);
            return None;
        }
    };
    let (batch, tokens) = (rows.len(), rows[0].len());
    let wrong_size = |field: &str| {
        let msg = Msg::new("scenario.flags").arg("batch", batch).arg("tokens", tokens);
        Problem::new(format!("{at}.{field}"), msg)
    };
    if let Some(given) = &input.real
        && (given.len() != batch || given.iter().any(|r| r.len() != tokens))
    {
        found.push(wrong_size("real"));
        return None;
    }
    let ids: Vec<Vec<i64>> = rows.iter().map(|row| row.iter().map(|t| t.id).collect()).collect();
    let real = padding::real(&ids, &added, input, words);
    let positions = match &input.positions {
        PositionIds::Counted => None,
        PositionIds::SkipPadding => real.as_ref().map(|real| padding::positions(tokens, real)),
        PositionIds::Ids(given) => {
            let at = format!("{at}.positions");
            if given.len() != batch || given.iter().any(|r| r.len() != tokens) {
                found.push(wrong_size("positions"));
            } else if let Some(id) = given.iter().flatten().find(|id| !(0..MAX_TOKENS as i64).contains(*id)) {
                found.push(Problem::new(at, Msg::new("scenario.position").arg("id", id).arg("most", MAX_TOKENS - 1)));
            } else if let Some((id, rows)) = past_table(given, model) {
                found.push(Problem::new(at, Msg::new("scenario.position").arg("id", id).arg("most", rows - 1)));
            }
            Some(given.concat())
        }
    };
    let mut types = None;
    if let Some(given) = &input.types {
        let none = match token_types {
            Types::Of(_) => "scenario.no_types",
            Types::OfSource => "scenario.types_of_source",
        };
        let token_types = match token_types {
            Types::Of(count) => count,
            Types::OfSource => 0,
        };
        let outside = |id: &i64| usize::try_from(*id).map_or(true, |id| id >= token_types);
        if token_types == 0 {
            found.push(Problem::new(format!("{at}.types"), Msg::new(none)));
        } else if given.len() != batch || given.iter().any(|r| r.len() != tokens) {
            found.push(wrong_size("types"));
        } else if let Some(id) = given.iter().flatten().find(|id| outside(id)) {
            let msg = Msg::new("scenario.type_outside").arg("id", id).arg("count", token_types);
            found.push(Problem::new(format!("{at}.types"), msg));
        }
        types = Some(given.concat());
    }
    let mask = input.mask.as_ref();
    let (vectors, qkv) = vectors::padded(numbers, model.d_model, tokens, input.pad_side);
    let given = match mask.map(|m| given_mask(&format!("{at}.mask"), m, batch, tokens, tokens)).transpose() {
        Ok(given) => given,
        Err(problem) => {
            found.push(problem);
            None
        }
    };
    if found.len() > before {
        return None;
    }
    let sequences = Sequences { ids: ids.concat(), batch, real, given, positions, types, cross: None, vectors, qkv };
    Some((sequences, rows))
}

/// Makes all sentences equally long; gives what was added to each.
fn pad(at: &str, input: &Input, words: &Vocab, rows: &mut [Vec<Token>]) -> Result<Vec<Added>, Problem> {
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let tokens = input.length.unwrap_or(longest);
    if tokens < longest || tokens > MAX_TOKENS || tokens.saturating_mul(rows.len()) > MAX_IDS {
        let msg = Msg::new("scenario.length").arg("length", tokens).arg("longest", longest).arg("most", MAX_TOKENS);
        return Err(Problem::new(format!("{at}.length"), msg));
    }
    // A padding that does not exist is wrong, also where no sentence needs it.
    let given = input.pad.map(|id| match known(words, id) {
        Ok(text) => Ok(Token { text, id, unknown: false }),
        Err(msg) => Err(Problem::new(format!("{at}.pad"), msg).help(ids_help(words))),
    });
    let given = given.transpose()?;
    let side = input.pad_side;
    if rows.iter().all(|r| r.len() == tokens) {
        return Ok(vec![Added { count: 0, side }; rows.len()]);
    }
    let pad = match given {
        Some(pad) => pad,
        None if vectors::are_given(input) => Token { text: "·".to_owned(), id: 0, unknown: false },
        None => special(at, padding::NAMES[0], words)?,
    };
    let fill = |row: &mut Vec<Token>| {
        let count = tokens - row.len();
        let at = if side == PadSide::Left { 0 } else { row.len() };
        row.splice(at..at, std::iter::repeat_n(pad.clone(), count));
        Added { count, side }
    };
    Ok(rows.iter_mut().map(fill).collect())
}

/// No sequence is longer: a guard against slips, not a limit of the engine.
const MAX_TOKENS: usize = 1 << 20;
/// Nor are there more tokens in all sequences together.
const MAX_IDS: usize = 1 << 24;

fn known(words: &Vocab, id: i64) -> Result<String, Msg> {
    if usize::try_from(id).is_ok_and(|i| i < words.len()) {
        Ok(words.word(id))
    } else {
        Err(Msg::new("scenario.id_outside").arg("id", id).arg("size", words.len()))
    }
}

/// The first of given positions that lies past a table of learned ones, and the table's rows.
fn past_table(given: &[Vec<i64>], model: &ModelConfig) -> Option<(i64, usize)> {
    let rows = limits::table(model)?;
    let id = given.iter().flatten().find(|id| **id >= rows as i64)?;
    Some((*id, rows))
}

/// The mask of the decoder's cross-attention that a source gives.
fn cross(
    at: &str,
    input: &Input,
    given: &Given<'_>,
    batch: usize,
    tokens: usize,
    words: &Vocab,
) -> Result<Option<GivenMask>, Problem> {
    let Some(mask) = &input.cross_mask else { return Ok(None) };
    let at = format!("{at}.cross_mask");
    if given.model.decoder.is_none() {
        return Err(Problem::new(at, Msg::new("scenario.cross_without_decoder")));
    }
    // A row a target token: of the target that is read.
    let queries = match (mask, given.target.1) {
        (MaskInput::Square(_), Some(target)) => {
            let mut unfit = Vec::new();
            let read = sequences(&given.target.0, target, words, (Types::OfSource, given.model), &mut unfit);
            // What is wrong with the target is reported where the target is.
            let Some((read, _)) = read else { return Ok(None) };
            read.tokens()
        }
        (MaskInput::Square(_), None) => return Err(Problem::new(at, Msg::new("scenario.cross_rows"))),
        _ => 1,
    };
    given_mask(&at, mask, batch, queries, tokens).map(Some)
}

fn given_mask(at: &str, mask: &MaskInput, batch: usize, square: usize, tokens: usize) -> Result<GivenMask, Problem> {
    let (rows, queries): (Vec<Vec<Vec<bool>>>, usize) = match mask {
        MaskInput::Keys(rows) => (rows.iter().map(|r| vec![r.clone()]).collect(), 1),
        MaskInput::Row(rows) => (rows.clone(), 1),
        MaskInput::Square(rows) => (rows.clone(), square),
    };
    let fits = rows.len() == batch && rows.iter().all(|m| m.len() == queries && m.iter().all(|r| r.len() == tokens));
    if !fits {
        let mut wanted = vec![batch.to_string(), tokens.to_string()];
        if !matches!(mask, MaskInput::Keys(_)) {
            wanted.insert(1, queries.to_string());
        }
        let msg = Msg::new("scenario.mask_shape").arg("wanted", wanted.join(" × "));
        return Err(Problem::new(at, msg));
    }
    let per_query = matches!(mask, MaskInput::Square(_));
    Ok(GivenMask { batch, queries, per_query, keys: tokens, visible: rows.concat().concat() })
}

fn labels(at: &str, labels: &Labels, s: &Sequences, words: &Vocab) -> Result<Option<Vec<i64>>, Problem> {
    let tokens = s.tokens();
    let real = |i: usize| s.real.as_ref().is_none_or(|r| r[i]);
    let out: Vec<i64> = match labels {
        Labels::None => return Ok(None),
        Labels::Unshifted => (0..s.ids.len()).map(|i| if real(i) { s.ids[i] } else { -1 }).collect(),
        Labels::Shifted => {
            (0..s.ids.len()).map(|i| if (i + 1) % tokens == 0 || !real(i + 1) { -1 } else { s.ids[i + 1] }).collect()
        }
        Labels::Ids(rows) => {
            if rows.len() != s.batch || rows.iter().any(|r| r.len() != tokens) {
                let msg = Msg::new("scenario.flags").arg("batch", s.batch).arg("tokens", tokens);
                return Err(Problem::new(at, msg));
            }
            rows.concat()
        }
    };
    if let Some(i) = out.iter().position(|&l| l >= words.len() as i64) {
        let msg = Msg::new("scenario.id_outside").arg("id", out[i]).arg("size", words.len());
        let at = format!("{at}[{}][{}]", i / tokens, i % tokens);
        return Err(Problem::new(at, msg).help(ids_help(words)));
    }
    if out.iter().all(|&l| l < 0) {
        return Err(Problem::new(at, Msg::new("scenario.no_label_counts")));
    }
    Ok(Some(out))
}

/// Ids of a prefix.
///
/// # Errors
/// Unknown tokens, ids outside the vocabulary, no token at all.
pub fn prefix(at: &str, prefix: &Prefix, words: &Vocab) -> Result<Vec<i64>, Problem> {
    let ids = match prefix {
        Prefix::Text(text) => words
            .encode(text)
            .map_err(|msg| {
                let help = text_help(&msg, words);
                Problem::new(at, msg).help(help)
            })?
            .into_iter()
            .map(|t| t.id)
            .collect(),
        Prefix::Ids(ids) => ids.clone(),
    };
    for &id in &ids {
        known(words, id).map_err(|msg| Problem::new(at, msg).help(ids_help(words)))?;
    }
    if ids.is_empty() {
        return Err(Problem::new(at, Msg::new("scenario.no_tokens")));
    }
    Ok(ids)
}
