//! Tables of the step: which are shown, where each goes, and what is written between them.
//!
//! What the derivation of the cursor cell reads comes first: at every size each operand has a table, or at least a line
//! with the cells that are read. A sign is drawn only where the tables on both sides of it are the whole expression.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::layout::{self, Plan, Wish};
use super::maps::overview;
use super::source::{Labelled, Source};
use crate::app::app::App;
use crate::app::navigator::{Chain, TableModel, chain};
use crate::app::settings::ScaleMode;
use crate::text::Msg;
use crate::tui::draw::{Look, put};
use crate::tui::scale::Scale;
use crate::tui::shown::{Claim, Shown, ShownTable, Target};
use crate::tui::widgets::heat_table::{HeatTable, Lit};
use crate::tui::widgets::legend;

/// Tables with more cells than this also get a picture of all of them.
const LARGE: usize = 2048;
/// In panes from this width on, columns of tables that leave room grow to [`GROWN`].
const WIDE: u16 = 100;
/// Widest column of a table that has more room than its numbers need.
const GROWN: u16 = 15;
/// Least cells of a legend that shares the line of the heading.
const IN_HEADING: u16 = 24;

/// The tables of a step with their labels, and the room that each would like.
pub struct Stage<'a> {
    sources: Vec<Source<'a>>,
    labels: Vec<Labelled<'a>>,
    scales: Vec<Scale>,
    wishes: Vec<Wish>,
    chains: Vec<Option<Chain>>,
    /// Widest that a column grows; 0: not at all.
    grow: u16,
}

impl<'a> Stage<'a> {
    /// The stage of a pane of this width.
    pub fn new(app: &'a App, tables: &'a [TableModel], width: u16, look: &Look) -> Self {
        let d = &app.nav;
        let digits = app.ui.settings.digits;
        let sources: Vec<Source<'_>> = tables.iter().filter_map(|t| Source::new(app, t, digits)).collect();
        let labels: Vec<_> = sources.iter().map(|s| Labelled::new(d, s.table)).collect();
        let mut scales: Vec<Scale> = sources.iter().map(|s| s.scale(app)).collect();
        if app.ui.settings.scale == ScaleMode::Step {
            let known = scales.iter().filter(|s| !s.pending && s.min <= s.max);
            let all = known.fold((f64::INFINITY, f64::NEG_INFINITY), |a, s| (a.0.min(s.min), a.1.max(s.max)));
            for scale in scales.iter_mut().filter(|s| !s.pending && all.0 <= all.1) {
                (scale.min, scale.max) = all;
            }
        }
        // What equals what: the expression of each table over the others.
        let of_run = |run: usize| sources.iter().filter(move |s| s.table.run == run).map(|s| s.table.node);
        let chains: Vec<Option<Chain>> = sources
            .iter()
            .map(|s| {
                let program = &d.session.runs[s.table.run].program;
                let others: Vec<_> = of_run(s.table.run).filter(|n| *n != s.table.node).collect();
                chain(program, s.table.node, &|id| others.contains(&id))
            })
            .collect();
        let grow = if width >= WIDE { GROWN } else { 0 };
        let wishes = sources.iter().zip(&labels).zip(&scales).zip(&chains);
        let wishes = wishes.map(|(((source, labels), scale), chain)| {
            let (width, height) = source.wish(look, labels);
            let own_line = source.has_legend() && !legend_in_heading(source, scale, width, look);
            // Both ends of the legend have room, however narrow the table is.
            let ends =
                look.width(&source.digits.format_short(scale.min)) + look.width(&source.digits.format_short(scale.max));
            let width = if own_line { width.max(ends.saturating_add(4)) } else { width };
            let after = chain.as_ref().map_or(0, |c| if c.after.is_empty() { 0 } else { look.width(&c.after) + 1 });
            Wish {
                width,
                height: height.saturating_add(u16::from(own_line)),
                rank: rank(source.table),
                gap: layout::GAP + after,
                most: if grow > 0 { most(source.table, width) } else { width },
            }
        });
        let wishes = wishes.collect();
        Self { sources, labels, scales, wishes, chains, grow }
    }

