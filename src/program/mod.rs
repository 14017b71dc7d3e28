//! A run as data: a graph of primitives in single assignment, shapes known, no float touched yet.
//!
//! [`Builder`] appends nodes and checks shapes while doing so; [`composite`] builds softmax, norms, attention parts
//! and the like from primitives inside named scopes; [`Program`] is what comes out. Nodes are in the order of
//! evaluation: an operand always comes before the node that reads it.

pub mod autodiff;
mod build;
pub mod composite;
mod cost;
mod exact;
mod infer;
mod local;
pub mod name;
mod op;
pub mod optimiser;
mod parameter;
mod part;
mod path;
mod role;
mod serial;
mod stack;
mod step;
mod waves;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::tensor::{DType, Shape};

pub use autodiff::{Gradients, backward};
pub use build::{BuildError, Builder};
pub use cost::{Cost, cost, tile_traffic};
pub use local::Local;
pub use name::{Block, Name, Pass, Role, Side, Site, Stack, Step, Within};
pub use op::{Affine, Binary, Constant, Leaf, Mask, Op, Order, Pick, Random, RandomKind, Reduction, Unary, reason};
use parameter::Declared;
pub use parameter::{ParamRole, ParamSpec};
pub use part::{OnStream, Part};
pub use serial::{Blob, ProgramDoc};

/// A node of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Its position.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// A scope of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(pub u32);

/// Operands of a node.
pub type Inputs = SmallVec<[NodeId; 3]>;

/// One primitive, with what is known of its result.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// From what.
    pub inputs: Inputs,
    /// Shape of the result, axes named.
    pub shape: Shape,
    /// Kind of element of the result.
    pub dtype: DType,
    /// What it is.
    pub name: Name,
    /// The print of its name, stable across runs: the key for compare and export.
    pub path: Arc<str>,
    /// The innermost scope it is in.
    pub scope: ScopeId,
    /// A written derivation puts this node's arithmetic in the line of its reader instead of its value.
    pub inline: bool,
}

/// What a scope is; the composites tell their parts, so that a gradient or a fact can be said of the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScopeKind {
    /// A grouping without meaning of its own.
    Group,
    /// Token embedding and positions of one side.
    Embedding,
    /// The encoder or the decoder.
    Stack,
    /// One layer.
    Layer,
    /// An attention sublayer.
    Attention,
    /// A piece of attention that fits fast memory: what it computes inside is never written to main memory.
    Tile,
    /// A feed-forward sublayer.
    FeedForward,
    /// `y = x·Wᵀ + b`.
    Linear,
    /// A softmax over the last axis.
    Softmax {
        /// The scores.
        input: NodeId,
        /// The weights.
        output: NodeId,
    },
    /// `LayerNorm` over the last axis.
    LayerNorm {
        /// x.
        input: NodeId,
        /// μ, `[…, 1]`.
        mean: NodeId,
        /// σ², `[…, 1]`.
        var: NodeId,
        /// The result.
        output: NodeId,
    },
    /// `RMSNorm` over the last axis.
    RmsNorm {
        /// x.
        input: NodeId,
        /// Mean of x², `[…, 1]`.
        mean_square: NodeId,
        /// The result.
        output: NodeId,
    },
    /// An activation function.
    Activation {
        /// x.
        input: NodeId,
        /// The result.
        output: NodeId,
    },
    /// Mean cross-entropy of a softmax.
    CrossEntropy {
        /// Logits, `[batch, token, vocab]`.
        logits: NodeId,
        /// Their softmax.
        probs: NodeId,
        /// Labels with ignored ones replaced by 0, `[batch, token, 1]`.
        labels: NodeId,
        /// 1/count where a label counts, 0 where it is ignored, `[batch, token, 1]`.
        share: NodeId,
        /// The mean loss.
        output: NodeId,
    },
    /// A residual sum.
    Residual,
    /// The output head.
    Output,
    /// One call of the decoder in generation.
    Generation,
    /// The backward pass.
    Backward,
    /// An optimiser's update.
    Update,
}

