//! Two recordings side by side, without a program: what cannot be computed again can only be looked at in order.
//!
//! Pairs are compared on all cores, each read block by block where it lies in its file, and let go of.
//!
//! Tensors are matched by name, then by the tables of names (both names denote the same node of ours), then by shape
//! and value, which is a guess and marked as one. Without operands nothing says how much rounding a step makes. But in
//! two correct runs the error grows step by step, and a fault is a jump: a step may be a few times as far off as the
//! steps before it.

use std::collections::{HashMap, HashSet};

use super::alias::{Table, canonical};
use super::blocks::measure;
use super::cells::Cells;
use super::fit::{Reading, fit};
use super::layout::Layout;
use super::measure::{CellPair, HIDDEN, Kind, Mode, Sides, State, Unit};
use super::report::{Against, Checked, Difference, Place, Report, StepAt};
use super::{Failed, Options, Reference, nothing, pattern};
use crate::parallel;
use crate::program::{Node, NodeId, Program};
use crate::session::Session;
use crate::tensor::{Axis, DType, Precision, Shape, Tensor};
use crate::trace::{AnyTrace, AnyValue};

/// How many times as far off as all steps before it a step may be.
const GROWTH: f64 = 8.0;

/// A guess must be as near as this, relative to the tensor.
const GUESS: f64 = 1e-2;

/// Cells that are looked at first, and how far apart, relative to them, they are in tensors that are none of one another.
const SAMPLED: usize = 256;
const FAR_OFF: f64 = 0.3;

/// What a guess is called where a table would stand.
pub const GUESSED: &str = "guess";

/// The largest error, relative to the tensor, that a correct run ends with.
fn most(unit: Unit) -> f64 {
    match unit {
        Unit::F64 => 1e-9,
        Unit::F32 => 1e-3,
        Unit::F16 => 5e-2,
        Unit::Bf16 => 2e-1,
    }
}

/// A tensor of the reference for a tensor of ours.
struct Pair {
    tensor: usize,
    layout: Option<Layout>,
    table: String,
}

/// Compares a recorded run with a reference, in recorded order.
///
/// # Errors
/// Where no tensor is in both.
pub(super) fn compare(
    session: &Session,
    run: usize,
    reference: &Reference,
    options: &Options,
) -> Result<Report, Failed> {
    let program = &session.runs[run].program;
    let trace = session.trace(run).map_err(|e| Failed::Run(e.clone()))?;
    let pairs = matched(program, reference, options.names.as_ref(), trace);
    if pairs.is_empty() {
        return Err(Failed::Nothing(nothing(reference)));
    }
    // Each pair is read and let go of by one thread; what is found of it does not depend on the others.
    let by_name = pairs.values().any(|p| p.table != GUESSED);
    let all: Vec<(NodeId, &Node)> = program.nodes().collect();
    let compared = |k: usize| -> Option<(Against, Kind, State)> {
        let (id, node) = all[k];
        let pair = pairs.get(&id)?;
        let found = side_by_side(trace, reference, id, node, pair, options);
        trace.let_go(id);
        reference.let_go(pair.tensor);
        Some(found)
    };
    let found = parallel::map(all.len(), compared);
    let steps = session.steps_of(run);
    let mut error = 0.0f64;
    let mut nodes: Vec<Checked> = Vec::new();
    for ((id, node), found) in program.nodes().zip(found) {
        let step = steps.first_showing(run, id).map(|position| StepAt {
            run,
            position,
            label: steps.list()[position].label(),
        });
        let place = Place { node: id, path: node.path.to_string(), step };
        let shape = node.shape.dims().to_vec();
        let Some((mut against, kind, mut state)) = found else {
            nodes.push(Checked { place, shape, state: State::Unchecked, against: None });
            continue;
        };
        if let Some(measured) = &against.measure {
            let limit = (GROWTH * error).min(most(against.unit));
            let grown = options.tolerance.is_ours() && kind != Kind::Exact;
            if state == State::Diverged && grown && measured.rms <= limit && measured.max <= 5.0 * limit {
                state = State::Drift;
            }
            // Next to tensors of the same name, a guess that differs is most likely a wrong one.
            if by_name && against.table == GUESSED && state == State::Diverged {
                nodes.push(Checked { place, shape, state: State::Unchecked, against: None });
                continue;
            }
            if state != State::Diverged && measured.rms.is_finite() {
                error = error.max(measured.rms);
            }
            // Those that follow may be carried on from it.
            if state == State::Diverged && nodes.iter().all(|c| c.state != State::Diverged) {
                let ours = wide(&trace.once(id));
                let theirs = fit(&reference.tensor(against.tensor), against.layout.as_ref(), Reading::Whole, node);
                if let Some(theirs) = theirs {
                    against.patterns = pattern::of(&node.shape, ours.data(), theirs.tensor.data(), None);
                }
            }
        }
        nodes.push(Checked { place, shape, state, against: Some(against) });
    }
    let used: HashSet<usize> = nodes.iter().filter_map(|c| Some(c.against.as_ref()?.tensor)).collect();
    let unmatched: Vec<String> =
        (0..reference.tensors.len()).filter(|i| !used.contains(i)).map(|i| reference.tensors[i].name.clone()).collect();
    Ok(Report {
        mode: Mode::Cumulative,
        run,
        reference: reference.name.clone(),
        differences: differences(&nodes),
        nodes,
        mattering: super::mattering(reference, &unmatched),
        unmatched,
        tensors: reference.tensors.len(),
        unused: Vec::new(),
        unreadable: reference.unreadable.clone(),
    })
}

