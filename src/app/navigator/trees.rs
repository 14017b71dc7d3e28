//! `why` and `where-to`: what a cell was made of and what it goes into, as a tree; `first-nan` and `first-inf`.

use std::fmt::Write as _;

use super::Navigator;
use super::inquire::wrong;
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::Text;
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::debug::nan::{self, Bad, From};
use crate::debug::tree::{Extent, Way, What, moves, tree};
use crate::explain::Explainer;
use crate::text::{Msg, NumberFormat, escape};
use crate::trace::derive::Cell;

/// Levels of a tree, and branches of a cell, where nothing else is said.
const USUAL: Extent = Extent { depth: 2, most: 6, rows: 500 };

/// Deepest tree that is asked for.
const DEEPEST: usize = 64;

/// `[CELL] [depth N] [most K|all]`.
struct Asked {
    cell: String,
    extent: Extent,
}

impl Asked {
    /// # Errors
    /// A number that is none.
    fn parse(text: &str) -> Result<Self, Msg> {
        let mut extent = USUAL;
        let mut rest = text.trim();
        // Options stand last: an expression may hold any words.
        while let Some((before, value)) = rest.rsplit_once(char::is_whitespace) {
            let before = before.trim_end();
            let (head, option) = before.rsplit_once(char::is_whitespace).unwrap_or(("", before));
            let number = || {
                value
                    .parse::<usize>()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or_else(|| Msg::new("tree.bad_number").arg("option", option).arg("text", escape(value)))
            };
            match option {
                "depth" => extent.depth = number()?.min(DEEPEST),
                "most" if value == "all" => extent.most = 0,
                "most" => extent.most = number()?,
                _ => break,
            }
            rest = head.trim_end();
        }
        Ok(Self { cell: rest.to_owned(), extent })
    }
}

impl Navigator {
    /// `why` (up) and `where-to` (down).
    pub(super) fn tree_of(&self, text: &str, way: Way, ui: &mut Ui) {
        let asked = match Asked::parse(text) {
            Ok(asked) => asked,
            Err(msg) => return ui.say(Level::Error, msg),
        };
        match self.cell_called(&asked.cell) {
            Err(e) => wrong(ui, &asked.cell, &e),
            Ok(None) => ui.say(Level::Info, Msg::new("tree.no_cell")),
            Ok(Some((run, cell))) => {
                if let Some(answer) = self.tree_answer(run, cell, way, asked.extent, ui.settings.digits) {
                    ui.answer(answer);
                }
            }
        }
    }

    fn tree_answer(&self, run: usize, cell: Cell, way: Way, extent: Extent, number: NumberFormat) -> Option<Answer> {
        let trace = self.trace(run)?;
        let x = Explainer::new(&trace);
        let rows = tree(&x, cell, way, extent);
        let key = match (way, rows.is_empty()) {
            (Way::Up, false) => "tree.why",
            (Way::Down, false) => "tree.where_to",
            (Way::Up, true) => "tree.given",
            (Way::Down, true) => "tree.goes_nowhere",
        };
        let value = |c: Cell| x.number(c, number);
        let title = Msg::new(key).arg("cell", self.call(&x, run, cell)).arg("value", value(cell));
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
                    answer.push(Row::new(msg));
                }
                What::Branch { branch, share, again } => {
                    let mut text = format!("{indent}{} = {}", self.call(&x, run, branch.cell), value(branch.cell));
                    if let Some(p) = branch.partner {
                        let _ = write!(text, " × {} {}", self.call(&x, run, p), value(p));
                    }
                    let msg = Msg::new(if again { "tree.again" } else { "tree.branch" })
                        .arg("what", text)
                        .arg("term", number.format(branch.term))
                        .arg("share", percent(&share));
                    let row = Row::new(msg).action(self.go_to_cell(run, branch.cell));
                    answer.push(row);
                }
            }
        }
        Some(answer)
    }

    /// `first-nan [RUN]` and `first-inf [RUN]`.
    pub(super) fn first_bad(&self, text: &str, bad: Bad, ui: &mut Ui) {
        let here = self.step().map_or(0, |s| s.run);
        let run = if text.is_empty() { Some(here) } else { self.session.run_named(text) };
        let Some(run) = run else {
            let msg = Msg::new("tui.said.no_run").arg("name", escape(text));
            return ui.say(Level::Error, msg);
        };
        let Some(trace) = self.trace(run) else { return };
        let name = &self.session.runs[run].name;
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
        let path = self.path_of(run, cell);
        let symbol = self.call(&x, run, cell);
        let called = if symbol == path { path } else { format!("{symbol} ({path})") };
        let title = Msg::new(key)
            .arg("what", what)
            .arg("run", escape(name))
            .arg("cell", called)
            .arg("op", program.node(cell.node).op.name());
        let mut answer = Answer::new(title);
        let value = |c: Cell| format!("{} = {}", self.call(&x, run, c), x.number(c, number));
        let go = |c: Cell| self.go_to_cell(run, c);
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
            answer.push(row.action(Action::FirstInf(Text(text))));
        }
        // The moves behind a symbol: where it was really computed.
        let moved = moves(&x, cell);
        if let Some(origin) = moved.last().filter(|c| **c != cell) {
            answer.push(Row::plain(self.path_of(run, *origin)).action(go(*origin)));
        }
        ui.answer(answer);
    }
}
