//! The one way in which text reaches a buffer: escaped, in the glyph set, cut with an ellipsis, inside the frame.

use std::borrow::Cow;
use std::num::NonZeroU16;

use ratatui::buffer::{Buffer, CellDiffOption, CellWidth as _};
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation as _;

use super::colour::Palette;
use super::glyphs::Glyphs;
use super::theme::Theme;
use crate::text::{Align, Cells, Lang};

/// How everything looks.
#[derive(Clone, Debug)]
pub struct Look {
    /// Styles.
    pub theme: Theme,
    /// Colours of values.
    pub palette: Palette,
    /// Glyphs.
    pub glyphs: &'static Glyphs,
    /// Language.
    pub lang: Lang,
}

impl Look {
    /// A look in `theme`.
    pub fn new(theme: Theme, glyphs: &'static Glyphs, lang: Lang) -> Self {
        Self { palette: Palette::new(&theme), theme, glyphs, lang }
    }

    /// How wide this look counts characters.
    pub fn cells(&self) -> Cells {
        self.glyphs.cells()
    }

    /// `text` as this look may show it.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.glyphs.text(text)
    }

    /// Cells that `text` takes in this look.
    pub fn width(&self, text: &str) -> u16 {
        u16::try_from(self.cells().width(&self.text(text))).unwrap_or(u16::MAX)
    }

    /// `text` as this look may show it, in at most `max` cells.
    pub fn cut(&self, text: &str, max: u16) -> String {
        let text = self.text(text);
        self.cells().truncate_with(&text, usize::from(max), self.glyphs.ellipsis).into_owned()
    }

    /// The end of `text`, as this look may show it, in at most `max` cells.
    pub fn cut_start(&self, text: &str, max: u16) -> String {
        let text = self.text(text);
        if self.cells().width(&text) <= usize::from(max) {
            return text.into_owned();
        }
        let room = usize::from(max).saturating_sub(self.cells().width(self.glyphs.ellipsis));
        let mut start = text.len();
        for (at, _) in text.grapheme_indices(true).rev() {
            if self.cells().width(&text[at..]) > room {
                break;
            }
            start = at;
        }
        self.cut(&format!("{}{}", self.glyphs.ellipsis, &text[start..]), max)
    }

    /// `text` in exactly `width` cells.
    pub fn fit(&self, text: &str, width: u16, align: Align) -> String {
        let cut = self.cut(text, width);
        self.cells().pad(&cut, usize::from(width), align).into_owned()
    }
}

/// Writes `text` from (`x`, `y`) in at most `max` cells, only inside `area`; the cells it took. Widths are those that
/// layout counts with, whatever ratatui would count: what follows is placed by its column.
pub fn put(buf: &mut Buffer, area: Rect, (x, y): (u16, u16), text: &str, max: u16, style: Style, look: &Look) -> u16 {
    let area = area.intersection(buf.area);
    if x < area.x || x >= area.right() || y < area.y || y >= area.bottom() {
        return 0;
    }
    let max = max.min(area.right() - x);
    let text = look.cut(text, max);
    let cells = look.cells();
    let (mut at, mut last) = (x, None);
    for grapheme in text.graphemes(true).filter(|g| !g.contains(char::is_control)) {
        let width = cells.width(grapheme) as u16;
        let Some(forced) = NonZeroU16::new(width) else {
            // A mark without a letter belongs to what is before it.
            if let Some(before) = last {
                let joined = format!("{}{grapheme}", buf[(before, y)].symbol());
                let width = NonZeroU16::new(at - before);
                buf[(before, y)].set_symbol(&joined).set_diff_option(width.map_or(NONE, CellDiffOption::ForcedWidth));
            }
            continue;
        };
        if width > max - (at - x) {
            break;
        }
        for covered in at..at + width {
            buf[(covered, y)].reset();
        }
        let cell = &mut buf[(at, y)];
        cell.set_symbol(grapheme).set_style(style);
        if cell.cell_width() != width {
            cell.set_diff_option(CellDiffOption::ForcedWidth(forced));
        }
        last = Some(at);
        at += width;
    }
    at - x
}

const NONE: CellDiffOption = CellDiffOption::None;

/// Most cells of one glyph: conjuncts of Indic scripts are as wide as their letters together.
const WIDEST: u16 = 8;

/// Fills `area` with blanks in `style`, and frees the cell to its left from a wide glyph that would reach into it
/// (the terminal would draw that glyph over our border).
pub fn blank(buf: &mut Buffer, area: Rect, style: Style) {
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        for back in 1..=WIDEST.min(area.x - buf.area.x) {
            if let Some(cell) = buf.cell_mut((area.x - back, y))
                && cell.cell_width() > back
            {
                cell.set_symbol(" ").set_diff_option(CellDiffOption::None);
            }
        }
        for x in area.left()..area.right() {
            if let Some(cell) = buf.cell_mut((x, y)) {
                cell.reset();
                cell.set_style(style);
            }
        }
    }
}

