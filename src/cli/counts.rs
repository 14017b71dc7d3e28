//! `counts`: parameters by module, arithmetic and memory of a run, cost against length, cost of padding. No weights
//! are read.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::global::Global;
use super::{Failure, common};
use crate::app::views::counts::{self as shown, TextTable};
use crate::debug::counts::{Counts, Wanted, Work, total};
use crate::session::Session;
use crate::text::{Lang, Msg};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// The run whose work is counted.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Lengths of the curves.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub lengths: Vec<u32>,
    /// Window of local attention.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub window: Option<u32>,
    /// The length that sentences are padded to.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub pad: u32,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// Counts.
///
/// # Errors
/// A scenario that cannot be opened, a run that is not there, lengths at which the model cannot be built.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let session = common::open_shapes(&args.scenario, &args.inputs, global, lang)?;
    let run = args.run.as_deref().map_or(Ok(0), |name| common::run(&session, name))?;
    let mut wanted = Wanted { window: args.window.map(|w| w as usize), pad: args.pad as usize, ..Wanted::default() };
    if !args.lengths.is_empty() {
        wanted.lengths = args.lengths.iter().map(|n| *n as usize).collect();
    }
    let counts =
        Counts::of(&session, run, &wanted).map_err(|e| Failure::from(Msg::new("scenario.build").arg("why", e)))?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", to_json(&counts, &session))?;
        return Ok(());
    }
    for (i, table) in shown::tables(&counts, &session, lang).iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        print(table, &mut out)?;
    }
    Ok(())
}

fn print(table: &TextTable, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", table.title)?;
    for line in table.lines() {
        writeln!(out, "  {line}")?;
    }
    for line in &table.notes {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn work_json(w: &Work) -> Json {
    json!({ "module": w.module, "times": w.times, "flops": w.flops, "bytes_moved": w.moved, "bytes_kept": w.kept })
}

fn to_json(c: &Counts, s: &Session) -> Json {
    let parameters = c.parameters.iter().map(|p| {
        let tensors = p.tensors.iter().map(|(path, shape)| json!({ "path": path, "shape": shape }));
        json!({
            "module": p.module, "last": p.last, "times": p.times, "each": p.each, "all": p.all(),
            "tensors": tensors.collect::<Vec<_>>(),
        })
    });
    let all = total(&c.work);
    let curves = c.curves.iter().map(|curve| {
        let points = c.lengths.iter().zip(&curve.points);
        let points = points.map(|(n, w)| json!({ "length": n, "flops": w.flops, "bytes_kept": w.kept }));
        json!({ "attention": curve.kind.name(), "points": points.collect::<Vec<_>>() })
    });
    json!({
        "parameters": { "all": c.all(), "bytes": c.all() * shown::bytes_each(s.precision), "modules": parameters.collect::<Vec<_>>() },
        "run": {
            "name": s.runs[c.run].name, "flops": all.flops, "bytes_moved": all.moved, "bytes_kept": all.kept,
            "backward_flops": c.training.map(|t| t.0), "update_flops": c.training.map(|t| t.1),
            "modules": c.work.iter().map(work_json).collect::<Vec<_>>(),
        },
        "window": c.window,
        "curves": curves.collect::<Vec<_>>(),
        "padding": c.padding.as_ref().map(|p| json!({
            "lengths": p.real, "to": p.to, "flops": p.flops_real, "flops_padded": p.flops_padded,
        })),
    })
}
