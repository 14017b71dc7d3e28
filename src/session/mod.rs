//! A scenario opened: its words, its parameters, its runs (executed when first looked at) and its numbered steps.

mod inputs;
mod labels;
mod open;
mod runs;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use crate::model::Outputs;
use crate::model::params::ParamSpec;
use crate::program::{NodeId, Program};
use crate::scenario::schema::{self, Scenario};
use crate::scenario::tokenise::Words;
use crate::scenario::weights::Coverage;
use crate::tensor::{Precision, Slice};
use crate::trace::derive::Cell;
use crate::trace::{AnyTrace, Bindings, RunError};
use crate::walkthrough::{Detail, Step};

pub use inputs::Inputs;
pub use open::{Options, open};

/// What a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum RunKind {
    /// Teacher-forced forward pass.
    Training,
    /// The training pass and its gradients.
    Backward,
    /// Token by token.
    Inference,
    /// The encoder only.
    Encode,
}

/// Parameters of either number type.
#[derive(Clone, Debug)]
pub enum AnyBindings {
    /// In f32.
    F32(Bindings<f32>),
    /// In f64.
    F64(Bindings<f64>),
}

/// A run of a scenario.
#[derive(Debug)]
pub struct Run {
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: RunKind,
    /// Its program.
    pub program: Arc<Program>,
    /// Its main nodes; those of a generation are found by path.
    pub outputs: Outputs,
    trace: OnceLock<Result<AnyTrace, RunError>>,
    rounded: Mutex<HashMap<u8, Arc<AnyTrace>>>,
}

/// A scenario opened.
#[derive(Debug)]
pub struct Session {
    /// The scenario.
    pub scenario: Scenario,
    /// Where it came from; what it names is looked for beside it.
    pub origin: Option<PathBuf>,
    /// Number type.
    pub precision: Precision,
    /// Words of the source.
    pub source_words: Words,
    /// Words of the target.
    pub target_words: Words,
    /// Sequences, as ids.
    pub inputs: Inputs,
    /// Parameters of the model.
    pub specs: Vec<ParamSpec>,
    /// Their values.
    pub params: AnyBindings,
    /// Where these came from.
    pub coverage: Coverage,
    /// Runs, in order.
    pub runs: Vec<Run>,
    /// The walkthrough: all of it where the scenario has one, else the plan of the first run.
    pub steps: Vec<Step>,
    /// Detail of automatic plans.
    pub detail: Detail,
    places: OnceLock<HashMap<(usize, NodeId), Vec<usize>>>,
}

impl Session {
    /// The run called `name`.
    pub fn run_named(&self, name: &str) -> Option<usize> {
        self.runs.iter().position(|r| r.name == name)
    }

    /// Words that ids of `side` stand for.
    pub fn words(&self, side: &str) -> &Words {
        if side == "source" {
            &self.source_words
        } else {
            &self.target_words
        }
    }

    /// Numbered steps of one run: those of the walkthrough, else an automatic plan.
    pub fn steps_of(&self, run: usize) -> Vec<Step> {
        let own: Vec<Step> = self
            .steps
            .iter()
            .filter(|s| s.run == run)
            .cloned()
            .collect();
        if own.is_empty() {
            self.plan_of(run)
        } else {
            own
        }
    }

    /// The first step whose views hold `cell`, the nearest one at or before step `from` where several do.
    pub fn locate(
        &self,
        run: usize,
        cell: Cell,
        from: usize,
    ) -> Option<(usize, usize, Vec<usize>)> {
        let places = self.places.get_or_init(|| {
            let mut map: HashMap<(usize, NodeId), Vec<usize>> = HashMap::new();
            for (i, step) in self.steps.iter().enumerate() {
                for view in &step.views {
                    let list = map.entry((view.run, view.node)).or_default();
                    if list.last() != Some(&i) {
                        list.push(i);
                    }
                }
            }
            map
        });
        let steps = places.get(&(run, cell.node))?;
        let before = steps
            .iter()
            .rev()
            .filter(|s| **s <= from)
            .chain(steps.iter().filter(|s| **s > from));
        before
            .copied()
            .find_map(|s| self.steps[s].view_of(run, cell).map(|(v, at)| (s, v, at)))
    }

    /// `Q1[0][2]`: what the walkthrough calls a cell, seen from step `from`.
    pub fn cell_name(&self, run: usize, cell: Cell, from: usize) -> Option<String> {
        let (step, view, at) = self.locate(run, cell, from)?;
        Some(self.steps[step].views[view].cell_name(&at))
    }

    /// What the walkthrough calls a tensor, seen from step `from`; else the end of its path.
    pub fn tensor_name(&self, run: usize, node: NodeId, like: &Slice, from: usize) -> String {
        let find = |step: &Step| {
            let fits = |v: &&crate::walkthrough::View| v.run == run && v.node == node;
            let same = step.views.iter().filter(fits).find(|v| v.slice == *like);
            same.or_else(|| step.views.iter().find(fits))
                .map(|v| v.symbol.clone())
        };
        let steps = &self.steps[..self.steps.len().min(from + 1)];
        if let Some(name) = steps.iter().rev().find_map(find) {
            return name;
        }
        let path = &self.runs[run].program.node(node).path;
        let mut parts: Vec<&str> = path.rsplit('.').take(2).collect();
        parts.reverse();
        parts.join(".")
    }
}

impl Session {
    /// Settings of the first training run.
    pub fn optimiser(&self) -> schema::Optimiser {
        self.scenario
            .runs
            .iter()
            .find_map(|r| match r {
                schema::Run::Training { optimiser, .. } => Some(optimiser.clone()),
                _ => None,
            })
            .unwrap_or_default()
    }
}
