//! `export`: steps as files.

use std::path::PathBuf;

use super::value;
use crate::export::{Format, file::Target, select::Selection};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Which steps.
    #[arg(long, value_name = "N|A..B|all", value_parser = value::selection)]
    pub step: Selection,
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    #[arg(long, value_name = "FORMAT", value_parser = value::format)]
    pub(super) format: Option<Format>,
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
    /// Round only for display, or as one goes.
    #[arg(long, value_name = "HOW", default_value = "exact")]
    pub round: value::RoundName,
    /// How many derivations of a step.
    #[arg(long, value_name = "all|none|N", default_value = "20000", value_parser = value::derivations)]
    pub derivations: value::Derivations,
    /// Detail of a walkthrough made from the program; the scenario's own unless given.
    #[arg(long, value_name = "LEVEL")]
    pub detail: Option<value::DetailName>,
}

impl Args {
    /// The format: as asked for, else as the file's ending says, else text.
    pub fn format(&self) -> Format {
        self.format
            .or_else(|| self.output.as_deref().and_then(Format::of_path))
            .unwrap_or_default()
    }

    /// Where to.
    pub fn target(&self) -> Target {
        Target::new(self.output.as_deref())
    }
}
