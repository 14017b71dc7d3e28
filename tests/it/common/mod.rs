//! What several tests share.

pub mod finite;
pub mod front;
pub mod lints;
#[cfg(all(unix, feature = "tui"))]
pub mod pty;
pub mod reference;
pub mod tiny;
pub mod water_class;

use tui_transformer::program::{Leaf, Op, Program};

/// The rows of a program's masks in which every key is hidden, by their index without the axis of keys.
pub fn fully_masked(program: &Program) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    for (_, node) in program.nodes() {
        let Op::Leaf(Leaf::Mask(mask)) = &node.op else { continue };
        let (shape, keys) = (node.shape, *node.shape.dims().last().expect("an axis of keys"));
        let rows = mask.reasons.chunks_exact(keys).enumerate().filter(|(_, row)| row.iter().all(|bits| *bits != 0));
        found.extend(rows.map(|(row, _)| shape.unflat(row * keys)[..shape.rank() - 1].to_vec()));
    }
    found
}
