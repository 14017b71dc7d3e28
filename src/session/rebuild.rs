//! A session with an edited scenario: what the edit does not touch is shared with the session it came from.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::edits::resolve;
use super::open::open_beside;
use super::written::{find_view, walkthrough};
use super::{AnyBindings, Options, Run, Session};
use crate::model::params::ParamSpec;
use crate::scenario::Scenario;
use crate::scenario::diagnostic::Problem;
use crate::scenario::schema::{ViewSpec, Weights};
use crate::tensor::{Real, Value};
use crate::text::Msg;
use crate::trace::{AnyTrace, Bindings, Rounder, RunError};

/// Parameters of a session that another scenario would make the same.
pub(super) struct Known<'s> {
    session: &'s Session,
    weights: &'s Weights,
    specs: HashMap<&'s str, &'s ParamSpec>,
    /// Whether files, initialisers and seed are the same.
    source: bool,
}

impl Known<'_> {
    fn get<T: Real>(&self, spec: &ParamSpec, of: &Bindings<T>) -> Option<Value<T>> {
        let ours = self.session.scenario.weights.values.get(&spec.path);
        let same = self.source
            && self.specs.get(spec.path.as_str()) == Some(&spec)
            && self.weights.values.get(&spec.path) == ours;
        same.then(|| of.get(spec.path.as_str()).cloned()).flatten()
    }

    /// The value of a parameter, in f64.
    pub(super) fn get_f64(&self, spec: &ParamSpec) -> Option<Value<f64>> {
        match &self.session.params {
            AnyBindings::F64(b) => self.get(spec, b),
            AnyBindings::F32(_) => None,
        }
    }

    /// The value of a parameter, in f32.
    pub(super) fn get_f32(&self, spec: &ParamSpec) -> Option<Value<f32>> {
        match &self.session.params {
            AnyBindings::F32(b) => self.get(spec, b),
            AnyBindings::F64(_) => None,
        }
    }
}

impl Session {
    /// Which of its parameters `weights` would make the same.
    pub(super) fn known<'s>(&'s self, weights: &'s Weights) -> Known<'s> {
        let own = &self.scenario.weights;
        Known {
            session: self,
            weights,
            specs: self.specs.iter().map(|s| (s.path.as_str(), s)).collect(),
            source: own.files == weights.files && own.init == weights.init && own.seed == weights.seed,
        }
    }

    /// Takes the parameters of a session that has made updates, with the optimiser's memory.
    pub(super) fn keep_updates(&mut self, base: &Session) -> Result<(), Vec<Problem>> {
        if self.specs != base.specs {
            let msg = Msg::new("edit.after_updates").arg("updates", base.updates);
            return Err(vec![Problem::new("model", msg)]);
        }
        self.params = base.params.clone();
        self.updates = base.updates;
        Ok(())
    }

    /// The session that this one would be with another scenario: parameters are shared, and what its runs computed is
    /// computed again only where it may be another. The scenario's edits are those of this session's and further
    /// ones.
    ///
    /// # Errors
    /// As [`open`](super::open).
    pub fn edited(self: &Arc<Self>, scenario: &Scenario) -> Result<Self, Vec<Problem>> {
        if let Some(same) = self.with_edits(scenario)? {
            return Ok(same);
        }
        let given = scenario.precision == self.scenario.precision;
        let options = Options {
            precision: given.then_some(self.precision),
            rounding: self.rounding,
            detail: self.detail,
            budget: self.budget,
            ..Options::default()
        };
        if !given && self.updates > 0 {
            let msg = Msg::new("edit.after_updates").arg("updates", self.updates);
            return Err(vec![Problem::new("precision", msg)]);
        }
        // Numbered steps and expected values stay as far as what they show is still there.
        let mut bare = scenario.clone();
        bare.symbols.clear();
        bare.walkthrough.clear();
        bare.remarks.clear();
        bare.expected.clear();
        let mut next = open_beside(bare, self.origin.as_deref(), options, Some(self))?;
        next.number(scenario)?;
        let c = &next.coverage;
        if c.inline + c.from_files + c.initialised == 0 {
            next.coverage = self.coverage.clone();
        }
        Ok(next)
    }

