//! Attention computed piece by piece: in tiles with a running softmax (`FlashAttention`, Dao et al. 2022), or, with a
//! window, in bands that read only the keys a query can see.
//!
//! The tiles of a row of queries are a loop written out: the running maximum, the factor that rescales what was added up
//! before, the running sum and the running context are nodes of each tile.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::attention::{Scored, fill_of, grouped_product, masked, scores, shift_of};
use super::blocks::{Context, dropout};
use super::masks::MaskSpec;
use super::params::ResolvedLayer;
use super::positions::LayerPositions;
use crate::program::composite;
use crate::program::{Binary, BuildError, Builder, Constant, NodeId, Reduction, ScopeKind, Unary};
use crate::tensor::{Axis, Shape};

/// How softmax attention is computed. The numbers are the same up to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Algorithm {
    /// All scores at once.
    #[default]
    Plain,
    /// So many queries and keys at a time; no matrix of all scores is ever there.
    Tiled {
        /// Queries of a tile.
        queries: usize,
        /// Keys of a tile.
        keys: usize,
    },
    /// With a window: as many queries at a time as the window is wide, and only the keys that they can see.
    Banded,
}

type Built = Result<NodeId, BuildError>;

/// Finite, and below every score: the running maximum of a row that has seen no key yet.
const FLOOR: f64 = -1e30;

/// The pieces of `size` positions that `len` positions from `first` on are in: the number of each, and what of the
/// `len` it holds. A call that begins later has the same pieces.
fn pieces(first: usize, len: usize, size: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let (size, end) = (size.max(1), first + len);
    let inside = move |at: usize| at.clamp(first, end) - first;
    (first / size..end.div_ceil(size)).map(move |i| (i, inside(i * size)..inside((i + 1) * size)))
}

/// `x` without what lies outside `range` of `axis`; `x` itself where that is all of it.
fn part(b: &mut Builder, name: &str, x: NodeId, axis: usize, range: &Range<usize>) -> Built {
    if range.len() == b.shape(x).dims()[axis] {
        return Ok(x);
    }
    let id = b.slice(name, x, axis, range.start, range.len())?;
    Ok(b.inline(id))
}

/// The biases of some queries and keys.
fn parts(
    b: &mut Builder,
    positions: &LayerPositions,
    rows: &Range<usize>,
    keys: &Range<usize>,
) -> Result<LayerPositions, BuildError> {
    let mut cut = |name: &str, bias: Option<NodeId>| {
        bias.map(|id| {
            let id = part(b, &format!("{name}_rows"), id, 2, rows)?;
            part(b, name, id, 3, keys)
        })
        .transpose()
    };
    let (raw_bias, bias) = (cut("raw_bias", positions.raw_bias)?, cut("bias", positions.bias)?);
    Ok(LayerPositions { raw_bias, bias, ..LayerPositions::default() })
}

/// What a row of tiles has added up so far.
struct Running {
    max: NodeId,
    sum: NodeId,
    context: NodeId,
}

/// Softmax attention in tiles: `context [batch, head, token, d_v]`.
pub(super) fn tiled(
    b: &mut Builder,
    l: &ResolvedLayer,
    (q, k, v): (NodeId, NodeId, NodeId),
    mask: Option<&MaskSpec>,
    how: &Scored<'_>,
    ctx: &Context<'_>,
    (tile_queries, tile_keys): (usize, usize),
) -> Built {
    let (queries, keys) = (b.shape(q).dims()[2], b.shape(k).dims()[2]);
    let fill = fill_of(&l.attention);
    let hides = fill == f64::NEG_INFINITY;
    let mut rows = Vec::new();
    for (i, at) in pieces(ctx.first, queries, tile_queries) {
        let mut running: Option<Running> = None;
        for (j, seen) in pieces(0, keys, tile_keys) {
            let mask = mask.map(|m| m.part(&at, &seen));
            // What no query of the tile sees is never computed.
            if hides && mask.as_ref().is_some_and(MaskSpec::hides_all) {
                continue;
            }
            running = Some(b.scope(format!("tiles.{i}.{j}"), ScopeKind::Tile, |b| {
                let q = part(b, "q", q, 2, &at)?;
                let (k, v) = (part(b, "k", k, 2, &seen)?, part(b, "v", v, 2, &seen)?);
                let positions = parts(b, how.positions, &at, &seen)?;
                let scores = scores(b, l, q, k, &positions, ctx.d_model)?;
                let scores = masked(b, &l.attention, scores, mask.as_ref())?;
                tile(b, l, scores, v, running, hides && mask.is_some())
            })?);
        }
        rows.push(b.scope(format!("tiles.{i}"), ScopeKind::Group, |b| {
            if let Some(r) = running {
                b.binary("context", if hides { Binary::DivOrZero } else { Binary::Div }, r.context, r.sum)
            } else {
                let s = b.shape(q);
                let dims =
                    [(Axis::Batch, s.dims()[0]), (Axis::Head, l.heads), (Axis::Token, at.len()), (Axis::DV, l.d_v)];
                b.constant("context", Shape::named(&dims), Constant::Filled(0.0))
            }
        })?);
    }
    let context = b.concat("context", 2, &rows)?;
    Ok(b.name_axes(context, &[Axis::Batch, Axis::Head, Axis::Token, Axis::DV]))
}

