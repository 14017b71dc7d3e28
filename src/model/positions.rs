//! Positions inside attention: rotary tables and their scaling, ALiBi, and the relative bias of T5.

use serde::{Deserialize, Serialize};

use super::config::{PairLayout, Positions};
use super::params::{ParamRole, ResolvedLayer};
use crate::program::composite::{self, Places};
use crate::program::{Binary, BuildError, Builder, Constant, NodeId, Pick, ScopeKind};
use crate::tensor::{Axis, Shape};

/// How rotary wavelengths are stretched so that a model reads longer texts than it was first trained on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum RotaryScaling {
    /// Not at all.
    #[default]
    None,
    /// All wavelengths are `factor` times as long (Chen et al. 2023).
    Linear {
        /// How many times.
        factor: f64,
    },
    /// The base grows with the length of the text, once that exceeds `original`.
    Dynamic {
        /// How strongly.
        factor: f64,
        /// Length of the first training.
        original: usize,
    },
    /// Long wavelengths are stretched, short ones are kept, and queries and keys are scaled (Peng et al. 2023).
    Yarn {
        /// How many times.
        factor: f64,
        /// Length of the first training.
        original: usize,
        /// Turns within `original` above which a wavelength is kept.
        #[serde(default = "thirty_two")]
        beta_fast: f64,
        /// Turns within `original` below which a wavelength is stretched in full.
        #[serde(default = "one")]
        beta_slow: f64,
        /// sin and cos are multiplied by this; unless given, by what the paper says.
        #[serde(default)]
        attention_factor: Option<f64>,
        /// Numerator of that factor, with `mscale_all_dim` (DeepSeek).
        #[serde(default)]
        mscale: Option<f64>,
        /// Denominator of that factor.
        #[serde(default)]
        mscale_all_dim: Option<f64>,
        /// Whether the borders between kept and stretched pairs are rounded outwards.
        #[serde(default = "yes")]
        truncate: bool,
    },
    /// As Llama 3.1: wavelengths above `original / low_freq_factor` are stretched, those below
    /// `original / high_freq_factor` are kept, and those between are mixed.
    Llama3 {
        /// How many times.
        factor: f64,
        /// See above.
        low_freq_factor: f64,
        /// See above.
        high_freq_factor: f64,
        /// Length of the first training.
        original: usize,
    },
    /// Each pair has a factor of its own, another one for texts longer than `original` (Ding et al. 2024).
    LongRope {
        /// Factors up to `original`.
        short: Vec<f64>,
        /// Factors beyond.
        long: Vec<f64>,
        /// Length of the first training.
        original: usize,
        /// sin and cos are multiplied by this.
        #[serde(default = "one")]
        attention_factor: f64,
    },
}

