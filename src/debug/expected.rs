//! Expected values of a scenario against what its runs computed, cell by cell.

use crate::scenario::schema::Expected;
use crate::session::{Session, view};
use crate::text::Msg;
use crate::trace::derive::Cell;

/// A cell whose value is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// The cell of the node.
    pub cell: Cell,
    /// Its index in the node, one entry an axis.
    pub index: Vec<usize>,
    /// Position among the expected values, row by row.
    pub position: usize,
    /// What was expected.
    pub expected: f64,
    /// What is there.
    pub found: f64,
}

impl Wrong {
    /// Its index as a cell is written: `[0][2]`.
    pub fn bracketed(&self) -> String {
        use std::fmt::Write as _;
        self.index.iter().fold(String::new(), |mut all, i| {
            let _ = write!(all, "[{i}]");
            all
        })
    }
}

/// A published figure that is wrong, next to what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Misprinted {
    /// Its place in the expectation's list.
    pub entry: usize,
    /// Index of the cell in the node, one entry an axis.
    pub index: Vec<usize>,
    /// What was found.
    pub found: f64,
    /// Whether the published figure is right after all.
    pub right: bool,
}

/// One expectation, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its place in the scenario's list.
    pub entry: usize,
    /// The run.
    pub run: usize,
    /// Path of the tensor.
    pub path: String,
    /// Number of values.
    pub values: usize,
    /// Those that differ by more than is allowed.
    pub wrong: Vec<Wrong>,
    /// Published figures that are wrong, and what was found instead.
    pub misprints: Vec<Misprinted>,
    /// Largest difference; NaN counts as infinitely far.
    pub largest: f64,
}

/// Compares every expected value. Runs that were not executed yet are.
///
/// # Errors
/// Where a run is not there or cannot run; what is not there was refused when the scenario was opened.
pub fn compare(session: &Session) -> Result<Vec<Compared>, Msg> {
    let entries = session.scenario.expected.iter().enumerate();
    entries.map(|(i, e)| one(session, i, e)).collect()
}

fn one(session: &Session, entry: usize, e: &Expected) -> Result<Compared, Msg> {
    let run = match &e.run {
        None => 0,
        Some(name) => session
            .run_named(name)
            .ok_or_else(|| Msg::new("scenario.unknown_run").arg("name", crate::text::escape(name)))?,
    };
    let view = view(session, run, "", &e.path, &e.slice).map_err(|p| p.msg)?;
    let trace = session.trace(run).map_err(|why| Msg::new("cli.cannot_run").arg("why", why))?;
    let value = trace.value(view.node);
    let shape = *value.shape();
    let mut out = Compared {
        entry,
        run,
        path: e.path.clone(),
        values: e.values.flat().len(),
        wrong: Vec::new(),
        misprints: Vec::new(),
        largest: 0.0,
    };
    for (position, (flat, &expected)) in view.cells.flats().zip(e.values.flat()).enumerate() {
        let found = value.get(flat);
        let far = distance(expected, found);
        out.largest = out.largest.max(far);
        for (entry, misprint) in e.misprints.iter().enumerate().filter(|(_, m)| m.at == position) {
            let index = shape.unflat(flat)[..shape.rank()].to_vec();
            let allowed = e.allowed(misprint.printed, session.scenario.precision, session.precision);
            let right = distance(misprint.printed, found) <= allowed;
            out.misprints.push(Misprinted { entry, index, found, right });
        }
        if far > e.allowed(expected, session.scenario.precision, session.precision) {
            let index = shape.unflat(flat)[..shape.rank()].to_vec();
            out.wrong.push(Wrong { cell: Cell { node: view.node, flat }, index, position, expected, found });
        }
    }
    Ok(out)
}

/// |expected − found|; equal infinities are at no distance, and NaN is far from everything.
fn distance(expected: f64, found: f64) -> f64 {
    if expected == found {
        return 0.0;
    }
    let far = (expected - found).abs();
    if far.is_nan() { f64::INFINITY } else { far }
}
