//! Lists: probabilities, costs, one token through all steps, the log.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::debugger::Debugger;
use crate::program::{NodeId, cost};
use crate::tensor::Axis;
use crate::text::{Align, Lang, Msg, tr};
use crate::tui::draw::{Look, follow, put};
use crate::tui::widgets::bars::{Bar, Bars, top};

pub(super) fn nothing(area: Rect, buf: &mut Buffer, key: &str, look: &Look) {
    put(buf, area, (area.x, area.y), tr(look.lang, key), area.width, look.theme.dim, look);
}

/// The probabilities of one row as bars: of the softmax one is at, else of the output.
pub(super) fn probs(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let Some((run, node, row)) = probs_row(d) else {
        return nothing(area, buf, "tui.no_probs", look);
    };
    let program = &d.session.runs[run].program;
    let Some(value) = d.trace(run).and_then(|t| t.get(node)) else {
        return;
    };
    let shape = program.node(node).shape;
    let width = shape.dims().last().copied().unwrap_or(1);
    let values: Vec<f64> = (0..width).map(|c| value.get(row * width + c)).collect();
    let labels = d.session.axis_labels(run, node, shape.rank() - 1, 0);
    let best = top(&values, usize::from(area.height.max(1)) * 4);
    let order: Vec<usize> = if !app.ui.settings.sorted && width <= usize::from(area.height) * 4 && width <= best.len() {
        (0..width).collect()
    } else {
        best
    };
    let max = values.iter().copied().fold(0.0, f64::max);
    let bars: Vec<Bar> = order
        .iter()
        .map(|&c| Bar {
            label: labels.get(c).unwrap_or_else(|| c.to_string()),
            value: values[c],
            marked: values[c] == max,
        })
        .collect();
    let title = Msg::new("tui.probs_title")
        .arg("path", &program.node(node).path)
        .arg("token", row_name(d, run, node, row))
        .render(look.lang);
    put(buf, area, (area.x, area.y), &title, area.width, look.theme.title, look);
    let body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    Bars { bars: &bars, full: 1.0, digits: app.ui.settings.digits, selected: None, offset: 0 }.render(body, buf, look);
}

/// The token of a row, counted over all rows of a tensor; with the head where it has several.
fn row_name(d: &Debugger, run: usize, node: NodeId, row: usize) -> String {
    let shape = d.session.runs[run].program.node(node).shape;
    let Some(axis) = shape.rank().checked_sub(2) else {
        return row.to_string();
    };
    let width = shape.dims()[axis + 1];
    let at = shape.unflat(row * width);
    let place = |name: Axis| shape.axes().iter().position(|a| *a == name);
    let batch = place(Axis::Batch).map_or(0, |a| at[a]);
    let label = d.session.axis_labels(run, node, axis, batch).get(at[axis]);
    let label = label.unwrap_or_else(|| at[axis].to_string());
    match place(Axis::Head).filter(|a| shape.dims()[*a] > 1) {
        Some(head) => format!("{label} · {} {}", Axis::Head.name(), at[head] + 1),
        None => label,
    }
}

fn probs_row(d: &Debugger) -> Option<(usize, NodeId, usize)> {
    let view = d.view()?;
    let program = &d.session.runs[view.run].program;
    let path = &program.node(view.node).path;
    let row_of = |node: NodeId| {
        let width = program.node(node).shape.dims().last().copied().unwrap_or(1).max(1);
        match d.cell() {
            Some((_, cell)) if cell.node == node => cell.flat / width,
            // The last position is where the next word comes from.
            _ => program.node(node).shape.len() / width - 1,
        }
    };
    if path.ends_with(".weights") || path.ends_with("probs") && !path.contains("_probs") {
        return Some((view.run, view.node, row_of(view.node)));
    }
    let call = path.strip_prefix("gen.").and_then(|p| p.split('.').next()).map(|n| format!("gen.{n}.output.probs"));
    let node = call
        .and_then(|p| program.find(&p))
        .or_else(|| program.find("output.probs"))
        .or_else(|| program.find("gen.0.output.probs"))?;
    Some((view.run, node, row_of(node)))
}

