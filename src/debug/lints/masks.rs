//! Masks and weights together: what is hidden must have no weight, what must be hidden must be, and nothing else.

use super::attention::{Attention, Sides};
use super::{Look, Padding};
use crate::program::{Leaf, NodeId, Op, reason};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::{Precision, Real, Shape, Tensor};

/// Weights up to this are none: exp(−100) in a softmax with a finite fill is 4e-44.
const NOTHING: f64 = 1e-12;

pub(super) fn look<T: Real>(look: &mut Look<'_, T>, attentions: &[Attention]) {
    for a in attentions {
        weights(look, a);
        for (id, mask) in &a.after {
            if mask.is_some() {
                let kind = (Lint::MaskAfterSoftmax, Severity::Error);
                look.tell(kind, (*id, None), (0.0, 1), &[]);
            }
        }
    }
    fills(look);
    // Layers may share a mask; each is looked at once.
    let mut seen = Vec::new();
    for a in attentions {
        if let Some(mask) = a.mask.filter(|m| !seen.contains(m)) {
            seen.push(mask);
            own_reasons(look, a, mask);
        }
    }
}

/// The largest number of IEEE 754 binary16.
const F16_MAX: f64 = 65504.0;

/// Fills that are numbers here and −∞ in half precision, in which models of f32 are run. The smallest number of the type
/// becomes that of the other type.
fn fills<T: Real>(look: &mut Look<'_, T>) {
    if !look.facts.is_f32 || T::PRECISION != Precision::F32 {
        return;
    }
    let beyond = |op: &Op| match op {
        Op::MaskFill { fill } if fill.is_finite() && *fill < -F16_MAX && *fill > f64::from(f32::MIN) => Some(*fill),
        _ => None,
    };
    let mut found = look.nodes().filter_map(|(id, node)| Some((id, beyond(&node.op)?)));
    let Some((id, fill)) = found.next() else { return };
    let count = 1 + found.count();
    look.tell((Lint::FillBeyondType, Severity::Warning), (id, None), (fill, count), &[]);
}

/// Whether `mask`, broadcast over `shape`, hides cell `flat`.
pub(super) fn hides(mask: &Tensor<bool>, shape: &Shape, flat: usize) -> bool {
    mask.data()[under(mask.shape(), shape, flat)]
}

/// The cell of `mask` that lies under cell `flat` of `shape`.
fn under(mask: &Shape, shape: &Shape, flat: usize) -> usize {
    let shift = shape.rank() - mask.rank().min(shape.rank());
    if shape.dims()[shift..] == *mask.dims() {
        return flat % mask.len().max(1);
    }
    let (at, strides) = (shape.unflat(flat), mask.strides());
    (0..mask.rank()).filter(|d| mask.dims()[*d] != 1).map(|d| at[d + shift] * strides[d]).sum()
}

/// Cells of one kind: how many, and the one with the largest weight.
#[derive(Default)]
struct Cells {
    count: usize,
    worst: Option<(usize, f64)>,
}

impl Cells {
    fn add(&mut self, flat: usize, weight: f64) {
        self.count += 1;
        if self.worst.is_none_or(|(_, w)| weight > w) {
            self.worst = Some((flat, weight));
        }
    }
}

/// What a lint knows of who looks at whom in an attention.
struct Scene<'f> {
    queries: usize,
    keys: usize,
    /// Later keys must not be seen.
    causal: bool,
    asking: Option<&'f Padding>,
    asked: Option<&'f Padding>,
}

impl<'f> Scene<'f> {
    fn of<T: Real>(look: &Look<'f, T>, a: &Attention) -> Self {
        let node = look.program.node(a.weights);
        let dims = node.shape.dims();
        let (queries, keys) = (dims[dims.len() - 2], dims[dims.len() - 1]);
        let facts = look.facts;
        let sides = a.sides(look.program);
        // Decoding calls read one sentence, or beams, without padding.
        let target = Some(&facts.target).filter(|_| node.name.call.is_none());
        let (asking, asked) = match sides {
            Sides::Encoder => (Some(&facts.source), Some(&facts.source)),
            Sides::Decoder => (target, target),
            Sides::Cross => (target, Some(&facts.source)),
            Sides::Other => (None, None),
        };
        let causal = match sides {
            Sides::Decoder => true,
            Sides::Encoder => facts.source_predicts,
            Sides::Cross | Sides::Other => false,
        };
        let known = |p: Option<&'f Padding>, n: usize| p.filter(|p| p.any() && p.tokens() == n);
        Self {
            queries,
            keys,
            causal: causal && keys >= queries,
            asking: known(asking, queries),
            asked: known(asked, keys),
        }
    }

