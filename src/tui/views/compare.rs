//! Two columns: this run beside the reference it was compared with, or exact beside rounded as one goes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::measure::{self, Kind};
use crate::app::navigator::{Navigator, Plane, TableModel};
use crate::app::views::compare::Standing;
use crate::debug::compare::words::worst;
use crate::debug::compare::{Mode, State};
use crate::text::{Align, Msg, NumberFormat, tr};
use crate::trace::stats::Tally;
use crate::trace::{AnyValue, Rounding};
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, follow, put};
use crate::tui::pictures::grid;
use crate::tui::pictures::source::Labelled;
use crate::tui::scale::Scale;
use crate::tui::screen::Shown;
use crate::tui::widgets::legend;
use crate::walkthrough::View;

/// A number of a grid, and what it is.
type Cell<'a> = &'a dyn Fn(usize, usize) -> (f64, CellKind);

/// What stands beside the run's own numbers.
struct Columns {
    title: String,
    /// Keys of the headings of both columns.
    headings: [&'static str; 2],
    /// More of how they stand.
    note: Option<String>,
    right: Right,
    /// Cells that a comparison found to differ, also where they look alike at these decimals.
    differing: Vec<usize>,
}

enum Right {
    /// Nothing: the reference does not have the node.
    None,
    /// These; `None` where there is no such cell.
    Cells(Vec<Option<f64>>),
}

/// The tensor looked at, cell by cell.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let d = &app.nav;
    let Some(view) = d.view() else { return };
    let left = d.session.trace(view.run).ok();
    let Some(left) = left.and_then(|t| t.get(view.node)) else {
        return;
    };
    let columns = match app.views.compare.standing(d, view.run, view.node) {
        Some(standing) => Some(Columns::compared(view, standing, look)),
        None => Columns::rounded(d, view, look),
    };
    let Some(columns) = columns else { return };
    // The list has the left side where the three grids have room next to it.
    let whole = area;
    let listed = NAME + 2 * if columns.differing.is_empty() { 14 } else { 24 } + 5;
    let area = if area.width >= listed + GRIDS && matches!(columns.right, Right::Cells(_)) {
        let grids = Rect { x: area.x + listed, width: area.width - listed, ..area };
        columns.grids(app, view, &left, grids, buf, look);
        Rect { width: listed - 1, ..whole }
    } else {
        area
    };
    let width = if columns.differing.is_empty() { 14 } else { 24 };
    let mut y = area.y;
    let mut line = |text: &str, style| {
        if y < area.bottom() {
            put(buf, area, (area.x, y), text, area.width, style, look);
        }
        y += 1;
    };
    line(&columns.title, look.theme.title);
    if let Some(note) = &columns.note {
        line(note, look.theme.warn);
    }
    let heading = |i: usize| look.fit(tr(look.lang, columns.headings[i]), width, Align::Right);
    let both = match columns.right {
        Right::None => heading(0),
        Right::Cells(_) => format!("{}   {}", heading(0), heading(1)),
    };
    line(&format!("{}{both}", " ".repeat(NAME.into())), look.theme.dim);
    let plane = Plane::of_view(view, d.index());
    let height = usize::from(area.bottom().saturating_sub(y));
    let cursor = d.cell().and_then(|(_, c)| plane.find(c.flat)).map_or(0, |(r, c)| r * plane.cols + c);
    let n = plane.rows * plane.cols;
    let first = follow(cursor.saturating_sub(height / 2), cursor, height.max(1), n);
    for (i, y) in (first..n).zip(y..area.bottom()) {
        let (r, c) = (i / plane.cols, i % plane.cols);
        let flat = plane.flat(r, c);
        let (text, alike) = columns.cell(flat, left.get(flat), app.ui.settings.digits, width, look);
        let style = match (i == cursor, alike) {
            (true, _) => look.theme.cursor,
            (false, true) => look.theme.text,
            (false, false) => look.theme.changed,
        };
        let name = look.fit(&format!("{}[{r}][{c}]", view.symbol), NAME, Align::Left);
        let text = format!("{name}{text}");
        put(buf, area, (area.x, y), &text, area.width, style, look);
    }
}

/// Room for the name of a cell.
const NAME: u16 = 20;
/// Least columns that the grids have next to the list.
const GRIDS: u16 = 36;

impl Columns {
    /// Exact beside rounded.
    fn rounded(d: &Navigator, view: &View, look: &Look) -> Option<Self> {
        let rounding = d.round().unwrap_or(Rounding::Decimals(4));
        let rounded = d.session.rounded(view.run, rounding).ok()?;
        let right = rounded.get(view.node)?;
        let cells = (0..right.shape().len()).map(|i| Some(right.get(i)));
        let title = match rounding {
            Rounding::Decimals(digits) => Msg::new("tui.compare_title").arg("digits", digits),
            Rounding::Type(t) => Msg::new("tui.compare_title_type").arg("type", t),
        };
        let title = title.arg("symbol", &view.symbol);
        Some(Self {
            title: title.render(look.lang),
            headings: ["tui.compare_exact", "tui.compare_rounded"],
            note: None,
            right: Right::Cells(cells.collect()),
            differing: Vec::new(),
        })
    }

