//! Generation as a program: one frame `gen.N` a decoding call, all of them nodes of one graph.
//!
//! The next token is a node like any other, so the whole run is known before it starts; stopping at an end token is
//! the interpreter's business. With a cache a frame computes the last position only; its numbers have the same bits.

use super::beam;
use super::blocks::Cache;
use super::build::{ModelBuilder, Sequences};
use super::calls::longest;
pub use super::calls::{Barred, Calls, Choice, Part};
use crate::program::composite::{self, Shift};
use crate::program::{
    Affine, Binary, BuildError, Builder, Constant, NodeId, Op, Pick, Program, Random, RandomKind, ScopeKind, Unary,
    reason,
};
use crate::tensor::{Axis, Shape};

/// What is real in call `call` of a batch, and the positions of the tokens from `first` on.
fn batch_of(from: &[Vec<i64>], call: usize, first: usize) -> Sequences {
    let tokens = longest(from) + call;
    let (mut real, mut positions) = (Vec::new(), Vec::new());
    for row in from {
        let padding = longest(from) - row.len();
        real.extend((0..tokens).map(|i| i >= padding));
        positions.extend((first..tokens).map(|i| i.saturating_sub(padding) as i64));
    }
    let real = real.contains(&false).then_some(real);
    // Sentences of equal length have the positions that are counted anyway.
    let positions = real.is_some().then_some(positions);
    Sequences { batch: from.len(), real, positions, ..Sequences::default() }
}

/// Builds `part` of a generation run: the encoder once, then one frame a call. `known` is the sentence that forced
/// prefixes come from, where there is one: its next token is compared with what is predicted. Only a part that begins
/// with the first call can have a cache.
///
/// # Errors
/// Where parts do not fit.
pub fn generate(
    mut m: ModelBuilder<'_>,
    source: Option<&Sequences>,
    calls: &Calls,
    part: &Part,
    known: Option<&[i64]>,
    cached: bool,
) -> Result<Program, BuildError> {
    m.vocabulary()?;
    let memory = match source {
        Some(s) if m.resolved.has_encoder => {
            let x = m.source_input(s)?;
            Some((m.encoder(x, s)?, s))
        }
        _ => None,
    };
    match calls {
        Calls::Forced(prefixes) => {
            let mut cache = cached.then(Cache::default);
            let mut before: &[i64] = &[];
            for i in part.calls.clone() {
                let prefix = &prefixes[i];
                let path = format!("gen.{i}.tokens");
                let tokens = composite::token_ids(&mut m.b, &path, 1, prefix)?;
                // What is kept helps only a prefix that goes on from the one before.
                let goes_on = prefix.len() > before.len() && prefix.starts_with(before);
                if let Some(cache) = cache.as_mut().filter(|_| !goes_on) {
                    cache.own.clear();
                }
                let first = if cached && goes_on { before.len() } else { 0 };
                let probs = m.call(i, tokens, first, None, memory, cache.as_mut())?;
                before = prefix;
                if let Some(&next) = known.and_then(|k| k.strip_prefix(prefix.as_slice())).and_then(|rest| rest.first())
                {
                    target(&mut m, i, probs, next)?;
                }
            }
        }
        Calls::Free { choice, barred, .. } => {
            let mut cache = cached.then(Cache::default);
            let mut tokens = part.first_tokens(&mut m.b)?;
            let mut first = 0;
            for i in part.calls.clone() {
                m.call(i, tokens, first, None, memory, cache.as_mut())?;
                let next = choose(&mut m, i, *choice, if i < barred.calls { &barred.ids } else { &[] })?;
                if i + 1 < part.calls.end {
                    if cached {
                        first = m.b.shape(tokens).dims()[1];
                    }
                    tokens = m.b.concat(format!("gen.{}.tokens", i + 1), 1, &[tokens, next])?;
                }
            }
        }
        Calls::Batch { from, .. } => {
            let mut cache = cached.then(Cache::default);
            let mut tokens = part.first_tokens(&mut m.b)?;
            let mut first = 0;
            for i in part.calls.clone() {
                let of = batch_of(from, i, first);
                m.call(i, tokens, first, Some(&of), memory, cache.as_mut())?;
                let next = choose(&mut m, i, Choice::Greedy, &[])?;
                if i + 1 < part.calls.end {
                    if cached {
                        first = m.b.shape(tokens).dims()[1];
                    }
                    tokens = m.b.concat(format!("gen.{}.tokens", i + 1), 1, &[tokens, next])?;
                }
            }
        }
        Calls::Beam { from, beams, end, length_penalty, .. } => {
            let how = beam::Search { beams: *beams, end: *end, length_penalty: *length_penalty, prompt: from.len() };
            beam::search(&mut m, memory, part, &how, cached)?;
        }
    }
    Ok(m.b.finish())
}

