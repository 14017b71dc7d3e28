//! Terminal cells: how wide a text is, and cutting, padding and wrapping it without splitting what a reader
//! sees as one character.
//!
//! The width of a text is the sum over its grapheme clusters, as terminals (and ratatui's buffers) lay it out.
//! Text from outside is escaped first ([`super::escape()`]): a control character has no width of its own.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Where a padded text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Spaces after the text.
    Left,
    /// Spaces before it.
    Right,
    /// Spaces on both sides, the odd one after.
    Centre,
}

/// How a terminal counts cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cells {
    /// Characters of ambiguous width (`× √ … ∑ │`) take two cells, as some CJK terminals draw them.
    pub ambiguous_wide: bool,
}

/// What denotes text that was cut off.
const ELLIPSIS: &str = "…";

/// Punctuation that may not begin a line.
const NEVER_FIRST: &str = "，。、；：？！）」』》】〉〕”’％…·,.;:?!)]}%";
/// Punctuation that may not end a line.
const NEVER_LAST: &str = "（「『《【〈〔“‘([{";

impl Cells {
    /// Ambiguous characters are one cell wide.
    pub const NARROW: Cells = Cells { ambiguous_wide: false };
    /// Ambiguous characters are two cells wide.
    pub const WIDE: Cells = Cells { ambiguous_wide: true };

    /// Cells of `text`.
    pub fn width(self, text: &str) -> usize {
        if text.is_ascii() {
            return text.len();
        }
        text.graphemes(true).map(|g| self.grapheme(g)).sum()
    }

    fn grapheme(self, grapheme: &str) -> usize {
        if self.ambiguous_wide { grapheme.width_cjk() } else { grapheme.width() }
    }

    /// The longest beginning of `text` of at most `max` cells, and its width.
    pub fn prefix(self, text: &str, max: usize) -> (&str, usize) {
        let mut used = 0;
        for (at, grapheme) in text.grapheme_indices(true) {
            let next = used + self.grapheme(grapheme);
            if next > max {
                return (&text[..at], used);
            }
            used = next;
        }
        (text, used)
    }

    /// `text` in at most `max` cells; what does not fit is cut at a grapheme border and shown as `…`.
    pub fn truncate(self, text: &str, max: usize) -> Cow<'_, str> {
        self.truncate_with(text, max, ELLIPSIS)
    }

    /// As [`truncate`](Self::truncate), with another ellipsis (such as `...` for an ASCII terminal).
    pub fn truncate_with<'t>(self, text: &'t str, max: usize, ellipsis: &str) -> Cow<'t, str> {
        if self.width(text) <= max {
            return Cow::Borrowed(text);
        }
        let mark = self.width(ellipsis);
        if mark > max {
            // No room even for the mark: dots say that something is missing.
            return Cow::Owned(".".repeat(max));
        }
        let (kept, _) = self.prefix(text, max - mark);
        Cow::Owned(format!("{kept}{ellipsis}"))
    }

    /// `text` with spaces up to `width` cells; a wider text comes back whole.
    pub fn pad(self, text: &str, width: usize, align: Align) -> Cow<'_, str> {
        let missing = width.saturating_sub(self.width(text));
        if missing == 0 {
            return Cow::Borrowed(text);
        }
        let before = match align {
            Align::Left => 0,
            Align::Right => missing,
            Align::Centre => missing / 2,
        };
        let after = missing - before;
        Cow::Owned(format!("{:before$}{text}{:after$}", "", ""))
    }

    /// `text` in exactly `width` cells: cut with an ellipsis, or padded.
    pub fn fit(self, text: &str, width: usize, align: Align) -> String {
        let cut = self.truncate(text, width);
        self.pad(&cut, width, align).into_owned()
    }

    /// The lines of `text` in a column of `width` cells.
    ///
    /// Lines break after spaces and next to wide characters, never before a closing or after an opening
    /// punctuation mark unless nothing else fits; a word wider than the column is cut between graphemes.
    /// A newline ends a line. A column of no cells has no lines; a grapheme wider than the column stands
    /// alone on its line.
    pub fn wrap(self, text: &str, width: usize) -> Vec<&str> {
        let mut lines = Vec::new();
        if width == 0 {
            return lines;
        }
        for paragraph in text.split('\n') {
            self.wrap_paragraph(paragraph, width, &mut lines);
        }
        lines
    }

    fn wrap_paragraph<'t>(self, text: &'t str, width: usize, lines: &mut Vec<&'t str>) {
        let mut start = 0;
        let mut used = 0;
        // The last place where the line may end: (end of the line, start of the next).
        let mut last_break: Option<(usize, usize)> = None;
        let mut previous: Option<&str> = None;
        for (at, grapheme) in text.grapheme_indices(true) {
            let cells = self.grapheme(grapheme);
            let space = is_space(grapheme);
            if at > start {
                let was_space = previous.is_some_and(is_space);
                if was_space && !space {
                    last_break = Some((text[..at].trim_end().len().max(start), at));
                } else if previous.is_some_and(|p| breaks_between(p, grapheme)) {
                    last_break = Some((at, at));
                }
            }
            // Spaces may hang over the edge: they are cut off when the line ends.
            while used + cells > width && !space && at > start {
                let (end, next) = last_break.take().unwrap_or((at, at));
                lines.push(&text[start..end]);
                start = next;
                used = self.width(&text[start..at]);
            }
            used += cells;
            previous = Some(grapheme);
        }
        let rest = &text[start..];
        let (kept, _) = self.prefix(rest, width);
        lines.push(if kept.len() < rest.len() && rest.trim_end().len() <= kept.len() { rest.trim_end() } else { rest });
    }
}

