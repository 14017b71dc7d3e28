//! From a scenario to a session.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use super::inputs::{Given, inputs, prefix};
use super::remarks::given;
use super::training::optimiser;
use super::{AnyBindings, Inputs, Run, RunKind, Session, Steps};
use crate::model::config::ModelConfig;
use crate::model::generate::{Calls, Choice, generate};
use crate::model::params::{ParamSpec, VocabSizes, parameters};
use crate::model::validate::{self, ConfigProblem};
use crate::model::{Forward, ModelBuilder, Outputs, forward};
use crate::program::autodiff::backward;
use crate::program::{BuildError, Builder, Program};
use crate::scenario::diagnostic::{Problem, nearest};
use crate::scenario::schema::{self, Decode, Scenario, ViewSpec};
use crate::scenario::tokenise::Words;
use crate::scenario::weights;
use crate::tensor::{Precision, Slice};
use crate::text::{Msg, escape};
use crate::trace::train::{Lesson, reseeded};
use crate::walkthrough::{Detail, Step, View, plan};

/// What a person may choose when opening a scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number type, instead of the scenario's.
    pub precision: Option<Precision>,
    /// Detail of automatic plans.
    pub detail: Detail,
    /// Open the first training run's update with this number, counted from 1: all runs are then those of the
    /// parameters before it. 0 and 1 are the first.
    pub update: u64,
}

/// Largest file that a scenario may name: 64 GiB.
const LARGEST_FILE: u64 = 64 << 30;

/// Most beams of a beam search.
pub const MOST_BEAMS: usize = 1024;

/// Opens a scenario: tokenises, loads parameters, builds the programs of its runs. Nothing is run yet.
///
/// # Errors
/// Everything that is wrong with it.
pub fn open(
    scenario: Scenario,
    origin: Option<&Path>,
    options: Options,
) -> Result<Session, Vec<Problem>> {
    let folder = origin.and_then(Path::parent);
    let open_file = |name: &str| -> Result<Vec<u8>, Msg> {
        let path = folder.map_or_else(|| Path::new(name).to_owned(), |f| f.join(name));
        let unreadable = |e: std::io::Error| {
            Msg::new("scenario.unreadable")
                .arg("file", escape(&path.display().to_string()))
                .arg("why", e)
        };
        let meta = std::fs::metadata(&path).map_err(unreadable)?;
        if meta.len() > LARGEST_FILE || meta.is_dir() {
            return Err(unreadable(std::io::Error::other("not a file of this kind")));
        }
        std::fs::read(&path).map_err(unreadable)
    };
    let read_text = |name: &str| -> Result<String, Msg> {
        // A scenario in a file may have a corpus of the same name beside it.
        let beside = folder.is_some_and(|f| f.join(name).exists());
        if let (Some(text), false) = (crate::scenario::embedded_corpus(name), beside) {
            return Ok(text.to_owned());
        }
        String::from_utf8(open_file(name)?).map_err(|_| Msg::new("scenario.not_utf8"))
    };
    let one = |p: Problem| vec![p];
    let source_words = Words::new(&scenario.vocabulary, "vocabulary", &read_text).map_err(one)?;
    let target_words = match &scenario.target_vocabulary {
        Some(v) => Words::new(v, "target_vocabulary", &read_text).map_err(one)?,
        None => source_words.clone(),
    };
    let vocab = VocabSizes {
        source: source_words.len(),
        target: target_words.len(),
    };
    let given = Given::of(&scenario);
    let inputs = check(
        "",
        &scenario.model,
        vocab,
        &given,
        &source_words,
        &target_words,
    )?;
    let mut specs = parameters(&scenario.model, vocab);
    let mut changed = Vec::new();
    for (i, run) in scenario.runs.iter().enumerate() {
        if *run.with() == schema::Changes::default() {
            changed.push(None);
            continue;
        }
        let at = format!("runs[{i}].with");
        let model = run.with().model.as_ref().unwrap_or(&scenario.model);
        let given = Given::changed(&scenario, run.with(), &at);
        changed.push(Some(Arc::new(check(
            &format!("{at}."),
            model,
            vocab,
            &given,
            &source_words,
            &target_words,
        )?)));
        join(&mut specs, parameters(model, vocab), &at).map_err(one)?;
    }
    let precision = options.precision.unwrap_or(scenario.precision);
    let (params, coverage) = match precision {
        Precision::F64 => {
            let (b, c) = weights::load(&scenario.weights, &specs, &open_file)?;
            (AnyBindings::F64(b), c)
        }
        Precision::F32 => {
            let (b, c) = weights::load(&scenario.weights, &specs, &open_file)?;
            (AnyBindings::F32(b), c)
        }
    };
    let mut session = Session {
        scenario,
        origin: origin.map(Path::to_owned),
        precision,
        source_words,
        target_words,
        inputs: Arc::new(inputs),
        specs,
        params,
        updates: 0,
        coverage,
        runs: Vec::new(),
        steps: Arc::default(),
        detail: options.detail,
        run_steps: Mutex::default(),
    };
    session.runs = runs(&session, &changed, vocab).map_err(one)?;
    let made = options.update.saturating_sub(1);
    if made > 0 {
        let run = session
            .training_run()
            .ok_or_else(|| one(Problem::new("runs", Msg::new("train.no_loss"))))?;
        session
            .advance(run, made)
            .map_err(|stopped| one(Problem::new("", stopped.message())))?;
        for run in &mut session.runs {
            run.program = reseeded(&run.program, made);
        }
    }
    session.steps = Arc::new(Steps::new(walkthrough(&session)?));
    Ok(session)
}

