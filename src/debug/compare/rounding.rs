//! What a model in half precision makes of the operations between two of its recorded tensors.
//!
//! Whoever computes in bf16 or f16 rounds more than the result: PyTorch rounds what each of its kernels returns, and what
//! it has a kernel for (a linear layer, a norm, an activation, a softmax) is computed in binary32 inside. Other programs
//! fuse more, or write a norm out operation by operation. So each node is computed once for each [`Scheme`]; where one of
//! them explains the reference's numbers to the last digit that they have, nothing is left to be explained by rounding.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use super::measure::{CellPair, HIDDEN, Kind, MAX_CELLS, Sides, State, Unit};
use super::report::Checked;
use crate::program::{Leaf, NodeId, Op, Program, Role, ScopeKind};
use crate::tensor::{Pool, Tensor, Value};
use crate::trace::evaluate;

/// Multiple of the rounding that binary32 makes inside a kernel which is still taken for that.
const INSIDE: f64 = 8.0;

/// One in so many cells may lie beyond that, by so many spacings of the type's numbers: what was rounded on the way was
/// next to the middle between two of them.
const STRAY: (f64, f64) = (1.0 / 200.0, 1.01);

/// Where operations were written out, what is left of numbers that cancel moves by more spacings.
const STRAY_WRITTEN: f64 = 64.0;

/// Numbers on the way that were next to the middle move what is read from them by this share of what all rounding does, or
/// this share of the cells that it moves.
const ON_THE_WAY: (f64, f64) = (0.3, 0.1);

/// Of what other ways of rounding move, a share like this is moved by each of them: of what is fused in part, and of what
/// is written out in another order.
const ALIKE: [std::ops::RangeInclusive<f64>; 2] = [0.4..=1.5, 0.6..=1.5];

/// Fewer cells than this say nothing.
const FEW: usize = 64;

/// Nor fewer than this where something was rounded on the way.
const SPAN: usize = 256;

/// And they move them up to so many times as far.
const ALIKE_SIZE: f64 = 3.0;

/// Tensors that a reference must have explained, for its digits to say something of the others.
const ENOUGH: usize = 4;

/// What is rounded to the number type of the model before it is read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray)]
pub(super) enum Scheme {
    /// Only what is recorded.
    Fused,
    /// What a kernel of PyTorch returns.
    Kernels,
    /// The result of every operation.
    Each,
}

impl Scheme {
    pub(super) const ALL: &[Scheme] = <Self as strum::VariantArray>::VARIANTS;
}

/// Values of the run's nodes, computed by one scheme in binary64 and rounded.
pub(super) struct Rounded {
    scheme: Scheme,
    unit: Unit,
    stores: Arc<[bool]>,
    values: Vec<Option<Value<f64>>>,
    pool: Arc<Pool<f64>>,
}

impl Rounded {
    pub(super) fn new(program: &Program, scheme: Scheme, unit: Unit) -> Self {
        let mut from_data = vec![false; program.len()];
        for (id, node) in program.nodes() {
            from_data[id.index()] = match node.op {
                Op::Leaf(Leaf::Parameter | Leaf::Input(_) | Leaf::Recorded(_)) => true,
                _ => node.inputs.iter().any(|i| from_data[i.index()]),
            };
        }
        // What reads each node as numbers, and does not only move it.
        let mut read = vec![false; program.len()];
        for (id, _) in program.nodes().rev() {
            read[id.index()] = program.users(id).iter().any(|user| {
                let moves = program.node(*user).op.moves_only();
                if moves { read[user.index()] } else { from_data[user.index()] }
            });
        }
        let stores = program.nodes().map(|(id, _)| stores(program, id, scheme, (&from_data, &read))).collect();
        Self { scheme, unit, stores, values: vec![None; program.len()], pool: Arc::default() }
    }

    /// Computes a node from what was kept of its operands; not rounded yet. `given` is the value of a bound leaf.
    pub(super) fn compute(&mut self, program: &Program, id: NodeId, given: Option<Value<f64>>) {
        let mut value = given.unwrap_or_else(|| {
            let operand = |i: NodeId| self.values[i.index()].as_ref().expect("operands come first");
            evaluate(program, id, &operand, &self.pool)
        });
        // `model.to(bfloat16)` rounds the frequencies that a model keeps for rotary positions, too.
        let kept = self.scheme == Scheme::Each && *program.node(id).name.last() == Role::Denominators;
        if let (true, Value::Float(t)) = (kept, &value) {
            let data: Vec<f64> = t.data().iter().map(|x| 1.0 / self.unit.round(1.0 / x)).collect();
            value = Value::Float(Tensor::new(*t.shape(), data));
        }
        self.values[id.index()] = Some(value);
    }

    pub(super) fn value(&self, id: NodeId) -> &Value<f64> {
        self.values[id.index()].as_ref().expect("computed")
    }

    /// The value as the number type of the model has it.
    pub(super) fn as_stored(&self, id: NodeId) -> Value<f64> {
        match self.value(id) {
            Value::Float(t) => {
                let data: Vec<f64> = t.data().iter().map(|x| self.unit.round(*x)).collect();
                Value::Float(Tensor::new(*t.shape(), data))
            }
            other => other.clone(),
        }
    }

