//! What a name is: the one place that turns `Q1`, `inference:P`, a path or a symbol of the scenario into a tensor, and
//! a tensor into the step that shows it.
//!
//! Every command, flag and expression looks names up here, so that a name means the same everywhere. In this order: the
//! symbols on the screen and of the current step; a path of the current run (in a decoding call also without
//! `gen.N.`); a symbol of the nearest step before, else after; a symbol of the scenario; a path of another run.

use std::collections::{HashSet, VecDeque};

use super::{Session, Steps};
use crate::program::{Name, NodeId};
use crate::tensor::Slice;
use crate::tensor::slice::ResolvedSlice;
use crate::text::nearest;
use crate::trace::derive::Cell;
use crate::walkthrough::{Step, View};

/// A tensor, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// Run.
    pub run: usize,
    /// Node.
    pub node: NodeId,
    /// Which part.
    pub part: ResolvedSlice,
    /// What it is called: a symbol, else its path.
    pub name: String,
}

impl Address {
    /// What a step shows.
    pub fn of_view(view: &View) -> Self {
        Self { run: view.run, node: view.node, part: view.cells.clone(), name: view.symbol.clone() }
    }

    /// What the symbol of a view names: more than the view, where that shows a part of it.
    pub fn of_symbol(view: &View) -> Self {
        Self { part: view.named().clone(), ..Self::of_view(view) }
    }

    /// The whole of a node, batch axes of 1 left out.
    pub fn of_node(session: &Session, run: usize, node: NodeId) -> Option<Self> {
        let program = &session.runs[run].program;
        let path = &program.node(node).path;
        let view = View::new(program, run, node, &**path, Slice::all()).ok()?;
        Some(Self::of_view(&view))
    }

    /// The cell at `index`, counted in the part, or in the whole tensor where the part is all of it. A batch of 1 in
    /// front may be counted or not, and last axes may be left out. `None` where it is outside.
    pub fn cell(&self, index: &[usize]) -> Option<Cell> {
        let (part, whole) = (self.part.shape(), &self.part.of);
        let inside =
            |index: &[usize], dims: &[usize]| index.len() <= dims.len() && index.iter().zip(dims).all(|(i, n)| i < n);
        let cell = |flat: usize| Some(Cell { node: self.node, flat });
        if inside(index, part.dims()) {
            return cell(self.part.flat(index));
        }
        let all = part.len() == whole.len();
        if all && index.len() == whole.rank() && inside(index, whole.dims()) {
            return cell(whole.flat(index));
        }
        let batch = whole.dims().first() == Some(&1) && self.part.kept.first() == Some(&false);
        match index {
            [0, rest @ ..] if batch && rest.len() == part.rank() && inside(rest, part.dims()) => {
                cell(self.part.flat(rest))
            }
            _ => None,
        }
    }

    /// Whether `index` names one cell: it has an entry for each axis of the part, or of the whole tensor.
    pub fn is_full(&self, index: &[usize]) -> bool {
        index.len() == self.part.shape().rank() || index.len() == self.part.of.rank()
    }
}

/// A tensor that a name denotes, and the view that shows it under this name.
#[derive(Clone, Debug)]
pub struct Located {
    /// The tensor.
    pub address: Address,
    /// Position of the step, and of the view in it; `None` where the name is a path or is on the screen only.
    pub shown: Option<(usize, usize)>,
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlocated {
    /// There is none of this name; the nearest one.
    Unknown(Option<String>),
    /// It is computed after the current step, and only the past counts.
    NotYet,
}

/// Where names are looked up from.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The session.
    pub session: &'a Session,
    /// The steps that are listed.
    pub steps: &'a Steps,
    /// The current step, by position.
    pub at: usize,
    /// The current run, where no step says which.
    pub run: usize,
    /// What is on the screen, where that is more than the step itself: a sub-step, a tensor that no step shows.
    pub shown: Option<&'a Step>,
    /// Where only the past counts, as it does for watches and breakpoints: what has been computed.
    pub past: Option<&'a dyn Fn(usize, NodeId) -> bool>,
}

/// A name without the run before it, and that run: `inference:P`, `inference::P`.
///
/// # Errors
/// Where there is no such run, with the nearest name.
pub fn split_run<'t>(session: &Session, text: &'t str) -> Result<(Option<usize>, &'t str), Unlocated> {
    let Some((name, rest)) = text.split_once("::").or_else(|| text.split_once(':')) else {
        return Ok((None, text));
    };
    if let Some(run) = session.run_named(name) {
        Ok((Some(run), rest))
    } else {
        let runs = session.runs.iter().map(|r| r.name.as_str());
        Err(Unlocated::Unknown(nearest_of(name, runs).map(|near| format!("{near}::{rest}"))))
    }
}

