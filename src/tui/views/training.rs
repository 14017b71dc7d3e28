//! Training across updates: loss, gradient norms, one attention map, and the embeddings on a plane.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::training::{Event, Picture, State};
use crate::session::insight::{AttentionMap, TrainProbe};
use crate::text::{Msg, tr};
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::grid::Values;
use crate::tui::pictures::words::why_nothing;
use crate::tui::scale::{Kind, Scale};
use crate::tui::shown::Shown;
use crate::tui::widgets::bars::{Bar, Bars};
use crate::tui::widgets::chart::{Chart, Series};
use crate::tui::widgets::legend;
use crate::tui::widgets::status;

/// Room that four pictures need.
const GRID: (u16, u16) = (64, 14);
/// Most points of a line.
const POINTS: u64 = 512;
/// Most lines of a chart: as many as have colours and points of their own.
const LINES: usize = 6;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let t = &app.views.training;
    if let Some(why) = &t.failed {
        return why_nothing(why, area, buf, look);
    }
    let row = |i: u16| Rect { y: area.y + i.min(area.height), height: 1.min(area.height.saturating_sub(i)), ..area };
    let digits = app.ui.settings.digits;
    let probe = t.probe();
    let mut left = Msg::new("training.after").arg("at", t.at).arg("made", t.made()).render(look.lang);
    if let Some(g) = probe {
        if g.look.update == t.at {
            let loss = Msg::new("training.loss").arg("loss", digits.format(g.look.loss));
            left = format!("{left} · {}", loss.render(look.lang));
        } else {
            let nearest = Msg::new("training.nearest").arg("update", g.look.update);
            left = format!("{left} · {}", nearest.render(look.lang));
        }
    }
    let right = if t.is_training() {
        let left = t.goal.saturating_sub(t.made()) as f64 * t.pace;
        Msg::new("training.going")
            .arg("made", t.made())
            .arg("goal", t.goal)
            .arg("left", seconds(left))
            .render(look.lang)
    } else if t.is_busy() {
        tr(look.lang, "training.computing").to_owned()
    } else if t.losses.is_empty() {
        let updates = t.rule.steps;
        Msg::new("training.none_yet").arg("updates", updates).render(look.lang)
    } else {
        format!("{} · lr {}", t.rule.kind.name(), t.rule.lr)
    };
    status::ends(row(0), buf, &left, &right, look);
    slider(t, row(1), buf, look);
    // What happened by now, the newest last.
    let events: Vec<String> = t.events.iter().filter(|e| e.update <= t.at).map(|e| event(e, look)).collect();
    let said = u16::from(!events.is_empty() && area.height > GRID.1 + 2);
    if said > 0 {
        let text = format!("{} {}", look.glyphs.bookmark, events.join(" · "));
        let place = row(2);
        put(buf, place, (place.x, place.y), &look.cut_start(&text, place.width), place.width, look.theme.warn, look);
    }
    let top = (2 + said).min(area.height);
    let body = Rect { y: area.y + top, height: area.height - top, ..area };
    let Some(probe) = probe else { return };
    let picture = |p: Picture, place: Rect, buf: &mut Buffer| match p {
        Picture::Loss => loss(app, place, buf, look),
        Picture::Gradients => gradients(app, probe, place, buf, look),
        Picture::Attention => attention(app, probe, place, buf, look),
        Picture::Embeddings => embeddings(app, probe, place, buf, look),
    };
    let roomy = body.width >= GRID.0 && body.height >= GRID.1;
    match t.only {
        Some(only) => picture(only, body, buf),
        None if !roomy => picture(Picture::Loss, body, buf),
        None => {
            let (w, h) = (body.width / 2, body.height / 2);
            for (i, &p) in Picture::ALL.iter().enumerate() {
                let (column, line) = (i as u16 % 2, i as u16 / 2);
                let place = Rect {
                    x: body.x + column * w,
                    y: body.y + line * h,
                    width: if column == 0 { w - 1 } else { body.width - w },
                    height: if line == 0 { h } else { body.height - h },
                };
                picture(p, place, buf);
            }
        }
    }
}

/// `diagonal at 23 (decoder.0.self_attn.weights, head 1)`.
fn event(event: &Event, look: &Look) -> String {
    Msg::new("training.event")
        .arg("pattern", tr(look.lang, event.pattern.key()))
        .arg("update", event.update)
        .arg("path", &event.head.0)
        .arg("head", event.head.1 + 1)
        .render(look.lang)
}

