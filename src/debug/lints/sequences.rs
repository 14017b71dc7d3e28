//! What sentences are made of: their end tokens that no label teaches, labels from another sentence, start tokens
//! that are there twice.

use super::{Finding, bracketed};
use crate::debug::teacher::{Shift, shift};
use crate::model::Sequences;
use crate::scenario::lint::{Lint, Severity};
use crate::scenario::schema::{Input, Run};
use crate::scenario::tokenise::Vocab;
use crate::session::{RunKind, Session, padding};
use crate::text::{Msg, escape};

/// Names of tokens that end a sentence.
const ENDS: [&str; 3] = ["<eos>", "</s>", "<|endoftext|>"];
/// Names of tokens that begin one.
const STARTS: [&str; 4] = ["<sos>", "<s>", "<bos>", "<|begin_of_text|>"];

/// What is wrong with the sentences that run `run` reads and the labels that it learns from.
pub(super) fn of_run(session: &Session, run: usize) -> Vec<Finding> {
    let r = &session.runs[run];
    let named = session.scenario.runs.iter().find(|s| s.name() == r.name).map(Run::with);
    let own = |of: fn(&crate::scenario::schema::Changes) -> &Option<Input>| named.and_then(|w| of(w).as_ref());
    let source = own(|w| &w.source).or(session.scenario.source.as_ref());
    let target = own(|w| &w.target).or(session.scenario.target.as_ref());
    let sides = [
        ("embed.source.ids", &r.inputs.source, source, &session.source_words),
        ("embed.target.ids", &r.inputs.target, target, &session.target_words),
    ];
    let mut found = Vec::new();
    for (path, sequences, input, words) in sides {
        if let Some(s) = sequences {
            let flags = padding::seen(&s.ids, s.tokens(), s.real.as_deref(), input, words);
            found.extend(doubled_start(session, run, path, s, &flags, words));
        }
    }
    if r.kind == RunKind::Training
        && let (Some(s), Some(labels)) = (&r.inputs.target, &r.inputs.labels)
    {
        let words = &session.target_words;
        let flags = padding::seen(&s.ids, s.tokens(), s.real.as_deref(), target, words);
        found.extend(end_not_taught(session, run, s, &flags, labels, words));
        // Where no label is a shift of its sentence, that is reported as it is.
        if shift(session, run) == Some(Shift::Next) {
            found.extend(label_of_another(session, run, s, labels, words));
        }
    }
    found
}

fn ids(words: &Vocab, names: &[&str]) -> Vec<i64> {
    names.iter().filter_map(|name| words.id(name)).collect()
}

/// A start token right after a start token, at the beginning of a sentence.
fn doubled_start(
    session: &Session,
    run: usize,
    path: &str,
    s: &Sequences,
    padding: &[bool],
    words: &Vocab,
) -> Option<Finding> {
    let starts = ids(words, &STARTS);
    let tokens = s.tokens().max(1);
    let mut doubled = s.ids.chunks(tokens).enumerate().filter_map(|(b, row)| {
        let first = (0..row.len()).find(|i| !padding[b * tokens + i])?;
        let both = starts.contains(&row[first]) && row.get(first + 1) == Some(&row[first]);
        both.then_some((b, first + 1, row[first]))
    });
    let (b, i, id) = doubled.next()?;
    let count = 1 + doubled.count();
    let token = escape(&words.word(id)).into_owned();
    Some(finding(session, run, Lint::StartTwice, (path, vec![b, i]), (id, count), &[("token", token)]))
}

/// An end token that closes a sentence, and before which no label counts: the model never learns to end.
fn end_not_taught(
    session: &Session,
    run: usize,
    s: &Sequences,
    padding: &[bool],
    labels: &[i64],
    words: &Vocab,
) -> Option<Finding> {
    let ends = ids(words, &ENDS);
    let tokens = s.tokens().max(1);
    let mut untaught = s.ids.chunks(tokens).enumerate().filter_map(|(b, row)| {
        let last = (0..row.len()).rev().find(|i| !padding[b * tokens + i])?;
        let labels = &labels[b * tokens..(b + 1) * tokens];
        // A sentence without any label is nothing to learn from.
        let learns = labels.iter().any(|l| *l >= 0);
        let taught = labels.iter().any(|l| ends.contains(l));
        (last > 0 && ends.contains(&row[last]) && learns && !taught && labels[last - 1] < 0)
            .then(|| (b, last - 1, row[last]))
    });
    let (b, i, id) = untaught.next()?;
    let mut places = vec![format!("[{b},{i}]")];
    places.extend(untaught.map(|(b, i, _)| format!("[{b},{i}]")));
    let count = places.len();
    let token = escape(&words.word(id)).into_owned();
    let more = [("token", token), ("places", places.join(", "))];
    Some(finding(session, run, Lint::EndNotTaught, ("loss.labels", vec![b, i]), (id, count), &more))
}

/// The label of a sentence's last place, which the sentence itself does not say: a start token, or in every sentence
/// the first token of the next one (or of its own), as where a whole batch was moved by one.
fn label_of_another(session: &Session, run: usize, s: &Sequences, labels: &[i64], words: &Vocab) -> Option<Finding> {
    let starts = ids(words, &STARTS);
    let tokens = s.tokens().max(1);
    let rows: Vec<&[i64]> = s.ids.chunks(tokens).collect();
    let last: Vec<(usize, i64)> =
        (0..rows.len()).map(|b| (b, labels[(b + 1) * tokens - 1])).filter(|(_, label)| *label >= 0).collect();
    let is_start = |(_, label): &&(usize, i64)| starts.contains(label);
    let all = |of: &dyn Fn(usize) -> Option<i64>| {
        last.len() > 1 && last.iter().all(|(b, label)| of(*b).is_none_or(|first| first == *label))
    };
    let next = all(&|b| rows.get(b + 1).map(|row| row[0])) && last.iter().any(|(b, _)| b + 1 < rows.len());
    let own = all(&|b| Some(rows[b][0]));
    let moved: Vec<&(usize, i64)> =
        if next || own { last.iter().collect() } else { last.iter().filter(is_start).collect() };
    let &&(b, label) = moved.first()?;
    let word = escape(&words.word(label)).into_owned();
    let cell = vec![b, tokens - 1];
    let more = [("predicts", word), ("position", (tokens - 1).to_string())];
    Some(finding(session, run, Lint::LabelOfAnother, ("loss.labels", cell), (label, moved.len()), &more))
}

fn finding(
    session: &Session,
    run: usize,
    lint: Lint,
    (path, cell): (&str, Vec<usize>),
    (id, count): (i64, usize),
    args: &[(&'static str, String)],
) -> Finding {
    let mut msg = Msg::new(lint.key()).arg("path", path).arg("cell", bracketed(&cell)).arg("count", count);
    for (name, value) in args {
        msg = msg.arg(name, value);
    }
    Finding {
        lint,
        severity: Severity::Warning,
        allowed: false,
        run: Some(run),
        also: Vec::new(),
        path: path.to_owned(),
        node: session.runs[run].program.find(path),
        cell,
        value: Some(id as f64),
        count,
        msg,
    }
}
