//! The step view: formula, tables, derivation, note and facts; where there is room, the derivations of all cells.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::breakpoints::watch_rows;
use crate::app::navigator::{MAX_TERMS, TableModel};
use crate::app::ui::Focus;
use crate::app::views::step::{StageModel, State, facts};
use crate::program::Op;
use crate::tensor::DType;
use crate::text::Msg;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::source::{Labelled, Source};
use crate::tui::pictures::{following, grid, stage, sum, words};
use crate::tui::shown::{Shown, Target};
use crate::tui::widgets::legend;
use crate::tui::widgets::paragraph::{Span, Wrapped};

/// Lines that note and facts keep next to tables that could fill the screen.
const LEAST_TEXT: u16 = 4;
/// Lines of a long sum: its largest terms and the result.
const SUM_LINES: u16 = 9;
/// Free lines from which on the derivations of all cells fill them.
const FREE: u16 = 6;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    if State::is_words(d) {
        return words::step(app, area, buf, look, shown);
    }
    let Some(step) = d.step() else { return };
    if area.is_empty() {
        return;
    }
    let settings = &app.ui.settings;
    let digits = settings.digits;
    let theme = &look.theme;
    let head = Wrapped::new(&[Span::new(d.formula(), theme.accent)], area.width, look);
    let head_height = (head.height() as u16).min(2).min(area.height);
    head.render(Rect { height: head_height, ..area }, buf, 0, None, look);
    let room = area.height - head_height;

    let long = if settings.full_sum { None } else { sum::long(app) };
    let derivation = Derivation::new(app, area.width, look);
    let derivation_height = match &long {
        Some(s) => (s.terms.len() as u16 + 1).min(SUM_LINES).min((room / 3).max(2)).min(room),
        None if settings.full_sum => (derivation.text.height() as u16).min((room / 2).max(1)).min(room),
        None => (derivation.text.height() as u16).min((room / 4).max(1)).min(room),
    };

    let mut texts = Vec::new();
    if settings.notes {
        let note = step.note.render(look.lang);
        if !note.is_empty() {
            texts.push(Span::new(format!("{note}\n"), theme.text));
        }
        let facts: Vec<String> = facts(d, &app.edits, digits).lines.iter().map(|m| m.render(look.lang)).collect();
        for row in watch_rows(d, &app.breaks, digits) {
            let watch = format!("{}\n", row.text.render(look.lang));
            texts.push(Span::new(watch, theme.accent));
        }
        texts.push(Span::new(facts.join("\n"), theme.dim));
    }
    let text = Wrapped::new(&texts, area.width, look);
    let model = StageModel::of(d);
    let stage = stage::Stage::new(app, &model.tables, area.width, look);
    // The tables come first: note and facts have what they leave, or a few lines of it.
    let left = room - derivation_height;
    let text_lines = text.height() as u16;
    let fewest = text_lines.min(left / 4).min(LEAST_TEXT);
    // Fewer where that is what all rows of the tables lack.
    let tables = |text: u16| Rect { y: area.y + head_height, height: left - text, ..area };
    let fewest = (1..=fewest).rev().find(|lines| stage.is_whole(tables(*lines))).unwrap_or(fewest);
    let text_height = text_lines.min(left.saturating_sub(stage.wanted(area.width)).max(fewest));

    let tables = Rect { y: area.y + head_height, height: left - text_height, ..area };
    let used = stage.draw(app, tables, buf, look, shown);
    // The derivation follows its tables.
    let below = Rect { y: tables.y + used, height: derivation_height, ..area };
    let used = match &long {
        Some(s) => sum::draw(app, s, below, buf, look),
        None => derivation.draw(app, below, buf, look, shown),
    };
    let bottom = Rect { y: below.y + used, height: text_height, ..area };
    text.render(bottom, buf, 0, None, look);
    if text.height() > usize::from(text_height) && text_height > 0 {
        let x = area.right().saturating_sub(look.width(look.glyphs.ellipsis));
        put(buf, area, (x, bottom.bottom() - 1), look.glyphs.ellipsis, 3, theme.dim, look);
    }
    let rest = Rect { y: bottom.bottom(), height: area.bottom().saturating_sub(bottom.bottom()), ..area };
    if rest.height >= FREE || settings.derivations && rest.height > 1 {
        fill(app, rest, buf, look, shown);
    }
}

