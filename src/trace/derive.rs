//! The derivation of a cell: its operand cells and the exact order of arithmetic. Replaying it gives the same bits
//! as the recorded cell, in f64 and f32, forward and backward.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::Trace;
use super::eval::{broadcast_strides, descending, fill_value, split};
use crate::kernels;
use crate::parallel;
use crate::program::{Affine, Binary, Constant, Leaf, NodeId, Op, Pick, Program, Reduction, Unary};
use crate::tensor::{DType, MAX_RANK, Precision, Real, Shape, Value};

/// One cell of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// The node.
    pub node: NodeId,
    /// Row-major position.
    pub flat: usize,
}

/// Cells of one node at equal distances: a row, a column, any fibre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The node.
    pub node: NodeId,
    /// Position of the first.
    pub start: usize,
    /// Distance of neighbours.
    pub step: usize,
    /// How many.
    pub len: usize,
}

impl Line {
    /// The `i`-th cell.
    pub fn cell(&self, i: usize) -> Cell {
        Cell { node: self.node, flat: self.start + i * self.step }
    }

    /// All cells, in order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Cell> + '_ {
        (0..self.len).map(|i| self.cell(i))
    }
}

/// How one cell is computed. The order of operands is the order of arithmetic.
#[derive(Clone, Debug, PartialEq)]
pub enum Arithmetic {
    /// Given, not computed: a parameter, an input, a constant, a random number, an edited cell.
    Given,
    /// The same number as another cell.
    Copy(Cell),
    /// A function of one cell.
    Unary(Unary, Cell),
    /// A cell and a constant.
    Affine(Affine, Cell),
    /// Two cells.
    Binary(Binary, Cell, Cell),
    /// a₀·b₀ + a₁·b₁ + … in blocks of 256 fused multiply-adds, block sums added in order.
    Dot(Line, Line),
    /// A left fold.
    Fold(Reduction, Line),
    /// A running sum up to this cell.
    Running(Line),
    /// `fill` where the mask cell is true, else the first cell.
    Masked {
        /// The number.
        x: Cell,
        /// The mask cell.
        mask: Cell,
        /// What a masked number becomes.
        fill: f64,
    },
    /// The first cell, then the others added in order.
    Scatter(Cell, Vec<Cell>),
    /// Position of the largest.
    ArgMax(Line),
    /// Which position has this rank in descending order.
    ArgSort(Line, usize),
    /// First position whose cumulative value exceeds the drawn number.
    Sample(Line, Cell),
}

impl Arithmetic {
    /// The operand cells, in order.
    pub fn operands(&self) -> Vec<Cell> {
        match self {
            Arithmetic::Given => vec![],
            Arithmetic::Copy(c) | Arithmetic::Unary(_, c) | Arithmetic::Affine(_, c) => vec![*c],
            Arithmetic::Binary(_, a, b) => vec![*a, *b],
            Arithmetic::Dot(a, b) => a.cells().zip(b.cells()).flat_map(|(a, b)| [a, b]).collect(),
            Arithmetic::Fold(_, l) | Arithmetic::Running(l) | Arithmetic::ArgMax(l) | Arithmetic::ArgSort(l, _) => {
                l.cells().collect()
            }
            Arithmetic::Masked { x, mask, .. } => vec![*x, *mask],
            Arithmetic::Scatter(base, terms) => std::iter::once(*base).chain(terms.iter().copied()).collect(),
            Arithmetic::Sample(l, u) => l.cells().chain([*u]).collect(),
        }
    }
}

/// The cell that `cell` is a copy of, where its node only moves numbers, by shapes alone.
pub fn copied(program: &Program, cell: Cell) -> Option<Cell> {
    let node = program.node(cell.node);
    let shape = |i: usize| program.node(node.inputs[i]).shape;
    let rank = node.shape.rank();
    let mut at = node.shape.unflat(cell.flat);
    let (input, flat) = match &node.op {
        Op::Reshape => (0, cell.flat),
        Op::Permute(order) => {
            let strides = shape(0).strides();
            let places = order.iter().zip(&at);
            (0, places.map(|(&o, &i)| strides[o as usize] * i).sum())
        }
        Op::Slice { axis, start, .. } => {
            at[*axis] += start;
            (0, shape(0).flat(&at[..rank]))
        }
        Op::Concat { axis } => {
            let mut part = 0;
            while at[*axis] >= shape(part).dims()[*axis] {
                at[*axis] -= shape(part).dims()[*axis];
                part += 1;
            }
            (part, shape(part).flat(&at[..rank]))
        }
        _ => return None,
    };
    Some(Cell { node: node.inputs[input], flat })
}

