//! The closed set of primitives. Everything a run computes is one of these; composites are built from them.
//!
//! Evaluation, shape, derivation, gradient and cost are each one exhaustive `match` over [`Op`], so that a new
//! primitive which forgets one of them does not compile.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::exact;
use crate::tensor::{DType, Precision, Real};

/// A primitive operation. Operands are the node's inputs, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// A value that is given, not computed.
    Leaf(Leaf),
    /// Product of the last two axes; leading axes are equal or 1 (broadcast). `[…, m, k] · […, k, n] → […, m, n]`.
    MatMul {
        /// The first operand is stored `[…, k, m]`.
        transpose_a: bool,
        /// The second operand is stored `[…, n, k]`.
        transpose_b: bool,
    },
    /// One number in, one out.
    Unary(Unary),
    /// Two numbers in, one out; axes are equal or 1 (broadcast), ranks are equal.
    Binary(Binary),
    /// With a constant.
    Affine(Affine),
    /// Along one axis, which stays with length 1. A left fold from the first element.
    Reduce {
        /// What is folded.
        kind: Reduction,
        /// Along which axis.
        axis: usize,
    },
    /// Running left fold along the last axis.
    CumSum,
    /// The same elements under another shape.
    Reshape,
    /// Axes in another order: axis `i` of the result is axis `order[i]` of the operand.
    Permute(Order),
    /// `len` elements of `axis` from `start`.
    Slice {
        /// Along which axis.
        axis: usize,
        /// First element.
        start: usize,
        /// How many.
        len: usize,
    },
    /// Operands one after the other along `axis`.
    Concat {
        /// Along which axis.
        axis: usize,
    },
    /// `(table [n, …], ids [i…]) → [i…, …]`: rows of a table. With [`Pick::Along`]: `(x […, n], ids […, k]) → […, k]`.
    Gather(Pick),
    /// Adjoint of [`Op::Gather`]: `(base, ids, source)`, `base` with `source` added at `ids`, in the order of `ids`.
    ScatterAdd(Pick),
    /// `(x, mask)`: where the mask is true, `fill`; the mask broadcasts over x.
    MaskFill {
        /// What a masked element becomes.
        #[serde(with = "exact")]
        fill: f64,
    },
    /// Position of the largest element of the last axis, which is dropped; the first of equals.
    ArgMax,
    /// Positions of the last axis in descending order of value; equals in ascending order of position.
    ArgSort,
    /// `(cumulative […, n], drawn […, 1]) → […]`: the first position whose cumulative value exceeds the drawn number.
    Sample,
}

/// What a gather picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pick {
    /// Whole rows of the first axis.
    Rows,
    /// Single elements along the last axis.
    Along,
}

/// An order of axes.
pub type Order = smallvec::SmallVec<[u8; 6]>;

/// A given value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Leaf {
    /// A parameter of the model; the node's path is its name.
    Parameter,
    /// An input of the run: ids, labels, activations fed from outside; bound by the node's path.
    Input(DType),
    /// What another program computed, read from a recording.
    Recorded(DType),
    /// A constant of the program.
    Constant(Constant),
    /// A mask, with the reason of every masked cell.
    Mask(Arc<Mask>),
    /// Random numbers, the same on every machine.
    Random(Random),
}

/// A constant tensor; numbers are rounded to the run's type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Constant {
    /// Every element is this.
    Filled(#[serde(with = "exact")] f64),
    /// Numbers, row-major.
    Float(#[serde(with = "exact::list")] Arc<[f64]>),
    /// Integers, row-major.
    Int(Arc<[i64]>),
}

/// Seeded random numbers: number `i` depends on seed, stream and `i` only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Random {
    /// Seed.
    pub seed: u64,
    /// Which sequence of this seed.
    pub stream: u64,
    /// What is made of them.
    pub kind: RandomKind,
}

/// What is made of uniform numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum RandomKind {
    /// Nothing: uniform in [0, 1).
    Uniform,
    /// A dropout mask: 1/(1−p) where kept, 0 where dropped.
    Dropout {
        /// p, from 0 to below 1.
        rate: f64,
    },
}

/// A mask and why each cell is masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    /// One entry a cell, row-major in the node's shape: 0 where visible, else a union of [`reason`] bits.
    pub reasons: Vec<u8>,
}

