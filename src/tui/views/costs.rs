//! Shapes and cost of every op of the run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::costs::Costs;
use crate::text::{Align, Lang, Msg, tr, words};
use crate::tui::draw::{Look, follow, put};
use crate::tui::pictures::nothing;
use crate::tui::shown::Shown;

/// Shapes and cost of every op of the run (or of its steps), from the one the cursor is at.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let state = &app.views.costs;
    let sorted = app.ui.settings.sorted;
    let Some(costs) = Costs::of(d, state.folded, sorted) else { return nothing(area, buf, "tui.cost.none", look) };
    let program = &d.session.runs[costs.run].program;
    let columns = Column::fitting(area.width);
    let mut line = |y: u16, text: &dyn Fn(Column) -> String, style| {
        let mut x = area.x;
        for (column, width) in &columns {
            let left = area.right().saturating_sub(x);
            let text = text(*column);
            // The end of a path says more than its beginning.
            let text = if *column == Column::Path {
                look.fit(&look.cut_start(&text, *width), *width, Align::Left)
            } else {
                look.fit(&text, *width, column.align())
            };
            put(buf, area, (x, y), &text, left, style, look);
            x = x.saturating_add(width + 1);
        }
    };
    line(area.y, &|c: Column| c.title(look.lang), look.theme.title);
    let height = usize::from(area.height.saturating_sub(2));
    shown.page.rows = height.max(1);
    let at = state.at(&costs, d.arrivals());
    let first = follow(at.saturating_sub(height / 2), at, height.max(1), costs.rows.len());
    for (i, r) in costs.rows.iter().enumerate().skip(first).take(height) {
        let node = program.node(r.node);
        let read = || -> String {
            let shapes = node.inputs.iter().map(|i| dims(program.node(*i).shape.dims()));
            shapes.collect::<Vec<_>>().join(" ")
        };
        let name = || match r.step.and_then(|at| d.steps.list().get(at)) {
            Some(step) => format!("{} {}", step.label(), step.title.render(look.lang)),
            None => node.path.to_string(),
        };
        let share = r.nanos as f64 / costs.total.2.max(1) as f64 * 100.0;
        let style = if i == at { look.theme.accent } else { look.theme.text };
        let text = |column: Column| match column {
            Column::Path => name(),
            Column::Op if r.step.is_some() => Msg::new("tui.cost.ops").arg("count", r.ops).render(look.lang),
            Column::Op => words(look.lang, "op", node.op.name()),
            Column::In if r.step.is_some() => String::new(),
            Column::In => read(),
            Column::Out => dims(node.shape.dims()),
            Column::Flops => quantity(r.flops),
            Column::Bytes => quantity(r.bytes),
            Column::Time => format!("{share:.1}%"),
        };
        line(area.y + 1 + (i - first) as u16, &text, style);
    }
    let text = Msg::new("tui.cost.total")
        .arg("nodes", program.len())
        .arg("flops", quantity(costs.total.0))
        .arg("bytes", quantity(costs.total.1))
        .arg("ms", format!("{:.2}", costs.total.2 as f64 / 1e6))
        .arg("runs", costs.runs)
        .render(look.lang);
    if area.height > 1 {
        put(buf, area, (area.x, area.bottom() - 1), &text, area.width, look.theme.dim, look);
    }
}

/// A column of the costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray)]
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
    const ALL: &[Column] = <Self as strum::VariantArray>::VARIANTS;

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
