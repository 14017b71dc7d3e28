//! Attention: projections, scores, masks, softmax or linear attention, and the output projection.

use super::blocks::{Context, Drop, dropout};
use super::config::{AttentionKind, MaskBy, MaskFillConfig, Scale, SoftmaxShift};
use super::masks::MaskSpec;
use super::params::ResolvedLayer;
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
}

/// `x·Wᵀ + b`, split into heads: `[batch, token, in] → [batch, head, token, width]`.
fn projection(
    b: &mut Builder,
    name: &str,
    base: &str,
    x: NodeId,
    heads: (Axis, usize),
    width: (Axis, usize),
    (bias, clip): (bool, Option<f64>),
) -> Built {
    let d = b.shape(x).dims()[2];
    let out = heads.1 * width.1;
    let weight = b.parameter(&format!("{base}.{name}.weight"), Shape::named(&[(Axis::Out, out), (Axis::In, d)]))?;
    let bias =
        bias.then(|| b.parameter(&format!("{base}.{name}.bias"), Shape::named(&[(Axis::Out, out)]))).transpose()?;
    b.scope(name, ScopeKind::Linear, |b| {
        let mut y = b.matmul_bt("product", x, weight)?;
        b.inline(y);
        if let Some(bias) = bias {
            y = b.binary("biased", Binary::Add, y, bias)?;
            b.inline(y);
        }
        if let Some(c) = clip {
            y = composite::clamp(b, "clipped", y, c)?;
            b.inline(y);
        }
        composite::split_heads(b, "", y, heads, width)
    })
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
        let biases = cfg.biases().map(|bias| (bias, cfg.clip_qkv));
        let kv_axis = if l.kv_heads == l.heads { Axis::Head } else { Axis::KvHead };
        let side = |b: &mut Builder, name: &str, i: usize, x: NodeId, heads: (Axis, usize), width: (Axis, usize)| {
            if cfg.projections {
                return projection(b, name, base, x, heads, width, biases[i]);
            }
            let x = ctx.given.map_or(x, |given| given[i]);
            b.scope(name, ScopeKind::Linear, |b| composite::split_heads(b, "", x, heads, width))
        };
        let mut q = side(b, "q", 0, xq, (Axis::Head, l.heads), (Axis::DK, l.d_k))?;
        let rotate = |b: &mut Builder, name: &str, x: NodeId| match ctx.rotation {
            Some(r) => composite::rotary(b, name, x, (r.sin, r.cos), r.dim.unwrap_or(l.d_k), r.interleaved),
            None => Ok(x),
        };
        q = rotate(b, "q_rotated", q)?;
        let (k, v) = if let Some(kv) = source.fixed {
            kv
        } else {
            let k = side(b, "k", 1, source.xkv, (kv_axis, l.kv_heads), (Axis::DK, l.d_k))?;
            let v = side(b, "v", 2, source.xkv, (kv_axis, l.kv_heads), (Axis::DV, l.d_v))?;
            let k = rotate(b, "k_rotated", k)?;
            match source.past {
                Some((past_k, past_v)) => {
                    (b.concat("k_cache", 2, &[past_k, k])?, b.concat("v_cache", 2, &[past_v, v])?)
                }
                None => (k, v),
            }
        };
        let context = match cfg.kind {
            AttentionKind::Softmax => softmax_attention(b, l, q, k, v, mask, ctx)?,
            AttentionKind::Linear => linear_attention(b, l, q, k, v, mask)?,
        };
        let s = b.shape(context);
        let (batch, tokens) = (s.dims()[0], s.dims()[2]);
        let moved = b.permute("concat_heads", context, &[0, 2, 1, 3])?;
        b.inline(moved);
        let joined = Shape::named(&[(Axis::Batch, batch), (Axis::Token, tokens), (Axis::In, l.heads * l.d_v)]);
        let concat = b.reshape("concat", moved, joined)?;
        let out = if cfg.out_projection {
            let o = format!("{base}.o");
            let weight = Shape::named(&[(Axis::Out, ctx.d_model), (Axis::In, l.heads * l.d_v)]);
            let weight = b.parameter(&format!("{o}.weight"), weight)?;
            let bias = cfg
                .out_bias
                .then(|| b.parameter(&format!("{o}.bias"), Shape::named(&[(Axis::Out, ctx.d_model)])))
                .transpose()?;
            composite::linear(b, "out", concat, weight, bias, Axis::DModel)?
        } else {
            b.reshape("out", concat, joined.with_axis(2, Axis::DModel))?
        };
        Ok((out, (k, v)))
    })
}

