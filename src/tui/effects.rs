//! What the screen has for effects: the terminal's clipboard, its mouse, stopping and drawing anew.

use base64::Engine;

use super::signals;
use super::terminal::{self, Screen};
use crate::app::executor::Front;
use crate::text::Msg;

/// Most bytes that go to the clipboard: terminals drop longer sequences without a word.
const CLIPBOARD: usize = 74_994;

/// The debugger's own terminal; without a screen where it is not taken yet.
pub struct Terminal<'a>(pub Option<&'a mut Screen>);

fn failed(error: impl std::fmt::Display) -> Msg {
    Msg::new("tui.error.terminal").arg("error", error)
}

impl Front for Terminal<'_> {
    fn copy(&mut self, text: &str, done: Msg) -> Result<Option<Msg>, Msg> {
        let too_long = || Msg::new("tui.error.clipboard").arg("bytes", text.len()).arg("most", CLIPBOARD);
        let sequence = clipboard(text).ok_or_else(too_long)?;
        terminal::send(&sequence).map(|()| Some(done)).map_err(failed)
    }

    fn mouse(&mut self, on: bool) -> Result<(), Msg> {
        terminal::set_mouse(on).map_err(failed)
    }

    fn screen(&mut self, suspend: bool) -> Result<(), Msg> {
        let Some(screen) = &mut self.0 else { return Ok(()) };
        if suspend {
            terminal::without(signals::stop).map_err(failed)?;
        }
        screen.forget().map_err(failed)
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
    use super::*;

    #[test]
    fn clipboard_sequences() {
        assert_eq!(clipboard("水").unwrap(), "\x1b]52;c;5rC0\x07");
        assert_eq!(clipboard(&"x".repeat(CLIPBOARD + 1)), None);
    }
}
