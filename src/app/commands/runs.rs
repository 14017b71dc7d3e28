//! Training, updates, and two runs side by side.

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::{Arg, Place, Sides, Train, UpdateNumber};
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::app::view::View;
use crate::app::views::side::{Here, Side, select};
use crate::text::{Msg, NumberFormat};

/// Differing paths that an answer lists.
const MAX_LISTED: usize = 200;

/// `train [N | stop | reset]`.
pub fn train(app: &mut App, what: &Train) {
    let (views, mut cx) = app.split();
    views.training.train(*what, &mut cx);
}

/// `update [N]`.
pub fn update(app: &mut App, number: &UpdateNumber) {
    let (views, mut cx) = app.split();
    views.training.update(number.0, &mut cx);
}

/// `side-by-side [WHAT]`: puts two runs side by side and shows them.
pub fn side_by_side(app: &mut App, what: &Sides) {
    let App { nav, ui, views, .. } = app;
    match select(&Here::of(nav), what) {
        Ok(side) => {
            ui.answers.push(answer(nav, &side, ui.settings.digits));
            views.side.put(nav, side);
            ui.view = View::Side;
        }
        Err(why) => ui.say(Level::Error, why),
    }
}

/// What differs, as a list to go on from.
fn answer(nav: &Navigator, side: &Side, number: NumberFormat) -> Answer {
    let mut answer = Answer::new(side.totals(number));
    let run = &nav.session.runs[side.panes[0].run].name;
    for p in side.pairs.iter().filter(|p| p.differing > 0).take(MAX_LISTED) {
        let mut row = Row::new(
            Msg::new("side.row")
                .arg("path", &p.path)
                .arg("differing", p.differing)
                .arg("cells", p.cells)
                .arg("largest", number.format_nonzero(p.max_difference)),
        );
        let place = format!("{run}:{}", p.path);
        if let Ok(place) = Place::parse(&place) {
            row = row.action(Action::Go(place));
        }
        answer.push(row);
    }
    answer
}
