//! What several commands do first: open a scenario, find a run.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::global::Global;
use super::inputs;
use super::opener::Sources;
use super::{Failure, bind, open_recorded, value};
use crate::app::app::App;
use crate::app::args::StepTarget;
use crate::app::live::Live;
use crate::checkpoint;
use crate::export::select::Selection;
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::{self, Loaded};
use crate::session::{self, RunKind, Session, Steps};
use crate::source::Tokenizer;
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
    let mut notes = Vec::new();
    let loaded = load_noting(arg, inputs, lang, &mut notes)?;
    print_notes(&notes, lang);
    Ok(loaded)
}

/// What was assumed, on standard error.
fn print_notes(notes: &[Msg], lang: Lang) {
    for note in notes {
        let _ = writeln!(io::stderr(), "{}", note.render(lang));
    }
}

fn load_noting(arg: &Path, inputs: &inputs::Args, lang: Lang, notes: &mut Vec<Msg>) -> Result<Loaded, Failure> {
    if inputs.model.is_some() {
        return Err(Msg::new("bind.not_here").into());
    }
    if inputs.tokenizer.is_some() {
        return Err(Msg::new("input.no_tokenizer_here").arg("source", escape(&arg.to_string_lossy())).into());
    }
    let wrong = |d: Diagnostic| Failure::Diagnostic(d.render(lang));
    if checkpoint::is_checkpoint(arg) {
        let (loaded, assumed) = checkpoint::load(arg, &inputs.given()).map_err(wrong)?;
        notes.extend(assumed);
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
    let options = session::Options {
        precision: global.precision(),
        detail,
        update: update.unwrap_or(1) as u64,
        budget: global.budget,
        ..session::Options::default()
    };
    open_with(arg, inputs, options, lang)
}

/// Opens what `arg` names as `options` say. What is assumed goes to standard error.
///
/// # Errors
/// Diagnostics of all that is wrong with it.
pub fn open_with(arg: &Path, inputs: &inputs::Args, options: session::Options, lang: Lang) -> Result<Session, Failure> {
    let mut notes = Vec::new();
    let opened = open_noting(arg, inputs, options, lang, &mut notes);
    print_notes(&notes, lang);
    opened
}

/// Opens the scenario that `arg` names for its shapes alone: no weights are read or made.
///
/// # Errors
/// Diagnostics of all that is wrong with it.
pub fn open_shapes(arg: &Path, inputs: &inputs::Args, global: &Global, lang: Lang) -> Result<Session, Failure> {
    let options = session::Options { precision: global.precision(), shapes: true, ..session::Options::default() };
    open_with(arg, inputs, options, lang)
}

/// Opens what `arg` names; what was assumed on the way, or cannot be read of it, goes to `notes`.
///
/// # Errors
/// Diagnostics of all that is wrong with it.
pub fn open_noting(
    arg: &Path,
    inputs: &inputs::Args,
    options: session::Options,
    lang: Lang,
    notes: &mut Vec<Msg>,
) -> Result<Session, Failure> {
    if let Some(model) = &inputs.model {
        return bind::open(arg, model, inputs, options, lang);
    }
    if let Some(opened) = open_recorded::open(arg, options, lang, notes) {
        if !inputs.given().is_empty() || inputs.family.is_some() {
            return Err(inputs::refused(arg).into());
        }
        let mut session = opened?;
        if let Some(tokenizer) = &inputs.tokenizer {
            if session.runs[0].kind != RunKind::Recorded {
                let source = escape(&arg.to_string_lossy()).into_owned();
                return Err(Msg::new("input.no_tokenizer_here").arg("source", source).into());
            }
            session.name_tokens(Tokenizer::open(tokenizer)?);
        }
        return Ok(session);
    }
    let loaded = load_noting(arg, inputs, lang, notes)?;
    open_loaded(loaded, options, lang)
}

/// Opens a scenario that was read.
///
/// # Errors
/// Diagnostics of all that is wrong with it.
pub fn open_loaded(loaded: Loaded, options: session::Options, lang: Lang) -> Result<Session, Failure> {
    let Loaded { scenario, text, file, origin } = loaded;
    let opened = session::open(scenario, origin.as_deref(), options);
    let opened = opened.map(|s| s.read_from(&text));
    opened.map_err(|problems| {
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
    let Ok(output) = output.canonicalize() else { return Ok(()) };
    match session.files().into_iter().find(|i| i.canonicalize().is_ok_and(|i| i == output)) {
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

/// What opens sources while the debugger runs.
pub fn live(source: &Path, inputs: &inputs::Args, global: &Global, watch: bool, lang: Lang) -> Live {
    let options = session::Options { precision: global.precision(), ..session::Options::default() };
    Live { opener: Some(Sources::new(source, inputs, options, lang)), watch, ..Live::default() }
}
