//! Conditions: `any nan`, `max > 10`, `row_sum != 1 ± 1e-6`, `changed`, or any comparison of the expression language.
//!
//! A condition that names no tensor, or says `it`, is about each tensor it is applied to: those of a step. It holds where it
//! does for any cell.

use super::eval_context::EvalContext;
use super::expr::{Expr, ExprError, Fault, Holds};
use crate::session::locate::Address;
use crate::tensor::DType;
use crate::text::{Msg, NumberFormat};
use crate::trace::derive::Cell;

/// A condition on recorded values.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    expr: Expr,
}

/// How a condition was met.
#[derive(Clone, Debug, PartialEq)]
pub struct Met {
    /// The tensor it was met by; `None` for a condition that names its tensors.
    pub target: Option<Address>,
    /// The first cell it was met by: run and cell.
    pub cell: Option<(usize, Cell)>,
    /// What was measured, as written: `row_sum`.
    pub what: String,
    /// Where in what was measured: `[0, 3]`; empty for one number.
    pub index: Vec<usize>,
    /// Its value there.
    pub value: Option<f64>,
    /// For how many cells the condition holds.
    pub count: usize,
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// Where it cannot be read, or is no comparison.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        let expr = Expr::parse(text)?;
        if !expr.is_truth() {
            let at = 0..text.chars().count();
            return Err(ExprError::new(Fault::Syntax, at, Msg::new("expr.not_truth")));
        }
        Ok(Self { expr })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        self.expr.text()
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// How it is met at a step by one of `targets`, the first that meets it; where it names its tensors, by those. Values
    /// that are not computed yet meet nothing.
    ///
    /// # Errors
    /// Where it cannot be decided: shapes that do not fit.
    pub fn met(&self, here: &EvalContext<'_>, targets: &[Address]) -> Result<Option<Met>, ExprError> {
        if !self.expr.is_about_it() {
            return self.met_by(here, None);
        }
        for target in targets {
            // Ids and masks are no numbers of the model.
            let program = &here.session.runs[target.run].program;
            if program.node(target.node).dtype != DType::Float {
                continue;
            }
            match self.met_by(here, Some(target)) {
                Ok(None) => {}
                // `it[5] > 0` says nothing of a shorter tensor.
                Err(e) if e.fault == Fault::Value && targets.len() > 1 => {}
                met => return met,
            }
        }
        Ok(None)
    }

    fn met_by(&self, here: &EvalContext<'_>, target: Option<&Address>) -> Result<Option<Met>, ExprError> {
        let here = EvalContext { it: target, ..*here };
        match self.expr.holds(&here) {
            Ok(None) => Ok(None),
            Ok(Some(holds)) => Ok(Some(self.report(&here, target, &holds))),
            Err(e) if e.fault == Fault::NotYet => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn report(&self, here: &EvalContext<'_>, target: Option<&Address>, holds: &Holds) -> Met {
        // What is compared may be a number (the largest) or as large as the comparison (every row's sum).
        let measured = self.expr.measured();
        let array = measured.as_ref().and_then(|e| e.eval(here).ok());
        let same = array.as_ref().filter(|a| a.shape().same_dims(&holds.shape));
        let rank = holds.shape.rank();
        let index = holds.shape.unflat(holds.first)[..rank].to_vec();
        let value = match (same, &array) {
            (Some(a), _) => Some(a.get(holds.first)),
            (None, Some(a)) => a.number(),
            (None, None) => None,
        };
        let witness = || measured.as_ref()?.witness(here);
        let cell = same.and_then(|a| a.cell(holds.first)).or_else(witness);
        // A fact of a row is reported at its first cell.
        let row = || {
            let target = target?;
            let shape = target.part.shape();
            if shape.rank() < rank || shape.dims()[..rank] != *holds.shape.dims() {
                return None;
            }
            let mut at = index.clone();
            at.resize(shape.rank(), 0);
            let flat = target.part.flat(&at);
            let node = target.node;
            Some((target.run, Cell { node, flat }))
        };
        Met {
            target: target.cloned(),
            cell: cell.or_else(row),
            what: measured.map_or_else(|| self.text().to_owned(), |e| e.text().to_owned()),
            value,
            count: holds.count,
            index,
        }
    }
}

impl Met {
    /// What met it, with its value: `A1: row_sum = 0.98 at [2]`.
    pub fn message(&self, number: NumberFormat) -> Msg {
        let name = self.target.as_ref().map_or("", |t| t.name.as_str());
        let value = self.value.map_or_else(String::new, |x| number.format(x));
        let place: Vec<String> = self.index.iter().map(|i| format!("[{i}]")).collect();
        let what = match (name.is_empty(), self.value) {
            (true, Some(_)) => format!("{}{} = {value}", self.what, place.concat()),
            (false, Some(_)) => format!("{name}: {}{} = {value}", self.what, place.concat()),
            (true, None) => self.what.clone(),
            (false, None) => format!("{name}: {}{}", self.what, place.concat()),
        };
        let msg =
            if self.count > 1 { Msg::new("break.met_by").arg("count", self.count) } else { Msg::new("break.met") };
        msg.arg("what", crate::text::escape(&what))
    }
}
