//! Bookmarks.

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::{Arg, StepTarget};
use crate::app::messages::Level;
use crate::text::Msg;

/// `bookmark`: sets one here, or takes it away.
pub fn toggle(app: &mut App) {
    let here = app.nav.state();
    let set = app.nav.bookmarks.toggle(here);
    app.ui.say(Level::Info, Msg::new(if set { "tui.said.marked" } else { "tui.said.unmarked" }));
}

/// `next-bookmark` and `prev-bookmark`.
pub fn go(app: &mut App, forward: bool) {
    let nav = &mut app.nav;
    match nav.bookmarks.next(&nav.state(), forward).cloned() {
        Some(place) => {
            nav.leave();
            nav.restore(&place);
        }
        None => app.ui.say(Level::Info, Msg::new("tui.said.no_bookmark")),
    }
}

/// `bookmarks`.
pub fn list(app: &mut App) {
    let App { nav, ui, .. } = app;
    let places = nav.bookmarks.all();
    let title = if places.is_empty() { "tui.said.no_bookmark" } else { "tui.bookmarks.title" };
    let mut answer = Answer::new(Msg::new(title));
    for place in places {
        let Some((label, name)) = nav.name_of(place, ui.settings.lang) else {
            continue;
        };
        let mut row = Row::new(Msg::new("tui.bookmarks.row").arg("step", &label).arg("title", name));
        if let Ok(target) = StepTarget::parse(&label) {
            row = row.action(Action::Step(target));
        }
        answer.push(row);
    }
    ui.answer(answer);
}
