//! `compare`: the first step that differs from a reference.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::args::Global;
use super::compare_report::{self, Head};
use super::{Failure, common, value};
use crate::debug::compare::alias::Table;
use crate::debug::compare::{Failed, Mode, Options, Policy, Reference, Tolerance, compare};
use crate::session::Session;
use crate::text::{Lang, Msg, escape};

/// What a step is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// The reference's operands: the first difference is the cause.
    #[default]
    Isolated,
    /// Our own operands.
    Cumulative,
}

/// Whose measure of closeness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// RMS and largest difference, relative to the tensor.
    #[default]
    Ours,
    /// As `torch.testing.assert_close`.
    Torch,
    /// As `numpy.testing.assert_allclose`.
    Numpy,
}

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A scenario.
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// A scenario, or a file of reference activations (safetensors, npz).
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// What a step is computed from.
    #[arg(long, value_name = "MODE", default_value = "isolated")]
    pub mode: ModeName,
    /// Largest relative difference; as the policy says unless given.
    #[arg(long, value_name = "R", value_parser = value::not_negative)]
    pub rtol: Option<f64>,
    /// Largest absolute difference; as the policy says unless given.
    #[arg(long, value_name = "A", value_parser = value::not_negative)]
    pub atol: Option<f64>,
    /// Whose measure of closeness.
    #[arg(long, value_name = "POLICY", default_value = "ours")]
    pub policy: PolicyName,
    /// A file that maps the reference's names to paths.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// Compares.
///
/// # Errors
/// [`Failure::Check`] where something differs.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let session = common::open(&args.a, global, None, lang)?;
    let run = match &args.run {
        Some(name) => common::run(&session, name)?,
        None => 0,
    };
    let options = Options {
        mode: match args.mode {
            ModeName::Isolated => Mode::Isolated,
            ModeName::Cumulative => Mode::Cumulative,
        },
        tolerance: Tolerance {
            policy: match args.policy {
                PolicyName::Ours => Policy::Ours,
                PolicyName::Torch => Policy::Torch,
                PolicyName::Numpy => Policy::Numpy,
            },
            rtol: args.rtol,
            atol: args.atol,
        },
        names: args.map.as_deref().map(names).transpose()?,
    };
    let reference = if is_file_of_tensors(&args.b) {
        let bytes = read(&args.b, "compare.read")?;
        Reference::from_file(&args.b.to_string_lossy(), &bytes)?
    } else {
        of_scenario(&session, run, args, global, lang)?
    };
    let report = match compare(&session, run, &reference, &options) {
        Ok(report) => report,
        Err(Failed::Nothing(msg)) => return Err(msg.into()),
        Err(Failed::Run(e)) => return Err(common::cannot_run(&e)),
    };
    let head = Head {
        scenario: &session.scenario.name,
        run: &session.runs[run].name,
        policy: options.tolerance.policy,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        let json = compare_report::to_json(&head, &report);
        serde_json::to_writer_pretty(&mut out, &json).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        compare_report::text(&mut out, &head, &report, global.number(), lang)?;
    }
    out.flush()?;
    if report.agrees() {
        Ok(())
    } else {
        Err(Failure::Check)
    }
}

fn is_file_of_tensors(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| ["safetensors", "npz"].contains(&e.to_lowercase().as_str()))
}

fn read(path: &Path, key: &'static str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| {
        let msg = Msg::new(key).arg("file", escape(&path.to_string_lossy()));
        msg.arg("why", escape(&e.to_string())).into()
    })
}

fn names(path: &Path) -> Result<Table, Failure> {
    let name = path.to_string_lossy();
    let text = String::from_utf8(read(path, "compare.map.read")?).map_err(|e| {
        Msg::new("compare.map.read")
            .arg("file", escape(&name))
            .arg("why", e.utf8_error())
    })?;
    Ok(Table::read(&name, &text)?)
}

/// The run of another scenario: the one named as ours, else its first where none was asked for.
fn of_scenario(
    session: &Session,
    run: usize,
    args: &Args,
    global: &Global,
    lang: Lang,
) -> Result<Reference, Failure> {
    let other = common::open(&args.b, global, None, lang)?;
    let name = &session.runs[run].name;
    let theirs = match (other.run_named(name), &args.run) {
        (Some(i), _) => i,
        (None, None) => 0,
        (None, Some(_)) => {
            let names: Vec<&str> = other.runs.iter().map(|r| r.name.as_str()).collect();
            return Err(Msg::new("compare.no_run")
                .arg("scenario", escape(&other.scenario.name))
                .arg("name", escape(name))
                .arg("names", escape(&names.join(", ")))
                .into());
        }
    };
    let trace = other.trace(theirs).map_err(common::cannot_run)?;
    let called = format!("{} / {}", other.scenario.name, other.runs[theirs].name);
    Ok(Reference::from_trace(&called, trace))
}
