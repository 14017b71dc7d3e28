//! Training: one update after the other, each a run of a program that holds the forward pass, the backward pass and
//! the optimiser's update.
//!
//! Not every update is kept: a [`Trainer`] keeps losses, and parameters with the optimiser's memory every so many
//! updates. Any update can be opened again as a full trace, recomputed with the same bits from the nearest kept
//! state ([`Trainer::reopen`]).

use std::sync::Arc;

use super::{Bindings, Keep, Rounder, RunError, Settings, Trace, run_with};
use crate::program::optimiser::{Optimiser, Updates, append_update};
use crate::program::{
    BuildError, Builder, Gradients, Leaf, Name, NodeId, Op, Pass, Program, Random, RandomKind, backward,
};
use crate::tensor::{Real, Tensor, Value};

/// The program of one update over one batch.
#[derive(Clone, Debug)]
pub struct TrainStep {
    /// Forward, backward and update.
    pub program: Arc<Program>,
    /// The loss.
    pub loss: NodeId,
    /// Gradients.
    pub gradients: Gradients,
    /// The update of each parameter.
    pub updates: Updates,
    /// Nodes of the forward pass.
    forward: usize,
    /// Whether dropout draws other numbers in each update.
    random: bool,
    /// Only what one update hands to the next.
    handoff_only: Keep,
    /// Only the sums of gradients.
    sums_only: Keep,
}

impl TrainStep {
    /// Appends the backward pass and the update to a forward pass.
    ///
    /// # Errors
    /// Where `loss` is not one number.
    pub fn new(forward: Program, loss: NodeId, optimiser: &Optimiser) -> Result<Self, BuildError> {
        let length = forward.len();
        let mut b = Builder::resume(forward);
        let gradients = backward(&mut b, loss)?;
        let updates = append_update(&mut b, &gradients, optimiser)?;
        let program = b.finish();
        let mut sums = vec![false; program.len()];
        for slot in &updates.accumulated {
            sums[slot.after.index()] = true;
        }
        let random = program.nodes().any(|(_, n)| is_dropout(&n.op));
        let mut handed = vec![false; program.len()];
        handed[loss.index()] = true;
        for p in &updates.parameters {
            handed[p.new.index()] = true;
            for slot in &p.slots {
                handed[slot.after.index()] = true;
            }
        }
        Ok(Self {
            program: Arc::new(program),
            loss,
            gradients,
            updates,
            forward: length,
            random,
            handoff_only: Keep::Only(handed.into()),
            sums_only: Keep::Only(sums.into()),
        })
    }

    /// The train step of another batch of the same shape, given its forward pass, without building the rest again.
    /// `None` where the forward passes differ in more than constants.
    pub fn for_batch(&self, forward: &Program) -> Option<Self> {
        if forward.len() != self.forward {
            return None;
        }
        let program = Arc::new(self.program.with_constants_of(forward)?);
        Some(Self { program, ..self.clone() })
    }

    /// The program of update `update`: dropout draws numbers of its own in each. Update 0 is the program as built.
    fn at(&self, update: u64) -> Arc<Program> {
        if self.random { reseeded(&self.program, update) } else { Arc::clone(&self.program) }
    }

    /// Fills in what update `state.update` reads besides the parameters: the learning rate, the bias corrections,
    /// and a memory of zeros where there is none yet.
    pub fn bind<T: Real>(&self, optimiser: &Optimiser, state: &mut State<T>) {
        let mut set = |id: NodeId, x: f64| {
            let path = Arc::clone(&self.program.node(id).path);
            let value = Value::Float(Tensor::scalar(T::from_f64(x)));
            state.values.insert(path, value);
        };
        set(self.updates.learning_rate, optimiser.rate(state.update));
        let corrections = optimiser.corrections(state.update);
        for (ids, values) in self.updates.corrections.iter().zip(corrections) {
            for (&id, x) in ids.iter().zip(values) {
                set(id, x);
            }
        }
        let memory = self.updates.parameters.iter().flat_map(|p| &p.slots);
        for slot in memory.chain(&self.updates.accumulated) {
            let node = self.program.node(slot.before);
            if !state.values.contains_key(&node.path) {
                let zeros = Tensor::new(node.shape, vec![T::ZERO; node.shape.len()]);
                state.values.insert(Arc::clone(&node.path), Value::Float(zeros));
            }
        }
    }
}

