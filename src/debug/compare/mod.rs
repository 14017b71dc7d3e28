//! Comparing a run with a reference: the activations of another program, or another scenario's run.
//!
//! A reference is a set of named tensors ([`Reference`]); [`alias`] says which nodes they denote, [`layout`] how
//! their axes lie, [`mod@measure`] how near they must be. [`compare`] goes through the run with the reference next to
//! it and gives a [`Report`]: plain data, in which the first difference lies between the last node that agrees and the
//! first that does not.

pub mod alias;
pub mod blocks;
pub mod bound;
pub mod cells;
mod differences;
mod families;
pub mod fit;
pub mod layout;
pub mod measure;
mod modules;
mod noise;
pub mod pattern;
mod places;
pub mod recordings;
mod reference;
mod report;
mod rounding;
mod table;
mod theirs;
mod walk;
pub mod words;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

pub use measure::{CellPair, Limits, Measure, Mode, Policy, State, Tolerance, Unit};
pub use reference::{Named, RecordedModel, Reference, Unopened, is_file_of_tensors};
pub use report::{Against, Checked, Difference, Error, Place, Report, StepAt, stretches};
pub use theirs::theirs;

use crate::parallel;
use crate::program::{Affine, NodeId, Op, Pick, Program};
use crate::session::{AnyBindings, RunKind, Session};
use crate::tensor::{Precision, Real, Tensor, Value};
use crate::text::{Msg, escape};
use crate::trace::{Bindings, Rounder, Rounding, RunError};
use alias::{Idle, Resolver, Table, Target};
use differences::differences;
use fit::{Reading, fit};
use modules::Modules;
use places::Places;
use walk::{Beside, Plan, cast, walk};

/// Names of a reference that an error tells.
const NAMES_TOLD: usize = 5;

/// How to compare.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// From what.
    pub mode: Mode,
    /// How near.
    pub tolerance: Tolerance,
    /// A user's table of names.
    pub names: Option<Table>,
    /// How our side rounds every number.
    pub rounding: Option<Rounding>,
}

/// Why nothing could be compared.
#[derive(Clone, Debug)]
pub enum Failed {
    /// No tensor of the reference denotes a node of the run, or a user's table names a node that is not there.
    Nothing(Msg),
    /// The run cannot run, also with the reference's ids.
    Run(RunError),
}

/// Compares run `run` of a session with a reference.
///
/// # Errors
/// Where nothing of the reference is in the run, and where the run cannot run.
pub fn compare(session: &Session, run: usize, reference: &Reference, options: &Options) -> Result<Report, Failed> {
    if session.runs[run].kind == RunKind::Recorded {
        return recordings::compare(session, run, reference, options);
    }
    let program = &session.runs[run].program;
    let modules = Modules::of(&session.scenario, program);
    let (mut beside, unmatched) = matched(program, reference, options.names.as_ref(), &modules);
    scaled_embeddings(session, run, reference, &mut beside);
    let unused = match &options.names {
        Some(own) => unused(program, reference, own)?,
        None => Vec::new(),
    };
    let numbers = |b: &Beside| reference.tensors[b.tensor].unit.is_some();
    if !beside.values().flatten().any(numbers) {
        return Err(Failed::Nothing(nothing(reference)));
    }
    let plan = Plan {
        program,
        reference,
        beside: &beside,
        mode: options.mode,
        tolerance: options.tolerance,
        parameters: session.precision,
        held: session.held(run),
        rounder: options.rounding.or(session.rounding).map(Rounder::from),
    };
    let bindings = session.bindings(run);
    let (wide, narrow): (Bindings<f64>, Bindings<f32>) = match &*bindings {
        AnyBindings::F64(b) => (b.clone(), converted(b)),
        AnyBindings::F32(b) => (converted(b), b.clone()),
    };
    let found = match (options.mode, session.precision) {
        (Mode::Cumulative, Precision::F32) => walk(&plan, &narrow, &wide),
        _ => walk(&plan, &wide, &narrow),
    }
    .map_err(Failed::Run)?;
    let nodes = in_order(session, run, found);
    Ok(Report {
        mode: options.mode,
        run,
        reference: reference.name.clone(),
        differences: differences(session, run, options.mode, &nodes),
        nodes,
        mattering: mattering(reference, &unmatched),
        unmatched,
        tensors: reference.tensors.len(),
        unused,
        unreadable: reference.unreadable.clone(),
    })
}