/// A node with the values of its operands at hand: derives and replays its cells.
#[derive(Debug)]
pub struct Replay<'t, T: Real> {
    program: &'t Program,
    id: NodeId,
    operands: SmallVec<[(NodeId, Value<T>); 3]>,
    held: Option<&'t BTreeMap<usize, f64>>,
    fma: bool,
}

impl<'t, T: Real> Replay<'t, T> {
    /// Node `id` of `trace`, which must have been reached.
    pub fn new(trace: &'t Trace<T>, id: NodeId) -> Self {
        let program = &**trace.program();
        let operands = program.node(id).inputs.iter().map(|&i| (i, trace.value(i))).collect();
        Self { program, id, operands, held: trace.held().of(id), fma: trace.contract().fma }
    }

    fn value(&self, id: NodeId) -> &Value<T> {
        &self.operands.iter().find(|(i, _)| *i == id).expect("an operand of this node").1
    }

    fn read(&self, c: Cell) -> T {
        self.value(c.node).float().data()[c.flat]
    }

    /// The arithmetic of cell `flat`.
    pub fn arithmetic(&self, flat: usize) -> Arithmetic {
        if self.held.is_some_and(|cells| cells.contains_key(&flat)) {
            return Arithmetic::Given;
        }
        let node = self.program.node(self.id);
        let s = node.shape;
        let at = s.unflat(flat);
        let input = |i: usize| node.inputs[i];
        let shape = |i: usize| self.program.node(input(i)).shape;
        let same = |i: usize| Cell { node: input(i), flat };
        // The cell of operand `i` that broadcasting pairs with this one.
        let paired = |i: usize| Cell { node: input(i), flat: dot(&at, &broadcast_strides(&shape(i)), s.rank()) };
        match &node.op {
            Op::Leaf(_) => Arithmetic::Given,
            Op::MatMul { transpose_a, transpose_b } => {
                let (a, b) =
                    matmul_lines(&s, &at, (input(0), shape(0), *transpose_a), (input(1), shape(1), *transpose_b));
                Arithmetic::Dot(a, b)
            }
            Op::Unary(f) => Arithmetic::Unary(*f, same(0)),
            Op::Affine(f) => Arithmetic::Affine(*f, same(0)),
            Op::Binary(f) => Arithmetic::Binary(*f, paired(0), paired(1)),
            Op::Reduce { kind, axis } => {
                let (_, n, inner) = split(&shape(0), *axis);
                let (o, i) = (flat / inner.max(1), flat % inner.max(1));
                Arithmetic::Fold(*kind, Line { node: input(0), start: o * n * inner + i, step: inner, len: n })
            }
            Op::CumSum => {
                let n = s.dims()[s.rank() - 1].max(1);
                Arithmetic::Running(Line { node: input(0), start: flat / n * n, step: 1, len: flat % n + 1 })
            }
            Op::Reshape | Op::Permute(_) | Op::Slice { .. } | Op::Concat { .. } => {
                let cell = Cell { node: self.id, flat };
                copied(self.program, cell).map_or(Arithmetic::Given, Arithmetic::Copy)
            }
            Op::Gather(pick) => {
                let ids = self.value(input(1)).int().data();
                let table = shape(0);
                let flat = match pick {
                    Pick::Rows => {
                        let width: usize = table.dims()[1..].iter().product();
                        ids[flat / width.max(1)] as usize * width + flat % width.max(1)
                    }
                    Pick::Along => {
                        let (n, k) = (table.dims()[s.rank() - 1], s.dims()[s.rank() - 1]);
                        flat / k * n + ids[flat] as usize
                    }
                };
                Arithmetic::Copy(Cell { node: input(0), flat })
            }
            Op::ScatterAdd(pick) => {
                let ids = self.value(input(1)).int().data();
                let cells = match pick {
                    Pick::Rows => {
                        let width: usize = s.dims()[1..].iter().product();
                        let (row, col) = (flat / width.max(1), flat % width.max(1));
                        let hits = ids.iter().enumerate().filter(|(_, id)| **id as usize == row);
                        hits.map(|(i, _)| Cell { node: input(2), flat: i * width + col }).collect()
                    }
                    Pick::Along => {
                        let (n, k) = (s.dims()[s.rank() - 1], shape(1).dims()[s.rank() - 1]);
                        let (row, col) = (flat / n, flat % n);
                        (row * k..(row + 1) * k)
                            .filter(|&i| ids[i] as usize == col)
                            .map(|i| Cell { node: input(2), flat: i })
                            .collect()
                    }
                };
                Arithmetic::Scatter(same(0), cells)
            }
            Op::MaskFill { fill } => Arithmetic::Masked { x: same(0), mask: paired(1), fill: *fill },
            Op::ArgMax => Arithmetic::ArgMax(row(input(0), &shape(0), flat)),
            Op::ArgSort => {
                let n = s.dims()[s.rank() - 1].max(1);
                Arithmetic::ArgSort(row(input(0), &s, flat / n), flat % n)
            }
            Op::Sample => Arithmetic::Sample(row(input(0), &shape(0), flat), Cell { node: input(1), flat }),
        }
    }

