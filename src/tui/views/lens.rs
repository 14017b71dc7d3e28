//! The logit lens: stages down, positions across, in each cell the words that the output head would choose there.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use crate::app::app::App;
use crate::app::lens_table::{Guesses, LensTable};
use crate::app::views::lens::Lens;
use crate::text::{Align, Msg, tr};
use crate::trace::stats::Tally;
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, follow, put};
use crate::tui::pictures::{grid, nothing};
use crate::tui::scale::{Kind, Scale};
use crate::tui::shown::Shown;
use crate::tui::widgets::bars::{Bar, Bars};
use crate::tui::widgets::chart::{Chart, Series};
use crate::tui::widgets::legend;

/// Narrowest and widest cell.
const CELL: (u16, u16) = (11, 24);
/// Most lines of a cell: so many words.
const LINES: u16 = 9;
/// Most cells of the names of the stages.
const GUTTER: u16 = 12;
/// Least height that has details below the grid.
const DETAILS: u16 = 16;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let nav = &app.nav;
    let Some(lens) = Lens::of(nav) else { return nothing(area, buf, "tui.lens.none", look) };
    let Some(table) = lens.table(nav) else { return nothing(area, buf, "tui.lens.pending", look) };
    let digits = app.ui.settings.digits;
    let mut title = tr(look.lang, "tui.lens.title").to_owned();
    if lens.batch.1 > 1 {
        let batch = Msg::new("tui.heads.batch").arg("at", lens.batch.0 + 1).arg("all", lens.batch.1);
        title = format!("{} · {title}", batch.render(look.lang));
    }
    put(buf, area, (area.x, area.y), &title, area.width, look.theme.dim, look);
    let scale = scale(&lens, &table, nav.session.runs[lens.run].program.node(lens.head).shape.dims());
    let line = |i: u16| Rect { y: area.y + i.min(area.height), height: 1.min(area.height.saturating_sub(i)), ..area };
    legend::render(line(1), buf, &scale, digits, look);
    let body = Rect { y: area.y + 2.min(area.height), height: area.height.saturating_sub(2), ..area };
    let below = if body.height >= DETAILS { (body.height / 3).min(16) } else { 0 };
    let place = Rect { height: body.height - below, ..body };
    let used = cells(app, &lens, &table, &scale, place, buf, look, shown);
    let rest = Rect { y: body.y + used + 1, height: body.height.saturating_sub(used + 1), ..body };
    if below > 0 {
        details(app, &lens, &table, rest, buf, look);
    }
}

/// The probabilities of the first words of all cells.
fn scale(lens: &Lens, table: &LensTable, shape: &[usize]) -> Scale {
    let rows = lens.row(0)..lens.row(lens.tokens);
    let first = table.at.iter().flat_map(|stage| &stage[rows.clone()]).filter_map(|g| Some(g.top.first()?.p));
    Scale::of(Kind::Probability, &Tally::of(first)).with_uniform(shape.last().copied().unwrap_or(1))
}

