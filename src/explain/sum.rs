//! Long sums: the terms of a cell that is a sum, so that the largest can be shown and the rest counted.

use super::line::Explainer;
use crate::program::{Binary, NodeId, Reduction};
use crate::trace::derive::{Arithmetic, Cell};

/// A term of a sum: one cell, or a product of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The cell, or the left factor.
    pub cell: Cell,
    /// The right factor.
    pub times: Option<Cell>,
    /// Its value.
    pub value: f64,
}

/// A cell that is a sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    /// Its terms, in order of computation.
    pub terms: Vec<Term>,
    /// What is divided by at the end: the number of terms, for a mean.
    pub divided: Option<usize>,
    /// The recorded value of the cell.
    pub value: f64,
}

/// The largest terms of a sum, and what is left of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Top {
    /// Positions of the largest terms by magnitude, largest first.
    pub order: Vec<usize>,
    /// Their share of the magnitudes of all terms, 0 to 1.
    pub share: f64,
    /// How many others there are.
    pub others: usize,
    /// What the others add up to.
    pub rest: f64,
}

impl Sum {
    /// The `k` largest terms.
    pub fn top(&self, k: usize) -> Top {
        let mut order: Vec<usize> = (0..self.terms.len()).collect();
        let size = |i: &usize| self.terms[*i].value.abs();
        order.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.cmp(b)));
        let rest: f64 = order.iter().skip(k).map(|i| self.terms[*i].value).sum();
        let others = order.len().saturating_sub(k);
        order.truncate(k);
        let all: f64 = self.terms.iter().map(|t| t.value.abs()).filter(|x| x.is_finite()).sum();
        let top: f64 = order.iter().map(size).filter(|x| x.is_finite()).sum();
        Top { order, share: if all > 0.0 { top / all } else { 1.0 }, others, rest }
    }
}

impl Explainer<'_> {
    /// The terms of `cell`, where it is a sum (behind what only moves numbers): a product of matrices with its bias, a
    /// sum or a mean over an axis, a gradient that is added up.
    pub fn sum_of(&self, cell: Cell) -> Option<Sum> {
        let mut terms = Vec::new();
        let mut divided = None;
        self.collect(cell, true, &mut terms, &mut divided)?;
        (terms.len() > 1).then(|| Sum { terms, divided, value: self.value(cell) })
    }

    fn collect(&self, cell: Cell, root: bool, terms: &mut Vec<Term>, divided: &mut Option<usize>) -> Option<()> {
        if !root && !self.is_inline(cell.node) {
            terms.push(Term { cell, times: None, value: self.value(cell) });
            return Some(());
        }
        match self.arithmetic(cell) {
            Arithmetic::Copy(from) if self.is_inline(from.node) => self.collect(from, root, terms, divided),
            Arithmetic::Dot(a, b) => {
                let products = a.cells().zip(b.cells());
                terms.extend(products.map(|(a, b)| {
                    let value = self.value(a) * self.value(b);
                    Term { cell: a, times: Some(b), value }
                }));
                Some(())
            }
            Arithmetic::Fold(kind @ (Reduction::Sum | Reduction::Mean), line) if root => {
                if kind == Reduction::Mean {
                    *divided = Some(line.len);
                }
                terms.extend(line.cells().map(|c| Term { cell: c, times: None, value: self.value(c) }));
                Some(())
            }
            Arithmetic::Running(line) if root => {
                terms.extend(line.cells().map(|c| Term { cell: c, times: None, value: self.value(c) }));
                Some(())
            }
            Arithmetic::Scatter(base, more) if root => {
                let all = std::iter::once(base).chain(more).filter(|c| self.value(*c) != 0.0 || *c != base);
                terms.extend(all.map(|c| Term { cell: c, times: None, value: self.value(c) }));
                Some(())
            }
            Arithmetic::Binary(Binary::Add, a, b) => {
                self.collect(a, false, terms, divided)?;
                self.collect(b, false, terms, divided)
            }
            _ if root => None,
            _ => {
                terms.push(Term { cell, times: None, value: self.value(cell) });
                Some(())
            }
        }
    }

    fn is_inline(&self, node: NodeId) -> bool {
        self.trace().program().node(node).inline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::NodeId;

    #[test]
    fn the_largest_terms_and_the_rest_are_the_whole_sum() {
        let values = [0.5, -2.0, 0.25, 1.0, -0.125];
        let cell = |flat| Cell { node: NodeId(0), flat };
        let terms = values.iter().enumerate().map(|(i, v)| Term { cell: cell(i), times: None, value: *v }).collect();
        let sum = Sum { terms, divided: None, value: values.iter().sum() };
        let top = sum.top(2);
        assert_eq!((top.order, top.others, top.rest), (vec![1, 3], 3, 0.625));
        assert!((top.share - 3.0 / 3.875).abs() < 1e-12);
        assert_eq!(sum.top(9).others, 0);
    }
}
