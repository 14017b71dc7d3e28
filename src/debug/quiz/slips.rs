//! Typical wrong answers to a cell, each with what makes it: computed from the recorded numbers, never written down.
//!
//! A derivation is a tree: the cell, and the inline cells that its line looks through. A slip changes one place of that
//! tree (a sign, a scale that is left out, a mean instead of a sum) or takes another cell for this one.

use super::Question;
use crate::explain::Explainer;
use crate::program::{Affine, Binary, Op, Program, Reduction, ScopeKind, Unary};
use crate::session::{Session, Steps};
use crate::tensor::Axis;
use crate::text::Msg;
use crate::trace::derive::{Arithmetic, Cell, Line};

/// A wrong answer and how it comes about.
#[derive(Clone, Debug, PartialEq)]
pub struct Slip {
    /// The wrong value.
    pub value: f64,
    /// What was done.
    pub why: Msg,
}

/// One cell of the tree denotes another value.
#[derive(Clone, Copy)]
struct Change {
    at: Cell,
    value: f64,
}

/// Evaluates trees of derivations in plain f64: good enough to recognise an answer.
struct Tree<'a, 't> {
    explainer: &'a Explainer<'t>,
    program: &'t Program,
    /// Decimals to which what is read is rounded first.
    round: Option<u8>,
}

impl Tree<'_, '_> {
    fn leaf(&self, c: Cell) -> f64 {
        let x = self.explainer.value(c);
        match self.round {
            Some(digits) => {
                let unit = 10f64.powi(i32::from(digits));
                let rounded = (x * unit).round() / unit;
                if rounded.is_finite() { rounded } else { x }
            }
            None => x,
        }
    }

    fn of(&self, c: Cell, change: Option<Change>) -> f64 {
        match change {
            Some(change) if change.at == c => change.value,
            _ if self.program.node(c.node).inline => self.computed(c, change),
            _ => self.leaf(c),
        }
    }

    fn computed(&self, c: Cell, change: Option<Change>) -> f64 {
        let of = |c: Cell| self.of(c, change);
        match self.explainer.arithmetic(c) {
            Arithmetic::Copy(from) => of(from),
            Arithmetic::Unary(f, x) => f.eval(of(x)),
            Arithmetic::Affine(f, x) => f.eval(of(x)),
            Arithmetic::Binary(f, a, b) => f.eval(of(a), of(b)),
            Arithmetic::Dot(a, b) => a.cells().zip(b.cells()).map(|(a, b)| of(a) * of(b)).sum(),
            Arithmetic::Fold(kind, line) => {
                let all = line.cells().map(of);
                match kind {
                    Reduction::Sum => all.sum(),
                    Reduction::Mean => all.sum::<f64>() / line.len as f64,
                    Reduction::Max => all.fold(f64::NEG_INFINITY, f64::max),
                }
            }
            Arithmetic::Running(line) => line.cells().map(of).sum(),
            Arithmetic::Masked { x, mask, fill } => {
                if self.explainer.value(mask) == 0.0 {
                    of(x)
                } else {
                    fill
                }
            }
            Arithmetic::Scatter(base, terms) => of(base) + terms.iter().map(|t| of(*t)).sum::<f64>(),
            Arithmetic::Given | Arithmetic::ArgMax(_) | Arithmetic::ArgSort(..) | Arithmetic::Sample(..) => {
                self.leaf(c)
            }
        }
    }
}

/// The value of a cell, computed from operands that were rounded to `digits` decimals first.
pub(super) fn from_rounded(explainer: &Explainer<'_>, cell: Cell, digits: u8) -> f64 {
    Tree { explainer, program: explainer.trace().program(), round: Some(digits) }.computed(cell, None)
}

