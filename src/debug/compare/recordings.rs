//! Two recordings side by side, without a program: what cannot be computed again can only be looked at in order.
//!
//! Tensors are matched by name, then by the tables of names (both names stand for the same node of ours), then by shape
//! and value, which is a guess and marked as one. Without operands nothing says how much rounding a step makes. But in
//! two correct runs the error grows step by step, and a fault is a jump: a step may be a few times as far off as the
//! steps before it.

use std::collections::{HashMap, HashSet};

use super::alias::{Table, canonical};
use super::fit::{Reading, fit};
use super::layout::Layout;
use super::measure::{CellPair, HIDDEN, Kind, Mode, Sides, State, Unit, measure};
use super::report::{Against, Checked, Difference, Place, Report, StepAt};
use super::{Failed, Options, Reference, nothing, pattern};
use crate::program::{NodeId, Program};
use crate::session::Session;
use crate::tensor::{Axis, DType, Shape, Tensor};

/// How many times as far off as all steps before it a step may be.
const GROWTH: f64 = 8.0;

/// A guess must be as near as this, relative to the tensor.
const GUESS: f64 = 1e-2;

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
    let numbers = |id: NodeId| -> Tensor<f64> {
        let value = trace.value(id);
        let shape = *value.shape();
        Tensor::new(shape, (0..shape.len()).map(|i| value.get(i)).collect::<Vec<_>>())
    };
    let pairs = matched(program, reference, options.names.as_ref(), &numbers);
    if pairs.is_empty() {
        return Err(Failed::Nothing(nothing(reference)));
    }
    let steps = session.steps_of(run);
    let mut error = 0.0f64;
    let mut nodes: Vec<Checked> = Vec::new();
    for (id, node) in program.nodes() {
        let step = steps.first_showing(run, id).map(|position| StepAt {
            run,
            position,
            label: steps.list()[position].label(),
        });
        let place = Place { node: id, path: node.path.to_string(), step };
        let shape = node.shape.dims().to_vec();
        let Some(pair) = pairs.get(&id) else {
            nodes.push(Checked { place, shape, state: State::Unchecked, against: None });
            continue;
        };
        let ours = numbers(id);
        let found = reference.tensor(pair.tensor);
        let named = &reference.tensors[pair.tensor];
        let own = if trace.precision() == crate::tensor::Precision::F64 { Unit::F64 } else { Unit::F32 };
        let unit = named.unit.map_or(own, |u| u.max(own));
        let theirs = fit(&found, pair.layout.as_ref(), Reading::Whole, node);
        let mut against = Against {
            name: named.name.clone(),
            table: pair.table.clone(),
            tensor: pair.tensor,
            layout: pair.layout.clone(),
            reading: Reading::Whole,
            shape: found.shape().dims().to_vec(),
            unit,
            row: None,
            by_digits: false,
            measure: None,
            cells: Vec::new(),
            patterns: Vec::new(),
        };
        let mut state = State::Diverged;
        if let Some(theirs) = theirs {
            let attends = node.shape.axes().ends_with(&[Axis::Query, Axis::Key]);
            let kind = match node.dtype {
                DType::Float if attends && ours.data().iter().any(|x| *x <= HIDDEN) => Kind::Scores,
                DType::Float => Kind::Numbers,
                _ => Kind::Exact,
            };
            let at = |i: usize| ours.data()[i];
            let sides = Sides { ours: &at, second: &at, theirs: theirs.tensor.data(), there: None };
            let (measured, found) = measure(&sides, kind, unit, &options.tolerance, Mode::Cumulative);
            let grown = options.tolerance.is_ours()
                && kind != Kind::Exact
                && measured.rms <= (GROWTH * error).min(most(unit))
                && measured.max <= 5.0 * (GROWTH * error).min(most(unit));
            state = if found == State::Diverged && grown { State::Drift } else { found };
            if state != State::Diverged && measured.rms.is_finite() {
                error = error.max(measured.rms);
            }
            let pair = |&flat: &usize| CellPair {
                index: node.shape.unflat(flat)[..node.shape.rank()].to_vec(),
                flat,
                ours: at(flat),
                theirs: sides.theirs[flat],
            };
            against.cells = measured.worst.iter().map(pair).collect();
            if state == State::Diverged {
                against.patterns = pattern::of(&node.shape, ours.data(), sides.theirs, None);
            }
            against.measure = Some(measured);
        }
        nodes.push(Checked { place, shape, state, against: Some(against) });
    }
    let used: HashSet<usize> = pairs.values().map(|p| p.tensor).collect();
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

/// Which tensor of the reference stands for which node.
fn matched(
    program: &Program,
    reference: &Reference,
    own: Option<&Table>,
    numbers: &dyn Fn(NodeId) -> Tensor<f64>,
) -> HashMap<NodeId, Pair> {
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
    // Names of two frameworks that stand for the same node of ours.
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
    guess(program, reference, &left, numbers, &mut pairs);
    pairs
}

/// Matches what is left where exactly one tensor has the same lengths and nearly the same numbers.
fn guess(
    program: &Program,
    reference: &Reference,
    left: &[usize],
    numbers: &dyn Fn(NodeId) -> Tensor<f64>,
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
        let theirs = reference.tensor(i);
        let near = |id: &&NodeId| {
            let node = program.node(**id);
            long(&node.shape) == long(theirs.shape())
                && !pairs.contains_key(*id)
                && apart(numbers(**id).data(), theirs.data()) <= GUESS
        };
        let mut found = open.iter().filter(near);
        if let (Some(id), None) = (found.next(), found.next()) {
            pairs.insert(*id, Pair { tensor: i, layout: None, table: GUESSED.to_owned() });
        }
    }
}

/// The root mean square of the difference, relative to the second.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    let (far, size) = a.iter().zip(b).fold((0.0, 0.0), |(far, size), (a, b)| (far + (a - b) * (a - b), size + b * b));
    if size > 0.0 { (far / size).sqrt() } else { f64::INFINITY }
}
