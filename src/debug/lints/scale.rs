//! Scores are divided by the root of the width of their own queries.

use super::attention::Attention;
use super::{Look, brief};
use crate::program::{NodeId, Op};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::Real;

/// Relative difference of a scale that is still the same.
const SAME: f64 = 1e-4;

pub(super) fn look<T: Real>(look: &mut Look<'_, T>, attentions: &[Attention]) {
    for a in attentions.iter().filter(|a| a.softmax && a.width > 0) {
        let wanted = 1.0 / (a.width as f64).sqrt();
        if near(a.scale, wanted) {
            continue;
        }
        let looks_like = if near(a.scale, 1.0) {
            "1".to_owned()
        } else {
            match read_width(look, a.q) {
                Some(d) if near(a.scale, 1.0 / (d as f64).sqrt()) => format!("1/√{d}"),
                _ if near(a.scale, 1.0 / a.width as f64) => format!("1/{}", a.width),
                _ if near(a.scale, (a.width as f64).sqrt()) => format!("√{}", a.width),
                _ => brief(a.scale),
            }
        };
        let args = [("found", looks_like), ("width", a.width.to_string()), ("wanted", brief(wanted))];
        let kind = (Lint::AttentionScale, Severity::Warning);
        look.tell(kind, (a.scaled, None), (a.scale, 1), &args);
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * b.abs()
}

/// Width of what queries are projected from, such as `d_model`.
fn read_width<T: Real>(look: &Look<'_, T>, mut q: NodeId) -> Option<usize> {
    loop {
        let node = look.program.node(q);
        if let Op::MatMul { .. } = node.op {
            return look.program.node(node.inputs[0]).shape.dims().last().copied();
        }
        q = *node.inputs.first()?;
    }
}
