//! Composites: functions that append primitives inside a named scope.
//!
//! None of them is special to the engine. "ε inside the root" and "ε next to σ" are two visibly different programs,
//! and μ, σ², exp, Σ are ordinary recorded tensors. A name given to a composite is the path of its result.

use std::sync::Arc;

use super::{
    Affine, Binary, BuildError, Builder, Constant, NodeId, Pick, Random, RandomKind, Reduction, ScopeKind, Unary,
};
use crate::tensor::{Axis, Shape};

pub use super::waves::{Places, rotary, sinusoidal, waves, waves_of};

type Built = Result<NodeId, BuildError>;

/// `x·Wᵀ + b`: x `[…, in]`, W `[out, in]`, b `[out]`.
///
/// # Errors
/// Where shapes do not fit.
pub fn linear(b: &mut Builder, name: &str, x: NodeId, weight: NodeId, bias: Option<NodeId>, out: Axis) -> Built {
    b.scope(name, ScopeKind::Linear, |b| {
        let product = b.matmul_bt(if bias.is_some() { "product" } else { "" }, x, weight)?;
        let last = b.shape(product).rank() - 1;
        let axes = b.shape(product).with_axis(last, out);
        b.name_axes(product, axes.axes());
        match bias {
            None => Ok(product),
            Some(bias) => {
                b.inline(product);
                b.binary("", Binary::Add, product, bias)
            }
        }
    })
}

/// Splits the last axis into heads: `[batch, token, heads·width] → [batch, head, token, width]`.
///
/// # Errors
/// Where the width does not divide.
pub fn split_heads(b: &mut Builder, name: &str, x: NodeId, heads: (Axis, usize), width: (Axis, usize)) -> Built {
    let s = b.shape(x);
    let split = Shape::named(&[(Axis::Batch, s.dims()[0]), (Axis::Token, s.dims()[1]), heads, width]);
    let id = b.reshape(format!("{name}split"), x, split)?;
    b.inline(id);
    b.permute("", id, &[0, 2, 1, 3])
}

/// Which shift a softmax subtracts; see [`crate::model::config::SoftmaxShift`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// The row's maximum, where exp would overflow.
    WhenNeeded,
    /// The row's maximum.
    Always,
    /// Nothing.
    Never,
}

/// Softmax over the last axis: `max`, `shift`, `shifted`, `exp`, `sum` and the result under `name`.
/// With `masked`, a row without any visible cell is all 0.
///
/// # Errors
/// Where x has no axis.
pub fn softmax(b: &mut Builder, name: &str, x: NodeId, shift: Shift, masked: bool) -> Built {
    b.scope("", ScopeKind::Group, |b| {
        let shifted = match shift {
            Shift::Never => x,
            Shift::WhenNeeded | Shift::Always => {
                let max = b.reduce_last("max", Reduction::Max, x)?;
                let by = match shift {
                    Shift::WhenNeeded => b.unary("shift", Unary::SoftmaxShift, max)?,
                    // −∞ − −∞ would not be a number.
                    _ if masked => b.unary("shift", Unary::MaskedSoftmaxShift, max)?,
                    _ => max,
                };
                let shifted = b.binary("shifted", Binary::Sub, x, by)?;
                b.inline(shifted)
            }
        };
        let exp = b.unary("exp", Unary::Exp, shifted)?;
        let sum = b.reduce_last("sum", Reduction::Sum, exp)?;
        let divide = if masked { Binary::DivOrZero } else { Binary::Div };
        let output = b.binary(name, divide, exp, sum)?;
        b.set_kind(ScopeKind::Softmax { input: x, output });
        Ok(output)
    })
}

/// How a norm is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// ε.
    pub eps: f64,
    /// √(σ² + ε) rather than √σ² + ε.
    pub inside_root: bool,
    /// Divide the variance by n − 1.
    pub unbiased: bool,
    /// γ.
    pub gamma: Option<NodeId>,
    /// β.
    pub beta: Option<NodeId>,
    /// The factor is 1 + γ.
    pub unit_offset: bool,
}

