//! Going through a run with the reference next to it, node after node.
//!
//! Each node is computed twice, in both number types, so that one sees what rounding makes of it. In isolated mode a
//! node that the reference has is then replaced by the reference's value in both, so that what follows is computed from
//! what the reference computed it from.

use std::collections::HashMap;
use std::sync::Arc;

use super::alias::Target;
use super::blocks::measure;
use super::cells::Cells;
use super::fit::{Reading, fit};
use super::measure::{CellPair, HIDDEN, Kind, Mode, Sides, State, Tolerance, Unit};
use super::reference::Reference;
use super::report::{Against, Checked, Place};
use super::rounding::{self, Digits, Rounded, Scheme};
use super::{noise, pattern};
use crate::parallel;
use crate::program::{Binary, Leaf, Node, NodeId, Op, Program, Reduction, ScopeKind};
use crate::tensor::{DType, Elem, NumberType, Pool, Precision, Real, Tensor, Value};
use crate::trace::{
    Bindings, ChainSink, Flow, Keep, Pinned, PinnedSink, Rounder, Rounding, RunError, Settings, Sink, evaluate,
    run_with,
};

/// A tensor of the reference that denotes a node.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    /// Its place in the reference.
    pub tensor: usize,
    /// How it denotes the node.
    pub target: Target,
}

impl Beside {
    /// The tensor as one that denotes another node.
    pub(super) fn of(mut self, node: NodeId) -> Self {
        self.target.node = node;
        self
    }
}

/// What a walk needs to know.
pub(super) struct Plan<'a> {
    pub program: &'a Arc<Program>,
    pub reference: &'a Reference,
    pub beside: &'a HashMap<NodeId, Vec<Beside>>,
    pub mode: Mode,
    pub tolerance: Tolerance,
    /// Number type of the run's parameters.
    pub parameters: Precision,
    /// Cells of the run that are edited.
    pub held: &'a Pinned,
    /// How the run rounds every number.
    pub rounder: Option<Rounder>,
}

impl Plan<'_> {
    /// The number type of the model that was recorded, where it is one of half precision.
    fn half(&self) -> Option<Unit> {
        let units = (0..self.reference.tensors.len()).filter_map(|i| self.reference.unit(i, true));
        units.max().filter(|u| *u > Unit::F32)
    }

    /// The finest number type that computed tensors of the reference are held to. A run that goes down to binary32 in
    /// some of its steps is nowhere more exact than that; a whole run from our operands is as coarse as the coarsest of
    /// its steps.
    fn finest(&self) -> Unit {
        let coarsest = (self.program.nodes())
            .filter(|(id, _)| computes(self.program, *id))
            .flat_map(|(id, _)| self.beside.get(&id).into_iter().flatten())
            .filter_map(|b| self.reference.unit(b.tensor, true))
            .max()
            .unwrap_or(Unit::F64);
        match self.mode {
            Mode::Isolated => coarsest.min(Unit::F32),
            Mode::Cumulative => coarsest,
        }
    }
}

/// Whether a node's numbers were computed, and are not given ones that were moved only.
fn computes(program: &Program, id: NodeId) -> bool {
    let node = program.node(id);
    match node.op {
        Op::Leaf(_) => false,
        _ if node.op.moves_only() => node.inputs.iter().any(|i| computes(program, *i)),
        _ => true,
    }
}

/// Every node that the reference has, in order. `main` is what is compared, `other` the other number type.
pub(super) fn walk<T: Real, U: Real>(
    plan: &Plan<'_>,
    main: &Bindings<T>,
    other: &Bindings<U>,
) -> Result<Vec<Checked>, RunError> {
    let n = plan.program.len();
    let mut walker = Walker {
        plan,
        finest: plan.finest(),
        bindings: other,
        values: vec![None; n],
        left: (plan.program.nodes()).map(|(id, _)| plan.program.users(id).len() as u32).collect(),
        units: vec![Unit::F64; n],
        scores: vec![false; n],
        largest: 0.0,
        rounded: plan
            .half()
            .into_iter()
            .flat_map(|u| Scheme::ALL.iter().map(move |&s| Rounded::new(plan.program, s, u)))
            .collect(),
        pool: Arc::default(),
        exact: vec![true; n],
        found: Vec::new(),
        digits: Vec::new(),
    };
    let keep = Keep::only(plan.program, |_| false);
    let settings = Settings { keep, timed: false, rounder: plan.rounder.clone(), ..Settings::default() };
    let mut sink = ChainSink(PinnedSink(plan.held), &mut walker);
    run_with(plan.program, main, &settings, &mut sink)?;
    let (mut found, digits) = (walker.found, walker.digits);
    rounding::settle(&mut found, &digits);
    Ok(found)
}

