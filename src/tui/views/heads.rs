//! All heads of an attention next to each other, on one scale; one query is looked at in all of them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::heads::{Attention, From, facts};
use crate::text::{Align, Msg, tr};
use crate::tui::colour::Ramp;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::source::{Labelled, Source};
use crate::tui::pictures::{following, grid, nothing};
use crate::tui::shown::Shown;
use crate::tui::widgets::legend;

/// Keys that the arcs lead to.
const ARCS: usize = 3;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let Some(attention) = Attention::of(d, |head| format!("{} {}", tr(look.lang, "tui.head"), head + 1)) else {
        return nothing(area, buf, "tui.no_heads", look);
    };
    let digits = app.ui.settings.digits;
    let sources: Vec<Source<'_>> = attention.tables.iter().filter_map(|t| Source::new(app, t, digits)).collect();
    let Some(first) = sources.first() else {
        return nothing(area, buf, "tui.no_heads", look);
    };
    let labels = Labelled::new(d, first.table);
    let line = |i: u16| Rect { y: area.y + i.min(area.height), height: 1.min(area.height.saturating_sub(i)), ..area };
    let path = &d.session.runs[attention.run].program.node(attention.node).path;
    let mut title = path.to_string();
    if attention.batch.1 > 1 {
        let batch = Msg::new("tui.heads.batch").arg("at", attention.batch.0 + 1).arg("all", attention.batch.1);
        title = format!("{title} · {}", batch.render(look.lang));
    }
    if attention.weights {
        let axes = Msg::new("tui.heads.axes").render(look.lang);
        title = format!("{title} · {axes}");
    }
    put(buf, area, (area.x, area.y), &title, area.width, look.theme.dim, look);
    // One scale for all heads: the tensor's.
    let scale = first.scale(app);
    legend::render(line(1), buf, &scale, digits, look);
    let from = if attention.weights { attention.from(d) } else { Vec::new() };
    let body = Rect { y: area.y + 2.min(area.height), height: area.height.saturating_sub(2), ..area };
    let wanted = if from.is_empty() || body.height < 12 { 0 } else { (from.len() as u16 + 6).min(body.height / 3) };
    let maps = Rect { height: body.height - wanted, ..body };
    let n = sources.len();
    let columns = columns(&sources, &labels, maps, look);
    let lines = n.div_ceil(columns) as u16;
    let (w, h) = (maps.width / columns as u16, maps.height / lines.max(1));
    let query = attention.weights.then_some(attention.query);
    let (mut low, mut top) = (maps.y, maps.y);
    for (i, source) in sources.iter().enumerate() {
        let column = (i % columns) as u16;
        // A line of heads begins below the one before it.
        if column == 0 && i > 0 {
            top = low + 1;
        }
        let height = h.min(maps.bottom().saturating_sub(top));
        let place = Rect { x: maps.x + column * w, y: top, width: w.saturating_sub(2), height };
        if place.height < 2 {
            break;
        }
        let mut at = place.x;
        let style = if n > 1 && i == d.head() { look.theme.accent } else { look.theme.title };
        at += put(buf, place, (at, place.y), &source.table.symbol, place.width, style, look) + 2;
        if attention.weights {
            let text = heading(app, source, &labels, look);
            put(buf, place, (at, place.y), &text, place.right().saturating_sub(at), look.theme.dim, look);
        }
        let below = Rect { y: place.y + 1, height: place.height - 1 - u16::from(place.height > 5), ..place };
        let scale =
            if app.ui.settings.scale == crate::app::settings::ScaleMode::Tensor { scale } else { source.scale(app) };
        let used = grid::draw(app, source, &labels, &scale, query, below, buf, look);
        low = low.max(used.bottom());
    }
    let rest = Rect { y: low + 1, height: body.bottom().saturating_sub(low + 1), ..area };
    if from.is_empty() {
        following::draw(app, &[rest], buf, look, shown);
    } else {
        looks_at(app, &attention, &labels, &from, rest, buf, look);
    }
}

