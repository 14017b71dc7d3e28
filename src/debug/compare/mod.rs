//! Comparing a run with a reference: the activations of another program, or another scenario's run.
//!
//! A reference is a set of named tensors ([`Reference`]); [`alias`] says which nodes they stand for, [`layout`] how
//! their axes lie, [`mod@measure`] how near they must be. [`compare`] goes through the run with the reference beside
//! it and gives a [`Report`]: plain data, in which the first difference lies between the last node that agrees and the
//! first that does not.

pub mod alias;
pub mod layout;
pub mod measure;
mod places;
mod reference;
mod report;
mod walk;
pub mod words;

use std::collections::HashMap;

pub use measure::{CellPair, Limits, Measure, Mode, Policy, State, Tolerance, Unit};
pub use reference::{Named, Reference, Unopened, is_file_of_tensors};
pub use report::{Against, Checked, Difference, Place, Report, StepAt};

use crate::program::{NodeId, Op, Program};
use crate::session::{AnyBindings, Session};
use crate::tensor::{DType, Precision, Real, Tensor, Value};
use crate::text::{Msg, escape};
use crate::trace::{Bindings, RunError};
use alias::{Resolver, Table, Target};
use places::Places;
use walk::{Beside, Plan, walk};

/// Names of a reference that an error tells.
const NAMES_TOLD: usize = 5;

/// How to compare.
#[derive(Debug, Default)]
pub struct Options {
    /// From what.
    pub mode: Mode,
    /// How near.
    pub tolerance: Tolerance,
    /// A person's own table of names.
    pub names: Option<Table>,
}

/// Why nothing could be compared.
#[derive(Clone, Debug)]
pub enum Failed {
    /// No tensor of the reference stands for a node of the run, or a person's own table names a node that is not there.
    Nothing(Msg),
    /// The run cannot run, also with the reference's ids.
    Run(RunError),
}

/// Compares run `run` of a session with a reference.
///
/// # Errors
/// Where nothing of the reference is in the run, and where the run cannot run.
pub fn compare(
    session: &Session,
    run: usize,
    reference: &Reference,
    options: &Options,
) -> Result<Report, Failed> {
    let program = &session.runs[run].program;
    let (beside, unmatched) = matched(program, reference, options.names.as_ref());
    if let Some(own) = &options.names {
        let resolver = Resolver::new(program, Some(own));
        for name in &unmatched {
            if let Some(path) = resolver.misses(own, name) {
                return Err(Failed::Nothing(no_path(program, name, &path)));
            }
        }
    }
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
    Ok(report(
        session,
        run,
        reference,
        options.mode,
        found,
        unmatched,
    ))
}

