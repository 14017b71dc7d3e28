//! Reverse-mode differentiation: the backward pass as more nodes of the same program.
//!
//! [`backward`] walks the forward nodes from the loss to the leaves and appends, for each node whose value the loss
//! depends on, a node `grad.<path>` with the gradient of the loss with respect to it. A tensor that several nodes
//! read gets one contribution a reader, `grad.<path>.from.<reader>`, summed in the order of the readers. The rules
//! are one exhaustive `match` over [`Op`] in `vjp.rs`; softmax and cross-entropy have the shorter
//! formulas that a user writes by hand. Being ordinary nodes, gradients have derivations, exports and gradients of
//! their own.

mod vjp;

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::{Affine, Binary, BuildError, Builder, Constant, Leaf, NodeId, Op, Program, ScopeKind, Unary};
use crate::tensor::{Axis, DType, MAX_RANK, Shape};

type Built = Result<NodeId, BuildError>;

/// Where the gradients of a program stand.
#[derive(Clone, Debug)]
pub struct Gradients {
    /// The loss.
    pub loss: NodeId,
    of: Vec<Option<NodeId>>,
}

impl Gradients {
    /// The gradient of the loss with respect to the forward node `id`; `None` where the loss does not depend on it,
    /// or a formula passes over it (the inside of a softmax).
    pub fn of(&self, id: NodeId) -> Option<NodeId> {
        self.of.get(id.index()).copied().flatten()
    }

    /// Every forward node that has a gradient, and its gradient, in forward order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        self.of.iter().enumerate().filter_map(|(i, g)| g.map(|g| (NodeId(i as u32), g)))
    }

    /// Parameters and their gradients, in forward order.
    pub fn parameters<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = (NodeId, NodeId)> + 'a {
        self.iter().filter(|&(id, _)| matches!(program.node(id).op, Op::Leaf(Leaf::Parameter)))
    }

    /// The gradients of a program that has a backward pass, found by their paths.
    pub fn find(program: &Program, loss: &str) -> Option<Self> {
        let loss = program.find(loss)?;
        program.find(&format!("grad.{}", program.node(loss).path))?;
        let of = program
            .nodes()
            .map(|(id, node)| {
                let grad = program.find(&format!("grad.{}", node.path))?;
                (id <= loss && program.node(grad).shape.same_dims(&node.shape)).then_some(grad)
            })
            .collect();
        Some(Self { loss, of })
    }
}

/// Through what a reader passes its gradient on to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    /// Operand `i` of a primitive.
    Operand(usize),
    /// From the weights of a softmax straight to its scores.
    Softmax,
    /// From a mean cross-entropy straight to the logits.
    CrossEntropy { probs: NodeId, labels: NodeId, share: NodeId },
}

/// Appends the gradient of `loss` with respect to every number that it depends on and that itself depends on a
/// parameter or an input of the run. Nodes are in reverse order of the forward nodes.
///
/// # Errors
/// Where `loss` is not one number, or a path `grad.…` is taken.
pub fn backward(b: &mut Builder, loss: NodeId) -> Result<Gradients, BuildError> {
    let program = b.program();
    let node = program.node(loss);
    if node.dtype != DType::Float || node.shape.len() != 1 {
        return Err(BuildError {
            path: format!("grad.{}", node.path),
            op: "gradient",
            operands: format!("{} {}", node.path, node.shape),
            why: "only one number has a gradient".into(),
            too_many: None,
        });
    }
    let readers = plan(program, loss);
    let reserved = readers
        .iter()
        .enumerate()
        .filter(|(i, r)| !r.is_empty() || *i == loss.index())
        .map(|(i, _)| program.node(NodeId(i as u32)).path.to_string())
        .collect();
    b.scope("grad", ScopeKind::Backward, |b| {
        let mut pass = Pass { b, of: vec![None; readers.len()], reserved, loss };
        for (i, readers) in readers.iter().enumerate().rev() {
            let x = NodeId(i as u32);
            if x == loss {
                pass.seed(x)?;
            } else if !readers.is_empty() {
                pass.gradient(x, readers)?;
            }
        }
        Ok(Gradients { loss, of: pass.of })
    })
}

