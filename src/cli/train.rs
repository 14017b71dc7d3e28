//! `train`: updates of the weights.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

use super::global::Global;
use super::progress::Progress;
use super::{Failure, common, complain, value};
use crate::export::checkpoint;
use crate::program::optimiser::{Optimiser, OptimiserKind};
use crate::program::{Name, Role};
use crate::report;
use crate::report::train::{Train, loss_text};
use crate::session::insight::looks;
use crate::session::training::{TrainSteps, fault, unlabelled};
use crate::session::{self, AnyBindings, RunKind, Session};
use crate::tensor::Real;
use crate::text::{Lang, Msg, NumberFormat, escape};
use crate::trace::Bindings;
use crate::trace::train::{Retention, State, Stopped};

/// An optimiser by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OptimizerName {
    /// Stochastic gradient descent, with momentum where it is given.
    Sgd,
    /// Adam.
    Adam,
    /// Adam with decoupled weight decay.
    Adamw,
}

/// Arguments. What is not given is as in the scenario.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// The training run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Optimiser.
    #[arg(long, value_name = "NAME")]
    pub optimizer: Option<OptimizerName>,
    /// Learning rate.
    #[arg(long, value_name = "X", value_parser = value::real)]
    pub lr: Option<f64>,
    /// Momentum of SGD.
    #[arg(long, value_name = "M", value_parser = value::real)]
    pub momentum: Option<f64>,
    /// Weight decay.
    #[arg(long, value_name = "W", value_parser = value::real)]
    pub weight_decay: Option<f64>,
    /// Gradients are scaled down to this norm.
    #[arg(long, value_name = "NORM", value_parser = value::real)]
    pub clip: Option<f64>,
    /// Updates over which the learning rate rises from 0.
    #[arg(long, value_name = "N")]
    pub warmup: Option<u64>,
    /// Number of updates.
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub steps: Option<usize>,
    /// Updates over which the learning rate follows its course; of a training that goes on, those it began with.
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub schedule_steps: Option<usize>,
    /// Sequences an update.
    #[arg(long, value_name = "B", value_parser = value::count)]
    pub batch: Option<usize>,
    /// Seed of the weights, batches and dropout.
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Where the trained weights go.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Weights to go on from.
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
    /// Write the state every so many updates too.
    #[arg(long, value_name = "N", value_parser = value::count, requires = "save")]
    pub save_every: Option<usize>,
    /// Attention maps and embeddings at so many points of the run, in the JSON.
    #[arg(long, value_name = "N", value_parser = value::count, requires = "json")]
    pub looks: Option<usize>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// Learning rate of Adam where a scenario for another rule gives none.
const ADAM_RATE: f64 = 0.01;

/// Trains.
///
/// # Errors
/// A scenario that cannot be opened or has no loss, settings that make no sense, files; [`Failure::Check`] where a
/// number is no longer finite.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let mut loaded = common::load(&args.scenario, &args.inputs, lang)?;
    if let Some(seed) = args.seed {
        loaded.scenario.weights.seed = seed;
        loaded.scenario.model.dropout.seed = seed;
    }
    let options =
        session::Options { precision: global.precision(), rounding: global.rounding(), ..session::Options::default() };
    let session = common::open_loaded(loaded, options, lang)?;
    let run = training_run(&session, args.run.as_deref())?;
    if session.first_recorded_edit().is_some() {
        return Err(Msg::new("edit.in_training").into());
    }
    let (rule, updates) = settings(args, &session, run, lang)?;
    if let Some(batch) = args.batch
        && batch > session.runs[run].inputs.sentences()
    {
        return Err(Msg::new("train.batch")
            .arg("batch", batch)
            .arg("sentences", session.runs[run].inputs.sentences())
            .into());
    }
    if let Some(path) = &args.save {
        common::no_input(&session, path)?;
    }
    if let Some(path) = &args.save
        && !args.force
        && args.resume.as_ref() != Some(path)
        && path.exists()
    {
        let name = escape(&path.to_string_lossy()).into_owned();
        return Err(Msg::new("cli.file_exists").arg("path", name).into());
    }
    let interrupted = interrupts()?;
    let mut job =
        Job { args, session: &session, run, rule, updates, interrupted: &interrupted, number: global.number(), lang };
    match &session.params {
        AnyBindings::F64(b) => job.train(b),
        AnyBindings::F32(b) => job.train(b),
    }
}