/// The token that the known sentence goes on with, and its probability.
fn target(m: &mut ModelBuilder<'_>, i: usize, probs: NodeId, next: i64) -> Result<(), BuildError> {
    let s = m.b.shape(probs);
    let (tokens, words) = (s.dims()[1], s.dims()[2]);
    m.within(&format!("gen.{i}"), ScopeKind::Group, |m| {
        let b = &mut m.b;
        let last = b.slice("last_probs", probs, 1, tokens - 1, 1)?;
        let row = b.reshape("last_probs_row", last, Shape::named(&[(Axis::Batch, 1), (Axis::Vocab, words)]))?;
        let one = Shape::named(&[(Axis::Token, 1)]);
        let column = Shape::named(&[(Axis::Batch, 1), (Axis::One, 1)]);
        let id = b.constant("target_id", one, Constant::Int([next].into()))?;
        let id = b.reshape("target_id_column", id, column)?;
        let picked = b.gather("target_prob_column", Pick::Along, row, id)?;
        for id in [last, row, id, picked] {
            b.inline(id);
        }
        b.reshape("target_prob", picked, one)?;
        Ok(())
    })
}

/// The next token `[1, 1]` of frame `i`, with every number of the choice as a node.
fn choose(m: &mut ModelBuilder<'_>, i: usize, choice: Choice, barred: &[i64]) -> Result<NodeId, BuildError> {
    let program = m.b.program();
    let logits = program.find(&format!("gen.{i}.output.logits")).expect("the frame has logits");
    let argmax = program.find(&format!("gen.{i}.output.argmax")).expect("the frame has a greedy choice");
    let read = program.find(&format!("gen.{i}.tokens")).expect("the frame has tokens");
    let s = m.b.shape(logits);
    let (tokens, words) = (s.dims()[1], s.dims()[2]);
    let row = Shape::named(&[(Axis::Batch, 1), (Axis::Vocab, words)]);
    let one = Shape::named(&[(Axis::Batch, 1), (Axis::Token, 1)]);
    m.within(&format!("gen.{i}.next"), ScopeKind::Group, |m| {
        let b = &mut m.b;
        if choice == Choice::Greedy && barred.is_empty() {
            return b.slice("id", argmax, 1, tokens - 1, 1);
        }
        let last = b.slice("logits_row", logits, 1, tokens - 1, 1)?;
        b.inline(last);
        let mut last = b.reshape("logits", last, row)?;
        if !barred.is_empty() {
            let hidden = |id: usize| if barred.contains(&(id as i64)) { reason::GIVEN } else { 0 };
            let mask = b.mask("barred", row, (0..words).map(hidden).collect())?;
            last = b.mask_fill("allowed_logits", last, mask, f64::NEG_INFINITY)?;
        }
        let Choice::Sample { temperature, top_k, top_p, min_p, repetition_penalty, seed } = choice else {
            let best = b.apply("best", Op::ArgMax, &[last])?;
            b.inline(best);
            return b.reshape("id", best, one);
        };
        if repetition_penalty != 1.0 {
            last = penalise(b, last, read, repetition_penalty)?;
        }
        let scaled = b.affine("scaled", Affine::Div(temperature), last)?;
        let mut order = b.apply("order", Op::ArgSort, &[scaled])?;
        if let Some(k) = top_k.filter(|k| *k < words) {
            order = b.slice("kept", order, 1, 0, k.max(1))?;
        }
        let sorted = b.gather("kept_logits", Pick::Along, scaled, order)?;
        let probs = composite::softmax(b, "probs", sorted, Shift::WhenNeeded, false)?;
        let mut cumulative = b.apply("cumulative", Op::CumSum, &[probs])?;
        let mut left = probs;
        if let Some(p) = top_p {
            // A candidate stays while those before it have not yet reached p.
            let before = b.binary("cumulative_before", Binary::Sub, cumulative, probs)?;
            let minus = b.unary("minus", Unary::Neg, before)?;
            let room = b.affine("room", Affine::Add(p), minus)?;
            b.inline(minus);
            let stays = b.unary("stays", Unary::Step, room)?;
            left = b.binary("kept_probs", Binary::Mul, probs, stays)?;
            cumulative = b.apply("kept_cumulative", Op::CumSum, &[left])?;
        }
        if let Some(p) = min_p {
            // The first candidate is the most probable one.
            let top = b.slice("top", probs, 1, 0, 1)?;
            let floor = b.affine("floor", Affine::Mul(p), top)?;
            let missing = b.binary("missing", Binary::Sub, floor, probs)?;
            let under = b.unary("under", Unary::Step, missing)?;
            let minus = b.unary("minus_under", Unary::Neg, under)?;
            let stays = b.affine("above", Affine::Add(1.0), minus)?;
            for id in [top, missing, under, minus] {
                b.inline(id);
            }
            left = b.binary("probable", Binary::Mul, left, stays)?;
            cumulative = b.apply("probable_cumulative", Op::CumSum, &[left])?;
        }
        let random = Random { seed, stream: i as u64, kind: RandomKind::Uniform };
        let drawn = b.random("drawn", Shape::named(&[(Axis::Batch, 1), (Axis::One, 1)]), random)?;
        let n = b.shape(cumulative).dims()[1];
        let total = b.slice("total", cumulative, 1, n - 1, 1)?;
        let threshold = b.binary("threshold", Binary::Mul, drawn, total)?;
        let rank = b.apply("rank", Op::Sample, &[cumulative, threshold])?;
        let rank = b.reshape("rank_column", rank, one)?;
        b.inline(rank);
        let id = b.gather("id", Pick::Along, order, rank)?;
        Ok(b.name_axes(id, &[Axis::Batch, Axis::Token]))
    })
}

