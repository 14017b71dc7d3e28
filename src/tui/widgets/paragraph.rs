//! Wrapped text in several styles, some parts of which can be chosen (the operands of a derivation).

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::tui::draw::{Look, put};

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The text. Untrusted; a newline ends a line.
    pub text: String,
    /// Its style.
    pub style: Style,
    /// What it denotes, where it can be chosen.
    pub id: Option<usize>,
}

impl Span {
    /// A part that cannot be chosen.
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, id: None }
    }

    /// A part that denotes `id`.
    #[must_use]
    pub fn with_id(mut self, id: usize) -> Self {
        self.id = Some(id);
        self
    }
}

/// A piece of a line: where it is in the text, its style, what it denotes.
type Piece = (std::ops::Range<usize>, Style, Option<usize>);

/// A text wrapped to a width.
#[derive(Clone, Debug, Default)]
pub struct Wrapped {
    text: String,
    lines: Vec<Vec<Piece>>,
}

impl Wrapped {
    /// Wraps `spans` to `width` cells.
    pub fn new(spans: &[Span], width: u16, look: &Look) -> Self {
        let mut text = String::new();
        let mut ends = Vec::with_capacity(spans.len());
        for span in spans {
            for (i, line) in span.text.split('\n').enumerate() {
                if i > 0 {
                    text.push('\n');
                }
                text.push_str(&look.text(line));
            }
            ends.push(text.len());
        }
        let mut lines = Vec::new();
        for line in look.cells().wrap(&text, usize::from(width)) {
            // A line is a part of the text: its address says which.
            let start = line.as_ptr() as usize - text.as_ptr() as usize;
            let end = start + line.len();
            let mut pieces = Vec::new();
            let mut at = start;
            let mut span = ends.partition_point(|e| *e <= start);
            while at < end && span < spans.len() {
                let until = ends[span].min(end);
                if until > at {
                    pieces.push((at..until, spans[span].style, spans[span].id));
                }
                at = until;
                span += 1;
            }
            lines.push(pieces);
        }
        Self { text, lines }
    }

    /// Number of lines.
    pub fn height(&self) -> usize {
        self.lines.len()
    }

    /// The first line that holds `id`.
    pub fn line_of(&self, id: usize) -> Option<usize> {
        self.lines.iter().position(|l| l.iter().any(|p| p.2 == Some(id)))
    }

    /// Draws from line `scroll` on, with `chosen` under the cursor; returns where the parts with an id are.
    pub fn render(
        &self,
        area: Rect,
        buf: &mut Buffer,
        scroll: usize,
        chosen: Option<usize>,
        look: &Look,
    ) -> Vec<(Rect, usize)> {
        let area = area.intersection(buf.area);
        let mut places = Vec::new();
        let scroll = scroll.min(self.height().saturating_sub(usize::from(area.height)));
        for (y, pieces) in (area.y..area.bottom()).zip(self.lines.iter().skip(scroll)) {
            let mut x = area.x;
            for (range, style, id) in pieces {
                let style = match id {
                    Some(_) if *id == chosen => style.patch(look.theme.cursor),
                    _ => *style,
                };
                let left = area.right().saturating_sub(x);
                let used = put(buf, area, (x, y), &self.text[range.clone()], left, style, look);
                if let Some(id) = id
                    && used > 0
                {
                    places.push((Rect::new(x, y, used, 1), *id));
                }
                x += used;
            }
        }
        // More below than fits: the last line says so.
        if scroll + usize::from(area.height) < self.height() && !area.is_empty() {
            let mark = look.glyphs.more[3];
            let corner = (area.right() - 1, area.bottom() - 1);
            put(buf, area, corner, mark, 1, look.theme.accent, look);
        }
        places
    }
}
