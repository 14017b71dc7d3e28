//! From a scenario to a session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::check::{Held, settings};
use super::edits::resolve;
use super::inputs::{Given, inputs, prefix};
use super::written::walkthrough;
use super::{AnyBindings, Inputs, Run, RunKind, Session};
use crate::model::config::ModelConfig;
use crate::model::generate::{Barred, Calls, Choice, Part, generate};
use crate::model::loss::Loss;
use crate::model::params::{ParamRole, ParamSpec, VocabSizes, embedding_path, parameters};
use crate::model::validate::{self, ConfigProblem};
use crate::model::{Forward, ModelBuilder, Outputs, forward};
use crate::program::autodiff::backward;
use crate::program::{BuildError, Builder, Program};
use crate::scenario::diagnostic::Problem;
use crate::scenario::guard;
use crate::scenario::schema::{self, Decode, Scenario, Vocabulary};
use crate::scenario::tokenise::Vocab;
use crate::scenario::weights::{self, Coverage};
use crate::source::{Mapped, Tokenizer};
use crate::tensor::Precision;
use crate::text::Msg;
use crate::trace::Rounding;
use crate::trace::train::{TrainStep, reseeded};
use crate::walkthrough::Detail;

/// What a user may choose when opening a scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number type, instead of the scenario's.
    pub precision: Option<Precision>,
    /// Rounds every number of its runs; to a number type in f32.
    pub rounding: Option<Rounding>,
    /// Detail of automatic plans.
    pub detail: Detail,
    /// Open the first training run's update with this number, counted from 1: all runs are then those of the
    /// parameters before it. 0 and 1 are the first.
    pub update: u64,
    /// Only shapes are wanted: no weights are read or made, and no run can run.
    pub shapes: bool,
    /// Bytes of computed values that a run keeps in memory at most; the others are computed again where they are looked at.
    pub budget: Option<u64>,
}

/// More numbers than are made only to see what else is wrong.
const MANY_NUMBERS: usize = 1 << 24;

/// Opens a scenario: tokenises, loads parameters, builds the programs of its runs. Nothing is run yet.
///
/// # Errors
/// Everything that is wrong with it.
pub fn open(scenario: Scenario, origin: Option<&Path>, options: Options) -> Result<Session, Vec<Problem>> {
    open_beside(scenario, origin, options, None)
}