/// Reasons why a cell is masked; bits, since several may hold.
pub mod reason {
    /// The key stands after the query.
    pub const CAUSAL: u8 = 1;
    /// The key is padding.
    pub const PADDING: u8 = 2;
    /// The key is outside the window.
    pub const WINDOW: u8 = 4;
    /// The scenario's own mask hides it.
    pub const GIVEN: u8 = 8;
}

/// One number in, one out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unary {
    /// −x.
    Neg,
    /// eˣ.
    Exp,
    /// ln x.
    Ln,
    /// √x.
    Sqrt,
    /// x².
    Square,
    /// |x|.
    Abs,
    /// tanh x.
    Tanh,
    /// erf x.
    Erf,
    /// max(0, x).
    Relu,
    /// 1 where x > 0, else 0 (the gate of ReLU's gradient).
    Step,
    /// 1/(1 + e⁻ˣ).
    Sigmoid,
    /// sin x.
    Sin,
    /// cos x.
    Cos,
    /// What a softmax subtracts from a row whose maximum is x: 0 while exp is safe, else x (0 for −∞).
    SoftmaxShift,
    /// x, and 0 for −∞: what a softmax that always subtracts takes from a row whose every score is masked.
    MaskedSoftmaxShift,
}

/// Two numbers in, one out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binary {
    /// a + b.
    Add,
    /// a − b.
    Sub,
    /// a × b.
    Mul,
    /// a / b.
    Div,
    /// a / b, and 0 where b is 0: the weights of a row whose every score is masked.
    DivOrZero,
    /// a × b, and 0 where b is 0, whatever a is: the loss of a position whose label does not count.
    MulOrZero,
    /// ln a, and b where a is below the smallest normal number: b is the logarithm found without a.
    LnOr,
    /// The larger; NaN where one is NaN.
    Max,
}

