//! A foldable list: the step list, the why-tree. The caller gives the visible lines; only those on the screen are
//! asked for.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::text::Align;
use crate::tui::draw::{Look, blank, follow, put};

/// What a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Branch {
    /// It has nothing below.
    #[default]
    Leaf,
    /// What is below is hidden.
    Folded,
    /// What is below follows.
    Unfolded,
}

/// What a line is marked with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "marks come in any combination")]
pub struct Marks {
    /// A check failed there.
    pub failed: bool,
    /// It is bookmarked.
    pub bookmark: bool,
    /// It has a breakpoint.
    pub breakpoint: bool,
    /// A change changed it.
    pub changed: bool,
    /// A search found it.
    pub found: bool,
    /// How it compares with a reference; `None` where nothing was compared.
    pub compared: Option<Compared>,
}

/// How a line compares with a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// It agrees.
    Match,
    /// It is off by rounding.
    Drift,
    /// It differs.
    Differs,
    /// It is not in the reference.
    Unknown,
}

impl Compared {
    fn glyph(self, look: &Look) -> (&'static str, Style) {
        let (g, theme) = (look.glyphs, &look.theme);
        match self {
            Self::Match => (g.passed, theme.good),
            Self::Drift => ("~", theme.warn),
            Self::Differs => (g.failed, theme.bad),
            Self::Unknown => ("?", theme.dim),
        }
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// How deep it lies.
    pub depth: u16,
    /// What it is.
    pub branch: Branch,
    /// The text. Untrusted.
    pub text: String,
    /// What is at its right end, such as a range of numbers.
    pub right: String,
    /// What it is marked with.
    pub marks: Marks,
    /// Whether it matters less.
    pub dim: bool,
}

/// The list.
pub struct Tree<'a> {
    /// Number of lines.
    pub len: usize,
    /// A line.
    pub line: &'a dyn Fn(usize) -> Line,
    /// The current line.
    pub selected: Option<usize>,
    /// First line to show; moved where the current line would be out of sight.
    pub offset: usize,
    /// Whether it has the focus.
    pub focused: bool,
}

impl Tree<'_> {
    /// Draws the list; returns the first line shown.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> usize {
        let area = area.intersection(buf.area);
        let height = usize::from(area.height);
        let offset = match self.selected {
            Some(at) => follow(self.offset, at, height, self.len),
            None => self.offset.min(self.len.saturating_sub(height)),
        };
        for (y, at) in (area.y..area.bottom()).zip(offset..self.len) {
            let line = (self.line)(at);
            let here = self.selected == Some(at);
            self.line(&line, here, Rect::new(area.x, y, area.width, 1), buf, look);
        }
        offset
    }

    fn line(&self, line: &Line, here: bool, area: Rect, buf: &mut Buffer, look: &Look) {
        let theme = &look.theme;
        let g = look.glyphs;
        let style = match (here, self.focused) {
            (true, true) => theme.text.patch(theme.cursor),
            (true, false) => theme.accent,
            _ if line.marks.found => theme.found,
            _ if line.dim => theme.dim,
            _ => theme.text,
        };
        if here && self.focused {
            blank(buf, area, style);
        }
        let indent = line.depth.saturating_mul(2).min(area.width / 2);
        let mut x = area.x + indent;
        let sign = match (line.branch, here) {
            (Branch::Folded, _) => g.folded,
            (Branch::Unfolded, _) => g.unfolded,
            (Branch::Leaf, true) => g.here,
            (Branch::Leaf, false) => " ",
        };
        let left = |x: u16| area.right().saturating_sub(x);
        x += put(buf, area, (x, area.y), sign, left(x), style, look);
        x += put(buf, area, (x, area.y), " ", left(x), style, look);
        let marks: [(bool, &str, Style); 4] = [
            (line.marks.failed, g.failed, theme.bad),
            (line.marks.breakpoint, g.breakpoint, theme.bad),
            (line.marks.changed, g.changed, theme.changed),
            (line.marks.bookmark, g.bookmark, theme.accent),
        ];
        for (_, glyph, own) in marks.iter().filter(|m| m.0) {
            let style = if here { style } else { *own };
            x += put(buf, area, (x, area.y), glyph, left(x), style, look);
        }
        if let Some(compared) = line.marks.compared {
            let (glyph, own) = compared.glyph(look);
            x += put(buf, area, (x, area.y), glyph, left(x), if here { style } else { own }, look);
            x += put(buf, area, (x, area.y), " ", left(x), style, look);
        }
        let right = look.width(&line.right);
        // The right part goes where the text would be left with next to nothing.
        let right = if left(x) > right.saturating_add(8) { right } else { 0 };
        let room = left(x).saturating_sub(if right > 0 { right + 1 } else { 0 });
        put(buf, area, (x, area.y), &line.text, room, style, look);
        if right > 0 {
            let at = area.right() - right;
            let style = if here { style } else { theme.dim };
            let text = look.fit(&line.right, right, Align::Right);
            put(buf, area, (at, area.y), &text, right, style, look);
        }
    }
}