fn thirty_two() -> f64 {
    32.0
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

impl RotaryScaling {
    /// Whether the table of a text depends on how long it is, so that rotated keys cannot be kept.
    pub fn depends_on_length(&self) -> bool {
        match self {
            RotaryScaling::Dynamic { .. } => true,
            RotaryScaling::LongRope { short, long, .. } => short != long,
            _ => false,
        }
    }

    /// Numbers that must be finite and above 0, and the first that is not.
    pub(super) fn wrong(&self) -> Option<f64> {
        let all: Vec<f64> = match self {
            RotaryScaling::None => vec![],
            RotaryScaling::Linear { factor } => vec![*factor],
            RotaryScaling::Dynamic { factor, original } => vec![*factor, *original as f64],
            RotaryScaling::Yarn { factor, original, beta_fast, beta_slow, attention_factor, .. } => {
                vec![*factor, *original as f64, *beta_fast, *beta_slow, attention_factor.unwrap_or(1.0)]
            }
            RotaryScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original } => {
                vec![*factor, *low_freq_factor, high_freq_factor - low_freq_factor, *original as f64]
            }
            RotaryScaling::LongRope { short, long, original, attention_factor } => {
                let mut all = vec![*original as f64, *attention_factor];
                all.extend(short.iter().chain(long));
                all
            }
        };
        all.into_iter().find(|x| !(x.is_finite() && *x > 0.0))
    }

    /// Denominators of the angles of `width / 2` pairs in a text of `length` tokens, and the factor of sin and cos.
    fn denominators(&self, base: f64, width: usize, length: usize) -> (Vec<f64>, f64) {
        let half = width.div_ceil(2);
        let plain =
            |base: f64| -> Vec<f64> { (0..half).map(|i| libm::pow(base, (2 * i) as f64 / width as f64)).collect() };
        match self {
            RotaryScaling::None => (plain(base), 1.0),
            RotaryScaling::Linear { factor } => (plain(base).into_iter().map(|d| d * factor).collect(), 1.0),
            RotaryScaling::Dynamic { factor, original } => {
                let ratio = length.max(*original) as f64 / *original as f64;
                let exponent = width as f64 / (width as f64 - 2.0).max(1.0);
                (plain(base * libm::pow(factor * ratio - (factor - 1.0), exponent)), 1.0)
            }
            RotaryScaling::Yarn {
                factor,
                original,
                beta_fast,
                beta_slow,
                attention_factor,
                mscale,
                mscale_all_dim,
                truncate,
            } => {
                let border = |turns: f64| {
                    let periods = *original as f64 / (turns * std::f64::consts::TAU);
                    width as f64 * libm::log(periods) / (2.0 * libm::log(base))
                };
                let (mut low, mut high) = (border(*beta_fast), border(*beta_slow));
                if *truncate {
                    (low, high) = (low.floor(), high.ceil());
                }
                let (low, mut high) = (low.max(0.0), high.min(width as f64 - 1.0));
                if low == high {
                    high += 0.001;
                }
                let mixed = plain(base).into_iter().enumerate().map(|(i, d)| {
                    let stretched = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
                    1.0 / (stretched / (factor * d) + (1.0 - stretched) / d)
                });
                let growth = |m: f64| if *factor <= 1.0 { 1.0 } else { 0.1 * m * libm::log(*factor) + 1.0 };
                let inferred = match (mscale, mscale_all_dim) {
                    (Some(m), Some(all)) if *m != 0.0 && *all != 0.0 => growth(*m) / growth(*all),
                    _ => growth(1.0),
                };
                (mixed.collect(), attention_factor.unwrap_or(inferred))
            }
            RotaryScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original } => {
                let original = *original as f64;
                let stretched = |d: f64| {
                    let wavelength = std::f64::consts::TAU * d;
                    if wavelength > original / low_freq_factor {
                        d * factor
                    } else if wavelength < original / high_freq_factor {
                        d
                    } else {
                        let kept = (original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
                        1.0 / ((1.0 - kept) / (d * factor) + kept / d)
                    }
                };
                (plain(base).into_iter().map(stretched).collect(), 1.0)
            }
            RotaryScaling::LongRope { short, long, original, attention_factor } => {
                let factors = if length > *original { long } else { short };
                let each = plain(base).into_iter().enumerate();
                let each = each.map(|(i, d)| d * factors.get(i).copied().unwrap_or(1.0));
                (each.collect(), *attention_factor)
            }
        }
    }
}

/// Rotary tables and how to use them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    pub sin: NodeId,
    pub cos: NodeId,
    /// Components that rotate; `None`: all.
    pub dim: Option<usize>,
    pub interleaved: bool,
}

/// How positions enter the attention of one layer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LayerPositions {
    /// Queries and keys are rotated.
    pub rotation: Option<Rotation>,
    /// Added to the scores before they are scaled, `[1, head, query, key]`.
    pub raw_bias: Option<NodeId>,
    /// Added to the scores after they are scaled, `[1, head, query, key]`.
    pub bias: Option<NodeId>,
    /// Such a bias that each layer learns, yet to be built.
    pub own_table: Option<Relative>,
}

/// A bias by distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relative {
    buckets: usize,
    max_distance: usize,
}

/// Positions of the attention of a layer: its own, or the model's.
pub(super) fn positions_of<'a>(model: &'a Positions, layer: &'a ResolvedLayer) -> &'a Positions {
    layer.attention.positions.as_ref().unwrap_or(model)
}

/// Components that rotate in a layer's queries and keys.
pub(super) fn rotating(layer: &ResolvedLayer, dim: Option<usize>) -> usize {
    layer.attention.latent.as_ref().map_or_else(|| dim.unwrap_or(layer.d_k), |l| l.rope)
}