impl Norm {
    /// √(v + ε) or √v + ε.
    fn root(&self, b: &mut Builder, v: NodeId) -> Built {
        let inside = if self.inside_root {
            let id = b.affine("var_eps", Affine::Add(self.eps), v)?;
            b.inline(id)
        } else {
            v
        };
        let root = b.unary(if self.inside_root { "root" } else { "sigma" }, Unary::Sqrt, inside)?;
        b.inline(root);
        if self.inside_root {
            return Ok(root);
        }
        let id = b.affine("root", Affine::Add(self.eps), root)?;
        Ok(b.inline(id))
    }

    /// `x/root`, then γ and β; the last is named `out`.
    fn finish(&self, b: &mut Builder, x: NodeId, root: NodeId) -> Built {
        let mut at =
            b.binary(if self.gamma.or(self.beta).is_some() { "normalised" } else { "out" }, Binary::Div, x, root)?;
        if let Some(mut gamma) = self.gamma {
            b.inline(at);
            if self.unit_offset {
                gamma = b.affine("one_plus_gamma", Affine::Add(1.0), gamma)?;
                b.inline(gamma);
            }
            at = b.binary(if self.beta.is_some() { "scaled" } else { "out" }, Binary::Mul, at, gamma)?;
        }
        if let Some(beta) = self.beta {
            b.inline(at);
            at = b.binary("out", Binary::Add, at, beta)?;
        }
        Ok(at)
    }
}

/// `LayerNorm` over the last axis (Ba, Kiros and Hinton 2016): `mean`, `centred`, `squared`, `var`, the root,
/// `normalised`, `out`.
///
/// # Errors
/// Where shapes do not fit.
pub fn layer_norm(b: &mut Builder, name: &str, x: NodeId, norm: &Norm) -> Built {
    b.scope(name, ScopeKind::Group, |b| {
        let mean = b.reduce_last("mean", Reduction::Mean, x)?;
        let centred = b.binary("centred", Binary::Sub, x, mean)?;
        b.inline(centred);
        let squared = b.unary("squared", Unary::Square, centred)?;
        b.inline(squared);
        let var = if norm.unbiased {
            let n = b.shape(x).dims().last().copied().unwrap_or(1);
            let sum = b.reduce_last("squared_sum", Reduction::Sum, squared)?;
            b.inline(sum);
            b.affine("var", Affine::Div(n as f64 - 1.0), sum)?
        } else {
            b.reduce_last("var", Reduction::Mean, squared)?
        };
        let root = norm.root(b, var)?;
        let output = norm.finish(b, centred, root)?;
        b.set_kind(ScopeKind::LayerNorm { input: x, mean, var, output });
        Ok(output)
    })
}

/// `RMSNorm` over the last axis (Zhang and Sennrich 2019): `mean_square`, the root, `normalised`, `out`.
///
/// # Errors
/// Where shapes do not fit.
pub fn rms_norm(b: &mut Builder, name: &str, x: NodeId, norm: &Norm) -> Built {
    b.scope(name, ScopeKind::Group, |b| {
        let squared = b.unary("squared", Unary::Square, x)?;
        b.inline(squared);
        let mean_square = b.reduce_last("mean_square", Reduction::Mean, squared)?;
        let root = norm.root(b, mean_square)?;
        let output = norm.finish(b, x, root)?;
        b.set_kind(ScopeKind::RmsNorm { input: x, mean_square, output });
        Ok(output)
    })
}