/// A named group of nodes.
#[derive(Clone, Debug)]
pub struct Scope {
    /// What it is called; the names of its nodes go on from it.
    pub name: Name,
    /// The print of its name.
    pub path: Arc<str>,
    /// What it is.
    pub kind: ScopeKind,
    /// The scope around it.
    pub parent: Option<ScopeId>,
    /// Its nodes, those of inner scopes included.
    pub nodes: Range<u32>,
}

/// A run as data.
#[derive(Clone, Debug, Default)]
pub struct Program {
    nodes: Vec<Node>,
    scopes: Vec<Scope>,
    by_path: HashMap<Arc<str>, NodeId>,
    users: Vec<SmallVec<[NodeId; 4]>>,
    declared: Vec<Declared>,
}

impl Program {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// All nodes, in order of evaluation.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(i as u32), n))
    }

    /// The node at `path`.
    pub fn find(&self, path: &str) -> Option<NodeId> {
        self.by_path.get(path).copied()
    }

    /// The node called `name`.
    pub fn named(&self, name: &Name) -> Option<NodeId> {
        self.find(&name.to_string())
    }

    /// Nodes that read `id`.
    pub fn users(&self, id: NodeId) -> &[NodeId] {
        &self.users[id.index()]
    }

    /// A scope.
    pub fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0 as usize]
    }

    /// All scopes, outer before inner.
    pub fn scopes(&self) -> impl DoubleEndedIterator<Item = (ScopeId, &Scope)> + ExactSizeIterator {
        self.scopes.iter().enumerate().map(|(i, s)| (ScopeId(i as u32), s))
    }

    /// The scope at `path`, the outermost where several share it.
    pub fn find_scope(&self, path: &str) -> Option<ScopeId> {
        self.scopes().find(|(_, s)| &*s.path == path).map(|(id, _)| id)
    }

    /// The innermost scope around `id` whose kind fits.
    pub fn enclosing(&self, id: NodeId, fits: impl Fn(&ScopeKind) -> bool) -> Option<ScopeId> {
        let mut at = Some(self.node(id).scope);
        while let Some(scope) = at {
            if fits(&self.scope(scope).kind) {
                return Some(scope);
            }
            at = self.scope(scope).parent;
        }
        None
    }

    /// The same program with some leaves replaced, by leaves of the same shape and kind.
    #[must_use]
    pub fn with_leaves(&self, replace: impl Fn(&Leaf) -> Option<Leaf>) -> Self {
        let mut next = self.clone();
        for node in &mut next.nodes {
            if let Op::Leaf(leaf) = &node.op
                && let Some(other) = replace(leaf)
            {
                node.op = Op::Leaf(other);
            }
        }
        next
    }

    /// This program with the constants, masks and random numbers of `other`, where `other` is built alike up to its
    /// end (one batch of a shape and the next): the same paths, shapes, operands and other operations.
    pub fn with_constants_of(&self, other: &Self) -> Option<Self> {
        if other.len() > self.len() {
            return None;
        }
        let given = |op: &Op| matches!(op, Op::Leaf(Leaf::Constant(_) | Leaf::Mask(_) | Leaf::Random(_)));
        let alike = self.nodes.iter().zip(&other.nodes).all(|(a, b)| {
            a.path == b.path
                && a.shape.same_dims(&b.shape)
                && a.dtype == b.dtype
                && a.inputs == b.inputs
                && (a.op == b.op || given(&a.op) && given(&b.op))
        });
        if !alike {
            return None;
        }
        let mut next = self.clone();
        for (node, theirs) in next.nodes.iter_mut().zip(&other.nodes) {
            if given(&theirs.op) {
                node.op = theirs.op.clone();
            }
        }
        Some(next)
    }

    /// Paths nearest to `path`, for "did you mean".
    pub fn similar_paths(&self, path: &str, most: usize) -> Vec<&str> {
        let wanted = Name::parse(path);
        let mut found: Vec<_> = self
            .nodes
            .iter()
            .map(|n| (&*n.path, common_prefix(&n.path, path), n.name.last() == wanted.last()))
            .filter(|(_, prefix, tail)| *prefix > 3 || *tail)
            .collect();
        found.sort_by_key(|&(p, prefix, tail)| (std::cmp::Reverse(prefix + usize::from(tail) * 8), p.len()));
        found.into_iter().take(most).map(|f| f.0).collect()
    }
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}
