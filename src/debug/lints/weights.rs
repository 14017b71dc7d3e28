//! Weights that files have and nobody uses, weights that they lack, and a head that was meant to be the embedding.

use super::{Finding, Look, brief};
use crate::program::{Leaf, NodeId, Op, Pick, ScopeKind};
use crate::scenario::lint::{Lint, Severity};
use crate::session::Session;
use crate::tensor::Real;
use crate::text::{Msg, escape};

/// RMS of the difference of two tables, relative to their own, up to which they are meant to be one.
const NEARLY: f64 = 0.1;

/// What the session's weight files have too much or too little.
pub(super) fn of_files(session: &Session) -> Vec<Finding> {
    let finding = |lint: Lint, path: &String| {
        // A parameter has a place: the first run that reads it.
        let place = session.runs.iter().enumerate().find_map(|(i, r)| Some((i, r.program.find(path)?)));
        Finding {
            lint,
            severity: Severity::Warning,
            allowed: false,
            run: place.map(|p| p.0),
            also: Vec::new(),
            path: path.clone(),
            node: place.map(|p| p.1),
            cell: Vec::new(),
            value: None,
            count: 1,
            msg: Msg::new(lint.key()).arg("path", escape(path)),
        }
    };
    let coverage = &session.coverage;
    let unused = coverage.unused.iter();
    let unused = unused.map(|path| Finding { run: None, node: None, ..finding(Lint::WeightsUnused, path) });
    let idle = coverage.idle.iter();
    let idle = idle.map(|pattern| Finding { run: None, node: None, ..finding(Lint::InitUnused, pattern) });
    let missing = coverage.made_up.iter();
    unused.chain(idle).chain(missing.map(|path| finding(Lint::WeightsMissing, path))).collect()
}

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    let Some((head, table)) = head_and_table(look) else {
        return;
    };
    let (a, b) = (look.numbers(head), look.numbers(table));
    if head == table || !a.shape().same_dims(b.shape()) {
        return;
    }
    let (mut off, mut size, mut equal) = (0.0, 0.0, 0);
    for (x, y) in a.data().iter().zip(b.data()) {
        let (x, y) = (x.to_f64(), y.to_f64());
        off += (x - y) * (x - y);
        size += y * y;
        equal += usize::from(x == y);
    }
    // Written so that NaN is not near.
    let near = off <= NEARLY * NEARLY * size;
    if !near || size == 0.0 {
        return;
    }
    let n = a.data().len();
    let first = (0..n).find(|i| a.data()[*i].bits() != b.data()[*i].bits());
    let args = [
        ("table", look.program.node(table).path.to_string()),
        ("equal", brief((equal as f64 / n as f64 * 1000.0).floor() / 10.0)),
    ];
    let kind = (Lint::HeadNotTied, Severity::Warning);
    let value = libm::sqrt(off / size);
    look.tell(kind, (head, first), (value, n - equal), &args);
}

/// The matrix of the first output head, and the token table of the last embedding before it.
fn head_and_table<T: Real>(look: &Look<'_, T>) -> Option<(NodeId, NodeId)> {
    let program = look.program;
    let within = |kind: &ScopeKind| {
        let scopes = program.scopes().filter(move |(_, s)| s.kind == *kind);
        scopes.map(|(_, s)| s.nodes.clone()).collect::<Vec<_>>()
    };
    let parameter = |id: NodeId| matches!(program.node(id).op, Op::Leaf(Leaf::Parameter));
    let output = within(&ScopeKind::Output).into_iter().next()?;
    let head = output.clone().map(NodeId).find_map(|id| {
        let node = program.node(id);
        let product = matches!(node.op, Op::MatMul { .. });
        let weight = node.inputs.get(1).copied();
        weight.filter(|w| product && parameter(*w))
    })?;
    if !look.fresh(NodeId(output.start)) {
        return None;
    }
    let embeddings = within(&ScopeKind::Embedding).into_iter().rev();
    let mut before = embeddings.filter(|nodes| nodes.start < output.start);
    let table = before.next()?.map(NodeId).find_map(|id| {
        let node = program.node(id);
        let looks_up = matches!(node.op, Op::Gather(Pick::Rows));
        let table = node.inputs.first().copied();
        table.filter(|t| looks_up && parameter(*t))
    })?;
    Some((head, table))
}