/// For each forward node up to the loss, who passes it a gradient, in order of evaluation.
fn plan(program: &Program, loss: NodeId) -> Vec<SmallVec<[(NodeId, Edge); 2]>> {
    let n = loss.index() + 1;
    let mut active = vec![false; n];
    for (id, node) in program.nodes().take(n) {
        active[id.index()] = node.dtype == DType::Float
            && match &node.op {
                Op::Leaf(Leaf::Parameter | Leaf::Input(_) | Leaf::Recorded(_)) => true,
                Op::Unary(Unary::Step | Unary::SoftmaxShift | Unary::MaskedSoftmaxShift) => false,
                _ => node.inputs.iter().any(|i| active[i.index()]),
            };
    }
    let mut shortcuts: HashMap<NodeId, (NodeId, Edge)> = HashMap::new();
    let mut softmaxes = HashSet::new();
    for (_, scope) in program.scopes() {
        if let ScopeKind::Softmax { input, output } = scope.kind {
            softmaxes.insert((input, output));
            shortcuts.insert(output, (input, Edge::Softmax));
        }
    }
    for (_, scope) in program.scopes() {
        if let ScopeKind::CrossEntropy { logits, probs, labels, share, output } = scope.kind
            && softmaxes.contains(&(logits, probs))
        {
            let edge = Edge::CrossEntropy { probs, labels, share };
            shortcuts.insert(output, (logits, edge));
        }
    }
    let mut readers: Vec<SmallVec<[(NodeId, Edge); 2]>> = vec![SmallVec::new(); n];
    for i in (0..n).rev() {
        let reader = NodeId(i as u32);
        if !active[i] || (reader != loss && readers[i].is_empty()) {
            continue;
        }
        // Collected from the last reader to the first, operands of one reader likewise.
        readers[i].reverse();
        if let Some(&(x, edge)) = shortcuts.get(&reader) {
            if active[x.index()] {
                readers[x.index()].push((reader, edge));
            }
            continue;
        }
        for (slot, x) in program.node(reader).inputs.iter().enumerate().rev() {
            if active[x.index()] {
                readers[x.index()].push((reader, Edge::Operand(slot)));
            }
        }
    }
    readers
}

/// The pass under way. Names are relative to the scope `grad`.
struct Pass<'b> {
    b: &'b mut Builder,
    of: Vec<Option<NodeId>>,
    /// Paths of forward nodes that get a gradient: no auxiliary node may take one of their names.
    reserved: HashSet<String>,
    loss: NodeId,
}

