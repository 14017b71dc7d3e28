//! What a comparison found, as plain data.

use super::fit::Reading;
use super::layout::Layout;
use super::measure::{CellPair, Measure, Mode, State, Unit};
use super::pattern::Pattern;
use crate::program::NodeId;

/// Columns of the chart of errors.
const CHART: usize = 60;

/// A numbered step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepAt {
    /// The run whose steps these are, by its place in the session.
    pub run: usize,
    /// Position in the steps of that run.
    pub position: usize,
    /// Its number.
    pub label: String,
}

/// A node and the step that shows it (or the first that shows what comes of it, where none does).
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The node.
    pub node: NodeId,
    /// Its path.
    pub path: String,
    /// The step.
    pub step: Option<StepAt>,
}

/// A node and how it relates to the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Which.
    pub place: Place,
    /// Its shape.
    pub shape: Vec<usize>,
    /// How it is.
    pub state: State,
    /// Where it is in the reference; `None` where it is not.
    pub against: Option<Against>,
}

/// The reference's tensor next to a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Against {
    /// Its name.
    pub name: String,
    /// The table of names that says it is this node.
    pub table: String,
    /// Its place in the reference.
    pub tensor: usize,
    /// How its axes lie, where it is not as ours.
    pub layout: Option<Layout>,
    /// Which of the node's cells it tells.
    pub reading: Reading,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The coarsest number type on the way to here.
    pub unit: Unit,
    /// The sequence that is compared, where ours has no batch and those of the reference differ.
    pub row: Option<usize>,
    /// Whether it differs by its digits: no way of rounding the operations between gives them, although the limits of
    /// its number type allow as much.
    pub by_digits: bool,
    /// The numbers; `None` where the shapes do not fit.
    pub measure: Option<Measure>,
    /// Cells that differ, the worst first; not all of them where there are many.
    pub cells: Vec<CellPair>,
    /// What the difference looks like, where there is one.
    pub patterns: Vec<Pattern>,
}

/// A difference and where it can come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The node that differs.
    pub place: Place,
    /// The last node before it that agrees; `None` where nothing before it is in the reference.
    pub last_match: Option<Place>,
    /// What lies between, not in the reference: computed nodes that a step shows.
    pub between: Vec<Place>,
    /// Parameters, masks and other given values that go in between, and are not in the reference.
    pub given: Vec<Place>,
    /// Whether it may merely carry on a difference before it; in isolated mode, none does.
    pub carried: bool,
}

/// How far off a node is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Error {
    /// The node.
    pub node: NodeId,
    /// RMS of the difference, relative to the RMS of the reference; infinite where no number says how far.
    pub rms: f64,
    /// How it is.
    pub state: State,
}

impl Error {
    /// Its height in a chart from 1e-9 (1) to 1 and beyond (9), by decades; 0 where nothing differs.
    pub fn decades(&self) -> f64 {
        if self.rms > 0.0 { (self.rms.log10() + 10.0).clamp(0.0, 9.0) } else { 0.0 }
    }
}

/// The run in so many stretches at most: of each, its last node, and the largest error and the worst state of all its
/// nodes. `None` where nothing was measured or nothing differs at all.
pub fn stretches(errors: &[Error], columns: usize) -> Option<Vec<Error>> {
    if errors.len() < 2 || columns == 0 || errors.iter().all(|e| e.rms <= 0.0) {
        return None;
    }
    let width = columns.min(errors.len());
    let column = |i: usize| {
        let part = &errors[i * errors.len() / width..(i + 1) * errors.len() / width];
        let worst = part.iter().min_by_key(|e| rank(e.state))?;
        let rms = part.iter().map(|e| e.rms).fold(0.0, f64::max);
        Some(Error { node: part.last()?.node, rms, state: worst.state })
    };
    (0..width).map(column).collect()
}

/// Everything a comparison found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What it was computed from.
    pub mode: Mode,
    /// The run, by its place in the session.
    pub run: usize,
    /// What it was compared with.
    pub reference: String,
    /// The nodes of the run in order, those that are in the line of another only where the reference has them. A
    /// node of which the reference has several tensors is there once for each.
    pub nodes: Vec<Checked>,
    /// Differences in order; the first is the verdict.
    pub differences: Vec<Difference>,
    /// Names of the reference that denote no node of the run.
    pub unmatched: Vec<String>,
    /// Those of them that the recorded model computed, and that no other tensor repeats.
    pub mattering: Vec<String>,
    /// Tensors of the reference.
    pub tensors: usize,
    /// Names in a user's table that are no tensor of the reference.
    pub unused: Vec<String>,
    /// Names and types of what holds no numbers that we know.
    pub unreadable: Vec<(String, String)>,
}

impl Report {
    /// Whether nothing differs.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }

    /// The first difference.
    pub fn verdict(&self) -> Option<&Difference> {
        self.differences.first()
    }

    /// How far off each node is that was measured, in order: its RMS, relative to the reference.
    pub fn errors(&self) -> Vec<Error> {
        let error = |c: &Checked| {
            let rms = c.against.as_ref()?.measure.as_ref()?.rms;
            Some(Error { node: c.place.node, rms, state: c.state })
        };
        self.each().filter_map(error).collect()
    }

    /// The largest error of each stretch of the run, from 1e-9 to 1, as one line; `None` where there is none.
    pub fn growth(&self) -> Option<String> {
        let levels = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
        let stretches = stretches(&self.errors(), CHART)?;
        Some(stretches.iter().map(|s| levels[s.decades().floor() as usize]).collect())
    }

    /// How many nodes are in this state.
    pub fn count(&self, state: State) -> usize {
        self.each().filter(|n| n.state == state).count()
    }

    /// Every node once: of several tensors, the one that is worst.
    pub fn each(&self) -> impl Iterator<Item = &Checked> {
        let same = |a: &Checked, b: &Checked| a.place.node == b.place.node;
        self.nodes.chunk_by(same).filter_map(worst)
    }

    /// What was found of a node; of several tensors, the one that is worst.
    pub fn of(&self, node: NodeId) -> Option<&Checked> {
        self.each().find(|c| c.place.node == node)
    }
}

/// The first of those that are worst.
fn worst(of_one_node: &[Checked]) -> Option<&Checked> {
    of_one_node.iter().min_by_key(|c| rank(c.state))
}

fn rank(state: State) -> u8 {
    match state {
        State::Diverged => 0,
        State::Drift => 1,
        State::Match => 2,
        State::Unchecked => 3,
    }
}
