//! Masks: which keys a query may see, and for each hidden one, why.

use std::ops::Range;

use super::params::ResolvedLayer;
use crate::program::reason;
use crate::tensor::{Axis, Shape};

/// A mask of attention scores: `[query, key]`, or `[batch, 1, query, key]` where sequences differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskSpec {
    /// Its shape.
    pub shape: Shape,
    /// Reasons, one a cell; 0 where visible. See [`reason`].
    pub reasons: Vec<u8>,
}

/// Which keys a scenario's own mask lets be seen.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GivenMask {
    /// Sequences.
    pub batch: usize,
    /// Rows a sequence: 1 where every query has the same, else one a query.
    pub queries: usize,
    /// Whether each row is of one query; with one token this cannot be seen from the number of rows.
    pub per_query: bool,
    /// Keys.
    pub keys: usize,
    /// `[batch, queries, keys]`, true where visible.
    pub visible: Vec<bool>,
}

/// What hides keys from the queries of one attention.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hidden<'a> {
    /// Keys after the query are hidden.
    pub causal: bool,
    /// Keys with |query − key| ≥ window are hidden.
    pub window: Option<usize>,
    /// `[batch, key]`, false where the key is padding.
    pub padding: Option<&'a [bool]>,
    /// A mask that the scenario gives.
    pub given: Option<&'a GivenMask>,
}

impl MaskSpec {
    /// The mask of some queries and keys.
    pub fn part(&self, queries: &Range<usize>, keys: &Range<usize>) -> Self {
        let (rank, dims) = (self.shape.rank(), self.shape.dims());
        let (rows, columns) = (dims[rank - 2], dims[rank - 1]);
        let mut reasons = Vec::with_capacity(self.reasons.len());
        for square in self.reasons.chunks((rows * columns).max(1)) {
            for row in queries.clone() {
                reasons.extend_from_slice(&square[row * columns..][keys.clone()]);
            }
        }
        let shape = self.shape.with_dim(rank - 2, queries.len()).with_dim(rank - 1, keys.len());
        Self { shape, reasons }
    }

    /// Whether no query sees any key.
    pub fn hides_all(&self) -> bool {
        self.reasons.iter().all(|r| *r != 0)
    }
}

impl Hidden<'_> {
    /// What hides keys in self-attention of `layer`.
    pub fn of(layer: &ResolvedLayer) -> Self {
        Self { causal: layer.causal, window: layer.attention.window, padding: None, given: None }
    }

    /// The mask for `queries` queries, the first at position `first`, over `keys` keys; `None` where nothing can
    /// be hidden.
    pub fn mask(&self, batch: usize, queries: usize, first: usize, keys: usize) -> Option<MaskSpec> {
        if !self.causal && self.window.is_none() && self.padding.is_none() && self.given.is_none() {
            return None;
        }
        let per_sequence = self.padding.is_some() || self.given.is_some();
        let rows = if per_sequence { batch } else { 1 };
        let mut reasons = Vec::with_capacity(rows * queries * keys);
        for s in 0..rows {
            for i in 0..queries {
                let query = first + i;
                for key in 0..keys {
                    let mut why = 0;
                    if self.causal && key > query {
                        why |= reason::CAUSAL;
                    }
                    if self.window.is_some_and(|w| query.abs_diff(key) >= w) {
                        why |= reason::WINDOW;
                    }
                    if self.padding.is_some_and(|p| !p[s * keys + key]) {
                        why |= reason::PADDING;
                    }
                    if self.given.is_some_and(|g| {
                        let (s, i) = (s.min(g.batch - 1), i.min(g.queries - 1));
                        !g.visible[(s * g.queries + i) * g.keys + key]
                    }) {
                        why |= reason::GIVEN;
                    }
                    reasons.push(why);
                }
            }
        }
        let shape = if per_sequence {
            Shape::named(&[(Axis::Batch, batch), (Axis::One, 1), (Axis::Query, queries), (Axis::Key, keys)])
        } else {
            Shape::named(&[(Axis::Query, queries), (Axis::Key, keys)])
        };
        Some(MaskSpec { shape, reasons })
    }
}
