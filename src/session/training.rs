//! Training a session's model: the train step of each update, from all sentences or from mini-batches drawn by a seed.

use std::sync::{Arc, Mutex, OnceLock};

use super::{AnyBindings, Run, RunKind, Session};
use crate::model::build::Qkv;
use crate::model::loss::Loss;
use crate::model::masks::GivenMask;
use crate::model::params::VocabSizes;
use crate::model::{Forward, Sequences, forward};
use crate::program::BuildError;
use crate::program::optimiser::{Fault, Optimiser};
use crate::scenario::schema;
use crate::tensor::Real;
use crate::text::{Msg, escape};
use crate::trace::train::{Retention, State, Stopped, TrainStep, Trainer, reseeded};
use crate::trace::{Bindings, Rounder};

/// What is wrong with a setting of an optimiser, in words.
pub fn fault(why: &Fault) -> Msg {
    let (key, value) = match why {
        Fault::NotPositive(x) => ("scenario.positive", x),
        Fault::Negative(x) => ("scenario.not_negative", x),
        Fault::NotBelowOne(x) => ("scenario.below_one", x),
        Fault::NoShare(x) => ("scenario.share", x),
        Fault::Pattern { pattern, why } => {
            return Msg::new("weights.pattern").arg("pattern", escape(pattern)).arg("why", escape(why));
        }
    };
    Msg::new(key).arg("value", value)
}

/// What each update of a training run learns from.
#[derive(Debug)]
pub struct TrainSteps<'s> {
    session: &'s Session,
    run: usize,
    optimiser: Optimiser,
    /// Sentences an update; all where none.
    batch: Option<usize>,
    seed: u64,
    /// Lessons built so far, one a shape of program.
    built: Vec<Arc<TrainStep>>,
}

impl<'s> TrainSteps<'s> {
    /// Lessons of the training run `run`: of all sentences at once, or of `batch` of them, which `seed` draws.
    pub fn new(session: &'s Session, run: usize, optimiser: Optimiser, batch: Option<usize>, seed: u64) -> Self {
        let all = session.runs[run].inputs.sentences();
        Self { session, run, optimiser, batch: batch.filter(|b| *b < all), seed, built: Vec::new() }
    }

    /// The train step of an update, counted from 0; its last batch, where there are several.
    ///
    /// # Errors
    /// Where its program does not build.
    ///
    /// # Panics
    /// Where the run has no loss: [`Session::training_run`] finds one that has.
    pub fn train_step(&mut self, update: u64) -> Result<Arc<TrainStep>, BuildError> {
        let parts = self.optimiser.accumulate.max(1);
        self.part(update * parts + parts - 1)
    }

    /// The train step of a batch, counted from 0 over all updates: where gradients are accumulated, several are one update.
    fn part(&mut self, update: u64) -> Result<Arc<TrainStep>, BuildError> {
        let Some(batch) = self.batch else {
            if self.built.is_empty() {
                let run = &self.session.runs[self.run];
                let loss = run.outputs.loss.expect("a training run has a loss");
                let train_step = TrainStep::new(run.program.as_ref().clone(), loss, &self.optimiser)?;
                self.built.push(Arc::new(train_step));
            }
            return Ok(Arc::clone(&self.built[0]));
        };
        let s = self.session;
        let inputs = &s.runs[self.run].inputs;
        let rows = drawn(inputs.sentences(), batch, self.seed, update);
        let labels = inputs.labels.as_ref().map(|l| {
            let tokens = l.len() / inputs.sentences();
            pick(l, &rows, tokens)
        });
        let source = inputs.source.as_ref().map(|x| subset(x, &rows));
        let target = inputs.target.as_ref().map(|x| subset(x, &rows));
        let (program, outputs) = forward(&Forward {
            config: s.model_of(self.run),
            vocab: VocabSizes { source: s.source_words.len(), target: s.target_words.len() },
            source: source.as_ref(),
            target: target.as_ref(),
            labels: labels.as_deref(),
            loss: &s.loss_of(self.run).subset(&rows, inputs.sentences()),
            training: true,
        })?;
        if let Some(train_step) = self.built.iter().find_map(|l| l.for_batch(&program)) {
            return Ok(Arc::new(train_step));
        }
        let loss = outputs.loss.expect("a training run has a loss");
        let train_step = Arc::new(TrainStep::new(program, loss, &self.optimiser)?);
        self.built.push(Arc::clone(&train_step));
        Ok(train_step)
    }

