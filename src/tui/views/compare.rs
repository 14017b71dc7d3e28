//! A, B and B − A as equal grids, A and B on one scale; below, the cells that differ most.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::measure;
use crate::app::navigator::TableModel;
use crate::app::views::compare::{Differing, Kind, Pairs};
use crate::debug::compare::State;
use crate::explain::Explainer;
use crate::text::{Align, Msg, NumberFormat, escape, tr};
use crate::trace::Rounding;
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::source::Labelled;
use crate::tui::pictures::{following, grid, maps, nothing};
use crate::tui::scale::Scale;
use crate::tui::shown::Shown;
use crate::tui::widgets::legend;
use crate::walkthrough::View;

/// A number of a grid, and what it is.
type Cell<'a> = &'a dyn Fn(usize, usize) -> (f64, CellKind);

/// Most columns of the list of cells, and the gap between them.
const MOST_COLUMNS: usize = 3;
const COLUMN_GAP: u16 = 4;
/// Lines that the list of cells keeps.
const LISTED: u16 = 6;

/// The tensor looked at, cell by cell.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let Some(view) = d.view() else { return nothing(area, buf, "tui.compare.nothing", look) };
    let Some(pairs) = Pairs::of(d, &app.views.compare, &app.edits) else {
        return nothing(area, buf, "tui.compare.nothing", look);
    };
    let mut y = area.y;
    let mut line = |text: &str, style| {
        put(buf, area, (area.x, y), text, area.width, style, look);
        y += 1;
    };
    line(&title(view, &pairs, look), look.theme.title);
    if let Kind::Reference { note: Some(note), .. } = &pairs.kind {
        line(&note.render(look.lang), look.theme.warn);
    }
    if pairs.pending {
        return line(tr(look.lang, "tui.legend.pending"), look.theme.dim);
    }
    if pairs.is_whole() {
        let differs = pairs.found.differing > 0;
        line(&summary(app, view, &pairs, look), if differs { look.theme.changed } else { look.theme.good });
    }
    for text in laid(app, look) {
        line(&text, look.theme.dim);
    }
    y += growth(app, view, Rect { y, height: area.bottom().saturating_sub(y), ..area }, buf, look);
    let body = Rect { y, height: area.bottom().saturating_sub(y), ..area };
    let used = if pairs.is_whole() { grids(app, view, &pairs, body, buf, look) } else { 0 };
    let rest = Rect { y: body.y + used, height: body.height - used, ..body };
    let used = list(app, view, &pairs, rest, buf, look);
    let rest = Rect { y: rest.y + used, height: rest.height - used, ..rest };
    following::draw(app, &[rest], buf, look, shown);
}

/// Lines of the chart of the error, and the height of an area that has room for it; one line elsewhere.
const GROWTH: (u16, u16) = (4, 36);

/// The error along the run, a column for one or several nodes, as high as its order of magnitude; the column of the
/// tensor looked at is pointed out. Gives the lines used.
fn growth(app: &App, view: &View, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
    let theme = &look.theme;
    let title = tr(look.lang, "tui.compare.growth");
    let (lines, left) = if area.height >= GROWTH.1 { (GROWTH.0, 0) } else { (1, look.width(title) + 1) };
    let columns = usize::from(area.width.saturating_sub(left));
    let Some((all, here)) = app.views.compare.growth(&app.nav, view.run, view.node, columns) else { return 0 };
    if area.height < 8 {
        return 0;
    }
    put(buf, area, (area.x, area.y), title, area.width, theme.dim, look);
    let top = area.y + u16::from(left == 0);
    let levels = look.glyphs.levels;
    let steps = usize::from(lines) * levels.len();
    for (column, error) in all.iter().enumerate() {
        let style = match error.state {
            State::Diverged => theme.changed,
            State::Drift => theme.warn,
            State::Match | State::Unchecked => theme.good,
        };
        let style = if column == here { style.patch(theme.cursor) } else { style };
        let full = (error.decades() / 9.0 * steps as f64).round() as usize;
        for line in 0..lines {
            let below = usize::from(lines - 1 - line) * levels.len();
            let glyph = match full.saturating_sub(below).min(levels.len()) {
                0 => " ",
                n => levels[n - 1],
            };
            put(buf, area, (area.x + left + column as u16, top + line), glyph, 1, style, look);
        }
    }
    lines + u16::from(left == 0)
}

