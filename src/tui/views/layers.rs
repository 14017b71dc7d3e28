//! The residual stream as strips: a line for each stage, a cell for each token; below, the heads of all layers.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::layers::{Stage, Stream, all_heads};
use crate::program::Side;
use crate::text::{Align, Msg, tr};
use crate::tui::colour::{CellKind, Ramp};
use crate::tui::draw::{Look, follow, put};
use crate::tui::pictures::{grid, nothing, thumbnails};
use crate::tui::scale::Scale;
use crate::tui::shown::Shown;
use crate::tui::theme::Depth;
use crate::tui::widgets::legend;
use crate::tui::widgets::raster::split;

/// Least height that has the heads below the strips.
const WITH_HEADS: u16 = 20;
/// Cells of the name, the norm, its bar, and the cosine.
const NAME: u16 = 28;
const NORM: u16 = 9;
const BAR: u16 = 10;
const COSINE: u16 = 7;
/// Widest cell of a token.
const CELL: u16 = 9;

/// A line of the strips.
enum Line<'a> {
    Heading(&'a Stream),
    Stage(&'a Stream, usize),
}

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let streams = Stream::all(d);
    if streams.is_empty() {
        return nothing(area, buf, "tui.no_layers", look);
    }
    let mut title = tr(look.lang, "tui.layers_title").to_owned();
    if streams[0].batch.1 > 1 {
        let batch = Msg::new("tui.heads.batch").arg("at", streams[0].batch.0 + 1).arg("all", streams[0].batch.1);
        title = format!("{title} · {}", batch.render(look.lang));
    }
    put(buf, area, (area.x, area.y), &title, area.width, look.theme.title, look);
    let scale = scale(app, &streams);
    let one = |y: u16| Rect { y, height: u16::from(y < area.bottom()), ..area };
    legend::render(one(area.y + 1), buf, &scale, app.ui.settings.digits, look);

    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut at = None;
    for stream in &streams {
        lines.push(Line::Heading(stream));
        at = at.or(stream.cursor.map(|c| lines.len() + c));
        lines.extend((0..stream.stages.len()).map(|i| Line::Stage(stream, i)));
    }
    let body = Rect { y: area.y + 2.min(area.height), height: area.height.saturating_sub(2), ..area };
    let heads = all_heads(d, look.lang);
    let (mut here, of_layers) = ((d.layer().min(heads.len().saturating_sub(1)), d.head()), heads.len());
    // The heads of a single layer have several lines.
    let heads = match heads.as_slice() {
        [only] if only.len() > 4 => {
            let columns = usize::from(body.width / 40).clamp(2, only.len());
            here = (d.head() / columns, d.head() % columns);
            only.chunks(columns).map(<[_]>::to_vec).collect()
        }
        _ => heads,
    };
    let lower = if !heads.is_empty() && body.height >= WITH_HEADS {
        let left = body.height.saturating_sub(lines.len() as u16 + 1);
        left.max(body.height * 2 / 5).min(heads.len() as u16 * 15 + 2)
    } else {
        0
    };
    let height = usize::from(body.height - lower).min(lines.len());
    let at = at.unwrap_or(0);
    let first = follow(at.saturating_sub(height / 2), at, height, lines.len());
    shown.page.rows = height.max(1);
    for (y, line) in (body.y..).zip(lines.iter().skip(first).take(height)) {
        match line {
            Line::Heading(stream) => heading(app, stream, one(y), buf, look),
            Line::Stage(stream, i) => stage(app, stream, *i, &scale, one(y), buf, look),
        }
    }
    if first > 0 || first + height < lines.len() {
        let text = format!("{}-{}/{}", first + 1, first + height, lines.len());
        let width = look.width(&text);
        put(buf, area, (area.right().saturating_sub(width), area.y), &text, width, look.theme.accent, look);
    }
    let below = Rect { y: body.y + height as u16 + 1, height: lower.saturating_sub(1), ..body };
    if lower > 3 {
        let place = Rect { y: below.y + 1, height: below.height - 1, ..below };
        let all = (heads.len(), heads.iter().map(Vec::len).max().unwrap_or(0));
        let seen = thumbnails::thumbnails(app, &heads, here, place, buf, look);
        let mut title = tr(look.lang, "tui.layers.heads").to_owned();
        if let Some((layers, heads)) = seen.filter(|(l, h)| of_layers > 1 && (l.1 - l.0 + 1, h.1 - h.0 + 1) != all) {
            let part = Msg::new("tui.layers.part")
                .arg("layers", format!("{}-{}/{}", layers.0, layers.1, all.0))
                .arg("heads", format!("{}-{}/{}", heads.0, heads.1, all.1));
            title = format!("{title} · {}", part.render(look.lang));
        }
        put(buf, below, (below.x, below.y), &title, below.width, look.theme.title, look);
    }
}

