//! What the application wants done outside: files, the clipboard, the mouse.

use base64::Engine;

use super::terminal;
use crate::app::effect::{Effect, Report};
use crate::export::file;
use crate::text::{Msg, escape};

/// Most bytes that go to the clipboard: terminals drop longer sequences without a word.
const CLIPBOARD: usize = 74_994;

/// Does it; says what became of it where there is something to say. Leaving, stopping and drawing are the event
/// loop's.
pub fn run(effect: Effect) -> Option<Report> {
    match effect {
        Effect::Quit | Effect::Suspend | Effect::Redraw | Effect::Prompt(_) => None,
        Effect::Reference(wanted) => Some(wanted.read()),
        Effect::Mouse(on) => {
            terminal::set_mouse(on).err().map(|e| Report::Failed(Msg::new("tui.error.terminal").arg("error", e)))
        }
        Effect::Copy { text, done } => Some(match clipboard(&text) {
            None => Report::Failed(Msg::new("tui.error.clipboard").arg("bytes", text.len()).arg("most", CLIPBOARD)),
            Some(sequence) => match terminal::send(&sequence) {
                Ok(()) => Report::Done(done),
                Err(e) => Report::Failed(Msg::new("tui.error.terminal").arg("error", e)),
            },
        }),
        Effect::Write { path, bytes, overwrite } => {
            Some(match file::write_file(&path, overwrite, |out| out.write_all(&bytes)) {
                Ok(()) => Report::Done(
                    Msg::new("tui.said.written").arg("path", escape(&path.to_string_lossy())).arg("bytes", bytes.len()),
                ),
                Err(error) if error.msg.key == "export.file.exists" && !overwrite => {
                    Report::Exists(path.clone(), Effect::Write { path, bytes, overwrite: true })
                }
                Err(error) => Report::Failed(error.msg),
            })
        }
    }
}

/// The OSC 52 sequence that hands `text` to the terminal's clipboard; `None` where it is too long.
fn clipboard(text: &str) -> Option<String> {
    (text.len() <= CLIPBOARD).then(|| {
        let data = base64::engine::general_purpose::STANDARD.encode(text);
        format!("\x1b]52;c;{data}\x07")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn clipboard_sequences() {
        assert_eq!(clipboard("水").unwrap(), "\x1b]52;c;5rC0\x07");
        assert_eq!(clipboard(&"x".repeat(CLIPBOARD + 1)), None);
    }

    #[test]
    fn an_existing_file_is_not_replaced_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let write = |text: &str, overwrite| {
            run(Effect::Write { path: path.clone(), bytes: Arc::new(text.as_bytes().to_vec()), overwrite }).unwrap()
        };
        assert!(matches!(write("one", false), Report::Done(_)));
        let Report::Exists(asked, again) = write("two", false) else {
            panic!("not asked");
        };
        assert_eq!(asked, path);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        assert!(matches!(run(again), Some(Report::Done(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told() {
        let report =
            run(Effect::Write { path: "/no/such/folder/a.md".into(), bytes: Arc::default(), overwrite: false });
        assert!(matches!(report, Some(Report::Failed(_))));
    }
}
