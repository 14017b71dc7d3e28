//! What a training run minimises.
//!
//! The mean cross-entropy without further settings is [`composite::cross_entropy`], with the gradient that one writes by
//! hand; every other loss is built from primitives, and its gradient follows from theirs.

use crate::program::composite;
use crate::program::{Affine, Binary, BuildError, Builder, Constant, NodeId, Reduction, ScopeKind, Unary};
use crate::tensor::{Axis, Shape};

/// A loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// The mean of −ln p over the positions that count.
    #[default]
    MeanCrossEntropy,
    /// Cross-entropy with settings of its own, as `torch.nn.functional.cross_entropy` has them.
    CrossEntropy {
        /// The sum over the positions instead of their mean.
        sum: bool,
        /// Share of the target that all classes have alike.
        smoothing: f64,
        /// Factor of each class; empty: 1. A mean divides by the factors of the labels.
        class_weights: Vec<f64>,
    },
    /// Squared differences from `target`, `[batch, token, width]` of the output.
    SquaredError {
        /// What the output should be.
        target: Vec<f64>,
        /// How the squares are put together.
        reduction: Squares,
    },
    /// The sum of output times this, so that the gradient of the output is this.
    Gradient(Vec<f64>),
}

/// How squared differences are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Squares {
    /// Their mean over every number of every position that counts.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Half their sum: its gradient is the difference itself.
    HalfSum,
}

/// What a loss reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read<'a> {
    /// Logits and their softmax, where there is a head.
    pub output: Option<(NodeId, NodeId)>,
    /// Last hidden states, which denote the output where there is no head.
    pub hidden: NodeId,
    /// `[batch, token]`, negative where a position does not count.
    pub labels: Option<&'a [i64]>,
    /// `[batch, token]`, false where a token is padding.
    pub real: Option<&'a [bool]>,
}

impl Loss {
    /// The node of the loss under `loss.…`; `None` where what it needs (labels, a head) is not there.
    pub(super) fn build(&self, b: &mut Builder, read: &Read<'_>) -> Result<Option<NodeId>, BuildError> {
        let answer = read.output.map_or(read.hidden, |o| o.0);
        let loss = match (self, read.output, read.labels) {
            (Loss::MeanCrossEntropy, Some((logits, probs)), Some(labels)) => {
                composite::cross_entropy(b, "loss", logits, probs, labels)?
            }
            (Loss::CrossEntropy { sum, smoothing, class_weights }, Some((logits, _)), Some(labels)) => {
                let classes = Classes { smoothing: *smoothing, weights: class_weights };
                b.scope("loss", ScopeKind::Group, |b| cross_entropy(b, logits, labels, *sum, &classes))?
            }
            (Loss::SquaredError { target, reduction }, ..) => {
                b.scope("loss", ScopeKind::Group, |b| squared(b, answer, target, *reduction, read.real))?
            }
            (Loss::Gradient(gradient), ..) => b.scope("loss", ScopeKind::Group, |b| {
                let given =
                    b.constant("output_gradient", b.shape(answer), Constant::Float(gradient.as_slice().into()))?;
                let products = b.binary("products", Binary::Mul, answer, given)?;
                total(b, "sum", products)
            })?,
            (Loss::MeanCrossEntropy | Loss::CrossEntropy { .. }, ..) => return Ok(None),
        };
        Ok(Some(loss))
    }

    /// The loss of some of the sentences of a batch of `sentences`.
    #[must_use]
    pub fn subset(&self, rows: &[usize], sentences: usize) -> Self {
        let pick = |all: &[f64]| -> Vec<f64> {
            let width = all.len() / sentences.max(1);
            rows.iter().flat_map(|r| all[r * width..(r + 1) * width].iter().copied()).collect()
        };
        match self {
            Loss::SquaredError { target, reduction } => {
                Loss::SquaredError { target: pick(target), reduction: *reduction }
            }
            Loss::Gradient(gradient) => Loss::Gradient(pick(gradient)),
            other => other.clone(),
        }
    }
}