/// A module of transformers that looks up embeddings may scale them too: then its output denotes the scaled ones.
/// Its class says so; where none is recorded, the numbers do.
fn scaled_embeddings(session: &Session, run: usize, reference: &Reference, beside: &mut HashMap<NodeId, Vec<Beside>>) {
    let program = &session.runs[run].program;
    let scaled_of = |id: NodeId| {
        let scales = |user: &&NodeId| matches!(program.node(**user).op, Op::Affine(Affine::Mul(_)));
        let looked_up = matches!(program.node(id).op, Op::Gather(Pick::Rows));
        program.users(id).iter().find(scales).copied().filter(|_| looked_up)
    };
    let candidates: Vec<(NodeId, NodeId)> = beside.keys().filter_map(|id| Some((*id, scaled_of(*id)?))).collect();
    for (looked_up, scaled) in candidates {
        let nearer = |b: &Beside| {
            let name = &reference.tensors[b.tensor].name;
            if let Some(class) = reference.model.classes.get(name) {
                return class.contains("Scaled");
            }
            let Ok(trace) = session.trace(run) else { return false };
            let theirs = reference.tensor(b.tensor);
            let Some(theirs) = fit(&theirs, b.target.layout.as_ref(), b.target.reading, program.node(looked_up)) else {
                return false;
            };
            let far = |id: NodeId| {
                let ours = trace.value(id);
                let cells = theirs.cells().enumerate();
                cells.filter_map(|(i, x)| Some((x? - ours.get(i)).abs())).fold(0.0, f64::max)
            };
            far(scaled) < far(looked_up)
        };
        let all = beside.remove(&looked_up).unwrap_or_default();
        let (moved, stays): (Vec<Beside>, Vec<Beside>) = all.into_iter().partition(nearer);
        // So does the gradient of what it gives out.
        let gradient = |id: NodeId| program.named(&program.node(id).name.gradient());
        if let (false, Some(from), Some(to)) = (moved.is_empty(), gradient(looked_up), gradient(scaled)) {
            let gradients = beside.remove(&from).unwrap_or_default();
            beside.entry(to).or_default().extend(gradients.into_iter().map(|b| b.of(to)));
        }
        if !stays.is_empty() {
            beside.insert(looked_up, stays);
        }
        beside.entry(scaled).or_default().extend(moved.into_iter().map(|b| b.of(scaled)));
    }
}

/// Tensors without a counterpart that the model computed: not what it was given, no ids and masks, and not the same
/// numbers as a tensor that has one.
fn mattering(reference: &Reference, unmatched: &[String]) -> Vec<String> {
    let without: HashSet<&str> = unmatched.iter().map(String::as_str).collect();
    let (open, there): (Vec<usize>, Vec<usize>) =
        (0..reference.tensors.len()).partition(|i| without.contains(reference.tensors[*i].name.as_str()));
    let computed = |i: &usize| {
        let named = &reference.tensors[*i];
        named.unit.is_some() && !reference.model.inputs.contains(&named.name)
    };
    let open: Vec<usize> = open.into_iter().filter(computed).collect();
    // Only tensors of the same length can hold the same numbers.
    let lengths: HashSet<usize> = open.iter().map(|i| reference.len(*i)).collect();
    let summed = |i: usize| {
        let sum = cells::Cells::from(&reference.value(i)).checksum();
        reference.let_go(i);
        (reference.len(i), sum)
    };
    let there: Vec<usize> = there.into_iter().filter(|i| lengths.contains(&reference.len(*i))).collect();
    let known: HashSet<(usize, u64)> = parallel::map(there.len(), |k| summed(there[k])).into_iter().collect();
    let sums = parallel::map(open.len(), |k| summed(open[k]));
    let other = open.iter().zip(sums).filter(|(_, sum)| !known.contains(sum));
    other.map(|(i, _)| reference.tensors[*i].name.clone()).collect()
}

/// Names of a user's table that are no tensor of the reference.
///
/// # Errors
/// Where a name is one, and the program has no node that it is said to be.
fn unused(program: &Program, reference: &Reference, own: &Table) -> Result<Vec<String>, Failed> {
    let resolver = Resolver::new(program, Some(own));
    // Names of another run are paths and need no table.
    let names: Vec<&str> =
        (reference.tensors.iter()).filter(|_| !reference.is_run()).map(|t| t.name.as_str()).collect();
    let mut unused = Vec::new();
    for idle in resolver.idle(own, &names) {
        match idle {
            Idle::NoName(rule) => unused.push(rule),
            Idle::NoPath { name, path } => {
                return Err(Failed::Nothing(no_path(program, &name, &path)));
            }
        }
    }
    Ok(unused)
}