struct Walker<'a, U: Real> {
    plan: &'a Plan<'a>,
    /// The finest number type of computed tensors.
    finest: Unit,
    bindings: &'a Bindings<U>,
    /// Values in the other number type, as long as somebody reads them.
    values: Vec<Option<Value<U>>>,
    left: Vec<u32>,
    /// The coarsest number type that went into each node since the reference's last tensor.
    units: Vec<Unit>,
    /// Which nodes hold scores of which some may be hidden.
    scores: Vec<bool>,
    /// The largest number of the reference so far.
    largest: f64,
    /// The run as a model in half precision may compute it; none where the reference is in no such type.
    rounded: Vec<Rounded>,
    pool: Arc<Pool<U>>,
    /// Whether a node's value has the reference's bits, as far as is known.
    exact: Vec<bool>,
    found: Vec<Checked>,
    /// What the digits of each of these say.
    digits: Vec<Option<Digits>>,
}

impl<T: Real, U: Real> Sink<T> for Walker<'_, U> {
    fn node(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        let node = program.node(id);
        let mut second = self.second(program, id, value);
        self.units[id.index()] = self.unit::<T>(node);
        self.scores[id.index()] = self.holds_scores(node);
        self.exact[id.index()] = node.inputs.iter().all(|i| self.exact[i.index()]);
        let bound = matches!(node.op, Op::Leaf(Leaf::Parameter | Leaf::Input(_)));
        for rounded in &mut self.rounded {
            rounded.compute(program, id, (bound || node.dtype != DType::Float).then(|| widened(value)));
        }
        let mut replaced = None;
        let before = self.digits.len();
        for beside in self.plan.beside.get(&id).into_iter().flatten() {
            let theirs = self.compare(id, node, value, &second, beside);
            // Of several tensors for one node, the run goes on from the coarsest: what was cast is what is read.
            let unit = self.unit_of(beside.tensor, id);
            let coarser = replaced.as_ref().is_none_or(|(_, before)| *before < unit);
            if let (Mode::Isolated, true, Some(theirs)) = (self.plan.mode, coarser, theirs) {
                replaced = Some((theirs, unit));
            }
        }
        let mut flow = Flow::Go;
        // From our own operands, all schemes go on from what the one gives that the reference is explained by.
        let by = (self.digits.iter().skip(before).flatten()).find_map(Digits::by);
        let ours = by.filter(|_| self.plan.mode == Mode::Cumulative).map(|by| self.rounded[by].as_stored(id));
        for rounded in &mut self.rounded {
            match (&replaced, &ours) {
                (Some((theirs, _)), _) => rounded.replace(id, cast(theirs, node.dtype)),
                (None, Some(ours)) => rounded.replace(id, ours.clone()),
                (None, None) => rounded.store(id),
            }
        }
        if let Some((theirs, unit)) = replaced {
            second = match node.op {
                Op::Leaf(_) => cast(&theirs, node.dtype),
                // What was moved only was rounded before.
                _ if node.op.moves_only() && same(&theirs, value) => second,
                _ => cast(&stored(&theirs, value, unit), node.dtype),
            };
            flow = Flow::Replace(cast(&theirs, node.dtype));
            // What is given is what it is; what was computed was rounded.
            let given = matches!(node.op, Op::Leaf(_));
            self.units[id.index()] = if given { Unit::F64 } else { unit };
        }
        self.values[id.index()] = Some(second);
        self.let_go(program, id, node);
        flow
    }
}

