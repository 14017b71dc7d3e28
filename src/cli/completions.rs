//! `completions`: a completion script for a shell.

use std::io::{self, Write};

use super::{Failure, args};
use crate::text::Lang;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Prints the script.
///
/// # Errors
/// Those of standard output.
pub fn run(args: &Args, lang: Lang) -> Result<(), Failure> {
    // The generator panics where it cannot write: it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(lang), args::NAME, &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(())
}
