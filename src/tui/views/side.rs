//! Two runs side by side: one tensor of each, A and B, on one scale, differing cells marked; and B − A. Below each other
//! where there is no room for them next to each other.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::navigator::Plane;
use crate::app::views::side::{Pair, Pane, Side};
use crate::debug::side::{CellPair, same};
use crate::explain::line::MASKED_BELOW;
use crate::explain::{Explainer, Style};
use crate::session::Session;
use crate::tensor::DType;
use crate::text::{self, Msg, NumberFormat, escape};
use crate::trace::derive::Cell;
use crate::trace::stats::Tally;
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::words::why_nothing;
use crate::tui::scale::{Kind, Scale};
use crate::tui::shown::Shown;
use crate::tui::widgets::heat_table::{Change, HeatCell, HeatTable, Lit};
use crate::tui::widgets::paragraph::{Span, Wrapped};
use crate::tui::widgets::{legend, status};

/// Terms of a sum in the derivations below the tables.
const MAX_TERMS: usize = 16;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let side = match app.views.side.side(d) {
        Some(Ok(side)) => side,
        Some(Err(why)) => return why_nothing(why, area, buf, look),
        None if app.views.side.is_coming(d) => {
            return why_nothing(&Msg::new("tui.legend.pending"), area, buf, look);
        }
        None => return why_nothing(&Msg::new("side.none"), area, buf, look),
    };
    let digits = app.ui.settings.digits;
    let Some(seen) = side.pair(&d.session) else {
        return why_nothing(&Msg::new("side.none"), area, buf, look);
    };
    let line = |i: u16| Rect { y: area.y + i.min(area.height), height: 1.min(area.height.saturating_sub(i)), ..area };
    let at = format!("{}/{}", side.at + 1, side.pairs.len());
    status::ends(line(0), buf, &escape(&seen.pair.path), &at, look);
    let of_path = of_path(&seen, digits).render(look.lang);
    let style = if seen.pair.differing > 0 { look.theme.changed } else { look.theme.dim };
    let place = line(1);
    put(buf, place, (place.x, place.y), &of_path, area.width, style, look);
    let totals = side.totals(digits).render(look.lang);
    let place = line(2);
    put(buf, place, (place.x, place.y), &totals, area.width, look.theme.dim, look);
    let ranges = side.ranges(d, &seen);
    let log = app.ui.settings.log_scale;
    let positive = ranges.as_ref().is_some_and(|r| r.both.min >= 0.0);
    let kind = if positive { Kind::Positive } else { Kind::Signed };
    let of = |kind, tally: Option<&Tally>| tally.map_or(Scale::pending(kind), |t| Scale::of(kind, t)).with_log(log);
    let scale = of(kind, ranges.as_ref().map(|r| &r.both));
    let of_apart = of(Kind::Signed, ranges.as_ref().map(|r| &r.apart));
    legends([("A, B", &scale), ("B − A", &of_apart)], line(3), buf, digits, look);
    let body = Rect { y: area.y + 4.min(area.height), height: area.height.saturating_sub(4), ..area };
    let words = words(app, side, &seen, look);
    let text = Wrapped::new(&words, area.width, look);
    let below = (text.height() as u16).min(body.height / 3);
    let tables = Rect { height: body.height - below, ..body };
    let table = |what| Table::new(side, &seen, &d.session, what, digits);
    let panes = [table(What::Left), table(What::Right), table(What::Apart)];
    let places = places(panes.each_ref().map(|t| t.wish(look)), tables);
    for (i, (table, place)) in panes.iter().zip(places).enumerate() {
        let scale = if table.what == What::Apart { &of_apart } else { &scale };
        let seen = table.draw(scale, place, buf, look);
        if i == 0 {
            (shown.page.rows, shown.page.cols) = seen;
        }
    }
    let bottom = Rect { y: tables.bottom(), height: below, ..area };
    text.render(bottom, buf, 0, None, look);
}

/// The legends of the two scales on one line.
fn legends(both: [(&str, &Scale); 2], area: Rect, buf: &mut Buffer, digits: NumberFormat, look: &Look) {
    let half = area.width / 2;
    for (i, (name, scale)) in both.into_iter().enumerate() {
        let place = Rect { x: area.x + i as u16 * half, width: half.saturating_sub(2), ..area };
        if place.is_empty() {
            return;
        }
        let used = put(buf, place, (place.x, place.y), name, place.width, look.theme.title, look) + 1;
        let rest = Rect { x: place.x + used, width: place.width.saturating_sub(used), ..place };
        legend::render(rest, buf, scale, digits, look);
    }
}

/// Lines of a table that is worth showing: its name, its columns, two rows.
const LEAST: u16 = 4;

