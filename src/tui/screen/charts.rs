//! Charts: norms along the residual stream, the positional encoding.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::maps;
use super::source::Source;
use crate::app::app::App;
use crate::app::debugger::{Debugger, Plane, TableModel};
use crate::program::NodeId;
use crate::tensor::Axis;
use crate::text::{Align, Msg, tr};
use crate::tui::draw::{Look, put};
use crate::tui::widgets::chart::{Chart, Series};

/// Norms along the residual stream, and a list of what each point is.
pub(super) fn layers(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let Some(view) = d.view() else { return };
    let program = &d.session.runs[view.run].program;
    let in_call = program.node(view.node).path.split('.').take(2).collect::<Vec<_>>().join(".");
    let call = in_call.starts_with("gen.").then_some(in_call);
    let stream: Vec<NodeId> = program
        .nodes()
        .filter(|(_, n)| {
            let last = n.path.rsplit('.').next().unwrap_or("");
            let of_call = match &call {
                Some(call) => n.path.starts_with(call.as_str()) || !n.path.starts_with("gen."),
                None => !n.path.starts_with("gen."),
            };
            of_call
                && !n.path.starts_with("grad.")
                && (last.starts_with("residual")
                    || n.path.ends_with("embed.source.out")
                    || n.path.ends_with("embed.target.out")
                    || last == "out" && n.path.contains("norm"))
        })
        .map(|(id, _)| id)
        .collect();
    if stream.is_empty() {
        put(buf, area, (area.x, area.y), tr(look.lang, "tui.no_layers"), area.width, look.theme.dim, look);
        return;
    }
    let names: Vec<String> = stream.iter().map(|id| program.node(*id).path.to_string()).collect();
    let series = curves(d, view.run, &stream, look);
    let cursor = stream.iter().rposition(|id| *id <= view.node);
    put(buf, area, (area.x, area.y), tr(look.lang, "tui.layers_title"), area.width, look.theme.title, look);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    // The same head in every layer has the lower part, where there is room for it.
    let maps = heads_across(d, view.run, &program.node(view.node).path, look);
    let lower = if maps.len() > 1 && area.height >= 24 { area.height * 2 / 5 } else { 0 };
    maps::maps(app, &maps, Rect { y: area.bottom() - lower, height: lower, ..area }, buf, look);
    let area = Rect { height: area.height - lower, ..area };
    let listed = (names.len() as u16).min(area.height / 2);
    let chart = Rect { height: area.height - listed, ..area };
    Chart {
        series: &series,
        digits: app.ui.settings.digits,
        ends: (&names[0], names.last().map_or("", String::as_str)),
        cursor,
    }
    .render(chart, buf, look);
    let list = Rect { y: chart.bottom(), height: listed, ..area };
    let norm = |i: usize| {
        let norm = d.mean_norm(view.run, stream[i]);
        app.ui.settings.digits.format(norm)
    };
    points(&names, &norm, cursor, list, buf, look);
}

/// One curve of the residual sums and one of the norms for each stack: nothing flows from one stack's stream into
/// the other's.
fn curves(d: &Debugger, run: usize, stream: &[NodeId], look: &Look) -> Vec<Series> {
    let program = &d.session.runs[run].program;
    let path = |id: &NodeId| &program.node(*id).path;
    let of_encoder = |id: &NodeId| path(id).contains("encoder") || path(id).contains("source");
    let both = stream.iter().any(of_encoder) && !stream.iter().all(of_encoder);
    let stacks: &[Option<bool>] = if both { &[Some(true), Some(false)] } else { &[None] };
    let kinds = [("residual", "tui.series.residual"), ("norm", "tui.series.norm")];
    let mut series = Vec::new();
    for stack in stacks {
        for (what, key) in kinds {
            let own = |id: &NodeId| path(id).contains(what) && stack.is_none_or(|encoder| of_encoder(id) == encoder);
            let norm = |id: &NodeId| {
                if own(id) { d.mean_norm(run, *id) } else { f64::NAN }
            };
            let mut values: Vec<f64> = stream.iter().map(norm).collect();
            bridge(&mut values);
            let name = tr(look.lang, key);
            let name = match stack {
                Some(true) => format!("{} · {name}", tr(look.lang, "phase.encoder")),
                Some(false) => format!("{} · {name}", tr(look.lang, "phase.decoder")),
                None => name.to_owned(),
            };
            series.push(Series { name, values });
        }
    }
    series
}

