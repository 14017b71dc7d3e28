//! Numbered steps with an index: which step shows a cell, and what it is called there.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::generation::frames;
use super::recorded_plan::recorded_steps;
use super::{RunKind, Session};
use crate::program::NodeId;
use crate::source::trace::dtype_name;
use crate::tensor::Slice;
use crate::tensor::slice::ResolvedSlice;
use crate::text::Msg;
use crate::trace::derive::Cell;
use crate::walkthrough::{LocalizedText, Start, Step, backward_plan, expand, plan, update_plan};

/// Where a cell is shown: step, view of the step, index in the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownCell {
    /// Position of the step in its list.
    pub step: usize,
    /// Position of the view in the step.
    pub view: usize,
    /// Index of the cell in the view.
    pub index: Vec<usize>,
}

/// A list of numbered steps.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    list: Vec<Step>,
    /// Most tensors are in one step: a recording may have a million of them.
    places: HashMap<(usize, NodeId), SmallVec<[usize; 2]>>,
    /// Step and view of each symbol, in order.
    symbols: HashMap<String, SmallVec<[(usize, usize); 1]>>,
}

impl Steps {
    /// Indexes a list.
    pub fn new(list: Vec<Step>) -> Self {
        let mut symbols: HashMap<String, SmallVec<[(usize, usize); 1]>> = HashMap::new();
        let mut places: HashMap<(usize, NodeId), SmallVec<[usize; 2]>> = HashMap::new();
        for (i, step) in list.iter().enumerate() {
            for (v, view) in step.views.iter().enumerate() {
                let steps = places.entry((view.run, view.node)).or_default();
                if steps.last() != Some(&i) {
                    steps.push(i);
                }
                symbols.entry(view.symbol.clone()).or_default().push((i, v));
            }
        }
        Self { list, places, symbols }
    }

    /// Indexes a list whose symbols may have a meaning apart from it: `defined` gives what a symbol names in a run.
    pub fn with_symbols(mut list: Vec<Step>, defined: &dyn Fn(usize, &str) -> Option<(NodeId, ResolvedSlice)>) -> Self {
        name_wholes(&mut list, defined);
        Self::new(list)
    }

    /// Where `symbol` is shown, as steps and views, in order.
    pub fn symbol(&self, symbol: &str) -> &[(usize, usize)] {
        self.symbols.get(symbol).map_or(&[], SmallVec::as_slice)
    }

    /// All symbols, in no order.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.symbols.keys().map(String::as_str)
    }

    /// The steps, in order.
    pub fn list(&self) -> &[Step] {
        &self.list
    }

    /// Position of the step with this number.
    pub fn position(&self, number: u32) -> Option<usize> {
        self.list.iter().position(|s| s.number == [number])
    }

    /// Positions of the steps that show some of `node`, ascending.
    pub fn showing(&self, run: usize, node: NodeId) -> &[usize] {
        self.places.get(&(run, node)).map_or(&[], SmallVec::as_slice)
    }

    /// Position of the first step that shows any part of `node`.
    pub fn first_showing(&self, run: usize, node: NodeId) -> Option<usize> {
        self.showing(run, node).first().copied()
    }

    /// The nearest step at or before `from` that shows `cell`, else the first one after.
    pub fn locate(&self, run: usize, cell: Cell, from: usize) -> Option<ShownCell> {
        let steps = self.places.get(&(run, cell.node))?;
        let split = steps.partition_point(|s| *s <= from);
        let near = steps[..split].iter().rev().chain(&steps[split..]);
        near.copied().find_map(|step| {
            let (view, index) = self.list[step].view_of(run, cell)?;
            Some(ShownCell { step, view, index })
        })
    }

    /// `Q1[0][2]`: what a cell is called, seen from step `from`.
    pub fn cell_name(&self, run: usize, cell: Cell, from: usize) -> Option<String> {
        let place = self.locate(run, cell, from)?;
        Some(self.list[place.step].views[place.view].cell_name(&place.index))
    }

    /// What a tensor seen through `slice` is called, seen from step `from`.
    pub fn tensor_name(&self, run: usize, node: NodeId, slice: &Slice, from: usize) -> Option<String> {
        let steps = self.places.get(&(run, node))?;
        let split = steps.partition_point(|s| *s <= from);
        let mut views = steps[..split]
            .iter()
            .rev()
            .chain(&steps[split..])
            .flat_map(|s| self.list[*s].views.iter().filter(|v| v.run == run && v.node == node));
        let first = views.clone().next()?;
        let same = views.find(|v| v.slice == *slice);
        if same.is_none() && *slice == Slice::all() && !first.slice.is_all() {
            // Only parts of it have names.
            return None;
        }
        Some(same.unwrap_or(first).symbol.clone())
    }
}

