//! `record`: the values of a run as a file.

use std::path::PathBuf;

use globset::{GlobBuilder, GlobMatcher};

use super::global::Global;
use super::{Failure, common};
use crate::export::file::Target;
use crate::export::recording::{Kind, write};
use crate::program::NodeId;
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
    /// Where to.
    #[arg(short, long, value_name = "FILE")]
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
        return Err(Msg::new("record.ending").arg("file", escape(&args.output.to_string_lossy())).into());
    };
    let only = patterns(&args.only)?;
    let session = common::open(&args.scenario, &args.inputs, global, None, lang)?;
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

fn patterns(all: &[String]) -> Result<Vec<GlobMatcher>, Failure> {
    let one = |pattern: &String| {
        let glob = GlobBuilder::new(pattern).literal_separator(false).build().map_err(|e| {
            Msg::new("weights.pattern").arg("pattern", escape(pattern)).arg("why", escape(&e.to_string()))
        })?;
        Ok(glob.compile_matcher())
    };
    all.iter().map(one).collect()
}
