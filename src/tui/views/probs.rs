//! Probabilities of one row as bars.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::measure;
use crate::app::navigator::{Plane, TableModel};
use crate::app::views::probs::Distribution;
use crate::debug::whatif::Before;
use crate::text::{Msg, tr};
use crate::tui::draw::{Look, put};
use crate::tui::pictures::source::{Labelled, Source};
use crate::tui::pictures::{grid, nothing};
use crate::tui::screen::Shown;
use crate::tui::widgets::bars::{Bar, Bars, top};
use crate::tui::widgets::legend;

/// The probabilities of one row as bars: of the softmax one is at, else of the output.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
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
    let plane = Plane::around(&shape, shown.row * width);
    let below = if free >= 8 && rows > 1 { free } else { 0 };
    let upper = Rect { height: body.height - below, ..body };
    Bars { bars: &bars, full: 1.0, digits: app.ui.settings.digits, selected: None, offset: 0 }.render(upper, buf, look);
    if below == 0 {
        return;
    }
    let at = plane.find(shown.row * width).map(|c| c.0);
    let program = &d.session.runs[run].program;
    let table = TableModel {
        kind: measure::kind(program, node),
        ..TableModel::of(run, node, node_here.path.to_string(), plane)
    };
    let Some(source) = Source::new(app, &table, app.ui.settings.digits) else { return };
    let rest = Rect { y: upper.bottom(), height: below, ..body };
    let scale = source.scale(app);
    put(buf, rest, (rest.x, rest.y), tr(look.lang, "tui.probs.all"), rest.width, look.theme.title, look);
    let line = Rect { y: rest.y + 1, height: 1, ..rest };
    legend::render(line, buf, &scale, app.ui.settings.digits, look);
    let place = Rect { y: rest.y + 2, height: rest.height - 2, ..rest };
    grid::draw(app, &source, &Labelled::new(d, &table), &scale, at, place, buf, look);
}
