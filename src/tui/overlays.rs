//! What lies over the screen: help, prompts, the palette, forms, questions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::{Look, follow, put};
use super::widgets::dialog::{self, Field};
use super::widgets::paragraph::{Span, Wrapped};
use super::widgets::{help, status};
use crate::app::args::FORMATS;
use crate::app::overlay::{ExportForm, Overlay, Palette};
use crate::app::ui::Ui;
use crate::text::tr;

/// Draws the overlays, the lowest first.
pub fn draw(ui: &Ui, area: Rect, buf: &mut Buffer, look: &Look) {
    let area = area.intersection(buf.area);
    for overlay in &ui.overlays {
        one(ui, overlay, area, buf, look);
    }
}

fn one(ui: &Ui, overlay: &Overlay, area: Rect, buf: &mut Buffer, look: &Look) {
    let tall = area.height.saturating_sub(4);
    let wide = area.width.saturating_sub(8).min(100);
    let word = |key: &str| tr(look.lang, key);
    match overlay {
        Overlay::Prompt(prompt) => dialog::prompt(area, buf, prompt, look),
        Overlay::Help { scroll } => {
            let inside = dialog::popup(area, buf, word("tui.help.title"), (wide, tall), look);
            help::render(inside, buf, &ui.keymap, *scroll, look);
        }
        Overlay::Palette(palette) => self::palette(palette, area, buf, look),
        Overlay::Export(form) => export(form, area, buf, look),
        Overlay::Messages { scroll } => {
            let inside = dialog::popup(area, buf, word("tui.messages.title"), (wide, tall), look);
            let all: Vec<_> = ui.messages.all().collect();
            let first = (*scroll).min(all.len().saturating_sub(usize::from(inside.height)));
            for (y, message) in (inside.y..inside.bottom()).zip(all.iter().skip(first)) {
                status::message(
                    Rect {
                        y,
                        height: 1,
                        ..inside
                    },
                    buf,
                    message,
                    look,
                );
            }
        }
        Overlay::List {
            title,
            items,
            selected,
        } => {
            let height = (items.len() as u16).min(tall).max(1);
            let inside = dialog::popup(area, buf, &title.render(look.lang), (wide, height), look);
            let first = follow(0, *selected, usize::from(inside.height), items.len());
            for (i, (y, item)) in (inside.y..inside.bottom())
                .zip(items.iter().skip(first))
                .enumerate()
            {
                let style = if first + i == *selected {
                    look.theme.cursor
                } else {
                    status::level(item.level, look).1
                };
                put(
                    buf,
                    inside,
                    (inside.x, y),
                    &item.label,
                    inside.width,
                    style,
                    look,
                );
            }
        }
        Overlay::Text {
            title,
            body,
            scroll,
        } => {
            let inside = dialog::popup(area, buf, &title.render(look.lang), (wide, tall), look);
            let text = Wrapped::new(
                &[Span::new(body.clone(), look.theme.text)],
                inside.width,
                look,
            );
            text.render(inside, buf, *scroll, None, look);
        }
        Overlay::Confirm { question, .. } => {
            let text = format!(
                "{}\n{}",
                question.render(look.lang),
                word("tui.confirm.keys")
            );
            let width = wide.min(60);
            let text = Wrapped::new(&[Span::new(text, look.theme.text)], width, look);
            let height = (text.height() as u16).min(tall);
            let inside = dialog::popup(area, buf, "", (width, height), look);
            text.render(inside, buf, 0, None, look);
        }
    }
}

fn palette(palette: &Palette, area: Rect, buf: &mut Buffer, look: &Look) {
    let found = palette.found(look.lang);
    let height = (found.len() as u16 + 1)
        .min(area.height.saturating_sub(4))
        .max(2);
    let width = area.width.saturating_sub(8).min(90);
    let inside = dialog::popup(
        area,
        buf,
        tr(look.lang, "tui.palette.title"),
        (width, height),
        look,
    );
    dialog::editor(
        Rect {
            height: 1.min(inside.height),
            ..inside
        },
        buf,
        &palette.editor,
        look,
    );
    let list = Rect {
        y: inside.y + 1,
        height: inside.height.saturating_sub(1),
        ..inside
    };
    let first = follow(0, palette.selected, usize::from(list.height), found.len());
    for (i, (y, spec)) in (list.y..list.bottom())
        .zip(found.iter().skip(first))
        .enumerate()
    {
        let style = if first + i == palette.selected {
            look.theme.cursor
        } else {
            look.theme.text
        };
        let text = format!(
            "{}  {}",
            look.fit(spec.name, 18, crate::text::Align::Left),
            tr(look.lang, spec.key)
        );
        put(buf, list, (list.x, y), &text, list.width, style, look);
    }
}

fn export(form: &ExportForm, area: Rect, buf: &mut Buffer, look: &Look) {
    let word = |key: &str| tr(look.lang, key);
    let fields = [
        Field::Choice {
            label: word("tui.export.format"),
            words: &FORMATS,
            chosen: form.format,
        },
        Field::Line {
            label: word("tui.export.range"),
            editor: &form.range,
        },
        Field::Line {
            label: word("tui.export.path"),
            editor: &form.path,
        },
    ];
    let width = area.width.saturating_sub(8).min(70);
    let inside = dialog::popup(area, buf, word("tui.export.title"), (width, 4), look);
    dialog::form(
        Rect {
            height: 3.min(inside.height),
            ..inside
        },
        buf,
        &fields,
        form.field,
        look,
    );
    if inside.height > 3 {
        put(
            buf,
            inside,
            (inside.x, inside.y + 3),
            word("tui.export.keys"),
            inside.width,
            look.theme.dim,
            look,
        );
    }
}