/// The points of the curves as a list around the one that one is at, and how many there are where not all are seen.
fn points(
    names: &[String],
    norm: &dyn Fn(usize) -> String,
    cursor: Option<usize>,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) {
    let all = names.len();
    let height = usize::from(area.height);
    let seen = if all > height { height.saturating_sub(1) } else { all };
    let at = cursor.unwrap_or(0);
    let first = at.saturating_sub(seen / 2).min(all - seen);
    for (y, i) in (area.y..).zip(first..first + seen) {
        let (mark, style) =
            if Some(i) == cursor { (look.glyphs.here, look.theme.accent) } else { (" ", look.theme.text) };
        let name = look.fit(&names[i], 34.min(area.width), Align::Left);
        let text = format!("{mark} {name} {}", norm(i));
        put(buf, area, (area.x, y), &text, area.width, style, look);
    }
    if seen < all && area.height > 0 {
        let [_, _, above, below] = look.glyphs.more;
        let above = if first > 0 { above } else { " " };
        let below = if first + seen < all { below } else { " " };
        let text = format!("{above}{below} {}-{}/{all}", first + 1, first + seen);
        let at = (area.x, area.bottom() - 1);
        put(buf, area, at, &text, area.width, look.theme.accent, look);
    }
}

/// Fills gaps between numbers by straight lines: a point of one kind stands between two of the other.
fn bridge(values: &mut [f64]) {
    let mut last: Option<usize> = None;
    for i in 0..values.len() {
        if !values[i].is_finite() {
            continue;
        }
        if let Some(from) = last {
            let (a, b) = (values[from], values[i]);
            for (at, value) in values[from..i].iter_mut().enumerate().skip(1) {
                let share = at as f64 / (i - from) as f64;
                *value = a * (1.0 - share) + b * share;
            }
        }
        last = Some(i);
    }
}

/// The attention weights of the cursor's head in every layer of its stack: `encoder.*.self_attn.weights`.
fn heads_across(d: &Debugger, run: usize, path: &str, look: &Look) -> Vec<TableModel> {
    let program = &d.session.runs[run].program;
    let mut parts = path.split('.').peekable();
    let mut before = String::new();
    if parts.peek() == Some(&"gen") {
        let call: Vec<&str> = parts.by_ref().take(2).collect();
        before = format!("{}.", call.join("."));
    }
    let stack = match parts.next() {
        Some("decoder" | "output" | "loss") => "decoder",
        _ => "encoder",
    };
    let attention = match parts.nth(1) {
        Some("cross_attn") => "cross_attn",
        _ => "self_attn",
    };
    let find = |stack: &str, layer: usize| program.find(&format!("{before}{stack}.{layer}.{attention}.weights"));
    let other = if stack == "encoder" { "decoder" } else { "encoder" };
    let stack = if find(stack, 0).is_some() { stack } else { other };
    let view = d.view().map(|v| v.cells.of);
    // The head that the cursor is in, else the first.
    let head = view.and_then(|shape| {
        let axis = shape.axes().iter().position(|a| *a == Axis::Head)?;
        let (_, cell) = d.cell()?;
        Some(shape.unflat(cell.flat)[axis])
    });
    let head = head.unwrap_or(0);
    (0..)
        .map_while(|layer| Some((layer, find(stack, layer)?)))
        .map(|(layer, node)| {
            let shape = program.node(node).shape;
            let axis = shape.axes().iter().position(|a| *a == Axis::Head);
            let per = axis.map_or(0, |a| shape.dims()[a + 1..].iter().product::<usize>());
            let heads = axis.map_or(1, |a| shape.dims()[a]);
            let symbol = Msg::new("tui.layer_head")
                .arg("layer", layer + 1)
                .arg("head", head.min(heads - 1) + 1)
                .render(look.lang);
            let plane = Plane::around(&shape, head.min(heads - 1) * per);
            TableModel::of(run, node, symbol, plane)
        })
        .collect()
}

/// The positional encoding as a heatmap, and its curves.
pub(super) fn positions(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let Some(view) = d.view() else { return };
    let program = &d.session.runs[view.run].program;
    let paths = [
        "embed.source.positions",
        "embed.target.positions",
        "encoder.rotary.cos",
        "decoder.rotary.cos",
        "gen.0.embed.target.positions",
        "gen.0.decoder.rotary.cos",
    ];
    let Some(node) = paths.iter().find_map(|p| program.find(p)) else {
        put(buf, area, (area.x, area.y), tr(look.lang, "tui.no_positions"), area.width, look.theme.dim, look);
        return;
    };
    let shape = program.node(node).shape;
    let table = TableModel::of(view.run, node, "PE".to_owned(), Plane::around(&shape, 0));
    let Some(source) = Source::new(d, &table, app.ui.settings.digits) else {
        return;
    };
    put(buf, area, (area.x, area.y), &program.node(node).path, area.width, look.theme.title, look);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let half = area.height / 2;
    let upper = Rect { height: half, ..area };
    let scale = source.scale(&source.stats(), app.ui.settings.log_scale);
    maps::map(app, &table, &scale, upper, buf, look);
    // One curve a column; the first ones turn fastest.
    let series: Vec<Series> = (0..table.plane.cols.min(4))
        .map(|c| Series {
            name: format!("[{c}]"),
            values: (0..table.plane.rows.min(512)).map(|r| source.get(r, c)).collect(),
        })
        .collect();
    let last = table.plane.rows.saturating_sub(1).to_string();
    Chart { series: &series, digits: app.ui.settings.digits, ends: ("0", &last), cursor: None }.render(
        Rect { y: area.y + half, height: area.height - half, ..area },
        buf,
        look,
    );
}