/// `a · b` where query heads may share key/value heads: `[b, h, q, x]` and `[b, kv, x or k, …]`.
fn grouped_product(b: &mut Builder, name: &str, l: &ResolvedLayer, a: NodeId, c: NodeId, transpose: bool) -> Built {
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
    let a = b.reshape(&format!("{name}_left"), a, left)?;
    let c = b.reshape(&format!("{name}_right"), c, right)?;
    let grouped = product(b, &format!("{name}_grouped"), a, c)?;
    for id in [a, c, grouped] {
        b.inline(id);
    }
    let s = b.shape(grouped);
    b.reshape(name, grouped, Shape::named(&[d(&s, 0), (Axis::Head, l.heads), d(&s, 3), d(&s, 4)]))
}

fn scores(b: &mut Builder, l: &ResolvedLayer, q: NodeId, k: NodeId, d_model: usize) -> Built {
    let raw = grouped_product(b, "scores_raw", l, q, k, true)?;
    let axes = [Axis::Batch, Axis::Head, Axis::Query, Axis::Key];
    b.name_axes(raw, &axes);
    match l.attention.scale {
        Scale::SqrtDk => b.affine("scores", Affine::Div((l.d_k as f64).sqrt()), raw),
        Scale::SqrtDModel => b.affine("scores", Affine::Div((d_model as f64).sqrt()), raw),
        Scale::By(c) => b.affine("scores", Affine::Mul(c), raw),
        Scale::None => b.reshape("scores", raw, b.shape(raw)),
    }
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
        residual_multiplier: 1.0,
        rotation: None,
        drop: Drop::default(),
        own_masks: &[],
        memory: None,
        cross_masks: &[],
        given: None,
    };
    softmax_attention(b, layer, q, k, v, mask, &ctx)
}

fn softmax_attention(
    b: &mut Builder,
    l: &ResolvedLayer,
    q: NodeId,
    k: NodeId,
    v: NodeId,
    mask: Option<&MaskSpec>,
    ctx: &Context<'_>,
) -> Built {
    let cfg = &l.attention;
    let mut scores = scores(b, l, q, k, ctx.d_model)?;
    let fill = match cfg.fill {
        MaskFillConfig::NegInfinity => f64::NEG_INFINITY,
        MaskFillConfig::TypeMinimum => f64::MIN,
        MaskFillConfig::Value(x) => x,
    };
    if let Some(mask) = mask {
        b.inline(scores);
        let leaf = b.mask("mask", mask.shape, mask.reasons.clone())?;
        scores = match cfg.mask_by {
            MaskBy::Replacing => masked_fill(b, "masked_scores", scores, leaf, fill)?,
            MaskBy::Adding => {
                let zero = b.constant("mask_zero", mask.shape, Constant::Filled(0.0))?;
                b.inline(zero);
                let bias = b.mask_fill("mask_bias", zero, leaf, fill)?;
                b.binary("masked_scores", Binary::Add, scores, bias)?
            }
        };
    }
    let shift = match cfg.softmax {
        SoftmaxShift::WhenNeeded => Shift::WhenNeeded,
        SoftmaxShift::Always => Shift::Always,
        SoftmaxShift::Never => Shift::Never,
    };
    let emptiable = mask.is_some() && fill == f64::NEG_INFINITY;
    let mut weights = composite::softmax(b, "weights", scores, shift, emptiable)?;
    weights = dropout(b, "weights_dropped", weights, ctx.drop.attention, ctx.drop.seed)?;
    let context = grouped_product(b, "context", l, weights, v, false)?;
    Ok(b.name_axes(context, &[Axis::Batch, Axis::Head, Axis::Token, Axis::DV]))
}

/// `fill` where the mask is true; a mask of lower rank holds for all leading axes.
fn masked_fill(b: &mut Builder, name: &str, x: NodeId, mask: NodeId, fill: f64) -> Built {
    let (s, m) = (b.shape(x), b.shape(mask));
    let mut dims: Vec<(Axis, usize)> = vec![(Axis::One, 1); s.rank() - m.rank()];
    dims.extend(m.iter());
    let mask = if m.rank() == s.rank() {
        mask
    } else {
        let id = b.reshape(&format!("{name}_mask"), mask, Shape::named(&dims))?;
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
