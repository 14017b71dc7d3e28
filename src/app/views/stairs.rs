//! Staircases: what each decoding call or each position reads, a line each, a token a cell.

use super::words::Stair;
use crate::app::navigator::Navigator;
use crate::program::{Name, Role, Side, Site};

/// Steps of a staircase that are listed.
pub const MAX_STEPS: usize = 256;

/// The word that each position of a forward pass (or of a decoding call) chooses, with its probability.
pub fn predictions(nav: &Navigator, run: usize, call: Option<u32>) -> Vec<(String, f64)> {
    let program = &nav.session.runs[run].program;
    let Ok(trace) = nav.session.trace(run) else { return Vec::new() };
    let value = |role: Role| {
        let name = Name { call, ..Name::of(Site::Output).then(role) };
        trace.get(program.named(&name)?)
    };
    let (Some(ids), Some(probs)) = (value(Role::Argmax), value(Role::PredictedProbs)) else {
        return Vec::new();
    };
    let words = nav.session.words(nav.session.spoken());
    let n = ids.shape().len().min(probs.shape().len());
    (0..n).map(|i| (words.word(ids.get(i) as i64), probs.get(i))).collect()
}

/// All tokens that each call sees. A call with a cache reads the newest only: the others are those of before.
pub fn tokens_of_calls(nav: &Navigator, run: usize, lengths: &[usize]) -> Vec<Vec<String>> {
    let program = &nav.session.runs[run].program;
    let Ok(trace) = nav.session.trace(run) else {
        return Vec::new();
    };
    let words = nav.session.words(Side::Target);
    let mut all: Vec<Vec<String>> = Vec::new();
    for (call, length) in lengths.iter().enumerate() {
        let names = [(Site::Root, Role::Tokens), (Site::Embedding(Some(Side::Target)), Role::Ids)];
        let named = |(site, role)| program.named(&Name::of(site).then(role).in_call(call as u32));
        let mut found = names.into_iter().filter_map(|name| trace.get(named(name)?));
        let Some(ids) = found.next() else { break };
        let row = ids.shape().dims().last().copied().unwrap_or(0);
        let read = (0..row).map(|i| words.word(ids.get(i) as i64));
        let before = all.last().filter(|_| row < *length);
        let mut seen: Vec<String> = before.cloned().unwrap_or_default();
        seen.truncate(length.saturating_sub(row));
        seen.extend(read);
        all.push(seen);
    }
    all
}

/// A step for each decoding call: what is read again (or is in the cache), what is new, and what it chooses.
pub fn calls(nav: &Navigator, run: usize) -> Vec<Stair> {
    let Some((calls, _)) = nav.session.calls_of(run) else { return Vec::new() };
    let lengths = calls.first(nav.session.calls_made(run)).lengths();
    let tokens = tokens_of_calls(nav, run, &lengths);
    let number = crate::text::NumberFormat::default();
    let steps = tokens.iter().enumerate().take(MAX_STEPS).map(|(call, tokens)| {
        let old = call.checked_sub(1).map_or(0, |before| lengths[before]).min(tokens.len());
        let chosen = predictions(nav, run, Some(call as u32)).pop();
        let chosen = chosen.map_or_else(String::new, |(word, p)| format!("→ {word} {}", number.format_short(p)));
        Stair { label: (call + 1).to_string(), tokens: tokens.clone(), old, next: Vec::new(), note: chosen }
    });
    steps.collect()
}

/// A step for each position of the first sentence of a training run: what it sees, what it must predict, what it
/// predicts.
pub fn positions(nav: &Navigator, run: usize) -> Vec<Stair> {
    let s = &nav.session;
    let all = crate::debug::teacher::first_positions(s, run, MAX_STEPS);
    let predicted = predictions(nav, run, None);
    let number = crate::text::NumberFormat::default();
    let steps = all.iter().enumerate().filter(|(_, p)| p.batch == 0).map(|(i, p)| {
        let guess = predicted.get(i);
        let note = guess.map_or_else(String::new, |(word, p)| format!("→ {word} {}", number.format_short(*p)));
        let right = guess.is_some_and(|(word, _)| Some(word) == p.predicts.as_ref());
        let next = p.predicts.iter().map(|word| (word.clone(), right)).collect();
        Stair { label: p.position.to_string(), tokens: p.sees.clone(), old: p.sees.len().saturating_sub(1), next, note }
    });
    steps.collect()
}
