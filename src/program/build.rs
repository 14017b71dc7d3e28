//! Appending nodes, with shapes checked before anything runs.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::infer::infer;
use super::{
    Affine, Binary, Constant, Declared, Inputs, Leaf, Local, Mask, Name, Node, NodeId, Op, Order, ParamRole, Pick,
    Program, Random, Reduction, Role, Scope, ScopeId, ScopeKind, Unary,
};
use crate::tensor::{Axis, DType, MAX_RANK, Shape};

/// No tensor of a program has more elements than this (2⁴⁰ bytes of f64 would not be a debugging session).
const MAX_ELEMENTS: usize = 1 << 36;

/// A node that cannot be built. Names the node, the operands and their shapes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {op} cannot take {operands}: {why}")]
pub struct BuildError {
    /// Path of the node.
    pub path: String,
    /// Name of the operation.
    pub op: &'static str,
    /// Operands: path and shape of each.
    pub operands: String,
    /// What does not fit.
    pub why: String,
    /// Elements of the result, where there are too many.
    pub too_many: Option<u128>,
}

type Built = Result<NodeId, BuildError>;

/// Builds a program, or goes on building one.
#[derive(Debug, Default)]
pub struct Builder {
    program: Program,
    stack: Vec<ScopeId>,
    scope: Name,
}

/// An open scope.
#[derive(Debug)]
#[must_use]
pub struct Entered {
    outer: Name,
}

impl Builder {
    /// An empty program.
    pub fn new() -> Self {
        let mut b = Self::default();
        b.program.scopes.push(Scope {
            name: Name::default(),
            path: "".into(),
            kind: ScopeKind::Group,
            parent: None,
            nodes: 0..0,
        });
        b.stack.push(ScopeId(0));
        b
    }

    /// Goes on with a program: what is appended may read what is there.
    pub fn resume(program: Program) -> Self {
        if program.scopes.is_empty() {
            return Self::new();
        }
        Self { program, stack: vec![ScopeId(0)], scope: Name::default() }
    }

    /// The program.
    pub fn finish(mut self) -> Program {
        self.program.scopes[0].nodes = 0..self.program.nodes.len() as u32;
        self.program
    }

    /// What has been built so far.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The name that `local` has in the current scope.
    pub fn name(&self, local: impl Into<Local>) -> Name {
        self.scope.with(&local.into())
    }

    /// The path that `local` has in the current scope.
    pub fn path(&self, local: impl Into<Local>) -> String {
        self.name(local).to_string()
    }

