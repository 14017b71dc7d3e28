//! `man`: a manual page, of the program or of one command.

use std::io::{self, Write};

use super::Failure;
use super::help::find;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A command; the program itself unless given.
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// Prints the page, in roff; `root` is the command of the program.
///
/// # Errors
/// An unknown command; those of standard output.
pub fn run(args: &Args, root: clap::Command) -> Result<(), Failure> {
    let page = find(root, args.command.as_deref())?;
    let mut out = io::stdout().lock();
    clap_mangen::Man::new(page).render(&mut out)?;
    out.flush()?;
    Ok(())
}
