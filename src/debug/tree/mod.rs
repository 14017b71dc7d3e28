//! Where a number came from and where it goes, as a tree: upstream the cells it was made of, downstream the cells made of
//! it, each with how much it weighs, the largest first.
//!
//! The weight of an operand `x` of a result `y` is `|x·∂y/∂x|`, in the number's own arithmetic and no further: for a sum
//! the size of the term, for a product that of the product, for a maximum all or nothing. Nothing is differentiated
//! through, so that a level of the tree costs one pass over its operands.

mod slope;

use std::collections::HashSet;

use slope::{partial, times};

use crate::explain::Explainer;
use crate::tensor::Shape;
use crate::trace::derive::{Arithmetic, Cell, Line, Replay};
use crate::trace::provenance::{Region, read_by};
use crate::with_any;

/// Which way to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To what a cell was made of.
    Up,
    /// To what is made of it.
    Down,
}

/// A cell next to another one, and how much it has to do with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Branch {
    /// The cell: an operand (up) or a result (down).
    pub cell: Cell,
    /// Its value.
    pub value: f64,
    /// The other factor, where a product is between them.
    pub partner: Option<Cell>,
    /// x·∂y/∂x; the term of a sum or product, with its sign.
    pub term: f64,
}

impl Branch {
    /// Its weight. NaN weighs more than all numbers.
    pub fn weight(&self) -> f64 {
        self.term.abs()
    }
}

/// The largest branches of a cell, and what the others come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Branches {
    /// The largest, largest first.
    pub list: Vec<Branch>,
    /// How many more there are.
    pub others: usize,
    /// Sum of the weights of the others.
    pub others_weight: f64,
    /// Sum of all weights.
    pub weight: f64,
}

/// Inline nodes and moves that are looked through at most.
const DEEPEST: usize = 64;

/// Most results that are looked at on the way down; the others are counted.
const MAX_SEEN: usize = 1 << 22;

/// The cell that a cell was moved from: itself, where it was computed or given.
pub fn origin(x: &Explainer<'_>, mut cell: Cell) -> Cell {
    while let Arithmetic::Copy(from) = x.arithmetic(cell) {
        cell = from;
    }
    cell
}

/// The cells between a cell and where it was moved from, both included, in order.
pub fn moves(x: &Explainer<'_>, cell: Cell) -> Vec<Cell> {
    let mut all = vec![cell];
    while let Some(Arithmetic::Copy(from)) = all.last().map(|c| x.arithmetic(*c)) {
        all.push(from);
    }
    all
}

/// The `most` largest branches of `cell`; all for 0.
pub fn branches(x: &Explainer<'_>, cell: Cell, way: Way, most: usize) -> Branches {
    let mut top = Top { most: if most == 0 { usize::MAX } else { most }, found: Branches::default(), seen: 0 };
    match way {
        Way::Up => up(x, origin(x, cell), 1.0, 0, &mut top),
        Way::Down => {
            let from = From { cell, factor: 1.0, computed: false, depth: 0 };
            down(x, x.value(cell), from, &mut top);
        }
    }
    top.finish()
}

/// Keeps the largest.
struct Top {
    most: usize,
    found: Branches,
    seen: usize,
}

impl Top {
    fn push(&mut self, b: Branch) {
        self.seen += 1;
        let list = &mut self.found.list;
        // A number that is used twice in one line counts once, with the sum of both.
        if let Some(same) = list.iter_mut().rev().take(16).find(|o| o.cell == b.cell && o.partner == b.partner) {
            self.found.weight -= same.weight();
            same.term += b.term;
            self.found.weight += same.weight();
            return;
        }
        self.found.weight += b.weight();
        list.push(b);
        if list.len() >= self.most.saturating_mul(2).max(1024) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        let list = &mut self.found.list;
        list.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then(a.cell.cmp(&b.cell)));
        let rest = list.split_off(self.most.min(list.len()));
        self.found.others += rest.len();
        self.found.others_weight += rest.iter().map(Branch::weight).sum::<f64>();
    }

    fn finish(mut self) -> Branches {
        self.prune();
        self.found
    }
}

/// Operands of `y`, which the whole depends on by `factor`; through inline nodes, as in a written line.
fn up(x: &Explainer<'_>, y: Cell, factor: f64, depth: usize, top: &mut Top) {
    let program = x.trace().program();
    let mut see = |cell: Cell, partial: f64, partner: Option<Cell>| {
        if program.node(cell.node).inline && depth < DEEPEST {
            return up(x, cell, factor * partial, depth + 1, top);
        }
        let value = x.value(cell);
        let term = times(value, factor * partial);
        top.push(Branch { cell, value, partner, term });
    };
    let arithmetic = x.arithmetic(y);
    let Arithmetic::Dot(a, b) = &arithmetic else {
        let y = x.value(y);
        for c in arithmetic.operands() {
            see(c, partial(x, &arithmetic, c, y), None);
        }
        return;
    };
    if a.len == 0 {
        return;
    }
    // A weight is the factor of what it weighs; two computed numbers are factors of each other.
    let given = |cell: Cell| x.arithmetic(origin(x, cell)) == Arithmetic::Given;
    let (given_a, given_b) = (given(a.cell(0)), given(b.cell(0)));
    for (a, b) in a.cells().zip(b.cells()) {
        let (u, v) = (x.value(a), x.value(b));
        if !given_a || given_b {
            see(a, v, Some(b));
        }
        if !given_b {
            see(b, u, Some(a));
        }
    }
}

/// A cell on the way down.
#[derive(Clone, Copy)]
struct From {
    cell: Cell,
    /// How it depends on the number that one asks about.
    factor: f64,
    /// Whether more than moves are between the two.
    computed: bool,
    /// Nodes between the two.
    depth: usize,
}