/// As [`open`]; parameters that `base` has already, of the same shape and from the same source, are its own. With a
/// base, no updates are made: those that it has made are in its parameters.
pub(super) fn open_beside(
    mut scenario: Scenario,
    origin: Option<&Path>,
    options: Options,
    base: Option<&Arc<Session>>,
) -> Result<Session, Vec<Problem>> {
    let folder = origin.and_then(Path::parent);
    let locate = |name: &str| -> Result<PathBuf, Msg> {
        let path = folder.map_or_else(|| Path::new(name).to_owned(), |f| f.join(name));
        guard::regular(&path, guard::MAX_TENSORS)?;
        Ok(path)
    };
    let read_text = |name: &str| -> Result<String, Msg> {
        // A scenario in a file may have a corpus of the same name next to it.
        let beside = folder.is_some_and(|f| f.join(name).exists());
        if let (Some(text), false) = (crate::scenario::embedded_corpus(name), beside) {
            return Ok(text.to_owned());
        }
        String::from_utf8(Mapped::open(&locate(name)?)?.to_vec()).map_err(|_| Msg::new("scenario.not_utf8"))
    };
    let mut problems = Vec::new();
    let read = |vocabulary: &Vocabulary, at: &str| match vocabulary {
        Vocabulary::Tokenizer { file, size } => {
            let tokenizer = locate(file).and_then(|path| Tokenizer::open(&path));
            let tokenizer = tokenizer.map_err(|msg| Problem::new(format!("{at}.file"), msg))?;
            Ok(Vocab::of_tokenizer(tokenizer, *size))
        }
        _ => Vocab::new(vocabulary, at, &read_text),
    };
    let mut words = |vocabulary, at| match read(vocabulary, at) {
        Ok(words) => Some(words),
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    let source_words = words(&scenario.vocabulary, "vocabulary");
    let target_words = match &scenario.target_vocabulary {
        Some(v) => words(v, "target_vocabulary"),
        None => source_words.clone(),
    };
    let (Some(source_words), Some(target_words)) = (source_words, target_words) else {
        return Err(problems);
    };
    let vocab = VocabSizes { source: source_words.len(), target: target_words.len() };
    let vocab_checked = without_words(&mut scenario, vocab)?;
    // What follows expands layers and pads sentences: it needs models that make sense.
    let mut wrong = invalid("", &scenario.model, vocab_checked);
    for (i, run) in scenario.runs.iter().enumerate() {
        if let Some(model) = &run.with().model {
            wrong.extend(invalid(&format!("runs[{i}].with."), model, vocab_checked));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut read = |given: Given<'_>| Arc::new(inputs(&given, &source_words, &target_words, &mut problems));
    let common = read(Given::of(&scenario));
    let listed = |model: &ModelConfig, at: &str| {
        let why = |e: BuildError| Problem::new(at, Msg::new("scenario.build").arg("why", e));
        parameters(model, vocab).map_err(why)
    };
    let mut specs = listed(&scenario.model, "model").map_err(|p| vec![p])?;
    let mut changed = Vec::new();
    let mut unlike = Vec::new();
    for (i, run) in scenario.runs.iter().enumerate() {
        if *run.with() == schema::Changes::default() {
            changed.push(Arc::clone(&common));
            continue;
        }
        let at = format!("runs[{i}].with");
        changed.push(read(Given::changed(&scenario, run.with(), &at)));
        if let Some(model) = &run.with().model {
            let more = listed(model, &format!("{at}.model"));
            unlike.extend(more.and_then(|more| join(&mut specs, more, &at)).err());
        }
    }
    problems.extend(unlike);
    let of_runs: Vec<&Inputs> = changed.iter().map(|i| &**i).collect();
    drop_unread_tables(&scenario, &of_runs, &mut specs);
    let precision = match options.rounding {
        Some(Rounding::Type(_)) => Precision::F32,
        _ => options.precision.unwrap_or(scenario.precision),
    };
    let held = Held { precision, budget: options.budget };
    problems.extend(settings(&scenario, &of_runs, vocab, &target_words, held));
    // Runs that change a part share the rest, and what is wrong with it.
    for i in (1..problems.len()).rev() {
        if problems[..i].contains(&problems[i]) {
            problems.remove(i);
        }
    }
    if base.is_some() {
        // An edit may leave parameters that nothing reads any more.
        let values = &mut scenario.weights.values;
        values.retain(|path, _| specs.iter().any(|s| s.path == *path));
    }
    // Problems of the weights are reported together with the others, unless making the weights takes long.
    let numbers: usize = specs.iter().map(|s| s.shape.len()).sum();
    if !problems.is_empty() && numbers > MANY_NUMBERS {
        return Err(problems);
    }
    let base = base.filter(|b| b.precision == precision);
    let known = base.map(|b| b.known(&scenario.weights));
    let nothing = Coverage::default();
    let loaded = match precision {
        Precision::F64 if options.shapes => Ok((AnyBindings::F64(HashMap::new()), nothing)),
        Precision::F32 if options.shapes => Ok((AnyBindings::F32(HashMap::new()), nothing)),
        Precision::F64 => weights::load(&scenario.weights, &specs, &locate, &|spec| known.as_ref()?.get_f64(spec))
            .map(|(b, c)| (AnyBindings::F64(b), c)),
        Precision::F32 => weights::load(&scenario.weights, &specs, &locate, &|spec| known.as_ref()?.get_f32(spec))
            .map(|(b, c)| (AnyBindings::F32(b), c)),
    };
    let (params, coverage) = match loaded {
        Ok(loaded) if problems.is_empty() => loaded,
        Ok(_) => return Err(problems),
        Err(more) => {
            problems.extend(more);
            return Err(problems);
        }
    };
    let mut session = Session {
        scenario,
        origin: origin.map(Path::to_owned),
        text: None,
        precision,
        rounding: options.rounding,
        source_words,
        target_words,
        inputs: common,
        specs,
        params,
        updates: 0,
        coverage,
        runs: Vec::new(),
        steps: Arc::default(),
        detail: options.detail,
        budget: options.budget,
        base: base.map(Arc::clone),
        run_steps: Mutex::default(),
        own: OnceLock::new(),
        patient: std::sync::atomic::AtomicBool::default(),
        model_type: OnceLock::new(),
    };
    session.runs = runs(&session, &changed, vocab).map_err(|p| vec![p])?;
    if options.shapes {
        return Ok(session);
    }
    let resolved = resolve(&session)?;
    let made = base.map_or(options.update.saturating_sub(1), |b| b.updates);
    if let Some(base) = base.filter(|_| made > 0) {
        session.keep_updates(base)?;
        session.edit_params(&resolved.params, base.scenario.edits.len());
    } else {
        session.edit_params(&resolved.params, 0);
    }
    if made > 0 && base.is_none() {
        if let Some(i) = session.first_recorded_edit() {
            let msg = Msg::new("edit.in_training");
            return Err(vec![Problem::new(format!("edits[{i}]"), msg)]);
        }
        let run = session.training_run().ok_or_else(|| vec![Problem::new("runs", Msg::new("train.no_loss"))])?;
        let steps = session.optimiser_of(run).steps;
        if made > steps {
            let msg = Msg::new("train.update_beyond").arg("update", options.update).arg("steps", steps);
            return Err(vec![Problem::new("", msg)]);
        }
        session.advance(run, made).map_err(|stopped| vec![Problem::new("", Msg::from(&stopped))])?;
    }
    for (run, held) in session.runs.iter_mut().zip(resolved.held) {
        run.held = Arc::new(held);
        if made > 0 {
            run.program = reseeded(&run.program, made);
        }
    }
    session.steps = Arc::new(session.index_steps(walkthrough(&session)?));
    Ok(session)
}

/// A scenario without a vocabulary reads vectors, and its models have no output head. The sizes of the vocabularies as
/// the check of a model wants them: nobody reads a table of no words.
fn without_words(scenario: &mut Scenario, vocab: VocabSizes) -> Result<VocabSizes, Vec<Problem>> {
    if !scenario.vocabulary.is_none() || scenario.target_vocabulary.is_some() {
        return Ok(vocab);
    }
    let vectors = |i: &Option<schema::Input>| i.as_ref().is_none_or(|i| !i.vectors.is_empty() || i.qkv.is_some());
    let all = scenario.runs.iter().all(|r| vectors(&r.with().source) && vectors(&r.with().target));
    let some = scenario.source.is_some()
        || scenario.target.is_some()
        || scenario.runs.iter().any(|r| r.with().source.is_some());
    if !(some && all && vectors(&scenario.source) && vectors(&scenario.target)) {
        return Err(vec![Problem::new("vocabulary", Msg::new("scenario.no_vocabulary"))]);
    }
    scenario.model.output.none = true;
    for run in &mut scenario.runs {
        if let Some(model) = &mut run.with_mut().model {
            model.output.none = true;
        }
    }
    Ok(VocabSizes { source: 1, target: 1 })
}

/// Takes out the embedding tables that no run reads, since what it reads is given as vectors.
fn drop_unread_tables(scenario: &Scenario, inputs: &[&Inputs], specs: &mut Vec<ParamSpec>) {
    let vectors = |s: &crate::model::Sequences| !s.reads_table();
    let given = |of: fn(&Inputs) -> Option<&crate::model::Sequences>| {
        let mut all = inputs.iter().filter_map(|i| of(i)).peekable();
        all.peek().is_some() && all.all(vectors)
    };
    let (source, target) = (given(|i| i.source.as_ref()), given(|i| i.target.as_ref()));
    let models = || scenario.runs.iter().filter_map(|r| r.with().model.as_ref()).chain([&scenario.model]);
    let decodes = scenario.runs.iter().any(|r| matches!(r, schema::Run::Inference { .. }));
    let unread = |path: &str, side: &str, free: bool| {
        let reads = models().any(|m| embedding_path(m, side) == path && (m.output.tied || !free));
        let has = models().any(|m| if side == "source" { m.encoder.is_some() } else { m.decoder.is_some() });
        !(reads && has)
    };
    specs.retain(|s| {
        s.role != ParamRole::Embedding
            || !(unread(&s.path, "source", source) && unread(&s.path, "target", target && !decodes))
    });
}

/// What is wrong with a model; `prefix` comes before its fields.
fn invalid(prefix: &str, model: &ModelConfig, vocab: VocabSizes) -> Vec<Problem> {
    let problem =
        |p: ConfigProblem| Problem { at: format!("{prefix}{}", p.field), msg: p.msg, help: p.help, anchor: None };
    let found = validate::validate(model, vocab);
    found.into_iter().map(problem).collect()
}

/// Adds the parameters of a run's own model: those with the same path are shared, so their shapes must agree.
fn join(specs: &mut Vec<ParamSpec>, more: Vec<ParamSpec>, at: &str) -> Result<(), Problem> {
    for spec in more {
        match specs.iter().find(|s| s.path == spec.path) {
            None => specs.push(spec),
            Some(there) if there.shape.same_dims(&spec.shape) => {}
            Some(there) => {
                let msg = Msg::new("scenario.shared_shape")
                    .arg("path", &spec.path)
                    .arg("found", spec.shape)
                    .arg("wanted", there.shape);
                return Err(Problem::new(format!("{at}.model"), msg));
            }
        }
    }
    Ok(())
}

fn runs(s: &Session, inputs: &[Arc<Inputs>], vocab: VocabSizes) -> Result<Vec<Run>, Problem> {
    let mut out: Vec<Run> = Vec::new();
    let mut losses = Vec::new();
    for (i, run) in s.scenario.runs.iter().enumerate() {
        let model = run.with().model.as_ref().unwrap_or(&s.scenario.model);
        losses.push(match run {
            schema::Run::Training { loss, .. } => {
                super::losses::loss(loss, &format!("runs[{i}]"), model, &inputs[i], vocab)?
            }
            _ => Loss::default(),
        });
    }
    for (i, run) in s.scenario.runs.iter().enumerate() {
        let at = format!("runs[{i}]");
        let unbuildable = |e: BuildError| Problem::new(format!("runs[{i}]"), Msg::new("scenario.build").arg("why", e));
        let model = run.with().model.as_ref().unwrap_or(&s.scenario.model);
        let inputs = &inputs[i];
        let (kind, (program, outputs)) = match run {
            schema::Run::Training { .. } => {
                (RunKind::Training, forward_pass(model, inputs, vocab, true, Some(&losses[i])).map_err(unbuildable)?)
            }
            schema::Run::Forward { .. } => {
                (RunKind::Forward, forward_pass(model, inputs, vocab, true, None).map_err(unbuildable)?)
            }
            schema::Run::Encode { .. } => {
                (RunKind::Encode, forward_pass(model, inputs, vocab, false, None).map_err(unbuildable)?)
            }
            schema::Run::Inference { decode, kv_cache, .. } => {
                let calls = calls(s, decode, &at)?;
                let known = inputs.target.as_ref().filter(|t| t.batch == 1).map(|t| t.ids.as_slice());
                let m = ModelBuilder::new(model, vocab, false);
                let (source, part) = (inputs.source.as_ref(), Part::whole(&calls));
                let program = generate(m, source, &calls, &part, known, *kv_cache).map_err(unbuildable)?;
                (RunKind::Inference, (program, Outputs::default()))
            }
        };
        let backward_of =
            (kind == RunKind::Training).then(|| outputs.loss.map(|loss| (program.clone(), loss))).flatten();
        out.push(new_run(run.name(), kind, program, outputs, inputs));
        if let Some((program, loss)) = backward_of {
            let name = |what: &str| {
                let taken = |name: &str| {
                    let given = s.scenario.runs.iter().any(|r| r.name() == name);
                    given || out.iter().any(|r| r.name == name)
                };
                if taken(what) { format!("{}.{what}", run.name()) } else { what.to_owned() }
            };
            let (backward_name, update_name) = (name("backward"), name("update"));
            let mut b = Builder::resume(program.clone());
            backward(&mut b, loss).map_err(unbuildable)?;
            out.push(new_run(&backward_name, RunKind::Backward, b.finish(), outputs, inputs));
            if let schema::Run::Training { optimiser, .. } = run {
                let train_step = TrainStep::new(program, loss, optimiser).map_err(unbuildable)?;
                let program = Arc::clone(&train_step.program);
                let mut update = new_run(&update_name, RunKind::Update, program, outputs, inputs);
                update.train_step = Some((Arc::new(train_step), optimiser.clone()));
                out.push(update);
            }
        }
    }
    Ok(out)
}

pub(super) fn new_run(
    name: &str,
    kind: RunKind,
    program: impl Into<Arc<Program>>,
    outputs: Outputs,
    inputs: &Arc<Inputs>,
) -> Run {
    Run {
        name: name.to_owned(),
        kind,
        program: program.into(),
        outputs,
        train_step: None,
        inputs: Arc::clone(inputs),
        held: Arc::default(),
        trace: OnceLock::new(),
        live: super::live::Live::default(),
        rounded: Mutex::new(HashMap::new()),
    }
}

/// A forward pass; `decodes`: also through the decoder; `training`: with dropout and a loss.
fn forward_pass(
    model: &ModelConfig,
    inputs: &Inputs,
    vocab: VocabSizes,
    decodes: bool,
    loss: Option<&Loss>,
) -> Result<(Program, Outputs), BuildError> {
    let training = loss.is_some();
    forward(&Forward {
        config: model,
        vocab,
        source: inputs.source.as_ref(),
        target: inputs.target.as_ref().filter(|_| decodes),
        labels: inputs.labels.as_deref().filter(|_| training),
        loss: loss.unwrap_or(&Loss::MeanCrossEntropy),
        training,
    })
}

/// The decoding calls that a scenario asks for; its settings were checked.
///
/// # Errors
/// Prefixes that the vocabulary does not have.
pub(super) fn calls(s: &Session, decode: &Decode, at: &str) -> Result<Calls, Problem> {
    let words = &s.target_words;
    let (from, max_new, choice) = match decode {
        Decode::Forced(prefixes) => {
            let ids = prefixes.iter().enumerate().map(|(i, p)| prefix(&format!("{at}.decode[{i}]"), p, words));
            return Ok(Calls::Forced(ids.collect::<Result<_, _>>()?));
        }
        Decode::Greedy { from, max_new } => (from, *max_new, Choice::Greedy),
        Decode::Sample { from, max_new, temperature, top_k, top_p, min_p, repetition_penalty, seed } => {
            let choice = Choice::Sample {
                temperature: *temperature,
                top_k: *top_k,
                top_p: *top_p,
                min_p: *min_p,
                repetition_penalty: *repetition_penalty,
                seed: *seed,
            };
            (from, *max_new, choice)
        }
        Decode::Batch { from, max_new } => {
            let ids = from.iter().enumerate().map(|(i, p)| prefix(&format!("{at}.decode.from[{i}]"), p, words));
            return Ok(Calls::Batch { from: ids.collect::<Result<_, _>>()?, max_new: *max_new });
        }
        Decode::Beam { from, max_new, beams, length_penalty } => {
            return Ok(Calls::Beam {
                from: prefix(&format!("{at}.decode.from"), from, words)?,
                max_new: *max_new,
                beams: *beams,
                end: s.ends().first().copied(),
                length_penalty: *length_penalty,
            });
        }
    };
    let from = prefix(&format!("{at}.decode.from"), from, words)?;
    Ok(Calls::Free { from, max_new, choice, barred: Barred::default() })
}
