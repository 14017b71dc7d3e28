//! Attention: projections, scores, masks, softmax or linear attention, and the output projection.

use super::blocks::{Context, Drop, dropout};
use super::config::{
    Algorithm, AttentionConfig, AttentionKind, MaskBy, MaskFillConfig, NormConfig, QkNorm, Scale, SoftmaxShift,
};
use super::latent;
use super::masks::MaskSpec;
use super::norm::{norm, norm_of};
use super::params::{ParamRole, ResolvedLayer, dense};
use super::positions::LayerPositions;
use super::tiled;
use crate::program::composite::{self, Shift};
use crate::program::{Affine, Binary, BuildError, Builder, Constant, NodeId, Reduction, ScopeKind};
use crate::tensor::{Axis, Shape};

type Built = Result<NodeId, BuildError>;

/// Where keys and values come from.
pub(super) struct Source {
    /// Computed from this.
    pub xkv: NodeId,
    /// Put after these.
    pub past: Option<(NodeId, NodeId)>,
    /// Not computed at all: these (cross-attention after the first decoding call).
    pub fixed: Option<(NodeId, NodeId)>,
    /// How positions enter.
    pub positions: LayerPositions,
    /// Queries, keys and values before they are split into heads, where they are given.
    pub given: Option<[NodeId; 3]>,
}

/// Keys and values.
pub(super) type Projected = (NodeId, NodeId);

/// How a projection is split into heads, and what is done to it before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Projection<'a> {
    pub heads: (Axis, usize),
    pub width: (Axis, usize),
    pub bias: bool,
    /// Kept between −c and c.
    pub clip: Option<f64>,
    /// A norm over all heads together: its name, the path of its parameters, its settings.
    pub norm: Option<(&'a str, &'a str, &'a NormConfig)>,
}

/// `x·Wᵀ + b`, split into heads: `[batch, token, in] → [batch, head, token, width]`. Parameters are at `base`.
pub(super) fn projection(b: &mut Builder, name: &str, base: &str, x: NodeId, how: &Projection<'_>) -> Built {
    let d = b.shape(x).dims()[2];
    let out = how.heads.1 * how.width.1;
    let (weight, bias) = dense(b, base, (out, d), how.bias, how.heads.1)?;
    if let Some((norm_name, norm_base, cfg)) = how.norm {
        // A norm over the whole width comes before the split, and is a composite to look into.
        let mut flat = composite::linear(b, &format!("{name}_flat"), x, weight, bias, Axis::Out)?;
        flat = norm(b, norm_name, norm_base, flat, cfg)?;
        if let Some(c) = how.clip {
            flat = composite::clamp(b, &format!("{name}_clipped"), flat, c)?;
        }
        return b.scope(name, ScopeKind::Linear, |b| composite::split_heads(b, "", flat, how.heads, how.width));
    }
    b.scope(name, ScopeKind::Linear, |b| {
        let mut y = b.matmul_bt("product", x, weight)?;
        b.inline(y);
        if let Some(bias) = bias {
            y = b.binary("biased", Binary::Add, y, bias)?;
            b.inline(y);
        }
        if let Some(c) = how.clip {
            y = composite::clamp(b, "clipped", y, c)?;
            b.inline(y);
        }
        composite::split_heads(b, "", y, how.heads, how.width)
    })
}

/// What is split into heads as it is.
fn unprojected(b: &mut Builder, name: &str, x: NodeId, how: &Projection<'_>) -> Built {
    b.scope(name, ScopeKind::Linear, |b| composite::split_heads(b, "", x, how.heads, how.width))
}

/// A norm of each head of `x [batch, head, token, d_k]`, where the layer has one.
fn head_norm(b: &mut Builder, name: &str, base: &str, l: &ResolvedLayer, x: NodeId) -> Built {
    let s = b.shape(x);
    let width = (Axis::DK, s.dims()[3]);
    let shape = match l.attention.qk_norm {
        QkNorm::None | QkNorm::Full => return Ok(x),
        QkNorm::PerHead => Shape::named(&[width]),
        QkNorm::PerHeadOwn => Shape::named(&[(s.axes()[1], s.dims()[1]), width]),
    };
    norm_of(b, name, &format!("{base}.{name}"), x, &l.qk_norm(), shape)
}