/// Typical wrong answers, the most telling first. None is the right value.
pub fn slips(s: &Session, steps: &Steps, q: &Question, explainer: &Explainer<'_>) -> Vec<Slip> {
    let tree = Tree { explainer, program: explainer.trace().program(), round: None };
    let value = explainer.value(q.cell);
    let mut out = Vec::new();
    let mut add = |value: f64, why: Msg| out.push(Slip { value, why });
    whole_blocks(&tree, q.cell, &mut add);
    // Every cell of the tree that the line looks through may be where it went wrong.
    let mut open = vec![q.cell];
    let mut seen = 0;
    while let Some(c) = open.pop() {
        seen += 1;
        if seen > MAX_INLINE {
            break;
        }
        local(&tree, c, &mut |wrong, why| {
            let all = if c == q.cell { wrong } else { tree.computed(q.cell, Some(Change { at: c, value: wrong })) };
            add(all, why);
        });
        let inline = |c: &Cell| tree.program.node(c.node).inline;
        let mut inner: Vec<Cell> = explainer.arithmetic(c).operands().into_iter().filter(inline).collect();
        inner.truncate(MAX_OPERANDS);
        open.extend(inner);
    }
    add(-value, Msg::new("slip.sign"));
    other_cells(s, steps, q, explainer, &mut add);
    let right = |x: f64| (x - value).abs() <= 1e-12 * value.abs().max(1.0);
    out.retain(|slip| slip.value.is_finite() && !right(slip.value));
    out
}

/// Most cells of a tree that are looked through, and most operands of one.
const MAX_INLINE: usize = 200;
const MAX_OPERANDS: usize = 32;

type Add<'a> = dyn FnMut(f64, Msg) + 'a;

/// What may go wrong in the arithmetic of one cell alone.
fn local(tree: &Tree<'_, '_>, c: Cell, add: &mut Add<'_>) {
    let of = |c: Cell| tree.of(c, None);
    match tree.explainer.arithmetic(c) {
        Arithmetic::Unary(f, x) => unary(f, of(x), add),
        Arithmetic::Affine(f, x) => {
            let x = of(x);
            match f {
                Affine::Div(by) => {
                    add(x, Msg::new("slip.unscaled").arg("by", short(by)));
                    add(x * by, Msg::new("slip.multiplied").arg("by", short(by)));
                    add(x / (by * by), Msg::new("slip.divided_by_square").arg("by", short(by * by)));
                }
                Affine::Mul(by) => {
                    add(x, Msg::new("slip.not_multiplied").arg("by", short(by)));
                    add(x / by, Msg::new("slip.divided").arg("by", short(by)));
                    add(x * by * by, Msg::new("slip.multiplied_by_square").arg("by", short(by * by)));
                }
                Affine::Add(more) => {
                    add(x, Msg::new("slip.not_added").arg("more", short(more)));
                    add(x - more, Msg::new("slip.subtracted_constant").arg("more", short(more)));
                }
            }
        }
        Arithmetic::Binary(f, a, b) => binary(tree, f, a, b, add),
        Arithmetic::Dot(a, b) => dot(tree, a, b, add),
        Arithmetic::Fold(kind, line) => fold(tree, kind, line, add),
        Arithmetic::Running(line) => add(of(line.cell(line.len - 1)), Msg::new("slip.not_cumulative")),
        Arithmetic::Masked { x, mask, .. } => {
            if tree.explainer.value(mask) != 0.0 {
                add(of(x), Msg::new("slip.unmasked"));
            }
        }
        Arithmetic::Scatter(_, terms) => {
            for t in terms.iter().take(MAX_OPERANDS) {
                add(of(*t), Msg::new("slip.one_contribution"));
            }
        }
        Arithmetic::Given
        | Arithmetic::Copy(_)
        | Arithmetic::ArgMax(_)
        | Arithmetic::ArgSort(..)
        | Arithmetic::Sample(..) => {}
    }
}

