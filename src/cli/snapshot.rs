//! `snapshot`: exactly what the screen shows, as a file.

use std::path::PathBuf;

use clap::ValueEnum;

use super::value;
use crate::export::{file::Target, select::Selection};

/// Format of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Characters only.
    #[default]
    Text,
    /// With colours, as a terminal draws it.
    Ansi,
    /// A picture.
    Svg,
}

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// The step; the first unless given.
    #[arg(long, value_name = "N", value_parser = value::step)]
    pub step: Option<Selection>,
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Size of the screen.
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "120x36", value_parser = value::size)]
    pub size: value::Size,
    /// The view; the step itself unless given.
    #[arg(long, value_name = "VIEW")]
    pub view: Option<String>,
    /// Colour theme.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Glyph set.
    #[arg(long, value_name = "SET")]
    pub glyphs: Option<String>,
    /// Format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: FormatName,
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

impl Args {
    /// Where to.
    pub fn target(&self) -> Target {
        Target::new(self.output.as_deref())
    }
}