/// A symbol that is defined as more than what a view shows of it names what it is defined as.
fn name_wholes(list: &mut [Step], defined: &dyn Fn(usize, &str) -> Option<(NodeId, ResolvedSlice)>) {
    let holds = |whole: &ResolvedSlice, part: &ResolvedSlice| {
        whole.ranges.iter().zip(&part.ranges).all(|(w, p)| w.start <= p.start && p.end <= w.end)
    };
    let mut wholes: HashMap<(usize, String), Option<(NodeId, ResolvedSlice)>> = HashMap::new();
    for view in list.iter_mut().flat_map(|s| &mut s.views) {
        let whole = wholes.entry((view.run, view.symbol.clone())).or_insert_with(|| defined(view.run, &view.symbol));
        let whole = whole.as_ref().filter(|(node, whole)| *node == view.node && holds(whole, &view.cells));
        view.whole = whole.map(|(_, whole)| whole.clone()).filter(|whole| *whole != view.cells);
    }
}

impl Session {
    /// Indexes steps of this session, whose scenario may define what symbols name.
    pub(super) fn index_steps(&self, list: Vec<Step>) -> Steps {
        let defined = |run: usize, symbol: &str| {
            let spec = self.scenario.symbols.get(symbol)?;
            let of = spec.run.as_deref().map_or(Some(run), |name| self.run_named(name))?;
            let view = super::view(self, of, symbol, &spec.path, &spec.slice).ok().filter(|_| of == run)?;
            Some((view.node, view.cells))
        };
        if self.scenario.symbols.is_empty() { Steps::new(list) } else { Steps::with_symbols(list, &defined) }
    }

    /// Numbered steps of one run: those of the walkthrough, else an automatic plan.
    pub fn steps_of(&self, run: usize) -> Arc<Steps> {
        let mut made = self.run_steps.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let steps = made.entry(run).or_insert_with(|| {
            let list = self.steps.list();
            if !list.is_empty() && list.iter().all(|s| s.run == run) {
                return Arc::clone(&self.steps);
            }
            let own: Vec<Step> = list.iter().filter(|s| s.run == run).cloned().collect();
            Arc::new(self.index_steps(if own.is_empty() { self.own_plan(run) } else { own }))
        });
        Arc::clone(steps)
    }

    /// The automatic plan of a run. That of an inference run ends with the call that chose the end token.
    pub fn plan_of(&self, run: usize) -> Vec<Step> {
        let r = &self.runs[run];
        if r.kind == RunKind::Recorded {
            let stored = |id: NodeId| dtype_name(r.program.node(id).dtype, self.precision).to_owned();
            return recorded_steps(&r.program, run, &[], &stored);
        }
        let symbols = |path: &str, slice: &Slice| {
            let slice = slice.to_string();
            let hit = self
                .scenario
                .symbols
                .iter()
                // A symbol that is bound to a run is no name of another run's tensor.
                .filter(|(_, p)| p.run.as_deref().is_none_or(|run| run == r.name))
                .find(|(_, p)| p.path == path && p.slice == slice);
            hit.map(|(name, _)| name.clone())
        };
        let made = (r.kind == RunKind::Inference).then(|| self.calls_made(run));
        let take = |id| {
            let call = r.program.node(id).name.call.map(|call| call as usize);
            made.is_none_or(|made| call.is_none_or(|call| call < made))
        };
        let mut steps = plan(&r.program, run, self.detail, &symbols, &take);
        for step in &mut steps {
            if let Some(note) = self.remark(run, step) {
                step.note = note;
            }
        }
        let left = made.map_or(0, |made| frames(&r.program) - made);
        if let Some(last) = steps.last_mut().filter(|_| left > 0) {
            let note = std::mem::replace(&mut last.note, LocalizedText::Empty);
            last.note = note.and(Msg::new("walk.stopped").arg("left", left));
        }
        steps
    }