/// Shapes and cost of every op of the run, from the one the cursor is at.
pub(super) fn costs(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let Some(view) = d.view() else { return };
    let program = &d.session.runs[view.run].program;
    let Some(trace) = d.trace(view.run) else {
        return;
    };
    let precision = d.session.precision;
    let totals = d.totals(view.run);
    let columns = Column::fitting(area.width);
    let mut row = |y: u16, text: &dyn Fn(Column) -> String, style| {
        let mut x = area.x;
        for (column, width) in &columns {
            let left = area.right().saturating_sub(x);
            let text = text(*column);
            // Of a path the end tells more than the beginning.
            let text = if *column == Column::Path {
                look.fit(&look.cut_start(&text, *width), *width, Align::Left)
            } else {
                look.fit(&text, *width, column.align())
            };
            put(buf, area, (x, y), &text, left, style, look);
            x = x.saturating_add(width + 1);
        }
    };
    let header = |c: Column| c.title(look.lang);
    row(area.y, &header, look.theme.title);
    let height = usize::from(area.height.saturating_sub(2));
    let at = view.node.index();
    let first = follow(at.saturating_sub(height / 2), at, height.max(1), program.len());
    for (i, (id, node)) in program.nodes().enumerate().skip(first).take(height) {
        let c = cost(program, id, precision);
        let read = || -> String {
            let shapes = node.inputs.iter();
            let shapes = shapes.map(|i| dims(program.node(*i).shape.dims()));
            shapes.collect::<Vec<_>>().join(" ")
        };
        let share = trace.nanos(id) as f64 / totals.nanos.max(1) as f64 * 100.0;
        let style = if i == at { look.theme.accent } else { look.theme.text };
        let text = |column: Column| match column {
            Column::Path => node.path.to_string(),
            Column::Op => node.op.name().to_owned(),
            Column::In => read(),
            Column::Out => dims(node.shape.dims()),
            Column::Flops => quantity(c.flops),
            Column::Bytes => quantity(c.read + c.written),
            Column::Time => format!("{share:.1}%"),
        };
        row(area.y + 1 + (i - first) as u16, &text, style);
    }
    let text = Msg::new("tui.cost.total")
        .arg("nodes", program.len())
        .arg("flops", quantity(totals.cost.flops))
        .arg("bytes", quantity(totals.cost.read + totals.cost.written))
        .arg("ms", format!("{:.2}", totals.nanos as f64 / 1e6))
        .render(look.lang);
    if area.height > 1 {
        put(buf, area, (area.x, area.bottom() - 1), &text, area.width, look.theme.dim, look);
    }
}

/// A column of the costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Path,
    Op,
    In,
    Out,
    Flops,
    Bytes,
    Time,
}

impl Column {
    const ALL: [Column; 7] =
        [Column::Path, Column::Op, Column::In, Column::Out, Column::Flops, Column::Bytes, Column::Time];

    /// The columns that `width` has room for, in order, with their widths; the path has what is left.
    fn fitting(width: u16) -> Vec<(Column, u16)> {
        let without = |dropped: &[Column]| -> Vec<Column> {
            let kept = Self::ALL.iter().filter(|c| !dropped.contains(c));
            kept.copied().collect()
        };
        // The op goes first where there is no room: the path tells as much. Narrower columns before none.
        let [op, read, bytes, flops, out] = [Column::Op, Column::In, Column::Bytes, Column::Flops, Column::Out];
        let choices = [
            (without(&[]), false),
            (without(&[op]), false),
            (without(&[op]), true),
            (without(&[op, read]), true),
            (without(&[op, read, bytes]), true),
            (without(&[op, read, bytes, flops]), true),
            (without(&[op, read, bytes, flops, out]), true),
        ];
        let taken = |columns: &[Column], tight| -> u16 {
            let widths = columns.iter().map(|c| c.width(tight) + 1);
            widths.sum::<u16>() - 1
        };
        let fits = choices.iter().find(|(c, tight)| taken(c, *tight) <= width);
        let (columns, tight) = fits.unwrap_or(&choices[choices.len() - 1]);
        let spare = width.saturating_sub(taken(columns, *tight));
        let width = |c: Column| c.width(*tight) + if c == Column::Path { spare } else { 0 };
        columns.iter().map(|c| (*c, width(*c))).collect()
    }

