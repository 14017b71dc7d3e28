//! `steps`: the numbered steps of a run.

use std::path::PathBuf;

use super::value;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Detail of a walkthrough made from the program; the scenario's own unless given.
    #[arg(long, value_name = "LEVEL")]
    pub detail: Option<value::DetailName>,
    /// List sub-steps too.
    #[arg(long)]
    pub expand: bool,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}
