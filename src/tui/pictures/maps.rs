//! Tensors as pictures: one with its labels, heads of several layers as thumbnails.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::navigator::TableModel;
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, follow, put};
use crate::tui::scale::Scale;
use crate::tui::widgets::raster::{Label, Raster, Shown};

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
    if super::grid::cells(&source, &labels, area, look).is_some() {
        super::grid::draw(app, &source, &labels, &scale, None, area, buf, look);
    } else {
        picture(app, &source, &scale, None, None, area, buf, look);
    }
}

/// A large table as a picture of every cell, with the cursor and the window that is shown as a table, if there is one.
#[allow(clippy::too_many_arguments, reason = "a table, its scale and where it goes")]
pub fn overview(
    app: &App,
    source: &Source<'_>,
    labels: &Labelled<'_>,
    scale: &Scale,
    window: Option<(Range<usize>, Range<usize>)>,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) -> Shown {
    picture(app, source, scale, Some(labels), window, area, buf, look)
}

/// As [`overview`], the labels left out where there are none.
#[allow(clippy::too_many_arguments, reason = "a table, its scale and where it goes")]
fn picture(
    app: &App,
    source: &Source<'_>,
    scale: &Scale,
    labels: Option<&Labelled<'_>>,
    window: Option<(Range<usize>, Range<usize>)>,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) -> Shown {
    let p = &source.table.plane;
    let of = app.nav.origin(source.table.run, source.table.node);
    let row = |r: usize| labels.map_or_else(String::new, |l| l.row(r));
    let column = |c: usize| labels.map_or_else(String::new, |l| l.column(c));
    let (row, column): (&Label<'_>, &Label<'_>) = (&row, &column);
    let sample = |rows: &[Range<usize>], cols: &[Range<usize>]| -> Vec<(f64, CellKind)> {
        if rows.len() == p.rows && cols.len() == p.cols {
            let cells = rows.iter().flat_map(|r| cols.iter().map(move |c| (r.start, c.start)));
            return cells.map(|(r, c)| source.cell_kind(r, c)).collect();
        }
        match app.nav.numbers.measures.picture(of, p.window(), rows.len(), cols.len()) {
            Some(tallies) => tallies.iter().map(Source::pixel).collect(),
            None => vec![(0.0, CellKind::Plain); rows.len() * cols.len()],
        }
    };
    Raster {
        rows: 0..p.rows,
        columns: 0..p.cols,
        sample: &sample,
        scale: *scale,
        cursor: source.table.cursor,
        window,
        row_label: labels.map(|_| row),
        column_label: labels.map(|_| column),
        most: super::grid::LARGEST,
    }
    .render(area, buf, look)
}