/// A tensor of ours and the one of the reference that denotes it, as near as the limits alone say.
fn side_by_side(
    trace: &AnyTrace,
    reference: &Reference,
    id: NodeId,
    node: &Node,
    pair: &Pair,
    options: &Options,
) -> (Against, Kind, State) {
    let (ours, theirs) = (trace.once(id), reference.value(pair.tensor));
    let named = &reference.tensors[pair.tensor];
    let own = if trace.precision() == Precision::F64 { Unit::F64 } else { Unit::F32 };
    let unit = named.unit.map_or(own, |u| u.max(own));
    let mut against = Against {
        name: named.name.clone(),
        table: pair.table.clone(),
        tensor: pair.tensor,
        layout: pair.layout.clone(),
        reading: Reading::Whole,
        shape: theirs.shape().dims().to_vec(),
        unit,
        row: None,
        by_digits: false,
        measure: None,
        cells: Vec::new(),
        patterns: Vec::new(),
    };
    // One that lies as ours does is read where it is.
    let same = pair.layout.is_none() && theirs.shape().dims() == node.shape.dims();
    let fitted = if same {
        None
    } else {
        match fit(&wide(&theirs), pair.layout.as_ref(), Reading::Whole, node) {
            Some(fitted) => Some(fitted),
            None => return (against, Kind::Numbers, State::Diverged),
        }
    };
    let there = fitted.as_ref().map_or(Cells::from(&theirs), |f| Cells::Wide(f.tensor.data()));
    let here = Cells::from(&ours);
    let attends = node.shape.axes().ends_with(&[Axis::Query, Axis::Key]);
    let kind = match node.dtype {
        DType::Float if attends && here.any_below(HIDDEN) => Kind::Scores,
        DType::Float => Kind::Numbers,
        _ => Kind::Exact,
    };
    let sides = Sides { ours: here, second: None, theirs: there, there: None };
    let (measured, state) = measure(&sides, kind, unit, &options.tolerance, Mode::Cumulative);
    let pair = |&flat: &usize| CellPair {
        index: node.shape.unflat(flat)[..node.shape.rank()].to_vec(),
        flat,
        ours: ours.get(flat),
        theirs: there.get(flat),
    };
    against.cells = measured.worst.iter().map(pair).collect();
    against.measure = Some(measured);
    (against, kind, state)
}

/// All cells in f64.
fn wide(value: &AnyValue) -> Tensor<f64> {
    Tensor::new(*value.shape(), Cells::from(value).all())
}

/// The differences in order. All but the first may be carried on from it.
fn differences(nodes: &[Checked]) -> Vec<Difference> {
    let mut out: Vec<Difference> = Vec::new();
    let mut last: Option<usize> = None;
    for (i, checked) in nodes.iter().enumerate() {
        match checked.state {
            State::Match | State::Drift if out.is_empty() => last = Some(i),
            State::Diverged => {
                let between = nodes[last.map_or(0, |l| l + 1)..i].iter().filter(|c| c.state == State::Unchecked);
                out.push(Difference {
                    place: checked.place.clone(),
                    last_match: last.map(|l| nodes[l].place.clone()),
                    between: if out.is_empty() { between.map(|c| c.place.clone()).collect() } else { Vec::new() },
                    given: Vec::new(),
                    carried: !out.is_empty(),
                });
            }
            _ => {}
        }
    }
    out
}

