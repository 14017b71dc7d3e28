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

/// Narrowest picture, and the least height for one, its heading included.
pub const LEAST: (u16, u16) = (40, 6);
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
    let width = area.width / columns;
    let mut next = (d.position() + 1..list.len()).filter_map(result).peekable();
    if next.peek().is_none() {
        return;
    }
    put(buf, area, (area.x, area.y), tr(look.lang, "tui.following"), area.width, look.theme.dim, look);
    for column in 0..columns {
        // Downwards, then to the right.
        let mut stack: Vec<(usize, TableModel, u16)> = Vec::new();
        let mut left = area.height - 1;
        while let Some((at, table)) = next.next_if(|(_, table)| lines(table) <= left) {
            left -= lines(&table);
            let height = lines(&table);
            stack.push((at, table, height));
        }
        // What is left makes rows higher, the first ones first.
        let mut grows = true;
        while grows {
            grows = false;
            for (_, table, height) in &mut stack {
                let more = u16::try_from(table.plane.rows).unwrap_or(u16::MAX);
                if more <= left && *height + more <= MOST {
                    *height += more;
                    left -= more;
                    grows = true;
                }
            }
        }
        let mut y = area.y + 1;
        for (at, table, height) in &stack {
            let place = Rect { x: area.x + column * width, y, width: width - 2, height: height - 1 };
            picture(app, *at, table, place, buf, look, shown);
            y += height;
        }
    }
}

/// Lines that a table would like: its title, the labels of its columns, its rows, a blank line.
fn lines(table: &TableModel) -> u16 {
    u16::try_from(table.plane.rows + 3).unwrap_or(u16::MAX).clamp(5, MOST)
}

/// A table under the title of its step.
fn picture(app: &App, at: usize, table: &TableModel, place: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let Some(source) = Source::new(app, table, app.ui.settings.digits) else { return };
    let step = &d.steps.list()[at];
    let title = format!("{} {} · {}", step.label(), table.symbol, step.title.render(look.lang));
    put(buf, place, (place.x, place.y), &title, place.width, look.theme.title, look);
    shown.hits.push((Rect { height: 1, ..place }, Target::Row(TreeRow::Step(at))));
    let body = Rect { y: place.y + 1, height: place.height - 1, ..place };
    grid::draw(app, &source, &Labelled::new(d, table), &source.scale(app), None, body, buf, look);
}
