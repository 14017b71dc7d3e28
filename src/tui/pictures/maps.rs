//! Tensors as maps: several in a grid, one as a table or as blocks.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::navigator::TableModel;
use crate::explain::line::MASKED_BELOW;
use crate::tui::colour::{CellKind, Scale};
use crate::tui::draw::{Look, put};
use crate::tui::widgets::blocks::Blocks;
use crate::tui::widgets::heat_table::{HeatTable, Lit};

/// Probabilities as maps, each as a table where it fits, in a grid.
pub fn maps(app: &App, tables: &[TableModel], area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.nav;
    let n = tables.len();
    if n == 0 || area.is_empty() {
        return;
    }
    // Side by side as far as whole tables fit, else as square a grid of maps as the screen allows.
    let whole = tables.first().and_then(|t| {
        let source = Source::new(d, t, app.ui.settings.digits)?;
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
        map(app, t, &Scale::sequential(0.0, 1.0), body, buf, look);
    }
}

/// One tensor as a table where it fits, else as blocks.
pub fn map(app: &App, t: &TableModel, scale: &Scale, area: Rect, buf: &mut Buffer, look: &Look) {
    let Some(source) = Source::new(&app.nav, t, app.ui.settings.digits) else {
        return;
    };
    let labels = Labelled::new(&app.nav, t);
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
            scale: *scale,
            widest: 10,
        }
        .render(area, buf, look);
    } else {
        overview(&source, scale, None, area, buf, look);
    }
}

/// A large table as blocks, with the cursor and the window that is shown as a table, if there is one.
pub fn overview(
    source: &Source<'_>,
    scale: &Scale,
    window: Option<(std::ops::Range<usize>, std::ops::Range<usize>)>,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) {
    let p = &source.table.plane;
    let sample = |rows: std::ops::Range<usize>, cols: std::ops::Range<usize>| {
        // At most 3 × 3 cells a block: work grows with the screen, not with the tensor.
        let pick = |r: &std::ops::Range<usize>| {
            let step = (r.len() / 3).max(1);
            r.clone().step_by(step).take(3).collect::<Vec<_>>()
        };
        let mut best = 0.0f64;
        let mut kind = CellKind::Value;
        for r in pick(&rows) {
            for c in pick(&cols) {
                let x = source.get(r, c);
                if x.is_nan() {
                    kind = CellKind::Nan;
                } else if x < MASKED_BELOW && source.table.masked {
                    kind = CellKind::Masked;
                } else if x.is_infinite() {
                    kind = CellKind::of(x);
                } else if x.abs() > best.abs() {
                    best = x;
                }
            }
        }
        (best, kind)
    };
    Blocks {
        rows: 0..p.rows,
        columns: 0..p.cols,
        sample: &sample,
        scale: *scale,
        cursor: source.table.cursor,
        // Beside other maps there is no room for numbers.
        numbered: window.is_some(),
        window,
    }
    .render(area, buf, look);
}
