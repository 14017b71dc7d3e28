//! Padding by perturbation: what stands in padding is changed, and nothing real may change with it. Masks are not
//! trusted; what is computed is looked at.

use super::{Look, Padding, is_derived, without_call};
use crate::debug::causality::{before_softmax, mask_near};
use crate::program::NodeId;
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::{Axis, Real, Shape, Value};
use crate::trace::Edit;
use crate::trace::derive::Cell;

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    // Gradients and updates have the forward pass of the run before them.
    if look.facts.from > 0 {
        return;
    }
    side(look, "embed.source.out", &look.facts.source, true);
    side(look, "embed.target.out", &look.facts.target, false);
}

fn side<T: Real>(look: &mut Look<'_, T>, path: &str, padding: &Padding, is_source: bool) {
    let Some(embedded) = look.program.find(path).filter(|id| look.fresh(*id)) else {
        return;
    };
    let shape = look.program.node(embedded).shape;
    let dims = shape.dims();
    if !padding.any() || dims.len() != 3 || dims[1] != padding.tokens() {
        return;
    }
    let old = look.trace.value(embedded);
    let edits: Vec<Edit> = (0..shape.len())
        .filter(|flat| {
            let at = shape.unflat(*flat);
            padding.at(at[0], at[1])
        })
        .map(|flat| Edit {
            cell: Cell { node: embedded, flat },
            // Unlike numbers: a norm would take one offset for all away again.
            value: old.get(flat) + 1.0 + (flat % 3) as f64,
        })
        .collect();
    let (other, nodes) = look.trace.changed_nodes(&edits);
    for id in nodes.into_iter().filter(|id| *id != embedded) {
        let leak = leak(look, id, &other.value(id), padding, is_source);
        let Some((flat, count)) = leak else {
            continue;
        };
        let mask = mask_near(look.program, id).unwrap_or_else(|| "—".to_owned());
        let args = [("mask", mask), ("embedded", path.to_owned())];
        let kind = (Lint::PaddingLeak, Severity::Error);
        let value = look.trace.value(id).get(flat);
        look.tell(kind, (id, Some(flat)), (value, count), &args);
        // What comes after carries it on.
        return;
    }
}

/// The first cell of a real row that changed, and how many did.
fn leak<T: Real>(
    look: &Look<'_, T>,
    id: NodeId,
    after: &Value<T>,
    padding: &Padding,
    is_source: bool,
) -> Option<(usize, usize)> {
    let node = look.program.node(id);
    if is_derived(&node.path) {
        return None;
    }
    let before = look.trace.value(id);
    let rows = Rows::of(&node.path, &node.shape, padding, is_source);
    let mut changed = (0..node.shape.len())
        .filter(|i| before.bits(*i) != after.bits(*i))
        .filter(|i| rows.is_real(&node.shape.unflat(*i), padding));
    let first = changed.next()?;
    Some((first, 1 + changed.count()))
}

/// Which axes of a node hold the padded sequence.
struct Rows {
    batch: Option<usize>,
    /// The axis along which a padded row may change.
    row: Option<usize>,
    /// The axis of keys, where scores at padded keys may change.
    key: Option<usize>,
}

impl Rows {
    fn of(path: &str, shape: &Shape, padding: &Padding, is_source: bool) -> Self {
        let path = without_call(path);
        let dims = shape.dims();
        let long = |d: &usize| dims[*d] == padding.tokens();
        let named = |d: &usize, names: &[Axis]| names.contains(&shape.axes()[*d]);
        let axis = |names: &[Axis]| (0..dims.len()).find(|d| long(d) && named(d, names));
        let batch = (dims.first() == Some(&1) || named_batch(shape)).then_some(0);
        let cross = path.contains("cross_attn");
        // In cross-attention the source's rows are those of keys and values.
        let from_source = cross && {
            let of_key = |part: &str| {
                // Of a grouped product, `_right` is what keys or values were reshaped to.
                matches!(part, "k" | "v")
                    || part.starts_with("k_")
                    || part.starts_with("v_")
                    || part.ends_with("_right")
            };
            path.split('.').any(of_key)
        };
        let own = if is_source {
            !path.starts_with("decoder") || from_source
        } else {
            !path.starts_with("encoder") && !from_source
        };
        let row = axis(&[Axis::Query, Axis::Token]).filter(|_| own);
        let asked = !cross || is_source;
        let after_row = row.map_or(0, |d| d + 1);
        let key = (after_row..dims.len())
            .find(|d| long(d) && named(d, &[Axis::Key, Axis::Token]))
            .filter(|_| asked && before_softmax(path));
        Self { batch, row, key }
    }

    fn is_real(&self, at: &[usize], padding: &Padding) -> bool {
        let batch = self.batch.map_or(0, |d| at[d]);
        let padded = |d: Option<usize>| d.is_some_and(|d| padding.at(batch, at[d]));
        !padded(self.row) && !padded(self.key)
    }
}

fn named_batch(shape: &Shape) -> bool {
    shape.axes().first() == Some(&Axis::Batch)
}