/// The grid; gives the lines used.
#[allow(clippy::too_many_arguments, reason = "a table, its scale and where it goes")]
fn cells(
    app: &App,
    lens: &Lens,
    table: &LensTable,
    scale: &Scale,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
    shown: &mut Shown,
) -> u16 {
    let nav = &app.nav;
    let theme = &look.theme;
    let (stage, token) = app.views.lens.at(lens);
    let names: Vec<String> = lens.stages.iter().map(|s| s.name(look.lang)).collect();
    let gutter = names.iter().map(|n| look.width(n)).max().unwrap_or(0).min(GUTTER) + 2;
    let room = area.width.saturating_sub(gutter);
    if room < CELL.0 || area.height < 2 {
        return 0;
    }
    let width = (room / lens.tokens.clamp(1, 999) as u16).clamp(CELL.0, CELL.1);
    let columns = usize::from(room / width).min(lens.tokens);
    let height = ((area.height - 1) / lens.stages.len().clamp(1, 999) as u16).clamp(1, LINES);
    let rows = usize::from((area.height - 1) / height).min(lens.stages.len());
    let left = follow(token.saturating_sub(columns / 2), token, columns, lens.tokens);
    let top = follow(stage.saturating_sub(rows / 2), stage, rows, lens.stages.len());
    (shown.page.rows, shown.page.cols) = (rows.max(1), columns.max(1));
    for c in 0..columns {
        let x = area.x + gutter + c as u16 * width;
        let text = look.cut(&lens.token(nav, left + c), width - 2);
        let style = if left + c == token { theme.accent } else { theme.label };
        put(buf, area, (x, area.y), &text, width, style, look);
    }
    let mark = |buf: &mut Buffer, at: (u16, u16), more: usize| {
        put(buf, area, at, look.glyphs.more[more], 1, theme.accent, look);
    };
    for r in 0..rows {
        let y = area.y + 1 + r as u16 * height;
        let here = top + r == stage;
        let style = if here { theme.accent } else { theme.label };
        let name = look.fit(&names[top + r], gutter - 2, Align::Left);
        put(buf, area, (area.x, y), &name, gutter, style, look);
        for c in 0..columns {
            let Some(guesses) = table.at[top + r].get(lens.row(left + c)) else { continue };
            let x = area.x + gutter + c as u16 * width;
            let last = table.at.last().and_then(|s| s[lens.row(left + c)].top.first()).map(|g| g.id);
            for (i, guess) in guesses.top.iter().enumerate().take(usize::from(height)) {
                let at = Rect { x, y: y + i as u16, width: width - 1, height: 1 };
                let mut style = scale.style(guess.p, CellKind::Value, theme, &look.palette);
                grid::fill(buf, at, style);
                if last == Some(guess.id) {
                    style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
                }
                if here && left + c == token && i == 0 {
                    style = style.patch(theme.cursor);
                }
                let number = short(guess.p);
                let word = look.fit(&lens.word(nav, guess.id), at.width.saturating_sub(5), Align::Left);
                let text = format!("{word}{}", look.fit(&number, 5, Align::Right));
                put(buf, at, (at.x, at.y), &text, at.width, style, look);
            }
        }
    }
    let bottom = area.y + rows as u16 * height;
    if left > 0 {
        mark(buf, (area.x + gutter - 2, area.y), 0);
    }
    if left + columns < lens.tokens {
        mark(buf, (area.right() - 1, area.y), 1);
    }
    if top > 0 {
        mark(buf, (area.x + gutter - 2, area.y + 1), 2);
    }
    if top + rows < lens.stages.len() {
        mark(buf, (area.x + gutter - 2, bottom), 3);
    }
    1 + rows as u16 * height
}

/// Three decimals without the zero before them: `.282`, `<.001`.
fn short(p: f64) -> String {
    match p {
        p if p < 0.0005 && p > 0.0 => "<.001".to_owned(),
        p if p > 0.9995 && p < 1.0 => ">.999".to_owned(),
        p => format!("{p:.3}").trim_start_matches('0').to_owned(),
    }
}

/// The words of the cursor's cell as bars, and next to them how the word that is chosen in the end came up.
fn details(app: &App, lens: &Lens, table: &LensTable, area: Rect, buf: &mut Buffer, look: &Look) {
    let nav = &app.nav;
    let (stage, token) = app.views.lens.at(lens);
    let row = lens.row(token);
    let Some(guesses) = table.at[stage].get(row) else { return };
    let digits = app.ui.settings.digits;
    let half = if area.width >= 70 { area.width / 2 } else { area.width };
    let left = Rect { width: half.saturating_sub(2), ..area };
    let last = table.at.last().and_then(|s| s[row].top.first()).map(|g| g.id);
    let title = Msg::new("tui.lens.words")
        .arg("stage", lens.stages[stage].name(look.lang))
        .arg("token", lens.token(nav, token));
    put(buf, left, (left.x, left.y), &title.render(look.lang), left.width, look.theme.title, look);
    let bar = |g: &crate::app::lens_table::Guess| Bar {
        label: lens.word(nav, g.id),
        value: g.p,
        marked: Some(g.id) == last,
        before: None,
    };
    let bars: Vec<Bar> = guesses.top.iter().map(bar).collect();
    let below = Rect { y: left.y + 1, height: left.height.saturating_sub(1), ..left };
    Bars { bars: &bars, full: 1.0, digits, selected: None, offset: 0 }.render(below, buf, look);
    if half == area.width {
        return;
    }
    let right = Rect { x: area.x + half, width: area.width - half, ..area };
    let word = last.map_or_else(String::new, |id| lens.word(nav, id));
    let title = Msg::new("tui.lens.final").arg("word", word).arg("rank", guesses.rank_final + 1);
    put(buf, right, (right.x, right.y), &title.render(look.lang), right.width, look.theme.title, look);
    let of_final = |g: &Guesses| g.p_final;
    let values = table.at.iter().map(|s| s.get(row).map_or(f64::NAN, of_final)).collect();
    let series = [Series { name: tr(look.lang, "tui.lens.p_final").to_owned(), values }];
    let names = (lens.stages[0].name(look.lang), lens.stages[lens.stages.len() - 1].name(look.lang));
    let place = Rect { y: right.y + 1, height: right.height.saturating_sub(1).min(14), ..right };
    Chart { series: &series, digits, ends: (&names.0, &names.1), cursor: Some(stage) }.render(place, buf, look);
}
