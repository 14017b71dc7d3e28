//! Keys as the application knows them, and their notation: `ctrl-x`, `shift-tab`, `space`, `]d`, `g g`.

use std::fmt;
use std::str::FromStr;

use crate::text::Msg;

/// Which key, without modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyCode {
    /// A character, as typed (`G` is its own character, not `shift-g`).
    Char(char),
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Left arrow.
    Left,
    /// Right arrow.
    Right,
    /// Up arrow.
    Up,
    /// Down arrow.
    Down,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Insert.
    Insert,
    /// Delete.
    Delete,
    /// A function key.
    F(u8),
}

const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("backspace", KeyCode::Backspace),
    ("tab", KeyCode::Tab),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("insert", KeyCode::Insert),
    ("delete", KeyCode::Delete),
    ("space", KeyCode::Char(' ')),
    ("minus", KeyCode::Char('-')),
];

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Which key.
    pub code: KeyCode,
    /// Control.
    pub ctrl: bool,
    /// Alt (Meta).
    pub alt: bool,
    /// Shift; never set for characters.
    pub shift: bool,
}

impl Key {
    /// A key without modifiers.
    pub const fn new(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    /// A character key, full-width forms folded (an input method sends `？` where a user means `?`).
    pub fn char(c: char) -> Self {
        Self::new(KeyCode::Char(fold_width(c)))
    }

    /// The character to insert where text is typed, if the key is one.
    pub fn text(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }

    /// Whether the key carries a letter: with an input method on, such keys may never arrive.
    pub fn is_letter(self) -> bool {
        matches!(self.code, KeyCode::Char(c) if c.is_alphabetic())
    }

    /// How help shows it: `Ctrl-X`, `←`, `⏎` (`arrows`), or the plain notation (`left`, `enter`) otherwise.
    pub fn label(self, arrows: bool) -> String {
        let name = match self.code {
            KeyCode::Left if arrows => "←".to_owned(),
            KeyCode::Right if arrows => "→".to_owned(),
            KeyCode::Up if arrows => "↑".to_owned(),
            KeyCode::Down if arrows => "↓".to_owned(),
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::F(n) => format!("F{n}"),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            KeyCode::Backspace => "Bksp".to_owned(),
            code => {
                let name = code_name(code);
                name[..1].to_uppercase() + &name[1..]
            }
        };
        let mut out = String::new();
        for (on, prefix) in [(self.ctrl, "Ctrl-"), (self.alt, "Alt-"), (self.shift, "Shift-")] {
            if on {
                out.push_str(prefix);
            }
        }
        out + &name
    }
}

/// Folds the full-width forms U+FF01–U+FF5E and the ideographic space and full stop to ASCII.
pub fn fold_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        '\u{3002}' => '.',
        _ => c,
    }
}

fn code_name(code: KeyCode) -> &'static str {
    NAMES.iter().find(|n| n.1 == code).map_or("?", |n| n.0)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (on, prefix) in [(self.ctrl, "ctrl-"), (self.alt, "alt-"), (self.shift, "shift-")] {
            if on {
                f.write_str(prefix)?;
            }
        }
        match self.code {
            KeyCode::Char(c) if c != ' ' && c != '-' => write!(f, "{c}"),
            KeyCode::F(n) => write!(f, "f{n}"),
            code => f.write_str(code_name(code)),
        }
    }
}

impl FromStr for Key {
    type Err = Msg;

    fn from_str(text: &str) -> Result<Self, Msg> {
        let unknown = || bad_key(text);
        let mut key = Key::new(KeyCode::Esc);
        let mut rest = text;
        loop {
            let (flag, tail) = if let Some(tail) = rest.strip_prefix("ctrl-") {
                (&mut key.ctrl, tail)
            } else if let Some(tail) = rest.strip_prefix("alt-") {
                (&mut key.alt, tail)
            } else if let Some(tail) = rest.strip_prefix("shift-") {
                (&mut key.shift, tail)
            } else {
                break;
            };
            if std::mem::replace(flag, true) {
                return Err(unknown());
            }
            rest = tail;
        }
        let mut chars = rest.chars();
        key.code = match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_control() => KeyCode::Char(fold_width(c)),
            _ => match NAMES.iter().find(|n| n.0.eq_ignore_ascii_case(rest)) {
                Some(n) => n.1,
                None => match rest.strip_prefix(['f', 'F']).map(str::parse) {
                    Some(Ok(n @ 1..=24)) => KeyCode::F(n),
                    _ => return Err(unknown()),
                },
            },
        };
        if let KeyCode::Char(c) = key.code {
            // Terminals send the shifted character itself, so `shift-g` means `G`; control folds case.
            if key.shift && c.is_alphabetic() {
                key.code = KeyCode::Char(c.to_ascii_uppercase());
            } else if key.ctrl {
                key.code = KeyCode::Char(c.to_ascii_lowercase());
            }
            key.shift = false;
        }
        Ok(key)
    }
}