    /// Steps of a run that the walkthrough does not have: gradients and updates go on from the forward steps, other
    /// runs have the plan of their program.
    fn own_plan(&self, run: usize) -> Vec<Step> {
        let r = &self.runs[run];
        let (Some(forward), Some(loss)) = (self.forward_of(run), r.outputs.loss) else {
            return self.plan_of(run);
        };
        let loss = &r.program.node(loss).path;
        let mut steps: Vec<Step> = self.steps.list().iter().filter(|s| s.run == forward).cloned().collect();
        if steps.is_empty() {
            steps = self.plan_of(forward);
        }
        let start = Start::after(if self.steps.list().is_empty() { &steps } else { self.steps.list() });
        let backward = |program, run| backward_plan(program, run, loss, &steps, start);
        if r.kind == RunKind::Backward {
            return backward(&r.program, run);
        }
        let before = backward(&self.runs[run - 1].program, run - 1);
        let start = if before.is_empty() { start } else { Start::after(&before) };
        update_plan(&r.program, run, loss, &steps, start)
    }

    /// The sub-steps of a step; none where it is a single primitive.
    pub fn expand(&self, step: &Step) -> Vec<Step> {
        expand(&|run| &self.runs[run].program, step)
    }

    /// The sub-step at `path` (`[40, 1]`), or the whole step (`[40]`).
    pub fn step_at(&self, steps: &Steps, path: &[u32]) -> Option<Step> {
        let mut step = steps.list().get(steps.position(*path.first()?)?)?.clone();
        for part in &path[1..] {
            let inner = self.expand(&step);
            step = inner.into_iter().nth((*part as usize).checked_sub(1)?)?;
        }
        Some(step)
    }

    /// What a cell is called in `steps`, seen from step `from`; a cell of a backward run or an update may be named by
    /// the steps of the runs before it, whose nodes it shares.
    pub fn cell_name(&self, steps: &Steps, run: usize, cell: Cell, from: usize) -> Option<String> {
        let mut name = steps.cell_name(run, cell, from);
        for before in self.runs_before(run) {
            name = name.or_else(|| self.steps_of(before).cell_name(before, cell, usize::MAX));
        }
        name
    }

    /// What a tensor is called in `steps`; else the end of its path.
    pub fn tensor_name(&self, steps: &Steps, run: usize, node: NodeId, slice: &Slice, from: usize) -> String {
        let before = || {
            self.runs_before(run).find_map(|before| self.steps_of(before).tensor_name(before, node, slice, usize::MAX))
        };
        steps
            .tensor_name(run, node, slice, from)
            .or_else(before)
            .unwrap_or_else(|| self.path_name(steps, run, node, slice, from))
    }

    /// What a tensor that no step shows is called: the end of its path, and that of a gradient `∂L/∂X`.
    fn path_name(&self, steps: &Steps, run: usize, node: NodeId, slice: &Slice, from: usize) -> String {
        let program = &self.runs[run].program;
        let name = &program.node(node).name;
        let of = name.gradient_path().and_then(|of| program.find(&of));
        if let Some(of) = of {
            let name = self.tensor_name(steps, run, of, slice, from);
            return format!("∂L/∂{name}");
        }
        name.tail(2)
    }

    /// The forward run whose nodes a backward run or an update begins with.
    pub fn forward_of(&self, run: usize) -> Option<usize> {
        self.runs_before(run).last()
    }

    /// The runs whose nodes a run begins with, the nearest first: they are just before it.
    pub fn runs_before(&self, run: usize) -> impl Iterator<Item = usize> {
        let count = match self.runs[run].kind {
            RunKind::Backward => 1,
            RunKind::Update => 2,
            _ => 0,
        };
        (run - count..run).rev()
    }
}
