//! Untrusted text made safe to show: tokens, titles and file names may hold control characters, terminal escape
//! sequences and invisible marks that reorder or hide text. They are shown as escapes, never sent on.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether `c` must not reach a terminal or a file for people as it is.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            // Marks, embeddings, overrides and isolates of bidirectional text.
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line and paragraph separators; invisible characters without a use inside a token.
            // (The zero-width joiner stays: emoji and several scripts need it.)
            | '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{00ad}' | '\u{180e}'
            // Tags: invisible ASCII.
            | '\u{e0000}'..='\u{e007f}'
        )
}

/// `text` with everything unsafe shown as `\n`, `\t`, `\r`, `\x1b` or `\u{202e}`. Borrows where nothing is.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_unless(text, |_| false)
}

/// As [`escape`], but a newline stays a newline (for notes and other running text).
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_unless(text, |c| c == '\n')
}

fn escape_unless(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let hit = |c: char| is_unsafe(c) && !keep(c);
    let Some(first) = text.find(hit) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if !hit(c) {
            out.push(c);
            continue;
        }
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if u32::from(c) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_text_is_borrowed() {
        for text in ["", "score1", "我爱水课", "👨‍👩‍👧", "a\\b", "√2·Kᵀ"] {
            assert!(matches!(escape(text), Cow::Borrowed(t) if t == text), "{text}");
        }
        assert!(matches!(escape_lines("a\nb"), Cow::Borrowed(_)));
    }

    #[test]
    fn unsafe_text_is_visible() {
        assert_eq!(escape("a\x1b[31mred\x07"), "a\\x1b[31mred\\x07");
        assert_eq!(escape("a\tb\r\n\0"), "a\\tb\\r\\n\\x00");
        assert_eq!(escape("\u{9b}2J\u{7f}"), "\\x9b2J\\x7f");
        assert_eq!(escape("x\u{202e}y\u{2066}"), "x\\u{202e}y\\u{2066}");
        assert_eq!(escape("\u{feff}\u{e0041}\u{2028}"), "\\u{feff}\\u{e0041}\\u{2028}");
        assert_eq!(escape_lines("a\n\x1bb"), "a\n\\x1bb");
    }
}