    /// Takes symbols, steps, remarks and expected values from a scenario, as far as their tensors are there.
    fn number(&mut self, from: &Scenario) -> Result<(), Vec<Problem>> {
        let there = |run: usize, name: Option<&str>, path: &str, slice: &str| {
            find_view(self, run, name, "", path, slice, "").is_ok()
        };
        let mut to = Scenario {
            symbols: from.symbols.clone(),
            remarks: from.remarks.clone(),
            expected: from.expected.clone(),
            ..self.scenario.clone()
        };
        to.symbols.retain(|_, p| there(0, p.run.as_deref(), &p.path, &p.slice));
        let finds = |path: &String| self.runs.iter().any(|r| r.program.find(path).is_some());
        to.remarks.retain(|path, _| finds(path));
        to.expected.retain(|e| there(0, e.run.as_deref(), &e.path, &e.slice));
        for step in &from.walkthrough {
            let run = step.run.as_deref().map_or(Some(0), |r| self.run_named(r));
            let Some(run) = run else { continue };
            let shows = |view: &ViewSpec| match view {
                ViewSpec::Symbol(name) => to.symbols.contains_key(name),
                ViewSpec::Of(_, path) => there(run, None, path, ""),
                ViewSpec::Part(_, path, slice) => there(run, None, path, slice),
            };
            let mut kept = step.clone();
            kept.views.retain(shows);
            if !kept.views.is_empty() || step.views.is_empty() {
                to.walkthrough.push(kept);
            }
        }
        self.scenario = to;
        self.steps = Arc::new(self.index_steps(walkthrough(self)?));
        Ok(())
    }

    /// The session with other edits, where the scenario differs in nothing else: programs and steps are shared too.
    fn with_edits(self: &Arc<Self>, scenario: &Scenario) -> Result<Option<Self>, Vec<Problem>> {
        let mut plain = scenario.clone();
        plain.edits.clone_from(&self.scenario.edits);
        if plain != self.scenario {
            return Ok(None);
        }
        let runs = self.runs.iter().map(|r| Run {
            name: r.name.clone(),
            kind: r.kind.clone(),
            program: Arc::clone(&r.program),
            outputs: r.outputs,
            inputs: Arc::clone(&r.inputs),
            train_step: r.train_step.clone(),
            held: Arc::default(),
            trace: OnceLock::new(),
            live: super::live::Live::default(),
            rounded: Mutex::default(),
        });
        let made = self.run_steps.lock();
        let run_steps = made.map_or_else(|e| e.into_inner().clone(), |steps| steps.clone());
        let mut next = Self {
            scenario: scenario.clone(),
            origin: self.origin.clone(),
            text: self.text.clone(),
            precision: self.precision,
            rounding: self.rounding,
            source_words: self.source_words.clone(),
            target_words: self.target_words.clone(),
            inputs: Arc::clone(&self.inputs),
            specs: self.specs.clone(),
            params: self.params.clone(),
            updates: self.updates,
            coverage: self.coverage.clone(),
            runs: runs.collect(),
            steps: Arc::clone(&self.steps),
            detail: self.detail,
            base: Some(Arc::clone(self)),
            run_steps: Mutex::new(run_steps),
            budget: self.budget,
            own: OnceLock::new(),
            patient: std::sync::atomic::AtomicBool::default(),
            model_type: OnceLock::new(),
        };
        let resolved = resolve(&next)?;
        let from = if self.updates > 0 { self.scenario.edits.len() } else { 0 };
        next.edit_params(&resolved.params, from);
        for (run, held) in next.runs.iter_mut().zip(resolved.held) {
            run.held = Arc::new(held);
        }
        Ok(Some(next))
    }

    /// Executes the runs that `before` or this session's base has executed, taking from both what cannot have changed.
    ///
    /// # Errors
    /// The first run that cannot run, and why.
    pub fn carry(&self, before: &Session) -> Result<(), (usize, RunError)> {
        for (i, run) in self.runs.iter().enumerate() {
            let of = |s: &Session| s.run_named(&run.name).map(|r| s.runs[r].trace.get().is_some());
            let looked_at = |s: Option<&Session>| s.and_then(of).unwrap_or(false);
            if !looked_at(Some(before)) && !looked_at(self.base.as_deref()) {
                continue;
            }
            let made = run.trace.get_or_init(|| {
                let donors = [self.base.as_deref(), Some(before)].into_iter().flatten();
                let donors: Vec<&AnyTrace> = donors
                    .filter_map(|s| {
                        let run = s.run_named(&run.name)?;
                        s.runs[run].trace.get()?.as_ref().ok()
                    })
                    .collect();
                self.execute(run, self.rounding.map(Rounder::from), &donors)
            });
            if let Err(e) = made {
                return Err((i, e.clone()));
            }
        }
        Ok(())
    }

    /// The session that this one is an edit of.
    pub fn base(&self) -> Option<&Arc<Session>> {
        self.base.as_ref()
    }
}
