//! What ops cost: arithmetic and bytes as computed, time as the median of several runs.

use std::collections::HashMap;

use crate::app::navigator::Navigator;
use crate::program::{NodeId, cost};

/// A row: an op, or all ops of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The op; the last one of a step.
    pub node: NodeId,
    /// How many ops it denotes.
    pub ops: usize,
    /// Position of the step, where it is one.
    pub step: Option<usize>,
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Nanoseconds.
    pub nanos: u64,
}

/// The rows of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Run.
    pub run: usize,
    /// Rows.
    pub rows: Vec<Row>,
    /// The row of the op looked at.
    pub here: usize,
    /// Of how many runs the times are the median.
    pub runs: usize,
    /// All together.
    pub total: (u64, u64, u64),
}

impl Costs {
    /// Of the run looked at: a row for each op, or for each step where `folded`; the slowest first where `sorted`.
    pub fn of(nav: &Navigator, folded: bool, sorted: bool) -> Option<Self> {
        let run = nav.run_here();
        let program = &nav.session.runs[run].program;
        let trace = nav.trace(run)?;
        let medians = nav.medians(run);
        let nanos = |id: NodeId| match &medians {
            Some(m) => m.nanos[id.index()],
            None => trace.nanos(id),
        };
        let mut rows: Vec<Row> = Vec::with_capacity(program.len());
        let mut of_node: Vec<usize> = Vec::with_capacity(program.len());
        let mut of_step: HashMap<usize, usize> = HashMap::new();
        let steps = if folded { Some(nav.steps_of_nodes(run)) } else { None };
        for (id, _) in program.nodes() {
            let c = cost(program, id, nav.session.precision);
            let step = steps.as_ref().and_then(|s| s[id.index()]);
            let row = Row { node: id, ops: 1, step, flops: c.flops, bytes: c.read + c.written, nanos: nanos(id) };
            let same = step.and_then(|step| of_step.get(&step).copied());
            if let Some(at) = same {
                let all = &mut rows[at];
                all.node = id;
                all.ops += 1;
                all.flops += row.flops;
                all.bytes += row.bytes;
                all.nanos += row.nanos;
                of_node.push(at);
            } else {
                of_node.push(rows.len());
                if let Some(step) = step {
                    of_step.insert(step, rows.len());
                }
                rows.push(row);
            }
        }
        let looked_at = nav.view().filter(|v| v.run == run).map_or(0, |v| of_node[v.node.index()]);
        let total = rows.iter().fold((0, 0, 0), |t, r| (t.0 + r.flops, t.1 + r.bytes, t.2 + r.nanos));
        let mut order: Vec<usize> = (0..rows.len()).collect();
        if sorted {
            order.sort_by_key(|i| (std::cmp::Reverse(rows[*i].nanos), *i));
        }
        let here = order.iter().position(|i| *i == looked_at).unwrap_or(0);
        let rows = order.into_iter().map(|i| rows[i].clone()).collect();
        Some(Self { run, rows, here, runs: medians.map_or(1, |m| m.runs), total })
    }
}
