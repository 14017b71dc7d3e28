//! `man`: a manual page, of the program or of one command.

use std::io::{self, Write};

use super::{Failure, args};
use crate::text::Lang;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A command; the program itself unless given.
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// Prints the page, in roff.
///
/// # Errors
/// An unknown command; those of standard output.
pub fn run(args: &Args, lang: Lang) -> Result<(), Failure> {
    let page = args::find(args.command.as_deref(), lang)?;
    let mut out = io::stdout().lock();
    clap_mangen::Man::new(page).render(&mut out)?;
    out.flush()?;
    Ok(())
}
