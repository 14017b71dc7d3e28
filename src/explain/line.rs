//! The written derivation of a cell: the line a user would write by hand, from the recorded numbers.
//!
//! A line looks through *inline* nodes: `LN1a[0][0] = (0.9129 - 0.9428)/√(1.0933+ε) = -0.0286` is the division, the
//! subtraction, the root and the ε of four nodes. Every number in it denotes one cell, which the line remembers,
//! so that a reader can go into it.

use std::cell::RefCell;
use std::collections::HashMap;

use super::mask::reasons;
use super::piece::{Binds, Piece, constant, short, text, unary, written};
use super::span::{Span, Style};
use crate::program::{Affine, Binary, Leaf, NodeId, Op, Program, Reduction, Role, ScopeKind, Step, Unary};
use crate::text::{Lang, NumberFormat, tr};
use crate::trace::derive::{Arithmetic, Cell, Replay};
use crate::trace::{AnyTrace, AnyValue};
use crate::with_any;

/// A written derivation.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its pieces, in order.
    pub spans: Vec<Span>,
    /// The recorded value of the cell, as `f64`.
    pub value: f64,
}

impl Line {
    /// The whole line.
    pub fn text(&self) -> String {
        self.spans.iter().map(|s| s.text.as_str()).collect()
    }

    /// The cells whose values it shows, in order of appearance.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.spans.iter().filter_map(|s| s.cell)
    }
}

/// Scores below this are masked: a user writes −∞.
pub const MASKED_BELOW: f64 = -1e8;

/// Writes lines from a trace; keeps the values it has looked at.
pub struct Explainer<'t> {
    trace: &'t AnyTrace,
    values: RefCell<HashMap<NodeId, AnyValue>>,
    lang: Lang,
}

impl<'t> Explainer<'t> {
    /// For `trace`.
    pub fn new(trace: &'t AnyTrace) -> Self {
        Self { trace, values: RefCell::default(), lang: Lang::En }
    }

    /// The smallest positive number of full precision that its trace can hold.
    pub fn smallest_normal(&self) -> f64 {
        self.trace.precision().smallest_normal()
    }

    /// Writes what words a line has (why a score is masked) in `lang` instead of English.
    #[must_use]
    pub fn speaking(mut self, lang: Lang) -> Self {
        self.lang = lang;
        self
    }

    /// Why a cell of a mask hides what it hides, in words; `None` where it hides nothing or is no mask.
    fn why_masked(&self, mask: Cell) -> Option<String> {
        if let Some(x) = self.trace.held().get(mask) {
            return (x != 0.0).then(|| tr(self.lang, "explain.edited").to_owned());
        }
        if let Op::Leaf(Leaf::Mask(m)) = &self.program().node(mask.node).op {
            return Some(reasons(m.reasons[mask.flat], self.lang)).filter(|w| !w.is_empty());
        }
        match self.arithmetic(mask) {
            Arithmetic::Copy(from) => self.why_masked(from),
            _ => None,
        }
    }

