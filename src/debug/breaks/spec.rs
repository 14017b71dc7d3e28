//! A breakpoint as it is written: `[once] [WHERE…] [not WHERE]… [if CONDITION] [count N]`.

use super::place::{Term, Word, words};
use crate::debug::condition::{Condition, Met};
use crate::debug::eval_context::EvalContext;
use crate::debug::expr::{ExprError, Fault, NameFault};
use crate::session::locate::Address;
use crate::text::{Msg, escape};
use crate::walkthrough::Step;

/// Whether a breakpoint is met.
pub(super) enum Verdict {
    No,
    /// It is at its place, and has no condition.
    Place,
    /// Its condition is met.
    Met(Box<Met>),
}

/// What a breakpoint stops for.
#[derive(Clone, Debug)]
pub struct Spec {
    text: String,
    places: Vec<Term>,
    without: Vec<Term>,
    condition: Option<Condition>,
    /// Characters before the condition in the text.
    condition_at: usize,
    /// It stops from this hit on.
    pub(super) count: u32,
    /// It goes away once it has stopped.
    pub(super) once: bool,
}

impl Spec {
    /// Reads a breakpoint; what it names must be there. A condition alone needs no `if`: `any nan`, `max > 10`.
    ///
    /// # Errors
    /// Where it cannot be read, or fits nothing.
    pub fn parse(text: &str, here: &EvalContext<'_>) -> Result<Self, ExprError> {
        Self::read(text, here).or_else(|error| Self::read(&format!("if {}", text.trim()), here).map_err(|_| error))
    }

    fn read(text: &str, here: &EvalContext<'_>) -> Result<Self, ExprError> {
        let mut all = words(text);
        let (mut count, mut once) = (1, false);
        // `count N` and `once` may be behind a condition, which has its own words.
        loop {
            let n = all.len();
            if n > 0 && all[n - 1].text == "once" {
                once = true;
                all.truncate(n - 1);
            } else if n > 1 && all[n - 2].text == "count" {
                count = counted(&all[n - 1])?;
                all.truncate(n - 2);
            } else {
                break;
            }
        }
        let mut spec = Self {
            text: text.trim().to_owned(),
            places: Vec::new(),
            without: Vec::new(),
            condition: None,
            condition_at: 0,
            count,
            once,
        };
        let end = all.last().map_or(0, |w| w.at.end);
        let mut words = all.iter();
        while let Some(word) = words.next() {
            let missing = |key| {
                let at = word.at.end..word.at.end + 1;
                ExprError::new(Fault::Syntax, at, Msg::new(key))
            };
            match word.text.as_str() {
                "once" => spec.once = true,
                "count" => {
                    let next = words.next().ok_or_else(|| missing("break.no_count"))?;
                    spec.count = counted(next)?;
                }
                "not" => {
                    let next = words.next().ok_or_else(|| missing("break.no_place"))?;
                    spec.without.push(Term::parse(next, here)?);
                }
                "if" => {
                    let next = words.next().ok_or_else(|| missing("break.no_condition"))?;
                    spec.condition_at = next.at.start;
                    let rest: String = text.chars().skip(next.at.start).take(end - next.at.start).collect();
                    spec.condition = Some(condition(&rest, next.at.start, here)?);
                    break;
                }
                _ => spec.places.push(Term::parse(word, here)?),
            }
        }
        let everywhere = spec.places.is_empty() && spec.condition.is_none();
        if everywhere && spec.without.is_empty() {
            let at = 0..text.chars().count().max(1);
            return Err(ExprError::new(Fault::Syntax, at, Msg::new("break.empty")));
        }
        Ok(spec)
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it goes away once it has stopped.
    pub fn is_once(&self) -> bool {
        self.once
    }

    /// The same, gone once it has stopped.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    fn takes(&self, here: &EvalContext<'_>, step: &Step, target: &Address) -> bool {
        let fits = |t: &Term| t.fits_step(step) && t.fits(here, target);
        self.places.iter().all(fits) && !self.without.iter().any(fits)
    }

