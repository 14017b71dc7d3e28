//! Appending nodes, with shapes checked before anything runs.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::{
    Affine, Binary, Constant, Inputs, Leaf, Local, Mask, Name, Node, NodeId, Op, Order, Pick, Program, Random,
    Reduction, Role, Scope, ScopeId, ScopeKind, Unary,
};
use crate::tensor::{Axis, DType, MAX_RANK, Shape};

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
        BuildError { path: name.to_string(), op: op.name(), operands, why: why.into() }
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
            return Err(self.fail(&name, &op, &inputs, format!("{shape} is too large")));
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

    /// A parameter; its name is absolute, so that shared parameters are one node.
    ///
    /// # Errors
    /// Where it is there with another shape.
    pub fn parameter(&mut self, name: impl Into<Local>, shape: Shape) -> Built {
        let name = Name::default().with(&name.into());
        let op = Op::Leaf(Leaf::Parameter);
        if let Some(id) = self.program.find(&name.to_string()) {
            let have = self.shape(id);
            if have.same_dims(&shape) {
                return Ok(id);
            }
            return Err(self.fail(&name, &op, &[id], format!("wanted {shape}")));
        }
        self.append(name, op, smallvec![], Some((shape, DType::Float)))
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

/// No tensor of a program has more elements than this (2⁴⁰ bytes of f64 would not be a debugging session).
const MAX_ELEMENTS: usize = 1 << 36;

/// Shape and kind of the result of `op` on operands of the given shapes.
fn infer(op: &Op, x: &[(Shape, DType)], leaf: Option<(Shape, DType)>) -> Result<(Shape, DType), String> {
    let arity = |n: usize| {
        if x.len() == n { Ok(()) } else { Err(format!("takes {n} operands, got {}", x.len())) }
    };
    let float = |i: usize| match x[i].1 {
        DType::Float => Ok(x[i].0),
        other => Err(format!("operand {} must hold numbers, not {other:?}", i + 1)),
    };
    let int = |i: usize| match x[i].1 {
        DType::Int => Ok(x[i].0),
        other => Err(format!("operand {} must hold integers, not {other:?}", i + 1)),
    };
    match op {
        Op::Leaf(l) => {
            let (shape, dtype) = leaf.ok_or("a leaf needs a shape")?;
            let have = match l {
                Leaf::Constant(Constant::Float(v)) => v.len(),
                Leaf::Constant(Constant::Int(v)) => v.len(),
                Leaf::Mask(m) => m.reasons.len(),
                _ => shape.checked_len().unwrap_or(usize::MAX),
            };
            if shape.checked_len().is_some_and(|n| n != have) {
                return Err(format!("{have} values do not fill {shape}"));
            }
            Ok((shape, dtype))
        }
        Op::MatMul { transpose_a, transpose_b } => {
            arity(2)?;
            matmul_shape(&float(0)?, &float(1)?, *transpose_a, *transpose_b).map(|s| (s, DType::Float))
        }
        Op::Unary(_) | Op::Affine(_) => {
            arity(1)?;
            Ok((float(0)?, DType::Float))
        }
        Op::Binary(_) => {
            arity(2)?;
            broadcast(&float(0)?, &float(1)?).map(|s| (s, DType::Float))
        }
        Op::Reduce { axis, .. } => {
            arity(1)?;
            let s = float(0)?;
            if *axis >= s.rank() {
                return Err(format!("no axis {axis} in {s}"));
            }
            Ok((s.with_dim(*axis, 1).with_axis(*axis, Axis::One), DType::Float))
        }
        Op::CumSum => {
            arity(1)?;
            let s = float(0)?;
            if s.rank() == 0 { Err("a scalar has no last axis".into()) } else { Ok((s, DType::Float)) }
        }
        Op::Reshape => {
            arity(1)?;
            let (shape, _) = leaf.ok_or("a reshape needs a shape")?;
            if shape.checked_len() != Some(x[0].0.len()) {
                return Err(format!("{} elements do not fill {shape}", x[0].0.len()));
            }
            Ok((shape, x[0].1))
        }
        Op::Permute(order) => {
            arity(1)?;
            let s = x[0].0;
            let mut seen = [false; MAX_RANK];
            let fits = order.len() == s.rank()
                && order.iter().all(|&o| (o as usize) < s.rank() && !std::mem::replace(&mut seen[o as usize], true));
            if !fits {
                return Err(format!("{order:?} is no order of the axes of {s}"));
            }
            let dims: SmallVec<[(Axis, usize); MAX_RANK]> =
                order.iter().map(|&o| (s.axes()[o as usize], s.dims()[o as usize])).collect();
            Ok((Shape::named(&dims), x[0].1))
        }
        Op::Slice { axis, start, len } => {
            arity(1)?;
            let s = x[0].0;
            if *axis >= s.rank() || start.checked_add(*len).is_none_or(|end| end > s.dims()[*axis]) {
                return Err(format!("{start}..{} is outside axis {axis} of {s}", start.saturating_add(*len)));
            }
            Ok((s.with_dim(*axis, *len), x[0].1))
        }
        Op::Concat { axis } => concat_shape(x, *axis),
        Op::Gather(pick) => {
            arity(2)?;
            let (s, ids) = (x[0].0, int(1)?);
            gather_shape(&s, &ids, *pick).map(|shape| (shape, x[0].1))
        }
        Op::ScatterAdd(pick) => {
            arity(3)?;
            let (base, ids, source) = (float(0)?, int(1)?, float(2)?);
            let want = gather_shape(&base, &ids, *pick)?;
            if want.same_dims(&source) { Ok((base, DType::Float)) } else { Err(format!("the source must be {want}")) }
        }
        Op::MaskFill { .. } => {
            arity(2)?;
            let s = float(0)?;
            if x[1].1 != DType::Bool {
                return Err("operand 2 must be a mask".into());
            }
            match broadcast(&s, &x[1].0) {
                Ok(out) if out.same_dims(&s) => Ok((s, DType::Float)),
                _ => Err("the mask does not broadcast over operand 1".into()),
            }
        }
        Op::ArgMax => {
            arity(1)?;
            let s = float(0)?;
            drop_last(&s).map(|s| (s, DType::Int))
        }
        Op::ArgSort => {
            arity(1)?;
            let s = float(0)?;
            drop_last(&s).map(|_| (s, DType::Int))
        }
        Op::Sample => {
            arity(2)?;
            let (s, drawn) = (float(0)?, float(1)?);
            let out = drop_last(&s)?;
            if drawn.rank() == s.rank() && drawn.same_dims(&s.with_dim(s.rank() - 1, 1)) {
                Ok((out, DType::Int))
            } else {
                Err("one drawn number a row is needed".into())
            }
        }
    }
}

fn drop_last(s: &Shape) -> Result<Shape, String> {
    match s.dims().last() {
        None => Err("a scalar has no last axis".into()),
        Some(0) => Err("the last axis is empty".into()),
        Some(_) => {
            let dims: SmallVec<[(Axis, usize); MAX_RANK]> = s.iter().take(s.rank() - 1).collect();
            Ok(Shape::named(&dims))
        }
    }
}

/// Shape of two operands of equal rank, axes equal or 1.
fn broadcast(a: &Shape, b: &Shape) -> Result<Shape, String> {
    if a.rank() != b.rank() {
        return Err("the ranks differ".into());
    }
    let mut dims: SmallVec<[(Axis, usize); MAX_RANK]> = SmallVec::new();
    for ((ax, m), (bx, n)) in a.iter().zip(b.iter()) {
        dims.push(match (m, n) {
            _ if m == n => (if matches!(ax, Axis::One | Axis::Other) { bx } else { ax }, m),
            (1, n) => (bx, n),
            (m, 1) => (ax, m),
            _ => return Err(format!("axes of {m} and {n} do not broadcast")),
        });
    }
    Ok(Shape::named(&dims))
}

fn matmul_shape(a: &Shape, b: &Shape, ta: bool, tb: bool) -> Result<Shape, String> {
    if a.rank() < 2 || b.rank() < 2 {
        return Err("a product needs two axes on each side".into());
    }
    let last = |s: &Shape, t: bool| {
        let (row, col) = (s.rank() - 2, s.rank() - 1);
        let (r, c) = if t { (col, row) } else { (row, col) };
        ((s.axes()[r], s.dims()[r]), (s.axes()[c], s.dims()[c]))
    };
    let (m, k) = last(a, ta);
    let (k2, n) = last(b, tb);
    if k.1 != k2.1 {
        return Err(format!("inner lengths {} and {} differ", k.1, k2.1));
    }
    // A matrix on the right of a batch is the same for all of it.
    let lead_a: SmallVec<[(Axis, usize); MAX_RANK]> = a.iter().take(a.rank() - 2).collect();
    let mut lead_b: SmallVec<[(Axis, usize); MAX_RANK]> = b.iter().take(b.rank() - 2).collect();
    while lead_b.len() < lead_a.len() {
        lead_b.insert(0, (Axis::One, 1));
    }
    let mut dims = broadcast(&Shape::named(&lead_a), &Shape::named(&lead_b))?
        .iter()
        .collect::<SmallVec<[(Axis, usize); MAX_RANK]>>();
    dims.extend([m, n]);
    Ok(Shape::named(&dims))
}

fn concat_shape(x: &[(Shape, DType)], axis: usize) -> Result<(Shape, DType), String> {
    let Some(&(first, dtype)) = x.first() else {
        return Err("needs an operand".into());
    };
    if axis >= first.rank() {
        return Err(format!("no axis {axis} in {first}"));
    }
    let mut total = 0usize;
    for (s, d) in x {
        let same = s.rank() == first.rank()
            && s.dims().iter().zip(first.dims()).enumerate().all(|(i, (a, b))| i == axis || a == b);
        if !same || *d != dtype {
            return Err(format!("{s} does not continue {first} along axis {axis}"));
        }
        total = total.saturating_add(s.dims()[axis]);
    }
    Ok((first.with_dim(axis, total), dtype))
}

fn gather_shape(s: &Shape, ids: &Shape, pick: Pick) -> Result<Shape, String> {
    match pick {
        Pick::Rows => {
            if s.rank() == 0 {
                return Err("a scalar has no rows".into());
            }
            let dims: SmallVec<[(Axis, usize); 2 * MAX_RANK]> = ids.iter().chain(s.iter().skip(1)).collect();
            if dims.len() > MAX_RANK {
                return Err("too many axes".into());
            }
            Ok(Shape::named(&dims))
        }
        Pick::Along => {
            let r = s.rank();
            if r == 0 || ids.rank() != r || ids.dims()[..r - 1] != s.dims()[..r - 1] {
                return Err("all axes but the last must be equal".into());
            }
            let last = (ids.axes()[r - 1], ids.dims()[r - 1]);
            Ok(s.with_dim(r - 1, last.1).with_axis(r - 1, last.0))
        }
    }
}
