//! Lines at the edges of the screen: a title line, key hints, the last message.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::action::Action;
use crate::app::keymap::{Context, Keymap};
use crate::app::messages::{Level, Message};
use crate::app::settings::GlyphSet;
use crate::tui::draw::{Look, put};

use super::paragraph::{Span, Wrapped};

/// Draws `left` and `right` at the two ends of a line; the right end goes first where there is little room.
pub fn ends(area: Rect, buf: &mut Buffer, left: &str, right: &str, look: &Look) {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let width = look.width(right).min(area.width);
    // Where both do not fit, the left end keeps at least half.
    let width = if look.width(left).saturating_add(width).saturating_add(1) > area.width {
        width.min(area.width / 2)
    } else {
        width
    };
    let room = area.width - width;
    let room = if width > 0 { room.saturating_sub(1) } else { room };
    put(buf, area, (area.x, area.y), left, room, look.theme.title, look);
    let x = area.right() - width;
    put(buf, area, (x, area.y), right, width, look.theme.dim, look);
}

/// A hint: an action (or two that belong together, such as left and right) and a word for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The actions, whose keys are shown side by side.
    pub actions: Vec<Action>,
    /// The word. From the catalogue.
    pub word: &'static str,
}

/// Draws the hints that fit, whole ones only, the first before the later ones; keys come from the keymap.
pub fn hints(area: Rect, buf: &mut Buffer, hints: &[Hint], keymap: &Keymap, context: Context, look: &Look) {
    let area = area.intersection(buf.area);
    let arrows = look.glyphs.set == GlyphSet::Unicode;
    let mut x = area.x;
    for hint in hints {
        let labels: Vec<_> = hint.actions.iter().filter_map(|a| keymap.label(context, a, arrows)).collect();
        if labels.is_empty() {
            continue;
        }
        let short = labels.iter().all(|l| l.chars().count() == 1);
        let keys = labels.join(if short { "" } else { "/" });
        let width = look.width(&keys).saturating_add(look.width(hint.word)).saturating_add(1);
        if width > area.right().saturating_sub(x) {
            continue;
        }
        x += put(buf, area, (x, area.y), &keys, width, look.theme.key, look) + 1;
        x += put(buf, area, (x, area.y), hint.word, width, look.theme.dim, look) + 2;
    }
}

/// Mark and style of a level.
pub fn level(level: Level, look: &Look) -> (&'static str, Style) {
    match level {
        Level::Info => ("", look.theme.text),
        Level::Done => (look.glyphs.passed, look.theme.good),
        Level::Warning => (look.glyphs.failed, look.theme.warn),
        Level::Error => (look.glyphs.failed, look.theme.bad),
    }
}

fn message_text(message: &Message, look: &Look) -> (String, Style) {
    let (mark, style) = level(message.level, look);
    let mut text = message.text.render(look.lang);
    if !mark.is_empty() {
        text = format!("{mark} {text}");
    }
    if message.times > 1 {
        text = format!("{text} (x{})", message.times);
    }
    (text, style)
}

/// Messages below each other, whole: what is too long for a line goes on in the next one.
pub fn messages<'m>(all: impl Iterator<Item = &'m Message>, width: u16, look: &Look) -> Wrapped {
    let mut spans = Vec::new();
    for message in all {
        let (text, style) = message_text(message, look);
        let end = if spans.is_empty() { "" } else { "\n" };
        spans.push(Span::new(format!("{end}{text}"), style));
    }
    Wrapped::new(&spans, width, look)
}

/// Draws a message.
pub fn message(area: Rect, buf: &mut Buffer, message: &Message, look: &Look) {
    let (text, style) = message_text(message, look);
    put(buf, area, (area.x, area.y), &text, area.width, style, look);
}