/// GELU, exact: x·½·(1 + erf(x/√2)) (Hendrycks and Gimpel 2016).
///
/// # Errors
/// Where x holds no numbers.
pub fn gelu(b: &mut Builder, name: &str, x: NodeId) -> Built {
    activation(b, name, x, |b| {
        let scaled = b.affine("scaled", Affine::Div(std::f64::consts::SQRT_2), x)?;
        b.inline(scaled);
        let erf = b.unary("erf", Unary::Erf, scaled)?;
        half_times_one_plus(b, x, erf)
    })
}

/// GELU, tanh approximation: x·½·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
///
/// # Errors
/// Where x holds no numbers.
pub fn gelu_tanh(b: &mut Builder, name: &str, x: NodeId) -> Built {
    activation(b, name, x, |b| {
        let square = b.unary("square", Unary::Square, x)?;
        let cube = b.binary("cube", Binary::Mul, square, x)?;
        let scaled = b.affine("cube_scaled", Affine::Mul(0.044_715), cube)?;
        let inner = b.binary("inner", Binary::Add, x, scaled)?;
        let root = (2.0 / std::f64::consts::PI).sqrt();
        let inner_scaled = b.affine("inner_scaled", Affine::Mul(root), inner)?;
        for id in [square, cube, scaled, inner, inner_scaled] {
            b.inline(id);
        }
        let tanh = b.unary("tanh", Unary::Tanh, inner_scaled)?;
        half_times_one_plus(b, x, tanh)
    })
}

fn half_times_one_plus(b: &mut Builder, x: NodeId, f: NodeId) -> Built {
    let half = b.affine("half", Affine::Mul(0.5), x)?;
    let one_plus = b.affine("one_plus", Affine::Add(1.0), f)?;
    b.inline(half);
    b.inline(one_plus);
    b.binary("", Binary::Mul, half, one_plus)
}

/// `SiLU`: x·sigmoid(x).
///
/// # Errors
/// Where x holds no numbers.
pub fn silu(b: &mut Builder, name: &str, x: NodeId) -> Built {
    activation(b, name, x, |b| {
        let s = b.unary("sigmoid", Unary::Sigmoid, x)?;
        b.binary("", Binary::Mul, x, s)
    })
}

/// max(0, x)² (So et al. 2021).
///
/// # Errors
/// Where x holds no numbers.
pub fn relu_squared(b: &mut Builder, name: &str, x: NodeId) -> Built {
    activation(b, name, x, |b| {
        let relu = b.unary("relu", Unary::Relu, x)?;
        b.inline(relu);
        b.unary("", Unary::Square, relu)
    })
}

/// x·sigmoid(1.702·x), the sigmoid approximation of GELU (Hendrycks and Gimpel 2016).
///
/// # Errors
/// Where x holds no numbers.
pub fn quick_gelu(b: &mut Builder, name: &str, x: NodeId) -> Built {
    activation(b, name, x, |b| {
        let scaled = b.affine("scaled", Affine::Mul(1.702), x)?;
        b.inline(scaled);
        let s = b.unary("sigmoid", Unary::Sigmoid, scaled)?;
        b.binary("", Binary::Mul, x, s)
    })
}

/// c·tanh(x/c): keeps x between −c and c smoothly.
///
/// # Errors
/// Where x holds no numbers.
pub fn softcap(b: &mut Builder, name: &str, x: NodeId, c: f64) -> Built {
    b.scope("", ScopeKind::Group, |b| {
        let ratio = b.affine(format!("{name}_ratio"), Affine::Div(c), x)?;
        let tanh = b.unary(format!("{name}_tanh"), Unary::Tanh, ratio)?;
        b.inline(ratio);
        b.inline(tanh);
        b.affine(name, Affine::Mul(c), tanh)
    })
}

/// min(x, c), as −max(−x, −c).
///
/// # Errors
/// Where x holds no numbers.
pub fn at_most(b: &mut Builder, name: &str, x: NodeId, c: f64) -> Built {
    let ones = vec![(Axis::One, 1); b.shape(x).rank()];
    let limit = b.constant(format!("{name}_limit"), Shape::named(&ones), Constant::Filled(-c))?;
    let minus = b.unary(format!("{name}_minus"), Unary::Neg, x)?;
    let larger = b.binary(format!("{name}_larger"), Binary::Max, minus, limit)?;
    for id in [limit, minus, larger] {
        b.inline(id);
    }
    b.unary(name, Unary::Neg, larger)
}

