//! Tables of the step: where each goes, and what its cells look like.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Shown, Target};
use crate::app::app::App;
use crate::app::config::ScaleMode;
use crate::app::debugger::{Debugger, Plane, Stats, TableModel};
use crate::debug::whatif::Before;
use crate::explain::line::MASKED_BELOW;
use crate::program::{Leaf, Op};
use crate::tensor::{Axis, DType};
use crate::text::NumberFormat;
use crate::trace::AnyValue;
use crate::tui::colour::{CellKind, Scale};
use crate::tui::draw::{Look, put};
use crate::tui::widgets::blocks::Blocks;
use crate::tui::widgets::heat_table::{HeatCell, HeatTable, Lit};
use crate::tui::widgets::legend;

/// Tables with more cells than this also get an overview.
const LARGE: usize = 4096;
/// Numbers scanned for the range of a table that is too large to be scanned whole.
const SCANNED: usize = 2048;

/// The value of a table, and how its cells are written.
pub(super) struct Source<'a> {
    pub table: &'a TableModel,
    pub value: AnyValue,
    /// What it was before edits.
    pub before: Before,
    pub digits: NumberFormat,
    pub dtype: DType,
}

impl<'a> Source<'a> {
    pub fn new(d: &Debugger, table: &'a TableModel, digits: NumberFormat) -> Option<Self> {
        let value = d.trace(table.run)?.get(table.node)?;
        let dtype = value.dtype();
        Some(Self {
            table,
            value,
            before: d.before(table.run, table.node),
            digits,
            dtype,
        })
    }

    pub fn get(&self, row: usize, col: usize) -> f64 {
        self.value.get(self.table.plane.flat(row, col))
    }

    pub fn cell(&self, row: usize, col: usize) -> HeatCell {
        let x = self.get(row, col);
        let masked = self.table.masked && x < MASKED_BELOW || self.dtype == DType::Bool && x != 0.0;
        let (kind, text) = match self.dtype {
            DType::Int => (CellKind::Plain, format!("{x}")),
            DType::Bool => (
                if masked {
                    CellKind::Masked
                } else {
                    CellKind::Plain
                },
                format!("{x}"),
            ),
            DType::Float if masked => (CellKind::Masked, "-∞".to_owned()),
            DType::Float => {
                let text = match &self.value {
                    AnyValue::F32(_) => self.digits.format_f32(x as f32),
                    AnyValue::F64(_) => self.digits.format(x),
                };
                (CellKind::of(x), text)
            }
        };
        HeatCell {
            value: x,
            text,
            kind,
            changed: self.changed(row, col),
        }
    }

    fn changed(&self, row: usize, col: usize) -> bool {
        let flat = self.table.plane.flat(row, col);
        match &self.before {
            Before::Same => false,
            Before::None => true,
            Before::Was(before) => before.bits(flat) != self.value.bits(flat),
        }
    }

    /// Statistics for the colours: of the whole table, or of a sample where it is large.
    pub fn stats(&self) -> Stats {
        let plane = &self.table.plane;
        let n = plane.rows * plane.cols;
        if n <= SCANNED {
            return Stats::of(plane.cells().map(|f| self.value.get(f)));
        }
        let step = n.div_ceil(SCANNED);
        Stats::of(
            (0..n)
                .step_by(step)
                .map(|i| self.get(i / plane.cols, i % plane.cols)),
        )
    }

    pub fn scale(&self, stats: &Stats, log: bool) -> Scale {
        let scale = if self.table.sequential {
            Scale::sequential(stats.min.min(0.0), stats.max)
        } else {
            Scale::diverging(stats.min, stats.max)
        };
        scale.with_log(log)
    }