/// Which tensor of the reference denotes which node.
fn matched(program: &Program, reference: &Reference, own: Option<&Table>, trace: &AnyTrace) -> HashMap<NodeId, Pair> {
    let mut pairs: HashMap<NodeId, Pair> = HashMap::new();
    let mut left: Vec<usize> = Vec::new();
    for (i, named) in reference.tensors.iter().enumerate() {
        let given = own
            .and_then(|table| table.path_of(&named.name))
            .and_then(|(path, layout)| Some((program.find(&path)?, layout, "map".to_owned())));
        let found = given.or_else(|| Some((program.find(&named.name)?, None, "names".to_owned())));
        match found {
            Some((id, layout, table)) if !pairs.contains_key(&id) => {
                pairs.insert(id, Pair { tensor: i, layout, table });
            }
            _ => left.push(i),
        }
    }
    // Names of two frameworks that denote the same node of ours.
    let mut ours: HashMap<String, (NodeId, Option<Layout>)> = HashMap::new();
    for (id, node) in program.nodes().filter(|(id, _)| !pairs.contains_key(id)) {
        for (path, layout, _) in canonical(&node.path) {
            ours.entry(path).or_insert((id, layout));
        }
    }
    left.retain(|&i| {
        for (path, layout, table) in canonical(&reference.tensors[i].name) {
            let Some((id, own)) = ours.get(&path) else { continue };
            let lies = match (own, layout) {
                (a, b) if *a == b => Some(None),
                (None, Some(theirs)) => Some(Some(theirs)),
                (Some(own), None) => own.inverted().map(Some),
                _ => None,
            };
            if let (Some(layout), false) = (lies, pairs.contains_key(id)) {
                pairs.insert(*id, Pair { tensor: i, layout, table });
                return false;
            }
        }
        true
    });
    guess(program, reference, &left, trace, &mut pairs);
    pairs
}

/// Matches what is left where exactly one tensor has the same lengths and nearly the same numbers.
fn guess(
    program: &Program,
    reference: &Reference,
    left: &[usize],
    trace: &AnyTrace,
    pairs: &mut HashMap<NodeId, Pair>,
) {
    let long = |s: &Shape| -> Vec<usize> { s.dims().iter().copied().filter(|n| *n != 1).collect() };
    let open: Vec<NodeId> = program
        .nodes()
        .filter(|(id, n)| !pairs.contains_key(id) && n.dtype == DType::Float && n.shape.len() > 1)
        .map(|(id, _)| id)
        .collect();
    for &i in left {
        if reference.tensors[i].unit.is_none() {
            continue;
        }
        let theirs = reference.value(i);
        let near = |id: &NodeId| {
            let node = program.node(*id);
            long(&node.shape) == long(theirs.shape()) && !pairs.contains_key(id) && is_near(&trace.once(*id), &theirs)
        };
        let close = parallel::map(open.len(), |k| near(&open[k]));
        let found: Vec<&NodeId> = open.iter().zip(close).filter(|(_, near)| *near).map(|(id, _)| id).collect();
        if let [id] = found[..] {
            pairs.insert(*id, Pair { tensor: i, layout: None, table: GUESSED.to_owned() });
        }
        reference.let_go(i);
    }
}

/// Whether two tensors have nearly the same numbers. Most have not, which a few of their cells show.
fn is_near(a: &AnyValue, b: &AnyValue) -> bool {
    let len = a.shape().len();
    let apart = |step: usize| {
        let cells = (0..len).step_by(step).map(|i| (a.get(i), b.get(i)));
        let (far, size) = cells.fold((0.0, 0.0), |(far, size), (a, b)| (far + (a - b) * (a - b), size + b * b));
        if size > 0.0 { (far / size).sqrt() } else { f64::INFINITY }
    };
    let step = len.div_ceil(SAMPLED).max(1);
    (step == 1 || apart(step) <= FAR_OFF) && apart(1) <= GUESS
}
