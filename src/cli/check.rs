//! `check`: validates a scenario, replays every derivation, compares expected values, runs the lints.

use std::path::PathBuf;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Only this run; all unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}