fn bad_key(text: &str) -> Msg {
    let names = NAMES.iter().map(|n| n.0);
    let word = text.rsplit('-').next().unwrap_or(text);
    match crate::text::nearest(word, names) {
        Some(near) => Msg::new("tui.error.key_near").arg("near", near),
        None => Msg::new("tui.error.key"),
    }
    .arg("key", text)
}

/// Keys pressed one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeySeq(pub Vec<Key>);

impl KeySeq {
    /// How help shows it.
    pub fn label(&self, arrows: bool) -> String {
        let labels: Vec<_> = self.0.iter().map(|k| k.label(arrows)).collect();
        if labels.iter().all(|l| l.chars().count() == 1) { labels.concat() } else { labels.join(" ") }
    }

    /// Whether every key can be typed with an input method on.
    pub fn has_no_letter(&self) -> bool {
        !self.0.iter().any(|k| k.is_letter())
    }
}

impl fmt::Display for KeySeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, key) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{key}")?;
        }
        Ok(())
    }
}

/// Keys are separated by spaces; two plain characters may be together (`]d`).
impl FromStr for KeySeq {
    type Err = Msg;

    fn from_str(text: &str) -> Result<Self, Msg> {
        let mut keys = Vec::new();
        for word in text.split_whitespace() {
            match word.parse() {
                Ok(key) => keys.push(key),
                Err(error) => {
                    let mut chars = word.chars();
                    match (chars.next(), chars.next(), chars.next()) {
                        (Some(a), Some(b), None) => keys.extend([Key::char(a), Key::char(b)]),
                        _ => return Err(error),
                    }
                }
            }
        }
        if keys.is_empty() {
            return Err(bad_key(text));
        }
        Ok(Self(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("ctrl-x", "ctrl-x")]
    #[case("ctrl-X", "ctrl-x")]
    #[case("shift-g", "G")]
    #[case("shift-tab", "shift-tab")]
    #[case("]d", "] d")]
    #[case("g g", "g g")]
    #[case("-", "minus")]
    #[case("ctrl--", "ctrl-minus")]
    #[case("？", "?")]
    #[case("f12", "f12")]
    #[case("F1", "f1")]
    #[case("PageDown", "pagedown")]
    #[case("space", "space")]
    #[case("alt-ctrl-left", "ctrl-alt-left")]
    fn notation(#[case] text: &str, #[case] printed: &str) {
        let seq: KeySeq = text.parse().unwrap();
        assert_eq!(seq.to_string(), printed);
        assert_eq!(printed.parse::<KeySeq>().unwrap(), seq);
    }

    #[rstest]
    #[case("entr", "enter")]
    #[case("ctrl-lef", "left")]
    fn near(#[case] text: &str, #[case] hint: &str) {
        let error = text.parse::<KeySeq>().unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }

    #[rstest]
    #[case("")]
    #[case("  ")]
    #[case("ctrl-ctrl-x")]
    #[case("f25")]
    #[case("xyzzyq")]
    #[case("ctrl-")]
    fn bad(#[case] text: &str) {
        assert!(text.parse::<KeySeq>().is_err());
    }

    #[test]
    fn labels() {
        let label = |t: &str, a| t.parse::<KeySeq>().unwrap().label(a);
        assert_eq!(label("ctrl-left", true), "Ctrl-←");
        assert_eq!(label("ctrl-left", false), "Ctrl-Left");
        assert_eq!(label("]d", true), "]d");
        assert_eq!(label("space", true), "Space");
    }
}