    /// Cells that it takes at least; fewer where room is tight.
    fn width(self, tight: bool) -> u16 {
        let (roomy, narrow) = match self {
            Column::Path => (20, 12),
            Column::Op => (12, 12),
            Column::Out => (12, 10),
            Column::In => (24, 16),
            Column::Flops | Column::Bytes => (8, 7),
            Column::Time => (6, 6),
        };
        if tight { narrow } else { roomy }
    }

    fn align(self) -> Align {
        match self {
            Column::Flops | Column::Bytes | Column::Time => Align::Right,
            _ => Align::Left,
        }
    }

    fn title(self, lang: Lang) -> String {
        let key = match self {
            Column::Path => "tui.cost.path",
            Column::Op => "tui.cost.op",
            Column::In => "tui.cost.in",
            Column::Out => "tui.cost.out",
            Column::Flops => return "FLOPs".to_owned(),
            Column::Bytes => "tui.cost.bytes",
            Column::Time => "tui.cost.time",
        };
        tr(lang, key).to_owned()
    }
}

fn dims(d: &[usize]) -> String {
    d.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}

/// 1.2k, 3.4M, 5.6G.
fn quantity(n: u64) -> String {
    let n = n as f64;
    match n {
        n if n >= 1e9 => format!("{:.1}G", n / 1e9),
        n if n >= 1e6 => format!("{:.1}M", n / 1e6),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        n => format!("{n}"),
    }
}

/// What happened.
pub(super) fn log(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let all = app.ui.messages.all();
    if all.len() == 0 {
        return nothing(area, buf, "tui.no_log", look);
    }
    let text = crate::tui::widgets::status::messages(all, area.width, look);
    text.render(area, buf, usize::MAX, None, look);
}

/// Bookmarks and the way back.
pub(super) fn debug(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let trail = d.jumps.trail();
    // Breakpoints and watches first, then where one came from.
    let breaks = d.break_list(app.ui.settings.digits);
    let mut y = area.y;
    let mut line = |y: u16, text: &str, style| {
        put(buf, area, (area.x, y), text, area.width, style, look);
    };
    if !breaks.rows.is_empty() || trail.is_empty() {
        line(y, &breaks.title.render(look.lang), look.theme.title);
        y += 1;
    }
    for row in &breaks.rows {
        if y >= area.bottom() {
            return;
        }
        line(y, &row.text.render(look.lang), look.theme.text);
        y += 1;
    }
    if trail.is_empty() || y >= area.bottom() {
        return;
    }
    y += u16::from(y > area.y);
    line(y, tr(look.lang, "tui.trail_title"), look.theme.title);
    let list = d.steps.list();
    let height = usize::from(area.bottom().saturating_sub(y + 1));
    let first = trail.len().saturating_sub(height);
    for (y, spot) in (y + 1..area.bottom()).zip(&trail[first..]) {
        let Some(step) = list.get(spot.at) else {
            continue;
        };
        let symbol = step.views.get(spot.view).map(|v| v.cell_name(&spot.index)).unwrap_or_default();
        let text = format!("{:>4} {} {symbol}", step.label(), step.title.render(look.lang));
        line(y, &text, look.theme.text);
    }
}