/// Where A, B and B − A go: next to each other; B − A below the two others; all below each other; where there is no
/// height for that, only A and B.
fn places(wishes: [u16; 3], area: Rect) -> Vec<Rect> {
    let columns = |y: u16, height: u16, wishes: &[u16]| -> Vec<Rect> {
        let n = wishes.len() as u16;
        let gaps = 2 * (n - 1);
        let sum = wishes.iter().fold(0u16, |a, w| a.saturating_add(*w));
        // What is left is shared; where there is too little, all have the same.
        let spare = area.width.saturating_sub(gaps).checked_sub(sum).map(|left| left / n);
        let mut x = area.x;
        let place = |wish: &u16| {
            let width = spare.map_or(area.width.saturating_sub(gaps) / n, |spare| wish + spare);
            let place = Rect { x, y, width, height };
            x += width + 2;
            place
        };
        wishes.iter().map(place).collect()
    };
    let fits = |wishes: &[u16]| {
        let sum = wishes.iter().fold(0u16, |a, w| a.saturating_add(*w).saturating_add(2));
        sum <= area.width.saturating_add(2)
    };
    let rows = |n: u16| {
        let height = area.height / n;
        (0..n).map(move |i| (area.y + i * height, if i + 1 == n { area.height - i * height } else { height }))
    };
    if fits(&wishes) || area.width >= 150 {
        return columns(area.y, area.height, &wishes);
    }
    if fits(&wishes[..2]) {
        if area.height < 2 * LEAST {
            return columns(area.y, area.height, &wishes[..2]);
        }
        let high = area.height / 2;
        let mut all = columns(area.y, high, &wishes[..2]);
        all.push(Rect { y: area.y + high, height: area.height - high, ..area });
        return all;
    }
    let n = if area.height >= 3 * LEAST { 3 } else { 2 };
    if n == 2 && area.height < 2 * LEAST {
        return columns(area.y, area.height, &wishes[..2]);
    }
    rows(n).map(|(y, height)| Rect { y, height, ..area }).collect()
}

/// How much of the path differs.
fn of_path(seen: &Pair<'_>, digits: NumberFormat) -> Msg {
    let p = seen.pair;
    if p.differing == 0 {
        return Msg::new("side.path_same").arg("cells", p.cells);
    }
    Msg::new("side.path_differs")
        .arg("differing", p.differing)
        .arg("cells", p.cells)
        .arg("largest", digits.format_nonzero(p.max_difference))
}

/// The cell on both sides: its values, and where they come from.
fn words(app: &App, side: &Side, seen: &Pair<'_>, look: &Look) -> Vec<Span> {
    let digits = app.ui.settings.digits;
    let (l, r) = (seen.values[0].get(seen.cell.left), seen.values[1].get(seen.cell.right));
    let (difference, _) = seen.apart(seen.cell);
    let text = Msg::new("side.cell")
        .arg("left", digits.format(l))
        .arg("right", digits.format(r))
        .arg("difference", digits.format(difference));
    let style = if same(&seen.values[0], &seen.values[1], seen.cell) { look.theme.text } else { look.theme.changed };
    let mut spans = vec![Span::new(text.render(look.lang), style)];
    for (half, trace, node, flat) in [
        (&side.panes[0], seen.traces[0], seen.pair.left, seen.cell.left),
        (&side.panes[1], seen.traces[1], seen.pair.right, seen.cell.right),
    ] {
        let d = &app.nav;
        let of_run = half.is_run(&d.session);
        let names = |c: Cell| {
            let named = || d.session.cell_name(&d.steps, half.run, c, d.position());
            of_run.then(named).flatten()
        };
        let explainer = Explainer::new(trace).speaking(look.lang);
        let style = Style { number: digits, most_terms: MAX_TERMS };
        let cell = Cell { node, flat };
        let own = names(cell).unwrap_or_else(|| {
            let shape = trace.program().node(node).shape;
            // A batch of 1 is not shown.
            let skipped = usize::from(shape.rank() > 2 && shape.dims()[0] == 1);
            let index: Vec<String> =
                shape.unflat(flat)[skipped..shape.rank()].iter().map(|i| format!("[{i}]")).collect();
            trace.program().node(node).name.tail(1) + &index.concat()
        });
        let line = explainer.line(&own, cell, &style, &names).text();
        let name = half.name.render(look.lang);
        spans.push(Span::new(format!("\n{name}: "), look.theme.label));
        spans.push(Span::new(line, look.theme.text));
    }
    spans
}

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Left,
    Right,
    /// B − A, at the places of A.
    Apart,
}

/// One of the tables.
struct Table<'a> {
    half: &'a Pane,
    what: What,
    /// The side whose places it has.
    side: usize,
    seen: &'a Pair<'a>,
    session: &'a Session,
    plane: Plane,
    digits: NumberFormat,
}

impl<'a> Table<'a> {
    fn new(side: &'a Side, seen: &'a Pair<'a>, session: &'a Session, what: What, digits: NumberFormat) -> Self {
        let which = usize::from(what == What::Right);
        let flat = [seen.cell.left, seen.cell.right][which];
        Self {
            half: &side.panes[which],
            what,
            side: which,
            seen,
            session,
            plane: Plane::around(seen.values[which].shape(), flat),
            digits,
        }
    }

