//! How much a run records, counted in the program of one token: slips such as a million tokens are refused before the
//! run's own program is built.

use super::config::{Algorithm, ModelConfig, Positions};
use super::params::{Outline, Resolved, ResolvedLayer, VocabSizes, resolve};
use crate::program::{Block, Node, Op, Side};
use crate::tensor::Axis;

/// Most numbers that a run may record: 64 GiB in f64.
pub const MAX_CELLS: u128 = 1 << 33;
/// Most layers that a run may go through, over all its decoding calls: each is some fifty nodes.
pub const MAX_LAYER_CALLS: u128 = 1 << 17;

/// What a run goes through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Sequences.
    pub batch: usize,
    /// Tokens that the encoder reads; 0 where it does not run.
    pub source: usize,
    /// Tokens that the first call of the decoder reads; 0 where it does not run.
    pub target: usize,
    /// Calls of the decoder; each reads one token more than the one before.
    pub calls: usize,
    /// Whether each call computes its last token only.
    pub cached: bool,
}

/// How many numbers a run computes: those of the nodes of the program of one token, with as many tokens as the run has.
/// Of several calls of the decoder, about how many. Never overflows; 0 where the model does not fit together.
pub fn cells(config: &ModelConfig, vocab: VocabSizes, extent: &Extent) -> u128 {
    let Ok(outline) = Outline::new(config, vocab) else { return 0 };
    let (source, calls) = (wide(extent.source), wide(extent.calls.max(1)));
    let target = wide(extent.target).saturating_add(calls - 1);
    let main = if config.decoder.is_some() { Side::Target } else { Side::Source };
    let of = |node: &Node| {
        let site = node.name.site;
        let (rows, keys, calls) = match site.side().unwrap_or(main) {
            Side::Source => (source, source, 1),
            Side::Target if extent.target == 0 => return 0,
            Side::Target if extent.cached && calls > 1 => (1, target, calls),
            Side::Target => (target, target, calls),
        };
        let cross = site.block() == Some(Block::CrossAttention);
        let (layer, times) = outline.layer(site).unzip();
        let band = layer.filter(|l| l.attention.algorithm == Algorithm::Banded).and_then(|l| l.attention.window);
        // A band reads twice its window besides its own tokens.
        let keys = if cross { source } else { band.map_or(keys, |w| keys.min(wide(w).saturating_mul(3))) };
        let axes = node.shape.axes().iter().zip(node.shape.dims());
        let cells = axes.map(|(axis, n)| match axis {
            Axis::Batch => wide(extent.batch.max(1)),
            Axis::Token if cross => rows.max(source),
            Axis::Token | Axis::Query => rows,
            Axis::Key => keys,
            _ => wide(*n),
        });
        let one = cells.fold(times.unwrap_or(1), u128::saturating_mul);
        // Calls grow by one token: they are about as many calls of the mean length.
        one.saturating_mul(calls) / if calls > 1 { 2 } else { 1 }
    };
    let computed = outline.program.nodes().map(|n| n.1).filter(|n| !matches!(n.op, Op::Leaf(_) | Op::Reshape));
    computed.map(of).fold(0, u128::saturating_add)
}

/// How many layers the run goes through.
pub fn layer_calls(config: &ModelConfig, extent: &Extent) -> u128 {
    let Resolved { encoder, decoder, .. } = resolve(config);
    let (source, last) = (wide(extent.source), wide(longest(extent)));
    let rows = if extent.cached && extent.calls > 1 { 1 } else { last };
    let count = |layers: &[ResolvedLayer], rows: u128, keys: u128| {
        layers.iter().map(|l| 1 + pieces(l, rows, keys) / 4).fold(0, u128::saturating_add)
    };
    let calls = wide(extent.calls.max(1));
    count(&encoder, source, source).saturating_add(product([count(&decoder, rows, last).max(1), calls]))
}

/// Tiles or bands of a layer's attention, each a dozen nodes.
fn pieces(l: &ResolvedLayer, rows: u128, keys: u128) -> u128 {
    match (l.attention.algorithm, l.attention.window) {
        (Algorithm::Tiled { queries, keys: size }, _) => {
            product([rows.div_ceil(wide(queries.max(1))), keys.div_ceil(wide(size.max(1)))])
        }
        (Algorithm::Banded, Some(w)) => rows.div_ceil(wide(w.max(1))),
        _ => 0,
    }
}

/// The longest sequence that the run gives a position to.
pub fn longest(extent: &Extent) -> usize {
    let generated = extent.target.saturating_add(extent.calls.max(1) - 1);
    extent.source.max(if extent.target == 0 { 0 } else { generated })
}

/// Rows of the table of learned positions, where there is one.
pub fn table(config: &ModelConfig) -> Option<usize> {
    match config.positions {
        Positions::Learned { max_len, offset, .. } => Some(max_len.saturating_sub(offset)),
        _ => None,
    }
}

fn wide(n: usize) -> u128 {
    n as u128
}

fn product<const N: usize>(factors: [u128; N]) -> u128 {
    factors.into_iter().fold(1, u128::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(layers: usize) -> ModelConfig {
        let text = format!("(d_model: 768, heads: 12, d_ff: 3072, encoder: Some((layers: [(repeat: {layers})])))");
        ron::from_str(&text).expect("a model")
    }

    const VOCAB: VocabSizes = VocabSizes { source: 1000, target: 1000 };

    #[test]
    fn a_model_of_usual_size_is_far_from_the_limit_and_a_million_tokens_are_beyond_it() {
        let run = |source| Extent { batch: 1, source, ..Extent::default() };
        let usual = cells(&config(12), VOCAB, &run(512));
        assert!(usual > 12 * 12 * 512 * 512 && usual < MAX_CELLS / 10);
        assert!(cells(&config(12), VOCAB, &run(1 << 20)) > MAX_CELLS);
    }

    #[test]
    fn nothing_overflows() {
        let huge =
            Extent { batch: usize::MAX, source: usize::MAX, target: usize::MAX, calls: usize::MAX, cached: false };
        assert!(cells(&config(1), VOCAB, &huge) > MAX_CELLS);
        assert!(layer_calls(&config(1), &huge) > MAX_LAYER_CALLS);
        assert_eq!(longest(&huge), usize::MAX);
    }
}