/// Queries `[batch, head, token, d_k]` from hidden states.
fn queries(
    b: &mut Builder,
    base: &str,
    l: &ResolvedLayer,
    x: NodeId,
    given: Option<[NodeId; 3]>,
    positions: &LayerPositions,
) -> Built {
    if let Some(latent) = &l.attention.latent {
        return latent::queries(b, base, l, latent, x, positions.rotation);
    }
    let [bias, ..] = l.attention.biases();
    let norm_base = format!("{base}.q_norm");
    let own = l.qk_norm();
    let norm = (l.attention.qk_norm == QkNorm::Full).then_some(("q_norm", norm_base.as_str(), &own));
    let how =
        Projection { heads: (Axis::Head, l.heads), width: (Axis::DK, l.d_k), bias, clip: l.attention.clip_qkv, norm };
    let q = if l.attention.projections {
        projection(b, "q", &format!("{base}.q"), x, &how)?
    } else {
        unprojected(b, "q", given.map_or(x, |g| g[0]), &how)?
    };
    let q = head_norm(b, "q_norm", base, l, q)?;
    rotated(b, "q_rotated", l, q, positions)
}

/// Keys `[batch, kv_head, token, d_k]` and values `[batch, kv_head, token, d_v]` from hidden states.
fn keys_values(
    b: &mut Builder,
    base: &str,
    l: &ResolvedLayer,
    source: &Source,
    positions: &LayerPositions,
) -> Result<Projected, BuildError> {
    let x = source.xkv;
    if let Some(latent) = &l.attention.latent {
        return latent::keys_values(b, base, l, latent, x, positions.rotation);
    }
    let [_, k_bias, v_bias] = l.attention.biases();
    let heads = (if l.kv_heads == l.heads { Axis::Head } else { Axis::KvHead }, l.kv_heads);
    let clip = l.attention.clip_qkv;
    let norm_base = format!("{base}.k_norm");
    let own = l.qk_norm();
    let norm = (l.attention.qk_norm == QkNorm::Full).then_some(("k_norm", norm_base.as_str(), &own));
    let how = Projection { heads, width: (Axis::DK, l.d_k), bias: k_bias, clip, norm };
    let values = Projection { heads, width: (Axis::DV, l.d_v), bias: v_bias, clip, norm: None };
    let (k, v) = if l.attention.projections {
        let k = projection(b, "k", &format!("{base}.k"), x, &how)?;
        (k, projection(b, "v", &format!("{base}.v"), x, &values)?)
    } else {
        let given = |i: usize| source.given.map_or(x, |g| g[i]);
        let k = unprojected(b, "k", given(1), &how)?;
        (k, unprojected(b, "v", given(2), &values)?)
    };
    let k = head_norm(b, "k_norm", base, l, k)?;
    Ok((rotated(b, "k_rotated", l, k, positions)?, v))
}

fn rotated(b: &mut Builder, name: &str, l: &ResolvedLayer, x: NodeId, positions: &LayerPositions) -> Built {
    match positions.rotation {
        Some(r) => composite::rotary(b, name, x, (r.sin, r.cos), r.dim.unwrap_or(l.d_k), r.interleaved),
        None => Ok(x),
    }
}