    /// Sequence, query and key of a cell.
    fn place(&self, shape: &Shape, flat: usize) -> (usize, usize, usize) {
        let batch = if shape.rank() > 2 { shape.unflat(flat)[0] } else { 0 };
        (batch, flat / self.keys % self.queries, flat % self.keys)
    }

    /// Whether the key comes after the query; cached keys come before the first query.
    fn later(&self, query: usize, key: usize) -> bool {
        self.causal && key > query + (self.keys - self.queries)
    }
}

fn weights<T: Real>(look: &mut Look<'_, T>, a: &Attention) {
    let scene = Scene::of(look, a);
    let t = look.numbers(a.weights);
    let shape = *t.shape();
    if shape.is_empty() {
        return;
    }
    let hidden = a.mask.map(|m| look.trace.value(m));
    let hidden = hidden.as_ref().map(crate::tensor::Value::bool);
    let (mut masked, mut future, mut padded) = (Cells::default(), Cells::default(), Cells::default());
    let (mut empty, mut empty_padding) = (Cells::default(), Cells::default());
    for (row, cells) in t.data().chunks_exact(scene.keys).enumerate() {
        let start = row * scene.keys;
        let (batch, query, _) = scene.place(&shape, start);
        let padding = scene.asking.is_some_and(|p| p.at(batch, query));
        let hides = |key: usize| hidden.is_some_and(|m| hides(m, &shape, start + key));
        if (0..scene.keys).all(hides) {
            let kind = if padding { &mut empty_padding } else { &mut empty };
            kind.add(start, cells.iter().map(|x| x.to_f64()).sum());
            continue;
        }
        for (key, weight) in cells.iter().map(|x| x.to_f64()).enumerate() {
            if weight.is_nan() || weight.abs() <= NOTHING {
                continue;
            }
            if hides(key) {
                masked.add(start + key, weight);
            } else if scene.later(query, key) {
                future.add(start + key, weight);
            } else if !padding && scene.asked.is_some_and(|p| p.at(batch, key)) {
                padded.add(start + key, weight);
            }
        }
    }
    for (cells, lint, severity) in [
        (masked, Lint::MaskedWeight, Severity::Error),
        (future, Lint::FutureAttention, Severity::Error),
        (padded, Lint::PaddingAttention, Severity::Error),
        (empty, Lint::FullyMaskedRow, Severity::Warning),
        (empty_padding, Lint::FullyMaskedRow, Severity::Info),
    ] {
        if let Some((flat, weight)) = cells.worst {
            let (_, query, key) = scene.place(&shape, flat);
            let args = [("query", query.to_string()), ("key", key.to_string())];
            let place = (a.weights, Some(flat));
            look.tell((lint, severity), place, (weight, cells.count), &args);
        }
    }
}

/// Every hidden cell needs a reason that holds there: a later key, a padded one, one outside the window, or the
/// scenario's own mask.
fn own_reasons<T: Real>(look: &mut Look<'_, T>, a: &Attention, mask: NodeId) {
    let Op::Leaf(Leaf::Mask(leaf)) = &look.program.node(mask).op else {
        return;
    };
    let scene = Scene::of(look, a);
    let value = look.trace.value(mask);
    let hidden = value.bool();
    let shape = *hidden.shape();
    let dims = shape.dims();
    // A mask of one row for all queries says nothing of any one of them.
    if dims.len() < 2 || dims[dims.len() - 2] != scene.queries || dims[dims.len() - 1] != scene.keys {
        return;
    }
    let mut wrong = Cells::default();
    for (flat, reasons) in leaf.reasons.iter().enumerate().filter(|(i, _)| hidden.data()[*i]) {
        let (batch, query, key) = scene.place(&shape, flat);
        let holds = |bit: u8| match bit {
            // Where nothing says that the attention is causal, a causal mask is what makes it so.
            reason::CAUSAL => key > query + scene.keys.saturating_sub(scene.queries),
            reason::PADDING => scene.asked.is_none_or(|p| p.at(batch, key)),
            _ => true,
        };
        let bits = [reason::CAUSAL, reason::PADDING, reason::WINDOW, reason::GIVEN];
        if !bits.iter().any(|b| reasons & b != 0 && holds(*b)) {
            wrong.add(flat, 0.0);
        }
    }
    if let Some((flat, _)) = wrong.worst {
        let (_, query, key) = scene.place(&shape, flat);
        let args = [("query", query.to_string()), ("key", key.to_string())];
        let kind = (Lint::MaskTooStrict, Severity::Error);
        look.tell(kind, (mask, Some(flat)), (1.0, wrong.count), &args);
    }
}
