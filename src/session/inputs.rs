//! Sentences to ids, padding, masks, labels.

use crate::model::Sequences;
use crate::model::config::ModelConfig;
use crate::model::masks::GivenMask;
use crate::scenario::diagnostic::Problem;
use crate::scenario::schema::{Changes, Input, Labels, MaskInput, Prefix, Scenario};
use crate::scenario::tokenise::{Token, Words};
use crate::text::{Msg, escape};

/// What the stacks read.
#[derive(Clone, Debug, Default)]
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

/// What is to be tokenised, each with the field where it stands.
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

/// Tokenises all that is given.
///
/// # Errors
/// Unknown tokens, ids outside the vocabulary, sentences of no tokens, masks that do not fit.
pub(super) fn inputs(given: &Given<'_>, source: &Words, target: &Words) -> Result<Inputs, Problem> {
    let mut out = Inputs::default();
    if let ((at, Some(input)), true) = (&given.source, given.model.encoder.is_some()) {
        let (sequences, tokens) = sequences(at, input, source)?;
        (out.source, out.source_tokens) = (Some(sequences), tokens);
    }
    if let ((at, Some(input)), true) = (&given.target, given.model.decoder.is_some()) {
        let (sequences, tokens) = sequences(at, input, target)?;
        (out.target, out.target_tokens) = (Some(sequences), tokens);
    }
    let spoken = out.target.as_ref().or(out.source.as_ref());
    if let Some(s) = spoken {
        let words = if out.target.is_some() { target } else { source };
        let (at, labels) = &given.labels;
        out.labels = self::labels(at, labels, s, words)?;
    }
    if let (Some(s), Some(t)) = (&out.source, &out.target)
        && s.batch != t.batch
    {
        return Err(Problem::new(
            given.target.0.as_str(),
            Msg::new("scenario.batch")
                .arg("source", s.batch)
                .arg("target", t.batch),
        ));
    }
    Ok(out)
}

fn sequences(
    at: &str,
    input: &Input,
    words: &Words,
) -> Result<(Sequences, Vec<Vec<Token>>), Problem> {
    let mut rows: Vec<Vec<Token>> = Vec::new();
    for (i, text) in input.text.iter().enumerate() {
        let tokens = words.encode(text).map_err(|msg| {
            Problem::new(format!("{at}.text[{i}]"), msg).near(format!("{text:?}"))
        })?;
        rows.push(tokens);
    }
    for (i, ids) in input.ids.iter().enumerate() {
        let row = ids.iter().map(|&id| {
            known(words, id).map(|text| Token {
                text,
                id,
                unknown: false,
            })
        });
        rows.push(
            row.collect::<Result<_, _>>()
                .map_err(|msg| Problem::new(format!("{at}.ids[{i}]"), msg))?,
        );
    }
    let special = |name: &str| {
        let id = words.id(name).ok_or_else(|| {
            Problem::new(at, Msg::new("scenario.no_special").arg("name", name))
                .help(Msg::new("scenario.no_special_help"))
        })?;
        Ok::<_, Problem>(Token {
            text: name.to_owned(),
            id,
            unknown: false,
        })
    };
    for row in &mut rows {
        if input.sos {
            row.insert(0, special("<sos>")?);
        }
        if input.eos {
            row.push(special("<eos>")?);
        }
    }
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let tokens = input.length.unwrap_or(longest);
    if rows.is_empty() || longest == 0 {
        return Err(Problem::new(at, Msg::new("scenario.no_tokens")));
    }
    if tokens < longest || tokens > MOST_TOKENS {
        return Err(Problem::new(
            format!("{at}.length"),
            Msg::new("scenario.length")
                .arg("length", tokens)
                .arg("longest", longest)
                .arg("most", MOST_TOKENS),
        ));
    }
    let mut real: Vec<bool> = Vec::new();
    let mut padded = false;
    for row in &mut rows {
        let own = row.len();
        if own < tokens {
            padded = true;
            let pad = match input.pad {
                Some(id) => Token {
                    text: known(words, id).map_err(|msg| Problem::new(format!("{at}.pad"), msg))?,
                    id,
                    unknown: false,
                },
                None => special("<pad>")?,
            };
            row.resize(tokens, pad);
        }
        real.extend((0..tokens).map(|i| i < own));
    }
    let batch = rows.len();
    if let Some(given) = &input.real {
        if given.len() != batch || given.iter().any(|r| r.len() != tokens) {
            return Err(Problem::new(
                format!("{at}.real"),
                Msg::new("scenario.flags")
                    .arg("batch", batch)
                    .arg("tokens", tokens),
            ));
        }
        real = given.concat();
        padded = true;
    }
    let types = match &input.types {
        Some(t) if t.len() != batch || t.iter().any(|r| r.len() != tokens) => {
            return Err(Problem::new(
                format!("{at}.types"),
                Msg::new("scenario.flags")
                    .arg("batch", batch)
                    .arg("tokens", tokens),
            ));
        }
        t => t.as_ref().map(|t| t.concat()),
    };
    let sequences = Sequences {
        ids: rows.iter().flatten().map(|t| t.id).collect(),
        batch,
        real: padded.then_some(real),
        given: input
            .mask
            .as_ref()
            .map(|m| given_mask(at, m, batch, tokens))
            .transpose()?,
        types,
    };
    Ok((sequences, rows))
}