    /// A trainer over these train steps, from `state` on.
    pub fn trainer<T: Real>(
        mut self,
        state: State<T>,
        losses: Vec<f64>,
        retention: Retention,
    ) -> Trainer<T, impl FnMut(u64) -> Result<Arc<TrainStep>, BuildError> + 's> {
        let rounder = self.session.rounding.map(Rounder::from);
        Trainer::new(self.optimiser.clone(), move |part| self.part(part), state, losses, retention).rounded(rounder)
    }
}

impl Session {
    /// Sentences that an update can learn from.
    pub fn sentences(&self) -> usize {
        self.inputs.sentences()
    }

    /// The first training run with a loss.
    pub fn training_run(&self) -> Option<usize> {
        self.runs.iter().position(|r| r.kind == RunKind::Training && r.outputs.loss.is_some())
    }

    /// What training run `run` minimises.
    fn loss_of(&self, run: usize) -> Loss {
        let name = &self.runs[run].name;
        let vocab = VocabSizes { source: self.source_words.len(), target: self.target_words.len() };
        let given = self.scenario.runs.iter().find_map(|r| match r {
            schema::Run::Training { loss, .. } if r.name() == name => Some(loss),
            _ => None,
        });
        // It was read once already when the session was opened.
        given
            .and_then(|l| super::losses::loss(l, "", self.model_of(run), &self.runs[run].inputs, vocab).ok())
            .unwrap_or_default()
    }

