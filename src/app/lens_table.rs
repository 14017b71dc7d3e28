//! The logit lens: the words that the output head would choose if a stage of the residual stream were the last one.
//! The stage takes the place of the last one, and what lies between it and the probabilities (the final norm, the
//! output head, its softmax) is computed again by the program's own nodes.

use crate::program::{NodeId, Program, cost};
use crate::tensor::Precision;
use crate::trace::{AnyTrace, AnyValue, between};

/// Words that are kept of each stage and position.
pub const WORDS: usize = 12;

/// From which stages, and which node they take the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The stages, in order; the last one is `last`.
    pub stages: Vec<NodeId>,
    /// What the final norm, or the output head where there is none, reads.
    pub last: NodeId,
    /// Whether the numbers of the head are logits: then their softmax is taken here.
    pub logits: bool,
}

impl Way {
    /// Arithmetic of all stages, as cells.
    pub fn cost(&self, program: &Program, head: NodeId) -> usize {
        let nodes = between(program, self.last, head);
        let flops: u64 = nodes.iter().skip(1).map(|id| cost(program, *id, Precision::F32).flops).sum();
        usize::try_from(flops / 8).unwrap_or(usize::MAX).saturating_mul(self.stages.len())
    }
}

/// A word and its probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guess {
    /// Its id.
    pub id: usize,
    /// Its probability.
    pub p: f64,
}

/// What is known of a stage at a position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guesses {
    /// The most probable words, the first one first.
    pub top: Vec<Guess>,
    /// Probability of the word that the model chooses in the end.
    pub p_final: f64,
    /// How many words are more probable than it.
    pub rank_final: usize,
}

/// All stages and positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LensTable {
    /// By stage, then by position (sentence after sentence).
    pub at: Vec<Vec<Guesses>>,
}

impl LensTable {
    /// Computes all stages; `None` where the run did not get to the head.
    pub fn compute(trace: &AnyTrace, head: NodeId, way: &Way) -> Option<Self> {
        let rows_of = |value: &AnyValue| -> Vec<Vec<f64>> {
            let width = value.shape().dims().last().copied().unwrap_or(1).max(1);
            let row = |r: usize| -> Vec<f64> { (r * width..(r + 1) * width).map(|i| value.get(i)).collect() };
            let rows = (0..value.shape().len() / width).map(row);
            if way.logits { rows.map(|row| softmax(&row)).collect() } else { rows.collect() }
        };
        let chosen: Vec<usize> = rows_of(&trace.get(head)?).iter().map(|row| best(row, 1)[0]).collect();
        let stage = |from: &NodeId| -> Option<Vec<Guesses>> {
            let rows = rows_of(&trace.value_if_from(head, way.last, *from)?);
            let guesses = rows.iter().zip(&chosen).map(|(row, word)| Guesses {
                top: best(row, WORDS).into_iter().map(|id| Guess { id, p: row[id] }).collect(),
                p_final: row[*word],
                rank_final: row.iter().filter(|p| **p > row[*word]).count(),
            });
            Some(guesses.collect())
        };
        Some(Self { at: way.stages.iter().map(stage).collect::<Option<_>>()? })
    }
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exp: Vec<f64> = row.iter().map(|x| libm::exp(x - most)).collect();
    let sum: f64 = exp.iter().sum();
    exp.iter().map(|e| e / sum).collect()
}

/// Positions of the `k` largest numbers, the first of equal ones first; NaN is below all.
fn best(row: &[f64], k: usize) -> Vec<usize> {
    let key = |i: usize| if row[i].is_nan() { f64::NEG_INFINITY } else { row[i] };
    let mut order: Vec<usize> = (0..row.len()).collect();
    let down = |a: &usize, b: &usize| key(*b).total_cmp(&key(*a)).then(a.cmp(b));
    if k < order.len() {
        order.select_nth_unstable_by(k, down);
        order.truncate(k);
    }
    order.sort_unstable_by(down);
    order
}