impl TrainStep {
    /// Runs this batch, every number rounded where that is wanted, and adds its gradients to those of the batches before,
    /// in `state`; nothing is updated.
    ///
    /// # Errors
    /// Where it does not run.
    pub fn accumulate<T: Real>(&self, state: &mut State<T>, rounder: Option<Rounder>) -> Result<(), Stopped> {
        let settings = Settings { keep: self.sums_only.clone(), rounder, ..Settings::default() };
        let trace = run(self, state, &settings)?;
        for slot in &self.updates.accumulated {
            let path = Arc::clone(&self.program.node(slot.before).path);
            state.values.insert(path, trace.value(slot.after));
        }
        Ok(())
    }

    /// Forgets the gradients of the batches before: the update was made.
    fn forget<T: Real>(&self, state: &mut State<T>) {
        for slot in &self.updates.accumulated {
            state.values.remove(&self.program.node(slot.before).path);
        }
    }
}

/// `program` with the dropout of update `update`, counted from 0. That of update 0 is the program as built.
pub fn reseeded(program: &Arc<Program>, update: u64) -> Arc<Program> {
    if update == 0 || !program.nodes().any(|(_, n)| is_dropout(&n.op)) {
        return Arc::clone(program);
    }
    Arc::new(program.with_leaves(|leaf| match leaf {
        Leaf::Random(r @ Random { kind: RandomKind::Dropout { .. }, .. }) => Some(Leaf::Random(Random {
            seed: r.seed.wrapping_add(update.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ..r.clone()
        })),
        _ => None,
    }))
}

fn is_dropout(op: &Op) -> bool {
    matches!(op, Op::Leaf(Leaf::Random(Random { kind: RandomKind::Dropout { .. }, .. })))
}

/// What one update hands to the next.
#[derive(Clone, Debug)]
pub struct State<T: Real> {
    /// Updates made so far.
    pub update: u64,
    /// Parameters, and the optimiser's memory under the paths of its leaves (`update.<parameter>.m_before`).
    pub values: Bindings<T>,
}

impl<T: Real> State<T> {
    /// Before the first update.
    pub fn new(parameters: Bindings<T>) -> Self {
        Self { update: 0, values: parameters }
    }

    /// Bytes of its numbers.
    pub fn bytes(&self) -> usize {
        self.values.values().map(|value| value.shape().len() * size_of::<T>()).sum()
    }

    /// The parameters, without the optimiser's memory.
    pub fn parameters(&self) -> impl Iterator<Item = (&Arc<str>, &Value<T>)> {
        self.values.iter().filter(|(path, _)| Name::parse(path).pass != Pass::Update)
    }
}

/// Why training stopped by itself. Updates count from 0.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Stopped {
    /// A batch's program does not build.
    #[error("update {update}: the program cannot be built: {error}")]
    Build {
        /// Which update.
        update: u64,
        /// Why.
        error: Box<BuildError>,
    },
    /// A program does not run.
    #[error("update {update}: the program cannot run: {error}")]
    Run {
        /// Which update.
        update: u64,
        /// Why.
        error: Box<RunError>,
    },
    /// A number is no longer finite.
    #[error("update {update}: {path} is not finite")]
    NotFinite {
        /// Which update.
        update: u64,
        /// The first node that made it from finite ones.
        path: Arc<str>,
        /// Whether the node is a parameter or input.
        given: bool,
        /// NaN rather than infinity.
        nan: bool,
    },
    /// No label of an update's sentences counts: their mean loss is 0/0.
    #[error("update {update}: no label of the sentences {sentences:?} counts")]
    NoLabels {
        /// Which update.
        update: u64,
        /// The sentences, counted from 0.
        sentences: Vec<usize>,
    },
    /// An update that was not made cannot be opened.
    #[error("update {update} was not made: there are {made}")]
    NoSuchUpdate {
        /// Which.
        update: u64,
        /// Updates made.
        made: u64,
    },
}

/// Which states a training run keeps: bounded, whatever the number of updates and the size of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Before every so many updates.
    pub every: u64,
    /// When there are more than this, every second one is dropped, and twice as many updates pass between them.
    pub most: usize,
    /// Bytes that they take at most, all together; two are kept in any case.
    pub bytes: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { every: 10, most: 64, bytes: 1 << 30 }
    }
}