/// Validates a model and tokenises what it reads; `prefix` stands before the model's fields in problems.
fn check(
    prefix: &str,
    model: &ModelConfig,
    vocab: VocabSizes,
    given: &Given<'_>,
    source: &Words,
    target: &Words,
) -> Result<Inputs, Vec<Problem>> {
    let problem = |p: ConfigProblem| Problem {
        at: format!("{prefix}{}", p.field),
        msg: p.msg,
        help: p.help,
        anchor: None,
    };
    let problems = validate::validate(model, vocab);
    if !problems.is_empty() {
        return Err(problems.into_iter().map(problem).collect());
    }
    let inputs = inputs(given, source, target).map_err(|p| vec![p])?;
    validate::lengths(model, inputs.source.as_ref(), inputs.target.as_ref())
        .map_err(|p| vec![problem(p)])?;
    Ok(inputs)
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

fn runs(
    s: &Session,
    changed: &[Option<Arc<Inputs>>],
    vocab: VocabSizes,
) -> Result<Vec<Run>, Problem> {
    let mut out: Vec<Run> = Vec::new();
    for (i, run) in s.scenario.runs.iter().enumerate() {
        let at = format!("runs[{i}]");
        if out.iter().any(|r| r.name == run.name()) {
            return Err(Problem::new(
                at,
                Msg::new("scenario.run_twice").arg("name", escape(run.name())),
            ));
        }
        let unbuildable = |e: BuildError| {
            Problem::new(
                format!("runs[{i}]"),
                Msg::new("scenario.build").arg("why", e),
            )
        };
        let model = run.with().model.as_ref().unwrap_or(&s.scenario.model);
        let inputs = changed[i].as_ref().unwrap_or(&s.inputs);
        let (kind, (program, outputs)) = match run {
            schema::Run::Training { .. } => (
                RunKind::Training,
                training(model, inputs, vocab, true).map_err(unbuildable)?,
            ),
            schema::Run::Encode { .. } => (
                RunKind::Encode,
                training(model, inputs, vocab, false).map_err(unbuildable)?,
            ),
            schema::Run::Inference {
                decode, kv_cache, ..
            } => {
                let calls = calls(s, model, decode, &at)?;
                let known = inputs
                    .target
                    .as_ref()
                    .filter(|t| t.batch == 1)
                    .map(|t| t.ids.as_slice());
                let m = ModelBuilder::new(model, vocab, false);
                let program = generate(m, inputs.source.as_ref(), &calls, known, *kv_cache)
                    .map_err(unbuildable)?;
                (RunKind::Inference, (program, Outputs::default()))
            }
        };
        let backward_of = (kind == RunKind::Training)
            .then(|| outputs.loss.map(|loss| (program.clone(), loss)))
            .flatten();
        out.push(new_run(run.name(), kind, program, outputs, inputs));
        if let Some((program, loss)) = backward_of {
            let name = |what: &str| {
                let taken = |name: &str| {
                    let given = s.scenario.runs.iter().any(|r| r.name() == name);
                    given || out.iter().any(|r| r.name == name)
                };
                if taken(what) {
                    format!("{}.{what}", run.name())
                } else {
                    what.to_owned()
                }
            };
            let (backward_name, update_name) = (name("backward"), name("update"));
            let mut b = Builder::resume(program.clone());
            backward(&mut b, loss).map_err(unbuildable)?;
            out.push(new_run(
                &backward_name,
                RunKind::Backward,
                b.finish(),
                outputs,
                inputs,
            ));
            if let schema::Run::Training {
                optimiser: settings,
                ..
            } = run
            {
                let rule = optimiser(settings);
                rule.validate().map_err(|bad| {
                    let must = format!("optimiser.bad.{}", bad.must);
                    let key = crate::text::catalogue::find(&must).unwrap_or("scenario.build");
                    Problem::new(
                        format!("runs[{i}].optimiser"),
                        Msg::new(key).arg("field", bad.field),
                    )
                })?;
                let lesson = Lesson::new(program, loss, &rule).map_err(unbuildable)?;
                let program = Arc::clone(&lesson.program);
                let mut update = new_run(&update_name, RunKind::Update, program, outputs, inputs);
                update.lesson = Some((Arc::new(lesson), rule));
                out.push(update);
            }
        }
    }
    if out.is_empty() {
        return Err(Problem::new("runs", Msg::new("scenario.no_runs")));
    }
    Ok(out)
}

fn new_run(
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
        lesson: None,
        inputs: Arc::clone(inputs),
        trace: OnceLock::new(),
        rounded: Mutex::new(HashMap::new()),
    }
}

