//! The heads of several layers as small pictures.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::grid;
use super::maps::picture;
use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::navigator::TableModel;
use crate::tui::draw::{Look, follow, put};

/// Least cells of a thumbnail, its heading included.
const THUMBNAIL: (u16, u16) = (7, 4);

/// The heads of several layers: a row of thumbnails for each layer, `here` (layer, head) pointed out and among those
/// that are shown. Gives the first and last layer and head shown, counted from 1.
pub fn thumbnails(
    app: &App,
    layers: &[Vec<TableModel>],
    here: (usize, usize),
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) -> Option<((usize, usize), (usize, usize))> {
    let heads = layers.iter().map(Vec::len).max()?;
    if heads == 0 || area.width < THUMBNAIL.0 || area.height < THUMBNAIL.1 {
        return None;
    }
    let columns = usize::from(area.width / THUMBNAIL.0).min(heads);
    let rows = usize::from(area.height / THUMBNAIL.1).min(layers.len());
    let first_row = follow(here.0.saturating_sub(rows / 2), here.0, rows, layers.len());
    let first_column = follow(here.1.saturating_sub(columns / 2), here.1, columns, heads);
    let (w, h) = (area.width / columns as u16, area.height / rows as u16);
    for (r, layer) in layers.iter().skip(first_row).take(rows).enumerate() {
        for (c, table) in layer.iter().skip(first_column).take(columns).enumerate() {
            let place = Rect { x: area.x + c as u16 * w, y: area.y + r as u16 * h, width: w - 1, height: h };
            let chosen = (first_row + r, first_column + c) == here;
            let style = if chosen { look.theme.accent } else { look.theme.title };
            let full = look.width(&table.symbol) <= place.width;
            let short = format!("{}.{}", first_row + r + 1, first_column + c + 1);
            let name = if full { &table.symbol } else { &short };
            put(buf, place, (place.x, place.y), name, place.width, style, look);
            let body = Rect { y: place.y + 1, height: place.height - 1, ..place };
            thumbnail(app, table, body, buf, look);
        }
    }
    Some(((first_row + 1, first_row + rows), (first_column + 1, first_column + columns)))
}

/// A small picture without labels; numbers in its cells where they fit.
fn thumbnail(app: &App, table: &TableModel, area: Rect, buf: &mut Buffer, look: &Look) {
    let Some(source) = Source::new(app, table, app.ui.settings.digits) else { return };
    let labels = Labelled::new(&app.nav, table);
    let scale = source.scale(app);
    if grid::cells(&source, &labels, area, look).is_some() {
        grid::draw(app, &source, &labels, &scale, None, area, buf, look);
    } else {
        picture(app, &source, &scale, None, None, area, buf, look);
    }
}
