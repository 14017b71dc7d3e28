//! Glyph sets, and what text becomes on terminals that cannot be trusted with more.
//!
//! Block and box glyphs, `× √ ∑ ² ₁` and Greek letters are of *ambiguous width*: some CJK terminals draw them two
//! cells wide and shift the rest of the line. The `cjk-safe` and `ascii` sets have none of them.

use std::borrow::Cow;

use crate::app::settings::GlyphSet;
use crate::text::Cells;

/// The glyphs of a set. Each takes one cell.
#[derive(Debug, PartialEq, Eq)]
pub struct Glyphs {
    /// Which set.
    pub set: GlyphSet,
    /// Frame: horizontal, vertical, then corners from the top left, clockwise.
    pub frame: [&'static str; 6],
    /// A folded branch of a tree.
    pub folded: &'static str,
    /// An unfolded branch.
    pub unfolded: &'static str,
    /// The current line.
    pub here: &'static str,
    /// A bookmark.
    pub bookmark: &'static str,
    /// A breakpoint.
    pub breakpoint: &'static str,
    /// A check that failed.
    pub failed: &'static str,
    /// A check that passed.
    pub passed: &'static str,
    /// A change.
    pub changed: &'static str,
    /// Changes, from small to large.
    pub changes: [&'static str; 3],
    /// More to the left, right, above, below.
    pub more: [&'static str; 4],
    /// What denotes text that was cut off.
    pub ellipsis: &'static str,
    /// Fractions of a bar's cell, from little to full.
    pub bar: &'static [&'static str],
    /// Heights of a column, from low to high.
    pub levels: &'static [&'static str],
    /// Magnitudes, from none to full.
    pub shades: &'static [&'static str],
    /// Points of a chart, one a series.
    pub points: [&'static str; 6],
    /// Whether charts may use braille.
    pub braille: bool,
}

const UNICODE: Glyphs = Glyphs {
    set: GlyphSet::Unicode,
    frame: ["─", "│", "┌", "┐", "┘", "└"],
    folded: "▸",
    unfolded: "▾",
    here: "▶",
    bookmark: "★",
    breakpoint: "●",
    failed: "✗",
    passed: "✓",
    changed: "Δ",
    changes: ["·", "δ", "Δ"],
    more: ["‹", "›", "↑", "↓"],
    ellipsis: "…",
    bar: &["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"],
    levels: &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    shades: &[" ", "░", "▒", "▓", "█"],
    points: ["•", "×", "+", "○", "*", "◆"],
    braille: true,
};

const CJK_SAFE: Glyphs = Glyphs {
    set: GlyphSet::CjkSafe,
    frame: ["-", "|", "+", "+", "+", "+"],
    folded: "+",
    unfolded: "-",
    here: ">",
    bookmark: "*",
    breakpoint: "@",
    failed: "!",
    passed: "=",
    changed: "~",
    changes: [".", "~", "#"],
    more: ["<", ">", "^", "v"],
    ellipsis: "..",
    bar: &["#"],
    levels: &["_", ".", "-", "=", "+", "*", "#"],
    shades: &[" ", ".", ":", "*", "#"],
    points: ["*", "x", "+", "o", "%", "@"],
    // Braille patterns are neutral, not ambiguous: one cell wide everywhere.
    braille: true,
};

const ASCII: Glyphs = Glyphs { set: GlyphSet::Ascii, braille: false, ..CJK_SAFE };

static SETS: [Glyphs; 3] = [UNICODE, CJK_SAFE, ASCII];

/// What ambiguous and other characters become outside the `unicode` set.
#[allow(clippy::match_same_arms, reason = "kept by kind of glyph")]
fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        '×' | '·' | '⋅' | '∙' => "*",
        '÷' => "/",
        '√' => "sqrt",
        '∑' | 'Σ' => "sum",
        '∞' => "inf",
        '−' | '–' => "-",
        '—' => "--",
        '…' => "...",
        '≈' => "~=",
        '≠' => "!=",
        '≤' => "<=",
        '≥' => ">=",
        '±' => "+-",
        '→' => "->",
        '←' => "<-",
        '↑' => "^",
        '↓' => "v",
        '⏎' => "Enter",
        '⌫' => "Bksp",
        '∂' => "d",
        'ᵀ' => "^T",
        '∈' => " in ",
        '⊙' => "(*)",
        'α' => "alpha",
        'β' => "beta",
        'γ' => "gamma",
        'ε' => "eps",
        'η' => "eta",
        'θ' => "theta",
        'λ' => "lambda",
        'μ' => "mu",
        'π' => "pi",
        'σ' => "sigma",
        'φ' | 'Φ' => "phi",
        'Δ' => "delta",
        '⁰' => "^0",
        '¹' => "^1",
        '²' => "^2",
        '³' => "^3",
        '⁴' => "^4",
        '⁵' => "^5",
        '⁻' => "^-",
        '₀' => "_0",
        '₁' => "_1",
        '₂' => "_2",
        '₃' => "_3",
        '₄' => "_4",
        '₅' => "_5",
        '°' => "deg",
        '‖' => "||",
        '“' | '”' => "\"",
        '‘' | '’' => "'",
        '•' | '★' => "*",
        '✓' => "ok",
        '✗' => "x",
        '█' | '▓' | '■' => "#",
        '▒' => "*",
        '░' => ".",
        '─' => "-",
        '│' => "|",
        '▸' | '▶' | '›' => ">",
        '‹' => "<",
        '▾' => "v",
        _ => return None,
    })
}