/// The training run called `name`, else the first one with a loss.
fn training_run(session: &Session, name: Option<&str>) -> Result<usize, Failure> {
    let run = match name {
        Some(name) => Some(common::run(session, name)?)
            .filter(|r| session.runs[*r].kind == RunKind::Training && session.runs[*r].outputs.loss.is_some()),
        None => session.training_run(),
    };
    run.ok_or_else(|| Msg::new("train.no_loss").into())
}

/// The scenario's settings with those of the command line over them, and the number of updates.
fn settings(args: &Args, session: &Session, run: usize, lang: Lang) -> Result<(Optimiser, usize), Failure> {
    let mut s = session.optimiser_of(run);
    if let Some(name) = args.optimizer {
        let kind = match name {
            OptimizerName::Sgd => OptimiserKind::Sgd,
            OptimizerName::Adam => OptimiserKind::Adam,
            OptimizerName::Adamw => OptimiserKind::AdamW,
        };
        if s.kind == OptimiserKind::Sgd && kind != OptimiserKind::Sgd {
            s.lr = ADAM_RATE;
        }
        s.kind = kind;
    }
    if args.momentum.is_some() && s.kind != OptimiserKind::Sgd {
        return Err(Msg::new("train.momentum").into());
    }
    s.lr = args.lr.unwrap_or(s.lr);
    s.momentum = args.momentum.unwrap_or(s.momentum);
    s.weight_decay = args.weight_decay.unwrap_or(s.weight_decay);
    s.clip = args.clip.or(s.clip);
    s.warmup = args.warmup.unwrap_or(s.warmup);
    // The course of the learning rate belongs to the training, however many calls it is made in.
    let updates = args.steps.unwrap_or(s.steps as usize);
    s.steps = args.schedule_steps.map_or(s.steps, |n| n as u64);
    match s.faults().first() {
        Some(bad) => {
            Err(Msg::new("train.bad_setting").arg("field", &bad.field).arg("why", fault(&bad.why).render(lang)).into())
        }
        None => Ok((s, updates)),
    }
}

/// Signals after which training ends and what was learnt is saved.
#[cfg(unix)]
const ENDING: [i32; 3] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const ENDING: [i32; 2] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];

/// A flag that Ctrl-C raises; pressed once more, it ends the process.
fn interrupts() -> Result<Arc<AtomicBool>, Failure> {
    // A save that has begun is finished.
    crate::export::file::signals::want(false);
    let flag = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .map_err(|e| Msg::new("train.signals").arg("why", e))?;
    }
    Ok(flag)
}

/// All that a training run is made of.
struct Job<'a> {
    args: &'a Args,
    session: &'a Session,
    run: usize,
    rule: Optimiser,
    updates: usize,
    interrupted: &'a AtomicBool,
    number: Option<NumberFormat>,
    lang: Lang,
}

