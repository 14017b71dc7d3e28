//! What the steps next to this one make: their results as small pictures.

use std::iter::Peekable;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::grid;
use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::navigator::{Navigator, Plane, TableModel, TreeRow};
use crate::tensor::DType;
use crate::text::tr;
use crate::tui::draw::{Look, put};
use crate::tui::shown::{Shown, Target};
use crate::tui::widgets::legend;
use crate::walkthrough::{Role, View};

/// Narrowest picture, and the least height for one, its heading included.
const LEAST: (u16, u16) = (34, 7);
/// Columns in which eight numbers have room.
const NUMBERED: u16 = 44;
/// Highest picture.
const MOST: u16 = 16;

/// Whether there is room for a picture.
pub fn fits(area: Rect) -> bool {
    area.width >= LEAST.0 && area.height > LEAST.1
}

/// What a step makes as a table; none where that is one number, or ids.
fn result(d: &Navigator, at: usize) -> Option<(usize, TableModel)> {
    let shows = |v: &&View| {
        let node = d.session.runs[v.run].program.node(v.node);
        v.role == Role::Result && node.dtype == DType::Float && v.shape().len() > 1
    };
    let view = d.steps.list()[at].views.iter().rfind(shows)?;
    let plane = Plane::of_view(view, &vec![0; view.shape().rank()]);
    let program = &d.session.runs[view.run].program;
    let table = TableModel::in_program(program, view.run, view.node, view.symbol.clone(), plane.clone());
    (plane.rows * plane.cols > 1).then_some((at, table))
}

/// Fills these areas with as many as there is room for: of the next steps, then, where no more follow, of those before
/// this one, the nearest first.
pub fn draw(app: &App, areas: &[Rect], buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    if d.depth() > 0 || d.is_aside() {
        return;
    }
    let at = d.position();
    let mut next = (at + 1..d.steps.list().len()).filter_map(|i| result(d, i)).peekable();
    let mut before = (0..at).rev().filter_map(|i| result(d, i)).peekable();
    for &area in areas {
        let area = area.intersection(buf.area);
        if !fits(area) {
            continue;
        }
        let columns = (area.width / NUMBERED).max(1);
        let width = area.width / columns;
        let mut said = None;
        for column in 0..columns {
            let follows = next.peek().is_some();
            if !follows && before.peek().is_none() {
                return;
            }
            let place = Rect { x: area.x + column * width, width: width - 2, ..area };
            let tables: &mut dyn Tables = if follows { &mut next } else { &mut before };
            if !stack(app, tables, place, buf, look, shown) {
                break;
            }
            if said != Some(follows) {
                let key = if follows { "tui.following" } else { "tui.preceding" };
                put(buf, area, (place.x, area.y), tr(look.lang, key), place.width, look.theme.dim, look);
                said = Some(follows);
            }
        }
    }
}

/// Tables that are looked at before they are taken.
trait Tables {
    /// The next one, where so many lines are enough for it.
    fn next_within(&mut self, lines: u16) -> Option<(usize, TableModel)>;
}

impl<I: Iterator<Item = (usize, TableModel)>> Tables for Peekable<I> {
    fn next_within(&mut self, most: u16) -> Option<(usize, TableModel)> {
        self.next_if(|(_, table)| fewest(table) <= most)
    }
}

/// Pictures below each other; false where there is no room for any.
fn stack(app: &App, tables: &mut dyn Tables, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) -> bool {
    let mut stack: Vec<(usize, TableModel, u16)> = Vec::new();
    let mut left = area.height - 1;
    while let Some((at, table)) = tables.next_within(left) {
        let height = lines(&table).min(left);
        left -= height;
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
        let place = Rect { y, height: height - 1, ..area };
        picture(app, *at, table, place, buf, look, shown);
        y += height;
    }
    !stack.is_empty()
}

/// Lines that a table would like: its title, its legend, the labels of its columns, its rows, a blank line.
fn lines(table: &TableModel) -> u16 {
    u16::try_from(table.plane.rows + 4).unwrap_or(u16::MAX).clamp(6, MOST)
}

/// Lines that are enough: two rows share one where there are no numbers.
fn fewest(table: &TableModel) -> u16 {
    u16::try_from(table.plane.rows.div_ceil(2) + 4).unwrap_or(u16::MAX).clamp(6, MOST)
}

/// A table under the title of its step.
fn picture(app: &App, at: usize, table: &TableModel, place: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let Some(source) = Source::new(app, table, app.ui.settings.digits) else { return };
    let step = &d.steps.list()[at];
    let title = format!("{} {} · {}", step.label(), table.symbol, step.title.render(look.lang));
    put(buf, place, (place.x, place.y), &title, place.width, look.theme.title, look);
    shown.hits.push((Rect { height: 1, ..place }, Target::Row(TreeRow::Step(at))));
    let scale = source.scale(app);
    legend::render(Rect { y: place.y + 1, height: 1, ..place }, buf, &scale, app.ui.settings.digits, look);
    let body = Rect { y: place.y + 2, height: place.height - 2, ..place };
    grid::draw(app, &source, &Labelled::new(d, table), &scale, None, body, buf, look);
}
