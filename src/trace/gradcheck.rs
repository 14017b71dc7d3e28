//! Gradients against central differences, by what-if: (loss(x + h) − loss(x − h)) / 2h. The differences are taken in
//! f64, whatever type the gradients have: in f32 so little of a loss changes that rounding drowns it.

use super::Trace;
use super::derive::Cell;
use super::whatif::Edit;
use crate::program::{Gradients, NodeId};
use crate::tensor::Real;

/// One compared cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Row-major position in the forward node.
    pub flat: usize,
    /// The recorded gradient.
    pub gradient: f64,
    /// The central difference.
    pub difference: f64,
}

impl Compared {
    /// How far apart they are, relative to the larger of `scale` and the gradient itself.
    pub fn error(&self, scale: f64) -> f64 {
        let size = self.gradient.abs().max(scale);
        if size > 0.0 {
            (self.gradient - self.difference).abs() / size
        } else {
            (self.gradient - self.difference).abs()
        }
    }
}

/// What comparing one node's gradient found.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The forward node.
    pub node: NodeId,
    /// Cells compared, in order.
    pub cells: Vec<Compared>,
    /// Largest gradient of the node.
    pub largest: f64,
}

impl Checked {
    /// The cell whose gradient is farthest from its difference, relative to the node's largest gradient, or to
    /// `floor` where that is larger: a gradient that is nothing but rounding has no digits to compare.
    pub fn worst(&self, floor: f64) -> Option<(Compared, f64)> {
        let scale = self.largest.max(floor);
        self.cells.iter().map(|&c| (c, c.error(scale))).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Compares the gradient of `node` in at most `most` of its cells, evenly spread, moving each by `h` either way in
/// `exact`: a run in f64 of the same values, as far as the loss. `None` where the loss does not depend on the node.
pub fn check<T: Real>(
    trace: &Trace<T>,
    exact: &Trace<f64>,
    gradients: &Gradients,
    node: NodeId,
    h: f64,
    most: usize,
) -> Option<Checked> {
    let grad = trace.get(gradients.of(node)?)?;
    let value = exact.get(node)?;
    let n = value.shape().len();
    let loss_at = |flat: usize, x: f64| {
        let cell = Cell { node, flat };
        let edited = exact.what_if(&[Edit { cell, value: x }]);
        edited.value(gradients.loss).get(0)
    };
    let count = most.min(n);
    let cells = (0..count)
        .map(|i| {
            let flat = i * n / count;
            // The distance is the one really moved: x ± h is rounded.
            let [up, down] = [h, -h].map(|h| value.get(flat) + h);
            Compared {
                flat,
                gradient: grad.get(flat),
                difference: (loss_at(flat, up) - loss_at(flat, down)) / (up - down),
            }
        })
        .collect();
    let largest = (0..n).fold(0.0, |m: f64, i| m.max(grad.get(i).abs()));
    Some(Checked { node, cells, largest })
}