#[allow(clippy::too_many_arguments)]
pub(super) fn attention(
    b: &mut Builder,
    name: &str,
    base: &str,
    l: &ResolvedLayer,
    xq: NodeId,
    source: &Source,
    mask: Option<&MaskSpec>,
    ctx: &Context<'_>,
) -> Result<(NodeId, (NodeId, NodeId)), BuildError> {
    b.scope(name, ScopeKind::Attention, |b| {
        let cfg = &l.attention;
        let positions = in_layer(b, base, l, xq, source)?;
        let q = queries(b, base, l, xq, source.given, &positions)?;
        let (k, v) = if let Some(kv) = source.fixed {
            kv
        } else {
            let (k, v) = keys_values(b, base, l, source, &positions)?;
            match source.past {
                Some((past_k, past_v)) => {
                    (b.concat("k_cache", 2, &[past_k, k])?, b.concat("v_cache", 2, &[past_v, v])?)
                }
                None => (k, v),
            }
        };
        let heads = Shape::named(&[(Axis::Head, l.heads)]);
        let each = ParamRole::Bias { fan_in: l.d_k };
        let sinks = cfg.sinks.then(|| b.declare(format!("{base}.sinks"), heads, each, 1));
        let how = Scored { positions: &positions, sinks: sinks.transpose()? };
        let context = match cfg.kind {
            AttentionKind::Softmax => softmax_attention(b, l, (q, k, v), mask, &how, ctx)?,
            AttentionKind::Linear => linear_attention(b, l, q, k, v, mask)?,
        };
        let s = b.shape(context);
        let (batch, tokens) = (s.dims()[0], s.dims()[2]);
        let moved = b.permute("concat_heads", context, &[0, 2, 1, 3])?;
        b.inline(moved);
        let joined = Shape::named(&[(Axis::Batch, batch), (Axis::Token, tokens), (Axis::In, l.heads * l.d_v)]);
        let concat = b.reshape("concat", moved, joined)?;
        let out = if cfg.out_projection {
            let sizes = (ctx.d_model, l.heads * l.d_v);
            let (weight, bias) = dense(b, &format!("{base}.o"), sizes, cfg.out_bias, 1)?;
            composite::linear(b, "out", concat, weight, bias, Axis::DModel)?
        } else {
            b.reshape("out", concat, joined.with_axis(2, Axis::DModel))?
        };
        Ok((out, (k, v)))
    })
}

/// What takes part in the scores besides queries and keys.
pub(super) struct Scored<'a> {
    pub positions: &'a LayerPositions,
    /// A learned score of each head, `[head]`.
    pub sinks: Option<NodeId>,
}

/// The positions of this layer, with the bias that it alone learns.
fn in_layer(
    b: &mut Builder,
    base: &str,
    l: &ResolvedLayer,
    xq: NodeId,
    source: &Source,
) -> Result<LayerPositions, BuildError> {
    let mut positions = source.positions;
    if let Some(relative) = positions.own_table {
        let tokens = b.shape(xq).dims()[1];
        let first = source.past.map_or(0, |(k, _)| b.shape(k).dims()[2]);
        let at = format!("{base}.relative");
        positions.bias = Some(relative.build(b, "relative", &at, (l.heads, l.causal), tokens, first)?);
    }
    Ok(positions)
}

/// `a · b` where query heads may share key/value heads: `[b, h, q, x]` and `[b, kv, x or k, …]`.
pub(super) fn grouped_product(
    b: &mut Builder,
    name: &str,
    l: &ResolvedLayer,
    a: NodeId,
    c: NodeId,
    transpose: bool,
) -> Built {
    let product = |b: &mut Builder, name: &str, a, c| {
        if transpose { b.matmul_bt(name, a, c) } else { b.matmul(name, a, c) }
    };
    if l.kv_heads == l.heads {
        return product(b, name, a, c);
    }
    let (sa, sc) = (b.shape(a), b.shape(c));
    let group = l.heads / l.kv_heads;
    let d = |s: &Shape, i: usize| (s.axes()[i], s.dims()[i]);
    let left = Shape::named(&[d(&sa, 0), (Axis::KvHead, l.kv_heads), (Axis::Group, group), d(&sa, 2), d(&sa, 3)]);
    let right = Shape::named(&[d(&sc, 0), (Axis::KvHead, l.kv_heads), (Axis::One, 1), d(&sc, 2), d(&sc, 3)]);
    let a = b.reshape(format!("{name}_left"), a, left)?;
    let c = b.reshape(format!("{name}_right"), c, right)?;
    let grouped = product(b, &format!("{name}_grouped"), a, c)?;
    for id in [a, c, grouped] {
        b.inline(id);
    }
    let s = b.shape(grouped);
    b.reshape(name, grouped, Shape::named(&[d(&s, 0), (Axis::Head, l.heads), d(&s, 3), d(&s, 4)]))
}

