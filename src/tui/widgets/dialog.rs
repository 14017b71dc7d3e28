//! What lies over the screen: popups, a form, a list, the line being typed with its completions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::edit::Editor;
use crate::app::overlay::Prompt;
use crate::text::{Align, Msg, tr};
use crate::tui::draw::{Look, blank, follow, frame, put};

/// A frame over the middle of `screen` with room for `width` × `height` cells; returns the room.
pub fn popup(screen: Rect, buf: &mut Buffer, title: &str, (width, height): (u16, u16), look: &Look) -> Rect {
    let screen = screen.intersection(buf.area);
    let width = width.saturating_add(2).min(screen.width);
    let height = height.saturating_add(2).min(screen.height);
    let area = Rect::new(screen.x + (screen.width - width) / 2, screen.y + (screen.height - height) / 2, width, height);
    blank(buf, area, look.theme.text);
    frame(buf, area, title, true, look)
}

/// Draws a line being edited, scrolled so that its cursor is seen; returns where the cursor is.
pub fn editor(area: Rect, buf: &mut Buffer, editor: &Editor, look: &Look) -> Option<(u16, u16)> {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return None;
    }
    let before = look.text(editor.before_cursor()).into_owned();
    let after = look.text(&editor.text()[editor.before_cursor().len()..]).into_owned();
    let room = usize::from(area.width - 1);
    // What is before the cursor loses its beginning where it is too long.
    let mut start = before.as_str();
    while look.cells().width(start) > room {
        let (head, _) = look.cells().prefix(start, 1);
        let cut = head.len().max(start.chars().next().map_or(1, char::len_utf8));
        start = &start[cut..];
    }
    let style = look.theme.text;
    let used = put(buf, area, (area.x, area.y), start, area.width, style, look);
    let x = area.x + used;
    put(buf, area, (x, area.y), &after, area.right() - x, style, look);
    let at = x.min(area.right() - 1);
    // Shown by us, as the terminal's own cursor stays hidden.
    if let Some(cell) = buf.cell_mut((at, area.y)) {
        cell.set_style(look.theme.cursor);
    }
    Some((at, area.y))
}

/// Draws the line being typed on the last line of `screen`, its completions above it.
pub fn prompt(screen: Rect, buf: &mut Buffer, prompt: &Prompt, look: &Look) {
    let screen = screen.intersection(buf.area);
    if screen.is_empty() {
        return;
    }
    let line = Rect::new(screen.x, screen.bottom() - 1, screen.width, 1);
    blank(buf, line, look.theme.text);
    let sign = prompt.kind.sign();
    let used = put(buf, line, (line.x, line.y), sign, line.width, look.theme.key, look);
    let rest = Rect::new(line.x + used, line.y, line.width - used, 1);
    editor(rest, buf, &prompt.editor, look);
    let n = prompt.completions.len();
    let height = n.min(12).min(usize::from(screen.height.saturating_sub(2)));
    if let Some(found) = prompt.found {
        let count = Msg::new("tui.search.found").arg("count", found).render(look.lang);
        let width = look.width(&count).min(line.width / 2);
        let style = if found == 0 { look.theme.bad } else { look.theme.accent };
        put(buf, line, (line.right() - width, line.y), &count, width, style, look);
    }
    if height == 0 {
        return;
    }
    if n > height && prompt.found.is_none() {
        // Which of how many, as not all are seen.
        let at = prompt.selected.map_or(1, |s| s + 1);
        let count = format!(" {at}/{n}");
        let width = look.width(&count).min(line.width);
        let x = line.right() - width;
        put(buf, line, (x, line.y), &count, width, look.theme.dim, look);
    }
    let about = |key: &str| {
        if key.is_empty() { "" } else { tr(look.lang, key) }
    };
    let rows: Vec<_> = prompt.completions.iter().map(|c| (c.label.as_str(), about(c.about))).collect();
    let label = rows.iter().map(|r| look.width(r.0)).max().unwrap_or(0);
    let width = rows.iter().map(|r| look.width(r.1)).max().unwrap_or(0);
    let width = label.saturating_add(2).saturating_add(width).saturating_add(1).min(screen.width);
    let area = Rect::new(screen.x, line.y - height as u16, width, height as u16);
    blank(buf, area, look.theme.text);
    let selected = prompt.selected.unwrap_or(0);
    let first = follow(0, selected, height, n);
    for (y, (i, (name, about))) in (area.y..area.bottom()).zip(rows.iter().enumerate().skip(first)) {
        let here = prompt.selected == Some(i);
        let (a, b) = if here {
            (look.theme.accent.patch(look.theme.cursor), look.theme.cursor)
        } else {
            (look.theme.accent, look.theme.dim)
        };
        let text = look.fit(name, label.saturating_add(2), Align::Left);
        let used = put(buf, area, (area.x, y), &text, area.width, a, look);
        let left = area.width - used;
        let text = look.fit(about, left, Align::Left);
        put(buf, area, (area.x + used, y), &text, left, b, look);
    }
}

/// A field of a form.
pub enum Field<'a> {
    /// One of several words.
    Choice {
        /// Its name.
        label: &'a str,
        /// The words.
        words: &'a [&'a str],
        /// Which one is chosen.
        chosen: usize,
    },
    /// A line of text.
    Line {
        /// Its name.
        label: &'a str,
        /// The text.
        editor: &'a Editor,
    },
}

/// Draws the fields of a form, one a line; `focus` is the one that keys go to.
pub fn form(area: Rect, buf: &mut Buffer, fields: &[Field], focus: usize, look: &Look) {
    let area = area.intersection(buf.area);
    let name = |f: &Field| match f {
        Field::Choice { label, .. } | Field::Line { label, .. } => look.width(label),
    };
    let label = fields.iter().map(name).max().unwrap_or(0).min(area.width / 2);
    for (i, (y, field)) in (area.y..area.bottom()).zip(fields).enumerate() {
        let here = i == focus;
        let style = if here { look.theme.accent } else { look.theme.label };
        let (Field::Choice { label: text, .. } | Field::Line { label: text, .. }) = field;
        let mark = if here { look.glyphs.here } else { " " };
        let mut x = area.x + put(buf, area, (area.x, y), mark, 1, style, look);
        let text = look.fit(text, label, Align::Left);
        x += put(buf, area, (x, y), &text, label, style, look);
        x = x.saturating_add(1).min(area.right());
        let rest = Rect::new(x, y, area.right() - x, 1);
        match field {
            Field::Choice { words, chosen, .. } => {
                // The chosen word is seen also where not all fit: the words before it go.
                let fits = |from: usize| {
                    let cells: usize = words[from..=*chosen].iter().map(|w| usize::from(look.width(w)) + 3).sum();
                    cells <= usize::from(rest.width)
                };
                let chosen = *chosen;
                if chosen >= words.len() {
                    continue;
                }
                let from = (0..=chosen).find(|f| fits(*f)).unwrap_or(chosen);
                for (w, word) in words.iter().enumerate().skip(from) {
                    let (text, style) = if w == chosen {
                        let style = if here { look.theme.cursor } else { look.theme.accent };
                        (format!("[{word}]"), style)
                    } else {
                        (format!(" {word} "), look.theme.dim)
                    };
                    let left = area.right().saturating_sub(x);
                    x += put(buf, area, (x, y), &text, left, style, look);
                    x = x.saturating_add(1);
                }
            }
            Field::Line { editor: line, .. } if here => {
                editor(rest, buf, line, look);
            }
            Field::Line { editor: line, .. } => {
                put(buf, rest, (x, y), line.text(), rest.width, look.theme.text, look);
            }
        }
    }
}
