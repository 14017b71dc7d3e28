//! The step view: formula, tables, derivation, note and facts.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::navigator::MAX_TERMS;
use crate::app::ui::Focus;
use crate::app::view::View;
use crate::text::Msg;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::{stage, words};
use crate::tui::screen::{Shown, Target};
use crate::tui::widgets::paragraph::{Span, Wrapped};

/// Lines that note and facts keep beside tables that could fill the screen.
const LEAST_TEXT: u16 = 5;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    if let Some(table) = d.words_of(View::Step) {
        return words::step(app, table, area, buf, look, shown);
    }
    let Some(step) = d.step() else { return };
    if area.is_empty() {
        return;
    }
    let digits = app.ui.settings.digits;
    let theme = &look.theme;
    let head = Wrapped::new(&[Span::new(d.formula(), theme.accent)], area.width, look);
    let head_height = (head.height() as u16).min(2).min(area.height);
    head.render(Rect { height: head_height, ..area }, buf, 0, None, look);

    let line = d.line(digits, MAX_TERMS);
    let chosen = line.as_ref().and_then(|l| d.chosen_term(l));
    let mut spans = Vec::new();
    if let Some(line) = &line {
        let mut term = 0;
        for span in &line.spans {
            let mut piece = Span::new(span.text.clone(), theme.text);
            if span.cell.is_some() {
                piece = Span::new(span.text.clone(), theme.lit).with_id(term);
                term += 1;
            }
            spans.push(piece);
        }
    }
    if let Some(exact) = d.exact_line(digits, MAX_TERMS) {
        let text = Msg::new("tui.exact_line").arg("line", exact.text()).render(look.lang);
        spans.push(Span::new(format!("\n{text}"), theme.dim));
    }
    let derivation = Wrapped::new(&spans, area.width, look);
    let room = area.height - head_height;
    let derivation_height = (derivation.height() as u16).min((room / 4).max(1)).min(room);

    let mut texts = Vec::new();
    if app.ui.settings.notes {
        let note = step.note.render(look.lang);
        if !note.is_empty() {
            texts.push(Span::new(format!("{note}\n"), theme.text));
        }
        let facts: Vec<String> = d.facts(digits).lines.iter().map(|m| m.render(look.lang)).collect();
        for row in d.watch_rows(digits) {
            let watch = format!("{}\n", row.text.render(look.lang));
            texts.push(Span::new(watch, theme.accent));
        }
        texts.push(Span::new(facts.join("\n"), theme.dim));
    }
    let text = Wrapped::new(&texts, area.width, look);
    let model = d.stage();
    let stage = stage::Stage::new(app, &model.tables, look);
    // The tables come first: note and facts have what they leave, or a few lines of it.
    let left = room - derivation_height;
    let text_lines = text.height() as u16;
    let fewest = text_lines.min(left / 4).min(LEAST_TEXT);
    let text_height = text_lines.min(left.saturating_sub(stage.wanted(area.width)).max(fewest));

    let tables = Rect { y: area.y + head_height, height: left - text_height, ..area };
    let used = stage.draw(app, tables, buf, look, shown);
    // The derivation follows its tables; what is left over stays free below.
    let below = Rect { y: tables.y + used, height: derivation_height, ..area };
    let first = chosen
        .and_then(|id| derivation.line_of(id))
        .map_or(0, |l| l.saturating_sub(usize::from(derivation_height) / 2));
    let focused = app.ui.focus != Focus::Steps;
    for (place, id) in derivation.render(below, buf, first, chosen.filter(|_| focused || chosen.is_some()), look) {
        shown.hits.push((place, Target::Term(id)));
    }
    if derivation.height() > usize::from(derivation_height) && derivation_height > 0 {
        let x = area.right().saturating_sub(look.width(look.glyphs.ellipsis));
        put(buf, area, (x, below.bottom() - 1), look.glyphs.ellipsis, 3, theme.dim, look);
    }
    let bottom = Rect { y: below.bottom(), height: text_height, ..area };
    text.render(bottom, buf, 0, None, look);
    if text.height() > usize::from(text_height) && text_height > 0 {
        let x = area.right().saturating_sub(look.width(look.glyphs.ellipsis));
        put(buf, area, (x, bottom.bottom() - 1), look.glyphs.ellipsis, 3, theme.dim, look);
    }
}
