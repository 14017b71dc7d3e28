//! The third pane of large terminals: the map, how the numbers of the tensor are spread, what is watched.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::colour::Ramp;
use super::draw::{Look, put};
use super::shown::{Shown, Target};
use super::views::{hottest, map_block, map_legend};
use crate::app::app::App;
use crate::app::breakpoints::{trail, watch_rows};
use crate::app::measure::{BINS, Part};
use crate::app::navigator::{Plane, TreeRow};
use crate::app::views::map::{Group, Map};
use crate::debug::breaks::Watch;
use crate::text::{Align, tr};
use crate::tui::scale::Scale;
use crate::tui::widgets::paragraph::{Span, Wrapped};

/// Draws it.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let theme = &look.theme;
    let map = Map::of(d, &app.edits, &app.breaks, look.lang);
    let sentence = Map::sentence(d, look.lang).render(look.lang);
    let text = Wrapped::new(&[Span::new(sentence, theme.text)], area.width, look);
    let head = (text.height() as u16).min(6).min(area.height);
    text.render(Rect { height: head, ..area }, buf, 0, None, look);
    let histogram = BINS as u16 + 2;
    let watches = watch_rows(d, &app.breaks, app.ui.settings.digits);
    let below = histogram + if watches.is_empty() { 0 } else { 2 * watches.len() as u16 + 2 };
    let most = hottest(app, &map);
    map_legend(app, most, Rect { y: area.y + head, height: 1.min(area.height - head), ..area }, buf, look);
    let room = area.height.saturating_sub(head + 2 + below.min(area.height / 2));
    let mut y = area.y + head + 2;
    // All groups with their blocks where there is room, else only the one that one is in is open.
    let all: usize = map.groups.iter().map(|g| g.blocks.len() + 1).sum();
    let open = |g: &Group| all <= usize::from(room) || g.here();
    let lines: Vec<(usize, Option<usize>)> = map
        .groups
        .iter()
        .enumerate()
        .flat_map(|(i, g)| {
            let blocks = if open(g) { g.blocks.len() } else { 0 };
            std::iter::once((i, None)).chain((0..blocks).map(move |k| (i, Some(k))))
        })
        .collect();
    let at = lines.iter().position(|(i, k)| k.is_some_and(|k| map.groups[*i].blocks[k].here)).unwrap_or(0);
    let first = super::draw::follow(at.saturating_sub(usize::from(room) / 2), at, usize::from(room), lines.len());
    for (i, k) in lines.iter().skip(first).take(usize::from(room)) {
        let group = &map.groups[*i];
        let line = Rect { y, height: 1, ..area };
        match k {
            None => {
                let style = if group.here() { theme.accent } else { theme.title };
                put(buf, area, (area.x, y), &group.title, area.width, style, look);
            }
            Some(k) => {
                let block = &group.blocks[*k];
                map_block(app, block, most, line, buf, look);
                shown.hits.push((line, Target::Row(TreeRow::Step(block.steps.0))));
            }
        }
        y += 1;
    }
    let rest = Rect { y: y + 1, height: area.bottom().saturating_sub(y + 1), ..area };
    let used = spread(app, rest, buf, look);
    let mut y = rest.y + used + 1;
    if !watches.is_empty() {
        put(buf, area, (area.x, y), tr(look.lang, "tui.pane.watches"), area.width, theme.title, look);
        for (row, watch) in watches.iter().zip(app.breaks.watches()) {
            y += 1;
            put(buf, area, (area.x, y), &row.text.render(look.lang), area.width, theme.text, look);
            y += u16::from(sparkline(app, watch, Rect { y: y + 1, height: 1, ..area }, buf, look));
        }
    }
}

