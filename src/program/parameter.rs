//! Parameters as the blocks that read them declare them: what each is for, and how it is made up.

use serde::{Deserialize, Serialize};

use super::{NodeId, Program};
use crate::tensor::Shape;

/// What a parameter is for; initialisers ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParamRole {
    /// A matrix `[out, in]`, y = x·Wᵀ.
    Weight {
        /// Its columns.
        fan_in: usize,
        /// Its rows.
        fan_out: usize,
    },
    /// Added to a product; `fan_in` is that of the matrix it goes with.
    Bias {
        /// Columns of its matrix.
        fan_in: usize,
    },
    /// Factor of a norm.
    Gamma,
    /// Offset of a norm.
    Beta,
    /// A token table `[vocab, d_model]`.
    Embedding,
    /// A learned position table `[position, d_model]`.
    Position,
    /// A token-type table `[type, d_model]`.
    TokenType,
}

impl ParamRole {
    /// A matrix `[…, out, in]`.
    pub fn weight(shape: Shape) -> Self {
        let mut last = shape.dims().iter().rev().copied();
        let fan_in = last.next().unwrap_or(1);
        Self::Weight { fan_in, fan_out: last.next().unwrap_or(1) }
    }
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamSpec {
    /// Its path, such as `encoder.0.self_attn.q.weight`.
    pub path: String,
    /// Its shape: `[out, in]` for matrices.
    pub shape: Shape,
    /// What it is for.
    pub role: ParamRole,
    /// Heads whose rows follow one another in it (`q`, `k`, `v`); 1 where it is not split.
    pub heads: usize,
}

/// What a block says of a parameter beyond the node that it becomes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub node: NodeId,
    pub role: ParamRole,
    pub heads: usize,
}

impl Program {
    /// The parameters, in the order in which the blocks declare them. A program that was read from a file has nodes for
    /// them and no declarations.
    pub fn parameters(&self) -> impl Iterator<Item = ParamSpec> {
        self.declared.iter().map(|d| {
            let node = self.node(d.node);
            ParamSpec { path: node.path.to_string(), shape: node.shape, role: d.role, heads: d.heads }
        })
    }
}