/// Whether a line may end between two graphemes without a space.
fn breaks_between(before: &str, after: &str) -> bool {
    // Wide in the East Asian sense, whatever the terminal does with ambiguous characters.
    let wide = |g: &str| g.width() > 1;
    !is_space(before)
        && !is_space(after)
        && (wide(before) || wide(after))
        && !NEVER_FIRST.contains(after)
        && !NEVER_LAST.contains(before)
}

fn is_space(grapheme: &str) -> bool {
    grapheme == " " || grapheme == "\t" || grapheme == "\u{3000}"
}

/// Cells of `text` where ambiguous characters are narrow.
pub fn width(text: &str) -> usize {
    Cells::NARROW.width(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const N: Cells = Cells::NARROW;

    #[test]
    fn widths() {
        assert_eq!(width("score1"), 6);
        assert_eq!(width("我爱水课"), 8);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("👨‍👩‍👧"), 2);
        assert_eq!(width("√2 × ᵀ"), 6);
        assert_eq!(Cells::WIDE.width("√2 × ᵀ"), 8);
        assert_eq!(width("ｶﾞ"), 2);
        assert_eq!(width("ﾊﾟﾀｰﾝ"), 5);
        assert_eq!(width(""), 0);
    }

    #[test]
    fn truncation_never_splits_a_character() {
        assert_eq!(N.truncate("我爱水课", 8), "我爱水课");
        assert_eq!(N.truncate("我爱水课", 7), "我爱水…");
        assert_eq!(N.truncate("我爱水课", 6), "我爱…");
        assert_eq!(N.truncate("我爱水课", 1), "…");
        assert_eq!(N.truncate("我爱水课", 0), "");
        assert_eq!(Cells::WIDE.truncate("我爱水课", 6), "我爱…");
        assert_eq!(Cells::WIDE.truncate("我爱水课", 1), ".");
        assert_eq!(N.truncate_with("encoder", 5, "..."), "en...");
    }

    #[test]
    fn padding() {
        assert_eq!(N.pad("我", 5, Align::Left), "我   ");
        assert_eq!(N.pad("我", 5, Align::Right), "   我");
        assert_eq!(N.pad("我", 5, Align::Centre), " 我  ");
        assert_eq!(N.pad("我爱", 3, Align::Left), "我爱");
        assert_eq!(N.fit("我爱", 3, Align::Left), "我…");
    }

    #[test]
    fn wrapping() {
        assert_eq!(N.wrap("the row maximum", 7), ["the row", "maximum"]);
        assert_eq!(N.wrap("a   b", 2), ["a", "b"]);
        assert_eq!(N.wrap("softmax", 3), ["sof", "tma", "x"]);
        assert_eq!(N.wrap("我爱水课", 4), ["我爱", "水课"]);
        assert_eq!(N.wrap("我爱水课，水课", 8), ["我爱水", "课，水课"]);
        assert_eq!(N.wrap("看（水课）", 4), ["看", "（水", "课）"]);
        assert_eq!(N.wrap("用 softmax 归一化", 10), ["用 softmax", "归一化"]);
        assert_eq!(N.wrap("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(N.wrap("我", 1), ["我"]);
        assert_eq!(N.wrap("", 4), [""]);
        assert!(N.wrap("abc", 0).is_empty());
    }

    proptest! {
        #[test]
        fn cut_and_wrapped_text_fits(text in "[a-c，。（我爱 ×é👍]{0,24}", max in 2_usize..12) {
            prop_assert!(N.width(&N.truncate(&text, max)) <= max);
            prop_assert_eq!(N.width(&N.fit(&text, max, Align::Right)), max);
            let lines = N.wrap(&text, max);
            for line in &lines {
                prop_assert!(N.width(line.trim_end()) <= max, "{:?} in {}", lines, max);
            }
            let squeeze = |s: &str| s.replace(' ', "");
            prop_assert_eq!(squeeze(&lines.concat()), squeeze(&text));
        }
    }
}