    /// Lines that all tables would like at this width.
    pub fn wanted(&self, width: u16) -> u16 {
        layout::wanted(&self.wishes, width).saturating_add(1)
    }

    /// Whether every table that would be shown in this area has all its lines.
    pub fn is_whole(&self, area: Rect) -> bool {
        let plan = self.plan(area);
        let whole = |height: u16, i: usize| self.wishes[i].height <= height;
        !plan.bands.is_empty() && plan.bands.iter().all(|b| b.tables.iter().all(|(i, _)| whole(b.height, *i)))
    }

    /// Draws the tables that there is room for, operands before results, and names the others. Gives the height that
    /// was used.
    pub fn draw(&self, app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) -> u16 {
        if self.sources.is_empty() || area.is_empty() {
            return 0;
        }
        let plan = self.plan(area);
        let mut y = area.y;
        for (k, band) in plan.bands.iter().enumerate() {
            y += u16::from(k > 0);
            let height = band.height.min(area.bottom().saturating_sub(y));
            let mut x = area.x;
            for (at, &(i, width)) in band.tables.iter().enumerate() {
                let gap = if at > 0 { self.wishes[i].gap } else { 0 };
                x = x.saturating_add(gap);
                if let Some((sign, claim)) = self.sign(&band.tables[..at], i) {
                    shown.claims.extend(claim);
                    let middle = y + height.saturating_sub(1) / 2;
                    let width = look.width(&sign);
                    let left = (gap.saturating_sub(width) / 2).max(1);
                    put(buf, area, (x - gap + left, middle), &sign, gap - 1, look.theme.accent, look);
                }
                let place = Rect { x, y, width, height };
                self.table(app, i, place, buf, look, shown);
                x = x.saturating_add(width);
            }
            y += height;
        }
        for &i in plan.left_out.iter().filter(|i| self.wishes[**i].rank <= OPERAND) {
            if y < area.bottom() {
                self.strip(i, Rect { y, height: 1, ..area }, buf, look, shown);
                y += 1;
            }
        }
        y += self.name_left_out(&plan, Rect { y, ..area }, area, buf, look);
        (y + 1).min(area.bottom()) - area.y
    }

    /// Where tables go; every operand that has no table keeps a line.
    fn plan(&self, area: Rect) -> Plan {
        let mut lines = 0;
        loop {
            let plan = Plan::new(&self.wishes, Rect { height: area.height.saturating_sub(lines), ..area });
            let missing = plan.left_out.iter().filter(|i| self.wishes[**i].rank <= OPERAND).count() as u16;
            if missing <= lines || lines + 4 >= area.height {
                return plan;
            }
            lines = missing;
        }
    }

    /// What is written before a table: a sign where it follows another operand of the same expression, `=` where the
    /// tables before it in its band are its whole expression.
    fn sign(&self, before: &[(usize, u16)], table: usize) -> Option<(String, Option<Claim>)> {
        let node = |i: usize| (self.sources[i].table.run, self.sources[i].table.node);
        let nodes: Vec<_> = before.iter().map(|(i, _)| node(*i)).collect();
        let run = self.sources[table].table.run;
        let ends_with = |tables: &[crate::program::NodeId]| {
            let wanted: Vec<_> = tables.iter().map(|t| (run, *t)).collect();
            nodes.ends_with(&wanted)
        };
        let size = |i: usize| (self.sources[i].table.plane.rows, self.sources[i].table.plane.cols);
        let planes: Vec<_> = before.iter().map(|(i, _)| size(*i)).collect();
        // A weight of all heads before the result of one: the product is shown, but it is not equal.
        let equal =
            |chain: &Chain| size_of(&planes[planes.len() - chain.tables.len()..], &chain.signs) == Some(size(table));
        if let Some(chain) = &self.chains[table]
            && ends_with(&chain.tables)
            && equal(chain)
        {
            let space = if chain.after.is_empty() { "" } else { " " };
            let result = self.sources[table].table.node;
            let Chain { tables, signs, after } = chain.clone();
            let claim = Claim { run, tables, signs, after, result };
            return Some((format!("{}{space}=", chain.after), Some(claim)));
        }
        // An operand that stands right behind the one before it in some expression.
        self.chains.iter().enumerate().find_map(|(of, chain)| {
            let chain = chain.as_ref().filter(|_| self.sources[of].table.run == run)?;
            let at = chain.tables.iter().position(|t| *t == self.sources[table].table.node)?;
            let sign = chain.signs.get(at.checked_sub(1)?)?;
            ends_with(&chain.tables[..at]).then(|| ((*sign).to_owned(), None))
        })
    }