/// All numbers of x added up, as a scalar.
fn total(b: &mut Builder, name: &str, x: NodeId) -> Result<NodeId, BuildError> {
    let n = b.shape(x).len();
    let flat = b.reshape("flat", x, Shape::named(&[(Axis::Other, n)]))?;
    b.inline(flat);
    let sum = b.reduce("sum_row", Reduction::Sum, 0, flat)?;
    b.inline(sum);
    b.reshape(name, sum, Shape::SCALAR)
}

struct Classes<'a> {
    smoothing: f64,
    weights: &'a [f64],
}

/// `log_probs`, the smoothed and weighted `targets`, `per_position` `[batch, token]`, `sum` and perhaps `mean`.
fn cross_entropy(
    b: &mut Builder,
    logits: NodeId,
    labels: &[i64],
    sum: bool,
    classes: &Classes<'_>,
) -> Result<NodeId, BuildError> {
    let s = b.shape(logits);
    let words = s.dims()[2];
    let weight = |class: usize| classes.weights.get(class).copied().unwrap_or(1.0);
    let share = classes.smoothing / words as f64;
    let mut targets = vec![0.0; labels.len() * words];
    let mut counted = 0.0;
    for (row, &label) in targets.chunks_exact_mut(words).zip(labels) {
        let Ok(label) = usize::try_from(label) else { continue };
        for (class, target) in row.iter_mut().enumerate() {
            *target = share * weight(class);
        }
        row[label] += (1.0 - classes.smoothing) * weight(label);
        counted += weight(label);
    }
    let max = b.reduce_last("max", Reduction::Max, logits)?;
    let shift = b.unary("shift", Unary::SoftmaxShift, max)?;
    let shifted = b.binary("shifted", Binary::Sub, logits, shift)?;
    let exp = b.unary("exp", Unary::Exp, shifted)?;
    let exp_sum = b.reduce_last("exp_sum", Reduction::Sum, exp)?;
    let log_sum = b.unary("log_sum", Unary::Ln, exp_sum)?;
    for id in [max, shift, shifted, exp] {
        b.inline(id);
    }
    let log_probs = b.binary("log_probs", Binary::Sub, shifted, log_sum)?;
    let targets = b.constant("target_probs_all", s, Constant::Float(targets.into()))?;
    let products = b.binary("products", Binary::Mul, targets, log_probs)?;
    let added = b.reduce_last("products_sum", Reduction::Sum, products)?;
    let rows = Shape::named(&[(Axis::Batch, s.dims()[0]), (Axis::Token, s.dims()[1])]);
    let added = b.reshape("products_row", added, rows)?;
    for id in [products, added] {
        b.inline(id);
    }
    let each = b.unary("per_position", Unary::Neg, added)?;
    let all = total(b, "sum", each)?;
    if sum { Ok(all) } else { b.affine("mean", Affine::Div(counted), all) }
}

/// `difference`, `squared` `[batch, token, width]` and `sum`, `half_sum` or `mean`. Padding does not count.
fn squared(
    b: &mut Builder,
    answer: NodeId,
    target: &[f64],
    reduction: Squares,
    real: Option<&[bool]>,
) -> Result<NodeId, BuildError> {
    let s = b.shape(answer);
    let target = b.constant("target", s, Constant::Float(target.into()))?;
    let mut difference = b.binary("difference", Binary::Sub, answer, target)?;
    let mut counted = s.len();
    if let Some(real) = real {
        let column = Shape::named(&[(Axis::Batch, s.dims()[0]), (Axis::Token, s.dims()[1]), (Axis::One, 1)]);
        let keep: Vec<f64> = real.iter().map(|r| f64::from(u8::from(*r))).collect();
        counted = real.iter().filter(|r| **r).count() * s.dims()[2];
        let keep = b.constant("counted", column, Constant::Float(keep.into()))?;
        difference = b.binary("counted_difference", Binary::Mul, difference, keep)?;
    }
    let squares = b.unary("squared", Unary::Square, difference)?;
    let sum = total(b, "sum", squares)?;
    match reduction {
        Squares::Sum => Ok(sum),
        Squares::HalfSum => b.affine("half_sum", Affine::Mul(0.5), sum),
        Squares::Mean => b.affine("mean", Affine::Div(counted as f64), sum),
    }
}