/// `8 s`, `3 min`.
fn seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "?".to_owned(),
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Where one is among all updates, made and to be made.
fn slider(t: &State, area: Rect, buf: &mut Buffer, look: &Look) {
    if area.is_empty() || area.width < 3 {
        return;
    }
    let all = t.goal.max(t.made()).max(1);
    let place = |n: u64| (n as f64 / all as f64 * f64::from(area.width - 1)).round() as u16;
    let theme = &look.theme;
    for x in 0..area.width {
        let style = if x <= place(t.made()) && t.made() > 0 { theme.accent } else { theme.dim };
        put(buf, area, (area.x + x, area.y), look.glyphs.frame[0], 1, style, look);
    }
    for event in &t.events {
        put(buf, area, (area.x + place(event.update), area.y), look.glyphs.bookmark, 1, theme.warn, look);
    }
    let at = (area.x + place(t.at), area.y);
    put(buf, area, at, look.glyphs.here, 1, theme.cursor, look);
}

/// A line with a picture's name; returns the room below.
fn headed(text: &str, area: Rect, buf: &mut Buffer, look: &Look) -> Rect {
    put(buf, area, (area.x, area.y), text, area.width, look.theme.title, look);
    Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(1), ..area }
}

/// How often the smallest loss goes into the largest from which on the chart is logarithmic.
const DECADES: f64 = 1000.0;

/// The loss before each update, and that after the last one.
fn loss(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let t = &app.views.training;
    let mut values = t.losses.clone();
    let last = t.probes().last().filter(|g| g.look.update == t.made());
    values.extend(last.map(|g| g.look.loss));
    // Where the loss falls through several powers of ten, the rest of the line would lie on the axis.
    let (min, max) = values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
    let log = app.ui.settings.log_scale || min > 0.0 && max.is_finite() && max > DECADES * min;
    if log {
        for v in &mut values {
            *v = v.log10();
        }
    }
    let key = if log { "training.log_loss" } else { "training.loss_title" };
    let body = headed(tr(look.lang, key), area, buf, look);
    let end = format!("{} {}", tr(look.lang, "tui.hint.update"), t.made());
    Chart {
        series: &[Series { name: tr(look.lang, "training.series").to_owned(), values }],
        digits: app.ui.settings.digits,
        ends: ("0", &end),
        cursor: usize::try_from(t.at).ok(),
    }
    .render(body, buf, look);
}

/// Gradient norms: part by part across updates, and next to one another at the update one looks at.
fn gradients(app: &App, probe: &TrainProbe, area: Rect, buf: &mut Buffer, look: &Look) {
    let t = &app.views.training;
    let alone = t.only == Some(Picture::Gradients);
    let norms = &probe.look.gradients;
    let mut bars: Vec<Bar> =
        norms.iter().map(|n| Bar { label: n.part.clone(), value: n.parameters, ..Bar::default() }).collect();
    if alone {
        let own =
            probe.parameters.iter().map(|(path, value)| Bar { label: path.clone(), value: *value, ..Bar::default() });
        bars.extend(own);
    }
    // Bars below the chart where there is room for both.
    let wanted = bars.len() as u16 + 1;
    let room = area.height.saturating_sub(8);
    let listed = if t.made() == 0 {
        area.height
    } else if room >= 4 {
        wanted.min(if alone { area.height / 2 } else { room })
    } else {
        0
    };
    let chart = Rect { height: area.height - listed, ..area };
    if !chart.is_empty() {
        let body = headed(tr(look.lang, "training.gradients_title"), chart, buf, look);
        let step = (t.made() + 1).div_ceil(POINTS).max(1);
        let parts = norms.len();
        // The first, the last, and others evenly between.
        let lines = parts.min(LINES);
        let chosen = (0..lines).map(|i| i * parts.saturating_sub(1) / lines.saturating_sub(1).max(1));
        let series: Vec<Series> = chosen
            .filter_map(|p| {
                let part = &norms.get(p)?.part;
                Some(Series { name: part.clone(), values: across(t, part, step) })
            })
            .collect();
        let end = t.made().to_string();
        Chart {
            series: &series,
            digits: app.ui.settings.digits,
            ends: ("0", &end),
            cursor: usize::try_from(t.at / step).ok(),
        }
        .render(body, buf, look);
    }
    let below = Rect { y: chart.bottom(), height: listed, ..area };
    if !below.is_empty() {
        let text = Msg::new("training.norms_title").arg("update", probe.look.update);
        let body = headed(&text.render(look.lang), below, buf, look);
        Bars {
            full: bars.iter().map(|b| b.value).fold(0.0, f64::max),
            bars: &bars,
            digits: app.ui.settings.digits,
            selected: None,
            offset: 0,
        }
        .render(body, buf, look);
    }
}