/// `logits [1, vocab]` with those of the tokens `read [1, token]` divided by `penalty` where positive, else multiplied.
fn penalise(b: &mut Builder, logits: NodeId, read: NodeId, penalty: f64) -> Result<NodeId, BuildError> {
    let (row, tokens) = (b.shape(logits), b.shape(read));
    let none = b.constant("unread", row, Constant::Filled(0.0))?;
    let ones = b.constant("each_read", tokens, Constant::Filled(1.0))?;
    let times = b.apply("times_read", Op::ScatterAdd(Pick::Along), &[none, read, ones])?;
    let seen = b.unary("seen", Unary::Step, times)?;
    let positive = b.unary("positive", Unary::Step, logits)?;
    let divided = b.affine("divided", Affine::Div(penalty), logits)?;
    let multiplied = b.affine("multiplied", Affine::Mul(penalty), logits)?;
    // One of the two products is exactly the number, the other 0: nothing is rounded by the choice.
    let choose = |b: &mut Builder, name: &str, flag: NodeId, yes: NodeId, no: NodeId| {
        let minus = b.unary(format!("{name}_minus"), Unary::Neg, flag)?;
        let other = b.affine(format!("{name}_other"), Affine::Add(1.0), minus)?;
        let yes = b.binary(format!("{name}_yes"), Binary::MulOrZero, yes, flag)?;
        let no = b.binary(format!("{name}_no"), Binary::MulOrZero, no, other)?;
        for id in [minus, other, yes, no] {
            b.inline(id);
        }
        b.binary(name, Binary::Add, yes, no)
    };
    let changed = choose(b, "penalty", positive, divided, multiplied)?;
    choose(b, "penalised", seen, changed, logits)
}
