//! Two runs side by side: which paths correspond to which, and where their cells differ. Plain data; a screen steps
//! through it.

use crate::parallel;
use crate::program::{Name, Node, NodeId, Program};
use crate::tensor::{Axis, Shape};
use crate::trace::{AnyTrace, AnyValue};

/// Which node of the right run corresponds to a node of the left one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// The one of the same path: two runs of one program, two precisions, exact and rounded.
    Same,
    /// What is in the scope `from` is next to the same in the scope `to`: `decoder.0` and `decoder.1`, or the whole
    /// program and `gen.2`.
    Scopes {
        /// On the left.
        from: Box<Name>,
        /// On the right.
        to: Box<Name>,
    },
    /// The same path in one decoding call, `gen.2.` before it; what the calls have in common (the encoder) next to
    /// itself: training next to inference.
    Call(usize),
    /// The same path, one head next to another; only what has heads.
    Heads {
        /// On the left, from 0.
        left: usize,
        /// On the right, from 0.
        right: usize,
    },
}

/// Which positions are compared where one side has more of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// The first ones: training next to an inference call without cache.
    #[default]
    First,
    /// The last ones: cached next to uncached.
    Last,
}

/// A cell on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPair {
    /// Flat position on the left.
    pub left: usize,
    /// Flat position on the right.
    pub right: usize,
}

/// A node and the one next to it.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPair {
    /// Path on the left.
    pub path: String,
    /// Node on the left.
    pub left: NodeId,
    /// Node on the right.
    pub right: NodeId,
    /// Cells that both have.
    pub cells: usize,
    /// How many of them differ.
    pub differing: usize,
    /// The first that differs.
    pub first: Option<CellPair>,
    /// Largest absolute difference; NaN where a number corresponds to NaN.
    pub max_difference: f64,
}

/// The nodes that correspond, in the order of the left run, and how their cells differ.
pub fn pair(left: &AnyTrace, right: &AnyTrace, mapping: &Mapping, align: Align) -> Vec<PathPair> {
    let (ours, theirs) = (left.program(), right.program());
    let mut pairs = Vec::new();
    for (id, node) in ours.nodes() {
        let Some(other) = beside(theirs, node, mapping) else {
            continue;
        };
        if !left.reached(id) || !right.reached(other) {
            continue;
        }
        let shapes = (&node.shape, &theirs.node(other).shape);
        let Some(beside) = Beside::new(shapes.0, shapes.1, mapping, align) else {
            continue;
        };
        let (a, b) = (left.value(id), right.value(other));
        let mut found = PathPair {
            path: node.path.to_string(),
            left: id,
            right: other,
            cells: beside.part().len(),
            differing: 0,
            first: None,
            max_difference: 0.0,
        };
        count(&mut found, &a, &b, &beside);
        pairs.push(found);
    }
    pairs
}

/// Cells that are read in one go.
const BLOCK: usize = 1 << 14;

/// Reads all cells of a pair, blocks of them at the same time.
fn count(found: &mut PathPair, a: &AnyValue, b: &AnyValue, beside: &Beside) {
    let n = beside.part().len();
    let of_block = |k: usize| {
        let (mut differing, mut first, mut largest) = (0, None, 0.0_f64);
        for i in k * BLOCK..n.min((k + 1) * BLOCK) {
            let cell = beside.nth(i);
            if same(a, b, cell) {
                continue;
            }
            differing += 1;
            first.get_or_insert(cell);
            let difference = (a.get(cell.left) - b.get(cell.right)).abs();
            if difference.is_nan() || difference > largest {
                largest = difference;
            }
        }
        (differing, first, largest)
    };
    for (differing, first, largest) in parallel::map(n.div_ceil(BLOCK), of_block) {
        found.differing += differing;
        found.first = found.first.or(first);
        if largest.is_nan() || largest > found.max_difference {
            found.max_difference = largest;
        }
    }
}

/// The cells of a pair that differ, in the order of the left side.
pub fn differing(left: &AnyTrace, right: &AnyTrace, pair: &PathPair, mapping: &Mapping, align: Align) -> Vec<CellPair> {
    let (a, b) = (left.value(pair.left), right.value(pair.right));
    let beside = Beside::new(a.shape(), b.shape(), mapping, align);
    let cells = beside.iter().flat_map(Beside::pairs);
    cells.filter(|cell| !same(&a, &b, *cell)).collect()
}

/// The next pair after `from` in which cells differ.
pub fn next_difference(pairs: &[PathPair], from: usize) -> Option<usize> {
    (from + 1..pairs.len()).find(|i| pairs[*i].differing > 0)
}

