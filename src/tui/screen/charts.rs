//! Charts: norms along the residual stream, the positional encoding.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::stage::{Labelled, Source};
use crate::app::app::App;
use crate::app::debugger::{Debugger, Plane, TableModel};
use crate::program::NodeId;
use crate::text::tr;
use crate::tui::colour::Scale;
use crate::tui::draw::{Look, put};
use crate::tui::widgets::chart::{Chart, Series};
use crate::tui::widgets::heat_table::{HeatTable, Lit};

/// Rows sampled of a tensor for its mean norm.
const ROWS: usize = 64;
/// Columns sampled of a row.
const COLUMNS: usize = 256;

/// Mean Euclidean norm of the rows, of a sample where there are many.
fn mean_norm(d: &Debugger, run: usize, node: NodeId) -> f64 {
    let Some(value) = d.trace(run).and_then(|t| t.get(node)) else {
        return f64::NAN;
    };
    let shape = *value.shape();
    let width = shape.dims().last().copied().unwrap_or(1).max(1);
    let rows = shape.len() / width;
    let take = |n: usize, most: usize| n.div_ceil(most).max(1);
    let (row_step, col_step) = (take(rows, ROWS), take(width, COLUMNS));
    let norms: Vec<f64> = (0..rows)
        .step_by(row_step)
        .map(|r| {
            let squares: f64 = (0..width)
                .step_by(col_step)
                .map(|c| value.get(r * width + c).powi(2))
                .sum();
            // A sample of a row stands for all of it.
            (squares * col_step as f64).sqrt()
        })
        .collect();
    norms.iter().sum::<f64>() / norms.len().max(1) as f64
}

/// Norms along the residual stream, and a list of what each point is.
pub(super) fn layers(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let Some(view) = d.view() else { return };
    let program = &d.session.runs[view.run].program;
    let in_call = program
        .node(view.node)
        .path
        .split('.')
        .take(2)
        .collect::<Vec<_>>()
        .join(".");
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
        put(
            buf,
            area,
            (area.x, area.y),
            tr(look.lang, "tui.no_layers"),
            area.width,
            look.theme.dim,
            look,
        );
        return;
    }
    let names: Vec<String> = stream
        .iter()
        .map(|id| program.node(*id).path.to_string())
        .collect();
    let pick = |what: &str| {
        let values = stream.iter().map(|id| {
            if program.node(*id).path.contains(what) {
                mean_norm(d, view.run, *id)
            } else {
                f64::NAN
            }
        });
        values.collect::<Vec<f64>>()
    };
    let series = [
        Series {
            name: tr(look.lang, "tui.series.residual").to_owned(),
            values: pick("residual"),
        },
        Series {
            name: tr(look.lang, "tui.series.norm").to_owned(),
            values: pick("norm"),
        },
    ];
    let cursor = stream.iter().rposition(|id| *id <= view.node);
    put(
        buf,
        area,
        (area.x, area.y),
        tr(look.lang, "tui.layers_title"),
        area.width,
        look.theme.title,
        look,
    );
    let area = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let listed = (names.len() as u16).min(area.height / 2);
    let chart = Rect {
        height: area.height - listed,
        ..area
    };
    Chart {
        series: &series,
        digits: app.ui.settings.digits,
        ends: (&names[0], names.last().map_or("", String::as_str)),
        cursor,
    }
    .render(chart, buf, look);
    // The list follows the cursor.
    let first = cursor
        .unwrap_or(0)
        .saturating_sub(usize::from(listed) / 2)
        .min(names.len() - usize::from(listed));
    for (i, name) in names
        .iter()
        .enumerate()
        .skip(first)
        .take(usize::from(listed))
    {
        let y = chart.bottom() + (i - first) as u16;
        let value = app
            .ui
            .settings
            .digits
            .format(mean_norm(d, view.run, stream[i]));
        let style = if Some(i) == cursor {
            look.theme.accent
        } else {
            look.theme.text
        };
        let text = look.fit(name, 34.min(area.width), crate::text::Align::Left);
        let used = put(buf, area, (area.x, y), &text, area.width, style, look);
        put(
            buf,
            area,
            (area.x + used + 1, y),
            &value,
            area.width.saturating_sub(used + 1),
            style,
            look,
        );
    }
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
        put(
            buf,
            area,
            (area.x, area.y),
            tr(look.lang, "tui.no_positions"),
            area.width,
            look.theme.dim,
            look,
        );
        return;
    };
    let shape = program.node(node).shape;
    let table = TableModel {
        symbol: "PE".to_owned(),
        run: view.run,
        node,
        plane: Plane::around(&shape, 0),
        view: None,
        cursor: None,
        lit: std::collections::HashSet::new(),
        sequential: false,
        masked: false,
        result: true,
        sign: "",
    };
    let Some(source) = Source::new(d, &table, app.ui.settings.digits) else {
        return;
    };
    put(
        buf,
        area,
        (area.x, area.y),
        &program.node(node).path,
        area.width,
        look.theme.title,
        look,
    );
    let area = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let half = area.height / 2;
    let labels = Labelled::new(d, &table);
    HeatTable {
        size: (table.plane.rows, table.plane.cols),
        row_label: &|r| labels.row(r),
        column_label: &|c| labels.column(c),
        cell: &|r, c| source.cell(r, c),
        offset: (0, 0),
        cursor: None,
        lit: Lit::default(),
        scale: Scale::diverging(-1.0, 1.0),
        widest: 10,
    }
    .render(
        Rect {
            height: half,
            ..area
        },
        buf,
        look,
    );
    // One curve a column; the first ones turn fastest.
    let series: Vec<Series> = (0..table.plane.cols.min(4))
        .map(|c| Series {
            name: format!("[{c}]"),
            values: (0..table.plane.rows.min(512))
                .map(|r| source.get(r, c))
                .collect(),
        })
        .collect();
    let last = table.plane.rows.saturating_sub(1).to_string();
    Chart {
        series: &series,
        digits: app.ui.settings.digits,
        ends: ("0", &last),
        cursor: None,
    }
    .render(
        Rect {
            y: area.y + half,
            height: area.height - half,
            ..area
        },
        buf,
        look,
    );
}