    fn flat(&self) -> usize {
        [self.seen.cell.left, self.seen.cell.right][self.side]
    }

    fn cell(&self, row: usize, column: usize) -> HeatCell {
        let value = &self.seen.values[self.side];
        let flat = self.plane.flat(row, column);
        if self.what == What::Apart {
            let pair = self.seen.beside.index(0, flat).map(|index| self.seen.beside.at(&index));
            let Some((x, hidden)) = pair.map(|pair| self.seen.apart(pair)) else {
                return HeatCell { value: 0.0, text: String::new(), kind: CellKind::Plain, changed: None };
            };
            let kind = if hidden { CellKind::Masked } else { CellKind::of(x) };
            return HeatCell { value: x, text: self.digits.format_nonzero(x), kind, changed: None };
        }
        let x = value.get(flat);
        let (kind, text) = match value.dtype() {
            DType::Float if self.seen.is_masked() && x < MASKED_BELOW && x.is_finite() => {
                (CellKind::Masked, "-∞".to_owned())
            }
            DType::Float => (CellKind::of(x), self.digits.format(x)),
            DType::Bool | DType::Int => (CellKind::Plain, format!("{x}")),
        };
        HeatCell {
            value: x,
            text,
            kind,
            changed: self.differs(flat).then_some(Change { grade: 2, up: self.side == 1 }),
        }
    }

    /// Whether the other side has another number next to this cell.
    fn differs(&self, flat: usize) -> bool {
        let Some(index) = self.seen.beside.index(self.side, flat) else {
            return false;
        };
        let pair: CellPair = self.seen.beside.at(&index);
        !same(&self.seen.values[0], &self.seen.values[1], pair)
    }

    /// A label along an axis of the tensor: this run's word, else that of the other side's place next to it, else the
    /// number that the longer side counts.
    fn label(&self, axis: Option<(usize, usize)>, at: usize) -> String {
        let Some((axis, first)) = axis else {
            return String::new();
        };
        let here = first + at;
        let from = self.seen.beside.from();
        let there = (here + from[1 - self.side][axis]).saturating_sub(from[self.side][axis]);
        let word = |side: usize, at: usize| {
            let trace = self.seen.traces[side];
            let node = [self.seen.pair.left, self.seen.pair.right][side];
            let path = &trace.program().node(node).path;
            let program = &self.session.runs[self.half.run].program;
            let own = program.find(path)?;
            let shape = program.node(own).shape;
            let same = shape.same_dims(&trace.program().node(node).shape);
            let labels = same.then(|| self.session.axis_labels(self.half.run, own, axis, 0))?;
            labels.get(at)
        };
        word(self.side, here).or_else(|| word(1 - self.side, there)).unwrap_or_else(|| here.max(there).to_string())
    }

    /// Width that all columns take, at most what a screen has.
    fn wish(&self, look: &Look) -> u16 {
        let p = &self.plane;
        let (rows, columns) = (p.rows.min(12), p.cols.min(12));
        let cells = (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c)));
        let number = cells.map(|(r, c)| look.width(&self.cell(r, c).text)).max();
        let heads = (0..columns).map(|c| look.width(&self.label(p.col_axis, c)).min(10));
        let label = (0..rows).map(|r| look.width(&self.label(p.row_axis, r)).min(10)).max();
        let column = number.unwrap_or(1).max(heads.max().unwrap_or(0)) + 1;
        u16::try_from(p.cols).unwrap_or(u16::MAX).saturating_mul(column).saturating_add(label.unwrap_or(0) + 1)
    }

    /// Draws the table under its name; rows and columns that were seen.
    fn draw(&self, scale: &Scale, area: Rect, buf: &mut Buffer, look: &Look) -> (usize, usize) {
        let p = &self.plane;
        let mut name = match self.what {
            What::Left => format!("A  {}  {}×{}", self.half.name.render(look.lang), p.rows, p.cols),
            What::Right => format!("B  {}  {}×{}", self.half.name.render(look.lang), p.rows, p.cols),
            What::Apart => "B − A".to_owned(),
        };
        for (axis, at, n) in &p.fixed {
            name = format!("{name} {} {}/{n}", text::words(look.lang, "axis", axis.name()), at + 1);
        }
        put(buf, area, (area.x, area.y), &name, area.width, look.theme.title, look);
        let body = Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(1), ..area };
        let cursor = p.find(self.flat());
        let seen = HeatTable {
            size: (p.rows, p.cols),
            row_label: &|r| self.label(p.row_axis, r),
            column_label: &|c| self.label(p.col_axis, c),
            cell: &|r, c| self.cell(r, c),
            offset: cursor.map_or((0, 0), |(r, c)| {
                let above = usize::from(body.height) / 2;
                (r.saturating_sub(above), c.saturating_sub(2))
            }),
            cursor,
            lit: Lit::default(),
            scale: *scale,
            widest: 12,
            grow: 0,
        }
        .render(body, buf, look);
        (seen.rows.len().max(1), seen.columns.len().max(1))
    }
}