/// Draws a frame with a title and returns what is inside.
pub fn frame(buf: &mut Buffer, area: Rect, title: &str, focused: bool, look: &Look) -> Rect {
    let area = area.intersection(buf.area);
    if area.width < 2 || area.height < 2 {
        return Rect::new(area.x, area.y, 0, 0);
    }
    let theme = &look.theme;
    let style = if focused { theme.focus } else { theme.border };
    let [h, v, tl, tr, br, bl] = look.glyphs.frame;
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    for x in area.x + 1..right {
        for y in [area.y, bottom] {
            buf[(x, y)].set_symbol(h).set_style(style);
        }
    }
    for y in area.y + 1..bottom {
        for x in [area.x, right] {
            buf[(x, y)].set_symbol(v).set_style(style);
        }
    }
    for (x, y, corner) in [(area.x, area.y, tl), (right, area.y, tr), (right, bottom, br), (area.x, bottom, bl)] {
        buf[(x, y)].set_symbol(corner).set_style(style);
    }
    if !title.is_empty() && area.width > 4 {
        let title = look.cut(&format!(" {title} "), area.width - 4);
        let style = if focused { theme.accent } else { theme.title };
        // Not in the colour of the line that it is on.
        let style = Style::reset().patch(theme.text).patch(style);
        let at = (area.x + 2, area.y);
        put(buf, area, at, &title, area.width - 4, style, look);
    }
    Rect::new(area.x + 1, area.y + 1, area.width - 2, area.height - 2)
}

/// The first line to show so that `selected` stays among `height` of `len` lines, moving `offset` as little as
/// possible.
pub fn follow(offset: usize, selected: usize, height: usize, len: usize) -> usize {
    let lowest = len.saturating_sub(height);
    let offset = if selected < offset {
        selected
    } else if selected >= offset.saturating_add(height) {
        (selected + 1).saturating_sub(height)
    } else {
        offset
    };
    offset.min(lowest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_characters_take_two_cells_where_the_terminal_draws_two() {
        use crate::app::settings::GlyphSet;
        use crate::tui::theme::Depth;
        let drawn = |set| {
            let theme = Theme::new("dark", Depth::None);
            let look = Look::new(theme, Glyphs::of(set), Lang::Zh);
            let area = Rect::new(0, 0, 8, 1);
            let mut buf = Buffer::empty(area);
            // No glyph set can replace every word of a user.
            let used = put(&mut buf, area, (0, 0), "①b水", 8, Style::new(), &look);
            let sent: Vec<_> =
                Buffer::empty(area).diff(&buf).iter().map(|(x, _, c)| (*x, c.symbol().to_owned())).collect();
            (used, sent)
        };
        let sent = |b, water| [(0, "①"), (b, "b"), (water, "水")].map(|(x, s)| (x, s.to_owned()));
        assert_eq!(drawn(GlyphSet::Unicode), (4, sent(1, 2).to_vec()));
        assert_eq!(drawn(GlyphSet::CjkSafe), (5, sent(2, 3).to_vec()));
        assert_eq!(drawn(GlyphSet::Ascii), (4, sent(1, 2).to_vec()));
    }

    /// The text that a row of a buffer holds, as a terminal shows it: what a glyph covers is part of it.
    fn held(buf: &Buffer, y: u16, from: u16, to: u16) -> String {
        let mut text = String::new();
        let mut x = from;
        while x < to {
            let cell = &buf[(x, y)];
            text.push_str(cell.symbol());
            x += cell.cell_width().max(1);
        }
        text
    }

    const WORDS: [&str; 14] = [
        "ﾊﾟﾀｰﾝ",
        "ｶﾞｷﾞ",
        "क्ष्म",
        "हिन्दी",
        "தமிழ்",
        "ภาษาไทย",
        "العربية",
        "עברית",
        "한국어",
        "我爱水",
        "é e\u{301}",
        "👨‍👩‍👧 🇨🇳",
        "①√",
        "a\u{200d}b",
    ];

    proptest::proptest! {
        #[test]
        fn words_of_any_script_keep_their_place_at_every_size(
            a in 0..WORDS.len(), b in 0..WORDS.len(), max in 1_u16..24, at in 0_u16..6, wide in proptest::bool::ANY,
        ) {
            use crate::app::settings::GlyphSet;
            use crate::tui::theme::Depth;
            let set = if wide { GlyphSet::CjkSafe } else { GlyphSet::Unicode };
            let look = Look::new(Theme::new("dark", Depth::None), Glyphs::of(set), Lang::Zh);
            let area = Rect::new(0, 0, 40, 1);
            let mut buf = Buffer::empty(area);
            let text = format!("{} {}|", WORDS[a], WORDS[b]);
            let used = put(&mut buf, area, (at, 0), &text, max, Style::new(), &look);
            let after = put(&mut buf, area, (at + used, 0), "END", 3, Style::new(), &look);
            proptest::prop_assert!(used <= max);
            proptest::prop_assert_eq!(after, 3);
            // All of it is there, or all that fits and a mark of what does not; and what follows is whole.
            let shown = held(&buf, 0, at, at + used);
            proptest::prop_assert_eq!(&shown, &look.cut(&text, max));
            proptest::prop_assert_eq!(look.cells().width(&shown), usize::from(used));
            proptest::prop_assert_eq!(held(&buf, 0, at + used, at + used + 3), "END");
        }
    }

    #[test]
    fn the_end_of_a_text_is_kept() {
        let theme = Theme::new("dark", crate::tui::theme::Depth::None);
        let look = Look::new(theme, Glyphs::of(crate::app::settings::GlyphSet::Unicode), Lang::En);
        assert_eq!(look.cut_start("encoder.0.out", 13), "encoder.0.out");
        assert_eq!(look.cut_start("encoder.0.out", 6), "…0.out");
        assert_eq!(look.cut_start("水水水", 4), "…水");
        assert_eq!(look.cut_start("水", 0), "");
    }

    #[test]
    fn following_moves_as_little_as_possible() {
        assert_eq!(follow(0, 5, 10, 20), 0);
        assert_eq!(follow(0, 10, 10, 20), 1);
        assert_eq!(follow(8, 3, 10, 20), 3);
        assert_eq!(follow(15, 19, 10, 20), 10);
        assert_eq!(follow(usize::MAX, 0, 0, 0), 0);
        assert_eq!(follow(3, 9, 0, 10), 10);
    }
}
