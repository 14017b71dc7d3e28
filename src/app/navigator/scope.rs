//! What expressions and breakpoints see from where one is, and how cells are called.

use std::collections::HashMap;
use std::sync::Arc;

use super::Navigator;
use crate::app::action::Action;
use crate::app::args::Place;
use crate::debug::breaks::Position;
use crate::debug::eval_context::{EvalContext, Values};
use crate::debug::expr::{Expr, ExprError, Fault};
use crate::debug::timeline::Timeline;
use crate::explain::Explainer;
use crate::program::NodeId;
use crate::session::locate::Address;
use crate::text::Msg;
use crate::trace::derive::Cell;
use crate::trace::{AnyValue, Rounding};

/// The number of a watch along the steps that are listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trail {
    /// Steps, by position, ascending: all of them, or up to 256 at equal distances.
    pub steps: Vec<usize>,
    /// Its number at each of them; `None` where it is not computed yet, cannot be, or is no single number.
    pub values: Vec<Option<f64>>,
}

/// What watches are along the steps: by expression, list of steps and rounding.
pub(super) type Trails = HashMap<(String, Option<usize>, Option<Rounding>), Arc<Trail>>;

impl Values for Navigator {
    fn value(&self, run: usize, node: NodeId) -> Option<AnyValue> {
        self.trace(run)?.get(node)
    }
}

impl Navigator {
    /// The index of the steps that are listed.
    pub fn timeline(&self) -> Arc<Timeline> {
        let mut kept = self.timeline.borrow_mut();
        let kept = kept.get_mut(&self.session);
        if let Some((steps, timeline)) = kept
            && Arc::ptr_eq(steps, &self.steps)
        {
            return Arc::clone(timeline);
        }
        let made = Arc::new(Timeline::new(&self.session, &self.steps));
        *kept = Some((Arc::clone(&self.steps), Arc::clone(&made)));
        made
    }

    /// What an expression is along the steps; `make` computes it, once. A run that goes on is computed anew each time.
    pub(in crate::app) fn trail(&self, text: &str, make: impl FnOnce() -> Trail) -> Arc<Trail> {
        let session = &self.session;
        if (0..session.runs.len()).any(|run| session.progress(run).is_some()) {
            return Arc::new(make());
        }
        let key = (text.to_owned(), self.run, self.round());
        if let Some(made) = self.trails.borrow().get(session).and_then(|kept| kept.get(&key)) {
            return Arc::clone(made);
        }
        let made = Arc::new(make());
        self.trails.borrow_mut().get_mut(session).insert(key, Arc::clone(&made));
        made
    }

    /// The place one is at, as expressions see it.
    pub fn scope<'a>(&'a self, timeline: &'a Timeline) -> EvalContext<'a> {
        EvalContext {
            session: &self.session,
            steps: &self.steps,
            timeline,
            values: self,
            at: self.at,
            past: false,
            shown: self.step(),
            it: None,
        }
    }

    /// The place one is at, as breakpoints see it.
    pub fn at_position(&self, timeline: &Timeline) -> Position {
        let beside = self.aside.as_ref().and_then(|s| s.views.first());
        let inside = beside.map(|v| (v.run, v.node));
        Position { step: self.at, inside: inside.filter(|i| timeline.hidden(self.at).contains(i)) }
    }

    /// The cell that `text` names, such as `A1[0,2]`; the one under the cursor where it is empty.
    ///
    /// # Errors
    /// Where it cannot be read, or is not one recorded number.
    pub fn cell_called(&self, text: &str) -> Result<Option<(usize, Cell)>, ExprError> {
        if text.is_empty() {
            return Ok(self.cell());
        }
        let timeline = self.timeline();
        let array = Expr::parse(text)?.eval(&self.scope(&timeline))?;
        let cell = array.number().and_then(|_| array.cell(0));
        cell.map(Some).ok_or_else(|| {
            let at = 0..text.chars().count();
            ExprError::new(Fault::Value, at, Msg::new("expr.not_a_cell"))
        })
    }

    /// What a cell is called: by a symbol where one of the steps shows it, or something it was moved to; else by its path.
    pub fn call(&self, x: &Explainer<'_>, run: usize, cell: Cell) -> String {
        let symbol = |c: &Cell| self.session.cell_name(&self.steps, run, *c, self.at);
        let moves = crate::debug::tree::moves(x, cell);
        moves.iter().find_map(symbol).unwrap_or_else(|| self.path_of(run, cell))
    }

    /// The path of a cell with its index, batches of 1 left out: `encoder.0.ffn.act[3][1]`.
    pub fn path_of(&self, run: usize, cell: Cell) -> String {
        let path = &self.session.runs[run].program.node(cell.node).path;
        let index = self.index_of(run, cell);
        let index: Vec<String> = index.iter().map(|i| format!("[{i}]")).collect();
        format!("{path}{}", index.concat())
    }

    fn index_of(&self, run: usize, cell: Cell) -> Vec<usize> {
        Address::of_node(&self.session, run, cell.node).and_then(|t| t.part.index_of(cell.flat)).unwrap_or_default()
    }

    /// The command that goes to a cell.
    pub fn go_to_cell(&self, run: usize, cell: Cell) -> Action {
        let r = &self.session.runs[run];
        let shape = r.program.node(cell.node).shape;
        let path = &r.program.node(cell.node).path;
        Action::Go(Place {
            name: format!("{}:{path}", r.name),
            index: shape.unflat(cell.flat)[..shape.rank()].to_vec(),
        })
    }

    /// An expression that is one cell, wherever one is: `training:encoder.0.ffn.act[3,1]`.
    pub fn pinned(&self, run: usize, cell: Cell) -> String {
        let r = &self.session.runs[run];
        let index: Vec<String> = self.index_of(run, cell).iter().map(ToString::to_string).collect();
        let name = format!("{}:{}", r.name, r.program.node(cell.node).path);
        let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':'));
        let name = if plain && name.starts_with(char::is_alphabetic) { name } else { format!("\"{name}\"") };
        if index.is_empty() { name } else { format!("{name}[{}]", index.join(",")) }
    }
}
