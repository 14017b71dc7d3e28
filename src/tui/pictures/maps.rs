//! Tensors as pictures: one with its labels, heads of several layers as thumbnails.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::tui::colour::CellKind;
use crate::tui::draw::Look;
use crate::tui::scale::Scale;
use crate::tui::widgets::raster::{Label, Raster, Shown};

/// Largest cells: columns and lines.
pub const LARGEST: (u16, u16) = (26, 11);
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
pub(super) fn picture(
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
        most: LARGEST,
    }
    .render(area, buf, look)
}
