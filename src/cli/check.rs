//! `check`: validates a scenario, replays every derivation, compares expected values, runs the lints.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::global::Global;
use super::open_recorded::Verified;
use super::{Failure, common, numerics, value};
use crate::debug::lints::{self, Decoding};
use crate::debug::{expected, tiles};
use crate::report::check::{Check, Replayed};
use crate::report::{self, decoding, gradients};
use crate::text::Lang;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// Only this run; all unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Compare every gradient with central differences too.
    #[arg(long)]
    pub gradients: bool,
    /// Largest relative error of a gradient.
    #[arg(long, value_name = "X", value_parser = value::positive, requires = "gradients")]
    pub tolerance: Option<f64>,
    /// Warnings of lints fail too.
    #[arg(long)]
    pub strict: bool,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// Checks a scenario.
///
/// # Errors
/// [`Failure::Check`] where something does not hold.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let verified = Verified::of(&args.scenario)?;
    let session = common::open(&args.scenario, &args.inputs, global, None, lang)?;
    let only = args.run.as_deref().map(|name| common::run(&session, name)).transpose()?;
    let wanted = |run: usize| only.is_none_or(|o| o == run);
    let (mut runs, mut tiled) = (Vec::new(), Vec::new());
    for i in (0..session.runs.len()).filter(|i| wanted(*i)) {
        let trace = session.trace(i).map_err(common::cannot_run)?;
        runs.push(Replayed::of(&session.runs[i].name, trace));
        tiled.push((i, tiles::report(trace, session.precision)));
    }
    let expected = expected::compare(&session).map_err(Failure::User)?;
    let decoding = Decoding::of(&session, wanted).map_err(|e| Failure::User(e.message()))?;
    // A rounded run is wrong where the lints look: rows of weights do not sum to 1, variances are not those of their rows.
    let lints = match session.rounding {
        None => lints::check_with(&session, wanted, &decoding).map_err(|e| common::cannot_run(&e))?,
        Some(_) => Vec::new(),
    };
    let decoding = decoding::Report::of(&session, decoding, wanted);
    let gradients = args.gradients.then(|| gradients::compare(&session, only, args.tolerance)).transpose();
    let gradients = gradients.map_err(Failure::User)?;
    let mut lenses = Vec::new();
    if let Some(rounding) = global.rounding() {
        for i in (0..session.runs.len()).filter(|i| wanted(*i)) {
            lenses.push(numerics::lens(&session, i, rounding, true)?);
        }
    }
    let check = Check { runs, tiled, expected, decoding, lints, gradients };
    let good = verified.as_ref().is_none_or(Verified::good)
        && lenses.iter().all(|l| l.nodes.iter().all(|n| n.not_finite == 0))
        && check.good(args.strict);
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        let mut json = check.to_json(&session, good, lang);
        if global.rounding().is_some() {
            json["numerics"] = lenses.iter().map(|l| numerics::to_json(&session, l)).collect();
        }
        if let Some(v) = &verified {
            json["checksums"] = v.to_json(lang);
        }
        report::write_json(&mut out, &json)?;
    } else {
        if let Some(v) = &verified {
            v.write_text(&mut out, lang)?;
        }
        report::write(&mut out, &check.more(&session), lang)?;
        for lens in &lenses {
            numerics::text(&mut out, &session, lens, lang)?;
        }
        report::write(&mut out, &check.lines(&session, good, lang), lang)?;
    }
    out.flush()?;
    if good { Ok(()) } else { Err(Failure::Check) }
}