/// The scores before the mask, `[batch, head, query, key]`: the last of these nodes that the layer has.
pub(super) fn scores(
    b: &mut Builder,
    l: &ResolvedLayer,
    q: NodeId,
    k: NodeId,
    positions: &LayerPositions,
    d_model: usize,
) -> Built {
    let mut raw = grouped_product(b, "scores_raw", l, q, k, true)?;
    let axes = [Axis::Batch, Axis::Head, Axis::Query, Axis::Key];
    b.name_axes(raw, &axes);
    if let Some(bias) = positions.raw_bias {
        raw = b.binary("scores_positioned", Binary::Add, raw, bias)?;
    }
    let mut scores = match l.attention.scale {
        Scale::SqrtDk => b.affine("scores", Affine::Div((l.d_k as f64).sqrt()), raw)?,
        Scale::SqrtDModel => b.affine("scores", Affine::Div((d_model as f64).sqrt()), raw)?,
        Scale::By(c) => b.affine("scores", Affine::Mul(c), raw)?,
        Scale::None => b.reshape("scores", raw, b.shape(raw))?,
    };
    if let Some(c) = l.attention.softcap {
        scores = composite::softcap(b, "scores_capped", scores, c)?;
    }
    if let Some(bias) = positions.bias {
        scores = b.binary("scores_biased", Binary::Add, scores, bias)?;
    }
    Ok(scores)
}

/// Softmax attention alone, without projections and dropout: q `[batch, head, query, d_k]`, k `[batch, kv_head, key, d_k]`,
/// v `[batch, kv_head, key, d_v]` to `[batch, head, query, d_v]`. Nodes are named as in a model's attention.
///
/// # Errors
/// Where shapes do not fit each other or the layer.
pub fn attend(
    b: &mut Builder,
    layer: &ResolvedLayer,
    d_model: usize,
    (q, k, v): (NodeId, NodeId, NodeId),
    mask: Option<&MaskSpec>,
) -> Result<NodeId, BuildError> {
    let ctx = Context {
        d_model,
        first: 0,
        residual_multiplier: 1.0,
        positions: &[],
        drop: Drop::default(),
        own_masks: &[],
        memory: None,
        cross_masks: &[],
        given: None,
    };
    let how = Scored { positions: &LayerPositions::default(), sinks: None };
    softmax_attention(b, layer, (q, k, v), mask, &how, &ctx)
}

/// What a masked score becomes.
pub(super) fn fill_of(cfg: &AttentionConfig) -> f64 {
    match cfg.fill {
        MaskFillConfig::NegInfinity => f64::NEG_INFINITY,
        MaskFillConfig::TypeMinimum => f64::MIN,
        MaskFillConfig::Value(x) => x,
    }
}

pub(super) fn shift_of(cfg: &AttentionConfig) -> Shift {
    match cfg.softmax {
        SoftmaxShift::WhenNeeded => Shift::WhenNeeded,
        SoftmaxShift::Always => Shift::Always,
        SoftmaxShift::Never => Shift::Never,
    }
}

/// The scores with what the mask hides filled, `masked_scores`; as they are where nothing is hidden.
pub(super) fn masked(b: &mut Builder, cfg: &AttentionConfig, scores: NodeId, mask: Option<&MaskSpec>) -> Built {
    let Some(mask) = mask else {
        return Ok(scores);
    };
    let fill = fill_of(cfg);
    b.inline(scores);
    let leaf = b.mask("mask", mask.shape, mask.reasons.clone())?;
    match cfg.mask_by {
        MaskBy::Replacing => masked_fill(b, "masked_scores", scores, leaf, fill),
        MaskBy::Adding => {
            let zero = b.constant("mask_zero", mask.shape, Constant::Filled(0.0))?;
            b.inline(zero);
            let bias = b.mask_fill("mask_bias", zero, leaf, fill)?;
            b.binary("masked_scores", Binary::Add, scores, bias)
        }
    }
}

fn softmax_attention(
    b: &mut Builder,
    l: &ResolvedLayer,
    (q, k, v): (NodeId, NodeId, NodeId),
    mask: Option<&MaskSpec>,
    how: &Scored<'_>,
    ctx: &Context<'_>,
) -> Built {
    let cfg = &l.attention;
    match cfg.algorithm {
        Algorithm::Tiled { queries, keys } => {
            return tiled::tiled(b, l, (q, k, v), mask, how, ctx, (queries, keys));
        }
        Algorithm::Banded if cfg.window.is_some() && mask.is_some() => {
            return tiled::banded(b, l, (q, k, v), mask, how, ctx);
        }
        // Attention to the encoder has no window.
        Algorithm::Plain | Algorithm::Banded => {}
    }
    let scores = scores(b, l, q, k, how.positions, ctx.d_model)?;
    let scores = masked(b, cfg, scores, mask)?;
    let shift = shift_of(cfg);
    let mut weights = if let Some(sinks) = how.sinks {
        weights_with_sinks(b, scores, sinks, shift)?
    } else {
        let emptiable = mask.is_some() && fill_of(cfg) == f64::NEG_INFINITY;
        composite::softmax(b, "weights", scores, shift, emptiable)?
    };
    weights = dropout(b, "weights_dropped", weights, ctx.drop.attention, ctx.drop.seed)?;
    let context = grouped_product(b, "context", l, weights, v, false)?;
    Ok(b.name_axes(context, &[Axis::Batch, Axis::Head, Axis::Token, Axis::DV]))
}