/// Which tensors stand for which nodes, and the names of those that stand for none.
fn matched(
    program: &Program,
    reference: &Reference,
    own: Option<&Table>,
) -> (HashMap<NodeId, Vec<Beside>>, Vec<String>) {
    let resolver = Resolver::new(program, own);
    let mut beside: HashMap<NodeId, Vec<Beside>> = HashMap::new();
    let mut unmatched = Vec::new();
    for (i, named) in reference.tensors.iter().enumerate() {
        let targets = if reference.is_run() {
            let same = program.find(&named.name).map(|node| Target {
                node,
                layout: None,
                table: "paths".to_owned(),
            });
            same.into_iter().collect()
        } else {
            resolver.resolve(&named.name)
        };
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
    let key = if near.is_empty() {
        "compare.map.no_path"
    } else {
        "compare.map.no_path_near"
    };
    Msg::new(key)
        .arg("name", escape(name))
        .arg("path", escape(path))
        .arg("near", near.first().copied().unwrap_or_default())
}

fn nothing(reference: &Reference) -> Msg {
    let names: Vec<String> = (reference.tensors.iter())
        .take(NAMES_TOLD)
        .map(|t| format!("`{}`", escape(&t.name)))
        .collect();
    let key = if names.is_empty() {
        "compare.empty"
    } else {
        "compare.nothing"
    };
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
    from.iter()
        .map(|(path, value)| (path.clone(), one(value)))
        .collect()
}

fn report(
    session: &Session,
    run: usize,
    reference: &Reference,
    mode: Mode,
    found: Vec<Checked>,
    unmatched: Vec<String>,
) -> Report {
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
    Report {
        mode,
        run,
        reference: reference.name.clone(),
        differences: differences(program, &places, mode, &nodes),
        nodes,
        unmatched,
        unreadable: reference.unreadable.clone(),
    }
}

/// How a node of the program stands.
#[derive(Clone, Copy, PartialEq)]
enum Standing {
    /// Not in the reference.
    Open,
    /// It agrees.
    Good,
    /// It differs. What follows is computed from ours where `ours`, else from the reference's value.
    Bad { ours: bool },
}

fn differences(
    program: &Program,
    places: &Places<'_>,
    mode: Mode,
    nodes: &[Checked],
) -> Vec<Difference> {
    let mut standing = vec![Standing::Open; program.len()];
    for checked in nodes {
        let now = &mut standing[checked.place.node.index()];
        let fits = (checked.against.as_ref()).is_some_and(|a| a.measure.is_some());
        match (checked.state, *now) {
            (State::Diverged, Standing::Bad { ours: false }) => {}
            (State::Diverged, before) => {
                let replaced = fits || before == Standing::Good;
                *now = Standing::Bad {
                    ours: mode == Mode::Cumulative || !replaced,
                };
            }
            (State::Match | State::Drift, Standing::Open) => *now = Standing::Good,
            _ => {}
        }
    }
    // What a difference before it may have reached.
    let mut reached = vec![false; program.len()];
    for (id, node) in program.nodes() {
        let cut = mode == Mode::Isolated && standing[id.index()] != Standing::Open;
        reached[id.index()] = standing[id.index()] == (Standing::Bad { ours: true })
            || !cut && node.inputs.iter().any(|i| reached[i.index()]);
    }
    let bad = |id: NodeId| matches!(standing[id.index()], Standing::Bad { .. });
    let mut out: Vec<Difference> = Vec::new();
    for checked in nodes.iter().filter(|c| bad(c.place.node)) {
        let id = checked.place.node;
        if checked.state != State::Diverged || out.last().is_some_and(|d| d.place.node == id) {
            continue;
        }
        let mut open = vec![id];
        let mut seen = vec![false; program.len()];
        let (mut last, mut between, mut given) = (None, Vec::new(), Vec::new());
        while let Some(reader) = open.pop() {
            for &input in &program.node(reader).inputs {
                if std::mem::replace(&mut seen[input.index()], true) {
                    continue;
                }
                let node = program.node(input);
                let is_given = matches!(node.op, Op::Leaf(_));
                match standing[input.index()] {
                    // What was computed says more of how far the runs agree than a weight that they share.
                    Standing::Good => last = last.max(Some((!is_given, input))),
                    Standing::Bad { .. } => {}
                    Standing::Open => {
                        open.push(input);
                        if is_given {
                            given.push(input);
                        } else if !node.inline {
                            between.push(input);
                        }
                    }
                }
            }
        }
        between.sort_unstable();
        given.sort_unstable();
        let place = checked.place.clone();
        out.push(Difference {
            last_match: last.map(|(_, id)| places.before(id, place.step.as_ref())),
            between: between.into_iter().map(|id| places.of(id)).collect(),
            given: (given.into_iter())
                .filter(|id| told(program, *id))
                .map(|id| places.of(id))
                .collect(),
            carried: (program.node(id).inputs.iter()).any(|i| reached[i.index()]),
            place,
        });
    }
    out
}

/// Whether a given value is one that a person gives: a parameter, ids, a mask; not a constant of a formula.
fn told(program: &Program, id: NodeId) -> bool {
    use crate::program::Leaf;
    let node = program.node(id);
    let constant = matches!(node.op, Op::Leaf(Leaf::Constant(_)));
    !node.inline && (!constant || node.dtype != DType::Float)
}
