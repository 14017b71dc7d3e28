//! Which row of probabilities is shown.

use crate::app::navigator::Navigator;
use crate::program::{Name, NodeId, Role, Site};
use crate::tensor::Axis;

/// One row of a tensor of probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Run.
    pub run: usize,
    /// Node.
    pub node: NodeId,
    /// The row, counted over all rows of the tensor.
    pub row: usize,
    /// The probabilities.
    pub values: Vec<f64>,
}

impl Distribution {
    /// The row of the softmax one is at, else of the output.
    pub fn of(nav: &Navigator) -> Option<Self> {
        let (run, node, row) = row(nav)?;
        let width = nav.session.runs[run].program.node(node).shape.dims().last().copied().unwrap_or(1);
        let value = nav.trace(run)?.get(node)?;
        Some(Self { run, node, row, values: (0..width).map(|c| value.get(row * width + c)).collect() })
    }

    /// The last row of the same tensor in each decoding call, in their order; of a tensor of no call, none.
    pub fn calls(&self, nav: &Navigator) -> Vec<Self> {
        let program = &nav.session.runs[self.run].program;
        let name = &program.node(self.node).name;
        if name.call.is_none() {
            return Vec::new();
        }
        let of = |call: u32| {
            let node = program.named(&Name { call: Some(call), ..name.clone() })?;
            let shape = program.node(node).shape;
            let width = shape.dims().last().copied().unwrap_or(1).max(1);
            Some(Self { run: self.run, node, row: shape.len() / width - 1, values: Vec::new() })
        };
        (0..).map_while(of).collect()
    }

    /// The token of the row; with the head where there are several.
    pub fn token(&self, nav: &Navigator) -> String {
        let shape = nav.session.runs[self.run].program.node(self.node).shape;
        let Some(axis) = shape.rank().checked_sub(2) else {
            return self.row.to_string();
        };
        let width = shape.dims()[axis + 1];
        let at = shape.unflat(self.row * width);
        let place = |name: Axis| shape.axes().iter().position(|a| *a == name);
        let batch = place(Axis::Batch).map_or(0, |a| at[a]);
        let label = nav.session.axis_labels(self.run, self.node, axis, batch).get(at[axis]);
        let label = label.unwrap_or_else(|| at[axis].to_string());
        match place(Axis::Head).filter(|a| shape.dims()[*a] > 1) {
            Some(head) => format!("{label} · {} {}", Axis::Head.name(), at[head] + 1),
            None => label,
        }
    }
}

fn row(nav: &Navigator) -> Option<(usize, NodeId, usize)> {
    let view = nav.view()?;
    let program = &nav.session.runs[view.run].program;
    let name = &program.node(view.node).name;
    let row_of = |node: NodeId| {
        let width = program.node(node).shape.dims().last().copied().unwrap_or(1).max(1);
        match nav.cell() {
            Some((_, cell)) if cell.node == node => cell.flat / width,
            // The last position is where the next word comes from: of the sentence looked at.
            _ => {
                let shape = program.node(node).shape;
                let batches = shape.axes().iter().position(|a| *a == Axis::Batch).map_or(1, |d| shape.dims()[d]);
                let of_each = shape.len() / width / batches.max(1);
                of_each * (nav.batch().min(batches.saturating_sub(1)) + 1) - 1
            }
        }
    };
    if matches!(name.last(), Role::Weights | Role::Probs) {
        return Some((view.run, view.node, row_of(view.node)));
    }
    let probs = Name::of(Site::Output).then(Role::Probs);
    let calls = [name.call, None, Some(0)];
    let node = calls.into_iter().find_map(|call| program.named(&Name { call, ..probs.clone() }))?;
    Some((view.run, node, row_of(node)))
}