    /// This run beside the reference.
    fn compared(view: &View, standing: Standing<'_>, look: &Look) -> Self {
        let Standing { reference, mode, checked, theirs } = standing;
        let beyond = checked.filter(|c| matches!(c.state, State::Drift | State::Diverged));
        let isolated = mode == Mode::Isolated;
        let note = beyond.map(|c| {
            let key = match (isolated, c.state) {
                (true, State::Drift) => "compare.recomputed_drift",
                (true, _) => "compare.recomputed",
                (false, State::Drift) => "compare.computed_drift",
                (false, _) => "compare.computed",
            };
            let worst = worst(c, NumberFormat::Shortest).render(look.lang);
            Msg::new(key).arg("worst", worst).render(look.lang)
        });
        let there = checked.is_some_and(|c| c.against.is_some());
        let title = if there { "compare.columns" } else { "compare.not_there" };
        let ours = if isolated && there { "compare.ours_own" } else { "compare.ours" };
        Self {
            title: Msg::new(title).arg("symbol", &view.symbol).arg("reference", reference).render(look.lang),
            headings: [ours, "compare.reference"],
            note,
            right: theirs.map_or(Right::None, Right::Cells),
            differing: (beyond.and_then(|c| c.against.as_ref()).into_iter())
                .flat_map(|a| a.cells.iter().map(|cell| cell.flat))
                .collect(),
        }
    }

    /// A, B and B − A as equal grids below each other: A and B on one scale, the difference on its own.
    fn grids(&self, app: &App, view: &View, left: &AnyValue, area: Rect, buf: &mut Buffer, look: &Look) {
        let Right::Cells(theirs) = &self.right else { return };
        let d = &app.nav;
        let plane = Plane::of_view(view, d.index());
        let table = TableModel::of(view.run, view.node, view.symbol.clone(), plane.clone());
        let labels = Labelled::new(d, &table);
        let ours = |r: usize, c: usize| left.get(plane.flat(r, c));
        let other = |r: usize, c: usize| theirs.get(plane.flat(r, c)).copied().flatten();
        let known = |x: Option<f64>| x.map_or((0.0, CellKind::Plain), |x| (x, CellKind::of(x)));
        let a = |r: usize, c: usize| (ours(r, c), CellKind::of(ours(r, c)));
        let b = |r: usize, c: usize| known(other(r, c));
        let difference = |r: usize, c: usize| {
            known(other(r, c).map(|x| if x.to_bits() == ours(r, c).to_bits() { 0.0 } else { x - ours(r, c) }))
        };
        let all = || (0..plane.rows).flat_map(|r| (0..plane.cols).map(move |c| (r, c)));
        let both = all().flat_map(|(r, c)| [Some(ours(r, c)), other(r, c)]).flatten();
        let scale = Scale::of(measure::kind(&d.session.runs[view.run].program, view.node), &Tally::of(both));
        let apart = all().filter_map(|(r, c)| Some(difference(r, c)).filter(|x| x.1 != CellKind::Plain)).map(|x| x.0);
        let apart = Scale::of(Kind::Signed, &Tally::of(apart));
        let cursor = d.cell().and_then(|(_, c)| plane.find(c.flat));
        let [ours_key, theirs_key] = self.headings.map(|k| tr(look.lang, k));
        let third = area.height / 3;
        let parts: [(String, Scale, Cell<'_>); 3] = [
            (format!("A  {ours_key}"), scale, &a),
            (format!("B  {theirs_key}"), scale, &b),
            ("B − A".to_owned(), apart, &difference),
        ];
        for (i, (name, scale, cell)) in parts.iter().enumerate() {
            let place = Rect { y: area.y + i as u16 * third, height: third, ..area };
            if place.height < 4 {
                return;
            }
            let used = put(buf, place, (place.x, place.y), name, place.width, look.theme.title, look) + 2;
            let line = Rect { x: place.x + used, width: place.width.saturating_sub(used), height: 1, ..place };
            legend::render(line, buf, scale, app.ui.settings.digits, look);
            let body = Rect { y: place.y + 1, height: place.height - 2, ..place };
            grid::Values {
                size: (plane.rows, plane.cols),
                cell: *cell,
                row_label: &|r| labels.row(r),
                column_label: &|c| labels.column(c),
                scale: *scale,
                digits: app.ui.settings.digits,
                cursor,
            }
            .render(body, buf, look);
        }
    }

    /// Both numbers of a cell, and whether they are alike.
    fn cell(&self, flat: usize, left: f64, digits: NumberFormat, width: u16, look: &Look) -> (String, bool) {
        let fit = |text: &str| look.fit(text, width, Align::Right);
        let cells = match &self.right {
            Right::None => return (fit(&digits.format(left)), true),
            Right::Cells(cells) => cells,
        };
        let Some(right) = cells[flat] else {
            return (format!("{}   {}", fit(&digits.format(left)), fit("—")), true);
        };
        let (mut a, mut b) = (digits.format(left), digits.format(right));
        if a == b && self.differing.contains(&flat) {
            (a, b) = (NumberFormat::Shortest.format(left), NumberFormat::Shortest.format(right));
        }
        let mark = if a == b { " " } else { "≠" };
        (format!("{}  {mark}{}", fit(&a), fit(&b)), a == b)
    }
}
