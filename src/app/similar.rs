//! How alike the positions of an encoding are.

use crate::trace::AnyValue;
use crate::trace::stats::Window;

/// Most positions that are compared with each other; of more, some at equal distances.
pub const COMPARED: usize = 256;

/// How alike positions are: p·p′ of each two of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Similar {
    /// Which positions were compared.
    pub positions: Vec<usize>,
    /// Row after row.
    pub products: Vec<f64>,
}

impl Similar {
    /// Of the rows of a table, and of a second one of the same shape next to it (rotary: cosines and sines).
    pub fn read(value: &AnyValue, window: Window, beside: Option<&AnyValue>) -> Self {
        let n = window.rows.min(COMPARED);
        let positions: Vec<usize> = (0..n).map(|i| i * window.rows / n.max(1)).collect();
        let of = |v: &AnyValue, a: usize, b: usize| -> f64 {
            (0..window.cols).map(|c| v.get(window.flat(a, c)) * v.get(window.flat(b, c))).sum()
        };
        let product = |a: usize, b: usize| of(value, a, b) + beside.map_or(0.0, |v| of(v, a, b));
        let pairs = positions.iter().flat_map(|a| positions.iter().map(move |b| (*a, *b)));
        Self { products: pairs.map(|(a, b)| product(a, b)).collect(), positions }
    }

    /// The product of the `i`th and the `j`th of them.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.products[i * self.positions.len() + j]
    }
}