impl<U: Real> Walker<'_, U> {
    /// The node's value in the other number type. Ids and masks are decisions: those of the run compared hold.
    fn second<T: Real>(&self, program: &Program, id: NodeId, value: &Value<T>) -> Value<U> {
        let node = program.node(id);
        match value {
            Value::Int(t) => Value::Int(t.clone()),
            Value::Bool(t) => Value::Bool(t.clone()),
            Value::Float(_) if matches!(node.op, Op::Leaf(Leaf::Parameter | Leaf::Input(_))) => {
                let value = self.bindings[&node.path].reshaped(node.shape);
                self.plan.held.apply(id, self.rounded(program, id, value))
            }
            Value::Float(_) => {
                let operand = |i: NodeId| self.values[i.index()].as_ref().expect("operands come first");
                let value = evaluate(program, id, &operand, &self.pool);
                self.plan.held.apply(id, self.rounded(program, id, value))
            }
        }
    }

    /// A value as the run rounds it.
    fn rounded(&self, program: &Program, id: NodeId, value: Value<U>) -> Value<U> {
        let rounded = self.plan.rounder.as_ref().and_then(|r| r.round(program, id, &value));
        rounded.map_or(value, |(rounded, _)| rounded)
    }

    /// The number type that a tensor of the reference comes from, as a node.
    fn unit_of(&self, tensor: usize, id: NodeId) -> Unit {
        let computed = computes(self.plan.program, id);
        let own = self.plan.reference.unit(tensor, computed);
        match own {
            Some(unit) if computed => unit.max(self.finest),
            own => own.unwrap_or(Unit::F64),
        }
    }

    fn unit<T: Real>(&self, node: &Node) -> Unit {
        let of = |precision| match precision {
            Precision::F64 => Unit::F64,
            Precision::F32 => Unit::F32,
        };
        let own = match node.op {
            Op::Leaf(Leaf::Parameter) => of(self.plan.parameters),
            _ => Unit::F64,
        };
        let rounded = self.plan.rounder.as_ref().map(|r| unit_of_rounding(r.to));
        let inputs = node.inputs.iter().map(|i| self.units[i.index()]);
        inputs.chain([own, of(T::PRECISION)]).chain(rounded).max().unwrap_or(own)
    }

    fn holds_scores(&self, node: &Node) -> bool {
        match &node.op {
            Op::MaskFill { fill } => *fill <= HIDDEN,
            Op::Binary(Binary::Add | Binary::Sub)
            | Op::Affine(_)
            | Op::Reshape
            | Op::Permute(_)
            | Op::Slice { .. }
            | Op::Reduce { kind: Reduction::Max, .. } => node.inputs.iter().any(|i| self.scores[i.index()]),
            _ => false,
        }
    }

    /// Compares a node with a tensor of the reference; gives that tensor as ours lies, where it fits.
    fn compare<T: Real>(
        &mut self,
        id: NodeId,
        node: &Node,
        value: &Value<T>,
        second: &Value<U>,
        beside: &Beside,
    ) -> Option<Tensor<f64>> {
        let reference = self.plan.reference;
        let named = &reference.tensors[beside.tensor];
        let found = reference.tensor(beside.tensor);
        let target = &beside.target;
        let theirs = fit(&found, target.layout.as_ref(), target.reading, node);
        let unit = self.unit_of(beside.tensor, id).max(self.units[id.index()]);
        let mut checked = Checked {
            place: Place { node: id, path: node.path.to_string(), step: None },
            shape: node.shape.dims().to_vec(),
            state: State::Diverged,
            against: None,
        };
        let mut against = Against {
            name: named.name.clone(),
            table: target.table.clone(),
            tensor: beside.tensor,
            layout: target.layout.clone(),
            reading: target.reading,
            shape: found.shape().dims().to_vec(),
            unit,
            row: theirs.as_ref().and_then(|t| t.row),
            by_digits: false,
            measure: None,
            cells: Vec::new(),
            patterns: Vec::new(),
        };
        if let Some(theirs) = &theirs {
            let kind = match (node.dtype, self.scores[id.index()]) {
                (DType::Float, true) => Kind::Scores,
                (DType::Float, false) => Kind::Numbers,
                _ => Kind::Exact,
            };
            // Labels that are ignored are all alike, whatever number says so.
            let labels = matches!(target.reading, Reading::Labels | Reading::NextLabels);
            let labels: Option<Vec<f64>> =
                labels.then(|| (0..node.shape.len()).map(|i| target.reading.ours(value.get(i))).collect());
            let ours = labels.as_ref().map_or(Cells::of(value), |all| Cells::Wide(all));
            let sides = Sides {
                ours,
                second: Some(Cells::of(second)),
                theirs: Cells::Wide(theirs.tensor.data()),
                there: theirs.there.as_deref(),
            };
            let (mut measured, mut state) = measure(&sides, kind, unit, &self.plan.tolerance, self.plan.mode);
            // Softmax does not see what is added to a whole row, as ALiBi may count distances from either end.
            if state == State::Diverged && softmax_alone_reads(self.plan.program, id) {
                let width = node.shape.dims().last().copied().unwrap_or(1);
                let shifted = shifted_rows(&|i| ours.get(i), theirs.tensor.data(), width);
                let sides = Sides { theirs: Cells::Wide(&shifted), ..sides };
                let again = measure(&sides, kind, unit, &self.plan.tolerance, self.plan.mode);
                if again.1 != State::Diverged {
                    (measured, state) = again;
                }
            }
            // Where all that was added cancels, what is left is rounding on both sides: an exact 0 has no other.
            let theirs = sides.theirs.largest(-HIDDEN);
            let largest = ours.largest(f64::INFINITY).max(theirs);
            let sum = noise::of_sum(node, &|i| self.values[i.index()].as_ref());
            let cancels = unit == Unit::F64 && largest <= noise::LEFT_OVER * unit.roundoff() * self.largest
                || unit <= Unit::F32 && measured.difference <= sum * unit.roundoff();
            let judged = kind == Kind::Numbers && self.plan.mode == Mode::Isolated && self.plan.tolerance.is_ours();
            if state == State::Diverged && judged && cancels {
                state = State::Drift;
            }
            self.largest = self.largest.max(theirs);
            let rounded = if computes(self.plan.program, id) { named.unit } else { None };
            let digits = rounded.filter(|_| kind != Kind::Exact && self.plan.tolerance.is_ours()).and_then(|unit| {
                let exact = self.plan.mode == Mode::Isolated || node.inputs.iter().all(|i| self.exact[i.index()]);
                exact.then(|| rounding::judge(self.plan.program, &self.rounded, id, &sides, kind, unit)).flatten()
            });
            self.exact[id.index()] &= digits.as_ref().is_none_or(|d| d.bits);
            let pair = |&flat: &usize| CellPair {
                index: node.shape.unflat(flat)[..node.shape.rank()].to_vec(),
                flat,
                ours: ours.get(flat),
                theirs: sides.theirs.get(flat),
            };
            against.cells = measured.worst.iter().map(pair).collect();
            against.measure = Some(measured);
            checked.state = state;
            // Those that follow may be carried on from it.
            let beyond = digits.as_ref().is_some_and(Digits::is_fault);
            if (state == State::Diverged || beyond) && !self.found.iter().any(|c| c.state == State::Diverged) {
                let (here, there) = (ours.all(), sides.theirs.all());
                against.patterns = pattern::of(&node.shape, &here, &there, sides.there);
            }
            self.digits.resize(self.found.len(), None);
            self.digits.push(digits.map(|d| d.with_pairs(&pair)));
        }
        reference.let_go(beside.tensor);
        checked.against = Some(against);
        self.digits.resize(self.found.len() + 1, None);
        self.found.push(checked);
        Some(theirs?.filled(&|i| value.get(i)))
    }

    /// Lets go of operands that nobody reads any more.
    fn let_go(&mut self, program: &Program, id: NodeId, node: &Node) {
        for (i, &input) in node.inputs.iter().enumerate() {
            if !node.inputs[..i].contains(&input) {
                self.left[input.index()] -= 1;
                if self.left[input.index()] == 0 {
                    self.let_go_of(input);
                }
            }
        }
        if program.users(id).is_empty() {
            self.let_go_of(id);
        }
    }

    fn let_go_of(&mut self, id: NodeId) {
        self.values[id.index()] = None;
        self.rounded.iter_mut().for_each(|r| r.let_go(id));
    }
}