/// A softmax over the keys and one more column, the head's own score, which is then left out.
fn weights_with_sinks(b: &mut Builder, scores: NodeId, sinks: NodeId, shift: Shift) -> Built {
    let s = b.shape(scores);
    let (batch, heads, queries, keys) = (s.dims()[0], s.dims()[1], s.dims()[2], s.dims()[3]);
    let column = [(Axis::One, 1), (Axis::Head, heads), (Axis::One, 1), (Axis::One, 1)];
    let column = b.reshape("sinks_column", sinks, Shape::named(&column))?;
    let all = [(Axis::Batch, batch), (Axis::Head, heads), (Axis::Query, queries), (Axis::Key, 1)];
    let zeros = b.constant("sinks_zeros", Shape::named(&all), Constant::Filled(0.0))?;
    b.inline(column);
    b.inline(zeros);
    let column = b.binary("sink_scores", Binary::Add, zeros, column)?;
    let both = b.concat("scores_with_sink", 3, &[scores, column])?;
    let weights = composite::softmax(b, "weights_with_sink", both, shift, false)?;
    b.slice("weights", weights, 3, 0, keys)
}

/// `fill` where the mask is true; a mask of lower rank holds for all leading axes.
fn masked_fill(b: &mut Builder, name: &str, x: NodeId, mask: NodeId, fill: f64) -> Built {
    let (s, m) = (b.shape(x), b.shape(mask));
    let mut dims: Vec<(Axis, usize)> = vec![(Axis::One, 1); s.rank() - m.rank()];
    dims.extend(m.iter());
    let mask = if m.rank() == s.rank() {
        mask
    } else {
        let id = b.reshape(format!("{name}_mask"), mask, Shape::named(&dims))?;
        b.inline(id)
    };
    b.mask_fill(name, x, mask, fill)
}

/// Linear attention (Katharopoulos et al. 2020). Without a mask φ(Q)·(φ(K)ᵀV); with one, the same numbers by the
/// quadratic form, since each query then sums over keys of its own.
fn linear_attention(
    b: &mut Builder,
    l: &ResolvedLayer,
    q: NodeId,
    k: NodeId,
    v: NodeId,
    mask: Option<&MaskSpec>,
) -> Built {
    let fq = composite::elu_plus_one(b, "q_feature", q)?;
    let fk = composite::elu_plus_one(b, "k_feature", k)?;
    let axes = [Axis::Batch, Axis::Head, Axis::Token, Axis::DV];
    let context = if let Some(mask) = mask {
        let raw = grouped_product(b, "scores_raw", l, fq, fk, true)?;
        b.name_axes(raw, &[Axis::Batch, Axis::Head, Axis::Query, Axis::Key]);
        let leaf = b.mask("mask", mask.shape, mask.reasons.clone())?;
        let scores = masked_fill(b, "masked_scores", raw, leaf, 0.0)?;
        let sum = b.reduce_last("sum", Reduction::Sum, scores)?;
        let weights = b.binary("weights", Binary::DivOrZero, scores, sum)?;
        grouped_product(b, "context", l, weights, v, false)?
    } else {
        let kv = b.scope("key_value", ScopeKind::Group, |b| {
            let s = b.shape(fk);
            let id = b.matmul_at("", fk, v)?;
            Ok(b.name_axes(id, &[Axis::Batch, s.axes()[1], Axis::DK, Axis::DV]))
        })?;
        let keys = b.reduce("key_sum", Reduction::Sum, 2, fk)?;
        let top = grouped_product(b, "unnormalised", l, fq, kv, false)?;
        let bottom = grouped_product(b, "normaliser", l, fq, keys, true)?;
        b.binary("context", Binary::Div, top, bottom)?
    };
    Ok(b.name_axes(context, &axes))
}
