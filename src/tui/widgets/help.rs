//! Help, made from the keymap.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::keymap::Keymap;
use crate::app::settings::GlyphSet;
use crate::text::{Align, tr};
use crate::tui::draw::{Look, put};

enum Row {
    Title(&'static str),
    Keys(String, String, String),
    Blank,
}

/// Draws help from line `scroll` on; returns the line that was really first, and how many there are.
pub fn render(area: Rect, buf: &mut Buffer, keymap: &Keymap, scroll: usize, look: &Look) -> (usize, usize) {
    let area = area.intersection(buf.area);
    let arrows = look.glyphs.set == GlyphSet::Unicode;
    let mut rows = Vec::new();
    let mut context = None;
    for line in keymap.help() {
        if context != Some(line.context) {
            if context.is_some() {
                rows.push(Row::Blank);
            }
            context = Some(line.context);
            rows.push(Row::Title(tr(look.lang, line.context.key())));
        }
        let keys: Vec<_> = line.keys.iter().map(|k| k.label(arrows)).collect();
        rows.push(Row::Keys(keys.join("  "), format!(":{}", line.action.line()), line.action.describe(look.lang)));
    }
    let widest = |f: &dyn Fn(&Row) -> u16| rows.iter().map(f).max().unwrap_or(0);
    let keys = widest(&|r| match r {
        Row::Keys(keys, ..) => look.width(keys),
        _ => 0,
    });
    let command = widest(&|r| match r {
        Row::Keys(_, command, _) => look.width(command),
        _ => 0,
    });
    let keys = keys.min(area.width / 3);
    // On a narrow screen what a key does matters more than the command's name.
    let command = if area.width >= 70 { command.min(area.width / 4) } else { 0 };
    let first = scroll.min(rows.len().saturating_sub(usize::from(area.height)));
    for (y, row) in (area.y..area.bottom()).zip(rows.iter().skip(first)) {
        match row {
            Row::Blank => {}
            Row::Title(text) => {
                put(buf, area, (area.x, y), text, area.width, look.theme.title, look);
            }
            Row::Keys(k, c, does) => {
                let mut x = area.x;
                let text = look.fit(k, keys, Align::Left);
                x += put(buf, area, (x, y), &text, keys, look.theme.key, look) + 2;
                if command > 0 {
                    let text = look.fit(c, command, Align::Left);
                    x += put(buf, area, (x, y), &text, command, look.theme.dim, look) + 2;
                }
                let left = area.right().saturating_sub(x);
                put(buf, area, (x, y), does, left, look.theme.text, look);
            }
        }
    }
    (first, rows.len())
}