/// The pair before `from` in which cells differ.
pub fn previous_difference(pairs: &[PathPair], from: usize) -> Option<usize> {
    (0..from.min(pairs.len())).rev().find(|i| pairs[*i].differing > 0)
}

fn beside(right: &Program, node: &Node, mapping: &Mapping) -> Option<NodeId> {
    let same = || right.find(&node.path);
    match mapping {
        Mapping::Same | Mapping::Heads { .. } => same(),
        Mapping::Scopes { from, to } => right.named(&node.name.moved(from, to)?),
        Mapping::Call(call) => right.named(&node.name.in_call(*call as u32)).or_else(same),
    }
}

/// Whether a cell is the same on both sides: bits where both have one number type, else numbers; NaN equals NaN.
pub fn same(a: &AnyValue, b: &AnyValue, cell: CellPair) -> bool {
    let (x, y) = (a.get(cell.left), b.get(cell.right));
    if x.is_nan() || y.is_nan() {
        return x.is_nan() && y.is_nan();
    }
    if a.precision() == b.precision() && a.dtype() == b.dtype() {
        a.bits(cell.left) == b.bits(cell.right)
    } else {
        x == y
    }
}

/// How the cells of two shapes correspond: the part of each that the other has too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    part: Shape,
    shapes: [Shape; 2],
    /// Where the part begins in each.
    from: [Vec<usize>; 2],
}

impl Beside {
    /// Of a left and a right shape; `None` where they do not correspond: axes of tokens and of sentences
    /// may be longer on one side (the first sentences are compared), no others.
    pub fn new(left: &Shape, right: &Shape, mapping: &Mapping, align: Align) -> Option<Self> {
        if left.rank() != right.rank() {
            return None;
        }
        let rank = left.rank();
        let mut part = *left;
        let (mut from_left, mut from_right) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
        let mut heads = false;
        for d in 0..rank {
            let (a, b) = (left.dims()[d], right.dims()[d]);
            let axis = left.axes()[d];
            let mut from = (0, 0);
            if let (Mapping::Heads { left: i, right: j }, Axis::Head) = (mapping, axis) {
                if *i >= a || *j >= b {
                    return None;
                }
                heads = true;
                part = part.with_dim(d, 1);
                from = (*i, *j);
            } else if a != b {
                if !matches!(axis, Axis::Token | Axis::Query | Axis::Key | Axis::Batch) {
                    return None;
                }
                let both = a.min(b);
                part = part.with_dim(d, both);
                if align == Align::Last && axis != Axis::Batch {
                    from = (a - both, b - both);
                }
            }
            from_left.push(from.0);
            from_right.push(from.1);
        }
        if matches!(mapping, Mapping::Heads { .. }) && !heads {
            return None;
        }
        Some(Self { part, shapes: [*left, *right], from: [from_left, from_right] })
    }

    /// The shape of the part that both have.
    pub fn part(&self) -> &Shape {
        &self.part
    }

    /// Where the part begins on each side, axis by axis: left, right.
    pub fn from(&self) -> [&[usize]; 2] {
        [&self.from[0], &self.from[1]]
    }

    /// The cell at an index of the part, on both sides.
    pub fn at(&self, index: &[usize]) -> CellPair {
        let flat = |side: usize| {
            let strides = self.shapes[side].strides();
            (0..self.part.rank()).map(|d| (index[d] + self.from[side][d]) * strides[d]).sum()
        };
        CellPair { left: flat(0), right: flat(1) }
    }

    /// The index in the part of a cell of one side (0 left, 1 right), where it is in it.
    pub fn index(&self, side: usize, flat: usize) -> Option<Vec<usize>> {
        let at = self.shapes[side].unflat(flat);
        (0..self.part.rank())
            .map(|d| {
                let i = at[d].checked_sub(self.from[side][d])?;
                (i < self.part.dims()[d]).then_some(i)
            })
            .collect()
    }

    /// The cell at a position in the part, on both sides.
    pub fn nth(&self, flat: usize) -> CellPair {
        // Where all of both is compared, the positions are the same.
        if self.part == self.shapes[0] && self.part == self.shapes[1] {
            return CellPair { left: flat, right: flat };
        }
        self.at(&self.part.unflat(flat))
    }

    /// All cells, in the order of the left side.
    pub fn pairs(&self) -> impl Iterator<Item = CellPair> + '_ {
        (0..self.part.len()).map(|flat| self.nth(flat))
    }
}
