//! A recording next to our program: every node that the recording has is what the recording says, and what it does not
//! have is computed from those. So the arithmetic of a cell in this trace is that of ours, on their operands.

use std::collections::HashMap;

use super::{Beside, Failed, Options, Reference, cast, matched, nothing, scaled_embeddings};
use crate::program::{Binary, NodeId, Op, Program};
use crate::session::{AnyBindings, Session};
use crate::tensor::{Real, Value};
use crate::trace::derive::{Arithmetic, Cell, Replay, derive};
use crate::trace::{AnyTrace, Bindings, ChainSink, Flow, PinnedSink, RunError, Settings, Sink, Trace, run_with};
use crate::with_any;

use super::fit::fit;

/// A run next to a recording.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Our program on the recording's numbers.
    pub fed: AnyTrace,
}

/// Puts the recording's numbers in place.
struct Feed<'a> {
    reference: &'a Reference,
    beside: &'a HashMap<NodeId, Vec<Beside>>,
}

impl<T: Real> Sink<T> for Feed<'_> {
    fn node(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        let node = program.node(id);
        for beside in self.beside.get(&id).into_iter().flatten() {
            let found = self.reference.tensor(beside.tensor);
            if let Some(theirs) = fit(&found, beside.target.layout.as_ref(), beside.target.reading, node) {
                // A label or a mask that says less than ours is ours.
                return Flow::Replace(cast(&theirs.filled(&|i| value.get(i)), node.dtype));
            }
        }
        Flow::Go
    }
}

impl Bound {
    /// Lays a recording over run `run`.
    ///
    /// # Errors
    /// Where nothing of the recording is in the run, and where the run cannot run.
    pub fn new(session: &Session, run: usize, reference: &Reference, options: &Options) -> Result<Self, Failed> {
        let program = &session.runs[run].program;
        let modules = super::Modules::of(&session.scenario, program);
        let (mut beside, _) = matched(program, reference, options.names.as_ref(), &modules);
        scaled_embeddings(session, run, reference, &mut beside);
        if beside.is_empty() {
            return Err(Failed::Nothing(nothing(reference)));
        }
        let mut feed = Feed { reference, beside: &beside };
        let held = session.held(run);
        let mut go = |bindings: &AnyBindings| -> Result<AnyTrace, RunError> {
            let sink = &mut ChainSink(PinnedSink(held), &mut feed);
            Ok(match bindings {
                AnyBindings::F32(b) => AnyTrace::F32(fed(program, b, sink)?),
                AnyBindings::F64(b) => AnyTrace::F64(fed(program, b, sink)?),
            })
        };
        Ok(Self { fed: go(&session.bindings(run)).map_err(Failed::Run)? })
    }

    /// A cell computed from the recording's operands.
    pub fn recomputed(&self, cell: Cell) -> f64 {
        with_any!(AnyTrace, &self.fed, t => again(t, cell.node, std::iter::once(cell.flat))[0])
    }

    /// All cells of a node, each computed from the recording's operands.
    pub fn recomputed_node(&self, node: NodeId) -> Vec<f64> {
        let cells = self.fed.program().node(node).shape.len();
        with_any!(AnyTrace, &self.fed, t => again(t, node, 0..cells))
    }

    /// What a cell is added up from, on our operands and on theirs; the terms that differ most come first.
    pub fn terms(&self, ours: &AnyTrace, cell: Cell) -> Vec<Term> {
        let arithmetic = with_any!(AnyTrace, ours, t => derive(t, cell));
        let value = |trace: &AnyTrace, c: Cell| trace.value(c.node).get(c.flat);
        let mut values: HashMap<NodeId, [crate::trace::AnyValue; 2]> = HashMap::new();
        let mut both = |c: Cell| -> [f64; 2] {
            let [a, b] = values.entry(c.node).or_insert_with(|| [ours.value(c.node), self.fed.value(c.node)]);
            [a.get(c.flat), b.get(c.flat)]
        };
        let inline = |c: &Cell| ours.program().node(c.node).inline;
        let mut terms: Vec<Term> = match &arithmetic {
            // A product and its bias are one line.
            Arithmetic::Binary(Binary::Add, a, b) if inline(a) || inline(b) => {
                let parts = [*a, *b].into_iter().flat_map(|c| {
                    let whole = || vec![Term { operands: vec![c], ours: value(ours, c), theirs: value(&self.fed, c) }];
                    if inline(&c) { self.terms(ours, c) } else { whole() }
                });
                parts.collect()
            }
            Arithmetic::Dot(a, b) => {
                let products = a.cells().zip(b.cells()).map(|(a, b)| {
                    let ([x, theirs_x], [y, theirs_y]) = (both(a), both(b));
                    Term { operands: vec![a, b], ours: x * y, theirs: theirs_x * theirs_y }
                });
                products.collect()
            }
            other => {
                let one = |c: Cell| Term { operands: vec![c], ours: value(ours, c), theirs: value(&self.fed, c) };
                other.operands().into_iter().map(one).collect()
            }
        };
        let apart = |t: &Term| (t.theirs - t.ours).abs();
        terms.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
        terms
    }
}

/// One term of a cell's arithmetic: a product, or an operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// What is multiplied; one cell where nothing is.
    pub operands: Vec<Cell>,
    /// On our operands.
    pub ours: f64,
    /// On the recording's.
    pub theirs: f64,
}

fn fed<T: Real>(
    program: &std::sync::Arc<Program>,
    bindings: &Bindings<T>,
    sink: &mut impl Sink<T>,
) -> Result<Trace<T>, RunError> {
    run_with(program, bindings, &Settings { timed: false, ..Settings::default() }, sink)
}

fn again<T: Real>(trace: &Trace<T>, node: NodeId, cells: impl Iterator<Item = usize>) -> Vec<f64> {
    if matches!(trace.program().node(node).op, Op::Leaf(_)) {
        let value = trace.value(node);
        return cells.map(|flat| value.get(flat)).collect();
    }
    let replay = Replay::new(trace, node);
    cells.map(|flat| replay.number(&replay.arithmetic(flat), flat)).collect()
}
