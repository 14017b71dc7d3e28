//! Editing one line of text.

use tui_input::{Input as Line, InputRequest};

use super::key::{Key, KeyCode};

/// A line being typed.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    line: Line,
}

impl Editor {
    /// A line that holds `text`, with the cursor at its end.
    pub fn new(text: &str) -> Self {
        Self { line: Line::new(text.to_owned()) }
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.line.value()
    }

    /// The text before the cursor.
    pub fn before_cursor(&self) -> &str {
        let text = self.text();
        let at = text.char_indices().nth(self.line.cursor()).map_or(text.len(), |(at, _)| at);
        &text[..at]
    }

    /// Puts `text` in place of what there is.
    pub fn set(&mut self, text: &str) {
        self.line = Line::new(text.to_owned());
    }

    /// Inserts pasted text at the cursor; control characters become spaces, so that a line stays a line.
    pub fn paste(&mut self, text: &str) {
        for c in text.trim_end_matches(['\n', '\r']).chars() {
            let c = if c.is_control() { ' ' } else { c };
            self.line.handle(InputRequest::InsertChar(c));
        }
    }

    /// Gives a key to the line; false where the line has no use for it.
    pub fn key(&mut self, key: Key) -> bool {
        let word = key.ctrl || key.alt;
        let request = match key.code {
            KeyCode::Left if word => InputRequest::GoToPrevWord,
            KeyCode::Right if word => InputRequest::GoToNextWord,
            KeyCode::Left => InputRequest::GoToPrevChar,
            KeyCode::Right => InputRequest::GoToNextChar,
            KeyCode::Home => InputRequest::GoToStart,
            KeyCode::End => InputRequest::GoToEnd,
            KeyCode::Backspace if word => InputRequest::DeletePrevWord,
            KeyCode::Backspace => InputRequest::DeletePrevChar,
            KeyCode::Delete if word => InputRequest::DeleteNextWord,
            KeyCode::Delete => InputRequest::DeleteNextChar,
            // The keys of readline.
            KeyCode::Char(c) if key.ctrl => match c {
                'a' => InputRequest::GoToStart,
                'e' => InputRequest::GoToEnd,
                'b' => InputRequest::GoToPrevChar,
                'f' => InputRequest::GoToNextChar,
                'h' => InputRequest::DeletePrevChar,
                'd' => InputRequest::DeleteNextChar,
                'w' => InputRequest::DeletePrevWord,
                'u' => InputRequest::DeleteLine,
                'k' => InputRequest::DeleteTillEnd,
                _ => return false,
            },
            KeyCode::Char(c) if !key.alt => InputRequest::InsertChar(c),
            _ => return false,
        };
        self.line.handle(request);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::key::KeySeq;

    fn typed(keys: &str) -> Editor {
        let mut e = Editor::default();
        for key in keys.parse::<KeySeq>().unwrap().0 {
            e.key(key);
        }
        e
    }

    #[test]
    fn edits_like_readline() {
        assert_eq!(typed("a b 水 backspace").text(), "ab");
        assert_eq!(typed("a b space c ctrl-w x").text(), "ab x");
        assert_eq!(typed("a b ctrl-a x ctrl-k").text(), "x");
        let e = typed("水 课 left");
        assert_eq!(e.before_cursor(), "水");
        assert!(!Editor::default().key(Key::new(KeyCode::Enter)));
    }

    #[test]
    fn pasting_keeps_one_line() {
        let mut e = Editor::new("x");
        e.paste("a\nb\u{1b}[2J\n");
        assert_eq!(e.text(), "xa b [2J");
    }
}
