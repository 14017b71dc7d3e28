//! `terms [CELL]`: what a cell is added up from, here and in the recording that the run is compared with.

use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::Expression;
use crate::app::messages::Level;
use crate::debug::compare::bound::Bound;
use crate::explain::Explainer;
use crate::text::{Msg, NumberFormat};

/// Terms that are listed.
const MAX_LISTED: usize = 200;

/// `terms [CELL]`.
pub fn terms(app: &mut App, Expression(text): &Expression) {
    let App { nav, ui, views, .. } = app;
    let found = match nav.cell_called(text) {
        Err(e) => return ui.wrong(text, &e),
        Ok(None) => return ui.say(Level::Info, Msg::new("tree.no_cell")),
        Ok(Some(found)) => found,
    };
    let (run, cell) = found;
    let Some(bound) = views.compare.bound(nav, run) else {
        return ui.say(Level::Info, Msg::new("compare.none_yet"));
    };
    let Some(ours) = nav.trace(run) else { return };
    let bound: &Bound = &bound;
    let theirs = views.compare.standing(nav, run, cell.node).and_then(|s| s.theirs.and_then(|t| t[cell.flat]));
    let x = Explainer::new(&ours);
    let number = |v: f64| NumberFormat::Shortest.format(v);
    let value = ours.value(cell.node).get(cell.flat);
    let title = Msg::new("bind.terms")
        .arg("cell", nav.call(&x, run, cell))
        .arg("ours", number(value))
        .arg("theirs", theirs.map_or_else(|| "—".to_owned(), number))
        .arg("recomputed", number(bound.recomputed(cell)));
    let mut answer = Answer::new(title);
    for term in bound.terms(&ours, cell).iter().take(MAX_LISTED) {
        let names: Vec<String> = term.operands.iter().map(|c| nav.call(&x, run, *c)).collect();
        let row = Msg::new("bind.term")
            .arg("term", names.join("·"))
            .arg("ours", number(term.ours))
            .arg("theirs", number(term.theirs))
            .arg("difference", NumberFormat::Scientific(2).format(term.theirs - term.ours));
        let level = if term.ours.to_bits() == term.theirs.to_bits() { Level::Info } else { Level::Warning };
        answer.push(Row::new(row).level(level).action(nav.go_to_cell(run, term.operands[0])));
    }
    ui.answer(answer);
}
