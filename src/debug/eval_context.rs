//! What names stand for at a step: the language's view of a session.

use super::expr::{Array, NameFault, Scope};
use super::timeline::Timeline;
use crate::program::NodeId;
use crate::scenario::diagnostic::nearest;
use crate::session::{self, Session, Steps};
use crate::tensor::Slice;
use crate::tensor::slice::ResolvedSlice;
use crate::text::{Msg, escape};
use crate::trace::AnyValue;
use crate::walkthrough::{Step, View};

/// Where recorded values come from: the session's own runs, or runs that were rounded or edited.
pub trait Values {
    /// The value of a node of a run; `None` where the run did not get there.
    fn value(&self, run: usize, node: NodeId) -> Option<AnyValue>;

    /// Its value before the edits that are in force; `None` where there are none.
    fn unedited(&self, _run: usize, _node: NodeId) -> Option<AnyValue> {
        None
    }
}

impl Values for Session {
    fn value(&self, run: usize, node: NodeId) -> Option<AnyValue> {
        self.trace(run).ok()?.get(node)
    }
}

/// A tensor, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Run.
    pub run: usize,
    /// Node.
    pub node: NodeId,
    /// Which part.
    pub part: ResolvedSlice,
    /// What it is called: a symbol, else its path.
    pub name: String,
}

impl Target {
    /// What a step shows.
    pub fn of_view(view: &View) -> Self {
        Self { run: view.run, node: view.node, part: view.cells.clone(), name: view.symbol.clone() }
    }

    /// The whole of a node, batch axes of 1 left out.
    pub fn of_node(session: &Session, run: usize, node: NodeId) -> Option<Self> {
        let program = &session.runs[run].program;
        let path = &program.node(node).path;
        let view = View::new(program, run, node, &**path, Slice::all()).ok()?;
        Some(Self::of_view(&view))
    }
}

/// A step of a session, seen by expressions.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// The session.
    pub session: &'a Session,
    /// The steps that are listed.
    pub steps: &'a Steps,
    /// Their index.
    pub timeline: &'a Timeline,
    /// Recorded values.
    pub values: &'a dyn Values,
    /// Which step, by position.
    pub at: usize,
    /// What is on the screen, where that is more than the step itself: a sub-step, a tensor beside the steps. Its symbols come
    /// first.
    pub shown: Option<&'a Step>,
    /// Whether what is computed after this step is unknown, as it is for watches and breakpoints.
    pub past: bool,
    /// The tensor that a condition is about.
    pub it: Option<&'a Target>,
}

