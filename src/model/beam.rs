//! Beam search: of all continuations of the kept beams, the most probable are kept.
//!
//! A beam's score is the sum of the logarithms of its tokens' probabilities. Beams are ranked by it, or with a length
//! penalty α by score / lengthᵅ, where the length counts new tokens up to the end token (Wu et al. 2016). Equal ones keep
//! the order (beam, token id). A beam that has ended goes on with its end token at no cost.

use super::blocks::Cache;
use super::build::{ModelBuilder, Sequences};
use super::calls::Part;
use crate::program::{Affine, Binary, BuildError, Constant, NodeId, Op, Pick, ScopeKind, Unary, reason};
use crate::tensor::{Axis, Shape};

/// Tables that turn a place among all candidates, `beam · vocab + token`, into its two parts.
#[derive(Clone, Copy, Debug)]
struct Tables {
    /// Beam of a candidate, `[beams · vocab]`.
    parents: NodeId,
    /// Token of a candidate, `[beams · vocab]`.
    ids: NodeId,
    /// Where a beam may end.
    end: Option<End>,
}

#[derive(Clone, Copy, Debug)]
struct End {
    /// 0 at the end token, else 1, `[vocab]`; where lengths count.
    grows: Option<NodeId>,
    /// 1 at the end token, `[vocab]`.
    ended: NodeId,
    /// By whether a beam has ended: nothing hidden, everything hidden, `[2, vocab]`.
    hidden: NodeId,
    /// By whether a beam has ended: nothing hidden, everything but the end token hidden, `[2, vocab]`.
    closed: NodeId,
}

/// How beams are searched for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// How many are kept.
    pub beams: usize,
    /// The token after which a beam is complete.
    pub end: Option<i64>,
    /// Beams are ranked by score over length^this.
    pub length_penalty: f64,
    /// Tokens that are given.
    pub prompt: usize,
}

impl Search {
    /// New tokens of a beam, its first end token included.
    fn length(&self, tokens: &[i64]) -> usize {
        let new = tokens.get(self.prompt..).unwrap_or_default();
        new.iter().position(|t| Some(*t) == self.end).map_or(new.len(), |at| at + 1)
    }
}

/// Frames `gen.N` over all beams, each followed by `gen.N.next`: log-probabilities, scores, candidates in order, and
/// the parents, ids and scores of those kept.
pub(super) fn search(
    m: &mut ModelBuilder<'_>,
    memory: Option<(NodeId, &Sequences)>,
    part: &Part,
    how: &Search,
    cached: bool,
) -> Result<(), BuildError> {
    let mut cache = cached.then(Cache::default);
    let mut tokens = part.first_tokens(&mut m.b)?;
    let mut tables = None;
    let mut scores = (!part.scores.is_empty())
        .then(|| {
            let path = format!("gen.{}.scores", part.calls.start);
            let column = Shape::named(&[(Axis::Batch, part.scores.len()), (Axis::One, 1)]);
            let values = Constant::Float(part.scores.as_slice().into());
            m.b.constant(&path, column, values)
        })
        .transpose()?;
    // Without an end token all beams are equally long, and the length decides nothing.
    let ranked = how.length_penalty != 0.0 && how.end.is_some();
    let mut lengths = (ranked && !part.scores.is_empty())
        .then(|| {
            let path = format!("gen.{}.lengths", part.calls.start);
            let column = Shape::named(&[(Axis::Batch, part.tokens.len()), (Axis::One, 1)]);
            let values = part.tokens.iter().map(|row| how.length(row) as f64);
            m.b.constant(&path, column, Constant::Float(values.collect()))
        })
        .transpose()?;
    let mut first = 0;
    for i in part.calls.clone() {
        let probs = m.call(i, tokens, first, None, memory, cache.as_mut())?;
        let tables = match tables {
            Some(t) => t,
            None => *tables.insert(self::tables(m, probs, how, ranked)?),
        };
        let before = scores.map(|scores| Before { scores, lengths });
        let kept =
            m.within(&format!("gen.{i}.next"), ScopeKind::Group, |m| keep(m, probs, tokens, before, how, &tables))?;
        scores = Some(kept.scores);
        lengths = kept.lengths;
        if i + 1 == part.calls.end {
            break;
        }
        first = if cached { m.b.shape(tokens).dims()[1] } else { 0 };
        if let Some(cache) = &mut cache {
            m.within(&format!("gen.{i}.cache"), ScopeKind::Group, |m| reorder(m, cache, kept.parents))?;
        }
        tokens = m.within(&format!("gen.{}", i + 1), ScopeKind::Group, |m| {
            m.b.reshape("tokens", kept.tokens, m.b.shape(kept.tokens))
        })?;
    }
    Ok(())
}

