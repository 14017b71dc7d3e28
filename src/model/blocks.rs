//! The layers of a Transformer, from configuration to nodes: sublayers with their norms and residuals, stacks.
//!
//! Node paths follow the builder's scope (a decoding call puts `gen.3.` before them); parameter paths are absolute,
//! so that every call reads the same parameters.

use std::hash::{Hash, Hasher};

use super::attention::{Source, attention};
use super::config::NormPosition;
use super::ffn::ffn;
use super::masks::MaskSpec;
use super::norm::norm;
use super::params::{ResolvedLayer, Shared, weight_group};
use super::positions::LayerPositions;
use crate::program::composite;
use crate::program::{Affine, Binary, BuildError, Builder, NodeId, ScopeKind};

type Built = Result<NodeId, BuildError>;

/// Dropout of a training run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drop {
    pub attention: f64,
    pub sublayer: f64,
    pub ffn: f64,
    pub seed: u64,
}

/// Keys and values that decoding calls hand on.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// Of self-attention, by layer: `[batch, kv_head, token, width]`.
    pub own: Vec<Option<(NodeId, NodeId)>>,
    /// Of cross-attention, by layer.
    pub cross: Vec<Option<(NodeId, NodeId)>>,
}

/// What a stack needs besides its layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub d_model: usize,
    /// Position of the first token that is computed.
    pub first: usize,
    /// What a sublayer gives is multiplied by this.
    pub residual_multiplier: f64,
    /// How positions enter self-attention, by layer; none for attention that has no positions.
    pub positions: &'a [LayerPositions],
    pub drop: Drop,
    /// Masks of self-attention, by layer.
    pub own_masks: &'a [Option<MaskSpec>],
    /// Output of the encoder and the mask over it, by layer.
    pub memory: Option<NodeId>,
    pub cross_masks: &'a [Option<MaskSpec>],
    /// Queries, keys and values of the first self-attention, `[batch, token, heads · width]`, where they are given.
    pub given: Option<[NodeId; 3]>,
}