impl EvalContext<'_> {
    /// The run of the step.
    pub fn run(&self) -> usize {
        self.steps.list().get(self.at).map_or(0, |s| s.run)
    }

    /// What `name` is: the current step's symbols first, then paths of its run (inside a decoding call also without
    /// `gen.N.`), symbols of the nearest step before, or else after, symbols of the scenario, paths of other runs.
    ///
    /// # Errors
    /// Where it is nothing, or nothing yet.
    pub fn find(&self, name: &str) -> Result<Target, NameFault> {
        let parts = name.split_once("::").or_else(|| name.split_once(':'));
        let (only, name) = match parts {
            None => (None, name),
            Some((name, rest)) => {
                let Some(run) = self.session.run_named(name) else {
                    let runs = self.session.runs.iter().map(|r| r.name.as_str());
                    let near = nearest_of(name, runs).map(|near| format!("{near}::{rest}"));
                    return Err(NameFault::Unknown(near));
                };
                (Some(run), rest)
            }
        };
        let run = only.unwrap_or_else(|| self.run());
        let mut on_screen = self.shown.iter().flat_map(|s| &s.views);
        let of_run = |v: &&View| only.is_none_or(|r| r == v.run);
        if let Some(view) = on_screen.find(|v| v.symbol == name && of_run(v)) {
            return Ok(Target::of_view(view));
        }
        let mut later = false;
        let shown = self.nearest(name, only, &mut later);
        if let Some((_, target)) = shown.as_ref().filter(|(step, _)| *step == self.at) {
            return Ok(target.clone());
        }
        let mut in_own_run = false;
        if let Some(target) = self.path(run, name, &mut in_own_run) {
            return Ok(target);
        }
        if let Some((_, target)) = shown {
            return Ok(target);
        }
        if let Some(target) = self.symbol_of_scenario(name, only, &mut later) {
            return Ok(target);
        }
        // What this run has yet to compute is not what another run has computed.
        if !in_own_run && only.is_none() {
            for other in (0..self.session.runs.len()).filter(|r| *r != run) {
                if let Some(target) = self.path(other, name, &mut later) {
                    return Ok(target);
                }
            }
        }
        Err(if later || in_own_run { NameFault::NotYet } else { NameFault::Unknown(self.near(run, name)) })
    }

    /// The nearest step at or before this one that shows the symbol, else (unless only the past counts) the first after.
    fn nearest(&self, name: &str, run: Option<usize>, later: &mut bool) -> Option<(usize, Target)> {
        let places = self.timeline.shown(name);
        let split = places.partition_point(|(step, _)| *step <= self.at);
        let view = |(step, view): &(usize, usize)| {
            let view = &self.steps.list()[*step].views[*view];
            run.is_none_or(|r| r == view.run).then(|| (*step, Target::of_view(view)))
        };
        // Of several in one step, the first.
        let before = places[..split].iter().rev().find_map(view);
        if let Some((step, _)) = before {
            let first = places[..split].iter().filter(|p| p.0 == step).find_map(view);
            return first.or(before);
        }
        let after = places[split..].iter().find_map(view)?;
        *later |= self.past;
        (!self.past).then_some(after)
    }

    fn path(&self, run: usize, path: &str, later: &mut bool) -> Option<Target> {
        let program = &self.session.runs[run].program;
        let in_frame = || {
            let frame = self.timeline.frame(self.at)?;
            program.find(&format!("gen.{frame}.{path}"))
        };
        let node = program.find(path).or_else(in_frame)?;
        self.known(run, node, later)?;
        Target::of_node(self.session, run, node)
    }

    /// Nothing, where only the past counts and the node is computed later.
    fn known(&self, run: usize, node: NodeId, later: &mut bool) -> Option<()> {
        let computed = self.timeline.is_computed(self.session, run, node, self.at);
        *later |= self.past && !computed;
        (!self.past || computed).then_some(())
    }

    fn symbol_of_scenario(&self, name: &str, only: Option<usize>, later: &mut bool) -> Option<Target> {
        let spec = self.session.scenario.symbols.get(name)?;
        let run = match (&spec.run, only) {
            (Some(run), _) => self.session.run_named(run)?,
            (None, Some(run)) => run,
            (None, None) => 0,
        };
        if only.is_some_and(|only| only != run) {
            return None;
        }
        let view = session::view(self.session, run, name, &spec.path, &spec.slice).ok()?;
        self.known(run, view.node, later)?;
        Some(Target::of_view(&view))
    }

    /// What may have been meant.
    fn near(&self, run: usize, name: &str) -> Option<String> {
        let program = &self.session.runs[run].program;
        if name.contains('.') {
            // The end of a path, or a slip in one of its words.
            let ends = format!(".{name}");
            let whole = program.nodes().find(|(_, n)| n.path.ends_with(&ends));
            return whole
                .map(|(_, n)| n.path.to_string())
                .or_else(|| nearest_of(name, program.nodes().map(|(_, n)| &*n.path)))
                .or_else(|| program.similar_paths(name, 1).first().map(|p| (*p).to_owned()));
        }
        let own = self.session.scenario.symbols.keys().map(String::as_str);
        nearest_of(name, self.timeline.symbols().chain(own))
    }

    /// The recorded numbers of a target.
    ///
    /// # Errors
    /// Where the run did not get there.
    pub fn array(&self, target: &Target) -> Result<Array, NameFault> {
        let Some(value) = self.values.value(target.run, target.node) else {
            let path = &self.session.runs[target.run].program.node(target.node).path;
            let msg = Msg::new("expr.unreached").arg("name", escape(path));
            return Err(NameFault::Other(msg));
        };
        Ok(Array::of(target.run, target.node, value, &target.part))
    }

    /// What a target was before: before the edits in force; else where its symbol was shown last; else, for what no step
    /// shows, in the decoding call before.
    pub fn previous(&self, target: &Target) -> Option<Array> {
        let Target { run, node, part, .. } = target;
        if let Some(value) = self.values.unedited(*run, *node) {
            return Some(Array::of(*run, *node, value, part));
        }
        let places = self.timeline.shown(&target.name);
        let split = places.partition_point(|(step, _)| *step < self.at);
        if let Some((step, view)) = places[..split].last() {
            let view = &self.steps.list()[*step].views[*view];
            let same = view.run == *run && view.node == *node && view.cells == *part;
            return if same { None } else { self.array(&Target::of_view(view)).ok() };
        }
        let program = &self.session.runs[*run].program;
        let path = program.node(*node).path.strip_prefix("gen.")?;
        let (call, rest) = path.split_once('.')?;
        let before = call.parse::<usize>().ok()?.checked_sub(1)?;
        let node = program.find(&format!("gen.{before}.{rest}"))?;
        self.array(&Target::of_node(self.session, *run, node)?).ok()
    }
}

/// The nearest name; none for what is too long to be a slip.
fn nearest_of<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<String> {
    if name.chars().count() > 80 {
        return None;
    }
    nearest(name, known).map(str::to_owned)
}

impl Scope for EvalContext<'_> {
    fn named(&self, name: &str) -> Result<Array, NameFault> {
        self.array(&self.find(name)?)
    }

    fn it(&self) -> Option<Array> {
        self.array(self.it?).ok()
    }

    fn before(&self) -> Option<Array> {
        self.previous(self.it?)
    }
}