/// Terms that differ most, above the grids.
const TERMS: usize = 3;

/// The cell looked at next to a recording: our derivation, its value from the recording's operands, and the terms that
/// differ most.
fn laid(app: &App, look: &Look) -> Vec<String> {
    let d = &app.nav;
    let Some((run, cell)) = d.cell() else { return Vec::new() };
    let Some(bound) = app.views.compare.bound_made(d, run) else { return Vec::new() };
    let Some(ours) = d.trace(run) else { return Vec::new() };
    let digits = app.ui.settings.digits;
    let mut lines: Vec<String> = d.line(look.lang, digits, 6).map(|l| l.text()).into_iter().collect();
    let recomputed = Msg::new("bind.recomputed").arg("value", digits.format(bound.recomputed(cell)));
    lines.push(recomputed.render(look.lang));
    let x = Explainer::new(&ours);
    let differing = bound.terms(&ours, cell).into_iter().filter(|t| t.ours.to_bits() != t.theirs.to_bits());
    for term in differing.take(TERMS) {
        let names: Vec<String> = term.operands.iter().map(|c| d.call(&x, run, *c)).collect();
        let msg = Msg::new("bind.term")
            .arg("term", names.join("·"))
            .arg("ours", digits.format(term.ours))
            .arg("theirs", digits.format(term.theirs))
            .arg("difference", NumberFormat::Scientific(2).format(term.theirs - term.ours));
        lines.push(msg.render(look.lang));
    }
    lines
}

fn title(view: &View, pairs: &Pairs, look: &Look) -> String {
    let symbol = &view.symbol;
    let title = match &pairs.kind {
        Kind::Reference { name, .. } => {
            let key = if pairs.is_whole() { "compare.columns" } else { "compare.not_there" };
            Msg::new(key).arg("reference", escape(name))
        }
        Kind::Edited if pairs.is_whole() => Msg::new("tui.compare.edited"),
        Kind::Edited => Msg::new("tui.compare.new"),
        Kind::Rounded(Rounding::Decimals(digits)) => Msg::new("tui.compare_title").arg("digits", digits),
        Kind::Rounded(Rounding::Type(t)) => Msg::new("tui.compare_title_type").arg("type", t),
    };
    title.arg("symbol", symbol).render(look.lang)
}

/// What A and B are called.
fn names(pairs: &Pairs, look: &Look) -> [&'static str; 2] {
    match &pairs.kind {
        Kind::Reference { isolated: true, .. } if pairs.is_whole() => ["compare.ours_own", "compare.reference"],
        Kind::Reference { .. } => ["compare.ours", "compare.reference"],
        Kind::Edited => ["tui.compare.before", "tui.compare.after"],
        Kind::Rounded(_) => ["tui.compare_exact", "tui.compare_rounded"],
    }
    .map(|key| tr(look.lang, key))
}

/// How many cells differ, and the worst one in ulp.
fn summary(app: &App, view: &View, pairs: &Pairs, look: &Look) -> String {
    let found = &pairs.found;
    let Some(worst) = found.worst.first() else {
        return Msg::new("tui.compare.same").arg("cells", found.cells).render(look.lang);
    };
    let digits = app.ui.settings.digits;
    Msg::new("tui.compare.differ")
        .arg("differing", found.differing)
        .arg("cells", found.cells)
        .arg("cell", cell_name(view, worst.flat))
        .arg("apart", digits.format_nonzero(worst.b - worst.a))
        .arg("ulp", ulps(worst.ulp))
        .render(look.lang)
}

/// A number of ulp; of many, their order of magnitude.
fn ulps(n: Option<u64>) -> String {
    match n {
        None => "–".to_owned(),
        Some(n) if n < 10_000_000 => n.to_string(),
        Some(n) => NumberFormat::Scientific(1).format(n as f64),
    }
}

/// `O1[0][1]`.
fn cell_name(view: &View, flat: usize) -> String {
    let cell = crate::trace::derive::Cell { node: view.node, flat };
    view.index_of(cell).map_or_else(String::new, |index| view.cell_name(&index))
}

