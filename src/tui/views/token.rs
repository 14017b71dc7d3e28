//! One token followed through all steps.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use crate::app::app::App;
use crate::app::measure::{Part, kind};
use crate::app::navigator::is_masked;
use crate::app::views::token::{Row, Rows};
use crate::tensor::DType;
use crate::text::{Align, Msg, tr};
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, follow, put};
use crate::tui::pictures::nothing;
use crate::tui::scale::Scale;
use crate::tui::shown::Shown;
use crate::tui::widgets::legend;

/// Numbers of a row that are written, as far as there is room.
const WRITTEN: usize = 64;
/// Least width of a line that says the ends of its tensor, and their columns.
const WITH_ENDS: u16 = 90;
const ENDS: u16 = 28;
/// Numbers of a row that its norm is of.
const NORMED: usize = 4096;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let height = usize::from(area.height.saturating_sub(1));
    let Some(Rows { token, word, rows, at }) = Rows::around(&app.nav, height) else {
        return nothing(area, buf, "tui.no_token", look);
    };
    let title = Msg::new("tui.token_title").arg("row", token.at + 1).arg("token", word).render(look.lang);
    let style = look.theme.title;
    let used = put(buf, area, (area.x, area.y), &title, area.width, style, look);
    // The colours of the row one is at; the others' ends are in their lines, where there is room.
    if let Some(row) = rows.get(at) {
        let name = format!(" · {} ", row.symbol);
        let used = used + put(buf, area, (area.x + used, area.y), &name, area.width - used, look.theme.dim, look);
        let rest = Rect { x: area.x + used, width: area.width - used, height: 1, ..area };
        legend::render(rest, buf, &scale(app, row), app.ui.settings.digits, look);
    }
    let middle = at.saturating_sub(height / 2);
    let first = follow(middle, at, height.max(1), rows.len());
    for (k, row) in rows.iter().enumerate().skip(first).take(height) {
        let line = Rect { y: area.y + 1 + (k - first) as u16, height: 1, ..area };
        one(app, row, k == at, line, buf, look);
    }
}

/// The scale of a row: its tensor's.
fn scale(app: &App, row: &Row) -> Scale {
    let d = &app.nav;
    let kind = kind(&d.session.runs[row.run].program, row.node);
    let tally = d.tally(row.run, row.node, Part::Whole);
    tally.map_or(Scale::pending(kind), |t| Scale::of(kind, &t)).with_log(app.ui.settings.log_scale)
}

/// Step, symbol, head, norm and numbers of a row.
fn one(app: &App, row: &Row, current: bool, line: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.nav;
    let step = &d.steps.list()[row.step];
    let Some(value) = d.trace(row.run).and_then(|t| t.get(row.node)) else {
        return;
    };
    let program = &d.session.runs[row.run].program;
    let scores = is_masked(program, row.node);
    let mask = d.origin(row.run, row.node).mask();
    let number = |c: usize| value.get(row.first + c * row.stride);
    let hidden = |c: usize| mask.has(row.first + c * row.stride);
    let plain = value.dtype() != DType::Float;
    // As the tables print them; what is masked is no part of a norm.
    let squares = (0..row.len.min(NORMED)).filter(|c| !hidden(*c)).map(|c| number(c).powi(2));
    let norm = squares.sum::<f64>().sqrt();
    let digits = app.ui.settings.digits;
    let style = if current { look.theme.accent } else { look.theme.text };
    let head = row.head.map_or_else(String::new, |h| format!(" {} {}", tr(look.lang, "tui.head"), h + 1));
    let name = format!("{:>4} {}{head}", step.label(), row.symbol);
    let mut x = line.x;
    let mut write = |text: &str, style| {
        let left = line.right().saturating_sub(x);
        x += put(buf, line, (x, line.y), text, left, style, look);
        x < line.right()
    };
    // What no step shows is quiet.
    let style = if row.view.is_none() && !current { look.theme.dim } else { style };
    write(&look.fit(&name, 26.min(line.width / 3), Align::Left), style);
    write(&look.fit(&format!("‖{}‖ ", digits.format_short(norm)), 13, Align::Right), look.theme.dim);
    let scale = scale(app, row);
    // The ends of its colours: each tensor has its own.
    if line.width >= WITH_ENDS && !plain {
        // Counts of what is not finite are never cut: they push the numbers aside.
        let ends = legend::ends(&scale, digits, look);
        write(&look.fit(&ends, ENDS.max(look.width(&ends)) + 2, Align::Left), look.theme.dim);
    }
    // Written until the line is full, each on its colour.
    for c in 0..row.len.min(WRITTEN) {
        let (text, cell) = match () {
            () if plain => (format!("{}", number(c)), CellKind::Plain),
            () if hidden(c) && scores => ("-∞".to_owned(), CellKind::Masked),
            () if hidden(c) => (digits.format_short(number(c)), CellKind::Masked),
            () => (digits.format_short(number(c)), CellKind::of(number(c))),
        };
        let style = scale.style(number(c), cell, &look.theme, &look.palette);
        let style = if current { style.add_modifier(Modifier::BOLD) } else { style };
        if !write(&look.fit(&text, 8, Align::Right), style) {
            break;
        }
    }
}