    /// Carries out the arithmetic of cell `flat` again: its result.
    pub fn number(&self, arithmetic: &Arithmetic, flat: usize) -> f64 {
        let bits = self.replay(arithmetic, flat);
        match (self.program.node(self.id).dtype, T::PRECISION) {
            (DType::Float, Precision::F32) => f64::from(f32::from_bits(bits as u32)),
            (DType::Float, Precision::F64) => f64::from_bits(bits),
            (DType::Int, _) => bits as i64 as f64,
            (DType::Bool, _) => bits as f64,
        }
    }

    /// Carries out the arithmetic of cell `flat` again: the bits of its result.
    pub fn replay(&self, arithmetic: &Arithmetic, flat: usize) -> u64 {
        let float = |x: T| x.bits();
        match arithmetic {
            Arithmetic::Given => self.given(flat),
            Arithmetic::Copy(c) => self.value(c.node).bits(c.flat),
            Arithmetic::Unary(f, c) => float(f.eval(self.read(*c))),
            Arithmetic::Affine(f, c) => float(f.eval(self.read(*c))),
            Arithmetic::Binary(f, a, b) => float(f.eval(self.read(*a), self.read(*b))),
            Arithmetic::Dot(a, b) => {
                let (x, y) = (self.value(a.node).float().data(), self.value(b.node).float().data());
                float(kernels::dot(a.len, |i| x[a.start + i * a.step], |i| y[b.start + i * b.step], self.fma))
            }
            Arithmetic::Fold(kind, l) => float(kind.eval(l.len, l.cells().map(|c| self.read(c)))),
            Arithmetic::Running(l) => float(Reduction::Sum.eval(l.len, l.cells().map(|c| self.read(c)))),
            Arithmetic::Masked { x, mask, fill } => {
                if self.value(mask.node).bool().data()[mask.flat] {
                    float(fill_value(*fill))
                } else {
                    float(self.read(*x))
                }
            }
            Arithmetic::Scatter(base, terms) => {
                float(terms.iter().fold(self.read(*base), |acc, c| acc + self.read(*c)))
            }
            Arithmetic::ArgMax(l) => {
                let mut best = 0;
                for i in 1..l.len {
                    let (have, x) = (self.read(l.cell(best)), self.read(l.cell(i)));
                    // NaN counts as the largest; the first of equals stays.
                    if !have.is_nan() && (x > have || x.is_nan()) {
                        best = i;
                    }
                }
                best as u64
            }
            Arithmetic::ArgSort(l, rank) => {
                let of = |i: usize| self.read(l.cell(i));
                // The position that exactly `rank` others come before.
                let before =
                    |i: usize| (0..l.len).filter(|&j| descending(of(j), of(i)).then(j.cmp(&i)).is_lt()).count();
                (0..l.len).find(|&i| before(i) == *rank).unwrap_or(*rank) as u64
            }
            Arithmetic::Sample(l, u) => {
                let u = self.read(*u);
                let hit = (0..l.len).find(|&i| self.read(l.cell(i)) > u);
                let total = self.read(l.cell(l.len - 1));
                let last = || (0..l.len).find(|&i| self.read(l.cell(i)) == total).unwrap_or(0);
                hit.unwrap_or_else(last) as u64
            }
        }
    }

    /// The bits of a constant or a random number made again; a bound leaf is what it is, an edited cell what it was
    /// edited to.
    fn given(&self, flat: usize) -> u64 {
        let node = self.program.node(self.id);
        if let Some(&x) = self.held.and_then(|cells| cells.get(&flat)) {
            return match node.dtype {
                DType::Float => T::from_f64(x).bits(),
                DType::Int => x as i64 as u64,
                DType::Bool => u64::from(x != 0.0),
            };
        }
        match &node.op {
            Op::Leaf(Leaf::Constant(Constant::Filled(x))) => fill_value::<T>(*x).bits(),
            Op::Leaf(Leaf::Constant(Constant::Float(x))) => T::from_f64(x[flat]).bits(),
            Op::Leaf(Leaf::Constant(Constant::Int(x))) => x[flat] as u64,
            Op::Leaf(Leaf::Mask(m)) => u64::from(m.reasons[flat] != 0),
            Op::Leaf(Leaf::Random(r)) => r.eval::<T>(flat as u64).bits(),
            _ => 0,
        }
    }
}

