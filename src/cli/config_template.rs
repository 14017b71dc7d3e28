//! `config-template`: a configuration file with every setting and its default.

use std::io::{self, Write};

use super::Failure;
use crate::app::config::Config;
use crate::text::Lang;

/// Arguments: none.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Args {}

/// Prints the template.
///
/// # Errors
/// Standard output.
pub fn run(lang: Lang) -> Result<(), Failure> {
    let template = Config::template(Config::path().as_deref(), lang);
    io::stdout().lock().write_all(template.as_bytes())?;
    Ok(())
}