/// The logarithm of a part's gradient norm, every `step` updates; between probes it is interpolated.
fn across(t: &State, part: &str, step: u64) -> Vec<f64> {
    let known: Vec<(f64, f64)> = t
        .probes()
        .filter_map(|g| {
            let norm = g.look.gradients.iter().find(|n| n.part == part)?;
            Some((g.look.update as f64, norm.parameters.log10()))
        })
        .collect();
    let value = |x: f64| {
        let after = known.partition_point(|k| k.0 < x);
        match (after.checked_sub(1).map(|i| known[i]), known.get(after)) {
            (_, Some(b)) if b.0 <= x => b.1,
            (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
            _ => f64::NAN,
        }
    };
    (0..=t.made()).step_by(step as usize).map(|u| value(u as f64)).collect()
}

/// One attention map of the first sentence.
fn attention(app: &App, probe: &TrainProbe, area: Rect, buf: &mut Buffer, look: &Look) {
    let (t, maps) = (&app.views.training, &probe.look.attention);
    let Some(map) = maps.get(t.map.min(maps.len().saturating_sub(1))) else {
        let body = headed(tr(look.lang, "training.attention_title"), area, buf, look);
        return why_nothing(&Msg::new("training.no_attention"), body, buf, look);
    };
    let which = Msg::new("training.map")
        .arg("path", &map.path)
        .arg("head", map.head)
        .arg("at", t.map.min(maps.len() - 1) + 1)
        .arg("all", maps.len());
    let mut which = which.render(look.lang);
    if probe.maps_left_out > 0 {
        let more = Msg::new("training.maps_left_out").arg("count", probe.maps_left_out);
        which = format!("{} · {which}", more.render(look.lang));
    }
    let body = headed(&which, area, buf, look);
    heat(app, map, body, buf, look);
}

fn heat(app: &App, map: &AttentionMap, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.nav;
    let (rows, columns) = (map.weights.len(), map.weights.first().map_or(0, Vec::len));
    if rows == 0 || columns == 0 {
        return;
    }
    let labels = app.views.training.run.and_then(|run| {
        let node = d.session.runs[run].program.find(&map.path)?;
        let axis = |a| d.session.axis_labels(run, node, a, 0);
        Some((axis(2), axis(3)))
    });
    let row_label = |r: usize| labels.as_ref().and_then(|l| l.0.get(r)).unwrap_or_default();
    let column_label = |c: usize| labels.as_ref().and_then(|l| l.1.get(c)).unwrap_or_default();
    // One scale for all updates: the film does not change its colours.
    let scale = Scale { kind: Kind::Probability, ..Scale::positive(0.0, 1.0) }.with_uniform(columns);
    let line = Rect { height: area.height.min(1), ..area };
    legend::render(line, buf, &scale, app.ui.settings.digits, look);
    Values {
        size: (rows, columns),
        cell: &|r, c| (map.weights[r][c], CellKind::of(map.weights[r][c])),
        kept: None,
        row_label: &row_label,
        column_label: &column_label,
        scale,
        digits: app.ui.settings.digits,
        cursor: None,
    }
    .render(Rect { y: area.y + line.height, height: area.height - line.height, ..area }, buf, look);
}

/// Words at the places of their embeddings.
fn embeddings(app: &App, probe: &TrainProbe, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.nav;
    let t = &app.views.training;
    let body = headed(tr(look.lang, "training.embeddings_title"), area, buf, look);
    let Some(places) = t.scatter.places.get(&probe.look.update) else {
        return;
    };
    if body.width < 8 || body.height < 3 {
        return;
    }
    let share = |x: f64, (low, high): (f64, f64)| {
        if high > low { ((x - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
    };
    let point = look.glyphs.points[0];
    // Points first: they are never covered by a word.
    let spots: Vec<(usize, u16, u16)> = places
        .iter()
        .zip(&t.tokens)
        .filter(|(place, _)| place.iter().all(|x| x.is_finite()))
        .map(|(place, token)| {
            let x = share(place[0], t.scatter.bounds[0]) * f64::from(body.width - 1);
            let y = (1.0 - share(place[1], t.scatter.bounds[1])) * f64::from(body.height - 1);
            (*token, body.x + x.round() as u16, body.y + y.round() as u16)
        })
        .collect();
    for (_, x, y) in &spots {
        put(buf, body, (*x, *y), point, 1, look.theme.accent, look);
    }
    for (token, x, y) in &spots {
        let word = t.followed(d, *token);
        let width = look.width(&word).min(12);
        let right = x + 1;
        // To the right of the point, else to its left, else not at all.
        let at = if right + width <= body.right() && free(buf, right, *y, width) {
            right
        } else if *x >= body.x + width && free(buf, x - width, *y, width) {
            x - width
        } else {
            continue;
        };
        put(buf, body, (at, *y), &word, width, look.theme.text, look);
    }
}

fn free(buf: &Buffer, x: u16, y: u16, width: u16) -> bool {
    (x..x + width).all(|x| buf.cell((x, y)).is_some_and(|c| c.symbol() == " "))
}