/// What is free below: the derivations of all cells, and next to them the tensor as a large picture, or the map where
/// one is at the beginning or where there are no numbers; then what the following steps make of it.
fn fill(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let (width, height) = all_cells(app, area, buf, look);
    let left = if width == 0 { 0 } else { width + 3 };
    let top = if height == 0 { 0 } else { height + 1 };
    // Next to the derivations, or below them where they are wide.
    let next = Rect { x: area.x + left, width: area.width.saturating_sub(left), ..area };
    let below = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };
    let rest = if next.width < 40 && below.height >= 6 { below } else { next };
    if rest.width < 28 || rest.height < 5 {
        return;
    }
    let model = StageModel::of(d);
    let numbers = |t: &&TableModel| {
        let program = &d.session.runs[t.run].program;
        t.cursor.is_some() && program.node(t.node).dtype == DType::Float && t.plane.rows * t.plane.cols > 1
    };
    let table = model.tables.iter().find(numbers).filter(|_| d.position() > 0 || d.depth() > 0);
    let source = table.and_then(|t| Source::new(app, t, app.ui.settings.digits));
    let used = match &source {
        Some(source) => {
            let (scale, labels) = (source.scale(app), Labelled::new(d, source.table));
            put(buf, rest, (rest.x, rest.y), &source.heading(look.lang), rest.width, look.theme.title, look);
            let line = Rect { y: rest.y + 1, height: 1, ..rest };
            legend::render(line, buf, &scale, app.ui.settings.digits, look);
            let place = Rect { y: rest.y + 2, height: rest.height - 2, ..rest };
            let row = source.table.cursor.map(|c| c.0);
            grid::draw(app, source, &labels, &scale, row, place, buf, look)
        }
        None => super::map::boxes(app, rest, buf, look, shown),
    };
    // Next to the picture, below both over the whole width, and below the derivations where the picture is higher: the
    // largest of them first, and what it leaves of the others.
    let x = used.right() + 3;
    let beside = Rect { x, width: rest.right().saturating_sub(x), ..rest };
    let top = used.bottom().max(if height == 0 { 0 } else { area.y + height }) + 1;
    let free = Rect { y: top, height: area.bottom().saturating_sub(top), ..area };
    let y = area.y + height + 1;
    let under = Rect {
        y,
        width: if rest == next { left.saturating_sub(3) } else { 0 },
        height: area.bottom().saturating_sub(y),
        ..area
    };
    let size = |r: &Rect| if following::fits(*r) { u32::from(r.width) * u32::from(r.height) } else { 0 };
    let largest = [beside, free, under].into_iter().max_by_key(size).unwrap_or(free);
    let above = |r: Rect| Rect { height: free.y.saturating_sub(1).saturating_sub(r.y).min(r.height), ..r };
    let places = if largest == free { [free, above(beside), above(under)] } else { [beside, under, Rect::default()] };
    following::draw(app, &places, buf, look, shown);
}

/// The derivations of the cells of the plane, as many as there is room for, in columns; gives the room used.
fn all_cells(app: &App, area: Rect, buf: &mut Buffer, look: &Look) -> (u16, u16) {
    let d = &app.nav;
    let Some(view) = d.view().filter(|_| area.height > 1) else { return (0, 0) };
    let theme = &look.theme;
    let height = usize::from(area.height - 1);
    // What is given has no arithmetic.
    let given = matches!(d.session.runs[view.run].program.node(view.node).op, Op::Leaf(_));
    let lines = d.plane_lines(look.lang, app.ui.settings.digits, 6, height * 4);
    if lines.len() < 2 || given && !app.ui.settings.derivations {
        return (0, 0);
    }
    let title = Msg::new("tui.all_cells").arg("symbol", &view.symbol).render(look.lang);
    put(buf, area, (area.x, area.y), &title, area.width, theme.title, look);
    let cursor = view.cell_name(d.index());
    let mut x = area.x;
    let mut right = area.x + look.width(&title);
    for column in lines.chunks(height) {
        let widest = column.iter().map(|l| look.width(l)).max().unwrap_or(0);
        if x > area.x && x.saturating_add(widest) > area.right() {
            break;
        }
        for (y, line) in (area.y + 1..area.bottom()).zip(column) {
            let here = line.strip_prefix(cursor.as_str()).is_some_and(|rest| rest.starts_with(" ="));
            let style = if here { theme.accent } else { theme.text };
            put(buf, area, (x, y), line, area.right().saturating_sub(x), style, look);
        }
        right = right.max(x.saturating_add(widest)).min(area.right());
        x = x.saturating_add(widest).saturating_add(4);
        if x >= area.right() {
            break;
        }
    }
    (right - area.x, 1 + lines.len().min(height) as u16)
}

/// The derivation of the cursor's cell as a text whose numbers can be chosen.
struct Derivation {
    text: Wrapped,
    chosen: Option<usize>,
}

impl Derivation {
    fn new(app: &App, width: u16, look: &Look) -> Self {
        let d = &app.nav;
        let digits = app.ui.settings.digits;
        let theme = &look.theme;
        let terms = if app.ui.settings.full_sum { usize::MAX } else { MAX_TERMS };
        let line = d.line(look.lang, digits, terms);
        let chosen = line.as_ref().and_then(|l| d.chosen_term(l));
        let mut spans = Vec::new();
        if let Some(line) = &line {
            let mut term = 0;
            // While it is computed before one's eyes: the terms so far.
            let terms = line.spans.iter().filter(|s| s.cell.is_some()).count();
            let so_far = app.ui.motion.map(|m| m.of(terms));
            for span in &line.spans {
                if so_far.is_some_and(|n| term >= n) {
                    spans.push(Span::new(format!(" {}", look.glyphs.ellipsis), theme.dim));
                    break;
                }
                let mut piece = Span::new(span.text.clone(), theme.text);
                if span.cell.is_some() {
                    piece = Span::new(span.text.clone(), theme.lit).with_id(term);
                    term += 1;
                }
                spans.push(piece);
            }
        }
        if let Some(exact) = d.exact_line(look.lang, digits, MAX_TERMS) {
            let text = Msg::new("tui.exact_line").arg("line", exact.text()).render(look.lang);
            spans.push(Span::new(format!("\n{text}"), theme.dim));
        }
        Self { text: Wrapped::new(&spans, width, look), chosen }
    }

    fn draw(&self, app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) -> u16 {
        let chosen = self.chosen;
        let first =
            chosen.and_then(|id| self.text.line_of(id)).map_or(0, |l| l.saturating_sub(usize::from(area.height) / 2));
        let focused = app.ui.focus != Focus::Steps;
        for (place, id) in self.text.render(area, buf, first, chosen.filter(|_| focused || chosen.is_some()), look) {
            shown.hits.push((place, Target::Term(id)));
        }
        if self.text.height() > usize::from(area.height) && area.height > 0 {
            let x = area.right().saturating_sub(look.width(look.glyphs.ellipsis));
            put(buf, area, (x, area.bottom() - 1), look.glyphs.ellipsis, 3, look.theme.dim, look);
        }
        area.height
    }
}