/// What replaying all cells of a node found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Cells computed, and so replayed.
    pub cells: u64,
    /// Of these, how many gave other bits.
    pub different: u64,
    /// The first of those.
    pub first: Option<usize>,
}

/// Cells that a thread replays at a time.
const REPLAYED: usize = 1024;

/// Replays every cell of node `id`. Bound leaves have nothing to replay.
pub fn replay_node<T: Real>(trace: &Trace<T>, id: NodeId) -> Replayed {
    if matches!(trace.program().node(id).op, Op::Leaf(Leaf::Parameter | Leaf::Input(_) | Leaf::Recorded(_))) {
        return Replayed::default();
    }
    let value = trace.value(id);
    let replay = Replay::new(trace, id);
    let n = value.shape().len();
    let rounding = trace.rounder().and_then(|r| r.of(trace.program(), id)).filter(|_| value.dtype() == DType::Float);
    let differs = |flat: &usize| {
        let arithmetic = replay.arithmetic(*flat);
        let bits = replay.replay(&arithmetic, *flat);
        let bits = match &rounding {
            // An edited cell is what it was edited to.
            Some(rounding) if arithmetic != Arithmetic::Given || trace.held().of(id).is_none() => {
                let x = match T::PRECISION {
                    Precision::F32 => f64::from(f32::from_bits(bits as u32)),
                    Precision::F64 => f64::from_bits(bits),
                };
                T::from_f64(rounding.round(x)).bits()
            }
            _ => bits,
        };
        bits != value.bits(*flat)
    };
    let block = |k: usize| {
        let mut bad = (k * REPLAYED..n.min((k + 1) * REPLAYED)).filter(differs);
        let first = bad.next();
        (u64::from(first.is_some()) + bad.count() as u64, first)
    };
    let blocks = n.div_ceil(REPLAYED);
    let found = if blocks <= 4 { (0..blocks).map(block).collect() } else { parallel::map(blocks, block) };
    let different = found.iter().map(|f| f.0).sum();
    Replayed { cells: n as u64, different, first: found.iter().find_map(|f| f.1) }
}

/// The arithmetic of one cell of a trace.
pub fn derive<T: Real>(trace: &Trace<T>, cell: Cell) -> Arithmetic {
    Replay::new(trace, cell.node).arithmetic(cell.flat)
}

fn dot(at: &[usize; MAX_RANK], strides: &[usize; MAX_RANK], rank: usize) -> usize {
    (0..rank).map(|d| at[d] * strides[d]).sum()
}

/// Row `r` of the last axis.
fn row(node: NodeId, s: &Shape, r: usize) -> Line {
    let n = s.dims()[s.rank() - 1];
    Line { node, start: r * n, step: 1, len: n }
}

/// The two lines whose product is the cell at `at` of a product of shape `s`.
fn matmul_lines(
    s: &Shape,
    at: &[usize; MAX_RANK],
    (a, sa, ta): (NodeId, Shape, bool),
    (b, sb, tb): (NodeId, Shape, bool),
) -> (Line, Line) {
    let lead = s.rank() - 2;
    let (i, j) = (at[lead], at[lead + 1]);
    // Where the operand's matrix starts: its leading axes are right-aligned with those of the result.
    let offset = |shape: &Shape| {
        let strides = broadcast_strides(shape);
        let own = shape.rank() - 2;
        (0..own).map(|d| at[lead - own + d] * strides[d]).sum::<usize>()
    };
    let (cols_a, cols_b) = (sa.dims()[sa.rank() - 1], sb.dims()[sb.rank() - 1]);
    let rows_a = sa.dims()[sa.rank() - 2];
    let k = if ta { rows_a } else { cols_a };
    let line_a = if ta {
        Line { node: a, start: offset(&sa) + i, step: cols_a, len: k }
    } else {
        Line { node: a, start: offset(&sa) + i * cols_a, step: 1, len: k }
    };
    let line_b = if tb {
        Line { node: b, start: offset(&sb) + j * cols_b, step: 1, len: k }
    } else {
        Line { node: b, start: offset(&sb) + j, step: cols_b, len: k }
    };
    (line_a, line_b)
}
