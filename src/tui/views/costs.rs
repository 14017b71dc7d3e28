//! Shapes and cost of every op of the run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::program::cost;
use crate::text::{Align, Lang, Msg, tr};
use crate::tui::draw::{Look, follow, put};
use crate::tui::screen::Shown;

/// Shapes and cost of every op of the run, from the one the cursor is at.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let d = &app.nav;
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