/// A constant as a message shows it.
fn short(x: f64) -> String {
    let text = format!("{x:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-" || x != 0.0 && x.abs() < 1e-4 { format!("{x:e}") } else { text.to_owned() }
}

fn unary(f: Unary, x: f64, add: &mut Add<'_>) {
    match f {
        Unary::Neg => add(x, Msg::new("slip.sign")),
        Unary::Exp => {
            add(x, Msg::new("slip.no_exp"));
            add((-x).exp(), Msg::new("slip.exp_sign"));
        }
        Unary::Ln => {
            add(x, Msg::new("slip.no_log"));
            add(x.log10(), Msg::new("slip.log10"));
            add(x.log2(), Msg::new("slip.log2"));
        }
        Unary::Sqrt => add(x, Msg::new("slip.no_root")),
        Unary::Square => {
            add(x, Msg::new("slip.no_square"));
            add(2.0 * x, Msg::new("slip.doubled"));
        }
        Unary::Relu => {
            add(x, Msg::new("slip.no_relu"));
            add(x.abs(), Msg::new("slip.abs_for_relu"));
        }
        Unary::Sin => add(x.cos(), Msg::new("slip.cos_for_sin")),
        Unary::Cos => add(x.sin(), Msg::new("slip.sin_for_cos")),
        Unary::Sigmoid | Unary::Tanh | Unary::Erf => add(x, Msg::new("slip.no_activation")),
        Unary::Abs | Unary::Step | Unary::SoftmaxShift | Unary::MaskedSoftmaxShift => {}
    }
}

fn binary(tree: &Tree<'_, '_>, f: Binary, a: Cell, b: Cell, add: &mut Add<'_>) {
    let (x, y) = (tree.of(a, None), tree.of(b, None));
    let kind = |c: Cell| tree.program.node(c.node);
    let bias = matches!(kind(b).op, Op::Leaf(_)) && kind(b).shape.rank() == 1;
    match f {
        Binary::Add => {
            add(x, Msg::new(if bias { "slip.no_bias" } else { "slip.second_missing" }));
            add(y, Msg::new("slip.first_missing"));
            add(x - y, Msg::new("slip.subtracted"));
            add(x * y, Msg::new("slip.product_for_sum"));
        }
        Binary::Sub => {
            add(x, Msg::new("slip.not_subtracted"));
            add(y - x, Msg::new("slip.reversed"));
            add(x + y, Msg::new("slip.added"));
        }
        Binary::Mul | Binary::MulOrZero => {
            add(x, Msg::new("slip.second_factor_missing"));
            add(y, Msg::new("slip.first_factor_missing"));
            add(x + y, Msg::new("slip.sum_for_product"));
        }
        Binary::Div | Binary::DivOrZero => {
            add(x, Msg::new("slip.not_divided"));
            add(y / x, Msg::new("slip.upside_down"));
            add(x * y, Msg::new("slip.product_for_quotient"));
        }
        Binary::LnOr => {
            add(x, Msg::new("slip.no_log"));
            add(x.log10(), Msg::new("slip.log10"));
            add(x.log2(), Msg::new("slip.log2"));
        }
        Binary::Max => add(x.min(y), Msg::new("slip.min")),
    }
}

/// The line across `line`: a column of its matrix where it is a row, and the other way round.
fn across(program: &Program, line: Line) -> Option<Line> {
    let shape = program.node(line.node).shape;
    let dims = shape.dims();
    let (rows, columns) = (*dims.get(dims.len().checked_sub(2)?)?, *dims.last()?);
    if rows != columns || rows != line.len {
        return None;
    }
    let matrix = line.start / (rows * columns) * rows * columns;
    let inside = line.start - matrix;
    let (start, step) = match line.step {
        1 if inside.is_multiple_of(columns) => (inside / columns, columns),
        n if n == columns && inside < columns => (inside * columns, 1),
        _ => return None,
    };
    Some(Line { start: matrix + start, step, ..line })
}

fn dot(tree: &Tree<'_, '_>, a: Line, b: Line, add: &mut Add<'_>) {
    let of = |c: Cell| tree.of(c, None);
    let terms: Vec<f64> = a.cells().zip(b.cells()).map(|(a, b)| of(a) * of(b)).collect();
    let sum: f64 = terms.iter().sum();
    let product = |a: Line, b: Line| a.cells().zip(b.cells()).map(|(a, b)| of(a) * of(b)).sum::<f64>();
    for (name, (x, y)) in
        [("second", (Some(a), across(tree.program, b))), ("first", (across(tree.program, a), Some(b)))]
    {
        if let (Some(x), Some(y)) = (x, y) {
            let key = if name == "second" { "slip.transposed" } else { "slip.transposed_first" };
            add(product(x, y), Msg::new(key));
        }
    }
    for (i, term) in terms.iter().enumerate().take(MAX_OPERANDS).filter(|(_, t)| **t != 0.0) {
        add(sum - 2.0 * term, Msg::new("slip.term_sign").arg("term", i + 1));
        add(sum - term, Msg::new("slip.term_missing").arg("term", i + 1));
    }
    add(terms.iter().map(|t| t.abs()).sum(), Msg::new("slip.abs_terms"));
    add(sum / terms.len() as f64, Msg::new("slip.mean_for_sum"));
    let sums: f64 = a.cells().zip(b.cells()).map(|(a, b)| of(a) + of(b)).sum();
    add(sums, Msg::new("slip.sum_for_product"));
}

fn fold(tree: &Tree<'_, '_>, kind: Reduction, line: Line, add: &mut Add<'_>) {
    let all: Vec<f64> = line.cells().map(|c| tree.of(c, None)).collect();
    let (sum, n) = (all.iter().sum::<f64>(), all.len() as f64);
    match kind {
        Reduction::Sum | Reduction::Mean => {
            let (whole, other, key) = match kind {
                Reduction::Mean => (sum / n, sum, "slip.sum_for_mean"),
                _ => (sum, sum / n, "slip.mean_for_sum"),
            };
            add(other, Msg::new(key));
            if kind == Reduction::Mean && all.len() > 1 {
                add(sum / (n - 1.0), Msg::new("slip.unbiased").arg("n", all.len() - 1));
            }
            let share = if kind == Reduction::Mean { n } else { 1.0 };
            for (i, x) in all.iter().enumerate().take(MAX_OPERANDS) {
                add(whole - 2.0 * x / share, Msg::new("slip.term_sign").arg("term", i + 1));
                add(whole - x / share, Msg::new("slip.term_missing").arg("term", i + 1));
            }
            add(all.iter().copied().fold(f64::NEG_INFINITY, f64::max), Msg::new("slip.max"));
        }
        Reduction::Max => {
            add(all.iter().copied().fold(f64::INFINITY, f64::min), Msg::new("slip.min"));
            add(all.iter().map(|x| x.abs()).fold(0.0, f64::max), Msg::new("slip.largest_magnitude"));
            add(sum, Msg::new("slip.sum"));
        }
    }
}

/// Slips in a softmax as a whole: no mask, no scale, the wrong direction, the share of the scores themselves.
fn whole_blocks(tree: &Tree<'_, '_>, cell: Cell, add: &mut Add<'_>) {
    let found = tree.program.enclosing(cell.node, |k| matches!(k, ScopeKind::Softmax { .. }));
    let Some(ScopeKind::Softmax { input, output }) = found.map(|id| tree.program.scope(id).kind.clone()) else {
        return;
    };
    if output != cell.node {
        return;
    }
    let shape = tree.program.node(output).shape;
    let width = shape.dims().last().copied().unwrap_or(1);
    let start = cell.flat / width * width;
    let column = cell.flat - start;
    let row = |node, from: usize| -> Vec<f64> {
        (0..width).map(|i| tree.explainer.value(Cell { node, flat: from + i })).collect()
    };
    let softmax = |xs: &[f64]| {
        let top = xs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exps: Vec<f64> = xs.iter().map(|x| (x - top).exp()).collect();
        exps[column] / exps.iter().sum::<f64>()
    };
    let scores = row(input, start);
    add(scores[column] / scores.iter().sum::<f64>(), Msg::new("slip.share_of_scores"));
    add(scores[column], Msg::new("slip.score_for_weight"));
    let mut at = input;
    for _ in 0..3 {
        let node = tree.program.node(at);
        let Some(&before) = node.inputs.first() else { break };
        if !tree.program.node(before).shape.same_dims(&shape) {
            break;
        }
        match node.op {
            Op::MaskFill { .. } => add(softmax(&row(before, start)), Msg::new("slip.softmax_unmasked")),
            Op::Affine(Affine::Div(by) | Affine::Mul(by)) => {
                // What is masked stays masked.
                let masked: Vec<f64> = row(before, start)
                    .into_iter()
                    .zip(&scores)
                    .map(|(x, s)| if *s < crate::explain::MASKED_BELOW { f64::NEG_INFINITY } else { x })
                    .collect();
                add(softmax(&masked), Msg::new("slip.softmax_unscaled").arg("by", short(by)));
            }
            _ => {}
        }
        at = before;
    }
    let rows = shape.dims().len().checked_sub(2).map_or(1, |i| shape.dims()[i]);
    if rows > 1 {
        let matrix = start / (rows * width) * rows * width;
        let down = |node| -> Vec<f64> {
            (0..rows).map(|r| tree.explainer.value(Cell { node, flat: matrix + r * width + column })).collect()
        };
        let scores = down(input);
        let mine = (start - matrix) / width;
        let sum: f64 = scores.iter().map(|x| (x - scores[mine]).exp()).sum();
        add(1.0 / sum, Msg::new("slip.softmax_over_column"));
    }
}

/// Cells that are easily taken for this one: row and column exchanged, a neighbour, another head, another step.
fn other_cells(s: &Session, steps: &Steps, q: &Question, explainer: &Explainer<'_>, add: &mut Add<'_>) {
    let view = &steps.list()[q.step].views[q.view];
    let shape = view.shape();
    let rank = shape.rank();
    if rank >= 2 {
        let mut turned = q.index.clone();
        turned.swap(rank - 1, rank - 2);
        if turned != q.index && turned.iter().zip(shape.dims()).all(|(i, n)| i < n) {
            let name = view.cell_name(&turned);
            add(explainer.value(view.cell(&turned)), Msg::new("slip.exchanged").arg("name", name));
        }
    }
    // Another head of the same tensor.
    let node = explainer.trace().program().node(q.cell.node);
    let heads = node.shape.axes().iter().position(|a| matches!(a, Axis::Head | Axis::KvHead));
    if let Some(axis) = heads {
        let mut at = node.shape.unflat(q.cell.flat)[..node.shape.rank()].to_vec();
        let own = at[axis];
        for head in (0..node.shape.dims()[axis]).filter(|h| *h != own) {
            at[axis] = head;
            let cell = Cell { node: q.cell.node, flat: node.shape.flat(&at) };
            add(explainer.value(cell), Msg::new("slip.other_head").arg("head", head + 1).arg("own", own + 1));
        }
    }
    // Other cells of the same table, the nearest first.
    let mut near: Vec<(usize, Vec<usize>)> = (0..shape.len().min(1024))
        .map(|flat| shape.unflat(flat)[..rank].to_vec())
        .filter(|index| *index != q.index)
        .map(|index| (index.iter().zip(&q.index).map(|(a, b)| a.abs_diff(*b)).sum(), index))
        .collect();
    near.sort();
    for (_, index) in near {
        let name = view.cell_name(&index);
        add(explainer.value(view.cell(&index)), Msg::new("slip.other_cell").arg("name", name));
    }
    // The operands themselves, and the same place of the other tables of the step.
    for cell in explainer.reads(q.cell).into_iter().take(64) {
        if let Some(name) = s.cell_name(steps, q.run, cell, q.step) {
            add(explainer.value(cell), Msg::new("slip.operand").arg("name", name));
        }
    }
    for (v, other) in steps.list()[q.step].views.iter().enumerate() {
        if v != q.view && other.run == q.run && other.shape().same_dims(&shape) {
            let name = other.cell_name(&q.index);
            add(explainer.value(other.cell(&q.index)), Msg::new("slip.other_table").arg("name", name));
        }
    }
}
