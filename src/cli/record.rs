//! `record`: the values of a run as a file, or a run kept in a folder.

use std::io::{self, Write};
use std::path::PathBuf;

use globset::{GlobBuilder, GlobMatcher};

use super::global::Global;
use super::{Failure, common};
use crate::export::file::Target;
use crate::export::recording::{Kind, write};
use crate::program::NodeId;
use crate::session::{Options, RecordOptions, Session};
use crate::text::{Lang, Msg, escape};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Only nodes whose paths fit; may be given several times.
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,
    /// Keep parameters of files in the folder too.
    #[arg(long)]
    pub with_weights: bool,
    /// Where to.
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

/// Records.
///
/// # Errors
/// A source that cannot be opened or run, a pattern that fits nothing, a file that cannot be written.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let Some(kind) = Kind::of_path(&args.output) else {
        return folder(args, global, lang);
    };
    let only = patterns(&args.only)?;
    let session = open(args, global, lang)?;
    let run = match &args.run {
        Some(name) => common::run(&session, name)?,
        None => 0,
    };
    let trace = session.trace(run).map_err(common::cannot_run)?;
    let program = trace.program();
    let fits = |path: &str| only.is_empty() || only.iter().any(|glob| glob.is_match(path));
    let nodes: Vec<NodeId> =
        program.nodes().filter(|(id, node)| trace.reached(*id) && fits(&node.path)).map(|(id, _)| id).collect();
    if nodes.is_empty() {
        return Err(Msg::new("record.nothing").arg("patterns", escape(&args.only.join(", "))).into());
    }
    Target::File(args.output.clone()).write(args.force, |out| write(kind, trace, &nodes, out))?;
    Ok(())
}

/// Opens the source, its runs rounded as it is wanted.
fn open(args: &Args, global: &Global, lang: Lang) -> Result<Session, Failure> {
    let options =
        Options { precision: global.precision(), rounding: global.rounding(), update: 1, ..Options::default() };
    let session = common::open_with(&args.scenario, &args.inputs, options, lang)?;
    if global.rounding().is_some() {
        common::computed(&session, 0)?;
    }
    Ok(session)
}

/// Endings that are meant as a file, and would be odd for a folder.
const FILES: [&str; 8] = ["pt", "bin", "gguf", "json", "npy", "csv", "zip", "h5"];

/// Records into a folder.
fn folder(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let ending = args.output.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    if FILES.contains(&ending.as_str()) {
        return Err(Msg::new("record.ending").arg("file", escape(&args.output.to_string_lossy())).into());
    }
    let session = open(args, global, lang)?;
    let run = args.run.as_deref().map(|name| common::run(&session, name)).transpose()?;
    let (only, with_weights, overwrite) = (args.only.clone(), args.with_weights, args.force);
    let options = RecordOptions { run, only, with_weights, overwrite };
    let written = session.record(&args.output, &options).map_err(|mut msg| {
        if msg.key == "export.file.exists" {
            msg.key = "cli.file_exists";
        }
        msg
    })?;
    let msg = Msg::new("record.done")
        .arg("folder", escape(&args.output.to_string_lossy()))
        .arg("nodes", written.nodes)
        .arg("parts", written.parts)
        .arg("bytes", written.bytes)
        .arg("referred", written.referred);
    let _ = writeln!(io::stderr().lock(), "{}", msg.render(lang));
    Ok(())
}

fn patterns(all: &[String]) -> Result<Vec<GlobMatcher>, Failure> {
    let one = |pattern: &String| {
        let glob = GlobBuilder::new(pattern).literal_separator(false).build().map_err(|e| {
            Msg::new("weights.pattern").arg("pattern", escape(pattern)).arg("why", escape(&e.to_string()))
        })?;
        Ok(glob.compile_matcher())
    };
    all.iter().map(one).collect()
}