impl Pass<'_> {
    fn path_of(&self, id: NodeId) -> String {
        self.b.program().node(id).path.to_string()
    }

    /// The gradient node of a reader that has been passed.
    fn grad(&self, reader: NodeId) -> NodeId {
        self.of[reader.index()].expect("a reader's gradient stands before its operands'")
    }

    /// An unused name that begins with `name.what`.
    fn aux(&self, name: &str, what: &str) -> String {
        let taken = |n: &str| self.reserved.contains(n) || self.b.program().find(&self.b.path(n)).is_some();
        let plain = format!("{name}.{what}");
        if !taken(&plain) {
            return plain;
        }
        let mut i = 2;
        loop {
            let numbered = format!("{plain}_{i}");
            if !taken(&numbered) {
                return numbered;
            }
            i += 1;
        }
    }

    fn filled(&mut self, name: &str, shape: Shape, value: f64) -> Built {
        self.b.constant(name, shape, Constant::Filled(value))
    }

    /// A constant in the line of its reader.
    fn filled_inline(&mut self, name: &str, what: &str, shape: Shape, value: f64) -> Built {
        let at = self.aux(name, what);
        let id = self.filled(&at, shape, value)?;
        Ok(self.b.inline(id))
    }

    fn seed(&mut self, loss: NodeId) -> Result<(), BuildError> {
        let (name, shape) = (self.path_of(loss), self.b.shape(loss));
        self.of[loss.index()] = Some(self.filled(&name, shape, 1.0)?);
        Ok(())
    }

    /// The gradient of `x`: what its readers pass on, summed.
    fn gradient(&mut self, x: NodeId, readers: &[(NodeId, Edge)]) -> Result<(), BuildError> {
        let name = self.path_of(x);
        let shape = self.b.shape(x);
        let sole = readers.len() == 1;
        let mut total: Option<NodeId> = None;
        for (i, &(reader, edge)) in readers.iter().enumerate() {
            let from = if sole { name.clone() } else { self.aux(&name, &format!("from.{}", self.path_of(reader))) };
            let part = self.contribution(&from, x, reader, edge)?;
            total = Some(match total {
                None => part,
                Some(sum) => {
                    let last = i + 1 == readers.len();
                    let full = self.broadcast_len(sum, part) == shape.len();
                    let at = if last && full { name.clone() } else { self.aux(&name, "sum") };
                    let id = self.b.binary(&at, Binary::Add, sum, part)?;
                    if at != name {
                        self.b.inline(id);
                    }
                    id
                }
            });
        }
        let total = total.expect("there is a reader");
        let id = self.settle(&name, total, shape)?;
        self.b.name_axes(id, shape.axes());
        let forward = self.b.program().node(x);
        if forward.inline && elementwise(&self.b.program().node(id).op) {
            self.b.inline(id);
        }
        self.of[x.index()] = Some(id);
        Ok(())
    }

    /// What `reader` passes on to `x`, by a node called `name` where arithmetic is needed. Axes may be of length 1
    /// where the gradient is the same along them.
    fn contribution(&mut self, name: &str, x: NodeId, reader: NodeId, edge: Edge) -> Built {
        let before = self.b.program().len();
        let id = match edge {
            Edge::Operand(slot) => self.vjp(name, reader, slot)?,
            Edge::Softmax => self.softmax(name, reader)?,
            Edge::CrossEntropy { probs, labels, share } => self.cross_entropy(name, reader, probs, labels, share)?,
        };
        let shape = self.b.shape(x);
        if id.index() >= before {
            self.name_axes(id, shape);
            if self.reserved.contains(name) {
                return Ok(id);
            }
            if elementwise(&self.b.program().node(id).op) {
                self.b.inline(id);
            }
        }
        Ok(id)
    }

    /// `id` as the node `name` of the given shape: itself, copied, or repeated along axes of length 1.
    fn settle(&mut self, name: &str, id: NodeId, shape: Shape) -> Built {
        if *self.b.program().node(id).path == self.b.path(name) {
            return Ok(id);
        }
        if self.b.shape(id).same_dims(&shape) {
            return self.b.reshape(name, id, shape);
        }
        let ones = self.filled_inline(name, "ones", shape, 1.0)?;
        self.b.binary(name, Binary::Mul, id, ones)
    }

    /// Names the axes of `id` as those of `shape`, where they are as long.
    fn name_axes(&mut self, id: NodeId, shape: Shape) {
        let mut own = self.b.shape(id);
        if own.rank() != shape.rank() {
            return;
        }
        for (i, (axis, n)) in shape.iter().enumerate() {
            if own.dims()[i] == n {
                own = own.with_axis(i, axis);
            }
        }
        self.b.name_axes(id, own.axes());
    }

    fn broadcast_len(&self, a: NodeId, b: NodeId) -> usize {
        let (a, b) = (self.b.shape(a), self.b.shape(b));
        a.dims().iter().zip(b.dims()).map(|(a, b)| *a.max(b)).product()
    }

    /// d = A ⊙ (dA − Σ dA·A), the row of the softmax's Jacobian written by hand.
    fn softmax(&mut self, name: &str, output: NodeId) -> Built {
        let dy = self.grad(output);
        let product = self.aux(name, "product");
        let product = self.b.binary(&product, Binary::Mul, dy, output)?;
        self.b.inline(product);
        let sum = self.aux(name, "row_sum");
        let sum = self.b.reduce_last(&sum, super::Reduction::Sum, product)?;
        let difference = self.aux(name, "difference");
        let difference = self.b.binary(&difference, Binary::Sub, dy, sum)?;
        self.b.inline(difference);
        self.b.binary(name, Binary::Mul, output, difference)
    }

    /// (P − one-hot)·share, times the gradient of the loss where that is not 1.
    fn cross_entropy(&mut self, name: &str, output: NodeId, probs: NodeId, labels: NodeId, share: NodeId) -> Built {
        let shape = self.b.shape(labels);
        let minus = self.filled_inline(name, "minus_one", shape, -1.0)?;
        let difference = self.aux(name, "probs_minus_one_hot");
        let difference = self.b.scatter_add(&difference, super::Pick::Along, probs, labels, minus)?;
        self.b.inline(difference);
        if output == self.loss {
            return self.b.binary(name, Binary::Mul, difference, share);
        }
        let own = self.aux(name, "own");
        let own = self.b.binary(&own, Binary::Mul, difference, share)?;
        self.b.inline(own);
        let dy = self.grad(output);
        let dy = self.raised(name, dy, self.b.shape(own).rank())?;
        self.b.binary(name, Binary::Mul, own, dy)
    }

    /// `x` with leading axes of length 1.
    fn raised(&mut self, name: &str, x: NodeId, rank: usize) -> Built {
        let shape = self.b.shape(x);
        if shape.rank() >= rank {
            return Ok(x);
        }
        let mut dims: SmallVec<[(Axis, usize); MAX_RANK]> = SmallVec::from_elem((Axis::One, 1), rank - shape.rank());
        dims.extend(shape.iter());
        let raised = self.aux(name, "raised");
        let id = self.b.reshape(&raised, x, Shape::named(&dims))?;
        Ok(self.b.inline(id))
    }

    /// A node in the line of its reader.
    fn binary_inline(&mut self, name: &str, what: &str, f: Binary, a: NodeId, b: NodeId) -> Built {
        let at = self.aux(name, what);
        let id = self.b.binary(&at, f, a, b)?;
        Ok(self.b.inline(id))
    }

    /// A node in the line of its reader.
    fn unary_inline(&mut self, name: &str, what: &str, f: Unary, x: NodeId) -> Built {
        let at = self.aux(name, what);
        let id = self.b.unary(&at, f, x)?;
        Ok(self.b.inline(id))
    }

    /// A node in the line of its reader.
    fn affine_inline(&mut self, name: &str, what: &str, f: Affine, x: NodeId) -> Built {
        let at = self.aux(name, what);
        let id = self.b.affine(&at, f, x)?;
        Ok(self.b.inline(id))
    }
}

/// Whether a cell of the result reads one cell of each operand, so that its arithmetic fits in a reader's line.
fn elementwise(op: &Op) -> bool {
    matches!(op, Op::Unary(_) | Op::Binary(_) | Op::Affine(_)) || op.moves_only()
}