/// x between −c and c: max(−c, min(x, c)).
///
/// # Errors
/// Where x holds no numbers.
pub fn clamp(b: &mut Builder, name: &str, x: NodeId, c: f64) -> Built {
    let below = at_most(b, &format!("{name}_below"), x, c)?;
    let ones = vec![(Axis::One, 1); b.shape(x).rank()];
    let limit = b.constant(format!("{name}_limit"), Shape::named(&ones), Constant::Filled(-c))?;
    b.inline(below);
    b.inline(limit);
    b.binary(name, Binary::Max, below, limit)
}

/// An activation that is one primitive.
///
/// # Errors
/// Where x holds no numbers.
pub fn simple_activation(b: &mut Builder, name: &str, f: Unary, x: NodeId) -> Built {
    activation(b, name, x, |b| b.unary("", f, x))
}

/// elu(x) + 1 = max(0, x) + exp(−max(0, −x)), the feature map of linear attention (Katharopoulos et al. 2020).
///
/// # Errors
/// Where x holds no numbers.
pub fn elu_plus_one(b: &mut Builder, name: &str, x: NodeId) -> Built {
    activation(b, name, x, |b| {
        let positive = b.unary("positive", Unary::Relu, x)?;
        let minus = b.unary("minus", Unary::Neg, x)?;
        let below = b.unary("below", Unary::Relu, minus)?;
        let negative = b.unary("negative", Unary::Neg, below)?;
        let exp = b.unary("exp", Unary::Exp, negative)?;
        for id in [positive, minus, below, negative, exp] {
            b.inline(id);
        }
        b.binary("", Binary::Add, positive, exp)
    })
}

fn activation(b: &mut Builder, name: &str, x: NodeId, build: impl FnOnce(&mut Builder) -> Built) -> Built {
    b.scope(name, ScopeKind::Group, |b| {
        let output = build(b)?;
        b.set_kind(ScopeKind::Activation { input: x, output });
        Ok(output)
    })
}

/// `x · mask/(1 − p)`: the seeded mask is the recorded tensor `name_mask`.
///
/// # Errors
/// Where the paths are taken.
pub fn dropout(b: &mut Builder, name: &str, x: NodeId, rate: f64, seed: u64, stream: u64) -> Built {
    let kind = RandomKind::Dropout { rate };
    let shape = b.shape(x);
    let mask = b.random(format!("{name}_mask"), shape, Random { seed, stream, kind })?;
    b.binary(name, Binary::Mul, x, mask)
}

/// ln of the softmax's result `probs` at `ids`, found without it: the shifted score − ln Σ. Finite where the
/// probability itself is too small for its type.
fn log_softmax_at(b: &mut Builder, probs: NodeId, ids: NodeId) -> Built {
    let parts = |b: &Builder, id: NodeId| b.program().node(id).inputs.clone();
    let (exp, sum) = (parts(b, probs)[0], parts(b, probs)[1]);
    let shifted = parts(b, exp)[0];
    let score = b.gather("target_shifted", Pick::Along, shifted, ids)?;
    let log_sum = b.unary("log_sum", Unary::Ln, sum)?;
    let log = b.binary("log_softmax", Binary::Sub, score, log_sum)?;
    for id in [score, log_sum, log] {
        b.inline(id);
    }
    Ok(log)
}