/// Which tensors denote which nodes, and the names of those that denote none.
fn matched(
    program: &Program,
    reference: &Reference,
    own: Option<&Table>,
    modules: &Modules,
) -> (HashMap<NodeId, Vec<Beside>>, Vec<String>) {
    let resolver = Resolver::new(program, own).of_model(&reference.model);
    let mut beside: HashMap<NodeId, Vec<Beside>> = HashMap::new();
    let mut unmatched = Vec::new();
    for (i, named) in reference.tensors.iter().enumerate() {
        let mut targets = if reference.is_run() {
            let same = program.find(&named.name).map(|node| Target {
                node,
                layout: None,
                reading: Reading::Whole,
                table: "paths".to_owned(),
            });
            same.into_iter().collect()
        } else {
            // To fit a tensor is to copy it: once for each target.
            let (found, tried) = (OnceCell::new(), RefCell::new(Vec::<(Target, bool)>::new()));
            let fits = |t: &Target| {
                if let Some((_, fits)) = tried.borrow().iter().find(|(tried, _)| tried == t) {
                    return *fits;
                }
                let found = found.get_or_init(|| reference.tensor(i));
                let fits = fit(found, t.layout.as_ref(), t.reading, program.node(t.node)).is_some();
                tried.borrow_mut().push((t.clone(), fits));
                fits
            };
            let of_weights = |outputs: &[modules::Output]| -> Vec<Target> {
                let target = |output: &modules::Output| Target {
                    node: output.node,
                    layout: output.layout.clone(),
                    reading: output.reading,
                    table: modules::ABOUT.to_owned(),
                };
                outputs.iter().map(target).filter(&fits).collect()
            };
            // The file that a parameter is read from says how it lies there, and so does its gradient.
            let mut found = of_weights(modules.gradient(&named.name));
            if found.is_empty() {
                found = resolver.resolve_fitting(&named.name, &fits);
            }
            if !found.iter().any(fits) && !resolver.is_nothing(&named.name) {
                let others = of_weights(modules.resolve(&named.name));
                found = if others.is_empty() { found } else { others };
            }
            found
        };
        // A mask of another shape tells something else, of single queries or of a cache that is not full.
        targets.retain(|t| {
            let node = program.node(t.node);
            let fits = || fit(&reference.tensor(i), t.layout.as_ref(), t.reading, node).is_some();
            t.reading != Reading::SeenKeys || fits()
        });
        if targets.is_empty() && !reference.is_inline(i) {
            unmatched.push(named.name.clone());
        }
        for target in targets {
            let tensors = beside.entry(target.node).or_default();
            tensors.push(Beside { tensor: i, target });
        }
    }
    (beside, unmatched)
}

fn no_path(program: &Program, name: &str, path: &str) -> Msg {
    let near = program.similar_paths(path, 1);
    let key = if near.is_empty() { "compare.map.no_path" } else { "compare.map.no_path_near" };
    Msg::new(key)
        .arg("name", escape(name))
        .arg("path", escape(path))
        .arg("near", near.first().copied().unwrap_or_default())
}

fn nothing(reference: &Reference) -> Msg {
    let names: Vec<String> =
        (reference.tensors.iter()).take(NAMES_TOLD).map(|t| format!("`{}`", escape(&t.name))).collect();
    let key = if names.is_empty() { "compare.empty" } else { "compare.nothing" };
    Msg::new(key)
        .arg("reference", escape(&reference.name))
        .arg("count", reference.tensors.len())
        .arg("names", names.join(", "))
}

/// The same values in the other number type.
fn converted<T: Real, U: Real>(from: &Bindings<T>) -> Bindings<U> {
    let one = |value: &Value<T>| match value {
        Value::Float(t) => {
            let data: Vec<U> = t.data().iter().map(|x| U::from_f64(x.to_f64())).collect();
            Value::Float(Tensor::new(*t.shape(), data))
        }
        Value::Int(t) => Value::Int(t.clone()),
        Value::Bool(t) => Value::Bool(t.clone()),
    };
    from.iter().map(|(path, value)| (path.clone(), one(value))).collect()
}

/// Every node of the run with what was found of it, in order.
fn in_order(session: &Session, run: usize, found: Vec<Checked>) -> Vec<Checked> {
    let program = &session.runs[run].program;
    let places = Places::new(session, run);
    let mut by_node: HashMap<NodeId, Vec<Checked>> = HashMap::new();
    for mut checked in found {
        let cells = (checked.against.iter())
            .flat_map(|a| a.measure.iter())
            .flat_map(|m| m.first.into_iter().chain(m.worst.iter().copied()));
        checked.place = places.of_cells(checked.place.node, cells);
        by_node.entry(checked.place.node).or_default().push(checked);
    }
    let mut nodes = Vec::new();
    for (id, node) in program.nodes() {
        match by_node.remove(&id) {
            Some(checked) => nodes.extend(checked),
            None if node.inline => {}
            None => nodes.push(Checked {
                place: places.of(id),
                shape: node.shape.dims().to_vec(),
                state: State::Unchecked,
                against: None,
            }),
        }
    }
    nodes
}
