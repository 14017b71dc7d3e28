//! Where differences come from: what agrees before each, what lies between, what one may merely carry on.

use super::measure::{Mode, State};
use super::places::Places;
use super::report::{Checked, Difference};
use crate::program::{Leaf, NodeId, Op, Program};
use crate::session::Session;
use crate::tensor::DType;

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

/// The differences among `nodes`, in order.
pub(super) fn differences(session: &Session, run: usize, mode: Mode, nodes: &[Checked]) -> Vec<Difference> {
    let program = &*session.runs[run].program;
    let places = Places::new(session, run);
    let mut standing = vec![Standing::Open; program.len()];
    for checked in nodes {
        let now = &mut standing[checked.place.node.index()];
        let fits = (checked.against.as_ref()).is_some_and(|a| a.measure.is_some());
        match (checked.state, *now) {
            (State::Diverged, Standing::Bad { ours: false }) => {}
            (State::Diverged, before) => {
                let replaced = fits || before == Standing::Good;
                *now = Standing::Bad { ours: mode == Mode::Cumulative || !replaced };
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
            given: (given.into_iter()).filter(|id| reported(program, *id)).map(|id| places.of(id)).collect(),
            carried: (program.node(id).inputs.iter()).any(|i| reached[i.index()]),
            place,
        });
    }
    out
}

/// Whether a given value is one that a user gives: a parameter, ids, a mask; not a constant of a formula.
fn reported(program: &Program, id: NodeId) -> bool {
    let node = program.node(id);
    let constant = matches!(node.op, Op::Leaf(Leaf::Constant(_)));
    !node.inline && (!constant || node.dtype != DType::Float)
}