/// With a constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Affine {
    /// x + c.
    Add(#[serde(with = "exact")] f64),
    /// x × c.
    Mul(#[serde(with = "exact")] f64),
    /// x / c.
    Div(#[serde(with = "exact")] f64),
}

/// What a reduction folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// x₀ + x₁ + …
    Sum,
    /// The sum, then divided once by the count.
    Mean,
    /// The largest; NaN where one is NaN.
    Max,
}

impl Unary {
    /// The function. Evaluation and derivation both call this one.
    #[inline]
    pub fn eval<T: Real>(self, x: T) -> T {
        match self {
            Unary::Neg => -x,
            Unary::Exp => x.exp(),
            Unary::Ln => x.ln(),
            Unary::Sqrt => x.sqrt(),
            Unary::Square => x * x,
            Unary::Abs => x.abs(),
            Unary::Tanh => x.tanh(),
            Unary::Erf => x.erf(),
            // Written so that NaN stays NaN and −0 becomes 0, as max(0, x) reads.
            Unary::Relu => {
                if x <= T::ZERO {
                    T::ZERO
                } else {
                    x
                }
            }
            Unary::Step => {
                if x > T::ZERO {
                    T::ONE
                } else {
                    T::ZERO
                }
            }
            Unary::Sigmoid => T::ONE / (T::ONE + (-x).exp()),
            Unary::Sin => x.sin(),
            Unary::Cos => x.cos(),
            Unary::SoftmaxShift => {
                if x == T::NEG_INFINITY || x.abs() <= T::EXP_SAFE {
                    T::ZERO
                } else {
                    x
                }
            }
            Unary::MaskedSoftmaxShift => {
                if x == T::NEG_INFINITY {
                    T::ZERO
                } else {
                    x
                }
            }
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Unary::Neg => "neg",
            Unary::Exp => "exp",
            Unary::Ln => "ln",
            Unary::Sqrt => "sqrt",
            Unary::Square => "square",
            Unary::Abs => "abs",
            Unary::Tanh => "tanh",
            Unary::Erf => "erf",
            Unary::Relu => "relu",
            Unary::Step => "step",
            Unary::Sigmoid => "sigmoid",
            Unary::Sin => "sin",
            Unary::Cos => "cos",
            Unary::SoftmaxShift => "softmax_shift",
            Unary::MaskedSoftmaxShift => "masked_softmax_shift",
        }
    }
}

impl Binary {
    /// The function. Evaluation and derivation both call this one.
    #[inline]
    pub fn eval<T: Real>(self, a: T, b: T) -> T {
        match self {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            Binary::DivOrZero => {
                if b == T::ZERO {
                    T::ZERO
                } else {
                    a / b
                }
            }
            Binary::MulOrZero => {
                if b == T::ZERO {
                    T::ZERO
                } else {
                    a * b
                }
            }
            Binary::LnOr => {
                if a < T::MIN_POSITIVE {
                    b
                } else {
                    a.ln()
                }
            }
            Binary::Max => Reduction::larger(a, b),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Div => "div",
            Binary::DivOrZero => "div_or_zero",
            Binary::MulOrZero => "mul_or_zero",
            Binary::LnOr => "ln_or",
            Binary::Max => "max_of",
        }
    }
}

impl Affine {
    /// The function. Evaluation and derivation both call this one. The constant is rounded to `T` first.
    #[inline]
    pub fn eval<T: Real>(self, x: T) -> T {
        match self {
            Affine::Add(c) => x + T::from_f64(c),
            Affine::Mul(c) => x * T::from_f64(c),
            Affine::Div(c) => x / T::from_f64(c),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Affine::Add(_) => "add_constant",
            Affine::Mul(_) => "mul_constant",
            Affine::Div(_) => "div_constant",
        }
    }
}

impl Reduction {
    /// The larger of two; NaN where one is NaN, the first of equals.
    #[inline]
    pub fn larger<T: Real>(a: T, b: T) -> T {
        if a.is_nan() || a >= b { a } else { b }
    }

    /// The fold over `x` of `n` elements; 0 where there are none.
    #[inline]
    pub fn eval<T: Real>(self, n: usize, mut x: impl Iterator<Item = T>) -> T {
        let Some(first) = x.next() else {
            return T::ZERO;
        };
        match self {
            Reduction::Sum => x.fold(first, |acc, x| acc + x),
            Reduction::Max => x.fold(first, Self::larger),
            Reduction::Mean => x.fold(first, |acc, x| acc + x) / T::from_f64(n as f64),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Max => "max",
        }
    }
}

impl Random {
    /// What the bits of all elements have in common.
    fn key(&self) -> u64 {
        mix(mix(self.seed) ^ self.stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Element `i` of the leaf. f32 keeps 24 bits so that a uniform number stays below 1; dropout compares 32
    /// bits with p in f64, whatever the run's type, so that f32 and f64 runs drop the same elements.
    #[inline]
    pub fn eval<T: Real>(&self, i: u64) -> T {
        let bits = mix(self.key() ^ i);
        match self.kind {
            RandomKind::Uniform => match T::PRECISION {
                Precision::F64 => T::from_f64(unit(bits)),
                Precision::F32 => T::from_f64((bits >> 40) as f64 / (1u64 << 24) as f64),
            },
            RandomKind::Dropout { rate } if ((bits >> 32) as f64) < rate * 4_294_967_296.0 => T::ZERO,
            RandomKind::Dropout { rate } => T::from_f64(1.0 / (1.0 - rate)),
        }
    }

    /// The elements as uniform numbers in [0, 1) of 53 bits.
    pub fn uniform(&self) -> impl Fn(usize) -> f64 + Copy + use<> {
        let key = self.key();
        move |i| unit(mix(key ^ i as u64))
    }
}

/// The upper 53 bits as a number in [0, 1).
#[inline]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014).
#[inline]
fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Op {
    /// Its name, for lists and conditions.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Leaf(Leaf::Parameter) => "parameter",
            Op::Leaf(Leaf::Input(_)) => "input",
            Op::Leaf(Leaf::Recorded(_)) => "recorded",
            Op::Leaf(Leaf::Constant(_)) => "constant",
            Op::Leaf(Leaf::Mask(_)) => "mask",
            Op::Leaf(Leaf::Random(_)) => "random",
            Op::MatMul { .. } => "matmul",
            Op::Unary(u) => u.name(),
            Op::Binary(b) => b.name(),
            Op::Affine(a) => a.name(),
            Op::Reduce { kind, .. } => kind.name(),
            Op::CumSum => "cumsum",
            Op::Reshape => "reshape",
            Op::Permute(_) => "permute",
            Op::Slice { .. } => "slice",
            Op::Concat { .. } => "concat",
            Op::Gather(_) => "gather",
            Op::ScatterAdd(_) => "scatter_add",
            Op::MaskFill { .. } => "mask_fill",
            Op::ArgMax => "argmax",
            Op::ArgSort => "argsort",
            Op::Sample => "sample",
        }
    }

    /// Whether it only moves elements, without arithmetic.
    pub fn moves_only(&self) -> bool {
        matches!(self, Op::Reshape | Op::Permute(_) | Op::Slice { .. } | Op::Concat { .. } | Op::Gather(_))
    }
}