    /// Room that a table would like: its widest number, its labels.
    fn wish(&self, look: &Look, labels: &Labelled<'_>) -> (u16, u16) {
        let p = &self.table.plane;
        let (rows, cols) = (p.rows.min(12), p.cols.min(12));
        let mut widest = 1;
        for r in 0..rows {
            for c in 0..cols {
                widest = widest.max(look.width(&self.cell(r, c).text));
            }
        }
        for c in 0..cols {
            widest = widest.max(look.width(&labels.column(c)).min(12));
        }
        let label = (0..rows)
            .map(|r| look.width(&labels.row(r)))
            .max()
            .unwrap_or(0)
            .min(10);
        let width = u16::try_from(p.cols)
            .unwrap_or(u16::MAX)
            .saturating_mul(widest + 1)
            .saturating_add(label + 1);
        // Heading and column labels, and the legend below the table with the cursor.
        let legend = u16::from(self.has_legend());
        let height = u16::try_from(p.rows)
            .unwrap_or(u16::MAX)
            .saturating_add(2 + legend);
        (width.max(look.width(&self.heading())), height)
    }

    /// Whether colours are explained below.
    fn has_legend(&self) -> bool {
        self.table.cursor.is_some() && self.dtype == DType::Float
    }

    /// `Q1 4×2`, with the place on axes that are turned.
    fn heading(&self) -> String {
        let p = &self.table.plane;
        let mut text = format!("{} {}×{}", self.table.symbol, p.rows, p.cols);
        for (axis, at, n) in &p.fixed {
            let _ = write!(text, " {}={at}/{n}", axis.name());
        }
        text
    }
}

/// Labels of a table.
pub(super) struct Labelled<'a> {
    rows: Option<(crate::session::Labels<'a>, usize)>,
    cols: Option<(crate::session::Labels<'a>, usize)>,
}

impl<'a> Labelled<'a> {
    pub fn new(d: &'a Debugger, table: &TableModel) -> Self {
        let of = |axis: Option<(usize, usize)>| {
            axis.map(|(axis, first)| {
                (
                    d.session
                        .axis_labels(table.run, table.node, axis, table.plane.batch),
                    first,
                )
            })
        };
        Self {
            rows: of(table.plane.row_axis),
            cols: of(table.plane.col_axis),
        }
    }

    fn get(side: Option<&(crate::session::Labels<'a>, usize)>, i: usize) -> String {
        side.map_or_else(String::new, |(l, first)| {
            l.get(first + i).unwrap_or_else(|| (first + i).to_string())
        })
    }

    pub fn row(&self, i: usize) -> String {
        Self::get(self.rows.as_ref(), i)
    }

    pub fn column(&self, i: usize) -> String {
        Self::get(self.cols.as_ref(), i)
    }
}

/// Columns between tables, with the sign of the formula in their middle.
const GAP: u16 = 3;

/// Draws the tables of the step, operands before results; the one with the cursor is always seen. Gives the height
/// that was used.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) -> u16 {
    let d = &app.debugger;
    let model = d.stage();
    let digits = app.ui.settings.digits;
    let sources: Vec<Source<'_>> = model
        .tables
        .iter()
        .filter_map(|t| Source::new(d, t, digits))
        .collect();
    if sources.is_empty() || area.is_empty() {
        return 0;
    }
    let labels: Vec<Labelled<'_>> = sources.iter().map(|s| Labelled::new(d, s.table)).collect();
    let wishes: Vec<(u16, u16)> = sources
        .iter()
        .zip(&labels)
        .map(|(s, l)| s.wish(look, l))
        .collect();
    let bands = bands(&wishes, area);
    let cursor = sources
        .iter()
        .position(|s| s.table.cursor.is_some())
        .unwrap_or(sources.len() - 1);
    let home = bands
        .iter()
        .position(|b| b.tables.contains(&cursor))
        .unwrap_or(0);
    // Bands above the cursor's are shown as far as there is room for all of them.
    let mut first = home;
    let mut height = bands[home].height;
    while first > 0 && height + bands[first - 1].height <= area.height {
        first -= 1;
        height += bands[first].height;
    }
    let stats: Vec<Stats> = sources.iter().map(Source::stats).collect();
    let shared = Stats::of(stats.iter().flat_map(|s| [s.min, s.max]));
    let mut y = area.y;
    for band in &bands[first..] {
        let left = area.bottom().saturating_sub(y);
        if left < 3 {
            break;
        }
        let mut x = area.x;
        let height = band.height.min(left);
        for &i in &band.tables {
            let after_operands = i > 0 && !sources[i - 1].table.result;
            let sign = if sources[i].table.cursor.is_some() && after_operands {
                "="
            } else {
                sources[i].table.sign
            };
            let middle = y + height.saturating_sub(1) / 2;
            if x > area.x {
                put(buf, area, (x - 2, middle), sign, 1, look.theme.accent, look);
            }
            let width = wishes[i].0.min(area.right().saturating_sub(x));
            let place = Rect {
                x,
                y,
                width,
                height,
            };
            let s = if app.ui.settings.scale == ScaleMode::Step {
                &shared
            } else {
                &stats[i]
            };
            let scale = sources[i].scale(s, app.ui.settings.log_scale);
            table(
                app,
                &sources[i],
                &labels[i],
                &scale,
                place,
                buf,
                look,
                shown,
            );
            x = x.saturating_add(width).saturating_add(GAP);
        }
        y += height;
    }
    y - area.y
}

/// Tables side by side.
struct Band {
    tables: Vec<usize>,
    height: u16,
}

fn bands(wishes: &[(u16, u16)], area: Rect) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    let mut used = 0u16;
    for (i, (w, h)) in wishes.iter().enumerate() {
        let h = h.saturating_add(1).min(area.height);
        let w = (*w).min(area.width);
        match bands.last_mut() {
            Some(band) if used.saturating_add(w) <= area.width => {
                band.tables.push(i);
                band.height = band.height.max(h);
                used = used.saturating_add(w + GAP);
            }
            _ => {
                bands.push(Band {
                    tables: vec![i],
                    height: h,
                });
                used = w + GAP;
            }
        }
    }
    bands
}