/// No sequence is longer: a guard against slips, not a limit of the engine.
const MOST_TOKENS: usize = 1 << 20;

fn known(words: &Words, id: i64) -> Result<String, Msg> {
    if usize::try_from(id).is_ok_and(|i| i < words.len()) {
        Ok(words.word(id))
    } else {
        Err(Msg::new("scenario.id_outside")
            .arg("id", id)
            .arg("size", words.len()))
    }
}

fn given_mask(
    at: &str,
    mask: &MaskInput,
    batch: usize,
    tokens: usize,
) -> Result<GivenMask, Problem> {
    let (rows, queries): (Vec<Vec<Vec<bool>>>, usize) = match mask {
        MaskInput::Keys(rows) => (rows.iter().map(|r| vec![r.clone()]).collect(), 1),
        MaskInput::Row(rows) => (rows.clone(), 1),
        MaskInput::Square(rows) => (rows.clone(), tokens),
    };
    let fits = rows.len() == batch
        && rows
            .iter()
            .all(|m| m.len() == queries && m.iter().all(|r| r.len() == tokens));
    if !fits {
        return Err(Problem::new(
            format!("{at}.mask"),
            Msg::new("scenario.mask_shape")
                .arg("batch", batch)
                .arg("queries", queries)
                .arg("tokens", tokens),
        ));
    }
    Ok(GivenMask {
        batch,
        queries,
        keys: tokens,
        visible: rows.concat().concat(),
    })
}

fn labels(
    at: &str,
    labels: &Labels,
    s: &Sequences,
    words: &Words,
) -> Result<Option<Vec<i64>>, Problem> {
    let tokens = s.tokens();
    let real = |i: usize| s.real.as_ref().is_none_or(|r| r[i]);
    let out: Vec<i64> = match labels {
        Labels::None => return Ok(None),
        Labels::Unshifted => (0..s.ids.len())
            .map(|i| if real(i) { s.ids[i] } else { -1 })
            .collect(),
        Labels::Shifted => (0..s.ids.len())
            .map(|i| {
                if (i + 1) % tokens == 0 || !real(i + 1) {
                    -1
                } else {
                    s.ids[i + 1]
                }
            })
            .collect(),
        Labels::Ids(rows) => {
            if rows.len() != s.batch || rows.iter().any(|r| r.len() != tokens) {
                return Err(Problem::new(
                    at,
                    Msg::new("scenario.flags")
                        .arg("batch", s.batch)
                        .arg("tokens", tokens),
                ));
            }
            rows.concat()
        }
    };
    if let Some(&bad) = out.iter().find(|&&l| l >= words.len() as i64) {
        return Err(Problem::new(
            at,
            Msg::new("scenario.id_outside")
                .arg("id", bad)
                .arg("size", words.len()),
        ));
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
pub fn prefix(at: &str, prefix: &Prefix, words: &Words) -> Result<Vec<i64>, Problem> {
    let ids = match prefix {
        Prefix::Text(text) => words
            .encode(text)
            .map_err(|msg| Problem::new(at, msg).near(escape(text)))?
            .into_iter()
            .map(|t| t.id)
            .collect(),
        Prefix::Ids(ids) => ids.clone(),
    };
    for &id in &ids {
        known(words, id).map_err(|msg| Problem::new(at, msg))?;
    }
    if ids.is_empty() {
        return Err(Problem::new(at, Msg::new("scenario.no_tokens")));
    }
    Ok(ids)
}
