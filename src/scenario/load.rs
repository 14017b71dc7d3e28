//! From an argument of the command line to a scenario.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::diagnostic::{Diagnostic, Problem};
use super::schema::Scenario;
use super::{EMBEDDED, LESSONS, guard, place, syntax};
use crate::text::{Msg, escape, nearest};

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

/// Largest scenario file.
const LARGEST: u64 = guard::MAX_TEXT;

/// Loads the scenario that `arg` names: a path, `-` for standard input, or an embedded name.
///
/// # Errors
/// Where there is none, or it cannot be read.
pub fn load(arg: &Path) -> Result<Loaded, Diagnostic> {
    let file = arg.display().to_string();
    let (bytes, origin) = if arg == Path::new("-") {
        (limited(std::io::stdin().lock(), &file)?, None)
    } else if let Some(text) = embedded(arg) {
        (text.as_bytes().to_vec(), None)
    } else {
        (from_file(arg, &file)?, Some(arg.to_owned()))
    };
    if let Some(kind) = guard::kind(&file, &bytes) {
        return Err(Diagnostic::whole(&file, kind.msg(&file), Some(embedded_names())));
    }
    let text = utf8(bytes, &file)?;
    let scenario = syntax::read(&file, &text).map_err(|d| *d)?;
    Ok(Loaded { scenario, text, file, origin })
}

/// The text of an embedded scenario, unless a file of that name is there.
fn embedded(arg: &Path) -> Option<&'static str> {
    let (_, text) = EMBEDDED.iter().chain(LESSONS).find(|(name, _)| Path::new(name) == arg)?;
    (!arg.is_file()).then_some(*text)
}

fn from_file(arg: &Path, file: &str) -> Result<Vec<u8>, Diagnostic> {
    // The size is requested before anything is read.
    let meta = std::fs::metadata(arg).map_err(|e| absent(file, &e))?;
    if meta.is_dir() {
        let help = Some(embedded_names());
        return Err(Diagnostic::whole(file, Msg::new("scenario.directory"), help));
    }
    if meta.len() > LARGEST {
        return Err(too_large(file, Some(meta.len())));
    }
    let opened = std::fs::File::open(arg).map_err(|e| unreadable(file, &e))?;
    // Devices and pipes have no size: these, too, are read up to the limit only.
    limited(opened, file)
}

fn limited(source: impl Read, file: &str) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    source.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| unreadable(file, &e))?;
    if bytes.len() as u64 > LARGEST {
        return Err(too_large(file, None));
    }
    Ok(bytes)
}

fn too_large(file: &str, bytes: Option<u64>) -> Diagnostic {
    let size = bytes.map_or_else(|| format!("> {LARGEST}"), |b| b.to_string());
    let msg = Msg::new("scenario.too_large").arg("bytes", size);
    let help = Some(Msg::new("scenario.too_large_help"));
    Diagnostic::whole(file, msg.arg("most", LARGEST), help)
}

fn unreadable(file: &str, e: &std::io::Error) -> Diagnostic {
    let msg = Msg::new("scenario.unreadable").arg("file", escape(file));
    let help = Some(Msg::new("scenario.unreadable_help"));
    Diagnostic::whole(file, msg.arg("why", escape(&e.to_string())), help)
}

fn embedded_names() -> Msg {
    let names: Vec<&str> = EMBEDDED.iter().chain(LESSONS).map(|e| e.0).collect();
    Msg::new("scenario.embedded_list").arg("names", names.join(", "))
}

/// What `metadata` failed on: mostly a file that is not there.
fn absent(file: &str, e: &std::io::Error) -> Diagnostic {
    use std::io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    if !matches!(e.kind(), NotFound | NotADirectory | InvalidFilename | InvalidInput) {
        return unreadable(file, e);
    }
    let names: Vec<&str> = EMBEDDED.iter().chain(LESSONS).map(|e| e.0).collect();
    let help = match nearest(file, names.iter().copied()) {
        Some(name) => Msg::new("scenario.nearest_embedded").arg("name", name).arg("names", names.join(", ")),
        None => embedded_names(),
    };
    let msg = Msg::new("scenario.not_found").arg("name", escape(file));
    Diagnostic::whole(file, msg, Some(help))
}

/// The text; bytes that are none are named with their place.
fn utf8(bytes: Vec<u8>, file: &str) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let bytes = e.as_bytes();
        let msg = Msg::new("scenario.not_utf8_at").arg("byte", at + 1).arg("value", format!("0x{:02x}", bytes[at]));
        let help = match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Msg::new("scenario.utf16_help"),
            _ => Msg::new("scenario.not_utf8_help"),
        };
        let text = String::from_utf8_lossy(bytes);
        let place = place::line_column(&text, at);
        Diagnostic::placed(file, &text, Some(place), Problem::new("", msg).help(help))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_read_up_to_the_limit() {
        let d = limited(std::io::repeat(b' '), "-").expect_err("no end");
        assert_eq!(d.msg.key, "scenario.too_large");
        assert_eq!(limited(&b"abc"[..], "-"), Ok(b"abc".to_vec()));
    }

    #[test]
    fn the_byte_that_is_no_text_is_named() {
        let d = utf8("我\n爱\u{0}".bytes().chain([0xff]).collect(), "a").expect_err("not text");
        assert_eq!(d.place, Some((2, 3)));
        assert_eq!(d.msg.args, [("byte", "9".to_owned()), ("value", "0xff".to_owned())]);
    }
}
