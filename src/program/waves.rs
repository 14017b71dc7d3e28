//! Composites of positions: sines and cosines, added to the embedding or turning queries and keys.

use std::sync::Arc;

use super::{Affine, Binary, BuildError, Builder, Constant, NodeId, ScopeKind, Unary};
use crate::tensor::{Axis, Shape};

type Built = Result<NodeId, BuildError>;

/// The positions of tokens.
#[derive(Clone, Copy, Debug)]
pub enum Places<'a> {
    /// One after the other, the same in every sentence.
    From {
        /// The first.
        first: usize,
        /// How many.
        tokens: usize,
    },
    /// Each sentence has its own.
    Rows {
        /// `[batch, token]`.
        ids: &'a [i64],
        /// Sentences.
        batch: usize,
        /// Whether an axis of heads separates, for what is rotated head by head.
        heads: bool,
    },
}

impl Places<'_> {
    /// All of them, row by row.
    pub fn ids(&self) -> Vec<i64> {
        match *self {
            Places::From { first, tokens } => (first as i64..(first + tokens) as i64).collect(),
            Places::Rows { ids, .. } => ids.to_vec(),
        }
    }

    /// `[token]`, `[batch, token]`, or `[batch, 1, token]` under heads.
    pub fn shape(&self) -> Shape {
        match *self {
            Places::From { tokens, .. } => Shape::named(&[(Axis::Token, tokens)]),
            Places::Rows { ids, batch, heads } => {
                let (batch, tokens) = ((Axis::Batch, batch), (Axis::Token, ids.len() / batch.max(1)));
                if heads { Shape::named(&[batch, (Axis::One, 1), tokens]) } else { Shape::named(&[batch, tokens]) }
            }
        }
    }

    /// The same for `[batch, head, token, width]`.
    #[must_use]
    pub fn under_heads(self) -> Self {
        match self {
            Places::Rows { ids, batch, .. } => Places::Rows { ids, batch, heads: true },
            from @ Places::From { .. } => from,
        }
    }
}

/// sin and cos of position / base^(2i/width): nodes `position` `[token, 1]`, `denominators` `[⌈width/2⌉]`,
/// `angle`, `sin`, `cos` `[token, ⌈width/2⌉]`. Positions run from `first`.
///
/// # Errors
/// Where the paths are taken.
pub fn waves(b: &mut Builder, places: Places<'_>, width: usize, base: f64) -> Result<(NodeId, NodeId), BuildError> {
    let half = width.div_ceil(2);
    let denominators: Arc<[f64]> = (0..half).map(|i| libm::pow(base, (2 * i) as f64 / width as f64)).collect();
    waves_of(b, places, denominators, 1.0)
}

/// As [`waves`], with these denominators; sin and cos are multiplied by `factor`.
///
/// # Errors
/// Where the paths are taken.
pub fn waves_of(
    b: &mut Builder,
    places: Places<'_>,
    denominators: Arc<[f64]>,
    factor: f64,
) -> Result<(NodeId, NodeId), BuildError> {
    let half = denominators.len();
    let position: Arc<[f64]> = places.ids().into_iter().map(|p| p as f64).collect();
    let column = places.shape().and((Axis::One, 1));
    let position = b.constant("position", column, Constant::Float(position))?;
    let denominators =
        b.constant("denominators", Shape::named(&[(Axis::Other, half)]), Constant::Float(denominators))?;
    let angle = b.binary("angle", Binary::Div, position, denominators)?;
    b.inline(angle);
    let wave = |b: &mut Builder, name: &str, f: Unary| {
        if factor == 1.0 {
            return b.unary(name, f, angle);
        }
        let plain = b.unary(format!("{name}_plain"), f, angle)?;
        b.inline(plain);
        b.affine(name, Affine::Mul(factor), plain)
    };
    Ok((wave(b, "sin", Unary::Sin)?, wave(b, "cos", Unary::Cos)?))
}

