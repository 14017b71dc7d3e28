//! `help`: the help of the program, of one command, or of the format of scenarios.

use std::io::{self, Write};

use super::Failure;
use crate::report;
use crate::scenario::reference;
use crate::text::{Lang, Msg, escape};

/// The topic that is no command.
const SCENARIO: &str = "scenario";

/// Arguments.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// A command, or `scenario`; the program itself unless given.
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
    /// Of the format of scenarios: a place, a type, the name of a field.
    #[arg(value_name = "FIELD")]
    pub field: Option<String>,
    /// The format as JSON Schema.
    #[arg(long, conflicts_with_all = ["field", "markdown"])]
    pub json_schema: bool,
    /// The format as Markdown.
    #[arg(long, conflicts_with = "field")]
    pub markdown: bool,
}

/// Prints the help; `root` is the command of the program.
///
/// # Errors
/// An unknown command or field; those of standard output.
pub fn run(args: &Args, root: clap::Command, lang: Lang) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if args.command.as_deref() == Some(SCENARIO) {
        if args.json_schema {
            report::write_json(&mut out, &reference::json_schema())?;
        } else if args.markdown {
            write!(out, "{}", reference::markdown(lang))?;
        } else {
            write!(out, "{}", reference::text(args.field.as_deref(), lang)?)?;
        }
    } else {
        if args.field.is_some() || args.json_schema || args.markdown {
            return Err(Msg::new("reference.only_scenario").into());
        }
        let help = find(root, args.command.as_deref())?.render_help();
        write!(out, "{help}")?;
    }
    out.flush()?;
    Ok(())
}

/// The command of the program, or of its subcommand called `name`.
///
/// # Errors
/// Where there is no such subcommand.
pub(super) fn find(root: clap::Command, name: Option<&str>) -> Result<clap::Command, Msg> {
    match name {
        None => Ok(root),
        Some(name) => {
            root.find_subcommand(name).cloned().ok_or_else(|| Msg::new("cli.unknown_command").arg("text", escape(name)))
        }
    }
}
