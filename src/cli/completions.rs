//! `completions`: a completion script for a shell.

use std::io::{self, Write};

use super::Failure;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Prints the script for `root`, the command of the program.
///
/// # Errors
/// Those of standard output.
pub fn run(args: &Args, mut root: clap::Command) -> Result<(), Failure> {
    // The generator panics where it cannot write: it writes to memory.
    let mut script = Vec::new();
    let name = root.get_name().to_owned();
    clap_complete::generate(args.shell, &mut root, name, &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(())
}