/// Whether a node is what softmax reads, and nothing else reads it.
fn softmax_alone_reads(program: &Program, id: NodeId) -> bool {
    let readers = || program.users(id).iter().filter(|user| !program.node(**user).name.is_derived());
    let reads = |kind: &ScopeKind| matches!(kind, ScopeKind::Softmax { input, .. } if *input == id);
    readers().next().is_some() && readers().all(|user| program.enclosing(*user, reads).is_some())
}

/// The rows of `theirs`, each with what makes its first visible cell ours added to all of it.
fn shifted_rows(ours: &dyn Fn(usize) -> f64, theirs: &[f64], width: usize) -> Vec<f64> {
    let visible = |x: f64| x.is_finite() && x > HIDDEN;
    let mut all = theirs.to_vec();
    for (row, cells) in all.chunks_mut(width.max(1)).enumerate() {
        let differences = cells.iter().enumerate().map(|(i, x)| (ours(row * width + i), *x));
        let first = differences.into_iter().find(|(a, b)| visible(*a) && visible(*b));
        if let Some((a, b)) = first {
            cells.iter_mut().filter(|x| visible(**x)).for_each(|x| *x += a - b);
        }
    }
    all
}

/// Cells that are worth a thread.
const LEAST: usize = 1 << 14;

/// The same value in binary64.
fn widened<T: Real>(value: &Value<T>) -> Value<f64> {
    match value {
        Value::Float(t) => Value::Float(Tensor::new(*t.shape(), each(t.data(), |_, x| x.to_f64()))),
        Value::Int(t) => Value::Int(t.clone()),
        Value::Bool(t) => Value::Bool(t.clone()),
    }
}

