//! `help`: the help of the program, or of one command.

use std::io::{self, Write};

use super::{Failure, args};
use crate::text::Lang;

/// Arguments.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// A command; the program itself unless given.
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// Prints the help.
///
/// # Errors
/// An unknown command; those of standard output.
pub fn run(args: &Args, lang: Lang) -> Result<(), Failure> {
    let help = args::find(args.command.as_deref(), lang)?.render_help();
    let mut out = io::stdout().lock();
    write!(out, "{help}")?;
    out.flush()?;
    Ok(())
}