impl Glyphs {
    /// The glyphs of a set.
    pub fn of(set: GlyphSet) -> &'static Self {
        &SETS[match set {
            GlyphSet::Unicode => 0,
            GlyphSet::CjkSafe => 1,
            GlyphSet::Ascii => 2,
        }]
    }

    /// How wide characters are on the terminals that this set is for.
    pub fn cells(&self) -> Cells {
        Cells { ambiguous_wide: self.set == GlyphSet::CjkSafe }
    }

    /// `text` without control characters, and without characters that this set does not trust. Words of the
    /// scenario (Chinese, say) stay.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = crate::text::escape(text);
        if self.set == GlyphSet::Unicode || !text.chars().any(|c| plain(c).is_some()) {
            return text;
        }
        let mut out = String::with_capacity(text.len() + 8);
        // Without the roof of a root its word needs brackets: `sqrt(d_k)`, where `sqrtd_k` would be another name.
        let mut under_root = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match plain(c) {
                Some(word) => out.push_str(word),
                None => out.push(c),
            }
            let word = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '.');
            let more = chars.peek().is_some_and(word);
            if c == '√' && more {
                out.push('(');
                under_root = true;
            } else if under_root && !more {
                out.push(')');
                under_root = false;
            }
        }
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn safe_sets_have_no_ambiguous_glyph() {
        for &set in GlyphSet::ALL {
            let g = Glyphs::of(set);
            assert_eq!(g.set, set);
            let all = [g.folded, g.unfolded, g.here, g.bookmark, g.breakpoint, g.failed, g.passed, g.changed];
            let all =
                all.iter().chain(&g.frame).chain(&g.more).chain(g.bar).chain(g.levels).chain(g.shades).chain(&g.points);
            for glyph in all {
                assert_eq!(glyph.width(), 1, "{glyph}");
                if set != GlyphSet::Unicode {
                    assert_eq!(glyph.width_cjk(), 1, "{glyph}");
                    assert!(glyph.is_ascii());
                }
            }
        }
    }

    #[test]
    fn text_is_made_plain_and_escaped() {
        let safe = Glyphs::of(GlyphSet::CjkSafe);
        assert_eq!(safe.text("Q·K₁ᵀ/√2 水 ≈ -∞"), "Q*K_1^T/sqrt(2) 水 ~= -inf");
        assert_eq!(safe.text("√d_k = √(2·ε)"), "sqrt(d_k) = sqrt(2*eps)");
        assert_eq!(Glyphs::of(GlyphSet::Unicode).text("√2"), "√2");
        for &set in GlyphSet::ALL {
            assert!(!Glyphs::of(set).text("a\u{1b}[2J").contains('\u{1b}'));
        }
    }
}