/// Results of which a cell is an operand; `asked` is the number that one asks about. Inline nodes are looked through, and
/// moves up to the one that shows what was computed.
fn down(x: &Explainer<'_>, asked: f64, from: From, top: &mut Top) {
    let cell = from.cell;
    let program = x.trace().program();
    let mut regions = with_any!(AnyTrace, x.trace(), t => read_by(t, cell));
    regions.retain(|r| x.trace().reached(r.node));
    let mut at = 0;
    while at < regions.len() {
        let id = regions[at].node;
        let node = program.node(id);
        // All boxes of one node together: where it reads the cell by two operands, they may overlap.
        let same = regions[at..].iter().take_while(|r| r.node == id).count();
        let boxes = &regions[at..at + same];
        at += same;
        let cells: usize = boxes.iter().map(Region::len).sum();
        if top.seen.saturating_add(cells) > MAX_SEEN {
            top.found.others += cells;
            continue;
        }
        let arithmetic: Box<dyn Fn(usize) -> Arithmetic + '_> = with_any!(AnyTrace, x.trace(), t => {
            let replay = Replay::new(t, id);
            Box::new(move |flat| replay.arithmetic(flat))
        });
        let moved = node.op.moves_only();
        let through = (node.inline || moved && !from.computed) && from.depth < DEEPEST;
        let mut met = HashSet::new();
        for flat in boxes.iter().flat_map(|b| flats(b, &node.shape)) {
            if same > 1 && !met.insert(flat) {
                continue;
            }
            let y = Cell { node: id, flat };
            let result = x.value(y);
            let arithmetic = arithmetic(flat);
            let (slope, partner) = match &arithmetic {
                Arithmetic::Dot(a, b) => factors(x, a, b, cell),
                _ => (partial(x, &arithmetic, cell, result), None),
            };
            let factor = from.factor * slope;
            if through {
                let next = From { cell: y, factor, computed: from.computed || !moved, depth: from.depth + 1 };
                down(x, asked, next, top);
            } else {
                top.push(Branch { cell: y, value: result, partner, term: times(asked, factor) });
            }
        }
    }
}

/// What a cell is multiplied with in a sum of products, and the sum of these numbers.
fn factors(x: &Explainer<'_>, a: &Line, b: &Line, cell: Cell) -> (f64, Option<Cell>) {
    let (mut sum, mut partner) = (0.0, None);
    for (own, other) in [(a, b), (b, a)] {
        if own.node != cell.node || cell.flat < own.start {
            continue;
        }
        let (i, rest) = match own.step {
            0 => (0, cell.flat - own.start),
            step => ((cell.flat - own.start) / step, (cell.flat - own.start) % step),
        };
        if rest == 0 && i < own.len {
            let factor = other.cell(i);
            partner = partner.or(Some(factor));
            sum += x.value(factor);
        }
    }
    (sum, partner)
}

/// Positions of the cells of a box.
fn flats<'r>(region: &'r Region, shape: &'r Shape) -> impl Iterator<Item = usize> + 'r {
    let lens: Vec<usize> = region.ranges.iter().map(|(a, b)| b - a).collect();
    let own = Shape::new(&lens);
    (0..own.len()).map(move |i| {
        let mut at = own.unflat(i);
        for (index, (from, _)) in at.iter_mut().zip(&region.ranges) {
            *index += from;
        }
        shape.flat(&at[..shape.rank()])
    })
}

/// A row of a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Level, from 1.
    pub depth: usize,
    /// What it shows.
    pub what: What,
}

/// What a row of a tree shows.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A cell.
    Branch {
        /// It.
        branch: Branch,
        /// Its part of the weights of all next to it, of 1; `None` where these come to nothing.
        share: Option<f64>,
        /// Whether it is in a row above, and is not gone into again.
        again: bool,
    },
    /// The others of a level: how many, their weight, their share.
    Others {
        /// How many.
        count: usize,
        /// Sum of their weights.
        weight: f64,
        /// Their part of all weights.
        share: Option<f64>,
    },
}

/// How far a tree goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Levels.
    pub depth: usize,
    /// Most branches of one cell; 0 for all.
    pub most: usize,
    /// Most rows.
    pub rows: usize,
}

/// The tree of a cell, as rows in reading order.
pub fn tree(x: &Explainer<'_>, cell: Cell, way: Way, extent: Extent) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut seen = HashSet::from([origin(x, cell)]);
    if extent.depth > 0 {
        grow(x, cell, way, extent, 1, &mut seen, &mut rows);
    }
    rows
}

fn grow(
    x: &Explainer<'_>,
    cell: Cell,
    way: Way,
    extent: Extent,
    depth: usize,
    seen: &mut HashSet<Cell>,
    rows: &mut Vec<Row>,
) {
    let found = branches(x, cell, way, extent.most);
    let share = |w: f64| Some(w / found.weight).filter(|s| s.is_finite());
    for branch in &found.list {
        if rows.len() >= extent.rows {
            return;
        }
        let deeper = depth < extent.depth;
        let again = deeper && !seen.insert(origin(x, branch.cell));
        let what = What::Branch { branch: *branch, share: share(branch.weight()), again };
        rows.push(Row { depth, what });
        if deeper && !again {
            grow(x, branch.cell, way, extent, depth + 1, seen, rows);
        }
    }
    if found.others > 0 && rows.len() < extent.rows {
        let what = What::Others { count: found.others, weight: found.others_weight, share: share(found.others_weight) };
        rows.push(Row { depth, what });
    }
}