    /// The trace.
    pub fn trace(&self) -> &'t AnyTrace {
        self.trace
    }

    fn program(&self) -> &'t Program {
        self.trace.program()
    }

    /// The value of a cell.
    pub fn value(&self, c: Cell) -> f64 {
        let mut values = self.values.borrow_mut();
        values.entry(c.node).or_insert_with(|| self.trace.value(c.node)).get(c.flat)
    }

    /// The arithmetic of a cell.
    pub fn arithmetic(&self, c: Cell) -> Arithmetic {
        with_any!(AnyTrace, self.trace, t => Replay::new(t, c.node).arithmetic(c.flat))
    }

    /// The number of a cell as a user writes it.
    pub fn number(&self, c: Cell, format: NumberFormat) -> String {
        let x = self.value(c);
        match self.program().node(c.node).dtype {
            crate::tensor::DType::Float => written(x, format, self.trace),
            _ => format!("{x}"),
        }
    }

    /// The line of `cell`, whose name (such as `score1[0][1]`) is `name`. `names` gives the names of other cells.
    pub fn line(&self, name: &str, cell: Cell, style: &Style, names: &dyn Fn(Cell) -> Option<String>) -> Line {
        let value = self.value(cell);
        let arithmetic = self.arithmetic(cell);
        let mut spans = vec![text(format!("{name} = "))];
        let node = self.program().node(cell.node);
        let result = self.number(cell, style.number);
        match self.origin(&arithmetic) {
            // A number that was only moved: say from where.
            Some(Moved::From(from)) => {
                if let Some(from_name) = names(from).filter(|n| n != name) {
                    spans.push(Span { text: from_name, cell: Some(from) });
                    spans.push(text(" = "));
                }
                spans.push(Span { text: result, cell: Some(from) });
            }
            Some(Moved::Given) => {
                spans.push(text(result));
                let edited = self.trace.held().get(cell).is_some();
                let edited = edited.then(|| tr(self.lang, "explain.edited").to_owned());
                if let Some(why) = edited.or_else(|| self.why_masked(cell)) {
                    spans.push(text(format!(" ({why})")));
                }
            }
            None => {
                let piece = self.piece(cell, true, style);
                spans.extend(piece.spans);
                let masked = matches!(arithmetic, Arithmetic::Masked { mask, .. } if self.value(mask) != 0.0);
                let hidden = value < MASKED_BELOW && *node.name.last() == Role::MaskedScores;
                spans.push(text(if masked && value == f64::NEG_INFINITY {
                    String::new()
                } else if hidden {
                    " ≈ -∞".to_owned()
                } else {
                    format!(" = {result}")
                }));
            }
        }
        Line { spans, value }
    }

    /// Where a number that is not computed here comes from, looking through inline moves.
    fn origin(&self, arithmetic: &Arithmetic) -> Option<Moved> {
        match arithmetic {
            Arithmetic::Given => Some(Moved::Given),
            Arithmetic::Copy(from) => {
                if !self.program().node(from.node).inline {
                    return Some(Moved::From(*from));
                }
                match self.origin(&self.arithmetic(*from))? {
                    Moved::Given => Some(Moved::From(*from)),
                    Moved::From(from) => Some(Moved::From(from)),
                }
            }
            // One number put into zeros, or none.
            Arithmetic::Scatter(base, terms) if terms.len() < 2 && self.is_zero_leaf(*base) => {
                Some(terms.first().map_or(Moved::Given, |t| Moved::From(*t)))
            }
            _ => None,
        }
    }

    /// The cells whose numbers are in the line of `cell`, without writing it.
    pub fn reads(&self, cell: Cell) -> Vec<Cell> {
        let mut out = Vec::new();
        let mut open: Vec<Cell> = self.arithmetic(cell).operands();
        open.reverse();
        while let Some(c) = open.pop() {
            if !self.program().node(c.node).inline {
                out.push(c);
                continue;
            }
            let mut inner = self.arithmetic(c).operands();
            if inner.is_empty() {
                out.push(c);
            }
            inner.reverse();
            open.append(&mut inner);
        }
        out
    }

    /// Whether a cell is a zero that was given, where a gradient begins to be summed.
    fn is_zero_leaf(&self, c: Cell) -> bool {
        matches!(self.program().node(c.node).op, Op::Leaf(_)) && self.value(c) == 0.0
    }

    fn shown(&self, c: Cell, style: &Style) -> Piece {
        let span = Span { text: self.number(c, style.number), cell: Some(c) };
        Piece { spans: vec![span], binds: Binds::Atom }
    }

    fn piece(&self, c: Cell, root: bool, style: &Style) -> Piece {
        let node = self.program().node(c.node);
        if !root && !node.inline {
            return self.shown(c, style);
        }
        let inner = |c: Cell| self.piece(c, false, style);
        if let Some(smaller) = self.smaller(c, style) {
            return smaller;
        }
        match self.arithmetic(c) {
            Arithmetic::Given => self.shown(c, style),
            Arithmetic::Copy(from) => inner(from),
            Arithmetic::Unary(f, x) => unary(f, inner(x)),
            Arithmetic::Affine(f, x) => self.affine(f, x, c.node, inner(x), style),
            Arithmetic::Binary(f, a, b) => self.binary(f, a, b, style),
            Arithmetic::Dot(a, b) => {
                let terms = a.cells().zip(b.cells()).collect::<Vec<_>>();
                Self::sum(&terms, style, |(a, b)| {
                    Piece::join(inner(a).inside(Binds::Product), "×", inner(b).inside(Binds::Product), Binds::Product)
                })
            }
            Arithmetic::Fold(kind, line) => {
                let cells: Vec<Cell> = line.cells().collect();
                match kind {
                    Reduction::Sum => Self::sum(&cells, style, |c| inner(c).signed_term()),
                    Reduction::Mean => {
                        let sum = Self::sum(&cells, style, |c| inner(c).signed_term());
                        let n = Piece::atom(line.len.to_string());
                        Piece::join(sum.bracketed(), "/", n, Binds::Product)
                    }
                    Reduction::Max => Piece::call("max", self.list(&cells, style)),
                }
            }
            Arithmetic::Running(line) => {
                let cells: Vec<Cell> = line.cells().collect();
                Self::sum(&cells, style, |c| inner(c).signed_term())
            }
            Arithmetic::Masked { x, mask, fill } => {
                if self.value(mask) == 0.0 {
                    return inner(x);
                }
                let fill = if fill == f64::NEG_INFINITY || fill == f64::MIN { "-∞".to_owned() } else { short(fill) };
                let why = self.why_masked(mask).unwrap_or_default();
                let mut spans = vec![text(format!("mask({why}): "))];
                spans.extend(inner(x).spans);
                spans.push(text(format!(" → {fill}")));
                Piece { spans, binds: Binds::Sum }
            }
            Arithmetic::Scatter(base, terms) => {
                // A base of zeros is where a gradient begins to be summed: only the terms are written.
                let zero = self.is_zero_leaf(base);
                // Softmax minus one-hot: a given −1 is taken off.
                if let [one] = terms[..]
                    && !zero
                    && matches!(self.program().node(one.node).op, Op::Leaf(_))
                    && self.value(one) < 0.0
                {
                    let less = Piece::atom(constant(-self.value(one), style));
                    return Piece::join(inner(base), " - ", less, Binds::Sum);
                }
                let cells: Vec<Cell> = (!zero || terms.is_empty()).then_some(base).into_iter().chain(terms).collect();
                Self::sum(&cells, style, |c| inner(c).signed_term())
            }
            Arithmetic::ArgMax(line) => Piece::call("argmax", self.list(&line.cells().collect::<Vec<_>>(), style)),
            Arithmetic::ArgSort(line, rank) => {
                let all = self.list(&line.cells().collect::<Vec<_>>(), style);
                Piece::call("argsort", Piece::join(all, "; ", Piece::atom((rank + 1).to_string()), Binds::Sum))
            }
            Arithmetic::Sample(line, drawn) => {
                let all = self.list(&line.cells().collect::<Vec<_>>(), style);
                Piece::call("first", Piece::join(all, " > ", inner(drawn), Binds::Sum))
            }
        }
    }

    fn sum<X: Copy>(terms: &[X], style: &Style, piece: impl Fn(X) -> Piece) -> Piece {
        let mut spans = Vec::new();
        let short = terms.len() > style.most_terms.max(3);
        let tail = usize::from(short);
        let head = if short { style.most_terms.max(3) - 1 } else { terms.len() };
        let shown = terms[..head].iter().chain(&terms[terms.len() - tail..]);
        for (i, &x) in shown.enumerate() {
            if i > 0 {
                spans.push(text(" + "));
            }
            if short && i == head {
                spans.push(text(format!("…({})… + ", terms.len() - head - tail)));
            }
            spans.extend(piece(x).spans);
        }
        Piece { spans, binds: if terms.len() > 1 { Binds::Sum } else { Binds::Product } }
    }

    fn list(&self, cells: &[Cell], style: &Style) -> Piece {
        let short = cells.len() > style.most_terms.max(3);
        let head = if short { style.most_terms.max(3) - 1 } else { cells.len() };
        let mut spans = Vec::new();
        for (i, &c) in cells[..head].iter().enumerate() {
            if i > 0 {
                spans.push(text(", "));
            }
            spans.extend(self.piece(c, false, style).spans);
        }
        if short {
            spans.push(text(format!(", …({})…", cells.len() - head)));
        }
        Piece { spans, binds: Binds::Sum }
    }

    fn affine(&self, f: Affine, x: Cell, node: NodeId, inner: Piece, style: &Style) -> Piece {
        let program = self.program();
        let in_norm = || {
            program.enclosing(node, |k| matches!(k, ScopeKind::LayerNorm { .. } | ScopeKind::RmsNorm { .. })).is_some()
        };
        match f {
            Affine::Add(_) if in_norm() => Piece::join(inner.inside(Binds::Product), "+", Piece::atom("ε"), Binds::Sum),
            Affine::Add(c) => Piece::join(inner, " + ", Piece::atom(constant(c, style)).signed(), Binds::Sum),
            // A number that is scaled is in brackets, as in (1.5829)/1.4142.
            Affine::Mul(c) => {
                let inner = if program.node(x.node).inline { inner.inside(Binds::Atom) } else { inner.bracketed() };
                Piece::join(inner, "×", Piece::atom(constant(c, style)), Binds::Product)
            }
            Affine::Div(c) => {
                let inner = if program.node(x.node).inline { inner.inside(Binds::Atom) } else { inner.bracketed() };
                Piece::join(inner, "/", Piece::atom(constant(c, style)), Binds::Product)
            }
        }
    }

    /// min(a, b), which a program has as −max(−a, −b).
    fn smaller(&self, c: Cell, style: &Style) -> Option<Piece> {
        let program = self.program();
        let negated = |c: Cell| match self.arithmetic(c) {
            _ if !program.node(c.node).inline => None,
            Arithmetic::Unary(Unary::Neg, x) => Some(self.piece(x, false, style)),
            Arithmetic::Given => Some(Piece::atom(constant(-self.value(c), style))),
            _ => None,
        };
        let Arithmetic::Unary(Unary::Neg, larger) = self.arithmetic(c) else {
            return None;
        };
        let inline = program.node(larger.node).inline;
        match self.arithmetic(larger) {
            Arithmetic::Binary(Binary::Max, a, b) if inline => {
                let both = Piece::join(negated(a)?, ", ", negated(b)?, Binds::Sum);
                Some(Piece::call("min", both))
            }
            _ => None,
        }
    }

    fn binary(&self, f: Binary, a: Cell, b: Cell, style: &Style) -> Piece {
        let inner = |c: Cell| self.piece(c, false, style);
        let program = self.program();
        let zero = |c: Cell| self.value(c) == 0.0;
        let right = program.node(b.node);
        match f {
            // Nothing is added where the mask lets a score through, nothing subtracted where exp is safe.
            Binary::Add if matches!(right.name.last(), Role::MaskBias | Role::Step(Step::MaskBiasRow)) && zero(b) => {
                inner(a)
            }
            Binary::Sub if matches!(right.op, Op::Unary(Unary::SoftmaxShift)) && zero(b) => inner(a),
            Binary::Add => Piece::join(inner(a), " + ", inner(b).signed_right(), Binds::Sum),
            Binary::Sub => Piece::join(inner(a), " - ", inner(b).inside(Binds::Product).signed(), Binds::Sum),
            Binary::LnOr if self.value(a) < self.smallest_normal() => inner(b),
            Binary::LnOr => unary(Unary::Ln, inner(a)),
            Binary::Mul | Binary::MulOrZero => {
                Piece::join(inner(a).inside(Binds::Product), "×", inner(b).inside(Binds::Product), Binds::Product)
            }
            Binary::Div | Binary::DivOrZero => {
                Piece::join(inner(a).inside(Binds::Product), "/", inner(b).inside(Binds::Atom), Binds::Product)
            }
            Binary::Max => Piece::call("max", Piece::join(inner(a), ", ", inner(b), Binds::Sum)),
        }
    }
}

enum Moved {
    From(Cell),
    Given,
}