#[allow(clippy::too_many_arguments)]
fn table(
    app: &App,
    source: &Source<'_>,
    labels: &Labelled<'_>,
    scale: &Scale,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
    shown: &mut Shown,
) {
    let t = source.table;
    let style = if t.cursor.is_some() {
        look.theme.accent
    } else if t.result {
        look.theme.title
    } else {
        look.theme.dim
    };
    put(
        buf,
        area,
        (area.x, area.y),
        &source.heading(),
        area.width,
        style,
        look,
    );
    let mut body = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let large = t.plane.rows * t.plane.cols > LARGE || app.ui.settings.blocks;
    if source.has_legend() && (body.height as usize > t.plane.rows + 1 || large && body.height > 6)
    {
        let rows = u16::try_from(t.plane.rows).unwrap_or(u16::MAX);
        body.height = (body.height - 1).min(rows.saturating_add(1));
        let below = Rect {
            y: body.bottom(),
            height: 1,
            ..body
        };
        legend::render(below, buf, scale, app.ui.settings.digits, look);
    }
    // The overview of a large table stands beside the window.
    let view = (large && body.width > 40 && body.height > 4).then(|| {
        let view = Rect {
            x: body.right() - 26,
            width: 26,
            height: body.height,
            y: body.y,
        };
        body.width -= 28;
        view
    });
    let mut lit: Vec<(usize, usize)> = t.lit.iter().copied().collect();
    lit.sort_unstable();
    let offset = t.cursor.map_or((0, 0), |(r, c)| {
        (
            r.saturating_sub(usize::from(body.height) / 2),
            c.saturating_sub(usize::from(body.width) / 20),
        )
    });
    let seen = HeatTable {
        size: (t.plane.rows, t.plane.cols),
        row_label: &|r| labels.row(r),
        column_label: &|c| labels.column(c),
        cell: &|r, c| source.cell(r, c),
        offset: if t.cursor.is_some() {
            offset
        } else {
            t.lit.iter().min().copied().unwrap_or((0, 0))
        },
        cursor: t.cursor,
        lit: Lit {
            cells: &lit,
            ..Lit::default()
        },
        scale: *scale,
        widest: 12,
    }
    .render(body, buf, look);
    if let Some(view) = view {
        let window = (seen.rows.clone(), seen.columns.clone());
        overview(source, scale, Some(window), view, buf, look);
    }
    if t.cursor.is_some() {
        shown.page.rows = seen.rows.len().max(1);
        shown.page.cols = seen.columns.len().max(1);
    }
    let Some(view) = t.view else { return };
    for (i, row) in seen.rows.clone().enumerate() {
        for ((x, width), col) in seen.at.iter().zip(seen.columns.clone()) {
            let at = Rect {
                x: *x,
                y: seen.y + i as u16,
                width: *width,
                height: 1,
            };
            shown.hits.push((at, Target::Cell(view, vec![row, col])));
        }
    }
}

