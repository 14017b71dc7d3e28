//! What several commands do first: open a scenario, find a run.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::global::Global;
use super::inputs;
use super::{Failure, open_recorded, value};
use crate::app::app::App;
use crate::app::args::StepTarget;
use crate::checkpoint;
use crate::export::select::Selection;
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::schema::Vocabulary;
use crate::scenario::{self, Loaded};
use crate::session::{self, RunKind, Session, Steps};
use crate::text::{Lang, Msg, escape};
use crate::trace::RunError;
use crate::walkthrough::Detail;

/// Problems shown at once.
pub(super) const MAX_PROBLEMS: usize = 20;

/// The scenario that `arg` names, or that the checkpoint there is. What a checkpoint assumes goes to standard error.
///
/// # Errors
/// What is wrong with it; inputs for a scenario, which has its own.
pub fn load(arg: &Path, inputs: &inputs::Args, lang: Lang) -> Result<Loaded, Failure> {
    let wrong = |d: Diagnostic| Failure::Diagnostic(d.render(lang));
    if checkpoint::is_checkpoint(arg) {
        let (loaded, notes) = checkpoint::load(arg, &inputs.given()).map_err(wrong)?;
        for note in notes {
            let _ = writeln!(io::stderr(), "{}", note.render(lang));
        }
        return Ok(loaded);
    }
    let loaded = scenario::load(arg).map_err(wrong)?;
    if inputs.is_given() { Err(inputs::refused(arg).into()) } else { Ok(loaded) }
}

/// Opens the scenario that `arg` names.
///
/// # Errors
/// Diagnostics of all that is wrong with it.
pub fn open(
    arg: &Path,
    inputs: &inputs::Args,
    global: &Global,
    detail: Option<value::DetailName>,
    lang: Lang,
) -> Result<Session, Failure> {
    open_at(arg, inputs, global, detail, None, lang)
}

/// Opens the scenario that `arg` names before update `update` (counted from 1) of its training.
///
/// # Errors
/// Diagnostics of all that is wrong with it; training that stops before.
pub fn open_at(
    arg: &Path,
    inputs: &inputs::Args,
    global: &Global,
    detail: Option<value::DetailName>,
    update: Option<usize>,
    lang: Lang,
) -> Result<Session, Failure> {
    let detail = match detail {
        Some(value::DetailName::Full) => Detail::Full,
        _ => Detail::Grouped,
    };
    let options =
        session::Options { precision: global.precision(), rounding: None, detail, update: update.unwrap_or(1) as u64 };
    open_with(arg, inputs, options, lang)
}

/// Opens what `arg` names as `options` say.
///
/// # Errors
/// Diagnostics of all that is wrong with it.
pub fn open_with(arg: &Path, inputs: &inputs::Args, options: session::Options, lang: Lang) -> Result<Session, Failure> {
    if let Some(opened) = open_recorded::open(arg, options, lang) {
        return if inputs.is_given() { Err(inputs::refused(arg).into()) } else { opened };
    }
    let loaded = load(arg, inputs, lang)?;
    open_loaded(loaded, options, lang)
}

/// Opens a scenario that was read.
///
/// # Errors
/// Diagnostics of all that is wrong with it.
pub fn open_loaded(loaded: Loaded, options: session::Options, lang: Lang) -> Result<Session, Failure> {
    let Loaded { scenario, text, file, origin } = loaded;
    session::open(scenario, origin.as_deref(), options).map_err(|problems| {
        let left = problems.len().saturating_sub(MAX_PROBLEMS);
        let mut parts: Vec<String> = problems
            .into_iter()
            .take(MAX_PROBLEMS)
            .map(|p| Diagnostic::located(&file, &text, p).render(lang))
            .collect();
        if left > 0 {
            parts.push(Msg::new("cli.more_problems").arg("count", left).render(lang));
        }
        Failure::Diagnostic(parts.join("\n"))
    })
}

/// The steps of the run called `name`; the whole walkthrough where none is named.
///
/// # Errors
/// Where there is no such run.
pub fn steps(session: &Session, name: Option<&str>) -> Result<Arc<Steps>, Failure> {
    match name {
        None => Ok(Arc::clone(&session.steps)),
        Some(name) => Ok(session.steps_of(run(session, name)?)),
    }
}

/// The run called `name`.
///
/// # Errors
/// Where there is no such run.
pub fn run(session: &Session, name: &str) -> Result<usize, Failure> {
    session.run_named(name).ok_or_else(|| {
        let names: Vec<&str> = session.runs.iter().map(|r| r.name.as_str()).collect();
        Msg::new("cli.no_run").arg("name", escape(name)).arg("names", escape(&names.join(", "))).into()
    })
}

/// To the step, or sub-step, of these numbers.
///
/// # Errors
/// Where there is no such step.
pub fn go_to_step(app: &mut App, numbers: &[u32]) -> Result<(), Failure> {
    if app.nav.to_step(&StepTarget::Number(numbers.to_vec())) {
        app.settle();
        return Ok(());
    }
    let last = app.nav.steps.list().last().map_or(0, |s| s.number[0]);
    Err(Msg::new("cli.no_step").arg("step", Selection::One(numbers.to_vec())).arg("last", last).into())
}

/// Refuses a place for output from which the session was read: the scenario, or a file that it names.
///
/// # Errors
/// Where `output` is such a file.
pub fn no_input(session: &Session, output: &Path) -> Result<(), Failure> {
    let Some(origin) = &session.origin else { return Ok(()) };
    let folder = origin.parent().unwrap_or(Path::new(""));
    let files = session.scenario.weights.files.iter().map(|f| folder.join(&f.path));
    let corpora = [Some(&session.scenario.vocabulary), session.scenario.target_vocabulary.as_ref()];
    let corpora = corpora.into_iter().flatten().filter_map(|v| match v {
        Vocabulary::Characters(c) => c.corpus_file.as_ref().map(|f| folder.join(f)),
        _ => None,
    });
    let Ok(output) = output.canonicalize() else { return Ok(()) };
    let mut inputs = std::iter::once(origin.clone()).chain(files).chain(corpora);
    match inputs.find(|i| i.canonicalize().is_ok_and(|i| i == output)) {
        Some(input) => Err(Msg::new("cli.own_input").arg("path", escape(&input.to_string_lossy())).into()),
        None => Ok(()),
    }
}

/// Refuses a run that another program computed, where it has to be computed again.
///
/// # Errors
/// Where it is one.
pub fn computed(session: &Session, run: usize) -> Result<(), Failure> {
    if session.runs[run].kind == RunKind::Recorded {
        return Err(Msg::new("numerics.recorded").arg("name", escape(&session.scenario.name)).into());
    }
    Ok(())
}

/// A run that cannot run.
pub fn cannot_run(e: &RunError) -> Failure {
    Msg::new("cli.cannot_run").arg("why", e).into()
}