fn tables(m: &mut ModelBuilder<'_>, probs: NodeId, how: &Search, ranked: bool) -> Result<Tables, BuildError> {
    let (beams, end) = (how.beams, how.end);
    let words = m.b.shape(probs).dims()[2];
    m.within("beam", ScopeKind::Group, |m| {
        let all = Shape::named(&[(Axis::Other, beams * words)]);
        let mut table = |name: &str, of: &dyn Fn(usize) -> usize| {
            let values: Vec<i64> = (0..beams * words).map(|i| of(i) as i64).collect();
            m.b.constant(name, all, Constant::Int(values.into()))
        };
        let parents = table("parents", &|i| i / words)?;
        let ids = table("ids", &|i| i % words)?;
        let end = end
            .map(|end| -> Result<End, BuildError> {
                let is = |id: usize| id as i64 == end;
                let flags: Vec<i64> = (0..words).map(|id| i64::from(is(id))).collect();
                let row = Shape::named(&[(Axis::Vocab, words)]);
                let rows = Shape::named(&[(Axis::Other, 2), (Axis::Vocab, words)]);
                let mut hidden = vec![0; words];
                hidden.resize(2 * words, reason::GIVEN);
                let mut closed = hidden.clone();
                if let Some(open) = (0..words).find(|id| is(*id)) {
                    closed[words + open] = 0;
                }
                let grows = ranked.then(|| {
                    let numbers = (0..words).map(|id| if is(id) { 0.0 } else { 1.0 });
                    m.b.constant("grows", row, Constant::Float(numbers.collect()))
                });
                Ok(End {
                    grows: grows.transpose()?,
                    ended: m.b.constant("ended", row, Constant::Int(flags.into()))?,
                    hidden: m.b.mask("hidden", rows, hidden)?,
                    closed: m.b.mask("closed", rows, closed)?,
                })
            })
            .transpose()?;
        Ok(Tables { parents, ids, end })
    })
}

/// What a call keeps: `[beams]` parents, `[beams, 1]` scores, `[beams, token + 1]` tokens.
struct Kept {
    parents: NodeId,
    scores: NodeId,
    /// `[beams, 1]` new tokens, where lengths count.
    lengths: Option<NodeId>,
    tokens: NodeId,
}

/// What the call before kept.
#[derive(Clone, Copy)]
struct Before {
    scores: NodeId,
    lengths: Option<NodeId>,
}