impl Job<'_> {
    fn train<T: Real>(&mut self, parameters: &Bindings<T>) -> Result<(), Failure> {
        let (state, losses) = match &self.args.resume {
            Some(path) => {
                let (state, losses, schedule) = checkpoint::load_scheduled::<T>(path)?;
                self.fits(&state, path)?;
                self.compare_memory(&state);
                if let (Some(over), None) = (schedule, self.args.schedule_steps) {
                    self.rule.steps = over;
                }
                (state, losses)
            }
            None => (State::new(parameters.clone()), Vec::new()),
        };
        let (first, seed) = (state.clone(), self.args.seed.unwrap_or(0));
        let schedule = self.rule.over();
        let last = (state.update + self.updates as u64).saturating_sub(1);
        if let Some(over) = schedule.filter(|_| self.updates > 0 && self.rule.rate(last) == 0.0) {
            let from = over.max(state.update) + 1;
            complain(&Msg::new("train.rate_0").arg("from", from).arg("over", over).render(self.lang));
        }
        let train_steps = TrainSteps::new(self.session, self.run, self.rule.clone(), self.args.batch, seed);
        let retention = Retention { every: (self.updates as u64 / 32).max(1), ..Retention::default() };
        let mut trainer = train_steps.trainer(state, losses, retention);
        let progress = Progress::new(self.updates, true, self.lang);
        let mut stopped: Option<Stopped> = None;
        let mut interrupted = false;
        for done in 0..self.updates {
            if self.interrupted.load(Ordering::Relaxed) {
                interrupted = true;
                break;
            }
            let update = trainer.state().update;
            let parts = self.rule.accumulate.max(1);
            let all = update * parts..(update + 1) * parts;
            let mut each = all.map(|part| unlabelled(self.session, self.run, self.args.batch, seed, part));
            let sentences = each.find(|rows| !rows.is_empty()).unwrap_or_default();
            if !sentences.is_empty() {
                stopped = Some(Stopped::NoLabels { update, sentences });
                break;
            }
            match trainer.step() {
                Ok(loss) => progress.show(done + 1, || {
                    Msg::new("train.progress").arg("loss", loss_text(loss, Some(NumberFormat::default())))
                }),
                Err(e) => {
                    stopped = Some(e);
                    break;
                }
            }
            if let (Some(path), Some(every)) = (&self.args.save, self.args.save_every)
                && (done + 1) % every == 0
            {
                checkpoint::save_scheduled(path, trainer.state(), trainer.losses(), schedule)?;
            }
        }
        drop(progress);
        if let Some(path) = &self.args.save {
            checkpoint::save_scheduled(path, trainer.state(), trainer.losses(), schedule)?;
        }
        let mut states = vec![first];
        if let Some(most) = self.args.looks {
            // Evenly spread over what is kept; the first and the last are there anyway.
            let kept: Vec<State<T>> = trainer
                .kept()
                .filter(|s| s.update > states[0].update && s.update < trainer.state().update)
                .cloned()
                .collect();
            let inner = most.saturating_sub(2).min(kept.len());
            states.extend((0..inner).map(|i| kept[(i + 1) * kept.len() / (inner + 1)].clone()));
        }
        if trainer.state().update > states[0].update {
            states.push(trainer.state().clone());
        }
        let looks = looks(self.session, self.run, &self.rule, states);
        let looks = match (looks, &stopped) {
            (Ok(looks), _) => looks,
            // What stopped training may stop looking too; it is told below.
            (Err(_), Some(_)) => Vec::new(),
            (Err(e), None) => return Err(Msg::from(&e).into()),
        };
        let report = Train {
            session: self.session,
            run: self.run,
            rule: &self.rule,
            batch: self.args.batch,
            seed,
            requested: self.updates,
            made: trainer.state().update,
            losses: trainer.losses(),
            looks: &looks,
            maps: self.args.looks.is_some(),
            interrupted,
            stopped: stopped.as_ref(),
            saved: self.args.save.as_deref(),
        };
        // Why it stopped comes before what came of it.
        if let Some(e) = &stopped {
            complain(&Msg::from(e).render(self.lang));
        }
        let mut out = BufWriter::new(io::stdout().lock());
        if self.args.json {
            report::write_json(&mut out, &report.to_json())?;
        } else {
            report::write(&mut out, &report.lines(self.number), self.lang)?;
        }
        out.flush()?;
        match stopped {
            Some(_) => Err(Failure::Check),
            None if interrupted => Err(Failure::Interrupted),
            None => Ok(()),
        }
    }

    /// Says where the optimiser of a state is another than this one: what it remembered is not used.
    fn compare_memory<T: Real>(&self, state: &State<T>) {
        let has = |slot: &Role| state.values.keys().any(|path| Name::parse(path).last() == slot);
        let was = match (has(&Role::FirstMomentBefore), has(&Role::VelocityBefore)) {
            (true, _) => "adam",
            (_, true) => "sgd",
            _ => return,
        };
        let is = match self.rule.kind {
            OptimiserKind::Sgd => "sgd",
            // Both remember the same, and the file does not say which it was.
            OptimiserKind::Adam | OptimiserKind::AdamW => "adam",
        };
        if was != is {
            let msg = Msg::new("train.other_optimiser").arg("was", was).arg("is", self.rule.kind.name());
            complain(&msg.render(self.lang));
        }
    }

    /// A state to go on from has every parameter, in its shape.
    fn fits<T: Real>(&self, state: &State<T>, file: &std::path::Path) -> Result<(), Failure> {
        let program = &self.session.runs[self.run].program;
        for spec in &self.session.specs {
            let Some(id) = program.find(&spec.path) else {
                continue;
            };
            let wanted = program.node(id).shape;
            let found = state.values.get(spec.path.as_str()).map(|v| *v.shape());
            if found.is_none_or(|f| !f.same_dims(&wanted)) {
                return Err(Msg::new("train.other_model")
                    .arg("path", escape(&file.to_string_lossy()))
                    .arg("name", escape(&spec.path))
                    .arg("wanted", wanted)
                    .into());
            }
        }
        Ok(())
    }
}