/// The three grids, side by side where numbers have room in each, else below each other; gives the lines used.
fn grids(app: &App, view: &View, pairs: &Pairs, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
    let d = &app.nav;
    let plane = &pairs.plane;
    let program = &d.session.runs[view.run].program;
    let table = TableModel::in_program(program, view.run, view.node, view.symbol.clone(), plane.clone());
    let labels = Labelled::new(d, &table);
    let kind = |x: f64| {
        if table.masked && x < crate::explain::line::MASKED_BELOW { CellKind::Masked } else { CellKind::of(x) }
    };
    let known = |x: Option<f64>| x.map_or((0.0, CellKind::Plain), |x| (x, kind(x)));
    let a = |r: usize, c: usize| known(pairs.a.get(plane.flat(r, c)));
    let b = |r: usize, c: usize| known(pairs.b.get(plane.flat(r, c)));
    let apart =
        |r: usize, c: usize| pairs.apart(plane.flat(r, c)).map_or((0.0, CellKind::Plain), |x| (x, CellKind::of(x)));
    let log = app.ui.settings.log_scale;
    let scale = Scale::of(measure::kind(program, view.node), &pairs.found.both).with_log(log);
    let of_apart = Scale::of(measure::Kind::Signed, &pairs.found.apart).with_log(log);
    let [first, second] = names(pairs, look);
    let parts: [(String, Scale, Cell<'_>); 3] = [
        (format!("A  {first}"), scale, &a),
        (format!("B  {second}"), scale, &b),
        ("B − A".to_owned(), of_apart, &apart),
    ];
    // Title, legend, column labels, rows.
    let gutter = (0..plane.rows.min(99)).map(|r| look.width(&labels.row(r))).max().unwrap_or(0).min(9) + 1;
    let cols = u16::try_from(plane.cols).unwrap_or(u16::MAX);
    let rows = u16::try_from(plane.rows).unwrap_or(u16::MAX);
    let wide = gutter.saturating_add(cols.saturating_mul(6)).saturating_add(2);
    let free = area.height.saturating_sub(LISTED.min(area.height / 3));
    // Whichever gives the larger cells.
    let cell = |w: u16, h: u16| {
        let width = (w.saturating_sub(gutter) / cols.max(1)).min(maps::LARGEST.0);
        let height = (h.saturating_sub(4) / rows.max(1)).min(maps::LARGEST.1).min(width * 3 / 4);
        u32::from(width) * u32::from(height)
    };
    let (next_to, below) = (cell(area.width / 3, free), cell(area.width, free / 3));
    let fits = rows.saturating_add(4).saturating_mul(3) <= free;
    let beside = match (wide.saturating_mul(3) <= area.width, fits) {
        (true, true) => next_to >= below,
        (true, false) => true,
        (false, true) => false,
        (false, false) => area.width >= 3 * 20,
    };
    let (w, h) = if beside { (area.width / 3, free) } else { (area.width, free / 3) };
    let mut lowest = 0;
    for (i, (name, scale, cell)) in parts.iter().enumerate() {
        let i = i as u16;
        let (x, y) = if beside { (area.x + i * w, area.y) } else { (area.x, area.y + lowest) };
        let place = Rect { x, y, width: w.saturating_sub(u16::from(beside) * 2), height: h };
        if place.height < 4 {
            break;
        }
        put(buf, place, (place.x, place.y), name, place.width, look.theme.title, look);
        legend::render(Rect { y: y + 1, height: 1, ..place }, buf, scale, app.ui.settings.digits, look);
        let body = Rect { y: y + 2, height: place.height - 2, ..place };
        let used = grid::Values {
            size: (plane.rows, plane.cols),
            cell: *cell,
            kept: Some(&|size| app.views.compare.picture(d, pairs, usize::from(i), size)),
            row_label: &|r| labels.row(r),
            column_label: &|c| labels.column(c),
            scale: *scale,
            digits: app.ui.settings.digits,
            cursor: d.cell().and_then(|(_, c)| plane.find(c.flat)),
        }
        .render(body, buf, look);
        let below = used.bottom() - area.y + 1;
        lowest = if beside { lowest.max(below) } else { below };
    }
    lowest.min(area.height)
}

/// The cells that differ, the worst first; where none does, those around the cursor. In as many columns as there is room
/// for; gives the lines used.
fn list(app: &App, view: &View, pairs: &Pairs, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
    if area.height < 2 {
        return 0;
    }
    let d = &app.nav;
    let [first, second] = names(pairs, look);
    let cursor = d.cell().map(|(_, c)| c.flat);
    let height = usize::from(area.height - 1);
    let plane = &pairs.plane;
    let rows: Vec<Differing> = if pairs.found.differing > 0 {
        pairs.found.worst.iter().take(height * MOST_COLUMNS).copied().collect()
    } else {
        let at = cursor.and_then(|c| plane.find(c)).map_or(0, |(r, c)| r * plane.cols + c);
        let n = plane.rows * plane.cols;
        // In the first column, however many there are.
        let first = crate::tui::draw::follow(at.saturating_sub(height / 2), at, height, n);
        let one = |i: usize| {
            let flat = plane.flat(i / plane.cols, i % plane.cols);
            let of = |side: &crate::app::views::compare::Side| side.get(flat).unwrap_or(f64::NAN);
            Differing { flat, a: of(&pairs.a), b: of(&pairs.b), ulp: Some(0) }
        };
        (first..n).take(height * MOST_COLUMNS).map(one).collect()
    };
    let digits = app.ui.settings.digits;
    let both = |r: &Differing| {
        let (a, b) = (digits.format(r.a), digits.format(r.b));
        // What looks alike at these decimals has all of them.
        if a == b && r.a.to_bits() != r.b.to_bits() {
            (NumberFormat::Shortest.format(r.a), NumberFormat::Shortest.format(r.b))
        } else {
            (a, b)
        }
    };
    let texts: Vec<(String, String, String, String)> = rows
        .iter()
        .map(|r| {
            let (a, b) = both(r);
            (cell_name(view, r.flat), a, b, digits.format_nonzero(r.b - r.a))
        })
        .collect();
    let widest = |head: &str, f: &dyn Fn(&(String, String, String, String)) -> u16| {
        texts.iter().map(f).max().unwrap_or(0).max(look.width(head))
    };
    let name = widest("", &|t| look.width(&t.0)).min(area.width / 3);
    let a = widest(first, &|t| look.width(&t.1)).max(10);
    let b = widest(second, &|t| look.width(&t.2)).max(10);
    let apart = widest("B − A", &|t| look.width(&t.3));
    let widths = [(name, Align::Left), (a, Align::Right), (b, Align::Right), (apart, Align::Right), (12, Align::Right)];
    let mut cells = |left: u16, y: u16, texts: [&str; 5], mark: &str, style| {
        let mut x = left;
        for (i, ((width, align), text)) in widths.into_iter().zip(texts).enumerate() {
            if i > 2 && !pairs.is_whole() || i == 2 && matches!(pairs.b, crate::app::views::compare::Side::Missing) {
                break;
            }
            let left = area.right().saturating_sub(x);
            x += put(buf, area, (x, y), &look.fit(text, width, align), left, style, look);
            let gap = if i == 1 { format!(" {mark} ") } else { "   ".to_owned() };
            x += put(buf, area, (x, y), &gap, area.right().saturating_sub(x), style, look);
        }
    };
    let wide = widths.iter().map(|w| w.0 + 3).sum::<u16>() + COLUMN_GAP;
    let columns = usize::from(((area.width + COLUMN_GAP) / wide).max(1)).min(MOST_COLUMNS);
    for (column, (rows, texts)) in rows.chunks(height).zip(texts.chunks(height)).take(columns).enumerate() {
        let x = area.x + column as u16 * wide;
        cells(x, area.y, ["", first, second, "B − A", "ulp"], " ", look.theme.dim);
        for (y, (row, text)) in (area.y + 1..area.bottom()).zip(rows.iter().zip(texts)) {
            let differs = pairs.is_whole() && row.a.to_bits() != row.b.to_bits();
            let style = match (cursor == Some(row.flat), differs) {
                (true, _) => look.theme.text.patch(look.theme.cursor),
                (false, true) => look.theme.changed,
                (false, false) => look.theme.text,
            };
            let ulp = ulps(row.ulp);
            cells(x, y, [&text.0, &text.1, &text.2, &text.3, &ulp], if differs { "≠" } else { " " }, style);
        }
    }
    (rows.len().min(height) as u16 + 2).min(area.height)
}
