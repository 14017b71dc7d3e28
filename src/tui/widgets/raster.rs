//! A tensor as a picture: two pixels a character cell where the terminal has colours and block glyphs, one coloured
//! cell a pixel where it has only colours, a sign and a shade where it has none.
//!
//! A pixel covers a rectangle of cells; what it shows is the caller's answer over every one of them. Where the tensor
//! has fewer cells than the area has pixels, each cell takes a block of pixels.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::app::settings::GlyphSet;
use crate::text::Align;
use crate::tui::colour::{CellKind, contrasting};
use crate::tui::draw::{Look, put};
use crate::tui::scale::Scale;
use crate::tui::theme::Depth;

/// Value and kind of each of these parts of the tensor (rows × columns), row after row.
pub type Sample<'a> = dyn Fn(&[Range<usize>], &[Range<usize>]) -> Vec<(f64, CellKind)> + 'a;
/// The label of a row or a column.
pub type Label<'a> = dyn Fn(usize) -> String + 'a;

/// A picture of a tensor.
pub struct Raster<'a> {
    /// The part of the tensor to show.
    pub rows: Range<usize>,
    /// The part of the tensor to show.
    pub columns: Range<usize>,
    /// What the pixels show.
    pub sample: &'a Sample<'a>,
    /// Colours of values.
    pub scale: Scale,
    /// The cursor cell.
    pub cursor: Option<(usize, usize)>,
    /// A window to point out: rows and columns.
    pub window: Option<(Range<usize>, Range<usize>)>,
    /// Labels along the left side, where there is room.
    pub row_label: Option<&'a Label<'a>>,
    /// Labels along the top, where there is room.
    pub column_label: Option<&'a Label<'a>>,
    /// Most character cells that one cell of the tensor takes: columns and rows.
    pub most: (u16, u16),
}

/// What is where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The picture on the screen.
    pub area: Rect,
    /// Rows of the tensor in each line of the screen.
    pub rows: Vec<Range<usize>>,
    /// Columns of the tensor in each column of the screen.
    pub columns: Vec<Range<usize>>,
    /// Everything that was drawn on, labels too.
    pub used: Rect,
}

impl Shown {
    /// The first cell of the pixel at a place of the screen.
    pub fn hit(&self, x: u16, y: u16) -> Option<(usize, usize)> {
        let row = self.rows.get(usize::from(y.checked_sub(self.area.y)?))?;
        let column = self.columns.get(usize::from(x.checked_sub(self.area.x)?))?;
        Some((row.start, column.start))
    }
}

/// How pixels become characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ink {
    /// `▀`: two pixels a cell.
    Halves,
    /// A coloured cell.
    Cells,
    /// A sign and a shade: two characters.
    Glyphs,
}

impl Ink {
    fn of(look: &Look) -> Self {
        match look.theme.depth {
            Depth::None => Self::Glyphs,
            // Of the sixteen colours one is "none": it is no colour of a text.
            Depth::Ansi16 => Self::Cells,
            _ if look.glyphs.set == GlyphSet::Unicode => Self::Halves,
            _ => Self::Cells,
        }
    }

    /// Pixels of an area: columns and rows.
    fn pixels(self, width: u16, height: u16) -> (usize, usize) {
        match self {
            Self::Halves => (usize::from(width), usize::from(height) * 2),
            Self::Cells => (usize::from(width), usize::from(height)),
            Self::Glyphs => (usize::from(width / 2), usize::from(height)),
        }
    }
}

/// Least screen cells between the labels of two columns.
const LABEL_GAP: u16 = 1;
/// Most cells that row labels take.
const GUTTER: u16 = 10;

/// `range` in at most `most` parts of nearly the same length, none empty.
pub fn split(range: &Range<usize>, most: usize) -> Vec<Range<usize>> {
    let n = range.len().min(most);
    // 128 bits: a range may be longer than the product of lengths that fits in 64.
    let at = |i: usize| range.start + (range.len() as u128 * i as u128 / n as u128) as usize;
    (0..n).map(|i| at(i)..at(i + 1)).collect()
}