    /// The settings of training run `run`, as the scenario gives them.
    pub fn optimiser_of(&self, run: usize) -> Optimiser {
        let name = &self.runs[run].name;
        self.scenario
            .runs
            .iter()
            .find_map(|r| match r {
                schema::Run::Training { optimiser, .. } if r.name() == name => Some(optimiser.clone()),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// This session before another update of its training: the same programs over the values of a state, and over the
    /// optimiser's memory that is among them. No run has been run yet; the steps are the same.
    #[must_use]
    pub fn at_update(&self, updates: u64, values: AnyBindings) -> Self {
        let more = updates.saturating_sub(self.updates);
        let run = |r: &Run| Run {
            name: r.name.clone(),
            kind: r.kind.clone(),
            program: reseeded(&r.program, more),
            outputs: r.outputs,
            inputs: Arc::clone(&r.inputs),
            train_step: r.train_step.clone(),
            held: Arc::clone(&r.held),
            trace: OnceLock::new(),
            live: super::live::Live::default(),
            rounded: Mutex::default(),
        };
        Self {
            scenario: self.scenario.clone(),
            origin: self.origin.clone(),
            text: self.text.clone(),
            precision: self.precision,
            rounding: self.rounding,
            source_words: self.source_words.clone(),
            target_words: self.target_words.clone(),
            inputs: Arc::clone(&self.inputs),
            specs: self.specs.clone(),
            params: values,
            updates,
            coverage: self.coverage.clone(),
            runs: self.runs.iter().map(run).collect(),
            steps: Arc::clone(&self.steps),
            detail: self.detail,
            base: None,
            run_steps: Mutex::default(),
            budget: self.budget,
            own: OnceLock::new(),
            patient: std::sync::atomic::AtomicBool::default(),
            model_type: OnceLock::new(),
        }
    }

    /// The run of a training run's update.
    pub fn update_of(&self, training: usize) -> Option<usize> {
        (0..self.runs.len()).find(|r| self.runs[*r].kind == RunKind::Update && self.forward_of(*r) == Some(training))
    }

    /// Makes `updates` updates of training run `run` on the session's parameters.
    ///
    /// # Errors
    /// Where training stops by itself before.
    pub(super) fn advance(&mut self, run: usize, updates: u64) -> Result<(), Stopped> {
        fn go<T: Real>(s: &Session, run: usize, start: &Bindings<T>, updates: u64) -> Result<State<T>, Stopped> {
            let rule = s.optimiser_of(run);
            let train_steps = TrainSteps::new(s, run, rule, None, 0);
            let mut trainer = train_steps.trainer(State::new(start.clone()), Vec::new(), Retention::default());
            for _ in 0..updates {
                trainer.step()?;
            }
            Ok(trainer.state().clone())
        }
        self.params = match &self.params {
            AnyBindings::F32(b) => AnyBindings::F32(go(self, run, b, updates)?.values),
            AnyBindings::F64(b) => AnyBindings::F64(go(self, run, b, updates)?.values),
        };
        self.updates = updates;
        Ok(())
    }
}

/// The sentences of update `update` where none of their labels counts: their mean loss would be 0/0. Empty where one
/// does, or where the run has no labels.
pub fn unlabelled(session: &Session, run: usize, batch: Option<usize>, seed: u64, update: u64) -> Vec<usize> {
    let inputs = &session.runs[run].inputs;
    let (all, Some(labels)) = (inputs.sentences(), &inputs.labels) else {
        return Vec::new();
    };
    let Some(batch) = batch.filter(|b| *b < all) else {
        return Vec::new();
    };
    let tokens = labels.len() / all;
    let mut rows = drawn(all, batch, seed, update);
    let counts = |row: &usize| labels[row * tokens..(row + 1) * tokens].iter().any(|l| *l >= 0);
    if rows.iter().any(counts) {
        return Vec::new();
    }
    rows.sort_unstable();
    rows
}

/// The sentences of update `update`: every sentence once in each pass over them, in an order of its own each pass.
fn drawn(sentences: usize, batch: usize, seed: u64, update: u64) -> Vec<usize> {
    let first = update * batch as u64;
    let mut pass = u64::MAX;
    let mut order: Vec<usize> = Vec::new();
    (first..first + batch as u64)
        .map(|at| {
            let of = at / sentences as u64;
            if of != pass {
                (pass, order) = (of, shuffled(sentences, seed, of));
            }
            order[(at % sentences as u64) as usize]
        })
        .collect()
}

/// 0, …, n − 1 in an order that `seed` and `pass` decide, the same on every machine (Fisher and Yates).
fn shuffled(n: usize, seed: u64, pass: u64) -> Vec<usize> {
    let mut state = mix(mix(seed) ^ pass);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        state = mix(state);
        // The high half times the range: even enough, and without a loop.
        let j = ((u128::from(state) * (i as u128 + 1)) >> 64) as usize;
        order.swap(i, j);
    }
    order
}

/// SplitMix64 (Steele, Lea and Flood 2014).
fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn pick<X: Clone>(all: &[X], rows: &[usize], width: usize) -> Vec<X> {
    rows.iter().flat_map(|r| all[r * width..(r + 1) * width].iter().cloned()).collect()
}

fn masks_of(m: &GivenMask, rows: &[usize]) -> GivenMask {
    if m.batch == 1 {
        return m.clone();
    }
    GivenMask { batch: rows.len(), visible: pick(&m.visible, rows, m.queries * m.keys), ..m.clone() }
}

fn subset(s: &Sequences, rows: &[usize]) -> Sequences {
    let tokens = s.tokens();
    Sequences {
        ids: pick(&s.ids, rows, tokens),
        batch: rows.len(),
        real: s.real.as_ref().map(|r| pick(r, rows, tokens)),
        given: s.given.as_ref().map(|m| masks_of(m, rows)),
        cross: s.cross.as_ref().map(|m| masks_of(m, rows)),
        positions: s.positions.as_ref().map(|p| pick(p, rows, tokens)),
        types: s.types.as_ref().map(|t| pick(t, rows, tokens)),
        vectors: s.vectors.as_ref().map(|v| pick(v, rows, v.len() / s.batch.max(1))),
        qkv: s.qkv.as_ref().map(|g| {
            let part = |x: &[f64]| pick(x, rows, x.len() / s.batch.max(1));
            Qkv { q: part(&g.q), k: part(&g.k), v: part(&g.v), keys: g.keys }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_has_every_sentence_once() {
        for (sentences, batch) in [(5, 2), (6, 3), (7, 1), (4, 3)] {
            let updates = sentences * batch;
            let all: Vec<usize> = (0..updates as u64).flat_map(|u| drawn(sentences, batch, 3, u)).collect();
            for pass in all.chunks_exact(sentences) {
                let mut seen = pass.to_vec();
                seen.sort_unstable();
                assert_eq!(seen, (0..sentences).collect::<Vec<_>>());
            }
        }
        let order = |seed| shuffled(20, seed, 0);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(shuffled(20, 1, 0), shuffled(20, 1, 1));
    }

    #[test]
    fn a_subset_keeps_rows_together() {
        let s = Sequences {
            ids: vec![0, 1, 10, 11, 20, 21],
            batch: 3,
            real: Some(vec![true, false, true, true, false, true]),
            ..Sequences::default()
        };
        let two = subset(&s, &[2, 0]);
        assert_eq!(two.ids, [20, 21, 0, 1]);
        assert_eq!(two.real.unwrap(), [false, true, true, false]);
    }
}
