//! What lies over the screen: help, prompts, the palette, forms, questions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::colour::Ramp;
use super::draw::{Look, follow, put};
use super::widgets::dialog::{self, Field};
use super::widgets::paragraph::{Span, Wrapped};
use super::widgets::{help, status};
use crate::app::action::Spec;
use crate::app::args::FORMATS;
use crate::app::keymap::Keymap;
use crate::app::overlay::{ExportForm, Overlay, Palette, Scrolling};
use crate::app::settings::GlyphSet;
use crate::app::ui::Ui;
use crate::text::{Align, tr};

/// Longest bar of a list.
const BAR: u16 = 16;

/// Screens higher than this keep the lines of message and hints free.
const WITH_MESSAGE: u16 = 8;

/// Draws the overlays, the lowest first; returns how far the topmost can be scrolled.
pub fn draw(ui: &Ui, area: Rect, buf: &mut Buffer, look: &Look) -> Scrolling {
    let area = area.intersection(buf.area);
    let mut scrolling = Scrolling::default();
    // A message below (a key that means nothing here) is not covered.
    let said = u16::from(ui.messages.current().is_some() && area.height > WITH_MESSAGE) * 2;
    for overlay in &ui.overlays {
        let lines = if matches!(overlay, Overlay::Prompt(_)) { 0 } else { said };
        let area = Rect { height: area.height - lines, ..area };
        scrolling = one(ui, overlay, area, buf, look).unwrap_or_default();
    }
    scrolling
}

/// How far `lines` can be scrolled inside of `inside`.
fn scrolling(lines: usize, inside: Rect) -> Scrolling {
    let page = usize::from(inside.height);
    let end = lines.saturating_sub(page);
    Scrolling { end, page }
}

fn one(ui: &Ui, overlay: &Overlay, area: Rect, buf: &mut Buffer, look: &Look) -> Option<Scrolling> {
    let tall = area.height.saturating_sub(4);
    let wide = area.width.saturating_sub(8).min(100);
    let word = |key: &str| tr(look.lang, key);
    match overlay {
        Overlay::Prompt(prompt) => dialog::prompt(area, buf, prompt, look),
        Overlay::Help { scroll } => {
            let inside = dialog::popup(area, buf, word("tui.help.title"), (wide, tall), look);
            let (_, lines) = help::render(inside, buf, &ui.keymap, *scroll, look);
            return Some(scrolling(lines, inside));
        }
        Overlay::Palette(palette) => self::palette(palette, &ui.keymap, area, buf, look),
        Overlay::Export(form) => export(form, area, buf, look),
        Overlay::Messages { scroll } => {
            let inside = dialog::popup(area, buf, word("tui.messages.title"), (wide, tall), look);
            let text = status::messages(ui.messages.all(), inside.width, look);
            text.render(inside, buf, *scroll, None, look);
            return Some(scrolling(text.height(), inside));
        }
        Overlay::List { title, items, selected } => {
            let height = (items.len() as u16).min(tall).max(1);
            let inside = dialog::popup(area, buf, &title.render(look.lang), (wide, height), look);
            let first = follow(0, *selected, usize::from(inside.height), items.len());
            // Shares of a sum are bars at the right.
            let bars = if items.iter().any(|i| i.bar.is_some()) && inside.width > 3 * BAR { BAR + 1 } else { 0 };
            for (i, (y, item)) in (inside.y..inside.bottom()).zip(items.iter().skip(first)).enumerate() {
                let style = if first + i == *selected { look.theme.cursor } else { status::level(item.level, look).1 };
                put(buf, inside, (inside.x, y), &item.label, inside.width - bars, style, look);
                if let Some(share) = item.bar.filter(|_| bars > 0) {
                    let t = if share < 0.0 { 0.1 } else { 0.9 };
                    let colour =
                        look.palette.at(Ramp::Diverging, t).map_or(look.theme.text, |c| look.theme.text.fg(c.0));
                    let long = ((share.abs() * f64::from(BAR)).round() as u16).clamp(u16::from(share != 0.0), BAR);
                    let bar = look.glyphs.bar[look.glyphs.bar.len() - 1].repeat(usize::from(long));
                    put(buf, inside, (inside.right() - BAR, y), &bar, BAR, colour, look);
                }
            }
        }
        Overlay::Text { title, body, scroll } => {
            let inside = dialog::popup(area, buf, &title.render(look.lang), (wide, tall), look);
            let text = Wrapped::new(&[Span::new(body.clone(), look.theme.text)], inside.width, look);
            text.render(inside, buf, *scroll, None, look);
            return Some(scrolling(text.height(), inside));
        }
        Overlay::Confirm { question, .. } => {
            let text = format!("{}\n{}", question.render(look.lang), word("tui.confirm.keys"));
            let width = wide.min(60);
            let text = Wrapped::new(&[Span::new(text, look.theme.text)], width, look);
            let height = (text.height() as u16).min(tall);
            let inside = dialog::popup(area, buf, "", (width, height), look);
            text.render(inside, buf, 0, None, look);
        }
    }
    None
}

