//! Finding attention in a program by its shape: numbers divided by their own sum, which go back through masks and
//! scales to a product of two computed tensors. Names play no part.

use super::Look;
use crate::program::{Affine, Binary, Block, Constant, Leaf, NodeId, Op, Program, Reduction, Stack, Unary};
use crate::tensor::Real;

/// One attention.
#[derive(Clone, Debug)]
pub(super) struct Attention {
    /// Numbers divided by their sum, `[…, query, key]`.
    pub weights: NodeId,
    /// Whether exp comes before the division.
    pub softmax: bool,
    /// The mask on the scores, true where hidden, with as many axes as the weights or fewer.
    pub mask: Option<NodeId>,
    /// What queries and keys are multiplied by, all constants together.
    pub scale: f64,
    /// The last node that scales; the product where none does.
    pub scaled: NodeId,
    /// Width of a query.
    pub width: usize,
    /// Queries before any scale, `[…, query, d_k]`.
    pub q: NodeId,
    /// What the values are multiplied by, node after node from the weights on; with each, the mask that it reads.
    pub after: Vec<(NodeId, Option<NodeId>)>,
}

/// Which sequences meet in an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sides {
    /// The encoder over itself.
    Encoder,
    /// The decoder over itself.
    Decoder,
    /// The decoder over the encoder.
    Cross,
    /// Not known.
    Other,
}

impl Attention {
    /// Which sequences meet in it, by where it is.
    pub fn sides(&self, program: &Program) -> Sides {
        let site = program.node(self.weights).name.site;
        match (site.block(), site.stack()) {
            (Some(Block::CrossAttention), _) => Sides::Cross,
            (_, Some(Stack::Encoder)) => Sides::Encoder,
            (_, Some(Stack::Decoder)) => Sides::Decoder,
            (_, None) => Sides::Other,
        }
    }
}

/// All nodes that divide numbers by their own sum along an axis.
pub(super) fn normalised<'a, T: Real>(look: &Look<'a, T>) -> impl Iterator<Item = (NodeId, NodeId)> + use<'a, T> {
    let program = look.program;
    look.nodes().filter_map(move |(id, node)| {
        let (Op::Binary(Binary::Div | Binary::DivOrZero), [x, sum]) = (&node.op, &node.inputs[..]) else {
            return None;
        };
        let sum = program.node(*sum);
        let summed = matches!(sum.op, Op::Reduce { kind: Reduction::Sum, .. });
        (summed && sum.inputs[0] == *x && !node.name.is_derived()).then_some((id, *x))
    })
}

/// All attentions, in order.
pub(super) fn find<T: Real>(look: &Look<'_, T>) -> Vec<Attention> {
    normalised(look).filter_map(|(weights, x)| attention(look, weights, x)).collect()
}

fn attention<T: Real>(look: &Look<'_, T>, weights: NodeId, x: NodeId) -> Option<Attention> {
    let program = look.program;
    if program.node(weights).shape.rank() < 2 {
        return None;
    }
    let mut back = Back { mask: None, scale: 1.0, scaled: None, softmax: false };
    let product = back.product(program, x)?;
    let [a, b] = program.node(product).inputs[..] else {
        return None;
    };
    let q = back.through_scale(program, a);
    let k = back.through_scale(program, b);
    // Hidden states times a parameter are logits.
    if is_parameter(program, q) || is_parameter(program, k) {
        return None;
    }
    let width = *program.node(a).shape.dims().last()?;
    Some(Attention {
        weights,
        softmax: back.softmax,
        mask: back.mask,
        scale: back.scale,
        scaled: back.scaled.unwrap_or(product),
        width,
        q,
        after: after(look, weights),
    })
}

fn is_parameter(program: &Program, mut id: NodeId) -> bool {
    loop {
        let node = program.node(id);
        match node.op {
            Op::Leaf(Leaf::Parameter) => return true,
            Op::Reshape | Op::Permute(_) => id = node.inputs[0],
            _ => return false,
        }
    }
}

/// The way back from the numbers that are normalised.
struct Back {
    mask: Option<NodeId>,
    scale: f64,
    scaled: Option<NodeId>,
    softmax: bool,
}

