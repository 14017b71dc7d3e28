//! What a node costs: arithmetic and memory, from shapes alone.

use super::{NodeId, Op, Program, Reduction, ScopeKind};
use crate::tensor::{DType, Precision};

/// Cost of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Floating-point operations; a fused multiply-add counts as two, a function such as exp as one.
    pub flops: u64,
    /// Bytes read from operands.
    pub read: u64,
    /// Bytes of the result.
    pub written: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, o: Self) {
        self.flops += o.flops;
        self.read += o.read;
        self.written += o.written;
    }
}

/// What the tiles of `nodes` move through main memory, in bytes: each tile reads its operands and writes what is used
/// outside it, and everything between stays in fast memory. Nodes outside tiles count as [`cost`] does. The second
/// number is what `cost` says of all of them together: every operand read, every result written.
pub fn tile_traffic(program: &Program, nodes: std::ops::Range<u32>, precision: Precision) -> (u64, u64) {
    let tile = |id: NodeId| program.enclosing(id, |k| *k == ScopeKind::Tile);
    let (mut kept, mut all) = (0, 0);
    for id in nodes.map(NodeId) {
        let (node, whole) = (program.node(id), cost(program, id, precision));
        all += whole.read + whole.written;
        let Some(own) = tile(id) else {
            kept += whole.read + whole.written;
            continue;
        };
        let outside = |other: &NodeId| tile(*other) != Some(own);
        let from: u64 = match &node.op {
            Op::Reshape => 0,
            // A part of an operand is read as large as it is.
            Op::Slice { .. } if node.inputs.iter().any(outside) => bytes(node.dtype, node.shape.len(), precision),
            _ => {
                let operands = node.inputs.iter().filter(|i| outside(i)).map(|i| program.node(*i));
                operands.map(|n| bytes(n.dtype, n.shape.len(), precision)).sum()
            }
        };
        let leaf = matches!(node.op, Op::Leaf(_));
        let used = !leaf && program.users(id).iter().any(outside);
        kept += from + if used { bytes(node.dtype, node.shape.len(), precision) } else { 0 };
    }
    (kept, all)
}

fn bytes(dtype: DType, len: usize, precision: Precision) -> u64 {
    let each = match (dtype, precision) {
        (DType::Float, Precision::F32) => 4,
        (DType::Float, Precision::F64) | (DType::Int, _) => 8,
        (DType::Bool, _) => 1,
    };
    len as u64 * each
}

/// Cost of node `id` in a run of the given precision.
pub fn cost(program: &Program, id: NodeId, precision: Precision) -> Cost {
    let node = program.node(id);
    let operand = |i: usize| program.node(node.inputs[i]);
    let n = node.shape.len() as u64;
    let flops = match &node.op {
        Op::MatMul { transpose_a, .. } => {
            let a = &operand(0).shape;
            let k = a.dims()[a.rank() - if *transpose_a { 2 } else { 1 }] as u64;
            2 * n * k
        }
        Op::Unary(_) | Op::Binary(_) | Op::Affine(_) => n,
        Op::Reduce { kind, .. } => {
            let all = operand(0).shape.len() as u64;
            if *kind == Reduction::Mean { all } else { all.saturating_sub(n) }
        }
        Op::CumSum | Op::ArgMax | Op::ArgSort | Op::Sample => operand(0).shape.len() as u64,
        Op::ScatterAdd(_) => operand(2).shape.len() as u64,
        Op::Leaf(_)
        | Op::Reshape
        | Op::Permute(_)
        | Op::Slice { .. }
        | Op::Concat { .. }
        | Op::Gather(_)
        | Op::MaskFill { .. } => 0,
    };
    let read = match &node.op {
        // A reshape shares memory; a gather and a slice read only what they give.
        Op::Reshape => 0,
        Op::Gather(_) | Op::Slice { .. } => bytes(node.dtype, node.shape.len(), precision),
        _ => (0..node.inputs.len()).map(|i| bytes(operand(i).dtype, operand(i).shape.len(), precision)).sum(),
    };
    let written = match &node.op {
        Op::Reshape | Op::Leaf(_) => 0,
        _ => bytes(node.dtype, node.shape.len(), precision),
    };
    Cost { flops, read, written }
}