    /// Builds inside a scope. [`Role::Whole`](super::name::Role::Whole) groups without changing paths.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn scope<R>(
        &mut self,
        name: impl Into<Local>,
        kind: ScopeKind,
        build: impl FnOnce(&mut Self) -> Result<R, BuildError>,
    ) -> Result<R, BuildError> {
        let scope = self.enter(name, kind);
        let result = build(self);
        self.leave(scope);
        result
    }

    /// Opens a scope that [`Builder::leave`] closes; [`Builder::scope`] does both.
    pub fn enter(&mut self, name: impl Into<Local>, kind: ScopeKind) -> Entered {
        let id = ScopeId(self.program.scopes.len() as u32);
        let name = self.name(name);
        let start = self.program.nodes.len() as u32;
        let parent = self.stack.last().copied();
        let path = name.to_string().into();
        self.program.scopes.push(Scope { name: name.clone(), path, kind, parent, nodes: start..start });
        self.stack.push(id);
        Entered { outer: std::mem::replace(&mut self.scope, name) }
    }

    /// Closes the scope opened last.
    pub fn leave(&mut self, scope: Entered) {
        self.scope = scope.outer;
        if let Some(id) = self.stack.pop() {
            self.program.scopes[id.0 as usize].nodes.end = self.program.nodes.len() as u32;
        }
    }

    /// Says what the current scope is, once its parts are known.
    pub fn set_kind(&mut self, kind: ScopeKind) {
        if let Some(id) = self.stack.last() {
            self.program.scopes[id.0 as usize].kind = kind;
        }
    }

    /// Shape of a node.
    pub fn shape(&self, id: NodeId) -> Shape {
        self.program.node(id).shape
    }

    /// Puts the node's arithmetic into the written line of its reader.
    pub fn inline(&mut self, id: NodeId) -> NodeId {
        self.program.nodes[id.index()].inline = true;
        id
    }

    /// Names the axes of a node's result.
    pub fn name_axes(&mut self, id: NodeId, axes: &[Axis]) -> NodeId {
        let node = &mut self.program.nodes[id.index()];
        node.shape = node.shape.with_axes(axes);
        id
    }

    fn fail(&self, name: &Name, op: &Op, inputs: &[NodeId], why: impl Into<String>) -> BuildError {
        let operands = inputs
            .iter()
            .map(|&i| {
                let n = self.program.node(i);
                format!("{} {}", n.path, n.shape)
            })
            .collect::<Vec<_>>()
            .join(" and ");
        BuildError { path: name.to_string(), op: op.name(), operands, why: why.into(), too_many: None }
    }

    /// Appends a node after inferring the shape of its result.
    ///
    /// # Errors
    /// Where operands do not fit, or the path is taken.
    pub fn push(&mut self, name: impl Into<Local>, op: Op, inputs: Inputs, leaf: Option<(Shape, DType)>) -> Built {
        self.append(self.name(name), op, inputs, leaf)
    }

    /// As [`push`](Self::push), at a path that is written out and need not be one of ours.
    ///
    /// # Errors
    /// Where operands do not fit, or the path is taken.
    pub fn push_at(&mut self, path: &str, op: Op, inputs: Inputs, leaf: Option<(Shape, DType)>) -> Built {
        self.append_at(Name::parse(path), path.into(), op, inputs, leaf)
    }

    fn append(&mut self, name: Name, op: Op, inputs: Inputs, leaf: Option<(Shape, DType)>) -> Built {
        let path = name.to_string().into();
        self.append_at(name, path, op, inputs, leaf)
    }

    fn append_at(&mut self, name: Name, path: Arc<str>, op: Op, inputs: Inputs, leaf: Option<(Shape, DType)>) -> Built {
        let operands: SmallVec<[(Shape, DType); 3]> =
            inputs.iter().map(|&i| (self.program.node(i).shape, self.program.node(i).dtype)).collect();
        let (shape, dtype) = infer(&op, &operands, leaf).map_err(|why| self.fail(&name, &op, &inputs, why))?;
        if shape.checked_len().is_none_or(|n| n > MAX_ELEMENTS) {
            let elements = shape.dims().iter().fold(1u128, |n, d| n.saturating_mul(*d as u128));
            let error = self.fail(&name, &op, &inputs, format!("{shape} is too large"));
            return Err(BuildError { too_many: Some(elements), ..error });
        }
        let id = NodeId(self.program.nodes.len() as u32);
        match self.program.by_path.entry(Arc::clone(&path)) {
            Entry::Occupied(_) => return Err(self.fail(&name, &op, &inputs, "the path is taken")),
            Entry::Vacant(slot) => slot.insert(id),
        };
        for (i, &input) in inputs.iter().enumerate() {
            if !inputs[..i].contains(&input) {
                self.program.users[input.index()].push(id);
            }
        }
        let scope = *self.stack.last().unwrap_or(&ScopeId(0));
        self.program.nodes.push(Node { op, inputs, shape, dtype, name, path, scope, inline: false });
        self.program.users.push(SmallVec::new());
        Ok(id)
    }

    /// A matrix of weights `[…, out, in]`; its name is absolute, so that shared parameters are one node.
    ///
    /// # Errors
    /// Where it is there with another shape.
    pub fn parameter(&mut self, name: impl Into<Local>, shape: Shape) -> Built {
        self.declare(name, shape, ParamRole::weight(shape), 1)
    }

    /// A parameter of any kind, of `heads` heads whose rows follow one another in it; its name is absolute.
    ///
    /// # Errors
    /// Where it is there with another shape.
    pub fn declare(&mut self, name: impl Into<Local>, shape: Shape, role: ParamRole, heads: usize) -> Built {
        let name = Name::default().with(&name.into());
        let op = Op::Leaf(Leaf::Parameter);
        if let Some(id) = self.program.find(&name.to_string()) {
            let have = self.shape(id);
            if have.same_dims(&shape) {
                return Ok(id);
            }
            return Err(self.fail(&name, &op, &[id], format!("wanted {shape}")));
        }
        let node = self.append(name, op, smallvec![], Some((shape, DType::Float)))?;
        self.program.declared.push(Declared { node, role, heads });
        Ok(node)
    }

    /// An input of the run.
    ///
    /// # Errors
    /// Where the path is taken.
    pub fn input(&mut self, name: impl Into<Local>, dtype: DType, shape: Shape) -> Built {
        self.push(name, Op::Leaf(Leaf::Input(dtype)), smallvec![], Some((shape, dtype)))
    }

    /// A value that another program computed.
    ///
    /// # Errors
    /// Where the path is taken.
    pub fn recorded(&mut self, path: &str, dtype: DType, shape: Shape) -> Built {
        self.push_at(path, Op::Leaf(Leaf::Recorded(dtype)), smallvec![], Some((shape, dtype)))
    }

    /// Constant numbers.
    ///
    /// # Errors
    /// Where the path is taken or the length differs from the shape's.
    pub fn constant(&mut self, name: impl Into<Local>, shape: Shape, values: Constant) -> Built {
        let dtype = match values {
            Constant::Int(_) => DType::Int,
            _ => DType::Float,
        };
        self.push(name, Op::Leaf(Leaf::Constant(values)), smallvec![], Some((shape, dtype)))
    }

    /// A mask.
    ///
    /// # Errors
    /// Where the path is taken or the length differs from the shape's.
    pub fn mask(&mut self, name: impl Into<Local>, shape: Shape, reasons: Vec<u8>) -> Built {
        let leaf = Leaf::Mask(Arc::new(Mask { reasons }));
        self.push(name, Op::Leaf(leaf), smallvec![], Some((shape, DType::Bool)))
    }

    /// Random numbers.
    ///
    /// # Errors
    /// Where the path is taken.
    pub fn random(&mut self, name: impl Into<Local>, shape: Shape, random: Random) -> Built {
        self.push(name, Op::Leaf(Leaf::Random(random)), smallvec![], Some((shape, DType::Float)))
    }

    /// `a · b`.
    ///
    /// # Errors
    /// Where shapes do not fit.
    pub fn matmul(&mut self, name: impl Into<Local>, a: NodeId, b: NodeId) -> Built {
        self.push(name, Op::MatMul { transpose_a: false, transpose_b: false }, smallvec![a, b], None)
    }

    /// `a · bᵀ`.
    ///
    /// # Errors
    /// Where shapes do not fit.
    pub fn matmul_bt(&mut self, name: impl Into<Local>, a: NodeId, b: NodeId) -> Built {
        self.push(name, Op::MatMul { transpose_a: false, transpose_b: true }, smallvec![a, b], None)
    }

    /// `aᵀ · b`.
    ///
    /// # Errors
    /// Where shapes do not fit.
    pub fn matmul_at(&mut self, name: impl Into<Local>, a: NodeId, b: NodeId) -> Built {
        self.push(name, Op::MatMul { transpose_a: true, transpose_b: false }, smallvec![a, b], None)
    }

    /// A unary function.
    ///
    /// # Errors
    /// Where x holds no numbers.
    pub fn unary(&mut self, name: impl Into<Local>, f: Unary, x: NodeId) -> Built {
        self.push(name, Op::Unary(f), smallvec![x], None)
    }

    /// A binary function. An operand of lower rank is seen with leading axes of length 1.
    ///
    /// # Errors
    /// Where shapes do not broadcast.
    pub fn binary(&mut self, name: impl Into<Local>, f: Binary, a: NodeId, b: NodeId) -> Built {
        let name = self.name(name);
        let (ra, rb) = (self.shape(a).rank(), self.shape(b).rank());
        let (a, b) = match ra.cmp(&rb) {
            std::cmp::Ordering::Equal => (a, b),
            std::cmp::Ordering::Less => (self.raise(&name, a, rb)?, b),
            std::cmp::Ordering::Greater => (a, self.raise(&name, b, ra)?),
        };
        self.push(name, Op::Binary(f), smallvec![a, b], None)
    }

    /// `x` with leading axes of length 1, as an unnoticed reshape.
    fn raise(&mut self, name: &Name, x: NodeId, rank: usize) -> Built {
        let shape = self.shape(x);
        let mut dims: SmallVec<[(Axis, usize); MAX_RANK]> = smallvec![(Axis::One, 1); rank - shape.rank()];
        dims.extend(shape.iter());
        let row = match self.program.node(x).name.last() {
            Role::Whole => Role::parse("x_row"),
            local => local.suffixed("_row"),
        };
        let id = self.reshape(name.then(row), x, Shape::named(&dims))?;
        Ok(self.inline(id))
    }

    /// With a constant.
    ///
    /// # Errors
    /// Where x holds no numbers.
    pub fn affine(&mut self, name: impl Into<Local>, f: Affine, x: NodeId) -> Built {
        self.push(name, Op::Affine(f), smallvec![x], None)
    }

    /// Along `axis`, which stays with length 1.
    ///
    /// # Errors
    /// Where there is no such axis.
    pub fn reduce(&mut self, name: impl Into<Local>, kind: Reduction, axis: usize, x: NodeId) -> Built {
        self.push(name, Op::Reduce { kind, axis }, smallvec![x], None)
    }

    /// Along the last axis, which stays with length 1.
    ///
    /// # Errors
    /// For a scalar.
    pub fn reduce_last(&mut self, name: impl Into<Local>, kind: Reduction, x: NodeId) -> Built {
        self.reduce(name, kind, self.shape(x).rank().wrapping_sub(1), x)
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    /// Where the lengths differ.
    pub fn reshape(&mut self, name: impl Into<Local>, x: NodeId, shape: Shape) -> Built {
        let dtype = self.program.node(x).dtype;
        self.push(name, Op::Reshape, smallvec![x], Some((shape, dtype)))
    }

    /// Axes in another order.
    ///
    /// # Errors
    /// Where `order` is no order of the axes.
    pub fn permute(&mut self, name: impl Into<Local>, x: NodeId, order: &[u8]) -> Built {
        self.push(name, Op::Permute(Order::from_slice(order)), smallvec![x], None)
    }

    /// Part of an axis.
    ///
    /// # Errors
    /// Where it reaches past the end.
    pub fn slice(&mut self, name: impl Into<Local>, x: NodeId, axis: usize, start: usize, len: usize) -> Built {
        self.push(name, Op::Slice { axis, start, len }, smallvec![x], None)
    }

    /// One after the other along `axis`.
    ///
    /// # Errors
    /// Where the other axes differ.
    pub fn concat(&mut self, name: impl Into<Local>, axis: usize, parts: &[NodeId]) -> Built {
        self.push(name, Op::Concat { axis }, Inputs::from_slice(parts), None)
    }

    /// Rows of `table` at `ids`, or elements along the last axis.
    ///
    /// # Errors
    /// Where shapes do not fit.
    pub fn gather(&mut self, name: impl Into<Local>, pick: Pick, table: NodeId, ids: NodeId) -> Built {
        self.push(name, Op::Gather(pick), smallvec![table, ids], None)
    }

    /// `base` with `source` added at `ids`.
    ///
    /// # Errors
    /// Where shapes do not fit.
    pub fn scatter_add(
        &mut self,
        name: impl Into<Local>,
        pick: Pick,
        base: NodeId,
        ids: NodeId,
        source: NodeId,
    ) -> Built {
        self.push(name, Op::ScatterAdd(pick), smallvec![base, ids, source], None)
    }

    /// `fill` where `mask` is true.
    ///
    /// # Errors
    /// Where the mask does not broadcast over x.
    pub fn mask_fill(&mut self, name: impl Into<Local>, x: NodeId, mask: NodeId, fill: f64) -> Built {
        self.push(name, Op::MaskFill { fill }, smallvec![x, mask], None)
    }

    /// Any other primitive of one or more operands.
    ///
    /// # Errors
    /// Where shapes do not fit.
    pub fn apply(&mut self, name: impl Into<Local>, op: Op, inputs: &[NodeId]) -> Built {
        self.push(name, op, Inputs::from_slice(inputs), None)
    }
}