/// A large table as blocks, with the cursor and the window that is shown as a table, if there is one.
fn overview(
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

/// All heads of a layer side by side: the weights of the attention one is in (or the nearest before).
pub(super) fn heads(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
    let Some((run, node)) = heads_node(d) else {
        put(
            buf,
            area,
            (area.x, area.y),
            crate::text::tr(look.lang, "tui.no_heads"),
            area.width,
            look.theme.dim,
            look,
        );
        return;
    };
    let program = &d.session.runs[run].program;
    let shape = program.node(node).shape;
    let axis = shape
        .axes()
        .iter()
        .position(|a| matches!(a, Axis::Head | Axis::KvHead))
        .unwrap_or(0);
    let n = shape.dims()[axis];
    put(
        buf,
        area,
        (area.x, area.y),
        &program.node(node).path,
        area.width,
        look.theme.dim,
        look,
    );
    let area = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let per = shape.len() / shape.dims()[..=axis].iter().product::<usize>().max(1);
    let tables: Vec<TableModel> = (0..n)
        .map(|h| {
            let symbol = format!("{} {}", crate::text::tr(look.lang, "tui.head"), h + 1);
            TableModel::of(run, node, symbol, Plane::around(&shape, h * per))
        })
        .collect();
    maps(app, &tables, area, buf, look);
}

/// Probabilities as maps, each as a table where it fits, in a grid.
pub(super) fn maps(app: &App, tables: &[TableModel], area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.debugger;
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
        let place = Rect {
            x: area.x + col * w,
            y: area.y + row * h,
            width: w.saturating_sub(1),
            height: h,
        };
        let at = (place.x, place.y);
        put(
            buf,
            place,
            at,
            &t.symbol,
            place.width,
            look.theme.title,
            look,
        );
        let body = Rect {
            y: place.y + 1,
            height: place.height.saturating_sub(1),
            ..place
        };
        map(app, t, &Scale::sequential(0.0, 1.0), body, buf, look);
    }
}

/// One tensor as a table where it fits, else as blocks.
pub(super) fn map(
    app: &App,
    t: &TableModel,
    scale: &Scale,
    area: Rect,
    buf: &mut Buffer,
    look: &Look,
) {
    let Some(source) = Source::new(&app.debugger, t, app.ui.settings.digits) else {
        return;
    };
    let labels = Labelled::new(&app.debugger, t);
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

/// The attention weights of the layer one is in, else the first ones of the run.
fn heads_node(d: &Debugger) -> Option<(usize, crate::program::NodeId)> {
    let view = d.view()?;
    let program = &d.session.runs[view.run].program;
    let here = program.node(view.node);
    if here.shape.axes().contains(&Axis::Head) && !matches!(here.op, Op::Leaf(Leaf::Parameter)) {
        return Some((view.run, view.node));
    }
    let weights = |id: &crate::program::NodeId| program.node(*id).path.ends_with("attn.weights");
    let layer: String = here.path.split('.').take(2).collect::<Vec<_>>().join(".");
    let all: Vec<_> = program.nodes().map(|(id, _)| id).filter(weights).collect();
    let same = all
        .iter()
        .find(|id| program.node(**id).path.starts_with(&format!("{layer}.")));
    same.or_else(|| all.iter().rev().find(|id| **id <= view.node))
        .or(all.first())
        .map(|id| (view.run, *id))
}
