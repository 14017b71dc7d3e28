//! A program as plain data that can be written to a file and read back with distrust.
//!
//! Long constants and masks are not part of it: they are [`Blob`]s by node, which a file keeps in a denser form.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Builder, Constant, Inputs, Leaf, Mask, Name, NodeId, Op, Program, Scope, ScopeId, ScopeKind};
use crate::tensor::{Axis, DType, MAX_RANK, Shape};

/// Elements of a constant or mask that are written in the program itself.
const MAX_INLINE: usize = 64;

/// The numbers of a long constant or mask.
#[derive(Clone, Debug, PartialEq)]
pub enum Blob {
    /// Of a constant.
    Float(Arc<[f64]>),
    /// Of a constant.
    Int(Arc<[i64]>),
    /// Of a mask: reasons, one a cell.
    Reasons(Vec<u8>),
}

/// A node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeDoc {
    path: String,
    op: Op,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<u32>,
    shape: Vec<(Axis, usize)>,
    dtype: DType,
    scope: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inline: bool,
}

/// A scope.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeDoc {
    path: String,
    kind: ScopeKind,
    parent: Option<u32>,
    nodes: (u32, u32),
}

/// A program without its long constants.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramDoc {
    nodes: Vec<NodeDoc>,
    scopes: Vec<ScopeDoc>,
}

impl ProgramDoc {
    /// The document of a program, and its long constants by node.
    pub fn of(program: &Program) -> (Self, Vec<(NodeId, Blob)>) {
        let mut blobs = Vec::new();
        let nodes = program.nodes().map(|(id, node)| NodeDoc {
            path: node.path.to_string(),
            op: match long(&node.op) {
                Some((bare, blob)) => {
                    blobs.push((id, blob));
                    bare
                }
                None => node.op.clone(),
            },
            inputs: node.inputs.iter().map(|i| i.0).collect(),
            shape: node.shape.iter().collect(),
            dtype: node.dtype,
            scope: node.scope.0,
            inline: node.inline,
        });
        let nodes = nodes.collect();
        let scopes = program.scopes().map(|(_, s)| ScopeDoc {
            path: s.path.to_string(),
            kind: s.kind.clone(),
            parent: s.parent.map(|p| p.0),
            nodes: (s.nodes.start, s.nodes.end),
        });
        (Self { nodes, scopes: scopes.collect() }, blobs)
    }

    /// The program. `blob` gives the long constants.
    ///
    /// # Errors
    /// The first node or scope that does not fit: an operand that comes later, a shape that the operation does not
    /// give, a path that is taken, a constant that is missing.
    pub fn program(self, blob: &dyn Fn(&str) -> Option<Blob>) -> Result<Program, String> {
        let (count, scopes) = (self.nodes.len() as u32, self.scopes.len() as u32);
        let mut b = Builder::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let wrong = |why: &str| format!("node {i} ({}): {why}", node.path);
            if node.inputs.iter().any(|input| *input as usize >= i) || node.scope >= scopes.max(1) {
                return Err(wrong("refers to what is not before it"));
            }
            if node.shape.len() > MAX_RANK {
                return Err(wrong("has too many axes"));
            }
            let shape = Shape::named(&node.shape);
            let op = restored(&node.op, &shape, &|| blob(&node.path)).ok_or_else(|| wrong("lacks its constant"))?;
            let inputs: Inputs = node.inputs.iter().map(|input| NodeId(*input)).collect();
            let id = b.push_at(&node.path, op, inputs, Some((shape, node.dtype))).map_err(|e| e.to_string())?;
            let built = b.program().node(id);
            if !built.shape.same_dims(&shape) || built.dtype != node.dtype {
                return Err(wrong(&format!("is {} and not {shape}", built.shape)));
            }
            b.name_axes(id, shape.axes());
            if node.inline {
                b.inline(id);
            }
        }
        let mut program = b.finish();
        for (node, doc) in program.nodes.iter_mut().zip(&self.nodes) {
            node.scope = ScopeId(doc.scope);
        }
        let mut list = Vec::with_capacity(self.scopes.len());
        for (i, scope) in self.scopes.into_iter().enumerate() {
            let inside = scope.nodes.0 <= scope.nodes.1 && scope.nodes.1 <= count;
            let before = scope.parent.is_none_or(|p| (p as usize) < i) && (i > 0) == scope.parent.is_some();
            if !inside || !before || scope.kind.nodes().iter().any(|n| n.0 >= count) {
                return Err(format!("scope {i} ({}) refers to what is not there", scope.path));
            }
            list.push(Scope {
                name: Name::parse(&scope.path),
                path: scope.path.into(),
                kind: scope.kind,
                parent: scope.parent.map(ScopeId),
                nodes: scope.nodes.0..scope.nodes.1,
            });
        }
        if list.is_empty() {
            return Err("no scopes".to_owned());
        }
        program.scopes = list;
        Ok(program)
    }
}

impl ScopeKind {
    /// The nodes that it names.
    fn nodes(&self) -> Vec<NodeId> {
        match *self {
            ScopeKind::Softmax { input, output } | ScopeKind::Activation { input, output } => vec![input, output],
            ScopeKind::LayerNorm { input, mean, var, output } => vec![input, mean, var, output],
            ScopeKind::RmsNorm { input, mean_square, output } => vec![input, mean_square, output],
            ScopeKind::CrossEntropy { logits, probs, labels, share, output } => {
                vec![logits, probs, labels, share, output]
            }
            _ => Vec::new(),
        }
    }
}

/// A leaf with many numbers, without and with only them.
fn long(op: &Op) -> Option<(Op, Blob)> {
    let bare = |leaf| Op::Leaf(leaf);
    match op {
        Op::Leaf(Leaf::Constant(Constant::Float(x))) if x.len() > MAX_INLINE => {
            Some((bare(Leaf::Constant(Constant::Float(Arc::new([])))), Blob::Float(Arc::clone(x))))
        }
        Op::Leaf(Leaf::Constant(Constant::Int(x))) if x.len() > MAX_INLINE => {
            Some((bare(Leaf::Constant(Constant::Int(Arc::new([])))), Blob::Int(Arc::clone(x))))
        }
        Op::Leaf(Leaf::Mask(m)) if m.reasons.len() > MAX_INLINE => {
            Some((bare(Leaf::Mask(Arc::new(Mask { reasons: Vec::new() }))), Blob::Reasons(m.reasons.clone())))
        }
        _ => None,
    }
}

/// An operation with its numbers; `None` where they are missing.
fn restored(op: &Op, shape: &Shape, blob: &dyn Fn() -> Option<Blob>) -> Option<Op> {
    let filled = shape.checked_len() != Some(0);
    Some(match op {
        Op::Leaf(Leaf::Constant(Constant::Float(x))) if x.is_empty() && filled => match blob()? {
            Blob::Float(x) => Op::Leaf(Leaf::Constant(Constant::Float(x))),
            _ => return None,
        },
        Op::Leaf(Leaf::Constant(Constant::Int(x))) if x.is_empty() && filled => match blob()? {
            Blob::Int(x) => Op::Leaf(Leaf::Constant(Constant::Int(x))),
            _ => return None,
        },
        Op::Leaf(Leaf::Mask(m)) if m.reasons.is_empty() && filled => match blob()? {
            Blob::Reasons(reasons) => Op::Leaf(Leaf::Mask(Arc::new(Mask { reasons }))),
            _ => return None,
        },
        other => other.clone(),
    })
}
