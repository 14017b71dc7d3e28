//! Search over titles, symbols and paths, and over values: `/=0.5261`, `/=1..2`, `/> 0.9`.

use crate::app::app::App;
use crate::app::args::{StepTarget, Text};
use crate::app::find::{Wanted, text_in, value_in};
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::text::{Msg, NumberFormat, escape};

/// `search TEXT` and `search-back TEXT`.
pub fn search(app: &mut App, Text(text): &Text, forward: bool) {
    let App { nav, ui, .. } = app;
    match Wanted::parse(text).map(|wanted| go_to_hit(nav, &wanted, forward, ui.settings.digits)) {
        Ok(true) => {}
        Ok(false) => ui.say(Level::Error, Msg::new("tui.said.not_found").arg("text", escape(text))),
        Err(why) => ui.say(Level::Error, why),
    }
}

/// `search-next` (with `same`) and `search-prev`.
pub fn again(app: &mut App, same: bool) {
    match app.ui.last_search.clone() {
        Some((text, forward)) => search(app, &Text(text), forward == same),
        None => app.ui.say(Level::Info, Msg::new("tui.said.no_search")),
    }
}

/// To the next (or previous) hit; false where there is none. Value searches put the cursor on the cell.
fn go_to_hit(nav: &mut Navigator, wanted: &Wanted, forward: bool, number: NumberFormat) -> bool {
    let n = nav.steps.list().len();
    if n == 0 {
        return false;
    }
    if !matches!(wanted, Wanted::Words(_))
        && let Some((view, index)) = value_in(nav, nav.position(), wanted, forward, true, number)
    {
        nav.select(view, &index);
        return true;
    }
    for by in 1..=n {
        let at = if forward { (nav.position() + by) % n } else { (nav.position() + n - by) % n };
        let steps = std::sync::Arc::clone(&nav.steps);
        let step = &steps.list()[at];
        if let Wanted::Words(t) = wanted {
            let (found, view) = text_in(nav, step, t);
            if !found {
                continue;
            }
            nav.leave();
            go_to(nav, at);
            if let Some(view) = view {
                nav.select(view, &[]);
            }
            return true;
        }
        if let Some((view, index)) = value_in(nav, at, wanted, forward, false, number) {
            nav.leave();
            go_to(nav, at);
            nav.select(view, &index);
            return true;
        }
    }
    false
}

fn go_to(nav: &mut Navigator, at: usize) {
    let number = nav.steps.list()[at].number.clone();
    let trail = nav.jumps.clone();
    nav.to_step(&StepTarget::Number(number));
    // The search noted the place already.
    nav.jumps = trail;
}