/// The number type that rounded numbers are compared in: the nearest that is at least as coarse, where there is one.
fn unit_of_rounding(rounding: Rounding) -> Unit {
    match rounding {
        Rounding::Type(NumberType::F16 | NumberType::Tf32) => Unit::F16,
        Rounding::Type(NumberType::Bf16 | NumberType::Fp8E4m3 | NumberType::Fp8E5m2) => Unit::Bf16,
        Rounding::Decimals(_) => Unit::F64,
    }
}

/// The reference's values with what was rounded away when they were stored, seen as binary32 shows it: a step towards
/// what we computed. What follows may have been computed before that rounding, as a loss from the logits is and not
/// from the probabilities that were kept next to it.
fn stored<T: Real>(theirs: &Tensor<f64>, ours: &Value<T>, unit: Unit) -> Tensor<f64> {
    if unit == Unit::F64 {
        return theirs.clone();
    }
    // The spacing of the type's numbers, as many times less as its roundoff is coarser than that of binary32.
    let least = (unit.least() * Unit::F32.roundoff() / unit.roundoff()) as f32;
    let step = |i: usize, x: f64| {
        let (near, ours) = (x as f32, ours.get(i));
        let next = if ours > x {
            near.next_up().max(near + least)
        } else if ours < x {
            near.next_down().min(near - least)
        } else {
            near
        };
        if next.is_finite() { f64::from(next) } else { x }
    };
    Tensor::new(*theirs.shape(), each(theirs.data(), step))
}

fn same<T: Real>(theirs: &Tensor<f64>, ours: &Value<T>) -> bool {
    let data = theirs.data();
    let block =
        |k: usize| (k * LEAST..data.len().min((k + 1) * LEAST)).all(|i| data[i].to_bits() == ours.get(i).to_bits());
    parallel::map(data.len().div_ceil(LEAST), block).into_iter().all(|same| same)
}

/// What `of` makes of each cell and its position.
fn each<S: Copy + Sync, E: Elem>(data: &[S], of: impl Fn(usize, S) -> E + Sync) -> Vec<E> {
    let mut out = vec![E::default(); data.len()];
    parallel::pieces(&mut out, LEAST, &|start, out| {
        out.iter_mut().enumerate().for_each(|(i, out)| *out = of(start + i, data[start + i]));
    });
    out
}

pub(super) fn cast<T: Real>(from: &Tensor<f64>, dtype: DType) -> Value<T> {
    let (shape, data) = (*from.shape(), from.data());
    match dtype {
        DType::Float => Value::Float(Tensor::new(shape, each(data, |_, x| T::from_f64(x)))),
        DType::Int => Value::Int(Tensor::new(shape, each(data, |_, x| x as i64))),
        DType::Bool => Value::Bool(Tensor::new(shape, each(data, |_, x| x != 0.0))),
    }
}
