//! The calls of a generation: how many, what each reads, how the next token is chosen.

use std::ops::Range;

use crate::program::composite;
use crate::program::{BuildError, Builder, NodeId};

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// The most probable one; the first of equals.
    Greedy,
    /// Drawn.
    Sample {
        /// Logits are divided by this.
        temperature: f64,
        /// Only so many most probable tokens.
        top_k: Option<usize>,
        /// Only the most probable tokens that together reach this probability.
        top_p: Option<f64>,
        /// Only tokens at least this share as probable as the most probable one.
        min_p: Option<f64>,
        /// Logits of tokens that were read are divided by this where positive, else multiplied; 1 for none.
        repetition_penalty: f64,
        /// Seed of the drawn numbers.
        seed: u64,
    },
}

/// Tokens that the first calls may not choose: end tokens, so that a generation has a least length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Barred {
    /// Their ids.
    pub ids: Vec<i64>,
    /// In how many calls.
    pub calls: usize,
}

/// What is generated.
#[derive(Clone, Debug, PartialEq)]
pub enum Calls {
    /// One call a prefix, whatever was predicted.
    Forced(Vec<Vec<i64>>),
    /// Each call reads what the one before chose.
    Free {
        /// First tokens.
        from: Vec<i64>,
        /// Number of calls.
        max_new: usize,
        /// How the next token is chosen.
        choice: Choice,
        /// Tokens that the first calls may not choose.
        barred: Barred,
    },
    /// Several sequences of their own, each going on with its most probable token. Shorter ones begin later.
    Batch {
        /// First tokens of each.
        from: Vec<Vec<i64>>,
        /// Number of calls.
        max_new: usize,
    },
    /// The most probable continuations, several at a time.
    Beam {
        /// First tokens.
        from: Vec<i64>,
        /// Number of calls.
        max_new: usize,
        /// How many are kept.
        beams: usize,
        /// The token after which a beam is complete.
        end: Option<i64>,
        /// Beams are ranked by their score over length^this; 0: by the score alone.
        length_penalty: f64,
    },
}

impl Calls {
    /// Number of calls.
    pub fn count(&self) -> usize {
        match self {
            Calls::Forced(prefixes) => prefixes.len(),
            Calls::Free { max_new, .. } | Calls::Batch { max_new, .. } | Calls::Beam { max_new, .. } => *max_new,
        }
    }

    /// The same with at most `most` calls.
    #[must_use]
    pub fn first(&self, most: usize) -> Self {
        let mut calls = self.clone();
        match &mut calls {
            Calls::Forced(prefixes) => prefixes.truncate(most),
            Calls::Free { max_new, .. } | Calls::Batch { max_new, .. } | Calls::Beam { max_new, .. } => {
                *max_new = most.min(*max_new);
            }
        }
        calls
    }

    /// Tokens that each call sees, the cached ones included.
    pub fn lengths(&self) -> Vec<usize> {
        match self {
            Calls::Forced(prefixes) => prefixes.iter().map(Vec::len).collect(),
            Calls::Free { from, max_new, .. } | Calls::Beam { from, max_new, .. } => {
                (0..*max_new).map(|i| from.len() + i).collect()
            }
            Calls::Batch { from, max_new } => (0..*max_new).map(|i| longest(from) + i).collect(),
        }
    }
}

pub(super) fn longest(from: &[Vec<i64>]) -> usize {
    from.iter().map(Vec::len).max().unwrap_or(0)
}

/// Calls that follow one another, and what the calls before them left: a long generation without a cache is built and
/// run part by part.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Numbers of the calls.
    pub calls: Range<usize>,
    /// What the first of them reads, one row a beam: `[beam][token]`.
    pub tokens: Vec<Vec<i64>>,
    /// The beams' scores so far; none before the first call.
    pub scores: Vec<f64>,
}

impl Part {
    /// All calls.
    pub fn whole(calls: &Calls) -> Self {
        let tokens = match calls {
            Calls::Forced(prefixes) => vec![prefixes.first().cloned().unwrap_or_default()],
            Calls::Free { from, .. } | Calls::Beam { from, .. } => vec![from.clone()],
            Calls::Batch { from, .. } => {
                // What is in padding does not matter: it is hidden.
                let filled = |row: &Vec<i64>| [vec![0; longest(from) - row.len()], row.clone()].concat();
                from.iter().map(filled).collect()
            }
        };
        Self { calls: 0..calls.count(), tokens, scores: Vec::new() }
    }

    /// The node that holds what the first call reads.
    pub(super) fn first_tokens(&self, b: &mut Builder) -> Result<NodeId, BuildError> {
        let path = format!("gen.{}.tokens", self.calls.start);
        composite::token_ids(b, &path, self.tokens.len(), &self.tokens.concat())
    }
}
