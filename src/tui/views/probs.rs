//! Probabilities of one row as bars.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::measure;
use crate::app::navigator::{Plane, TableModel};
use crate::app::views::probs::Distribution;
use crate::debug::whatif::Before;
use crate::text::{Msg, tr};
use crate::trace::stats::Tally;
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::source::{Labelled, Source};
use crate::tui::pictures::{following, grid, nothing};
use crate::tui::scale::Scale;
use crate::tui::shown::Shown;
use crate::tui::widgets::bars::{Bar, Bars, top};
use crate::tui::widgets::legend;

/// The probabilities of one row as bars: of the softmax one is at, else of the output.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, seen: &mut Shown) {
    let d = &app.nav;
    let Some(shown) = Distribution::of(d) else {
        return nothing(area, buf, "tui.no_probs", look);
    };
    let (run, node, values) = (shown.run, shown.node, &shown.values);
    let node_here = d.session.runs[run].program.node(node);
    let (shape, width) = (node_here.shape, values.len());
    let labels = d.session.axis_labels(run, node, shape.rank() - 1, 0);
    let best = top(values, usize::from(area.height.max(1)) * 4);
    let order: Vec<usize> = if !app.ui.settings.sorted && width <= usize::from(area.height) * 4 && width <= best.len() {
        (0..width).collect()
    } else {
        best
    };
    let max = values.iter().copied().fold(0.0, f64::max);
    let before = app.edits.before(d, run, node);
    let was = |c: usize| match &before {
        Before::Was(v) => Some(v.get(shown.row * width + c)),
        Before::Same | Before::None => None,
    };
    let bars: Vec<Bar> = order
        .iter()
        .map(|&c| Bar {
            label: labels.get(c).unwrap_or_else(|| c.to_string()),
            value: values[c],
            marked: values[c] == max,
            before: was(c),
        })
        .collect();
    let title = Msg::new("tui.probs_title").arg("path", &node_here.path).arg("token", shown.token(d)).render(look.lang);
    put(buf, area, (area.x, area.y), &title, area.width, look.theme.title, look);
    let body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    // All rows below the bars of one, where there is room: which word each position gives.
    let whole = (bars.len() as u16 + 1).min(body.height);
    let free = body.height - whole;
    let rows = shape.len() / width.max(1);
    let below = if free >= 8 { free } else { 0 };
    let upper = Rect { height: body.height - below, ..body };
    Bars { bars: &bars, full: 1.0, digits: app.ui.settings.digits, selected: None, offset: 0 }.render(upper, buf, look);
    if below == 0 {
        return;
    }
    let rest = Rect { y: upper.bottom(), height: below, ..body };
    let used = if rows > 1 { positions(app, &shown, rest, buf, look) } else { 0 };
    let rest = Rect { y: rest.y + used, height: rest.height - used, ..rest };
    let used = if rest.height >= 8 { calls(app, &shown, rest, buf, look) } else { 0 };
    let rest = Rect { y: rest.y + used, height: rest.height - used, ..rest };
    following::draw(app, &[rest], buf, look, seen);
}

/// All rows of the tensor; gives the lines used.
fn positions(app: &App, shown: &Distribution, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
    let d = &app.nav;
    let program = &d.session.runs[shown.run].program;
    let node = program.node(shown.node);
    let first = shown.row * shown.values.len();
    let plane = Plane::around(&node.shape, first);
    let at = plane.find(first).map(|c| c.0);
    let table = TableModel {
        kind: measure::kind(program, shown.node),
        ..TableModel::of(shown.run, shown.node, node.path.to_string(), plane)
    };
    let Some(source) = Source::new(app, &table, app.ui.settings.digits) else { return 0 };
    let scale = source.scale(app);
    put(buf, area, (area.x, area.y), tr(look.lang, "tui.probs.all"), area.width, look.theme.title, look);
    let line = Rect { y: area.y + 1, height: 1, ..area };
    legend::render(line, buf, &scale, app.ui.settings.digits, look);
    let place = Rect { y: area.y + 2, height: area.height - 2, ..area };
    let used = grid::draw(app, &source, &Labelled::new(d, &table), &scale, at, place, buf, look);
    (used.bottom() + 1 - area.y).min(area.height)
}

/// The last position of each decoding call, a row a call, on one scale; gives the lines used.
fn calls(app: &App, shown: &Distribution, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
    let d = &app.nav;
    let calls = shown.calls(d);
    let Some(trace) = d.trace(shown.run).filter(|_| calls.len() > 1) else { return 0 };
    let values: Vec<_> = calls.iter().filter_map(|c| Some((trace.get(c.node)?, c.row))).collect();
    let width = shown.values.len();
    let mut tally = Tally::default();
    for x in values.iter().flat_map(|(v, row)| (0..width).map(move |c| v.get(row * width + c))) {
        tally.take(x, false);
    }
    let scale = Scale::of(measure::Kind::Probability, &tally).with_uniform(width);
    put(buf, area, (area.x, area.y), tr(look.lang, "tui.probs.calls"), area.width, look.theme.title, look);
    legend::render(Rect { y: area.y + 1, height: 1, ..area }, buf, &scale, app.ui.settings.digits, look);
    let node_shape = d.session.runs[shown.run].program.node(shown.node).shape;
    let labels = d.session.axis_labels(shown.run, shown.node, node_shape.rank() - 1, 0);
    let at = calls.iter().position(|c| c.node == shown.node);
    let best = top(&shown.values, 1).first().copied();
    let place = Rect { y: area.y + 2, height: (area.height - 2).min(3 * values.len() as u16 + 1), ..area };
    let used = grid::Values {
        size: (values.len(), width),
        cell: &|r, c| {
            let x = values[r].0.get(values[r].1 * width + c);
            (x, CellKind::of(x))
        },
        kept: None,
        row_label: &|r| calls[r].token(d),
        column_label: &|c| labels.get(c).unwrap_or_else(|| c.to_string()),
        scale,
        digits: app.ui.settings.digits,
        cursor: at.zip(best),
    }
    .render(place, buf, look);
    (used.bottom() + 1 - area.y).min(area.height)
}
