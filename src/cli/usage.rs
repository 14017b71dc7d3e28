//! Usage errors in the reader's language.

use std::error::Error as _;
use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::value::Localized;
use super::{BAD_INPUT, complain};
use crate::text::{Lang, Msg, escape_lines, tr};

/// Prints help, the version, or what is wrong with the arguments, and gives the exit code.
pub(super) fn report(error: &clap::Error, lang: Lang) -> ExitCode {
    if !error.use_stderr() {
        // Help or the version was asked for; where nobody reads it, nothing is wrong.
        let _ = write!(std::io::stdout().lock(), "{}", error.render());
        return ExitCode::SUCCESS;
    }
    complain(&text(error, lang));
    ExitCode::from(BAD_INPUT)
}

/// What is wrong, with the usage below it.
pub(super) fn text(error: &clap::Error, lang: Lang) -> String {
    let what = match message(error, lang) {
        Some(msg) => msg.render(lang),
        // A kind that our arguments do not give rise to: clap's own words.
        None => return escape_lines(error.render().to_string().trim_end()).into_owned(),
    };
    let mut lines = vec![format!("{} {what}", tr(lang, "cli.error_label"))];
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand] {
        if let Some(like) = list(error, kind) {
            let hint = Msg::new("cli.usage.similar").arg("like", like);
            lines.push(hint.render(lang));
        }
    }
    lines.push(tr(lang, "cli.usage.more").to_owned());
    escape_lines(&lines.join("\n")).into_owned()
}

fn message(error: &clap::Error, lang: Lang) -> Option<Msg> {
    let of = |kind| list(error, kind);
    let arg = || of(ContextKind::InvalidArg).unwrap_or_default();
    let value = || of(ContextKind::InvalidValue).unwrap_or_default();
    Some(match error.kind() {
        ErrorKind::ValueValidation => {
            let reported = error.source().and_then(|s| s.downcast_ref::<Localized>());
            match (reported, error.source()) {
                (Some(reported), _) => {
                    Msg::new("cli.usage.in_argument").arg("arg", arg()).arg("what", reported.0.render(lang))
                }
                (None, Some(source)) => {
                    Msg::new("cli.usage.bad_value_why").arg("arg", arg()).arg("value", value()).arg("why", source)
                }
                (None, None) => return None,
            }
        }
        ErrorKind::InvalidValue if value().is_empty() => Msg::new("cli.usage.no_value").arg("arg", arg()),
        ErrorKind::InvalidValue => Msg::new("cli.usage.bad_value")
            .arg("arg", arg())
            .arg("value", value())
            .arg("valid", of(ContextKind::ValidValue).unwrap_or_default()),
        ErrorKind::UnknownArgument => Msg::new("cli.usage.unknown").arg("arg", arg()),
        ErrorKind::InvalidSubcommand => {
            Msg::new("cli.usage.unknown_command").arg("name", of(ContextKind::InvalidSubcommand).unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => Msg::new("cli.usage.missing").arg("arg", arg()),
        ErrorKind::ArgumentConflict => match of(ContextKind::PriorArg) {
            Some(prior) if prior != arg() => Msg::new("cli.usage.conflict").arg("arg", arg()).arg("other", prior),
            _ => Msg::new("cli.usage.twice").arg("arg", arg()),
        },
        ErrorKind::TooManyValues => Msg::new("cli.usage.too_many").arg("arg", arg()).arg("value", value()),
        _ => return None,
    })
}

/// The strings of a piece of context, joined.
fn list(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(s) => Some(s.clone()),
        ContextValue::Strings(s) if !s.is_empty() => Some(s.join(", ")),
        _ => None,
    }
}