/// One tile: its maximum, its exponentials, and what was added up before, rescaled to the new maximum.
fn tile(
    b: &mut Builder,
    l: &ResolvedLayer,
    scores: NodeId,
    v: NodeId,
    before: Option<Running>,
    emptiable: bool,
) -> Result<Running, BuildError> {
    let own = b.reduce_last("tile_max", Reduction::Max, scores)?;
    let max = match &before {
        Some(before) => b.binary("max", Binary::Max, before.max, own)?,
        None if emptiable => {
            let ones = [(Axis::One, 1); 4];
            let floor = b.constant("floor", Shape::named(&ones), Constant::Filled(FLOOR))?;
            b.inline(floor);
            b.binary("max", Binary::Max, own, floor)?
        }
        None => own,
    };
    let shifted = b.binary("shifted", Binary::Sub, scores, max)?;
    b.inline(shifted);
    let exp = b.unary("exp", Unary::Exp, shifted)?;
    let tile_sum = b.reduce_last("tile_sum", Reduction::Sum, exp)?;
    let own_context = grouped_product(b, "tile_context", l, exp, v, false)?;
    b.name_axes(own_context, &[Axis::Batch, Axis::Head, Axis::Token, Axis::DV]);
    let Some(before) = before else {
        return Ok(Running { max, sum: tile_sum, context: own_context });
    };
    let fall = b.binary("fall", Binary::Sub, before.max, max)?;
    b.inline(fall);
    let rescale = b.unary("rescale", Unary::Exp, fall)?;
    let sum = b.binary("sum_rescaled", Binary::Mul, before.sum, rescale)?;
    let context = b.binary("context_rescaled", Binary::Mul, before.context, rescale)?;
    b.inline(sum);
    b.inline(context);
    let sum = b.binary("running_sum", Binary::Add, sum, tile_sum)?;
    let context = b.binary("running_context", Binary::Add, context, own_context)?;
    Ok(Running { max, sum, context })
}

/// Softmax attention with a window, in bands: `context [batch, head, token, d_v]`.
pub(super) fn banded(
    b: &mut Builder,
    l: &ResolvedLayer,
    (q, k, v): (NodeId, NodeId, NodeId),
    mask: Option<&MaskSpec>,
    how: &Scored<'_>,
    ctx: &Context<'_>,
) -> Built {
    let (queries, keys) = (b.shape(q).dims()[2], b.shape(k).dims()[2]);
    let first = keys - queries.min(keys);
    let window = l.attention.window.unwrap_or(keys).max(1);
    let mut rows = Vec::new();
    // Bands begin at multiples of the window, wherever the queries of this call begin: sums then have one order.
    for band in first / window..(first + queries).div_ceil(window) {
        let at = (band * window).max(first) - first..((band + 1) * window).min(first + queries) - first;
        let ahead = if l.causal { 0 } else { window - 1 };
        let seen = (band * window).saturating_sub(window - 1)..(first + at.end + ahead).min(keys);
        rows.push(b.scope(format!("bands.{band}"), ScopeKind::Tile, |b| {
            let q = part(b, "q", q, 2, &at)?;
            let (k, v) = (part(b, "k", k, 2, &seen)?, part(b, "v", v, 2, &seen)?);
            let positions = parts(b, how.positions, &at, &seen)?;
            let scores = scores(b, l, q, k, &positions, ctx.d_model)?;
            let mask = mask.map(|m| m.part(&at, &seen));
            let scores = masked(b, &l.attention, scores, mask.as_ref())?;
            let mut weights = composite::softmax(b, "weights", scores, shift_of(&l.attention), mask.is_some())?;
            weights = dropout(b, "weights_dropped", weights, ctx.drop.attention, ctx.drop.seed)?;
            let context = grouped_product(b, "context", l, weights, v, false)?;
            Ok(b.name_axes(context, &[Axis::Batch, Axis::Head, Axis::Token, Axis::DV]))
        })?);
    }
    let context = b.concat("context", 2, &rows)?;
    Ok(b.name_axes(context, &[Axis::Batch, Axis::Head, Axis::Token, Axis::DV]))
}