fn keep(
    m: &mut ModelBuilder<'_>,
    probs: NodeId,
    tokens: NodeId,
    before: Option<Before>,
    how: &Search,
    tables: &Tables,
) -> Result<Kept, BuildError> {
    let b = &mut m.b;
    let s = b.shape(probs);
    let (rows, last, words) = (s.dims()[0], s.dims()[1] - 1, s.dims()[2]);
    let row = Shape::named(&[(Axis::Batch, rows), (Axis::Vocab, words)]);
    let cut = b.slice("probs_row", probs, 1, last, 1)?;
    b.inline(cut);
    let probs = b.reshape("probs", cut, row)?;
    let mut log_probs = b.unary("log_probs", Unary::Ln, probs)?;
    let mut lengths = None;
    let column = Shape::named(&[(Axis::Batch, rows), (Axis::One, 1)]);
    if let (Some(End { grows: Some(_), .. }), None) = (tables.end, before) {
        lengths = Some(b.constant("lengths", column, Constant::Filled(1.0))?);
    }
    if let (Some(end), Some(_)) = (tables.end, before) {
        let t = b.shape(tokens).dims()[1];
        let newest = b.slice("newest_column", tokens, 1, t - 1, 1)?;
        b.inline(newest);
        let newest = b.reshape("newest", newest, Shape::named(&[(Axis::Batch, rows)]))?;
        let ended = b.gather("ended", Pick::Rows, end.ended, newest)?;
        let hidden = b.gather("ended_hidden", Pick::Rows, end.hidden, ended)?;
        let closed = b.gather("ended_closed", Pick::Rows, end.closed, ended)?;
        let free = b.mask_fill("free", log_probs, hidden, 0.0)?;
        log_probs = b.mask_fill("open", free, closed, f64::NEG_INFINITY)?;
        if let (Some(grows), Some(Before { lengths: Some(so_far), .. })) = (end.grows, before) {
            let more = b.gather("grows_flat", Pick::Rows, grows, newest)?;
            b.inline(more);
            let more = b.reshape("grows", more, column)?;
            lengths = Some(b.binary("lengths", Binary::Add, so_far, more)?);
        }
    }
    let scores = match before {
        Some(before) => b.binary("scores", Binary::Add, before.scores, log_probs)?,
        None => b.reshape("scores", log_probs, row)?,
    };
    let all = Shape::named(&[(Axis::One, 1), (Axis::Other, rows * words)]);
    let (all, sums) = match lengths {
        None => {
            let all = b.reshape("candidates", scores, all)?;
            (all, all)
        }
        Some(lengths) => {
            // lengthᵅ = exp(α · ln length).
            let ln = b.unary("length_ln", Unary::Ln, lengths)?;
            let power = b.affine("length_power", Affine::Mul(how.length_penalty), ln)?;
            let factor = b.unary("length_factor", Unary::Exp, power)?;
            let ranked = b.binary("ranked", Binary::Div, scores, factor)?;
            (b.reshape("candidates", ranked, all)?, b.reshape("scores_row", scores, all)?)
        }
    };
    let order = b.apply("order", Op::ArgSort, &[all])?;
    let kept = how.beams.min(rows * words);
    let top = b.slice("kept", order, 1, 0, kept)?;
    let kept_scores = b.gather("kept_scores_row", Pick::Along, sums, top)?;
    b.inline(kept_scores);
    let column = Shape::named(&[(Axis::Batch, kept), (Axis::One, 1)]);
    let kept_scores = b.reshape("kept_scores", kept_scores, column)?;
    let flat = Shape::named(&[(Axis::Batch, kept)]);
    let top = b.reshape("kept_flat", top, flat)?;
    b.inline(top);
    let parents = b.gather("parents", Pick::Rows, tables.parents, top)?;
    let ids = b.gather("ids", Pick::Rows, tables.ids, top)?;
    let ids = b.reshape("id", ids, Shape::named(&[(Axis::Batch, kept), (Axis::Token, 1)]))?;
    let histories = b.gather("parent_tokens", Pick::Rows, tokens, parents)?;
    b.name_axes(histories, &[Axis::Batch, Axis::Token]);
    let tokens = b.concat("tokens", 1, &[histories, ids])?;
    let lengths = lengths.map(|lengths| b.gather("kept_lengths", Pick::Rows, lengths, parents)).transpose()?;
    Ok(Kept { parents, scores: kept_scores, lengths, tokens })
}

/// Keys and values follow the beams they belong to. Those of cross-attention are the same for all.
fn reorder(m: &mut ModelBuilder<'_>, cache: &mut Cache, parents: NodeId) -> Result<(), BuildError> {
    for (layer, slot) in cache.own.iter_mut().enumerate() {
        if let Some((k, v)) = slot {
            for (name, node) in [("k", k), ("v", v)] {
                let axes = m.b.shape(*node);
                let axes = axes.axes();
                let path = format!("{layer}.{name}");
                *node = m.b.gather(&path, Pick::Rows, *node, parents)?;
                m.b.name_axes(*node, axes);
            }
        }
    }
    Ok(())
}