/// How the numbers of the tensor are spread, over every cell of it; gives the lines used.
fn spread(app: &App, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
    let d = &app.nav;
    let theme = &look.theme;
    let digits = app.ui.settings.digits;
    let Some(view) = d.view() else { return 0 };
    let program = &d.session.runs[view.run].program;
    if program.node(view.node).dtype != crate::tensor::DType::Float || area.height < 5 {
        return 0;
    }
    let plane = Plane::of_view(view, d.index());
    let title = format!("{} · {}", tr(look.lang, "tui.pane.spread"), view.symbol);
    put(buf, area, (area.x, area.y), &title, area.width, theme.title, look);
    let part = Part::Plane(plane.window());
    let (Some(tally), Some(counts)) =
        (d.tally(view.run, view.node, part), d.numbers.measures.spread(d.origin(view.run, view.node), plane.window()))
    else {
        put(buf, area, (area.x, area.y + 1), tr(look.lang, "tui.legend.pending"), area.width, theme.dim, look);
        return 2;
    };
    let Some((min, max)) = tally.range().filter(|(a, b)| a < b) else { return 1 };
    let scale = Scale::of(crate::app::measure::kind(program, view.node), &tally);
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let height = usize::from(area.height - 1).min(BINS);
    let labels: Vec<String> =
        (0..BINS).map(|i| digits.format_short(min + (max - min) * i as f64 / BINS as f64)).collect();
    let label = labels.iter().map(|l| look.width(l)).max().unwrap_or(0);
    let number = look.width(&most.to_string());
    let room = area.width.saturating_sub(label + number + 2);
    let cell = d.cell().and_then(|(run, c)| Some(d.trace(run)?.get(c.node)?.get(c.flat)));
    for (i, count) in counts.iter().enumerate().take(height) {
        let y = area.y + 1 + i as u16;
        let (low, high) =
            (min + (max - min) * i as f64 / BINS as f64, min + (max - min) * (i + 1) as f64 / BINS as f64);
        let last = i + 1 == BINS;
        let here = cell.is_some_and(|x| x >= low && (x < high || last && x <= high));
        let style = if here { theme.accent } else { theme.dim };
        put(buf, area, (area.x, y), &look.fit(&labels[i], label, Align::Right), label, style, look);
        let long = (*count as f64 / most as f64 * f64::from(room)).ceil() as u16;
        let t = scale.position(f64::midpoint(low, high));
        let t = if scale.ramp() == Ramp::Diverging {
            0.5 + (t - 0.5).signum() * (t - 0.5).abs().max(0.12)
        } else {
            t.max(0.15)
        };
        let colour = look.palette.at(scale.ramp(), t).map_or(theme.text, |c| theme.text.fg(c.0));
        let bar = look.glyphs.bar[look.glyphs.bar.len() - 1].repeat(usize::from(long));
        put(buf, area, (area.x + label + 1, y), &bar, room, colour, look);
        let at = area.right().saturating_sub(number);
        put(buf, area, (at, y), &look.fit(&count.to_string(), number, Align::Right), number, style, look);
    }
    1 + height as u16
}

/// A watch along the steps, a column for one or several of them, and its range; the column of the step one is at is
/// pointed out. Of several steps the last one counts. False where it is no number at any step.
fn sparkline(app: &App, watch: &Watch, area: Rect, buf: &mut Buffer, look: &Look) -> bool {
    let trail = trail(&app.nav, watch);
    let finite = || trail.values.iter().flatten().copied().filter(|x| x.is_finite());
    let (min, max) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    if min > max {
        return false;
    }
    let digits = app.ui.settings.digits;
    let range = format!(" {}..{}", digits.format_short(min), digits.format_short(max));
    let room = area.width.saturating_sub(look.width(&range));
    let n = trail.values.len();
    let columns = usize::from(room).min(n);
    let here = trail.steps.partition_point(|step| *step < app.nav.position());
    for column in 0..columns {
        let part = column * n / columns..(column + 1) * n / columns;
        let at = part.contains(&here);
        let shown = if at { here } else { part.end - 1 };
        let levels = look.glyphs.levels;
        let glyph = match trail.values[shown] {
            Some(x) if x.is_finite() => {
                let share = if max > min { (x - min) / (max - min) } else { 0.5 };
                levels[((share * levels.len() as f64) as usize).min(levels.len() - 1)]
            }
            Some(_) => "!",
            None if at => look.glyphs.more[3],
            None => " ",
        };
        let style = if at { look.theme.accent } else { look.theme.dim };
        put(buf, area, (area.x + column as u16, area.y), glyph, 1, style, look);
    }
    put(buf, area, (area.x + columns as u16, area.y), &range, area.width, look.theme.dim, look);
    true
}