impl Retention {
    /// How many states of `bytes` each are kept at most.
    fn most(&self, bytes: usize) -> usize {
        self.most.min(self.bytes / bytes.max(1)).max(2)
    }
}

/// A training run. `B` gives the train step of each batch, counted from 0; it must give the same one every time. An update
/// has one batch, or as many as the optimiser accumulates the gradients of.
#[derive(Debug)]
pub struct Trainer<T: Real, B> {
    batches: B,
    optimiser: Optimiser,
    state: State<T>,
    losses: Vec<f64>,
    kept: Vec<State<T>>,
    retention: Retention,
    settings: Settings<T>,
}

impl<T: Real, B: FnMut(u64) -> Result<Arc<TrainStep>, BuildError>> Trainer<T, B> {
    /// A run from `state` on. `losses` are those of the updates made before it (empty for a new run).
    pub fn new(optimiser: Optimiser, batches: B, state: State<T>, losses: Vec<f64>, retention: Retention) -> Self {
        Self {
            batches,
            optimiser,
            state,
            losses,
            kept: Vec::new(),
            retention: Retention { every: retention.every.max(1), ..retention },
            settings: Settings { timed: false, ..Settings::default() },
        }
    }

    /// With every number rounded before it is used, parameters too.
    #[must_use]
    pub fn rounded(mut self, rounder: Option<Rounder>) -> Self {
        self.settings.rounder = rounder;
        self
    }

    /// Makes one update; gives the loss before it.
    ///
    /// # Errors
    /// Where the batch's program does not build or run, or a number is no longer finite. The state is then that
    /// before the update.
    pub fn step(&mut self) -> Result<f64, Stopped> {
        let update = self.state.update;
        if self.kept.is_empty() || update.is_multiple_of(self.retention.every) {
            self.keep();
        }
        let train_step = self.train_step(update)?;
        let loss = self.advance(&train_step)?;
        self.losses.push(loss);
        Ok(loss)
    }

    /// Parameters and the optimiser's memory after the last update.
    pub fn state(&self) -> &State<T> {
        &self.state
    }