    /// An operand without a table: its name and the cells that are read, on one line.
    fn strip(&self, i: usize, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
        let source = &self.sources[i];
        let mut lit: Vec<(usize, usize)> = source.table.lit.iter().copied().collect();
        lit.sort_unstable();
        let row = lit.iter().all(|c| c.0 == lit[0].0).then(|| lit.first().map_or(0, |c| c.0));
        let col = lit.iter().all(|c| c.1 == lit[0].1).then(|| lit.first().map_or(0, |c| c.1));
        let place = match (row, col) {
            (Some(r), Some(c)) => format!("[{r},{c}]"),
            (Some(r), None) => format!("[{r},:]"),
            (None, Some(c)) => format!("[:,{c}]"),
            _ => String::new(),
        };
        let name = format!("{}{place} ", source.table.symbol);
        let mut x = area.x + put(buf, area, (area.x, area.y), &name, area.width / 2, look.theme.dim, look);
        for (r, c) in lit {
            let cell = source.cell(r, c);
            let style = self.scales[i].style(cell.value, cell.kind, &look.theme, &look.palette).patch(look.theme.lit);
            if x + look.width(&cell.text) + 3 > area.right() {
                put(buf, area, (x, area.y), look.glyphs.ellipsis, 3, look.theme.dim, look);
                break;
            }
            x += put(buf, area, (x, area.y), &cell.text, area.right() - x, style, look) + 1;
        }
        shown.tables.push(ShownTable { run: source.table.run, node: source.table.node, area });
    }