    /// Goes on with another value.
    pub(super) fn replace(&mut self, id: NodeId, value: Value<f64>) {
        self.values[id.index()] = Some(value);
    }

    /// Goes on with the value as the scheme stores it.
    pub(super) fn store(&mut self, id: NodeId) {
        if self.stores[id.index()] {
            self.values[id.index()] = Some(self.as_stored(id));
        }
    }

    pub(super) fn let_go(&mut self, id: NodeId) {
        self.values[id.index()] = None;
    }
}

/// Whether a scheme rounds a node before it is read on.
fn stores(program: &Program, id: NodeId, scheme: Scheme, (from_data, read): (&[bool], &[bool])) -> bool {
    let node = program.node(id);
    if matches!(node.op, Op::Leaf(Leaf::Parameter)) {
        return true;
    }
    if node.op.moves_only() {
        return false;
    }
    // Tables of waves are computed in binary32 and rounded when they meet the numbers of the model.
    if !from_data[id.index()] {
        return read[id.index()];
    }
    match scheme {
        Scheme::Fused => false,
        Scheme::Each => true,
        Scheme::Kernels => program.enclosing(id, is_kernel).is_none_or(|scope| {
            let scope = program.scope(scope);
            match scope.kind {
                ScopeKind::Softmax { output, .. }
                | ScopeKind::LayerNorm { output, .. }
                | ScopeKind::Activation { output, .. }
                | ScopeKind::CrossEntropy { output, .. } => id == output,
                // transformers rounds before the product with γ.
                ScopeKind::RmsNorm { output, .. } => id == output || program.node(output).inputs.contains(&id),
                _ => scope.nodes.clone().next_back() == Some(id.0),
            }
        }),
    }
}

fn is_kernel(kind: &ScopeKind) -> bool {
    matches!(
        kind,
        ScopeKind::Linear
            | ScopeKind::Softmax { .. }
            | ScopeKind::LayerNorm { .. }
            | ScopeKind::RmsNorm { .. }
            | ScopeKind::Activation { .. }
            | ScopeKind::CrossEntropy { .. }
    )
}

/// How the numbers of a tensor correspond to ours as a number type rounds them.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    /// The scheme that gives these numbers, to the last digit.
    by: Option<usize>,
    /// They are as far off as fusing some of what lies between would make them.
    fused: bool,
    /// They are as far off as writing out what PyTorch has a kernel for would make them.
    written: bool,
    /// Writing that out would give other numbers.
    moved: bool,
    /// What it is: tensors alike are computed alike.
    sort: Sort,
    /// The numbers are ours bit for bit.
    pub bits: bool,
    /// Cells that no rounding of our numbers gives, those that are farthest off first.
    worst: Vec<usize>,
    /// The same, as they are shown.
    pairs: Vec<CellPair>,
    /// How many there are.
    count: usize,
    /// The first of them.
    first: Option<usize>,
}

impl Digits {
    /// The scheme that gives these numbers.
    pub(super) fn by(&self) -> Option<usize> {
        self.by
    }

    /// With the cells as `pair` shows them.
    pub(super) fn with_pairs(mut self, pair: &dyn Fn(&usize) -> CellPair) -> Self {
        self.pairs = self.worst.iter().map(pair).collect();
        self
    }

    /// Whether a reference that is otherwise explained to the last digit computes this one in another way.
    pub(super) fn is_fault(&self) -> bool {
        self.by.is_none() && !self.fused && !self.written
    }
}

/// The kernel that a node is the result of, and its role.
type Sort = (Option<Discriminant<ScopeKind>>, Role);

fn sort(program: &Program, id: NodeId) -> Sort {
    let kernel = program.enclosing(id, is_kernel).map(|scope| discriminant(&program.scope(scope).kind));
    (kernel, program.node(id).name.last().clone())
}

/// How far numbers lie beyond what rounding to `unit` makes of `exact`.
#[derive(Clone, Copy, Default)]
struct Beyond {
    /// Share of cells that do.
    share: f64,
    /// Root mean square over all cells, in spacings of the type's numbers.
    rms: f64,
    /// Largest, likewise.
    max: f64,
    /// Root mean square, as it is.
    size: f64,
}