/// A seed's stream for the node at `path`: the same wherever the node is in the program.
fn stream(path: &str) -> u64 {
    // FNV-1a: std's hashers promise no stable values.
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for b in bytes {
                self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    let mut h = Fnv(0xcbf2_9ce4_8422_2325);
    path.as_bytes().hash(&mut h);
    h.finish()
}

pub(super) fn dropout(b: &mut Builder, name: &str, x: NodeId, rate: f64, seed: u64) -> Built {
    if rate == 0.0 {
        return Ok(x);
    }
    let stream = stream(&b.path(name));
    composite::dropout(b, name, x, rate, seed, stream)
}

/// One whole stack of layers, the final norm not included. With `groups`, neighbouring layers share parameters.
pub(super) fn stack(
    b: &mut Builder,
    side: &str,
    layers: &[ResolvedLayer],
    groups: Option<Shared>,
    mut x: NodeId,
    ctx: &Context<'_>,
    mut cache: Option<&mut Cache>,
) -> Built {
    for (i, layer) in layers.iter().enumerate() {
        let base = format!("{side}.{}", weight_group(i, layers.len(), groups));
        x = b.scope(i.to_string(), ScopeKind::Layer, |b| {
            let mut at = Layer { b, base: &base, i, cfg: layer, ctx, cache: cache.as_deref_mut() };
            if layer.norm.position.parallel() { at.parallel(x) } else { at.sequential(x) }
        })?;
    }
    Ok(x)
}

/// A layer that is being built.
struct Layer<'a, 'c> {
    b: &'a mut Builder,
    /// Path of its parameters.
    base: &'a str,
    i: usize,
    cfg: &'a ResolvedLayer,
    ctx: &'a Context<'c>,
    cache: Option<&'a mut Cache>,
}

impl Layer<'_, '_> {
    /// One sublayer after the other, each with its residual.
    fn sequential(&mut self, x: NodeId) -> Built {
        let mut n = 0;
        let mut x = x;
        if self.cfg.has_attention {
            n += 1;
            x = self.sublayer(n, x, self.cfg.norm.on_attention, Self::self_attention)?;
        }
        if let (true, Some(memory)) = (self.cfg.cross, self.ctx.memory) {
            n += 1;
            let normed = self.cfg.norm.on_attention;
            x = self.sublayer(n, x, normed, |layer, y| layer.cross_attention(y, memory))?;
        }
        if self.cfg.has_ffn {
            n += 1;
            x = self.sublayer(n, x, true, |layer, y| ffn(layer.b, layer.base, layer.cfg, y, layer.ctx))?;
        }
        Ok(x)
    }

    /// Attention and feed-forward network read the same hidden states, and one sum adds both.
    fn parallel(&mut self, x: NodeId) -> Built {
        let y = self.norm("norm1", x)?;
        let attended = self.self_attention(y)?;
        let mut sum = self.handed_on(1, attended)?;
        if self.cfg.has_ffn {
            let y = if self.cfg.norm.position == NormPosition::ParallelNorms { self.norm("norm2", x)? } else { y };
            let out = ffn(self.b, self.base, self.cfg, y, self.ctx)?;
            let out = self.handed_on(2, out)?;
            sum = self.b.binary("parallel_sum", Binary::Add, sum, out)?;
        }
        self.residual(1, x, sum)
    }

    /// Norm, sublayer and residual in the order that the norm's position asks for.
    fn sublayer(&mut self, n: usize, x: NodeId, normed: bool, f: impl FnOnce(&mut Self, NodeId) -> Built) -> Built {
        let name = format!("norm{n}");
        let position = self.cfg.norm.position;
        let before = normed && matches!(position, NormPosition::Pre | NormPosition::Sandwich);
        let read = if before { self.norm(&name, x)? } else { x };
        let mut out = f(self, read)?;
        match position {
            NormPosition::Sandwich => out = self.norm(&format!("post_norm{n}"), out)?,
            NormPosition::Output => out = self.norm(&name, out)?,
            _ => {}
        }
        let out = self.handed_on(n, out)?;
        let sum = self.residual(n, x, out)?;
        if position == NormPosition::Post { self.norm(&name, sum) } else { Ok(sum) }
    }

    /// What sublayer `n` adds to the residual stream: scaled and, in training, dropped.
    fn handed_on(&mut self, n: usize, mut out: NodeId) -> Built {
        if self.ctx.residual_multiplier != 1.0 {
            let scaled = Affine::Mul(self.ctx.residual_multiplier);
            out = self.b.affine(format!("sublayer{n}_scaled"), scaled, out)?;
        }
        dropout(self.b, &format!("sublayer{n}_dropped"), out, self.ctx.drop.sublayer, self.ctx.drop.seed)
    }

    fn residual(&mut self, n: usize, x: NodeId, out: NodeId) -> Built {
        if !self.cfg.residual {
            return Ok(out);
        }
        self.b.scope("", ScopeKind::Residual, |b| b.binary(format!("residual{n}"), Binary::Add, x, out))
    }

    fn norm(&mut self, name: &str, x: NodeId) -> Built {
        norm(self.b, name, &format!("{}.{name}", self.base), x, &self.cfg.norm)
    }

    fn self_attention(&mut self, y: NodeId) -> Built {
        let past = self.cache.as_mut().map(|c| slot(&mut c.own, self.i));
        let positions = self.ctx.positions.get(self.i).copied().unwrap_or_default();
        let source = Source { xkv: y, past: past.flatten(), fixed: None, positions, given: self.ctx.given };
        let mask = self.ctx.own_masks.get(self.i).and_then(Option::as_ref);
        let at = format!("{}.self_attn", self.base);
        let (out, kv) = attention(self.b, "self_attn", &at, self.cfg, y, &source, mask, self.ctx)?;
        if let Some(c) = self.cache.as_mut() {
            c.own[self.i] = Some(kv);
        }
        Ok(out)
    }

    fn cross_attention(&mut self, y: NodeId, memory: NodeId) -> Built {
        let fixed = self.cache.as_mut().and_then(|c| slot(&mut c.cross, self.i));
        // Distances between a source and a target mean nothing.
        let source = Source { xkv: memory, past: None, fixed, positions: LayerPositions::default(), given: None };
        let mask = self.ctx.cross_masks.get(self.i).and_then(Option::as_ref);
        let at = format!("{}.cross_attn", self.base);
        let (out, kv) = attention(self.b, "cross_attn", &at, self.cfg, y, &source, mask, self.ctx)?;
        if let Some(c) = self.cache.as_mut() {
            c.cross[self.i] = Some(kv);
        }
        Ok(out)
    }
}

/// What is kept of layer `i`, taken out.
fn slot(kept: &mut Vec<Option<(NodeId, NodeId)>>, i: usize) -> Option<(NodeId, NodeId)> {
    if kept.len() <= i {
        kept.resize(i + 1, None);
    }
    kept[i].take()
}
