//! The command line: arguments, one file a subcommand, exit codes.
//!
//! Output for programs goes to standard output; messages go to standard error. Exit codes: 0 good, 1 a check
//! failed, 2 usage or bad input.

pub mod args;
pub mod global;
mod localise;
mod usage;
pub mod value;
pub mod worksheet;

mod bind;
pub mod check;
mod common;
pub mod compare;
pub mod completions;
#[cfg(feature = "tui")]
pub mod config_template;
pub mod counts;
pub mod export;
pub mod generate;
pub mod help;
pub mod inputs;
pub mod man;
pub mod new;
mod numerics;
pub mod open;
mod open_recorded;
mod opener;
pub mod play;
mod progress;
pub mod record;
#[cfg(feature = "tui")]
pub mod snapshot;
pub mod steps;
pub mod tensors;
pub mod tokenize;
pub mod train;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::text::{Lang, Msg, tr};
use args::{Cli, Command};

/// Exit code where a check failed.
pub const CHECK_FAILED: u8 = 1;
/// Exit code where a person stopped it: 128 + SIGINT, as a shell has it.
const INTERRUPTED: u8 = 130;
/// Exit code for usage errors and bad input.
pub const BAD_INPUT: u8 = 2;

/// Why a command ended early. None of these is a bug: bugs panic and are reported as such.
#[derive(Debug)]
pub enum Failure {
    /// Something the user can mend. Printed after `error:`; exit code 2.
    User(Msg),
    /// A diagnostic rendered already (with file, line and column). Printed as it is; exit code 2.
    Diagnostic(String),
    /// A check failed and was reported. Nothing is printed; exit code 1.
    Check,
    /// A person stopped it, which was told. Nothing is printed; exit code 130.
    Interrupted,
    /// Who read standard output went away. Nothing is printed; exit code 0.
    BrokenPipe,
}

impl From<Msg> for Failure {
    fn from(msg: Msg) -> Self {
        Self::User(msg)
    }
}

impl From<crate::export::file::Error> for Failure {
    fn from(error: crate::export::file::Error) -> Self {
        if error.is_broken_pipe() {
            return Self::BrokenPipe;
        }
        let mut msg = error.msg;
        // On the command line there is a word for it.
        if msg.key == "export.file.exists" {
            msg.key = "cli.file_exists";
        }
        Self::User(msg)
    }
}

/// Errors of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::User(Msg::new("export.file.stdout").arg("error", error))
        }
    }
}

/// Parses `raw` (program name first), runs the command, and gives the exit code.
pub fn main(raw: impl IntoIterator<Item = OsString>) -> ExitCode {
    let raw: Vec<OsString> = raw.into_iter().collect();
    let lang = global::language(&raw);
    crate::export::file::signals::want(true);
    let parsed = args::parse(&raw, lang);
    // Not a scenario that is missing, but a command that was mistyped.
    let no_command = parsed.as_ref().map_or_else(clap::Error::use_stderr, |cli| cli.command.is_none());
    if let Some(msg) = no_command.then(|| args::misspelt(&raw, lang)).flatten() {
        return finish(Err(msg.into()), lang);
    }
    match parsed {
        Ok(cli) => finish(run(&cli, lang), lang),
        Err(error) => usage::report(&error, lang),
    }
}

fn run(cli: &Cli, lang: Lang) -> Result<(), Failure> {
    match &cli.command {
        Some(_) if cli.open.is_given() => Err(Msg::new("cli.open_and_command").into()),
        Some(Command::Steps(args)) => steps::run(args, &cli.global, lang),
        Some(Command::Export(args)) => export::run(args, &cli.global, lang),
        Some(Command::Train(args)) => train::run(args, &cli.global, lang),
        Some(Command::Record(args)) => record::run(args, &cli.global, lang),
        Some(Command::Play(args)) => play::run(args, &cli.global, lang),
        Some(Command::Check(args)) => check::run(args, &cli.global, lang),
        Some(Command::Compare(args)) => compare::run(args, &cli.global, lang),
        #[cfg(feature = "tui")]
        Some(Command::Snapshot(args)) => snapshot::run(args, &cli.global, lang),
        #[cfg(feature = "tui")]
        Some(Command::ConfigTemplate(_)) => config_template::run(lang),
        Some(Command::Generate(args)) => generate::run(args, &cli.global, lang),
        Some(Command::Tensors(args)) => tensors::run(args, &cli.global, lang),
        Some(Command::Tokenize(args)) => tokenize::run(args, lang),
        Some(Command::Counts(args)) => counts::run(args, &cli.global, lang),
        Some(Command::New(args)) => new::run(args, lang),
        Some(Command::Worksheet(args)) => worksheet::run(args, &cli.global, lang),
        Some(Command::Completions(args)) => completions::run(args, args::command(lang)),
        Some(Command::Man(args)) => man::run(args, args::command(lang)),
        Some(Command::Help(args)) => help::run(args, args::command(lang), lang),
        None => open::run(&cli.open, &cli.global, lang),
    }
}

/// Prints what went wrong, if anything, and chooses the exit code.
fn finish(result: Result<(), Failure>, lang: Lang) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Check) => ExitCode::from(CHECK_FAILED),
        Err(Failure::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(Failure::User(msg)) => {
            complain(&format!("{} {}", tr(lang, "cli.error_label"), msg.render(lang)));
            ExitCode::from(BAD_INPUT)
        }
        Err(Failure::Diagnostic(text)) => {
            complain(text.trim_end());
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// A line on standard error. Where that is closed, nobody listens.
fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