/// Sinusoidal positions `[token, width]`, or `[batch, token, width]` where sentences have positions of their own (Vaswani et al. 2017), sines and cosines interleaved or in halves.
///
/// # Errors
/// Where the paths are taken.
pub fn sinusoidal(
    b: &mut Builder,
    name: &str,
    places: Places<'_>,
    width: usize,
    base: f64,
    interleaved: bool,
) -> Built {
    b.scope(name, ScopeKind::Group, |b| {
        let (sin, cos) = waves(b, places, width, base)?;
        let (rows, rank) = (places.shape(), places.shape().rank());
        b.inline(sin);
        b.inline(cos);
        let half = width.div_ceil(2);
        let both = if interleaved {
            let pair = rows.and((Axis::Other, half)).and((Axis::One, 1));
            let s = b.reshape("sin_column", sin, pair)?;
            let c = b.reshape("cos_column", cos, pair)?;
            let pairs = b.concat("pairs", rank + 1, &[s, c])?;
            for id in [s, c, pairs] {
                b.inline(id);
            }
            let flat = rows.and((Axis::DModel, 2 * half));
            b.reshape(if width.is_multiple_of(2) { "" } else { "even" }, pairs, flat)?
        } else {
            b.concat(if width.is_multiple_of(2) { "" } else { "even" }, rank, &[sin, cos])?
        };
        let both = if width.is_multiple_of(2) {
            both
        } else {
            b.inline(both);
            b.slice("", both, rank, 0, width)?
        };
        let axes = rows.and((Axis::DModel, width));
        Ok(b.name_axes(both, axes.axes()))
    })
}

/// Rotates the first `dim` components of `x [batch, head, token, width]` by position (Su et al. 2021):
/// (a, c) → (a·cos − c·sin, c·cos + a·sin). `sin`, `cos` are `[token, dim/2]`.
///
/// # Errors
/// Where `dim` is odd or wider than x.
pub fn rotary(
    b: &mut Builder,
    name: &str,
    x: NodeId,
    (sin, cos): (NodeId, NodeId),
    dim: usize,
    interleaved: bool,
) -> Built {
    b.scope(name, ScopeKind::Group, |b| {
        let s = b.shape(x);
        let (half, width) = (dim / 2, s.dims()[3]);
        let part = |b: &mut Builder, name: &str, start: usize, len: usize| {
            let id = b.slice(name, x, 3, start, len)?;
            Ok::<_, BuildError>(b.inline(id))
        };
        let (a, c) = if interleaved {
            let all = part(b, "rotating", 0, dim)?;
            let pairs = Shape::named(&[
                (Axis::Batch, s.dims()[0]),
                (s.axes()[1], s.dims()[1]),
                (Axis::Token, s.dims()[2]),
                (Axis::Other, half),
                (Axis::Other, 2),
            ]);
            let pairs = b.reshape("pairs", all, pairs)?;
            b.inline(pairs);
            let flat = s.with_dim(3, half);
            let mut take = |name: &str, i: usize| {
                let column = b.slice(format!("{name}_column"), pairs, 4, i, 1)?;
                b.inline(column);
                let id = b.reshape(name, column, flat)?;
                Ok::<_, BuildError>(b.inline(id))
            };
            (take("first", 0)?, take("second", 1)?)
        } else {
            (part(b, "first", 0, half)?, part(b, "second", half, half)?)
        };
        let mut product = |name: &str, x: NodeId, y: NodeId| {
            let id = b.binary(name, Binary::Mul, x, y)?;
            Ok::<_, BuildError>(b.inline(id))
        };
        let a_cos = product("first_cos", a, cos)?;
        let c_sin = product("second_sin", c, sin)?;
        let c_cos = product("second_cos", c, cos)?;
        let a_sin = product("first_sin", a, sin)?;
        let first = b.binary("first_rotated", Binary::Sub, a_cos, c_sin)?;
        let second = b.binary("second_rotated", Binary::Add, c_cos, a_sin)?;
        b.inline(first);
        b.inline(second);
        let mut parts = vec![first, second];
        if interleaved {
            let column = Shape::named(&[
                (Axis::Batch, s.dims()[0]),
                (s.axes()[1], s.dims()[1]),
                (Axis::Token, s.dims()[2]),
                (Axis::Other, half),
                (Axis::One, 1),
            ]);
            let f = b.reshape("first_rotated_column", first, column)?;
            let t = b.reshape("second_rotated_column", second, column)?;
            let pairs = b.concat("pairs_rotated", 4, &[f, t])?;
            for id in [f, t, pairs] {
                b.inline(id);
            }
            if dim == width {
                return b.reshape("", pairs, s);
            }
            let flat = b.reshape("rotated", pairs, s.with_dim(3, dim))?;
            parts = vec![b.inline(flat)];
        }
        if dim < width {
            parts.push(part(b, "kept", dim, width - dim)?);
        }
        let out = b.concat("", 3, &parts)?;
        Ok(b.name_axes(out, s.axes()))
    })
}