/// `H 0.98  diagonal 0.51  read→[SEP] 0.27`.
fn heading(app: &App, source: &Source<'_>, labels: &Labelled<'_>, look: &Look) -> String {
    let Some(facts) = facts(&app.nav, source.table) else { return String::new() };
    let mut text = format!("H {:.2}", facts.entropy);
    if let Some((pattern, share)) = facts.pattern {
        text = format!("{text}  {} {share:.2}", tr(look.lang, pattern.key()));
    }
    let (q, k, p) = facts.peak;
    format!("{text}  {}→{} {p:.2}", labels.row(q), labels.column(k))
}

/// Columns of the grid of heads: those that make the cells largest.
fn columns(sources: &[Source<'_>], labels: &Labelled<'_>, area: Rect, look: &Look) -> usize {
    let n = sources.len();
    let size = |c: usize| {
        let lines = n.div_ceil(c) as u16;
        let (w, h) = ((area.width / c as u16).saturating_sub(2), (area.height / lines).saturating_sub(2));
        let place = Rect { width: w, height: h, ..area };
        match grid::cells(&sources[0], labels, place, look) {
            // Numbers first, then as much of the screen as possible.
            Some(cells) => 1_000_000 + cells.area(),
            // A character is about twice as high as wide.
            None => u32::from(w.min(h * 2)),
        }
    };
    (1..=n).max_by_key(|c| (size(*c), std::cmp::Reverse(*c))).unwrap_or(1)
}

/// What the query takes from each key: the mean of all heads as a bar, and the head that takes most; arcs between the
/// words of the sentence.
fn looks_at(
    app: &App,
    attention: &Attention,
    labels: &Labelled<'_>,
    from: &[From],
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) {
    if area.height < 3 {
        return;
    }
    let theme = &look.theme;
    let digits = app.ui.settings.digits;
    let word = |label: String, at: usize| if label.is_empty() { at.to_string() } else { label };
    let query = word(labels.row(attention.query), attention.query);
    let title = Msg::new("tui.heads.looks_at").arg("query", query).arg("heads", attention.tables.len());
    put(buf, area, (area.x, area.y), &title.render(look.lang), area.width, theme.accent, look);
    let room = usize::from(area.height - 1);
    let arcs = arcs(attention, labels, from, look).filter(|a| a.0 <= area.width && room > from.len().min(4) + 5);
    let lines = if arcs.is_some() { room - 5 } else { room };
    let mut order: Vec<&From> = from.iter().collect();
    if from.len() > lines {
        order.sort_by(|a, b| b.mean.total_cmp(&a.mean).then(a.key.cmp(&b.key)));
    }
    let most = from.iter().map(|f| f.mean).fold(0.0, f64::max);
    let label = from.iter().map(|f| look.width(&word(labels.column(f.key), f.key))).max().unwrap_or(0).min(12);
    let many = attention.tables.len() > 1;
    let mut y = area.y + 1;
    for f in order.into_iter().take(lines) {
        let mut x = area.x + 2;
        let text = look.fit(&word(labels.column(f.key), f.key), label, Align::Left);
        x += put(buf, area, (x, y), &text, label, theme.label, look) + 1;
        let number = look.fit(&digits.format_short(f.mean), 8, Align::Right);
        x += put(buf, area, (x, y), &number, 8, theme.text, look) + 1;
        let bar_room = (area.width.saturating_sub(label + 36)).min(90);
        let share = if most > 0.0 { f.mean / most } else { 0.0 };
        let long = (share * f64::from(bar_room)).round() as u16;
        let colour = look.palette.at(Ramp::Sequential, 0.3 + 0.6 * share).map_or(theme.text, |c| theme.text.fg(c.0));
        let bar = look.glyphs.bar[look.glyphs.bar.len() - 1].repeat(usize::from(long));
        x += put(buf, area, (x, y), &bar, bar_room, colour, look) + 1;
        if many {
            let strongest = Msg::new("tui.heads.strongest")
                .arg("head", f.strongest.0 + 1)
                .arg("value", digits.format_short(f.strongest.1));
            put(buf, area, (x, y), &strongest.render(look.lang), area.right().saturating_sub(x), theme.dim, look);
        }
        y += 1;
    }
    if let Some((_, lines)) = arcs {
        for (line, style) in lines.iter().zip([theme.text, theme.accent, theme.accent, theme.accent]) {
            y += 1;
            put(buf, area, (area.x + 2, y), line, area.width - 2, style, look);
        }
        y += 1;
    }
    let rest = Rect { y: y + 1, height: area.bottom().saturating_sub(y + 1), ..area };
    by_head(app, attention, labels, rest, buf, look);
}

/// The query's row in each head: a line a head, a cell a key.
fn by_head(app: &App, attention: &Attention, labels: &Labelled<'_>, area: Rect, buf: &mut Buffer, look: &Look) {
    let keys = attention.tables.first().map_or(0, |t| t.plane.cols);
    let width = area.width.saturating_sub(12) / keys.clamp(1, 999) as u16;
    let digits = app.ui.settings.digits;
    let sources: Vec<Source<'_>> = attention.tables.iter().filter_map(|t| Source::new(app, t, digits)).collect();
    if width < 5 || usize::from(area.height) < sources.len() + 1 || sources.is_empty() {
        return;
    }
    let width = width.min(14);
    let left = area.x + 12;
    for c in 0..keys {
        let text = look.fit(&look.cut(&labels.column(c), width - 1), width - 1, Align::Right);
        put(buf, area, (left + c as u16 * width, area.y), &text, width, look.theme.label, look);
    }
    let scale = sources[0].scale(app);
    for (y, source) in (area.y + 1..area.bottom()).zip(&sources) {
        put(buf, area, (area.x + 2, y), &source.table.symbol, 10, look.theme.label, look);
        for c in 0..keys {
            let (value, kind) = source.cell_kind(attention.query, c);
            let style = scale.style(value, kind, &look.theme, &look.palette);
            let place = Rect { x: left + c as u16 * width, y, width, height: 1 };
            grid::fill(buf, place, style);
            let text = look.fit(&grid::number(digits, value, width), width - 1, Align::Right);
            put(buf, place, (place.x, y), &text, width, style, look);
        }
    }
}

/// The sentence on a line, and arcs below it from the query to the keys that it takes most from.
fn arcs(attention: &Attention, labels: &Labelled<'_>, from: &[From], look: &Look) -> Option<(u16, Vec<String>)> {
    let keys = from.len();
    if keys > 24 || attention.tables.first()?.plane.rows != keys {
        return None;
    }
    let mut line = String::new();
    let mut middles: Vec<u16> = Vec::new();
    for k in 0..keys {
        let word = labels.column(k);
        let word = if word.is_empty() { k.to_string() } else { word };
        let start = look.width(&line);
        middles.push(start + look.width(&word) / 2);
        line = format!("{line}{word}  ");
    }
    let width = look.width(&line);
    let mut order: Vec<&From> = from.iter().filter(|f| f.key != attention.query && f.mean > 0.0).collect();
    order.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let mut lines = vec![line];
    let [h, _, _, _, br, bl] = look.glyphs.frame;
    let q = middles[attention.query];
    for f in order.into_iter().take(ARCS) {
        let k = middles[f.key];
        let (a, b) = (q.min(k), q.max(k));
        let arc = format!(
            "{}{bl}{}{br} {:.2}",
            " ".repeat(a.into()),
            h.repeat(usize::from((b - a).saturating_sub(1))),
            f.mean
        );
        lines.push(arc);
    }
    Some((width, lines))
}
