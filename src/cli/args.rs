//! The whole command line.

use std::ffi::OsStr;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::global::Global;
use super::{check, compare, completions, export, generate, help, localise, man, new, open, play, steps, train};
use crate::text::{Lang, Msg, escape, nearest};

/// Name of the program.
pub const NAME: &str = "tui-transformer";

/// The whole command line.
///
/// Help texts are in the catalogue under `cli.<command>.<argument>` (see `localise`), not here.
#[derive(Debug, Parser)]
#[command(name = NAME, version, disable_help_flag = true, disable_version_flag = true)]
pub struct Cli {
    /// Of the debugger itself.
    #[command(flatten)]
    pub open: open::Args,
    /// Shared by all commands.
    #[command(flatten)]
    pub global: Global,
    /// What to do instead of opening the debugger.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The subcommands that work.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lists the numbered steps.
    Steps(steps::Args),
    /// Writes steps to files.
    Export(export::Args),
    /// Updates the weights.
    Train(Box<train::Args>),
    /// Writes the values of a run.
    Record(super::record::Args),
    /// Runs the debugger's commands without its screen.
    Play(play::Args),
    /// Checks a scenario.
    Check(check::Args),
    /// Finds the first step that differs from a reference.
    Compare(compare::Args),
    /// Prints what the screen shows.
    #[cfg(feature = "tui")]
    Snapshot(super::snapshot::Args),
    /// Prints a configuration file with every setting.
    #[cfg(feature = "tui")]
    ConfigTemplate(super::config_template::Args),
    /// Generates tokens.
    Generate(generate::Args),
    /// Counts parameters, arithmetic and memory.
    Counts(super::counts::Args),
    /// Lists the tensors of a file.
    Tensors(super::tensors::Args),
    /// Text to ids and back.
    Tokenize(super::tokenize::Args),
    /// Writes a scenario to start from.
    New(new::Args),
    /// Writes tables with blanks, and their key.
    Worksheet(super::worksheet::Args),
    /// Prints completions for a shell.
    Completions(completions::Args),
    /// Prints a manual page.
    Man(man::Args),
    /// Prints help.
    Help(help::Args),
}

/// The command with its texts in `lang`.
pub fn command(lang: Lang) -> clap::Command {
    localise::localise(Cli::command(), lang)
}

/// Parses the arguments, program name first.
///
/// # Errors
/// A usage error, or help or the version asked for.
pub fn parse(raw: &[impl AsRef<OsStr>], lang: Lang) -> Result<Cli, clap::Error> {
    let words = raw.iter().map(|w| w.as_ref().to_owned());
    let mut command = command(lang);
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))
}

/// What is said of a first word that is neither a scenario nor a subcommand and nearly a subcommand's name.
pub(super) fn misspelt(raw: &[impl AsRef<OsStr>], lang: Lang) -> Option<Msg> {
    let command = command(lang).ignore_errors(true);
    let words = raw.iter().map(|w| w.as_ref().to_owned());
    let matches = command.clone().try_get_matches_from(words).ok()?;
    let word = matches.get_one::<std::path::PathBuf>("scenario")?.to_str()?;
    if crate::scenario::EMBEDDED.iter().chain(crate::scenario::LESSONS).any(|(name, _)| *name == word)
        || std::path::Path::new(word).exists()
    {
        return None;
    }
    let near = nearest(word, command.get_subcommands().map(clap::Command::get_name))?;
    Some(Msg::new("cli.usage.command_near").arg("name", escape(word)).arg("near", near))
}