/// The tables and biases of all layers of a stack over queries at `places`; each table stands once, before the layers.
/// `base` is the path of the stack's parameters.
pub(super) fn of_layers(
    b: &mut Builder,
    base: &str,
    model: &Positions,
    layers: &[ResolvedLayer],
    places: Places<'_>,
) -> Result<Vec<LayerPositions>, BuildError> {
    let mut made: Vec<((Positions, usize, bool), LayerPositions)> = Vec::new();
    let mut counts = [0usize; 3];
    if layers.is_empty()
        && let Positions::Rotary { .. } = model
    {
        let unused = Shared { positions: model, width: 0, heads: 0, causal: true };
        shared(b, base, &unused, places, &mut counts)?;
    }
    layers
        .iter()
        .map(|layer| {
            let positions = positions_of(model, layer);
            let width = match positions {
                Positions::Rotary { dim, .. } => rotating(layer, *dim),
                _ => layer.heads,
            };
            let key = (positions.clone(), width, layer.causal || !matches!(positions, Positions::Relative { .. }));
            if let Some((_, known)) = made.iter().find(|(k, _)| *k == key) {
                return Ok(*known);
            }
            let of = Shared { positions, width, heads: layer.heads, causal: layer.causal };
            let new = shared(b, base, &of, places, &mut counts)?;
            made.push((key, new));
            Ok(new)
        })
        .collect()
}

/// What the layers with one setting share.
struct Shared<'a> {
    positions: &'a Positions,
    /// Components that rotate.
    width: usize,
    heads: usize,
    causal: bool,
}

fn shared(
    b: &mut Builder,
    base: &str,
    of: &Shared<'_>,
    places: Places<'_>,
    counts: &mut [usize; 3],
) -> Result<LayerPositions, BuildError> {
    // The second table of a kind is `rotary2`.
    let mut numbered = |kind: usize, name: &str| {
        counts[kind] += 1;
        if counts[kind] == 1 { name.to_owned() } else { format!("{name}{}", counts[kind]) }
    };
    // Distances are those of places in the rows, whatever numbers the sentences give them.
    let (first, tokens) = match places {
        Places::From { first, tokens } => (first, tokens),
        Places::Rows { ids, batch, .. } => (0, ids.len() / batch.max(1)),
    };
    match of.positions {
        Positions::Rotary { layout, base, dim, scaling } => {
            let name = numbered(0, "rotary");
            let (denominators, factor) = scaling.denominators(*base, of.width, longest(places));
            let (sin, cos) = b.scope(&name, ScopeKind::Group, |b| {
                composite::waves_of(b, places.under_heads(), denominators.into(), factor)
            })?;
            let interleaved = *layout == PairLayout::Interleaved;
            let rotation = Rotation { sin, cos, dim: *dim, interleaved };
            Ok(LayerPositions { rotation: Some(rotation), ..LayerPositions::default() })
        }
        Positions::Alibi { scaled } => {
            let name = numbered(1, "alibi");
            let bias = b.scope(&name, ScopeKind::Group, |b| alibi(b, of.heads, tokens, first))?;
            Ok(if *scaled {
                LayerPositions { raw_bias: Some(bias), ..LayerPositions::default() }
            } else {
                LayerPositions { bias: Some(bias), ..LayerPositions::default() }
            })
        }
        Positions::Relative { buckets, max_distance, shared } => {
            let relative = Relative { buckets: *buckets, max_distance: *max_distance };
            if !shared {
                return Ok(LayerPositions { own_table: Some(relative), ..LayerPositions::default() });
            }
            let name = numbered(2, "relative");
            let at = format!("{base}.relative");
            let bias = relative.build(b, &name, &at, (of.heads, of.causal), tokens, first)?;
            Ok(LayerPositions { bias: Some(bias), ..LayerPositions::default() })
        }
        Positions::None | Positions::Sinusoidal { .. } | Positions::Learned { .. } => Ok(LayerPositions::default()),
    }
}

/// How long a text is that has these positions.
fn longest(places: Places<'_>) -> usize {
    places.ids().into_iter().max().map_or(0, |last| usize::try_from(last).unwrap_or(0) + 1)
}

/// Slopes of ALiBi (Press et al. 2022): a geometric series from 2^(−8/n), for heads that are no power of two filled up
/// with every second one of twice as many.
fn slopes(heads: usize) -> Vec<f64> {
    let series = |n: usize| (1..=n).map(move |i| libm::exp2(-8.0 * i as f64 / n as f64));
    let whole = if heads.is_power_of_two() { heads } else { heads.next_power_of_two() / 2 };
    series(whole).chain(series(2 * whole).step_by(2)).take(heads).collect()
}