    /// `+2 more tables: Q1 K1ᵀ`: below the tables, or at the end of their headings where there is no line left. Gives
    /// the lines that it took.
    fn name_left_out(&self, plan: &Plan, below: Rect, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
        let rest: Vec<usize> = plan.left_out.iter().copied().filter(|i| self.wishes[*i].rank > OPERAND).collect();
        if rest.is_empty() {
            return 0;
        }
        let symbols: Vec<&str> = rest.iter().map(|i| self.sources[*i].table.symbol.as_str()).collect();
        let text =
            Msg::new("tui.more_tables").arg("count", symbols.len()).arg("names", symbols.join(" ")).render(look.lang);
        let style = look.theme.accent;
        if below.y < area.bottom() {
            put(buf, area, (area.x, below.y), &text, area.width, style, look);
            return 1;
        }
        let headings = plan.bands.first().map_or(0, |b| {
            let width =
                |(i, width): &(usize, u16)| look.width(&self.sources[*i].heading(look.lang)).min(*width) + layout::GAP;
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

    fn table(&self, app: &App, i: usize, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
        let (source, labels, scale) = (&self.sources[i], &self.labels[i], &self.scales[i]);
        let t = source.table;
        let digits = app.ui.settings.digits;
        shown.tables.push(ShownTable { run: t.run, node: t.node, area });
        let style = if t.cursor.is_some() {
            look.theme.accent
        } else if t.result {
            look.theme.title
        } else {
            look.theme.dim
        };
        let used = put(buf, area, (area.x, area.y), &source.heading(look.lang), area.width, style, look);
        let mut body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let in_heading = legend_in_heading(source, scale, area.width, look);
        if source.has_legend() && in_heading {
            let room = area.width.saturating_sub(used + 2);
            legend::render(Rect { x: area.x + used + 2, width: room, height: 1, y: area.y }, buf, scale, digits, look);
        } else if source.has_legend() && body.height > 3 {
            let rows = u16::try_from(t.plane.rows).unwrap_or(u16::MAX);
            body.height = (body.height - 1).min(rows.saturating_add(1));
            let below = Rect { y: body.bottom(), height: 1, ..body };
            legend::render(below, buf, scale, digits, look);
        }
        // The picture of a large table is next to its window.
        let large = t.plane.rows * t.plane.cols > LARGE || app.ui.settings.blocks;
        let view = (large && body.width > 44 && body.height > 4 && source.has_legend()).then(|| {
            let most = u16::try_from(t.plane.cols.min(400)).unwrap_or(400) + 8;
            let width = (body.width * 11 / 20).clamp(24, most.max(24));
            let view = Rect { x: body.right() - width, width, height: body.height, y: body.y };
            body.width -= width + 2;
            view
        });
        let mut lit: Vec<(usize, usize)> = t.lit.iter().copied().collect();
        lit.sort_unstable();
        if let Some(motion) = app.ui.motion {
            lit.truncate(motion.of(lit.len()));
        }
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
            grow: self.grow,
        }
        .render(body, buf, look);
        if let Some(view) = view {
            let window = (seen.rows.clone(), seen.columns.clone());
            overview(app, source, labels, scale, Some(window), view, buf, look);
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
}

/// Rows and columns of tables joined by signs, products before sums; `None` where they do not fit together.
fn size_of(tables: &[(usize, usize)], signs: &[&str]) -> Option<(usize, usize)> {
    let joined = |a: usize, b: usize| (a == b || b == 1).then_some(a).or((a == 1).then_some(b));
    let both = |a: (usize, usize), b: (usize, usize)| Some((joined(a.0, b.0)?, joined(a.1, b.1)?));
    let (mut sum, mut part) = (None, *tables.first()?);
    for (sign, &next) in signs.iter().zip(&tables[1..]) {
        part = match *sign {
            "·" if part.1 == next.0 => (part.0, next.1),
            "·" => return None,
            "+" | "-" => {
                sum = Some(sum.map_or(Some(part), |sum| both(sum, part))?);
                next
            }
            _ => both(part, next)?,
        };
    }
    sum.map_or(Some(part), |sum| both(sum, part))
}

/// Whether the legend shares the line of the heading.
fn legend_in_heading(source: &Source<'_>, scale: &Scale, width: u16, look: &Look) -> bool {
    let tail = look.width(&legend::tail(scale, source.digits, look));
    let heading = look.width(&source.heading(look.lang));
    width >= heading.saturating_add(2).saturating_add(IN_HEADING).saturating_add(tail.min(40))
}

/// Ranks up to this are what the derivation is about: the table with the cursor and its operands.
const OPERAND: u8 = 2;

/// How much a table matters: the one with the cursor, what its cell reads, what is read through a number on the way,
/// other results, what else the formula names, the rest.
fn rank(table: &TableModel) -> u8 {
    match table {
        t if t.cursor.is_some() => 0,
        t if !t.lit.is_empty() => 1,
        t if t.named && t.view.is_none() => 2,
        t if t.result => 3,
        t if t.named => 4,
        _ => 5,
    }
}

/// Columns of the screen that a table can use: wider columns, where its plane has few.
fn most(table: &TableModel, width: u16) -> u16 {
    let cols = u16::try_from(table.plane.cols).unwrap_or(u16::MAX);
    cols.saturating_mul(GROWN + 1).saturating_add(width.min(12)).max(width)
}

/// Row and column of the first cell that is read; (0, 0) where there is none.
fn first_lit(lit: &[(usize, usize)]) -> (usize, usize) {
    let row = lit.iter().map(|c| c.0).min();
    let column = lit.iter().map(|c| c.1).min();
    (row.unwrap_or(0), column.unwrap_or(0))
}