impl Back {
    /// The product of queries and keys behind `id`.
    fn product(&mut self, program: &Program, mut id: NodeId) -> Option<NodeId> {
        loop {
            let node = program.node(id);
            let next = node.inputs.first().copied();
            match &node.op {
                Op::MatMul { .. } => return Some(id),
                Op::Unary(Unary::Exp) if !self.softmax => self.softmax = true,
                // The shift of a softmax: a maximum of the same numbers, or 0.
                Op::Binary(Binary::Sub) if is_shift(program, node.inputs[1]) => {}
                Op::MaskFill { .. } => self.mask = Some(mask_leaf(program, node.inputs[1])),
                Op::Binary(Binary::Add) => {
                    let [a, b] = [node.inputs[0], node.inputs[1]];
                    if let Some(mask) = mask_behind(program, b) {
                        self.mask = Some(mask);
                    } else if let Some(mask) = mask_behind(program, a) {
                        self.mask = Some(mask);
                        id = b;
                        continue;
                    }
                }
                Op::Reshape | Op::Permute(_) => {}
                _ if self.scales(program, id) => {}
                _ => return None,
            }
            id = next?;
        }
    }

    /// What follows scales and reshapes.
    fn through_scale(&mut self, program: &Program, mut id: NodeId) -> NodeId {
        loop {
            let node = program.node(id);
            let moves = matches!(node.op, Op::Reshape | Op::Permute(_));
            if !moves && !self.scales(program, id) {
                return id;
            }
            id = node.inputs[0];
        }
    }

    /// Whether `id` multiplies by one constant; it is then part of the scale.
    fn scales(&mut self, program: &Program, id: NodeId) -> bool {
        let node = program.node(id);
        let by = match &node.op {
            Op::Affine(Affine::Mul(c)) => *c,
            Op::Affine(Affine::Div(c)) => 1.0 / c,
            Op::Binary(f @ (Binary::Mul | Binary::Div)) => match (&program.node(node.inputs[1]).op, f) {
                (Op::Leaf(Leaf::Constant(Constant::Filled(c))), Binary::Mul) => *c,
                (Op::Leaf(Leaf::Constant(Constant::Filled(c))), _) => 1.0 / c,
                _ => return false,
            },
            _ => return false,
        };
        self.scale *= by;
        self.scaled.get_or_insert(id);
        true
    }
}

fn is_shift(program: &Program, id: NodeId) -> bool {
    let node = program.node(id);
    match node.op {
        Op::Unary(Unary::SoftmaxShift | Unary::MaskedSoftmaxShift) => true,
        Op::Reduce { kind, .. } => kind == Reduction::Max,
        _ => false,
    }
}

/// The mask behind reshapes.
fn mask_leaf(program: &Program, mut id: NodeId) -> NodeId {
    while let (Op::Reshape, Some(next)) = (&program.node(id).op, program.node(id).inputs.first()) {
        id = *next;
    }
    id
}

/// The mask whose cells decide what `id` holds: a constant filled where a mask is true, seen through anything that
/// works cell by cell.
fn mask_behind(program: &Program, mut id: NodeId) -> Option<NodeId> {
    loop {
        let node = program.node(id);
        match &node.op {
            Op::Leaf(Leaf::Mask(_)) => return Some(id),
            Op::MaskFill { .. } => {
                let filled = &program.node(node.inputs[0]).op;
                let constant = matches!(filled, Op::Leaf(Leaf::Constant(_)));
                return constant.then(|| mask_leaf(program, node.inputs[1]));
            }
            Op::Reshape | Op::Permute(_) | Op::Affine(_) | Op::Unary(_) => id = node.inputs[0],
            _ => return None,
        }
    }
}

/// What works on the weights cell by cell until values are multiplied by them.
fn after<T: Real>(look: &Look<'_, T>, weights: NodeId) -> Vec<(NodeId, Option<NodeId>)> {
    let program = look.program;
    let mut chain = Vec::new();
    let mut at = weights;
    loop {
        let next = look.readers(at).find_map(|(id, node)| {
            let other = |i: usize| node.inputs.get(i).copied().filter(|n| *n != at);
            let mask = match &node.op {
                Op::MaskFill { .. } => Some(mask_leaf(program, node.inputs[1])),
                Op::Binary(Binary::Add | Binary::Mul) => {
                    other(0).or_else(|| other(1)).and_then(|o| mask_behind(program, o))
                }
                Op::Affine(_) => None,
                _ => return None,
            };
            Some((id, mask))
        });
        match next {
            Some(found) => {
                chain.push(found);
                at = found.0;
            }
            None => return chain,
        }
    }
}