/// One scale for all norms.
fn scale(app: &App, streams: &[Stream]) -> Scale {
    let mut all = Scale::positive(f64::INFINITY, f64::NEG_INFINITY);
    for stream in streams {
        for stage in &stream.stages {
            let Some(facts) = stream.facts(&app.nav, stage) else { return Scale::pending(all.kind) };
            for norm in &facts.norms[stream.rows()] {
                if norm.is_nan() {
                    all.apart.nan += 1;
                } else if norm.is_infinite() {
                    all.apart.pos_inf += 1;
                } else {
                    (all.min, all.max) = (all.min.min(*norm), all.max.max(*norm));
                }
            }
        }
    }
    all.with_log(app.ui.settings.log_scale)
}

/// Where the strip of the tokens begins, and the width of a token's cell (0: several tokens share a cell).
fn strip(stream: &Stream, area: Rect) -> (Rect, u16) {
    let left = (1 + NAME.min(area.width / 3) + NORM + BAR + COSINE + 2).min(area.width);
    let room = Rect { x: area.x + left, width: area.width - left, ..area };
    (room, (room.width / stream.tokens.clamp(1, 9999) as u16).min(CELL))
}

/// The side, and the tokens over their cells.
fn heading(app: &App, stream: &Stream, area: Rect, buf: &mut Buffer, look: &Look) {
    let key = if stream.side == Side::Source { "phase.source_side" } else { "phase.target_side" };
    put(buf, area, (area.x, area.y), tr(look.lang, key), area.width, look.theme.accent, look);
    let name = 1 + NAME.min(area.width / 3);
    let columns = [(name, NORM, "‖x‖"), (name + NORM + BAR + 1, COSINE, "cos")];
    for (x, width, text) in columns {
        let text = look.fit(text, width, Align::Right);
        put(buf, area, (area.x + x, area.y), &text, width, look.theme.dim, look);
    }
    let (room, width) = strip(stream, area);
    if width < 2 {
        let text = format!("0-{}", stream.tokens.saturating_sub(1));
        put(buf, room, (room.x, room.y), &text, room.width, look.theme.label, look);
        return;
    }
    for t in 0..stream.tokens {
        let text = look.cut(&stream.token(&app.nav, t), width.saturating_sub(1).max(1));
        put(buf, room, (room.x + t as u16 * width, room.y), &text, width, look.theme.label, look);
    }
}

/// Name, mean norm with a bar, mean cosine with the stage before, and the norm of each token.
fn stage(app: &App, stream: &Stream, i: usize, scale: &Scale, area: Rect, buf: &mut Buffer, look: &Look) {
    let theme = &look.theme;
    let stage: &Stage = &stream.stages[i];
    let here = stream.cursor == Some(i);
    let style = if here { theme.accent } else { theme.text };
    let digits = app.ui.settings.digits;
    let mut x = area.x;
    x += put(buf, area, (x, area.y), if here { look.glyphs.here } else { " " }, 1, style, look);
    let name = NAME.min(area.width / 3);
    let text = look.fit(&look.cut_start(&stage.path, name), name, Align::Left);
    x += put(buf, area, (x, area.y), &text, name, style, look);
    let Some(facts) = stream.facts(&app.nav, stage) else {
        put(buf, area, (x + 1, area.y), tr(look.lang, "tui.legend.pending"), area.width, theme.dim, look);
        return;
    };
    let rows = stream.rows();
    let mean = facts.mean_norm(rows.clone());
    let text = look.fit(&digits.format_short(mean), NORM, Align::Right);
    x += put(buf, area, (x, area.y), &text, NORM, style, look) + 1;
    let share = scale.position(mean);
    let colour = look.palette.at(Ramp::Sequential, share.max(0.15)).map_or(theme.text, |c| theme.text.fg(c.0));
    let long = ((share * f64::from(BAR)).round() as u16).min(BAR);
    let bar = look.glyphs.bar[look.glyphs.bar.len() - 1].repeat(usize::from(long));
    put(buf, area, (x, area.y), &bar, BAR, colour, look);
    x += BAR;
    let cosine = facts.mean_cosine(rows.clone()).map_or_else(|| "—".to_owned(), |c| format!("{c:.3}"));
    put(buf, area, (x, area.y), &look.fit(&cosine, COSINE, Align::Right), COSINE, theme.dim, look);

    let (room, width) = strip(stream, area);
    let norms = &facts.norms[rows];
    // Several tokens share a cell where there are more tokens than columns: the largest norm counts.
    let parts = split(&(0..norms.len()), usize::from(room.width));
    let width = width.max(1);
    for (k, part) in parts.iter().enumerate() {
        let norm =
            norms[part.clone()].iter().copied().fold(f64::NEG_INFINITY, |a, b| if b.is_nan() { b } else { a.max(b) });
        let cell = Rect { x: room.x + k as u16 * width, y: room.y, width, height: 1 }.intersection(room);
        let kind = CellKind::of(norm);
        let style = scale.style(norm, kind, theme, &look.palette);
        grid::fill(buf, cell, style);
        if width >= 5 {
            let text = look.fit(&grid::number(digits, norm, width), width - 1, Align::Right);
            put(buf, cell, (cell.x, cell.y), &text, width, style, look);
        } else if theme.depth == Depth::None {
            let shades = look.glyphs.shades;
            let shade = (scale.magnitude(norm) * (shades.len() - 1) as f64).round() as usize;
            put(buf, cell, (cell.x, cell.y), shades[shade.min(shades.len() - 1)], 1, style, look);
        }
    }
}
