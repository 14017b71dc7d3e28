//! From an argument of the command line to a scenario.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::diagnostic::{Diagnostic, Problem, nearest};
use super::schema::Scenario;
use super::{EMBEDDED, parse};
use crate::text::{Msg, escape};

/// A scenario and where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The scenario.
    pub scenario: Scenario,
    /// Its text, for diagnostics.
    pub text: String,
    /// What to call it in messages.
    pub file: String,
    /// The file, where it is one.
    pub origin: Option<PathBuf>,
}

/// Largest scenario file: 64 MiB.
const LARGEST: u64 = 64 << 20;

/// Loads the scenario that `arg` names: a path, `-` for standard input, or an embedded name.
///
/// # Errors
/// Where there is none, or it cannot be read.
pub fn load(arg: &Path) -> Result<Loaded, Diagnostic> {
    let file = arg.display().to_string();
    let whole = |msg: Msg, help: Option<Msg>| Diagnostic::whole(&file, msg, help);
    let (bytes, origin) = if arg == Path::new("-") {
        let mut bytes = Vec::new();
        let read = std::io::stdin()
            .lock()
            .take(LARGEST + 1)
            .read_to_end(&mut bytes);
        read.map_err(|e| {
            whole(
                Msg::new("scenario.unreadable")
                    .arg("file", "-")
                    .arg("why", e),
                None,
            )
        })?;
        (bytes, None)
    } else if arg.exists() {
        let unreadable = |e: std::io::Error| {
            whole(
                Msg::new("scenario.unreadable")
                    .arg("file", escape(&file))
                    .arg("why", e),
                None,
            )
        };
        let meta = std::fs::metadata(arg).map_err(unreadable)?;
        if meta.is_dir() {
            return Err(whole(Msg::new("scenario.directory"), None));
        }
        if meta.len() > LARGEST {
            return Err(whole(
                Msg::new("scenario.too_large")
                    .arg("bytes", meta.len())
                    .arg("most", LARGEST),
                None,
            ));
        }
        (
            std::fs::read(arg).map_err(unreadable)?,
            Some(arg.to_owned()),
        )
    } else {
        let Some((_, text)) = EMBEDDED.iter().find(|(name, _)| Path::new(name) == arg) else {
            let names: Vec<&str> = EMBEDDED.iter().map(|e| e.0).collect();
            let help = match nearest(&file, names.iter().copied()) {
                Some(name) => Msg::new("diagnostic.did_you_mean").arg("name", name),
                None => Msg::new("scenario.embedded_list").arg("names", names.join(", ")),
            };
            return Err(whole(
                Msg::new("scenario.not_found").arg("name", escape(&file)),
                Some(help),
            ));
        };
        (text.as_bytes().to_vec(), None)
    };
    if bytes.len() as u64 > LARGEST {
        return Err(whole(
            Msg::new("scenario.too_large")
                .arg("bytes", bytes.len())
                .arg("most", LARGEST),
            None,
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| whole(Msg::new("scenario.not_utf8"), None))?;
    if text.trim().is_empty() {
        return Err(whole(
            Msg::new("scenario.empty"),
            Some(Msg::new("scenario.syntax_help")),
        ));
    }
    match parse(&text) {
        Ok(scenario) => Ok(Loaded {
            scenario,
            text,
            file,
            origin,
        }),
        Err(e) => {
            let place = Some((e.span.start.line, e.span.start.col));
            let problem = Problem::new(
                "",
                Msg::new("scenario.syntax").arg("why", escape(&e.code.to_string())),
            )
            .help(Msg::new("scenario.syntax_help"));
            Err(Diagnostic::placed(&file, &text, place, problem))
        }
    }
}
