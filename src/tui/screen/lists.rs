//! Lists: probabilities, costs, one token through all steps, the log.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::debugger::{Debugger, Plane};
use crate::program::{NodeId, cost};
use crate::tensor::Axis;
use crate::text::{Align, Lang, Msg, tr};
use crate::tui::draw::{Look, follow, put};
use crate::tui::widgets::bars::{Bar, Bars, top};

fn nothing(area: Rect, buf: &mut Buffer, key: &str, look: &Look) {
    put(
        buf,
        area,
        (area.x, area.y),
        tr(look.lang, key),
        area.width,
        look.theme.dim,
        look,
    );
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
    let order: Vec<usize> = if !app.ui.settings.sorted
        && width <= usize::from(area.height) * 4
        && width <= best.len()
    {
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
        .arg("row", row)
        .render(look.lang);
    put(
        buf,
        area,
        (area.x, area.y),
        &title,
        area.width,
        look.theme.title,
        look,
    );
    let body = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    Bars {
        bars: &bars,
        full: 1.0,
        digits: app.ui.settings.digits,
        selected: None,
        offset: 0,
    }
    .render(body, buf, look);
}

fn probs_row(d: &Debugger) -> Option<(usize, NodeId, usize)> {
    let view = d.view()?;
    let program = &d.session.runs[view.run].program;
    let path = &program.node(view.node).path;
    let row_of = |node: NodeId| {
        let width = program
            .node(node)
            .shape
            .dims()
            .last()
            .copied()
            .unwrap_or(1)
            .max(1);
        match d.cell() {
            Some((_, cell)) if cell.node == node => cell.flat / width,
            // The last position is where the next word comes from.
            _ => program.node(node).shape.len() / width - 1,
        }
    };
    if path.ends_with(".weights") || path.ends_with("probs") && !path.contains("_probs") {
        return Some((view.run, view.node, row_of(view.node)));
    }
    let call = path
        .strip_prefix("gen.")
        .and_then(|p| p.split('.').next())
        .map(|n| format!("gen.{n}.output.probs"));
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
    let first = follow(
        at.saturating_sub(height / 2),
        at,
        height.max(1),
        program.len(),
    );
    for (i, (id, node)) in program.nodes().enumerate().skip(first).take(height) {
        let c = cost(program, id, precision);
        let read = || -> String {
            let shapes = node.inputs.iter();
            let shapes = shapes.map(|i| dims(program.node(*i).shape.dims()));
            shapes.collect::<Vec<_>>().join(" ")
        };
        let share = trace.nanos(id) as f64 / totals.nanos.max(1) as f64 * 100.0;
        let style = if i == at {
            look.theme.accent
        } else {
            look.theme.text
        };
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
        put(
            buf,
            area,
            (area.x, area.bottom() - 1),
            &text,
            area.width,
            look.theme.dim,
            look,
        );
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
    const ALL: [Column; 7] = [
        Column::Path,
        Column::Op,
        Column::In,
        Column::Out,
        Column::Flops,
        Column::Bytes,
        Column::Time,
    ];

    /// The columns that `width` has room for, in order, with their widths; the path has what is left.
    fn fitting(width: u16) -> Vec<(Column, u16)> {
        const PATH: u16 = 20;
        // The first to go where there is no room.
        let mut columns = Self::ALL.to_vec();
        let taken = |columns: &[Column]| -> u16 {
            columns.iter().map(|c| c.width() + 1).sum::<u16>() + PATH
        };
        for dropped in [
            Column::In,
            Column::Bytes,
            Column::Op,
            Column::Flops,
            Column::Out,
        ] {
            if taken(&columns) <= width + 1 {
                break;
            }
            columns.retain(|c| *c != dropped);
        }
        let path = PATH + (width + 1).saturating_sub(taken(&columns));
        let width = |c: Column| if c == Column::Path { path } else { c.width() };
        columns.into_iter().map(|c| (c, width(c))).collect()
    }

    fn width(self) -> u16 {
        match self {
            Column::Path => 0,
            Column::Op | Column::Out => 12,
            Column::In => 24,
            Column::Flops | Column::Bytes => 8,
            Column::Time => 6,
        }
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

/// One row (token) followed through all steps.
pub(super) fn token(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let Some(view) = d.view() else { return };
    let row = d.index().len().checked_sub(2).map_or(0, |i| d.index()[i]);
    let list = d.steps.list();
    // Tensors of one row a token, in the order of the steps.
    let lives: Vec<(usize, usize)> = list
        .iter()
        .enumerate()
        .filter(|(_, s)| s.run == view.run)
        .flat_map(|(i, s)| {
            s.views
                .iter()
                .enumerate()
                .map(move |(v, view)| (i, v, view))
        })
        .filter(|(_, _, v)| {
            let shape = v.shape();
            shape.rank() == 2
                && matches!(shape.axes()[0], Axis::Token | Axis::Query)
                && shape.dims()[0] > row
        })
        .map(|(i, v, _)| (i, v))
        .collect();
    if lives.is_empty() {
        return nothing(area, buf, "tui.no_token", look);
    }
    let name = d
        .session
        .view_labels(view)
        .0
        .get(row)
        .cloned()
        .unwrap_or_else(|| row.to_string());
    let title = Msg::new("tui.token_title")
        .arg("row", row)
        .arg("token", name)
        .render(look.lang);
    put(
        buf,
        area,
        (area.x, area.y),
        &title,
        area.width,
        look.theme.title,
        look,
    );
    let height = usize::from(area.height.saturating_sub(1));
    let at = lives
        .iter()
        .rposition(|(i, _)| *i <= d.position())
        .unwrap_or(0);
    let first = follow(
        at.saturating_sub(height / 2),
        at,
        height.max(1),
        lives.len(),
    );
    for (k, (i, v)) in lives.iter().enumerate().skip(first).take(height) {
        let y = area.y + 1 + (k - first) as u16;
        let (step, view) = (&list[*i], &list[*i].views[*v]);
        let Some(value) = d.trace(view.run).and_then(|t| t.get(view.node)) else {
            continue;
        };
        let plane = Plane::of_view(view, &[]);
        let numbers: Vec<f64> = (0..plane.cols.min(64))
            .map(|c| value.get(plane.flat(row, c)))
            .collect();
        let norm = (0..plane.cols)
            .take(4096)
            .map(|c| value.get(plane.flat(row, c)).powi(2))
            .sum::<f64>()
            .sqrt();
        let digits = app.ui.settings.digits;
        let style = if k == at {
            look.theme.accent
        } else {
            look.theme.text
        };
        let head = format!("{:>4} {}", step.label(), view.symbol);
        let used = put(
            buf,
            area,
            (area.x, y),
            &look.fit(&head, 18, Align::Left),
            area.width,
            style,
            look,
        );
        let norm = look.fit(&format!("‖{}‖", digits.format(norm)), 12, Align::Right);
        let used = used
            + put(
                buf,
                area,
                (area.x + used, y),
                &norm,
                area.width.saturating_sub(used),
                look.theme.dim,
                look,
            );
        let text: Vec<String> = numbers.iter().map(|x| digits.format(*x)).collect();
        put(
            buf,
            area,
            (area.x + used + 1, y),
            &text.join("  "),
            area.width.saturating_sub(used + 1),
            style,
            look,
        );
    }
}

/// What happened.
pub(super) fn log(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let all: Vec<_> = app.ui.messages.all().collect();
    if all.is_empty() {
        return nothing(area, buf, "tui.no_log", look);
    }
    let first = all.len().saturating_sub(usize::from(area.height));
    for (y, message) in (area.y..).zip(&all[first..]) {
        let line = Rect {
            y,
            height: 1,
            ..area
        };
        crate::tui::widgets::status::message(line, buf, message, look);
    }
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
        let symbol = step
            .views
            .get(spot.view)
            .map(|v| v.cell_name(&spot.index))
            .unwrap_or_default();
        let text = format!(
            "{:>4} {} {symbol}",
            step.label(),
            step.title.render(look.lang)
        );
        line(y, &text, look.theme.text);
    }
}
