//! Tables of the step: which are shown, where each goes, and how its window stands.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::layout::{self, Plan, Wish};
use super::maps::overview;
use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::config::ScaleMode;
use crate::app::navigator::{Stats, TableModel};
use crate::text::Msg;
use crate::tui::colour::Scale;
use crate::tui::draw::{Look, put};
use crate::tui::screen::{Shown, Target};
use crate::tui::widgets::heat_table::{HeatTable, Lit};
use crate::tui::widgets::legend;

/// Tables with more cells than this also get an overview.
const LARGE: usize = 4096;

/// The tables of a step with their labels, and the room that each would like.
pub struct Stage<'a> {
    sources: Vec<Source<'a>>,
    labels: Vec<Labelled<'a>>,
    wishes: Vec<Wish>,
}

impl<'a> Stage<'a> {
    pub fn new(app: &'a App, tables: &'a [TableModel], look: &Look) -> Self {
        let d = &app.nav;
        let digits = app.ui.settings.digits;
        let sources: Vec<Source<'_>> = tables.iter().filter_map(|t| Source::new(d, t, digits)).collect();
        let labels: Vec<_> = sources.iter().map(|s| Labelled::new(d, s.table)).collect();
        let wishes = sources.iter().zip(&labels).map(|(source, labels)| {
            let (width, height) = source.wish(look, labels);
            let rank = rank(source.table);
            Wish { width, height, rank }
        });
        Self { wishes: wishes.collect(), sources, labels }
    }

    /// Lines that all tables would like at this width.
    pub fn wanted(&self, width: u16) -> u16 {
        layout::wanted(&self.wishes, width).saturating_add(1)
    }

    /// Draws the tables that there is room for, operands before results, and names the others. Gives the height that
    /// was used.
    pub fn draw(&self, app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) -> u16 {
        if self.sources.is_empty() || area.is_empty() {
            return 0;
        }
        let plan = Plan::new(&self.wishes, area);
        let all = self.sources.iter().map(Source::stats);
        let shared = Stats::of(all.flat_map(|s| [s.min, s.max]));
        let mut y = area.y;
        for (k, band) in plan.bands.iter().enumerate() {
            y += u16::from(k > 0);
            let height = band.height.min(area.bottom().saturating_sub(y));
            let mut x = area.x;
            for (at, &(i, width)) in band.tables.iter().enumerate() {
                let before = at.checked_sub(1).map(|at| band.tables[at].0);
                if let Some(before) = before {
                    let middle = y + height.saturating_sub(1) / 2;
                    let sign = self.sign(before, i);
                    put(buf, area, (x - 2, middle), sign, 1, look.theme.accent, look);
                }
                let source = &self.sources[i];
                let stats = if app.ui.settings.scale == ScaleMode::Step { shared } else { source.stats() };
                let scale = source.scale(&stats, app.ui.settings.log_scale);
                let place = Rect { x, y, width, height };
                table(app, source, &self.labels[i], &scale, place, buf, look, shown);
                x = x.saturating_add(width).saturating_add(layout::GAP);
            }
            y += height;
        }
        y += self.name_left_out(&plan, Rect { y, ..area }, area, buf, look);
        (y + 1).min(area.bottom()) - area.y
    }

    /// What stands between two tables: a sign of the formula where they are its neighbours.
    fn sign(&self, before: usize, table: usize) -> &'static str {
        let of = &self.sources[table].table;
        if of.cursor.is_some() && self.sources[before].table.view.is_none() {
            "="
        } else if before + 1 == table {
            of.sign
        } else {
            ""
        }
    }

    /// `+2 more tables: Q1 K1ᵀ`: below the tables, or at the end of their headings where there is no line left. Gives
    /// the lines that it took.
    fn name_left_out(&self, plan: &Plan, below: Rect, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
        if plan.left_out.is_empty() {
            return 0;
        }
        let symbols = plan.left_out.iter();
        let symbols: Vec<&str> = symbols.map(|i| self.sources[*i].table.symbol.as_str()).collect();
        let text =
            Msg::new("tui.more_tables").arg("count", symbols.len()).arg("names", symbols.join(" ")).render(look.lang);
        let style = look.theme.accent;
        if below.y < area.bottom() {
            put(buf, area, (area.x, below.y), &text, area.width, style, look);
            return 1;
        }
        let headings = plan.bands.first().map_or(0, |b| {
            let width = |(i, width): &(usize, u16)| look.width(&self.sources[*i].heading()).min(*width) + layout::GAP;
            b.tables.last().map_or(0, |last| {
                let before = &b.tables[..b.tables.len() - 1];
                before.iter().map(|(_, w)| w + layout::GAP).sum::<u16>() + width(last)
            })
        });
        // Where even the headings leave no room, that there are more matters more than the end of a heading.
        let short = Msg::new("tui.more_tables_short").arg("count", symbols.len());
        let short = format!(" {}", short.render(look.lang));
        let room = area.width.saturating_sub(headings).max(look.width(&short));
        let text = if look.width(&text) <= room { text } else { short };
        let x = area.right().saturating_sub(look.width(&text)).max(area.x);
        put(buf, area, (x, area.y), &text, area.width, style, look);
        0
    }
}

/// How much a table matters: the one with the cursor, operands that the formula names, what else it names, other
/// results, the rest.
fn rank(table: &TableModel) -> u8 {
    match table {
        t if t.cursor.is_some() => 0,
        t if t.named && t.view.is_none() => 1,
        t if t.named => 2,
        t if t.result => 3,
        _ => 4,
    }
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
    put(buf, area, (area.x, area.y), &source.heading(), area.width, style, look);
    let mut body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let large = t.plane.rows * t.plane.cols > LARGE || app.ui.settings.blocks;
    if source.has_legend() && (body.height as usize > t.plane.rows + 1 || large && body.height > 6) {
        let rows = u16::try_from(t.plane.rows).unwrap_or(u16::MAX);
        body.height = (body.height - 1).min(rows.saturating_add(1));
        let below = Rect { y: body.bottom(), height: 1, ..body };
        legend::render(below, buf, scale, app.ui.settings.digits, look);
    }
    // The overview of a large table stands beside the window.
    let view = (large && body.width > 40 && body.height > 4).then(|| {
        let view = Rect { x: body.right() - 26, width: 26, height: body.height, y: body.y };
        body.width -= 28;
        view
    });
    let mut lit: Vec<(usize, usize)> = t.lit.iter().copied().collect();
    lit.sort_unstable();
    // Around the cursor, else around the cells that it reads.
    let (row, column) = t.cursor.unwrap_or_else(|| first_lit(&lit));
    let offset =
        (row.saturating_sub(usize::from(body.height) / 2), column.saturating_sub(usize::from(body.width) / 20));
    let seen = HeatTable {
        size: (t.plane.rows, t.plane.cols),
        row_label: &|r| labels.row(r),
        column_label: &|c| labels.column(c),
        cell: &|r, c| source.cell(r, c),
        offset,
        cursor: t.cursor,
        lit: Lit { cells: &lit, ..Lit::default() },
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
            let at = Rect { x: *x, y: seen.y + i as u16, width: *width, height: 1 };
            shown.hits.push((at, Target::Cell(view, vec![row, col])));
        }
    }
}

/// Row and column of the first cell that is read; (0, 0) where there is none.
fn first_lit(lit: &[(usize, usize)]) -> (usize, usize) {
    let row = lit.iter().map(|c| c.0).min();
    let column = lit.iter().map(|c| c.1).min();
    (row.unwrap_or(0), column.unwrap_or(0))
}
