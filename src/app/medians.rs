//! How long each op takes: the median of several runs.

use crate::session::Session;

/// Most runs that are timed.
const RUNS: u64 = 5;
/// Nanoseconds that timing them may take, about.
const BUDGET: u64 = 1_500_000_000;

/// Times of the ops of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Medians {
    /// Of how many runs; the one that is recorded is one of them.
    pub runs: usize,
    /// Nanoseconds, by node.
    pub nanos: Vec<u64>,
}

impl Medians {
    /// Runs the run several times, as often as takes no longer than a second or two.
    pub fn measure(session: &Session, run: usize) -> Option<Self> {
        let trace = session.trace(run).ok()?;
        let program = &session.runs[run].program;
        let first: Vec<u64> = program.nodes().map(|(id, _)| trace.nanos(id)).collect();
        let total: u64 = first.iter().sum();
        // A recording was timed elsewhere, or not at all.
        if total == 0 {
            return Some(Self { runs: 1, nanos: first });
        }
        let more = (BUDGET / total.max(1)).min(RUNS - 1);
        let mut all = vec![first];
        for _ in 0..more {
            match session.time(run) {
                Ok(nanos) => all.push(nanos),
                Err(_) => break,
            }
        }
        let median = |i: usize| {
            let mut of: Vec<u64> = all.iter().map(|nanos| nanos[i]).collect();
            of.sort_unstable();
            of[of.len() / 2]
        };
        Some(Self { runs: all.len(), nanos: (0..program.len()).map(median).collect() })
    }
}
