//! `compare`: the first step that differs from a reference.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;

use super::global::Global;
use super::{Failure, common, numerics, value};
use crate::checkpoint::{Given, is_checkpoint};
use crate::debug::compare::alias::Table;
use crate::debug::compare::{
    Failed, Mode, Options, Policy, Reference, Tolerance, Unopened, compare, is_file_of_tensors,
};
use crate::report;
use crate::report::{compare as worded, write};
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
    pub b: Option<PathBuf>,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
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
    // A program says more than a recording: it leads, on whichever side it is.
    // With a model, A is the recording that is laid over it.
    let b = match (&args.b, &args.inputs.model) {
        (Some(_), Some(_)) => return Err(Msg::new("bind.not_here").into()),
        (Some(b), None) => b,
        (None, Some(_)) => &args.a,
        (None, None) => return rounded(args, global, lang),
    };
    let recorded = is_file_of_tensors(&args.a) && !is_file_of_tensors(b);
    let (a, b) = if recorded { (b, &args.a) } else { (&args.a, b) };
    // A checkpoint reads what the reference read, unless something else is asked for.
    let mut inputs = args.inputs.clone();
    if !is_checkpoint(a) && is_checkpoint(b) {
        inputs.family = None;
    }
    if inputs.model.is_none() && inputs.given().is_empty() && is_file_of_tensors(b) && is_checkpoint(a) {
        inputs.inputs = Some(b.clone());
    }
    let session = common::open(a, &inputs, global, None, lang)?;
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
        names: args.map.as_deref().map(Table::open).transpose()?,
        rounding: global.rounding(),
    };
    if options.rounding.is_some() {
        common::computed(&session, run)?;
    }
    let asked = args.run.is_some();
    let name = &session.runs[run].name;
    let family = args.inputs.family.clone();
    let given = Given { family, ..Reference::inputs(&session, run) };
    let reference = Reference::open(b, name, asked, global.precision(), &given);
    let reference = reference.map_err(|e| unopened(e, lang))?;
    let report = match compare(&session, run, &reference, &options) {
        Ok(report) => report,
        Err(e) => return Err(failed(&e)),
    };
    let head = worded::Head {
        scenario: &session.scenario.name,
        run: &session.runs[run].name,
        policy: options.tolerance.policy,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        let json = worded::to_json(&head, &report);
        report::write_json(&mut out, &json)?;
    } else {
        write(&mut out, &worded::lines(&head, &report, global.number(), lang), lang)?;
    }
    out.flush()?;
    if report.agrees() { Ok(()) } else { Err(Failure::Check) }
}

/// A run next to itself with every number rounded.
fn rounded(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let Some(rounding) = global.rounding() else {
        return Err(Msg::new("compare.no_second").arg("a", escape(&args.a.display().to_string())).into());
    };
    let session = common::open(&args.a, &args.inputs, global, None, lang)?;
    let run = args.run.as_deref().map_or(Ok(0), |name| common::run(&session, name))?;
    let lens = numerics::lens(&session, run, rounding, true)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        report::write_json(&mut out, &numerics::to_json(&session, &lens))?;
    } else {
        numerics::text(&mut out, &session, &lens, lang)?;
    }
    out.flush()?;
    if lens.first().is_none() { Ok(()) } else { Err(Failure::Check) }
}

/// Why nothing could be compared.
pub(super) fn failed(why: &Failed) -> Failure {
    match why {
        Failed::Nothing(msg) => msg.clone().into(),
        Failed::Run(e) => common::cannot_run(e),
    }
}

pub(super) fn unopened(why: Unopened, lang: Lang) -> Failure {
    match why {
        Unopened::Said(msg) => msg.into(),
        Unopened::Wrong(all) => {
            let left = all.len().saturating_sub(common::MAX_PROBLEMS);
            let mut parts: Vec<String> = (all.iter().take(common::MAX_PROBLEMS)).map(|d| d.render(lang)).collect();
            if left > 0 {
                parts.push(Msg::new("cli.more_problems").arg("count", left).render(lang));
            }
            Failure::Diagnostic(parts.join("\n"))
        }
    }
}