fn training(
    model: &ModelConfig,
    inputs: &Inputs,
    vocab: VocabSizes,
    training: bool,
) -> Result<(Program, Outputs), BuildError> {
    forward(&Forward {
        config: model,
        vocab,
        source: inputs.source.as_ref(),
        target: inputs.target.as_ref().filter(|_| training),
        labels: inputs.labels.as_deref().filter(|_| training),
        training,
    })
}

/// The decoding calls that a scenario asks for.
///
/// # Errors
/// Prefixes that the vocabulary does not have; settings that make no sense.
pub(super) fn calls(
    s: &Session,
    model: &ModelConfig,
    decode: &Decode,
    at: &str,
) -> Result<Calls, Problem> {
    if model.decoder.is_none() || model.output.none {
        return Err(Problem::new(at, Msg::new("scenario.no_decoder")));
    }
    let words = &s.target_words;
    let free = |from: &schema::Prefix, max_new: usize, choice: Choice| {
        if max_new == 0 || max_new > 100_000 {
            return Err(Problem::new(
                format!("{at}.max_new"),
                Msg::new("scenario.max_new").arg("value", max_new),
            ));
        }
        let from = prefix(&format!("{at}.from"), from, words)?;
        Ok(Calls::Free {
            from,
            max_new,
            choice,
        })
    };
    match decode {
        Decode::Forced(prefixes) => {
            let ids = prefixes
                .iter()
                .enumerate()
                .map(|(i, p)| prefix(&format!("{at}.decode[{i}]"), p, words));
            Ok(Calls::Forced(ids.collect::<Result<_, _>>()?))
        }
        Decode::Greedy { from, max_new } => free(from, *max_new, Choice::Greedy),
        Decode::Sample {
            from,
            max_new,
            temperature,
            top_k,
            top_p,
            seed,
        } => {
            if !(temperature.is_finite() && *temperature > 0.0) {
                return Err(Problem::new(
                    format!("{at}.temperature"),
                    Msg::new("scenario.temperature"),
                ));
            }
            let choice = Choice::Sample {
                temperature: *temperature,
                top_k: *top_k,
                top_p: *top_p,
                seed: *seed,
            };
            free(from, *max_new, choice)
        }
        Decode::Beam {
            from,
            max_new,
            beams,
        } => {
            if *beams == 0 || *beams > MOST_BEAMS {
                return Err(Problem::new(
                    format!("{at}.beams"),
                    Msg::new("scenario.beams")
                        .arg("value", beams)
                        .arg("most", MOST_BEAMS),
                ));
            }
            match free(from, *max_new, Choice::Greedy)? {
                Calls::Free { from, max_new, .. } => Ok(Calls::Beam {
                    from,
                    max_new,
                    beams: *beams,
                    end: words.id("<eos>"),
                }),
                other => Ok(other),
            }
        }
    }
}

impl Session {
    /// The automatic plan of a run.
    pub fn plan_of(&self, run: usize) -> Vec<Step> {
        let r = &self.runs[run];
        let symbols = |path: &str, slice: &Slice| {
            let slice = slice.to_string();
            let hit = self
                .scenario
                .symbols
                .iter()
                .find(|(_, p)| p.path == path && p.slice == slice);
            hit.map(|(name, _)| name.clone())
        };
        let mut steps = plan(&r.program, run, self.detail, &symbols, &|_| true);
        for step in &mut steps {
            if let Some(note) = self.remark(run, step) {
                step.note = note;
            }
        }
        steps
    }
}

