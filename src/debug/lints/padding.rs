//! Padding by perturbation: what is in padding is changed, and nothing real may change with it. Masks are not
//! trusted; what is computed is looked at.

use super::{Look, Padding};
use crate::debug::causality::{before_softmax, mask_near};
use crate::program::{Block, Name, NodeId, Role, Side, Site, Stack};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::{Axis, Real, Shape, Value};
use crate::trace::Edit;
use crate::trace::derive::Cell;

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    // Gradients and updates have the forward pass of the run before them.
    if look.facts.from > 0 {
        return;
    }
    side(look, Side::Source, &look.facts.source);
    side(look, Side::Target, &look.facts.target);
}

fn side<T: Real>(look: &mut Look<'_, T>, of: Side, padding: &Padding) {
    let name = Name::of(Site::Embedding(Some(of))).then(Role::Out);
    let Some(embedded) = look.program.named(&name).filter(|id| look.fresh(*id)) else {
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
        let leak = leak(look, id, &other.value(id), padding, of);
        let Some((flat, count)) = leak else {
            continue;
        };
        let mask = mask_near(look.program, id).unwrap_or_else(|| "—".to_owned());
        let args = [("mask", mask), ("embedded", name.to_string())];
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
    of: Side,
) -> Option<(usize, usize)> {
    let node = look.program.node(id);
    if node.name.is_derived() {
        return None;
    }
    let before = look.trace.value(id);
    let rows = Rows::of(&node.name, &node.shape, padding, of);
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
    fn of(name: &Name, shape: &Shape, padding: &Padding, of: Side) -> Self {
        let dims = shape.dims();
        let long = |d: &usize| dims[*d] == padding.tokens();
        let named = |d: &usize, names: &[Axis]| names.contains(&shape.axes()[*d]);
        let axis = |names: &[Axis]| (0..dims.len()).find(|d| long(d) && named(d, names));
        let batch = (dims.first() == Some(&1) || named_batch(shape)).then_some(0);
        let cross = name.site.block() == Some(Block::CrossAttention);
        // In cross-attention the source's rows are those of keys and values.
        let from_source = cross && name.roles().any(Role::of_keys);
        let own = match of {
            Side::Source => name.site.stack() != Some(Stack::Decoder) || from_source,
            Side::Target => name.site.stack() != Some(Stack::Encoder) && !from_source,
        };
        let row = axis(&[Axis::Query, Axis::Token]).filter(|_| own);
        let asked = !cross || of == Side::Source;
        let after_row = row.map_or(0, |d| d + 1);
        let key = (after_row..dims.len())
            .find(|d| long(d) && named(d, &[Axis::Key, Axis::Token]))
            .filter(|_| asked && before_softmax(name));
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