/// What the digits of a tensor in `unit` say; `None` where there is nothing to see.
pub(super) fn judge(
    program: &Program,
    rounded: &[Rounded],
    id: NodeId,
    sides: &Sides<'_>,
    kind: Kind,
    unit: Unit,
) -> Option<Digits> {
    let [fused, kernels, each] = rounded else { return None };
    let (fused, kernels, each) = (fused.value(id), kernels.value(id), each.value(id));
    let compared = |i: &usize| {
        let x = sides.theirs.get(*i);
        x.is_finite() && sides.ours.get(*i).is_finite() && !(kind == Kind::Scores && x <= HIDDEN)
    };
    let cells: Vec<usize> = sides.cells().filter(compared).collect();
    if cells.is_empty() {
        return None;
    }
    let n = cells.len() as f64;
    // What binary32 makes of the same operations, and of the last of them in any order.
    let second = sides.second.unwrap_or(sides.ours);
    let noise = cells.iter().map(|&i| (sides.ours.get(i) - second.get(i)).powi(2)).filter(|x| x.is_finite());
    let noise = INSIDE * (noise.sum::<f64>() / n).sqrt();
    // Beyond what binary32 makes of it, in spacings of the type's numbers.
    let over = |exact: f64, stored: f64| {
        let inside = noise + INSIDE * Unit::F32.roundoff() * stored.abs();
        let spacing = unit.spacing(stored);
        let far = (exact - stored).abs() - spacing / 2.0;
        if far > inside { far / spacing } else { 0.0 }
    };
    let beyond = |exact: &dyn Fn(usize) -> f64, stored: &dyn Fn(usize) -> f64| {
        let mut all = Beyond::default();
        for &i in &cells {
            let far = over(exact(i), stored(i));
            all.share += f64::from(u8::from(far > 0.0)) / n;
            all.rms += far * far / n;
            all.max = all.max.max(far);
            all.size += (far * unit.spacing(stored(i))).powi(2) / n;
        }
        Beyond { rms: all.rms.sqrt(), size: all.size.sqrt(), ..all }
    };
    let theirs = |i: usize| sides.theirs.get(i);
    // How far other ways of rounding lie from one another.
    let other = |v: &Value<f64>| beyond(&|i| fused.get(i), &|i| unit.round(v.get(i)));
    let (between, written) = (other(kernels), other(each));
    let found = [fused, kernels, each].map(|v| beyond(&|i| v.get(i), &theirs));
    // What was rounded on the way may have been next to the middle between two numbers there: what is read from such a
    // number is then a little off, all of it.
    let rarely = |b: &Beyond, max: f64| b.share <= STRAY.0 && b.max <= max;
    let by = if rarely(&found[0], STRAY.1) {
        Some(0)
    } else if rarely(&found[1], STRAY.1)
        || found[1].size <= ON_THE_WAY.0 * between.size
        || found[1].share <= ON_THE_WAY.1 * between.share && found[1].size <= between.size
    {
        Some(1)
    } else {
        let max = if written.share > between.share { STRAY_WRITTEN } else { STRAY.1 };
        rarely(&found[2], max).then_some(2)
    };
    let nearest = usize::from(found[1].share < found[0].share);
    let least = found[nearest];
    let as_far = |of: Beyond, alike: &std::ops::RangeInclusive<f64>| {
        let size = least.rms <= ALIKE_SIZE * of.rms || least.size <= ALIKE_SIZE * of.size;
        of.share > 0.0 && size && alike.contains(&(least.share / of.share))
    };
    let alike = if cells.len() < SPAN { 0.0..=f64::INFINITY } else { ALIKE[0].clone() };
    let best = [fused, kernels, each][by.unwrap_or(nearest)];
    let mut far: Vec<(f64, usize)> = cells.iter().map(|&i| (over(best.get(i), theirs(i)), i)).collect();
    far.retain(|f| f.0 > 0.0);
    far.sort_by(|a, b| b.0.total_cmp(&a.0));
    Some(Digits {
        by,
        fused: cells.len() < FEW || as_far(between, &alike),
        written: as_far(written, &ALIKE[1]),
        moved: written.share > 0.0,
        sort: sort(program, id),
        bits: cells.iter().all(|&i| unit.round(best.get(i)) == theirs(i)),
        count: far.len(),
        first: far.iter().map(|f| f.1).min(),
        worst: far.into_iter().take(MAX_CELLS).map(|f| f.1).collect(),
        pairs: Vec::new(),
    })
}

/// Decides by the digits, where the reference is explained to the last of them nearly everywhere: what was computed in
/// another type and stored in this one is explained nowhere.
pub(super) fn settle(found: &mut [Checked], digits: &[Option<Digits>]) {
    let judged = digits.iter().flatten().count();
    let explained = digits.iter().flatten().filter(|d| d.by.is_some()).count();
    if explained < ENOUGH || 2 * explained < judged {
        return;
    }
    let explained_sorts: HashSet<Sort> =
        digits.iter().flatten().filter(|d| d.by.is_some() && d.moved).map(|d| d.sort.clone()).collect();
    for (checked, digits) in found.iter_mut().zip(digits) {
        let Some(digits) = digits else { continue };
        let alike = !digits.fused && explained_sorts.contains(&digits.sort);
        if digits.by.is_some() {
            if checked.state == State::Drift {
                checked.state = State::Match;
            }
        } else if (digits.is_fault() || alike) && checked.state != State::Diverged {
            checked.state = State::Diverged;
            if let Some(against) = &mut checked.against {
                against.by_digits = true;
                against.cells.clone_from(&digits.pairs);
                if let Some(measure) = &mut against.measure {
                    (measure.differing, measure.first) = (digits.count, digits.first);
                    measure.worst.clone_from(&digits.worst);
                }
            }
        }
    }
}