/// The scenario's own steps, else the plan of its first run.
fn walkthrough(s: &Session) -> Result<Vec<Step>, Vec<Problem>> {
    let mut problems = Vec::new();
    for (name, place) in &s.scenario.symbols {
        let at = format!("symbols.\"{name}\"");
        if let Err(p) = find_view(
            s,
            0,
            place.run.as_deref(),
            name,
            &place.path,
            &place.slice,
            &at,
        ) {
            problems.push(p.near(format!("{name:?}:")));
        }
    }
    let mut steps: Vec<Step> = Vec::new();
    for (i, spec) in s.scenario.walkthrough.iter().enumerate() {
        let at = format!("walkthrough[{i}]");
        let near = format!("number: {}", spec.number);
        if steps
            .last()
            .is_some_and(|last| last.number[0] >= spec.number)
        {
            let msg = Msg::new("scenario.step_order").arg("number", spec.number);
            problems.push(Problem::new(format!("{at}.number"), msg).near(&near));
            continue;
        }
        let run = match run_of(s, 0, spec.run.as_deref(), &at) {
            Ok(run) => run,
            Err(p) => {
                problems.push(p.near(&near));
                continue;
            }
        };
        let mut views = Vec::new();
        for (j, view) in spec.views.iter().enumerate() {
            let at = format!("{at}.views[{j}]");
            let found = match view {
                ViewSpec::Symbol(name) => {
                    if let Some(p) = s.scenario.symbols.get(name) {
                        find_view(s, run, p.run.as_deref(), name, &p.path, &p.slice, &at)
                    } else {
                        let mut p = Problem::new(
                            at,
                            Msg::new("scenario.unknown_symbol").arg("name", escape(name)),
                        );
                        if let Some(near) =
                            nearest(name, s.scenario.symbols.keys().map(String::as_str))
                        {
                            p = p.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
                        }
                        Err(p)
                    }
                }
                ViewSpec::Of(name, path) => find_view(s, run, None, name, path, "", &at),
                ViewSpec::Part(name, path, slice) => {
                    find_view(s, run, None, name, path, slice, &at)
                }
            };
            match found {
                Ok(view) => views.push(view),
                Err(p) => problems.push(p.near(&near)),
            }
        }
        steps.push(Step {
            number: vec![spec.number],
            section: spec.section.clone(),
            phase: spec.phase.clone(),
            run,
            title: given(&spec.title),
            note: given(&spec.note),
            formula: spec.formula.clone(),
            views,
        });
    }
    for path in s.scenario.remarks.keys() {
        if s.runs.iter().all(|r| r.program.find(path).is_none()) {
            let at = format!("remarks.\"{path}\"");
            let msg = Msg::new("scenario.unknown_path").arg("path", escape(path));
            let mut p = Problem::new(at, msg).near(format!("{path:?}:"));
            if let Some(near) = s.runs[0].program.similar_paths(path, 1).first() {
                p = p.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
            }
            problems.push(p);
        }
    }
    for (i, e) in s.scenario.expected.iter().enumerate() {
        let at = format!("expected[{i}]");
        match find_view(s, 0, e.run.as_deref(), "", &e.path, &e.slice, &at) {
            Ok(view) if view.shape().len() != e.values.len() => problems.push(Problem::new(
                format!("{at}.values"),
                Msg::new("scenario.expected_count")
                    .arg("found", e.values.len())
                    .arg("wanted", view.shape().len()),
            )),
            Ok(_) => {}
            Err(p) => problems.push(p),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(if steps.is_empty() {
        s.plan_of(0)
    } else {
        steps
    })
}

fn run_of(s: &Session, default: usize, name: Option<&str>, at: &str) -> Result<usize, Problem> {
    let Some(name) = name else { return Ok(default) };
    s.run_named(name).ok_or_else(|| {
        let mut p = Problem::new(
            format!("{at}.run"),
            Msg::new("scenario.unknown_run").arg("name", escape(name)),
        );
        if let Some(near) = nearest(name, s.runs.iter().map(|r| r.name.as_str())) {
            p = p.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
        }
        p
    })
}

fn find_view(
    s: &Session,
    default: usize,
    run: Option<&str>,
    symbol: &str,
    path: &str,
    slice: &str,
    at: &str,
) -> Result<View, Problem> {
    let run = run_of(s, default, run, at)?;
    let program = &s.runs[run].program;
    let Some(node) = program.find(path) else {
        let mut p = Problem::new(
            at,
            Msg::new("scenario.unknown_path").arg("path", escape(path)),
        );
        if let Some(near) = program.similar_paths(path, 1).first() {
            p = p.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
        }
        return Err(p);
    };
    let slice = Slice::parse(slice).map_err(|msg| Problem::new(at, msg))?;
    View::new(program, run, node, symbol, slice).map_err(|msg| Problem::new(at, msg))
}

/// A view of the session for anything that is named by run, path and slice.
///
/// # Errors
/// Where there is no such run, path or slice.
pub fn view(
    s: &Session,
    run: usize,
    symbol: &str,
    path: &str,
    slice: &str,
) -> Result<View, Problem> {
    find_view(s, run, None, symbol, path, slice, path)
}
