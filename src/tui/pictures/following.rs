//! What the steps after this one make: their results as small pictures, in the order of the steps.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::grid;
use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::navigator::{Plane, TableModel, TreeRow};
use crate::tensor::DType;
use crate::text::tr;
use crate::tui::draw::{Look, put};
use crate::tui::screen::{Shown, Target};
use crate::walkthrough::Role;

/// Narrowest and lowest picture, its heading included.
pub const LEAST: (u16, u16) = (40, 9);
/// Highest picture.
const MOST: u16 = 16;

/// Draws as many as there is room for.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let area = area.intersection(buf.area);
    if area.width < LEAST.0 || area.height < LEAST.1 + 1 || d.depth() > 0 || d.is_aside() {
        return;
    }
    let list = d.steps.list();
    let result = |at: usize| -> Option<(usize, TableModel)> {
        let step = &list[at];
        let view = step.views.iter().rfind(|v| v.role == Role::Result)?;
        let program = &d.session.runs[view.run].program;
        let plane = Plane::of_view(view, &vec![0; view.shape().rank()]);
        let shows = program.node(view.node).dtype == DType::Float && plane.rows * plane.cols > 1;
        let model = || TableModel::in_program(program, view.run, view.node, view.symbol.clone(), plane.clone());
        shows.then(|| (at, model()))
    };
    let columns = area.width / LEAST.0;
    let lines = ((area.height - 1) / LEAST.1).max(1);
    let height = ((area.height - 1) / lines).min(MOST);
    let width = area.width / columns;
    let most = usize::from(columns) * usize::from(lines);
    let next = (d.position() + 1..list.len()).filter_map(result).take(most);
    let mut any = false;
    for (i, (at, table)) in next.enumerate() {
        let Some(source) = Source::new(app, &table, app.ui.settings.digits) else { continue };
        if !any {
            put(buf, area, (area.x, area.y), tr(look.lang, "tui.following"), area.width, look.theme.dim, look);
            any = true;
        }
        let (column, line) = (i as u16 % columns, i as u16 / columns);
        let place =
            Rect { x: area.x + column * width, y: area.y + 1 + line * height, width: width - 2, height: height - 1 };
        let step = &list[at];
        let title = format!("{} {} · {}", step.label(), table.symbol, step.title.render(look.lang));
        put(buf, place, (place.x, place.y), &title, place.width, look.theme.title, look);
        shown.hits.push((Rect { height: 1, ..place }, Target::Row(TreeRow::Step(at))));
        let body = Rect { y: place.y + 1, height: place.height - 1, ..place };
        grid::draw(app, &source, &Labelled::new(d, &table), &source.scale(app), None, body, buf, look);
    }
}
