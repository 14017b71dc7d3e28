//! Parts of a written line, and where they need brackets.

use super::span::{Span, Style};
use crate::program::Unary;
use crate::text::NumberFormat;
use crate::trace::AnyTrace;

/// How tightly a piece binds: sums are put in brackets inside products, and so on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binds {
    Sum,
    Product,
    Atom,
}

/// A part of a line, and how it binds.
pub(super) struct Piece {
    pub(super) spans: Vec<Span>,
    pub(super) binds: Binds,
}

impl Piece {
    /// As a term of a written sum: a term that is itself a sum is in brackets.
    pub(super) fn signed_term(self) -> Self {
        self.inside(Binds::Product)
    }

    pub(super) fn atom(text: impl Into<String>) -> Self {
        Self { spans: vec![Span { text: text.into(), cell: None }], binds: Binds::Atom }
    }

    pub(super) fn bracketed(mut self) -> Self {
        self.spans.insert(0, text("("));
        self.spans.push(text(")"));
        self.binds = Binds::Atom;
        self
    }

    pub(super) fn inside(self, at_least: Binds) -> Self {
        if self.binds < at_least { self.bracketed() } else { self }
    }

    pub(super) fn call(name: &str, inner: Piece) -> Self {
        let mut spans = vec![text(format!("{name}("))];
        spans.extend(inner.spans);
        spans.push(text(")"));
        Self { spans, binds: Binds::Atom }
    }

    pub(super) fn join(left: Piece, sign: &str, right: Piece, binds: Binds) -> Self {
        let mut spans = left.spans;
        spans.push(text(sign));
        spans.extend(right.spans);
        Self { spans, binds }
    }

    /// Whether the text begins with a minus sign.
    fn is_negative(&self) -> bool {
        self.spans.first().is_some_and(|s| s.text.starts_with('-'))
    }

    /// As the right side of a plus: a negative number in brackets, a whole sum with only its first number so.
    pub(super) fn signed_right(mut self) -> Self {
        if self.binds != Binds::Sum || !self.is_negative() || self.spans[0].cell.is_none() {
            return self.signed();
        }
        self.spans.insert(0, text("("));
        self.spans.insert(2, text(")"));
        self
    }

    pub(super) fn signed(self) -> Self {
        if self.is_negative() { self.bracketed() } else { self }
    }
}

pub(super) fn text(t: impl Into<String>) -> Span {
    Span { text: t.into(), cell: None }
}

pub(super) fn unary(f: Unary, x: Piece) -> Piece {
    match f {
        Unary::Neg => {
            let mut piece = x.inside(Binds::Product).signed();
            piece.spans.insert(0, text("-"));
            piece.binds = Binds::Product;
            piece
        }
        Unary::Square => {
            let mut piece = x.inside(Binds::Atom).signed();
            piece.spans.push(text("²"));
            piece.binds = Binds::Atom;
            piece
        }
        Unary::Sqrt => {
            // √(1.0933+ε) but √1.0933.
            let mut piece = x.inside(Binds::Atom);
            piece.spans.insert(0, text("√"));
            piece
        }
        Unary::Abs => {
            let mut spans = vec![text("|")];
            spans.extend(x.spans);
            spans.push(text("|"));
            Piece { spans, binds: Binds::Atom }
        }
        Unary::Relu => {
            let mut spans = vec![text("max(0, ")];
            spans.extend(x.spans);
            spans.push(text(")"));
            Piece { spans, binds: Binds::Atom }
        }
        Unary::Sigmoid => Piece::call("σ", x),
        Unary::Step => {
            let mut spans = vec![text("[")];
            spans.extend(x.spans);
            spans.push(text(" > 0]"));
            Piece { spans, binds: Binds::Atom }
        }
        f => Piece::call(f.name(), x),
    }
}

pub(super) fn constant(c: f64, style: &Style) -> String {
    let text = style.number.format(c);
    // A constant too small for the chosen precision must not read as 0.
    if c != 0.0 && style.number.format(0.0) == text { short(c) } else { text }
}

/// The shortest exact form, such as `-1e9`.
pub(super) fn short(x: f64) -> String {
    let (plain, exponent) = (format!("{x}"), format!("{x:e}"));
    if exponent.len() < plain.len() { exponent } else { plain }
}

/// A number as a user writes it: large round ones in powers of ten.
pub(super) fn written(x: f64, format: NumberFormat, trace: &AnyTrace) -> String {
    if x.is_finite() && x.abs() >= 1e7 && matches!(format, NumberFormat::Decimals(_)) {
        return short(x);
    }
    let text = match trace {
        AnyTrace::F32(_) => format.format_f32(x as f32),
        AnyTrace::F64(_) => format.format(x),
    };
    // In a line, a small number that read as 0 would make it false: 0/0.001 = 0.008.
    if x != 0.0 && text == "0" {
        return NumberFormat::Scientific(1).format(x);
    }
    text
}