impl Raster<'_> {
    /// Draws the picture.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> Shown {
        let whole = area.intersection(buf.area);
        if whole.is_empty() || self.rows.is_empty() || self.columns.is_empty() {
            return Shown::default();
        }
        let ink = Ink::of(look);
        let area = self.inner(whole, look);
        let (wide, tall) = ink.pixels(area.width, area.height);
        let (most_x, most_y) = match ink {
            Ink::Halves => (usize::from(self.most.0), usize::from(self.most.1) * 2),
            Ink::Cells => (usize::from(self.most.0), usize::from(self.most.1)),
            Ink::Glyphs => (usize::from(self.most.0 / 2).max(1), usize::from(self.most.1)),
        };
        // Parts of the tensor, and the pixels that they take together: as many for each where that leaves little room
        // unused, else all of it.
        let (of_columns, of_rows) = (split(&self.columns, wide), split(&self.rows, tall));
        let total = |n: usize, pixels: usize, most: usize, step: usize| {
            let room = pixels.min(n * most.max(1));
            let each = (room / n.max(1)).max(1);
            let even = n * if each > 1 { each - each % step } else { each };
            if even * 100 >= room * 86 { even } else { room }
        };
        let across = total(of_columns.len(), wide, most_x, 1);
        // A cell begins at the top of a character where there is room for that.
        let down = total(of_rows.len(), tall, most_y, if ink == Ink::Halves { 2 } else { 1 });
        if of_columns.is_empty() || of_rows.is_empty() {
            return Shown::default();
        }
        let values = (self.sample)(&of_rows, &of_columns);
        let columns: Vec<usize> = (0..across).map(|i| i * of_columns.len() / across).collect();
        let rows: Vec<usize> = (0..down).map(|i| i * of_rows.len() / down).collect();
        // The cursor is in the middle of its cell.
        let middle = |k: usize| {
            let first = columns.partition_point(|c| *c < k);
            first + (columns.partition_point(|c| *c <= k) - first - 1) / 2
        };
        let per = if ink == Ink::Halves { 2 } else { 1 };
        let mut seen: Vec<Range<usize>> = Vec::new();
        for (y, pair) in (area.y..area.bottom()).zip(rows.chunks(per)) {
            let both = of_rows[pair[0]].start..of_rows[pair[pair.len() - 1]].end;
            for (i, &k) in columns.iter().enumerate() {
                let c = &of_columns[k];
                let at = |r: usize| values[r * of_columns.len() + k];
                let here = self.cursor.is_some_and(|(r, k)| both.contains(&r) && c.contains(&k));
                let inside = self.window.as_ref().is_some_and(|(r, k)| {
                    r.start < both.end && both.start < r.end && k.start < c.end && c.start < k.end
                });
                if ink == Ink::Glyphs {
                    self.glyphs(at(pair[0]), (area.x + 2 * i as u16, y), here, inside, whole, buf, look);
                } else {
                    let here = here && i == middle(k);
                    let low = pair.get(1).map(|r| at(*r));
                    self.blocks(at(pair[0]), low, (area.x + i as u16, y), here, inside, buf, look);
                }
            }
            seen.push(both);
        }
        let columns: Vec<Range<usize>> = columns.iter().map(|k| of_columns[*k].clone()).collect();
        let wide = if ink == Ink::Glyphs { columns.len() * 2 } else { columns.len() } as u16;
        let columns = match ink {
            Ink::Glyphs => columns.iter().flat_map(|c| [c.clone(), c.clone()]).collect(),
            _ => columns,
        };
        let picture = Rect::new(area.x, area.y, wide, seen.len() as u16);
        let used = Rect::new(whole.x, whole.y, picture.right() - whole.x, picture.bottom() - whole.y);
        let shown = Shown { area: picture, rows: seen, columns, used };
        self.labels(&shown, whole, buf, look);
        shown
    }

    #[allow(clippy::too_many_arguments, reason = "one character of a picture")]
    fn blocks(
        &self,
        top: (f64, CellKind),
        low: Option<(f64, CellKind)>,
        (x, y): (u16, u16),
        here: bool,
        inside: bool,
        buf: &mut Buffer,
        look: &Look,
    ) {
        let colour = |p: (f64, CellKind)| self.scale.pixel(p.0, p.1, &look.theme, &look.palette);
        let above = colour(top);
        let below = low.map_or(above, colour);
        let Some(cell) = buf.cell_mut((x, y)) else { return };
        let ground = above.or(below);
        let mut style = Style::new();
        if here {
            let ink = ground.map_or(Color::Reset, |c| contrasting(c, look.theme.depth));
            style = style.fg(ink).add_modifier(Modifier::BOLD);
            if let Some(ground) = ground {
                style = style.bg(ground);
            }
            cell.set_symbol("+").set_style(style);
            return;
        }
        // Only one half has a colour: the other is the terminal's ground.
        let symbol = match (above, below) {
            (Some(a), Some(b)) if a == b => " ",
            (Some(_), _) if low.is_some() => "▀",
            (None, Some(_)) if low.is_some() => "▄",
            _ => " ",
        };
        style = match (symbol, above, below) {
            ("▀", Some(a), Some(b)) => style.fg(a).bg(b),
            ("▀", Some(a), None) => style.fg(a),
            ("▄", _, Some(b)) => style.fg(b),
            (_, Some(a), _) => style.bg(a),
            _ => style,
        };
        if inside {
            style = style.add_modifier(Modifier::UNDERLINED);
        }
        cell.set_symbol(symbol).set_style(style);
    }

    #[allow(clippy::too_many_arguments, reason = "one character of a picture")]
    fn glyphs(
        &self,
        (value, kind): (f64, CellKind),
        at: (u16, u16),
        here: bool,
        inside: bool,
        area: Rect,
        buf: &mut Buffer,
        look: &Look,
    ) {
        let shades = look.glyphs.shades;
        let most = (shades.len() - 1) as f64;
        let mut style = self.scale.style(value, kind, &look.theme, &look.palette);
        let text = match kind {
            CellKind::Masked => "..".to_owned(),
            CellKind::Nan => "NN".to_owned(),
            CellKind::PosInf => "+I".to_owned(),
            CellKind::NegInf => "-I".to_owned(),
            CellKind::Value | CellKind::Plain => {
                let sign = if value < 0.0 { "-" } else { " " };
                let shade = (self.scale.magnitude(value) * most).round() as usize;
                format!("{sign}{}", shades[shade.min(shades.len() - 1)])
            }
        };
        if inside {
            style = style.patch(look.theme.lit);
        }
        if here {
            style = style.patch(look.theme.cursor);
        }
        put(buf, area, at, &text, 2, style, look);
    }

    /// The room that labels leave for the picture.
    fn inner(&self, area: Rect, look: &Look) -> Rect {
        let mut inner = area;
        if let Some(label) = self.row_label
            && area.width > 12
        {
            let some = split(&self.rows, 24);
            let gutter = some.iter().map(|r| look.width(&label(r.start))).max().unwrap_or(0);
            let gutter = gutter.min(GUTTER).min(area.width / 3);
            if gutter > 0 {
                inner.x += gutter + 1;
                inner.width -= gutter + 1;
            }
        }
        if self.column_label.is_some() && area.height > 3 {
            inner.y += 1;
            inner.height -= 1;
        }
        inner
    }

    fn labels(&self, shown: &Shown, area: Rect, buf: &mut Buffer, look: &Look) {
        let style = look.theme.label;
        let strong = style.add_modifier(Modifier::BOLD);
        if let Some(label) = self.row_label
            && shown.area.x > area.x
        {
            let gutter = shown.area.x - area.x - 1;
            let mut last: Option<usize> = None;
            // Numbers every few lines; words at each cell.
            let dense = self.rows.len() > shown.rows.len();
            for (y, r) in (shown.area.y..).zip(&shown.rows) {
                if last == Some(r.start) || dense && !(y - shown.area.y).is_multiple_of(4) {
                    continue;
                }
                last = Some(r.start);
                let at = self.cursor.is_some_and(|c| r.contains(&c.0));
                let text = look.fit(&label(r.start), gutter, Align::Right);
                put(buf, area, (area.x, y), &text, gutter, if at { strong } else { style }, look);
            }
        }
        if let Some(label) = self.column_label
            && shown.area.y > area.y
        {
            let mut free = shown.area.x;
            let mut last: Option<usize> = None;
            for (x, c) in (shown.area.x..).zip(&shown.columns) {
                if last == Some(c.start) || x < free {
                    continue;
                }
                last = Some(c.start);
                // Each cell has its own label, cut to its room; of many only some have one.
                let room = shown.columns.iter().filter(|o| **o == *c).count() as u16;
                let text = label(c.start);
                let single = c.len() == 1 && room > 2;
                let text = if single { look.cut(&text, room - 1) } else { text };
                let width = look.width(&text);
                if width > shown.area.right().saturating_sub(x) {
                    continue;
                }
                let at = self.cursor.is_some_and(|k| c.contains(&k.1));
                put(buf, area, (x, area.y), &text, width, if at { strong } else { style }, look);
                free = x.saturating_add(width).saturating_add(if single { LABEL_GAP } else { 3 });
            }
        }
    }
}
