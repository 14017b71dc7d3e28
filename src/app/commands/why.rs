//! `why` and `where-to`: what a cell was made of and what it goes into, as a tree; `first-nan` and `first-inf`.

use std::fmt::Write as _;

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::{RunName, TreeArgs};
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::debug::nan::{self, Bad, From};
use crate::debug::tree::{Extent, Way, What, moves, tree};
use crate::explain::Explainer;
use crate::text::{Msg, NumberFormat, escape};
use crate::trace::derive::Cell;

/// Levels of a tree, and branches of a cell, where nothing else is said.
const USUAL: Extent = Extent { depth: 2, most: 6, rows: 500 };

/// Deepest tree that is requested.
const DEEPEST: usize = 64;

/// `why [CELL] [depth N] [most K|all]`.
pub fn why(app: &mut App, args: &TreeArgs) {
    tree_of(app, args, Way::Up);
}

/// `where-to [CELL] [depth N] [most K|all]`.
pub fn where_to(app: &mut App, args: &TreeArgs) {
    tree_of(app, args, Way::Down);
}

/// `first-nan [RUN]`.
pub fn first_nan(app: &mut App, RunName(text): &RunName) {
    first_bad(app, text, Bad::Nan);
}

/// `first-inf [RUN]`.
pub fn first_inf(app: &mut App, RunName(text): &RunName) {
    first_bad(app, text, Bad::Inf);
}

/// `why` (up) and `where-to` (down).
fn tree_of(app: &mut App, args: &TreeArgs, way: Way) {
    let App { nav, ui, .. } = app;
    let extent = Extent {
        depth: args.depth.map_or(USUAL.depth, |n| n.min(DEEPEST)),
        most: args.most.unwrap_or(USUAL.most),
        ..USUAL
    };
    match nav.cell_called(&args.cell) {
        Err(e) => ui.wrong(&args.cell, &e),
        Ok(None) => ui.say(Level::Info, Msg::new("tree.no_cell")),
        Ok(Some((run, cell))) => {
            if let Some(answer) = tree_answer(nav, run, cell, way, extent, ui.settings.digits) {
                ui.answer(answer);
            }
        }
    }
}

fn tree_answer(
    nav: &Navigator,
    run: usize,
    cell: Cell,
    way: Way,
    extent: Extent,
    number: NumberFormat,
) -> Option<Answer> {
    let trace = nav.trace(run)?;
    let x = Explainer::new(&trace);
    let rows = tree(&x, cell, way, extent);
    let key = match (way, rows.is_empty()) {
        (Way::Up, false) => "tree.why",
        (Way::Down, false) => "tree.where_to",
        (Way::Up, true) => "tree.given",
        (Way::Down, true) => "tree.goes_nowhere",
    };
    let value = |c: Cell| x.number(c, number);
    let title = Msg::new(key).arg("cell", nav.call(&x, run, cell)).arg("value", value(cell));
    let mut answer = Answer::new(title);
    // Results do not add up: each has operands of its own.
    let percent = |share: &Option<f64>| match share {
        Some(s) if way == Way::Up => format!("  {:.1} %", s * 100.0),
        _ => String::new(),
    };
    for row in rows {
        let indent = "  ".repeat(row.depth - 1);
        match row.what {
            What::Others { count, weight, share } => {
                let msg = Msg::new("tree.others")
                    .arg("indent", indent)
                    .arg("count", count)
                    .arg("weight", number.format(weight))
                    .arg("share", percent(&share));
                let sign = if weight < 0.0 { -1.0 } else { 1.0 };
                answer.push(Row::new(msg).bar(share.filter(|_| way == Way::Up).map(|s| s * sign)));
            }
            What::Branch { branch, share, again } => {
                let mut text = format!("{indent}{} = {}", nav.call(&x, run, branch.cell), value(branch.cell));
                if let Some(p) = branch.partner {
                    let _ = write!(text, " × {} {}", nav.call(&x, run, p), value(p));
                }
                let msg = Msg::new(if again { "tree.again" } else { "tree.branch" })
                    .arg("what", text)
                    .arg("term", number.format(branch.term))
                    .arg("share", percent(&share));
                let sign = if branch.term < 0.0 { -1.0 } else { 1.0 };
                let bar = share.filter(|_| way == Way::Up).map(|s| s * sign);
                let row = Row::new(msg).action(nav.go_to_cell(run, branch.cell)).bar(bar);
                answer.push(row);
            }
        }
    }
    Some(answer)
}

/// `first-nan [RUN]` and `first-inf [RUN]`.
fn first_bad(app: &mut App, text: &str, bad: Bad) {
    let App { nav, ui, .. } = app;
    let here = nav.run_here();
    let run = if text.is_empty() { Some(here) } else { nav.session.run_named(text) };
    let Some(run) = run else {
        let msg = Msg::new("tui.said.no_run").arg("name", escape(text));
        return ui.say(Level::Error, msg);
    };
    let Some(trace) = nav.trace(run) else { return };
    let name = &nav.session.runs[run].name;
    let what = match bad {
        Bad::Nan => "NaN",
        Bad::Inf => "∞",
    };
    let Some(found) = nan::first(&trace, bad) else {
        let msg = Msg::new("nan.none").arg("what", what).arg("run", escape(name));
        return ui.say(Level::Done, msg);
    };
    let x = Explainer::new(&trace);
    let number = ui.settings.digits;
    let cell = found.producer;
    let program = trace.program();
    let key = match found.from {
        From::Parameter => "nan.in_weight",
        From::Given => "nan.given",
        From::Computed => "nan.computed",
    };
    let path = nav.path_of(run, cell);
    let symbol = nav.call(&x, run, cell);
    let called = if symbol == path { path } else { format!("{symbol} ({path})") };
    let title = Msg::new(key)
        .arg("what", what)
        .arg("run", escape(name))
        .arg("cell", called)
        .arg("op", program.node(cell.node).op.name());
    let mut answer = Answer::new(title);
    let value = |c: Cell| format!("{} = {}", nav.call(&x, run, c), x.number(c, number));
    let go = |c: Cell| nav.go_to_cell(run, c);
    answer.push(Row::plain(value(cell)).level(Level::Error).action(go(cell)));
    for (operand, v) in &found.operands {
        let level = if v.is_finite() { Level::Info } else { Level::Warning };
        let msg = Msg::new("nan.operand").arg("what", value(*operand));
        answer.push(Row::new(msg).level(level).action(go(*operand)));
    }
    if found.operand_count > found.operands.len() {
        let more = found.operand_count - found.operands.len();
        answer.push(Row::new(Msg::new("nan.more_operands").arg("count", more)));
    }
    answer.push(Row::new(Msg::new("nan.carriers").arg("carriers", found.carriers).arg("nodes", found.nodes)));
    if found.producers > 1 {
        let more = Msg::new("nan.producers").arg("count", found.producers - 1);
        answer.push(Row::new(more).level(Level::Warning));
    }
    if found.masked > 0 {
        answer.push(Row::new(Msg::new("nan.masked").arg("count", found.masked)));
    }
    if bad == Bad::Nan && found.operands.iter().any(|(_, x)| x.is_infinite()) {
        let text = if text.is_empty() { name.clone() } else { text.to_owned() };
        let row = Row::new(Msg::new("nan.see_inf"));
        answer.push(row.action(Action::FirstInf(RunName(text))));
    }
    // The moves behind a symbol: where it was really computed.
    let moved = moves(&x, cell);
    if let Some(origin) = moved.last().filter(|c| **c != cell) {
        answer.push(Row::plain(nav.path_of(run, *origin)).action(go(*origin)));
    }
    ui.answer(answer);
}