/// Mean cross-entropy of `probs [batch, token, vocab]`, the softmax of `logits`, at `labels`; a negative label is
/// ignored. Nodes `labels`, `target_probs`, `per_position` `[batch, token]`, `sum`, `mean` (a scalar).
///
/// # Errors
/// Where the number of labels is not batch·token, or none counts.
pub fn cross_entropy(b: &mut Builder, name: &str, logits: NodeId, probs: NodeId, labels: &[i64]) -> Built {
    b.scope(name, ScopeKind::Group, |b| {
        let s = b.shape(logits);
        let rows = Shape::named(&[(Axis::Batch, s.dims()[0]), (Axis::Token, s.dims()[1])]);
        let column = Shape::named(&[(Axis::Batch, s.dims()[0]), (Axis::Token, s.dims()[1]), (Axis::One, 1)]);
        let counted = labels.iter().filter(|&&l| l >= 0).count();
        let given = b.constant("labels", rows, Constant::Int(labels.into()))?;
        let ids = if counted == labels.len() {
            b.reshape("label_column", given, column)?
        } else {
            let safe: Arc<[i64]> = labels.iter().map(|&l| l.max(0)).collect();
            b.constant("label_column", column, Constant::Int(safe))?
        };
        let share: Arc<[f64]> = labels.iter().map(|&l| if l >= 0 { 1.0 / counted as f64 } else { 0.0 }).collect();
        let share = b.constant("share", column, Constant::Float(share))?;
        let picked = b.gather("target_probs_column", Pick::Along, probs, ids)?;
        b.inline(picked);
        let picked = b.reshape("target_probs", picked, rows)?;
        let spare = log_softmax_at(b, probs, ids)?;
        let spare = b.reshape("log_softmax_row", spare, rows)?;
        b.inline(spare);
        let log = b.binary("log", Binary::LnOr, picked, spare)?;
        b.inline(log);
        let all = if counted == labels.len() {
            b.unary("per_position", Unary::Neg, log)?
        } else {
            let nll = b.unary("negative_log", Unary::Neg, log)?;
            b.inline(nll);
            let keep: Arc<[f64]> = labels.iter().map(|&l| f64::from(u8::from(l >= 0))).collect();
            let keep = b.constant("counted", rows, Constant::Float(keep))?;
            b.binary("per_position", Binary::MulOrZero, nll, keep)?
        };
        let flat = b.reshape("per_position_flat", all, Shape::named(&[(Axis::Token, labels.len())]))?;
        b.inline(flat);
        let sum = b.reduce("sum_row", Reduction::Sum, 0, flat)?;
        b.inline(sum);
        let sum = b.reshape("sum", sum, Shape::SCALAR)?;
        b.inline(sum);
        let output = b.affine("mean", Affine::Div(counted as f64), sum)?;
        b.set_kind(ScopeKind::CrossEntropy { logits, probs, labels: ids, share, output });
        Ok(output)
    })
}

/// Greedy choice: `argmax` `[batch, token]` and its probability `predicted_probs`.
///
/// # Errors
/// Where the paths are taken.
pub fn predict(b: &mut Builder, probs: NodeId) -> Result<(NodeId, NodeId), BuildError> {
    let argmax = b.apply("argmax", super::Op::ArgMax, &[probs])?;
    let s = b.shape(argmax);
    let dims: Vec<_> = s.iter().chain([(Axis::One, 1)]).collect();
    let column = b.reshape("argmax_column", argmax, Shape::named(&dims))?;
    b.inline(column);
    let picked = b.gather("predicted_probs_column", Pick::Along, probs, column)?;
    b.inline(picked);
    Ok((argmax, b.reshape("predicted_probs", picked, s)?))
}

/// Token ids `[batch, token]`, a constant of the program.
///
/// # Errors
/// Where the path is taken or the rows are not equally long.
pub fn token_ids(b: &mut Builder, name: &str, batch: usize, ids: &[i64]) -> Built {
    let shape = Shape::named(&[(Axis::Batch, batch), (Axis::Token, ids.len() / batch.max(1))]);
    b.constant(name, shape, Constant::Int(ids.into()))
}
