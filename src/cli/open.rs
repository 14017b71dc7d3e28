//! Opening the debugger.

use std::path::PathBuf;

use super::args::Global;
use super::{Failure, steps, value};
use crate::export::select::Selection;
use crate::text::Lang;

/// The scenario that is opened where none is named.
pub const DEFAULT_SCENARIO: &str = "water_class";

/// Arguments.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    #[arg(value_name = "SCENARIO")]
    pub(super) scenario: Option<PathBuf>,
    /// The run to show first; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// The step to show first.
    #[arg(long, value_name = "N", value_parser = value::step)]
    pub step: Option<Selection>,
    /// Colour theme.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Glyph set: `unicode`, `cjk-safe` or `ascii`.
    #[arg(long, value_name = "SET")]
    pub glyphs: Option<String>,
    /// Commands to run first, one a line.
    #[arg(long, value_name = "FILE")]
    pub play: Option<PathBuf>,
}

impl Args {
    /// The scenario: a path, `-`, or an embedded name.
    pub fn scenario(&self) -> PathBuf {
        self.scenario
            .clone()
            .unwrap_or_else(|| PathBuf::from(DEFAULT_SCENARIO))
    }

    /// Whether any was given: they belong to the debugger, not to a subcommand.
    pub(super) fn is_given(&self) -> bool {
        self.scenario.is_some()
            || self.run.is_some()
            || self.step.is_some()
            || self.theme.is_some()
            || self.glyphs.is_some()
            || self.play.is_some()
    }
}

/// Opens the debugger.
///
/// # Errors
/// A scenario that cannot be opened.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let list = steps::Args {
        scenario: args.scenario(),
        run: args.run.clone(),
        detail: None,
        expand: false,
        json: false,
    };
    steps::run(&list, global, lang)
}