    /// The loss before each update.
    pub fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// States kept, by update.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = &State<T>> {
        self.kept.iter()
    }

    /// The train step of an update.
    ///
    /// # Errors
    /// Where it does not build.
    pub fn train_step(&mut self, update: u64) -> Result<Arc<TrainStep>, Stopped> {
        let parts = self.optimiser.accumulate.max(1);
        self.batch(update, update * parts + parts - 1)
    }

    /// The train step of a batch, counted from 0 over all updates.
    fn batch(&mut self, update: u64, batch: u64) -> Result<Arc<TrainStep>, Stopped> {
        (self.batches)(batch).map_err(|error| Stopped::Build { update, error: Box::new(error) })
    }

    /// Binds what the update of `lesson`, the last of its batches, reads: the gradients of the batches before too.
    fn ready(&mut self, train_step: &TrainStep, state: &mut State<T>) -> Result<(), Stopped> {
        train_step.bind(&self.optimiser, state);
        let (update, parts) = (state.update, self.optimiser.accumulate.max(1));
        for part in 0..parts - 1 {
            let earlier = self.batch(update, update * parts + part)?;
            earlier.accumulate(state, self.settings.rounder.clone())?;
        }
        Ok(())
    }

    /// The state before update `update`, recomputed from the nearest kept one.
    ///
    /// # Errors
    /// Where `update` was not reached.
    pub fn state_at(&mut self, update: u64) -> Result<State<T>, Stopped> {
        if update == self.state.update {
            return Ok(self.state.clone());
        }
        let nearest = self.kept.iter().rfind(|s| s.update <= update);
        let (Some(nearest), true) = (nearest, update < self.state.update) else {
            return Err(Stopped::NoSuchUpdate { update, made: self.state.update });
        };
        let now = std::mem::replace(&mut self.state, nearest.clone());
        let mut reached = Ok(0.0);
        while self.state.update < update && reached.is_ok() {
            reached = self.train_step(self.state.update).and_then(|train_step| self.advance(&train_step));
        }
        let then = std::mem::replace(&mut self.state, now);
        reached.map(|_| then)
    }

    /// Update `update` as a full trace: forward, backward and the optimiser's step, with the bits it had. The update
    /// that comes next can be opened too.
    ///
    /// # Errors
    /// Where `update` was not reached.
    pub fn reopen(&mut self, update: u64) -> Result<(Arc<TrainStep>, Trace<T>), Stopped> {
        let mut state = self.state_at(update)?;
        let train_step = self.train_step(update)?;
        self.ready(&train_step, &mut state)?;
        let settings = Settings { keep: Keep::All, timed: true, ..self.settings.clone() };
        let trace = run(&train_step, &state, &settings)?;
        Ok((train_step, trace))
    }

    fn keep(&mut self) {
        let update = self.state.update;
        if self.kept.last().is_some_and(|s| s.update >= update) {
            return;
        }
        if self.kept.len() >= self.retention.most(self.state.bytes()) {
            let mut i = 0;
            self.kept.retain(|_| {
                i += 1;
                i % 2 == 1
            });
            self.retention.every *= 2;
            if !update.is_multiple_of(self.retention.every) {
                return;
            }
        }
        self.kept.push(self.state.clone());
    }

    /// Makes the update of `lesson` on the current state; gives the loss before it.
    fn advance(&mut self, train_step: &TrainStep) -> Result<f64, Stopped> {
        let mut state = self.state.clone();
        self.ready(train_step, &mut state)?;
        let settings = Settings { keep: train_step.handoff_only.clone(), ..self.settings.clone() };
        let trace = run(train_step, &state, &settings)?;
        let loss = trace.value(train_step.loss);
        let mut odd = (!finite(&loss)).then_some(train_step.loss);
        let mut handed = Vec::new();
        for p in &train_step.updates.parameters {
            let new = trace.value(p.new);
            if odd.is_none() && !finite(&new) {
                odd = Some(p.new);
            }
            handed.push((p.parameter, new));
            for slot in &p.slots {
                handed.push((slot.before, trace.value(slot.after)));
            }
        }
        if let Some(odd) = odd {
            let full = Settings { keep: Keep::All, ..settings };
            return Err(culprit(&run(train_step, &state, &full)?, odd, state.update));
        }
        for (leaf, value) in handed {
            state.values.insert(Arc::clone(&train_step.program.node(leaf).path), value);
        }
        train_step.forget(&mut state);
        state.update += 1;
        self.state = state;
        Ok(loss.get(0))
    }
}

fn run<T: Real>(train_step: &TrainStep, state: &State<T>, settings: &Settings<T>) -> Result<Trace<T>, Stopped> {
    let program = train_step.at(state.update);
    run_with(&program, &state.values, settings, &mut ())
        .map_err(|error| Stopped::Run { update: state.update, error: Box::new(error) })
}

fn finite<T: Real>(value: &Value<T>) -> bool {
    match value {
        Value::Float(t) => t.data().iter().all(|x| x.is_finite()),
        _ => true,
    }
}

/// Goes back from a node that holds a NaN or an infinity to the first that made it. A NaN is followed before an
/// infinity, so that the −∞ of a mask is not blamed.
fn culprit<T: Real>(trace: &Trace<T>, from: NodeId, update: u64) -> Stopped {
    let program = trace.program();
    let nan = |id: NodeId| match trace.value(id) {
        Value::Float(t) => t.data().iter().any(|x| x.is_nan()),
        _ => false,
    };
    let mut seen = vec![false; program.len()];
    let mut open = vec![from];
    let mut first = from;
    let mut found = false;
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        let operands = program.node(id).inputs.iter().copied();
        let mut bad: Vec<_> = operands.clone().filter(|&i| nan(i)).collect();
        if bad.is_empty() {
            bad = operands
                .filter(|&i| {
                    let given = matches!(program.node(i).op, Op::MaskFill { .. } | Op::Leaf(Leaf::Constant(_)));
                    !given && !finite(&trace.value(i))
                })
                .collect();
        }
        if bad.is_empty() && (!found || id < first) {
            (first, found) = (id, true);
        }
        open.extend(bad);
    }
    let node = program.node(first);
    Stopped::NotFinite { update, path: Arc::clone(&node.path), given: matches!(node.op, Op::Leaf(_)), nan: nan(first) }
}