    /// Whether it says that it is about this step, whatever its condition.
    pub fn is_at(&self, here: &EvalContext<'_>) -> bool {
        let Some(step) = here.steps.list().get(here.at) else {
            return false;
        };
        let mut views = step.views.iter().map(Address::of_view);
        !self.places.is_empty() && (views.any(|t| self.takes(here, step, &t)) || self.is_bare(step))
    }

    /// Whether it is at a step that has no tensors, by its number, phase or run.
    fn is_bare(&self, step: &Step) -> bool {
        let fits = |t: &Term| !t.is_of_tensors() && t.fits_step(step);
        step.views.is_empty() && self.places.iter().all(fits) && !self.without.iter().any(fits)
    }

    /// Whether it is met by a whole step.
    pub(super) fn at_step(&self, here: &EvalContext<'_>) -> Result<Verdict, ExprError> {
        let Some(step) = here.steps.list().get(here.at) else {
            return Ok(Verdict::No);
        };
        let views = step.views.iter().map(Address::of_view);
        let targets: Vec<Address> = views.filter(|t| self.takes(here, step, t)).collect();
        if targets.is_empty() && !self.is_bare(step) {
            return Ok(Verdict::No);
        }
        self.met(here, &targets)
    }

    /// Whether it is met by a tensor that no step shows; only where it says which tensors it is about.
    pub(super) fn at_hidden(&self, here: &EvalContext<'_>, target: &Address) -> Result<Verdict, ExprError> {
        let step = here.steps.list().get(here.at);
        let named = self.places.iter().any(Term::is_of_tensors);
        if !named || !step.is_some_and(|step| self.takes(here, step, target)) {
            return Ok(Verdict::No);
        }
        self.met(here, std::slice::from_ref(target))
    }

    fn met(&self, here: &EvalContext<'_>, targets: &[Address]) -> Result<Verdict, ExprError> {
        let Some(condition) = &self.condition else {
            return Ok(Verdict::Place);
        };
        match condition.met(here, targets) {
            Ok(None) => Ok(Verdict::No),
            Ok(Some(met)) => Ok(Verdict::Met(Box::new(met))),
            Err(e) => Err(e.shifted(self.condition_at)),
        }
    }
}

fn counted(word: &Word) -> Result<u32, ExprError> {
    word.text.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
        let msg = Msg::new("break.bad_count").arg("text", escape(&word.text));
        ExprError::new(Fault::Syntax, word.at.clone(), msg)
    })
}

/// A condition whose names are all somewhere.
fn condition(text: &str, at: usize, here: &EvalContext<'_>) -> Result<Condition, ExprError> {
    let condition = Condition::parse(text).map_err(|e| e.shifted(at))?;
    names_exist(condition.expr(), here).map_err(|e| e.shifted(at))?;
    Ok(condition)
}

/// Whether everything that an expression names is at some step.
///
/// # Errors
/// The first name that is not.
pub(super) fn names_exist(expr: &crate::debug::expr::Expr, here: &EvalContext<'_>) -> Result<(), ExprError> {
    let anywhen = EvalContext { past: false, ..*here };
    for (name, at) in expr.names() {
        let in_a_call = || {
            here.session.runs.iter().any(|r| {
                let name = crate::program::Name::parse(name);
                r.program.named(&name.in_call(0)).is_some()
            })
        };
        if let Err(NameFault::Unknown(near)) = anywhen.find(name)
            && !in_a_call()
        {
            let msg = Msg::new("expr.unknown_name").arg("name", escape(name));
            let e = ExprError::new(Fault::Name, at, msg);
            return Err(match near {
                Some(near) => e.help(Msg::new("diagnostic.did_you_mean").arg("name", escape(&near))),
                None => e,
            });
        }
    }
    Ok(())
}
