//! `numerics MODE`: what rounding every number changes, as a list to go on from.

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::{Arg, Mode, Place};
use crate::app::messages::Level;
use crate::debug::numerics::{Lens, NodeError};
use crate::text::{Msg, NumberFormat, escape};

/// Nodes that an answer lists.
const MAX_LISTED: usize = 200;

/// `numerics MODE`.
pub fn numerics(app: &mut App, mode: Mode) {
    let App { nav, ui, .. } = app;
    let Some(rounding) = mode.0.at(ui.settings.decimals()) else {
        ui.say(Level::Info, Msg::new("numerics.exact"));
        return;
    };
    let run = nav.run_here();
    let lens = match Lens::of(&nav.session, run, rounding, true) {
        Ok(lens) => lens,
        Err(e) => {
            ui.say(Level::Error, Msg::new("compare.cannot_run").arg("why", escape(&e.to_string())));
            return;
        }
    };
    let name = &nav.session.runs[run].name;
    let go = |n: &NodeError| Place::parse(&format!("{name}:{}", n.path)).ok().map(Action::Go);
    let mut answer = Answer::new(lens.title(name));
    for (msg, node) in lens.findings(&nav.session, ui.settings.lang) {
        let mut row = Row::new(msg).level(Level::Warning);
        if let Some(action) = node.and_then(go) {
            row = row.action(action);
        }
        answer.push(row);
    }
    let mut worst: Vec<&NodeError> = lens.nodes.iter().filter(|n| n.matters()).collect();
    worst.truncate(MAX_LISTED);
    for n in worst {
        let mut row = Row::new(n.line(NumberFormat::Scientific(1)));
        if let Some(action) = go(n) {
            row = row.action(action);
        }
        answer.push(row);
    }
    ui.answer(answer);
}
