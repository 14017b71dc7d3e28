//! crossterm's events, normalised once into the application's own.

use crossterm::event::{
    Event, KeyCode as CCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use crate::app::input::{Input, Mouse, MouseKind};
use crate::app::key::{Key, KeyCode, fold_width};

/// The application's event for one of crossterm's; `None` for those that mean nothing here.
pub fn normalise(event: Event) -> Option<Input> {
    match event {
        // Windows also tells when a key goes up. Repeats are kept: a held arrow moves on.
        Event::Key(key) if key.kind != KeyEventKind::Release => normalise_key(key).map(Input::Key),
        Event::Paste(text) => Some(Input::Paste(text)),
        Event::Mouse(mouse) => normalise_mouse(mouse).map(Input::Mouse),
        Event::Resize(columns, rows) => Some(Input::Resize(columns, rows)),
        _ => None,
    }
}

fn normalise_key(key: KeyEvent) -> Option<Key> {
    let mut shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let code = match key.code {
        CCode::Char(c) => {
            let c = fold_width(c);
            // The character says whether shift was held; some terminals send shift and a small letter.
            let c = match (ctrl, shift) {
                (true, _) => c.to_ascii_lowercase(),
                (false, true) => c.to_ascii_uppercase(),
                (false, false) => c,
            };
            shift = false;
            KeyCode::Char(c)
        }
        CCode::BackTab => {
            shift = true;
            KeyCode::Tab
        }
        CCode::Enter => KeyCode::Enter,
        CCode::Esc => KeyCode::Esc,
        CCode::Backspace => KeyCode::Backspace,
        CCode::Tab => KeyCode::Tab,
        CCode::Left => KeyCode::Left,
        CCode::Right => KeyCode::Right,
        CCode::Up => KeyCode::Up,
        CCode::Down => KeyCode::Down,
        CCode::Home => KeyCode::Home,
        CCode::End => KeyCode::End,
        CCode::PageUp => KeyCode::PageUp,
        CCode::PageDown => KeyCode::PageDown,
        CCode::Insert => KeyCode::Insert,
        CCode::Delete => KeyCode::Delete,
        // Shift-F3 reaches many terminals as F15.
        CCode::F(n @ 13..=24) if !shift && !ctrl && !alt => {
            shift = true;
            KeyCode::F(n - 12)
        }
        CCode::F(n) => KeyCode::F(n),
        _ => return None,
    };
    Some(Key { code, ctrl, alt, shift })
}

fn normalise_mouse(mouse: MouseEvent) -> Option<Mouse> {
    let kind = match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => MouseKind::Press,
        MouseEventKind::Drag(MouseButton::Left) => MouseKind::Drag,
        MouseEventKind::Down(MouseButton::Right) => MouseKind::Menu,
        MouseEventKind::ScrollUp => MouseKind::ScrollUp,
        MouseEventKind::ScrollDown => MouseKind::ScrollDown,
        MouseEventKind::ScrollLeft => MouseKind::ScrollLeft,
        MouseEventKind::ScrollRight => MouseKind::ScrollRight,
        _ => return None,
    };
    Some(Mouse { kind, x: mouse.column, y: mouse.row })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(CCode::Char('？'), KeyModifiers::NONE, "?")]
    #[case(CCode::Char('Ｇ'), KeyModifiers::NONE, "G")]
    #[case(CCode::Char('g'), KeyModifiers::SHIFT, "G")]
    #[case(CCode::Char('G'), KeyModifiers::SHIFT, "G")]
    #[case(CCode::Char('?'), KeyModifiers::SHIFT, "?")]
    #[case(CCode::Char('X'), KeyModifiers::CONTROL, "ctrl-x")]
    #[case(CCode::Char(' '), KeyModifiers::CONTROL, "ctrl-space")]
    #[case(CCode::BackTab, KeyModifiers::SHIFT, "shift-tab")]
    #[case(CCode::BackTab, KeyModifiers::NONE, "shift-tab")]
    #[case(CCode::F(15), KeyModifiers::NONE, "shift-f3")]
    #[case(CCode::Left, KeyModifiers::ALT, "alt-left")]
    fn keys(#[case] code: CCode, #[case] mods: KeyModifiers, #[case] expected: &str) {
        let Some(Input::Key(key)) = normalise(Event::Key(KeyEvent::new(code, mods))) else {
            panic!("no key");
        };
        assert_eq!(key.to_string(), expected);
    }

    #[test]
    fn releases_are_dropped_and_repeats_kept() {
        let mut event = KeyEvent::new(CCode::Down, KeyModifiers::NONE);
        event.kind = KeyEventKind::Release;
        assert_eq!(normalise(Event::Key(event)), None);
        event.kind = KeyEventKind::Repeat;
        assert!(normalise(Event::Key(event)).is_some());
    }

    #[test]
    fn the_rest() {
        assert_eq!(normalise(Event::FocusGained), None);
        assert_eq!(normalise(Event::Resize(80, 24)), Some(Input::Resize(80, 24)));
        let paste = normalise(Event::Paste("a".to_owned()));
        assert_eq!(paste, Some(Input::Paste("a".to_owned())));
        let lock = KeyEvent::new(CCode::CapsLock, KeyModifiers::NONE);
        assert_eq!(normalise(Event::Key(lock)), None);
        let moved = MouseEvent { kind: MouseEventKind::Moved, column: 1, row: 2, modifiers: KeyModifiers::NONE };
        assert_eq!(normalise(Event::Mouse(moved)), None);
    }
}
