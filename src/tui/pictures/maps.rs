//! Tensors as maps: several in a grid, one as a table or as a picture.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::navigator::TableModel;
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::scale::Scale;
use crate::tui::widgets::heat_table::{HeatTable, Lit};
use crate::tui::widgets::raster::{Raster, Shown};

/// Probabilities as maps, each as a table where it fits, in a grid.
pub fn maps(app: &App, tables: &[TableModel], area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.nav;
    let n = tables.len();
    if n == 0 || area.is_empty() {
        return;
    }
    // Side by side as far as whole tables fit, else as square a grid of maps as the screen allows.
    let whole = tables.first().and_then(|t| {
        let source = Source::new(app, t, app.ui.settings.digits)?;
        let (width, height) = source.wish(look, &Labelled::new(d, t));
        let columns = usize::from(area.width / (width + 1)).min(n);
        let rows = n.div_ceil(columns.max(1)) as u16;
        (columns > 0 && rows.saturating_mul(height + 1) <= area.height).then_some(columns)
    });
    // A character is about twice as high as wide.
    let side = |c: usize| {
        let rows = n.div_ceil(c) as u16;
        (area.width / c as u16 / 2).min((area.height / rows.max(1)).saturating_sub(1))
    };
    let square = || (1..=n).max_by_key(|c| (side(*c), std::cmp::Reverse(*c)));
    let columns = whole.or_else(square).unwrap_or(1).max(1) as u16;
    let rows = (n as u16).div_ceil(columns);
    let (w, h) = (area.width / columns, area.height / rows.max(1));
    for (i, t) in tables.iter().enumerate() {
        let (col, row) = (i as u16 % columns, i as u16 / columns);
        let place = Rect { x: area.x + col * w, y: area.y + row * h, width: w.saturating_sub(1), height: h };
        let at = (place.x, place.y);
        put(buf, place, at, &t.symbol, place.width, look.theme.title, look);
        let body = Rect { y: place.y + 1, height: place.height.saturating_sub(1), ..place };
        map(app, t, body, buf, look);
    }
}

/// One tensor as a table where it fits, else as blocks.
pub fn map(app: &App, t: &TableModel, area: Rect, buf: &mut Buffer, look: &Look) {
    let Some(source) = Source::new(app, t, app.ui.settings.digits) else {
        return;
    };
    let labels = Labelled::new(&app.nav, t);
    let scale = source.scale(app);
    let (want, tall) = source.wish(look, &labels);
    if want <= area.width && tall <= area.height.saturating_add(1) {
        HeatTable {
            size: (t.plane.rows, t.plane.cols),
            row_label: &|r| labels.row(r),
            column_label: &|c| labels.column(c),
            cell: &|r, c| source.cell(r, c),
            offset: (0, 0),
            cursor: None,
            lit: Lit::default(),
            scale,
            widest: 10,
        }
        .render(area, buf, look);
    } else {
        overview(app, &source, &labels, &scale, None, area, buf, look);
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
    let p = &source.table.plane;
    let of = app.nav.origin(source.table.run, source.table.node);
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
        row_label: Some(&|r| labels.row(r)),
        column_label: Some(&|c| labels.column(c)),
        most: (14, 7),
    }
    .render(area, buf, look)
}