/// What `text` names.
///
/// # Errors
/// Where it is nothing, or nothing yet.
pub fn locate(text: &str, context: &Context<'_>) -> Result<Located, Unlocated> {
    let (only, name) = split_run(context.session, text)?;
    let run = only.unwrap_or_else(|| context.current_run());
    let bare = |address: Address| Located { address, shown: None };
    let of_run = |v: &&View| only.is_none_or(|r| r == v.run);
    let mut on_screen = context.shown.iter().flat_map(|s| &s.views);
    if let Some(view) = on_screen.find(|v| v.symbol == name && of_run(v)) {
        let here = context.steps.list().get(context.at);
        let view_here = here.and_then(|s| s.views.iter().position(|v| v == view));
        return Ok(Located { address: Address::of_symbol(view), shown: view_here.map(|v| (context.at, v)) });
    }
    let mut later = false;
    let symbol = context.nearest(name, only, &mut later);
    if let Some(found) = symbol.as_ref().filter(|found| found.shown.is_some_and(|(step, _)| step == context.at)) {
        return Ok(found.clone());
    }
    let mut in_own_run = false;
    if let Some(address) = context.path(run, name, &mut in_own_run) {
        return Ok(bare(address));
    }
    if let Some(found) = symbol {
        return Ok(found);
    }
    if let Some(address) = context.symbol_of_scenario(name, only, &mut later) {
        return Ok(bare(address));
    }
    // What this run has yet to compute is not what another run has computed.
    if !in_own_run && only.is_none() {
        for other in (0..context.session.runs.len()).filter(|r| *r != run) {
            if let Some(address) = context.path(other, name, &mut later) {
                return Ok(bare(address));
            }
        }
    }
    Err(if later || in_own_run { Unlocated::NotYet } else { Unlocated::Unknown(context.near(run, name)) })
}

impl Context<'_> {
    fn current_run(&self) -> usize {
        self.steps.list().get(self.at).map_or(self.run, |s| s.run)
    }

    /// The decoding call of the current step; between calls, the one before.
    fn call(&self) -> Option<u32> {
        let run = self.current_run();
        let program = &self.session.runs[run].program;
        let list = self.steps.list();
        let before = list[..(self.at + 1).min(list.len())].iter().rev().filter(|s| s.run == run);
        before.flat_map(|s| &s.views).filter(|v| v.run == run).find_map(|v| program.node(v.node).name.call)
    }

    /// The nearest step at or before the current one that shows the symbol, else (unless only the past counts) the first
    /// after. Of several in one step, the first.
    fn nearest(&self, name: &str, run: Option<usize>, later: &mut bool) -> Option<Located> {
        let places = self.steps.symbol(name);
        let list = self.steps.list();
        let fits = |(step, view): &&(usize, usize)| run.is_none_or(|r| r == list[*step].views[*view].run);
        let located = |&(step, view): &(usize, usize)| Located {
            address: Address::of_symbol(&list[step].views[view]),
            shown: Some((step, view)),
        };
        let split = places.partition_point(|(step, _)| *step <= self.at);
        if let Some((step, _)) = places[..split].iter().rev().find(fits) {
            let mut of_step = places[..split].iter().filter(|p| p.0 == *step).filter(fits);
            return of_step.next().map(located);
        }
        let after = places[split..].iter().find(fits)?;
        *later |= self.past.is_some();
        self.past.is_none().then(|| located(after))
    }

    fn path(&self, run: usize, path: &str, later: &mut bool) -> Option<Address> {
        let program = &self.session.runs[run].program;
        let in_call = || program.named(&Name::parse(path).in_call(self.call()?));
        let node = program.find(path).or_else(in_call)?;
        self.known(run, node, later)?;
        Address::of_node(self.session, run, node)
    }

    /// Nothing, where only the past counts and the node is computed later.
    fn known(&self, run: usize, node: NodeId, later: &mut bool) -> Option<()> {
        let computed = self.past.is_none_or(|past| past(run, node));
        *later |= !computed;
        computed.then_some(())
    }

    fn symbol_of_scenario(&self, name: &str, only: Option<usize>, later: &mut bool) -> Option<Address> {
        let spec = self.session.scenario.symbols.get(name)?;
        let run = match (&spec.run, only) {
            (Some(run), _) => self.session.run_named(run)?,
            (None, Some(run)) => run,
            (None, None) => 0,
        };
        if only.is_some_and(|only| only != run) {
            return None;
        }
        let view = super::view(self.session, run, name, &spec.path, &spec.slice).ok()?;
        self.known(run, view.node, later)?;
        Some(Address::of_view(&view))
    }

    /// What may have been meant.
    fn near(&self, run: usize, name: &str) -> Option<String> {
        let program = &self.session.runs[run].program;
        if Name::is_path(name) {
            // The end of a path, or a slip in one of its words.
            let whole = program.nodes().find(|(_, n)| n.name.ends_in(name));
            return whole
                .map(|(_, n)| n.path.to_string())
                .or_else(|| nearest_of(name, program.nodes().map(|(_, n)| &*n.path)))
                .or_else(|| program.similar_paths(name, 1).first().map(|p| (*p).to_owned()));
        }
        let own = self.session.scenario.symbols.keys().map(String::as_str);
        nearest_of(name, self.steps.symbols().chain(own))
    }
}

/// The nearest name; none for what is too long to be a slip.
fn nearest_of<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<String> {
    if name.chars().count() > 80 {
        return None;
    }
    nearest(name, known).map(str::to_owned)
}

/// Position in `steps` of the first step that shows a node; where none does, of the first that shows what is computed
/// from it, the nearest such values before others.
pub fn step_of(session: &Session, steps: &Steps, run: usize, node: NodeId) -> Option<usize> {
    let program = &session.runs[run].program;
    let mut seen = HashSet::from([node]);
    let mut open = VecDeque::from([node]);
    while let Some(id) = open.pop_front() {
        if let Some(step) = steps.first_showing(run, id) {
            return Some(step);
        }
        open.extend(program.users(id).iter().copied().filter(|user| seen.insert(*user)));
    }
    None
}

/// Position in `steps` of the first step that shows a cell, else of the one that [`step_of`] finds for its node.
pub fn step_of_cell(session: &Session, steps: &Steps, run: usize, cell: Cell) -> Option<usize> {
    steps.locate(run, cell, 0).map(|shown| shown.step).or_else(|| step_of(session, steps, run, cell.node))
}