fn palette(palette: &Palette, keymap: &Keymap, area: Rect, buf: &mut Buffer, look: &Look) {
    let found = palette.found(look.lang);
    let height = (found.len() as u16 + 1).min(area.height.saturating_sub(4)).max(2);
    let width = area.width.saturating_sub(8).min(90);
    let inside = dialog::popup(area, buf, tr(look.lang, "tui.palette.title"), (width, height), look);
    let line = Rect { height: 1.min(inside.height), ..inside };
    let (sign, key) = ("> ", look.theme.key);
    let used = put(buf, line, (line.x, line.y), sign, line.width, key, look);
    let rest = Rect { x: line.x + used, width: line.width - used, ..line };
    dialog::editor(rest, buf, &palette.editor, look);
    let list = Rect { y: inside.y + 1, height: inside.height.saturating_sub(1), ..inside };
    let first = follow(0, palette.selected, usize::from(list.height), found.len());
    for (i, (y, spec)) in (list.y..list.bottom()).zip(found.iter().skip(first)).enumerate() {
        let style = if first + i == palette.selected { look.theme.cursor } else { look.theme.text };
        let keys = keys_of(keymap, spec, look);
        // The keys are at the right end, where they leave the words most of the line.
        let right = look.width(&keys).min(list.width / 3);
        let text = format!("{}  {}", look.fit(spec.name, 18, Align::Left), tr(look.lang, spec.key));
        let text = look.fit(&text, list.width - right, Align::Left);
        let used = put(buf, list, (list.x, y), &text, list.width - right, style, look);
        let keys = look.fit(&keys, right, Align::Right);
        put(buf, list, (list.x + used, y), &keys, right, style, look);
    }
}

/// The keys of an action without its argument.
fn keys_of(keymap: &Keymap, spec: &Spec, look: &Look) -> String {
    let arrows = look.glyphs.set == GlyphSet::Unicode;
    let bound = keymap.bindings().iter();
    let mut labels: Vec<String> =
        bound.filter(|b| b.action.line() == spec.name).map(|b| b.keys.label(arrows)).collect();
    labels.dedup();
    labels.truncate(2);
    labels.join(" ")
}

fn export(form: &ExportForm, area: Rect, buf: &mut Buffer, look: &Look) {
    let word = |key: &str| tr(look.lang, key);
    let fields = [
        Field::Choice { label: word("tui.export.format"), words: &FORMATS, chosen: form.format },
        Field::Line { label: word("tui.export.range"), editor: &form.range },
        Field::Line { label: word("tui.export.path"), editor: &form.path },
    ];
    let width = area.width.saturating_sub(8).min(70);
    let inside = dialog::popup(area, buf, word("tui.export.title"), (width, 4), look);
    dialog::form(Rect { height: 3.min(inside.height), ..inside }, buf, &fields, form.field, look);
    if inside.height > 3 {
        let (text, style) = match &form.wrong {
            Some(why) => (why.render(look.lang), look.theme.bad),
            None => (word("tui.export.keys").to_owned(), look.theme.dim),
        };
        let at = (inside.x, inside.y + 3);
        put(buf, inside, at, &text, inside.width, style, look);
    }
}