/// −slope·|query − key|, `[1, head, query, key]`.
fn alibi(b: &mut Builder, heads: usize, tokens: usize, first: usize) -> Result<NodeId, BuildError> {
    let keys = first + tokens;
    let slopes: Vec<f64> = slopes(heads);
    let column = Shape::named(&[(Axis::One, 1), (Axis::Head, heads), (Axis::One, 1), (Axis::One, 1)]);
    let slopes = b.constant("slopes", column, Constant::Float(slopes.into()))?;
    let far: Vec<f64> = (first..keys)
        .flat_map(|i| (0..keys).map(move |j| if i == j { 0.0 } else { -(i.abs_diff(j) as f64) }))
        .collect();
    let square = Shape::named(&[(Axis::One, 1), (Axis::One, 1), (Axis::Query, tokens), (Axis::Key, keys)]);
    let far = b.constant("distance", square, Constant::Float(far.into()))?;
    b.binary("bias", Binary::Mul, slopes, far)
}

/// The bucket of a distance, `key − query` (Raffel et al. 2020).
fn bucket(distance: i64, buckets: usize, max_distance: usize, causal: bool) -> i64 {
    let (mut start, mut n, far) = (0, buckets as i64, distance.unsigned_abs());
    let far = if causal {
        if distance > 0 { 0 } else { far }
    } else {
        n /= 2;
        start = if distance > 0 { n } else { 0 };
        far
    };
    let exact = n / 2;
    if (far as i64) < exact {
        return start + far as i64;
    }
    // Rounded as the model was trained: in single precision.
    let ratio = libm::logf(far as f32 / exact as f32) / libm::log(max_distance as f64 / exact as f64) as f32;
    let logarithmic = exact + (ratio * (n - exact) as f32) as i64;
    start + logarithmic.min(n - 1)
}

impl Relative {
    /// A learned bias by distance, `[1, head, query, key]`, with its table at `{at}.weight [bucket, head]`.
    pub(super) fn build(
        self,
        b: &mut Builder,
        name: &str,
        at: &str,
        (heads, causal): (usize, bool),
        tokens: usize,
        first: usize,
    ) -> Result<NodeId, BuildError> {
        let Relative { buckets, max_distance } = self;
        let keys = first + tokens;
        let table = Shape::named(&[(Axis::Other, buckets), (Axis::Head, heads)]);
        let table = b.declare(format!("{at}.weight"), table, ParamRole::Position, 1)?;
        b.scope(name, ScopeKind::Group, |b| {
            let ids: Vec<i64> = (first..keys)
                .flat_map(|i| (0..keys).map(move |j| bucket(j as i64 - i as i64, buckets, max_distance, causal)))
                .collect();
            let square = Shape::named(&[(Axis::Query, tokens), (Axis::Key, keys)]);
            let ids = b.constant("buckets", square, Constant::Int(ids.into()))?;
            let rows = b.gather("rows", Pick::Rows, table, ids)?;
            let heads_first = b.permute("heads_first", rows, &[2, 0, 1])?;
            b.inline(rows);
            b.inline(heads_first);
            let shape = [(Axis::One, 1), (Axis::Head, heads), (Axis::Query, tokens), (Axis::Key, keys)];
            b.reshape("bias", heads_first, Shape::named(&shape))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        for (x, y) in a.iter().zip(b) {
            assert!((x - y).abs() <= 2e-6 * y.abs().max(1e-3), "{a:?} against {b:?}");
        }
    }

    #[test]
    fn slopes_of_heads() {
        near(&slopes(4), &[0.25, 0.0625, 0.015_625, 0.003_906_25]);
        // Six heads: four, and the first and third of eight.
        near(&slopes(6), &[0.25, 0.0625, 0.015_625, 0.003_906_25, 0.5, 0.125]);
    }

    #[test]
    fn every_distance_has_the_bucket_of_the_model_it_comes_from() {
        // T5Attention._relative_position_bucket of transformers 5.24, 8 buckets up to distance 12.
        let both: Vec<i64> = (-14..=14).map(|d| bucket(d, 8, 12, false)).collect();
        assert_eq!(both, [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 1, 0, 5, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        let before: Vec<i64> = (-14..=2).map(|d| bucket(d, 8, 12, true)).collect();
        assert_eq!(before, [7, 7, 7, 7, 7, 6, 6, 6, 5, 4, 4, 3, 2, 1, 0, 0, 0]);
    }
}
