//! Token ids to the hidden states that the first layer reads: lookup, token types, positions, norm, projection.

use super::blocks;
use super::build::Sequences;
use super::config::{ModelConfig, PairLayout, Positions, ProjectAt};
use super::heads::embedding_width;
use super::norm::norm;
use super::params::{ParamRole, VocabSizes, dense, embedding_path, typed_side};
use crate::program::composite::{self, Places};
use crate::program::{Affine, Binary, BuildError, Builder, Constant, NodeId, Pick, ScopeKind};
use crate::tensor::{Axis, Shape};

type Built = Result<NodeId, BuildError>;

/// What an embedding begins with.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Rows of the table, `[batch, token]`.
    Ids(NodeId),
    /// These, `[batch, token, width]`.
    Vectors(NodeId),
}

/// Width of positions and token types: that of the tokens they are added to.
pub(super) fn summed_width(config: &ModelConfig) -> usize {
    match config.embedding.project {
        ProjectAt::AfterNorm => embedding_width(config),
        ProjectAt::AfterLookup => config.d_model,
    }
}

/// Embedding of ids or vectors of `side` whose first token is at position `first`.
pub(super) fn embed(
    b: &mut Builder,
    config: &ModelConfig,
    vocab: VocabSizes,
    (side, start): (&str, Start),
    first: usize,
    of: Option<&Sequences>,
    drop: f64,
) -> Built {
    let cfg = &config.embedding;
    let words = if side == "source" { vocab.source } else { vocab.target };
    let (wide, summed) = (embedding_width(config), summed_width(config));
    let axis = |width: usize| if width == config.d_model { Axis::DModel } else { Axis::Other };
    let table = Shape::named(&[(Axis::Vocab, words), (axis(wide), wide)]);
    let weight = match start {
        Start::Ids(_) => Some(b.declare(embedding_path(config, side), table, ParamRole::Embedding, 1)?),
        Start::Vectors(_) => None,
    };
    let base = format!("embed.{side}");
    b.scope(&base, ScopeKind::Embedding, |b| {
        let (Start::Ids(given) | Start::Vectors(given)) = start;
        let dims = b.shape(given);
        let s = Shape::named(&[(Axis::Batch, dims.dims()[0]), (Axis::Token, dims.dims()[1])]);
        let places = Places::of(of, first, s.dims()[1]);
        let project = |b: &mut Builder, name: &str, x: NodeId| {
            let (weight, bias) = dense(b, &format!("{base}.project"), (config.d_model, wide), cfg.project_bias, 1)?;
            composite::linear(b, name, x, weight, bias, Axis::DModel)
        };
        let mut x = match weight {
            Some(weight) => b.gather("lookup", Pick::Rows, weight, given)?,
            None => given,
        };
        if cfg.scale {
            x = b.affine("scaled", Affine::Mul((config.d_model as f64).sqrt()), x)?;
        }
        if cfg.multiplier != 1.0 {
            x = b.affine("multiplied", Affine::Mul(cfg.multiplier), x)?;
        }
        let projects = cfg.width.is_some();
        if projects && cfg.project == ProjectAt::AfterLookup {
            x = project(b, "projected", x)?;
        }
        if cfg.token_types > 0 && side == typed_side(config) {
            let path = format!("{base}.token_types.weight");
            let table = Shape::named(&[(Axis::Other, cfg.token_types), (axis(summed), summed)]);
            let table = b.declare(&path, table, ParamRole::TokenType, 1)?;
            let types = of.and_then(|s| s.types.clone()).unwrap_or_else(|| vec![0; s.len()]);
            let types = b.constant("token_type_ids", s, Constant::Int(types.into()))?;
            let rows = b.gather("token_types", Pick::Rows, table, types)?;
            x = b.binary("typed", Binary::Add, x, rows)?;
        }
        let last = projects && cfg.project == ProjectAt::AfterNorm;
        let after = cfg.norm || drop > 0.0 || last;
        let sum = if after { "summed" } else { "out" };
        x = match config.positions {
            Positions::Sinusoidal { layout, base } => {
                let interleaved = layout == PairLayout::Interleaved;
                let p = composite::sinusoidal(b, "positions", places, summed, base, interleaved)?;
                b.binary(sum, Binary::Add, x, p)?
            }
            Positions::Learned { max_len, offset, skip_padding } => {
                let path = format!("{base}.positions.weight");
                let table = Shape::named(&[(Axis::Token, max_len), (axis(summed), summed)]);
                let table = b.declare(&path, table, ParamRole::Position, 1)?;
                // Positions that the input gives go before those that the model counts.
                let given = of.is_some_and(|s| s.positions.is_some());
                let real = of.and_then(|s| s.real.as_deref()).filter(|_| skip_padding && !given);
                let ids = position_ids(b, s, places, offset, real)?;
                let p = b.gather("positions", Pick::Rows, table, ids)?;
                b.binary(sum, Binary::Add, x, p)?
            }
            // The others enter in attention.
            _ if after => x,
            _ => b.reshape("out", x, b.shape(x))?,
        };
        if cfg.norm {
            x = norm(b, "norm", &format!("{base}.norm"), x, &config.norm)?;
        }
        x = blocks::dropout(b, "dropped", x, drop, config.dropout.seed)?;
        if last {
            project(b, "out", x)
        } else if after {
            b.reshape("out", x, b.shape(x))
        } else {
            Ok(x)
        }
    })
}

/// Rows of a table of positions: `[token]`, or `[batch, token]` where padding does not count.
fn position_ids(b: &mut Builder, s: Shape, places: Places<'_>, offset: usize, real: Option<&[bool]>) -> Built {
    let Some(real) = real else {
        let ids: Vec<i64> = places.ids().into_iter().map(|id| id + offset as i64).collect();
        return b.constant("positions.ids", places.shape(), Constant::Int(ids.into()));
    };
    let first = match places {
        Places::From { first, .. } => first,
        Places::Rows { .. } => 0,
    };
    let start = first + offset;
    let mut ids = Vec::with_capacity(real.len());
    for row in real.chunks(s.dims()[1].max(1)) {
        let mut next = start;
        for &real in row {
            ids.push(if real { next } else { offset.saturating_sub(1) } as i64);
            next += usize::from(real);
        }
    }
    b.constant("positions.ids", s, Constant::Int(ids.into()))
}
