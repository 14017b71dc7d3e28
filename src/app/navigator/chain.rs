//! What may be written between tables: the expression of a tensor over the tables that are shown.

use crate::program::{Affine, Binary, NodeId, Op, Program};

/// A tensor as a line of tables and signs: `LN1 · W + b`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chain {
    /// The tables, in order.
    pub tables: Vec<NodeId>,
    /// What is written before each table but the first.
    pub signs: Vec<&'static str>,
    /// What is done to all of it at the end: `÷ 1.4142`; empty for nothing.
    pub after: String,
}

/// How tightly a part binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binds {
    Sum,
    Product,
    Atom,
}

/// The expression of `node` over the nodes that `shown` takes; `None` where it is not one line of products and sums of
/// them, so that nothing can be claimed.
pub fn chain(program: &Program, node: NodeId, shown: &dyn Fn(NodeId) -> bool) -> Option<Chain> {
    let (chain, _) = part(program, node, true, shown)?;
    // A tensor is not said to equal itself.
    (chain.tables != [node]).then_some(chain)
}

fn part(program: &Program, id: NodeId, root: bool, shown: &dyn Fn(NodeId) -> bool) -> Option<(Chain, Binds)> {
    let node = program.node(id);
    if !root && shown(id) {
        return Some((Chain { tables: vec![id], ..Chain::default() }, Binds::Atom));
    }
    if !root && !node.inline {
        return None;
    }
    let inner = |i: usize| part(program, node.inputs[i], false, shown);
    let both = |sign: &'static str, binds: Binds, right: Binds| {
        let ((mut a, left), (b, of_b)) = (inner(0)?, inner(1)?);
        if !a.after.is_empty() || !b.after.is_empty() || left < binds || of_b < right {
            return None;
        }
        a.tables.extend(b.tables);
        a.signs.push(sign);
        a.signs.extend(b.signs);
        Some((a, binds))
    };
    match &node.op {
        op if op.moves_only() && node.inputs.len() == 1 => inner(0),
        Op::MatMul { .. } => both("·", Binds::Product, Binds::Atom),
        Op::Binary(Binary::Add) => both("+", Binds::Sum, Binds::Sum),
        Op::Binary(Binary::Sub) => both("-", Binds::Sum, Binds::Product),
        Op::Binary(Binary::Mul | Binary::MulOrZero) => both("⊙", Binds::Product, Binds::Atom),
        Op::Binary(Binary::Div | Binary::DivOrZero) => both("/", Binds::Product, Binds::Atom),
        Op::Affine(f) => {
            let (mut a, binds) = inner(0)?;
            if !a.after.is_empty() || binds == Binds::Sum {
                return None;
            }
            a.after = match f {
                Affine::Div(c) => format!("/ {}", crate::text::NumberFormat::default().format_short(*c)),
                Affine::Mul(c) => format!("× {}", crate::text::NumberFormat::default().format_short(*c)),
                Affine::Add(c) => format!("+ {}", crate::text::NumberFormat::default().format_short(*c)),
            };
            Some((a, Binds::Product))
        }
        _ => None,
    }
}
