//! Two columns: this run beside the reference it was compared with, or exact beside rounded as one goes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::navigator::{Navigator, Plane};
use crate::app::views::compare::Standing;
use crate::debug::compare::words::worst;
use crate::debug::compare::{Mode, State};
use crate::text::{Align, Msg, NumberFormat, tr};
use crate::tui::draw::{Look, follow, put};
use crate::tui::screen::Shown;
use crate::walkthrough::View;

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

impl Columns {
    /// Exact beside rounded.
    fn rounded(d: &Navigator, view: &View, look: &Look) -> Option<Self> {
        let decimals = d.round().unwrap_or(4);
        let rounded = d.session.rounded(view.run, decimals).ok()?;
        let right = rounded.get(view.node)?;
        let cells = (0..right.shape().len()).map(|i| Some(right.get(i)));
        let title = Msg::new("tui.compare_title").arg("digits", decimals).arg("symbol", &view.symbol);
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
