//! Moving in the part of the screen that has the focus: steps of the list, cells of a table.

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::{Choice, Text};
use crate::app::messages::Level;
use crate::app::navigator::Part;
use crate::app::ui::Focus;
use crate::text::{Msg, tr};

/// Most places of an axis in its list.
const MAX_PLACES: usize = 256;

/// `up` and `down`.
pub fn vertical(app: &mut App, by: i64) {
    if app.ui.focus == Focus::Steps {
        app.nav.go_by(by);
    } else {
        app.nav.step_cursor(1, by);
    }
}

/// A page up or down, or half of one.
pub fn page(app: &mut App, down: bool, half: bool) {
    let in_list = app.ui.focus == Focus::Steps;
    let lines = if in_list { app.page.list } else { app.page.rows }.max(1);
    let lines = if half { lines.div_ceil(2) } else { lines } as i64;
    let by = if down { lines } else { -lines };
    let nav = &mut app.nav;
    if in_list {
        let last = nav.steps.list().len().saturating_sub(1) as i64;
        let at = nav.position() as i64;
        nav.go_by((at + by).clamp(0, last) - at);
    } else {
        nav.move_cursor(1, by);
    }
}

/// A page of columns to the left or right.
pub fn page_columns(app: &mut App, right: bool) {
    let by = app.page.cols.max(1) as i64;
    app.nav.move_cursor(0, if right { by } else { -by });
}

/// To the first or the last: step of the list, row of the table.
pub fn end(app: &mut App, last: bool) {
    if app.ui.focus == Focus::Steps {
        app.nav.to_end(last);
    } else {
        app.nav.move_cursor(1, if last { i64::MAX / 2 } else { i64::MIN / 2 });
    }
}

/// Sets an axis that the table does not show (`head 3`), or lists the places of all of them.
pub fn pick_axis(app: &mut App, Text(text): &Text) {
    let App { nav, ui, .. } = app;
    let axes = nav.turned_axes();
    if text.is_empty() {
        let title = if axes.is_empty() { "tui.axis.none" } else { "tui.axis.title" };
        let mut answer = Answer::new(Msg::new(title));
        for (name, n, at) in axes {
            for i in 0..n.min(MAX_PLACES) {
                let line = format!("{name} {i}");
                let mark = if i == at { " ←" } else { "" };
                let row = Row::plain(format!("{line}{mark}"));
                answer.push(row.action(Action::AxisPick(Text(line))));
            }
        }
        return ui.answer(answer);
    }
    let set = text.rsplit_once([' ', '=']).and_then(|(name, at)| {
        let at: usize = at.trim().parse().ok()?;
        nav.set_axis(name.trim(), at).then_some(())
    });
    if set.is_none() {
        let names: Vec<String> = axes.iter().map(|(name, n, _)| format!("{name} 0..{n}")).collect();
        ui.say(
            Level::Error,
            Msg::new("tui.axis.wrong").arg("text", crate::text::escape(text)).arg("all", names.join(", ")),
        );
    }
}

/// `batch`, `head`, `layer`: which one is shown where there are several.
pub fn choose(app: &mut App, part: Part, choice: Choice) {
    let what = tr(app.ui.settings.lang, part.key());
    match app.nav.choose(part, choice) {
        Ok((at, all)) => {
            app.ui.say(Level::Info, Msg::new("tui.choice.done").arg("what", what).arg("at", at).arg("all", all));
        }
        Err(all) => app.ui.say(Level::Error, Msg::new("tui.choice.none").arg("what", what).arg("count", all)),
    }
}
