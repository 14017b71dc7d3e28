//! Attention in tiles or bands next to the plain way: the same scores, a softmax over all of them at once in f64, and
//! what both move through main memory.

use crate::program::{NodeId, Op, Program, ScopeKind, Unary, cost, tile_traffic};
use crate::tensor::{Precision, Real};
use crate::trace::{AnyTrace, Trace};
use crate::with_any;

/// What a run's attention in pieces gives, against the plain way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Attentions in tiles or bands.
    pub attentions: usize,
    /// Rows of a head that were compared.
    pub rows: usize,
    /// Rows further from the plain way than the bound.
    pub wrong: usize,
    /// The largest difference, as a share of its bound.
    pub largest: f64,
    /// Floating-point operations of these attentions, scores to context.
    pub flops: u64,
    /// Bytes through main memory, each tile kept in fast memory.
    pub bytes: u64,
    /// Bytes through main memory where every result is written and read back.
    pub unfused_bytes: u64,
}

/// A run's report; `None` where no attention is computed in pieces.
pub fn report(trace: &AnyTrace, precision: Precision) -> Option<Report> {
    with_any!(AnyTrace, trace, t => report_in(t, precision))
}

fn report_in<T: Real>(trace: &Trace<T>, precision: Precision) -> Option<Report> {
    let program = trace.program();
    let mut report = Report::default();
    for (_, scope) in program.scopes().filter(|(_, s)| s.kind == ScopeKind::Attention) {
        let inside = |id: &NodeId| scope.nodes.contains(&id.0);
        let tiles: Vec<u32> = program
            .scopes()
            .filter(|(_, s)| s.kind == ScopeKind::Tile && s.nodes.start >= scope.nodes.start)
            .filter(|(_, s)| s.nodes.end <= scope.nodes.end && !s.nodes.is_empty())
            .flat_map(|(_, s)| [s.nodes.start, s.nodes.end])
            .collect();
        let (Some(&start), Some(&end)) = (tiles.first(), tiles.last()) else {
            continue;
        };
        report.attentions += 1;
        let Some(joined) = (end..scope.nodes.end).map(NodeId).find(|id| program.node(*id).op == Op::Concat { axis: 2 })
        else {
            continue;
        };
        let all = start..joined.0 + 1;
        report.flops += all.clone().map(|i| cost(program, NodeId(i), precision).flops).sum::<u64>();
        let (kept, written) = tile_traffic(program, all, precision);
        report.bytes += kept;
        report.unfused_bytes += written;
        for &row in program.node(joined).inputs.iter().filter(|id| inside(id) && trace.reached(**id)) {
            rows(trace, row, &mut report);
        }
    }
    (report.attentions > 0).then_some(report)
}

/// One piece of a row of tiles: its scores, and the values that they weigh.
struct Piece {
    scores: NodeId,
    values: NodeId,
}

/// The product that `id` is, seen through views of it.
fn product(program: &Program, mut id: NodeId) -> Option<(NodeId, NodeId)> {
    while program.node(id).op == Op::Reshape {
        id = program.node(id).inputs[0];
    }
    let node = program.node(id);
    matches!(node.op, Op::MatMul { .. }).then(|| (node.inputs[0], node.inputs[1]))
}

/// The piece whose weighted values are `id`; none where its weights are not a softmax's.
fn piece(program: &Program, id: NodeId) -> Option<Piece> {
    let (mut weights, values) = product(program, id)?;
    while program.node(weights).op == Op::Reshape {
        weights = program.node(weights).inputs[0];
    }
    let node = program.node(weights);
    let scores = match node.op {
        Op::Unary(Unary::Exp) => program.node(node.inputs[0]).inputs[0],
        _ => match program.scope(node.scope).kind {
            ScopeKind::Softmax { input, output } if output == weights => input,
            _ => return None,
        },
    };
    Some(Piece { scores, values })
}

/// The pieces that were added up to `id`.
fn pieces(program: &Program, id: NodeId, found: &mut Vec<Piece>) {
    if let Some(piece) = piece(program, id) {
        found.push(piece);
        return;
    }
    let node = program.node(id);
    if matches!(node.op, Op::Binary(_)) {
        for &input in &node.inputs {
            pieces(program, input, found);
        }
    }
}

/// Compares the rows of one row of tiles, `[batch, head, query, d_v]`.
fn rows<T: Real>(trace: &Trace<T>, id: NodeId, report: &mut Report) {
    let program = trace.program();
    let mut parts = Vec::new();
    pieces(program, id, &mut parts);
    let context = trace.value(id);
    let s = program.node(id).shape;
    let [batch, heads, queries, width] = [0, 1, 2, 3].map(|i| s.dims()[i]);
    let read: Vec<_> = parts
        .iter()
        .map(|p| {
            let v = program.node(p.values).shape;
            let keys = v.dims()[v.rank() - 2];
            (trace.value(p.scores), trace.value(p.values), keys, v.len() / (batch * keys * width).max(1))
        })
        .collect();
    let all: usize = read.iter().map(|r| r.2).sum();
    let epsilon = match T::PRECISION {
        Precision::F32 => f64::from(f32::EPSILON),
        Precision::F64 => f64::EPSILON,
    };
    // Sums of n terms, each rescaled once a tile, and functions within one unit in the last place.
    let units = (2 * all + 4 * read.len() + 16) as f64;
    for row in 0..batch * heads * queries {
        let (sample, head, query) = (row / (heads * queries), row / queries % heads, row % queries);
        let mut cells = Vec::with_capacity(all);
        for (scores, values, keys, kv_heads) in &read {
            for key in 0..*keys {
                let score = scores.get(((sample * heads + head) * queries + query) * keys + key);
                let kv = head / (heads / (*kv_heads).max(1)).max(1);
                cells.push((score, values, ((sample * kv_heads + kv) * keys + key) * width));
            }
        }
        let top = cells.iter().map(|c| c.0).fold(f64::NEG_INFINITY, f64::max);
        let weight = |score: f64| if top == f64::NEG_INFINITY { 0.0 } else { (score - top).exp() };
        let sum: f64 = cells.iter().map(|c| weight(c.0)).sum();
        report.rows += 1;
        let mut wrong = false;
        for d in 0..width {
            let (mut plain, mut size) = (0.0, 0.0f64);
            for (score, values, at) in &cells {
                let value = values.get(at + d);
                if weight(*score) > 0.0 {
                    plain += weight(*score) / sum * value;
                    size = size.max(value.abs());
                }
            }
            let bound = units * epsilon * size;
            let far = (context.get(row * width + d) - plain).abs();
            if bound > 0.0 {
                report.largest = report.largest.max(far / bound);
            }
            wrong |= far.is_nan() || far > bound;
        }
        report.wrong += usize::from(wrong);
    }
}
