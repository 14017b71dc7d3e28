//! The first NaN or infinity of a run: the cell that made it, distinguished from those that only carry it on.

use std::collections::HashSet;

use crate::program::{Leaf, Op};
use crate::tensor::{Real, Value};
use crate::trace::derive::{Arithmetic, Cell, Replay};
use crate::trace::{AnyTrace, Trace};
use crate::with_any;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// Not a number.
    Nan,
    /// Infinite, but not where a mask wants −∞.
    Inf,
}

impl Bad {
    fn is<T: Real>(self, x: T) -> bool {
        match self {
            Bad::Nan => x.is_nan(),
            Bad::Inf => !x.is_finite() && !x.is_nan(),
        }
    }
}

/// Where something came into a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// It was in a parameter.
    Parameter,
    /// It was in another given value: an input, a constant.
    Given,
    /// It was computed of operands none of which was so.
    Computed,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The first cell that is so, and did not get it from an operand.
    pub producer: Cell,
    /// How it came there.
    pub from: From,
    /// Its operands, with their values, at most [`MAX_OPERANDS`]: the infinite ones first.
    pub operands: Vec<(Cell, f64)>,
    /// How many operands it has.
    pub operand_count: usize,
    /// Cells that are so without getting it from an operand, this one included.
    pub producers: usize,
    /// Cells that got it from an operand.
    pub carriers: usize,
    /// Nodes with such cells.
    pub nodes: usize,
    /// Cells that a mask made infinite on purpose, and those that got it from such ones only; they do not count.
    pub masked: usize,
}

/// Operands of a producer that are reported.
pub const MAX_OPERANDS: usize = 8;

/// Operands that are looked at in all to tell producers from carriers; beyond, what has such a node among its operands
/// counts as a carrier.
const MAX_READS: usize = 1 << 24;

/// The first `bad` of a trace, in order of evaluation; `None` where there is none.
pub fn first(trace: &AnyTrace, bad: Bad) -> Option<Found> {
    with_any!(AnyTrace, trace, t => first_in(t, bad))
}

fn first_in<T: Real>(trace: &Trace<T>, bad: Bad) -> Option<Found> {
    let program = trace.program();
    let mut found: Option<Found> = None;
    // Of nodes that have such cells: which of these a mask made, or got from it.
    let mut has: Vec<Option<HashSet<usize>>> = vec![None; program.len()];
    let (mut masked, mut reads) = (0, 0);
    for (id, node) in program.nodes() {
        let Some(Value::Float(value)) = trace.get(id) else {
            continue;
        };
        let cells = value.data().iter().enumerate();
        let cells: Vec<usize> = cells.filter(|(_, x)| bad.is(**x)).map(|(i, _)| i).collect();
        if cells.is_empty() {
            continue;
        }
        let inherits = node.inputs.iter().any(|i| has[i.index()].is_some());
        let constant = matches!(node.op, Op::Leaf(Leaf::Constant(_)));
        let replay = Replay::new(trace, id);
        let mut by_mask = HashSet::new();
        let mut counted = false;
        for flat in cells {
            let arithmetic = replay.arithmetic(flat);
            let on_purpose = bad == Bad::Inf && (constant || filled(trace, &arithmetic));
            let (mut carried, mut all_masked) = (inherits, false);
            if inherits && !on_purpose && reads < MAX_READS {
                let operands = arithmetic.operands();
                reads += operands.len();
                let is_bad = |c: &&Cell| matches!(trace.value(c.node), Value::Float(v) if bad.is(v.data()[c.flat]));
                let of_mask = |c: &Cell| {
                    let marked = has[c.node.index()].as_ref();
                    marked.is_some_and(|m| m.contains(&c.flat))
                };
                let mut guilty = operands.iter().filter(is_bad).peekable();
                carried = guilty.peek().is_some();
                all_masked = carried && guilty.all(of_mask);
            }
            if on_purpose || all_masked {
                by_mask.insert(flat);
                masked += 1;
                continue;
            }
            counted = true;
            match (&mut found, carried) {
                (Some(f), true) => f.carriers += 1,
                (Some(f), false) => f.producers += 1,
                (None, _) => found = Some(report(trace, Cell { node: id, flat }, &arithmetic)),
            }
        }
        has[id.index()] = Some(by_mask);
        if let Some(f) = found.as_mut().filter(|_| counted) {
            f.nodes += 1;
        }
    }
    found.map(|f| Found { masked, ..f })
}

/// Whether a mask put the number there.
fn filled<T: Real>(trace: &Trace<T>, arithmetic: &Arithmetic) -> bool {
    match arithmetic {
        Arithmetic::Masked { mask, .. } => {
            matches!(trace.value(mask.node), Value::Bool(m) if m.data()[mask.flat])
        }
        _ => false,
    }
}

fn report<T: Real>(trace: &Trace<T>, producer: Cell, arithmetic: &Arithmetic) -> Found {
    let from = match &trace.program().node(producer.node).op {
        Op::Leaf(Leaf::Parameter) => From::Parameter,
        Op::Leaf(_) => From::Given,
        _ => From::Computed,
    };
    let all = arithmetic.operands();
    let mut operands: Vec<(Cell, f64)> = all.iter().map(|c| (*c, trace.value(c.node).get(c.flat))).collect();
    operands.sort_by_key(|(_, x)| x.is_finite());
    operands.truncate(MAX_OPERANDS);
    Found { producer, from, operands, operand_count: all.len(), producers: 1, carriers: 0, nodes: 0, masked: 0 }
}
