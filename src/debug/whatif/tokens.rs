//! A token of a scenario's sentences or prefixes put in place of another.

use crate::scenario::Scenario;
use crate::scenario::diagnostic::Problem;
use crate::scenario::edit::Side;
use crate::scenario::schema::{Changes, Decode, Input, Prefix, Run};
use crate::scenario::tokenise::Vocab;
use crate::text::{Msg, escape, nearest};

/// Which token, as a run counts them: `<sos>`, where it is put before a sentence, is position 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPlace {
    /// Which side.
    pub side: Side,
    /// Which sentence, from 0.
    pub sentence: usize,
    /// Which position, from 0.
    pub position: usize,
    /// The run whose sentence it is.
    pub run: String,
}

/// The id that `word` means: a word of the vocabulary, or an id in digits.
///
/// # Errors
/// Where the vocabulary has neither.
pub fn id_of(word: &str, words: &Vocab) -> Result<i64, Msg> {
    if let Some(id) = words.id(word) {
        return Ok(id);
    }
    let digits = word.strip_prefix('#').unwrap_or(word);
    match digits.parse::<usize>() {
        Ok(id) if id < words.len() => Ok(id as i64),
        Ok(id) => Err(Msg::new("scenario.id_outside").arg("id", id).arg("size", words.len())),
        Err(_) => {
            let near = nearest(word, words.list().iter().map(String::as_str));
            let key = if near.is_some() { "edit.no_word_near" } else { "edit.no_word" };
            Err(Msg::new(key)
                .arg("word", escape(word))
                .arg("near", escape(near.unwrap_or("")))
                .arg("last", words.len().saturating_sub(1)))
        }
    }
}

/// Puts token `id` at a place of the scenario.
///
/// # Errors
/// Where the run reads no such token.
pub fn put(scenario: &mut Scenario, place: &TokenPlace, id: i64, words: &Vocab) -> Result<(), Problem> {
    let at = format!("token {}", place.side.name());
    let wrong = |msg: Msg| Problem::new(at.clone(), msg.arg("position", place.position));
    let own = scenario.runs.iter_mut().find(|r| r.name() == place.run).map(|run| match run {
        Run::Training { with, .. } | Run::Forward { with, .. } | Run::Encode { with, .. } => (with, None),
        Run::Inference { with, decode, .. } => (with, Some(decode)),
    });
    let (with, decode): (Option<&mut Box<Changes>>, Option<&mut Decode>) = match own {
        Some((with, decode)) => (Some(with), decode),
        None => (None, None),
    };
    if let (Some(decode), Side::Target) = (decode, place.side) {
        return prefixes(decode, place, id, words).map_err(wrong);
    }
    let own = with.and_then(|w| match place.side {
        Side::Source => w.source.as_mut(),
        Side::Target => w.target.as_mut(),
    });
    let all = match place.side {
        Side::Source => scenario.source.as_mut(),
        Side::Target => scenario.target.as_mut(),
    };
    let input = own.or(all).ok_or_else(|| {
        let msg = Msg::new("edit.no_sentence").arg("side", place.side.name());
        wrong(msg)
    })?;
    sentence(input, place, id, words).map_err(wrong)
}

/// In the first tokens of a decoding: in every forced prefix that is long enough.
fn prefixes(decode: &mut Decode, place: &TokenPlace, id: i64, words: &Vocab) -> Result<(), Msg> {
    let position = place.position;
    let generated = || Msg::new("edit.generated").arg("position", position);
    let one = |prefix: &mut Prefix| -> Result<bool, Msg> {
        let mut ids = match prefix {
            Prefix::Ids(ids) => ids.clone(),
            Prefix::Text(text) => ids_of(text, words)?,
        };
        let Some(slot) = ids.get_mut(place.position) else {
            return Ok(false);
        };
        *slot = id;
        let text = matches!(prefix, Prefix::Text(_)).then(|| text_of(&ids, words));
        *prefix = text.flatten().map_or(Prefix::Ids(ids), Prefix::Text);
        Ok(true)
    };
    let any = match decode {
        Decode::Forced(all) => {
            let mut any = false;
            for prefix in all {
                any |= one(prefix)?;
            }
            any
        }
        Decode::Batch { from: all, .. } => match all.get_mut(place.sentence) {
            Some(prefix) => one(prefix)?,
            None => false,
        },
        Decode::Greedy { from, .. } | Decode::Sample { from, .. } | Decode::Beam { from, .. } => one(from)?,
    };
    if any { Ok(()) } else { Err(generated()) }
}

fn sentence(input: &mut Input, place: &TokenPlace, id: i64, words: &Vocab) -> Result<(), Msg> {
    let texts = input.text.len();
    let mut rows: Vec<Vec<i64>> = Vec::with_capacity(texts + input.ids.len());
    for text in &input.text {
        rows.push(ids_of(text, words)?);
    }
    rows.extend(input.ids.iter().cloned());
    let sentences = rows.len();
    let Some(row) = rows.get(place.sentence) else {
        return Err(Msg::new("edit.no_such_sentence")
            .arg("sentence", place.sentence)
            .arg("last", sentences.saturating_sub(1)));
    };
    let first = usize::from(input.sos);
    let end = first + row.len();
    // A token that frames every sentence is written out before one of them is another.
    let mut unframed = false;
    let padding = || Msg::new("edit.padding").arg("position", place.position);
    let frame = |name: &str| words.id(name).ok_or_else(padding);
    if input.sos && place.position == 0 {
        let sos = frame("<sos>")?;
        for row in &mut rows {
            row.insert(0, sos);
        }
        (input.sos, unframed) = (false, true);
    } else if input.eos && place.position == end {
        let eos = frame("<eos>")?;
        for row in &mut rows {
            row.push(eos);
        }
        (input.eos, unframed) = (false, true);
    } else if place.position >= end {
        return Err(padding());
    }
    let first = usize::from(input.sos);
    rows[place.sentence][place.position - first] = id;
    let changed = |i: usize| unframed || i == place.sentence;
    // Texts come before ids: where one cannot stay text, all become ids.
    let mut text = Vec::with_capacity(texts);
    for (i, old) in input.text.iter().enumerate() {
        let new = if changed(i) { text_of(&rows[i], words) } else { Some(old.clone()) };
        let Some(new) = new else { break };
        text.push(new);
    }
    if text.len() < texts {
        text.clear();
    }
    input.ids = rows.split_off(text.len());
    input.text = text;
    Ok(())
}

fn ids_of(text: &str, words: &Vocab) -> Result<Vec<i64>, Msg> {
    Ok(words.encode(text)?.into_iter().map(|t| t.id).collect())
}

/// A text that is cut into just these tokens, where there is one.
fn text_of(ids: &[i64], words: &Vocab) -> Option<String> {
    let written: Vec<String> = ids.iter().map(|id| words.word(*id)).collect();
    ["", " "].iter().map(|between| written.join(between)).find(|text| ids_of(text, words).is_ok_and(|cut| cut == ids))
}
