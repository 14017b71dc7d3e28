//! Search over titles, symbols and paths, and over values: `/=0.5261`, `/=1..2`, `/> 0.9`.

use std::ops::{Bound, RangeBounds as _};

use super::Navigator;
use crate::text::{Lang, Msg, NumberFormat, escape};
use crate::walkthrough::Step;

/// What is looked for.
#[derive(Clone, Debug, PartialEq)]
enum Wanted {
    /// Part of a title, symbol, path or section, lower case.
    Text(String),
    /// A number as it is printed.
    Printed(String),
    /// A number in a range.
    Range(Bound<f64>, Bound<f64>),
}

impl Wanted {
    /// Reads `=0.5261`, `=1..2`, `> 0.9`; everything else is text.
    ///
    /// # Errors
    /// What is no value after `=`.
    fn parse(text: &str) -> Result<Self, Msg> {
        let text = text.trim();
        if let Some(side) = side(text) {
            return Ok(side);
        }
        let Some(number) = text.strip_prefix('=') else {
            return Ok(Wanted::Text(text.to_lowercase()));
        };
        let number = number.trim();
        let wrong = || Msg::new("tui.error.search").arg("text", escape(number));
        if let Some((from, to)) = number.split_once("..") {
            let bound = |t: &str| match t.trim() {
                "" => Ok(Bound::Unbounded),
                t => t.parse().map(Bound::Included).map_err(|_| wrong()),
            };
            return Ok(Wanted::Range(bound(from)?, bound(to)?));
        }
        // As numbers are printed, in all formats.
        let bits = number.strip_prefix("0x");
        let printed = matches!(number, "∞" | "-∞")
            || number.parse::<f64>().is_ok()
            || bits.is_some_and(|b| u64::from_str_radix(b, 16).is_ok());
        printed.then(|| Wanted::Printed(number.to_owned())).ok_or_else(wrong)
    }
}

/// `> 0.9`, `<= -1`.
fn side(text: &str) -> Option<Wanted> {
    let number = |sign: &str| text.strip_prefix(sign)?.trim().parse::<f64>().ok();
    let below = |bound| Wanted::Range(Bound::Unbounded, bound);
    let above = |bound| Wanted::Range(bound, Bound::Unbounded);
    let read = |signs: [&str; 2]| signs.into_iter().find_map(number);
    read([">=", "≥"])
        .map(|x| above(Bound::Included(x)))
        .or_else(|| read(["<=", "≤"]).map(|x| below(Bound::Included(x))))
        .or_else(|| number(">").map(|x| above(Bound::Excluded(x))))
        .or_else(|| number("<").map(|x| below(Bound::Excluded(x))))
}

impl Navigator {
    /// To the next (or previous) hit of `text`; false where there is none. Value searches put the cursor on the cell.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub fn search(&mut self, text: &str, forward: bool, number: NumberFormat) -> Result<bool, Msg> {
        let wanted = Wanted::parse(text)?;
        Ok(self.go_to_hit(&wanted, forward, number))
    }

    fn go_to_hit(&mut self, wanted: &Wanted, forward: bool, number: NumberFormat) -> bool {
        let n = self.steps.list().len();
        if n == 0 {
            return false;
        }
        if !matches!(wanted, Wanted::Text(_))
            && let Some((view, index)) = self.value_in(self.at, wanted, forward, true, number)
        {
            self.select(view, &index);
            return true;
        }
        for by in 1..=n {
            let at = if forward { (self.at + by) % n } else { (self.at + n - by) % n };
            let steps = std::sync::Arc::clone(&self.steps);
            let step = &steps.list()[at];
            if let Wanted::Text(t) = wanted {
                let (found, view) = self.text_in(step, t);
                if !found {
                    continue;
                }
                self.leave();
                self.go_to(at);
                if let Some(view) = view {
                    self.select(view, &[]);
                }
                return true;
            }
            if let Some((view, index)) = self.value_in(at, wanted, forward, false, number) {
                self.leave();
                self.go_to(at);
                self.select(view, &index);
                return true;
            }
        }
        false
    }

    fn go_to(&mut self, at: usize) {
        let number = self.steps.list()[at].number.clone();
        let trail = self.jumps.clone();
        self.to_step(&crate::app::args::StepTarget::Number(number));
        // The search noted the place already.
        self.jumps = trail;
    }

    /// Whether a step has the text, and in which view.
    fn text_in(&self, step: &Step, wanted: &str) -> (bool, Option<usize>) {
        let view = step.views.iter().position(|v| {
            v.symbol.to_lowercase().contains(wanted)
                || self.session.runs[v.run].program.node(v.node).path.to_lowercase().contains(wanted)
        });
        let titled = step.section == wanted
            || step.phase.to_lowercase().contains(wanted)
            || [Lang::En, Lang::Zh].iter().any(|l| step.title.render(*l).to_lowercase().contains(wanted));
        (view.is_some() || titled, view)
    }

    /// A cell of a step that has the value; where one is in the step, the one after (or before) the cursor.
    fn value_in(
        &self,
        at: usize,
        wanted: &Wanted,
        forward: bool,
        after_cursor: bool,
        number: NumberFormat,
    ) -> Option<(usize, Vec<usize>)> {
        let step = &self.steps.list()[at];
        let mut hits: Vec<(usize, usize)> = Vec::new();
        for (v, view) in step.views.iter().enumerate() {
            let Some(value) = self.trace(view.run).and_then(|t| t.get(view.node)) else {
                continue;
            };
            for (i, flat) in view.cells.flats().take(super::facts::MAX_SCANNED).enumerate() {
                let x = value.get(flat);
                let fits = match wanted {
                    Wanted::Printed(text) => number.format(x) == *text,
                    Wanted::Range(from, to) => (*from, *to).contains(&x),
                    Wanted::Text(_) => false,
                };
                if fits {
                    hits.push((v, i));
                }
            }
        }
        let here = after_cursor.then(|| {
            let shape = step.views.get(self.view).map(crate::walkthrough::View::shape).unwrap_or_default();
            (self.view, if shape.rank() == self.index.len() { shape.flat(&self.index) } else { 0 })
        });
        let hit = match (here, forward) {
            (Some(here), true) => hits.into_iter().find(|h| *h > here),
            (Some(here), false) => hits.into_iter().rev().find(|h| *h < here),
            (None, true) => hits.into_iter().next(),
            (None, false) => hits.into_iter().next_back(),
        }?;
        let shape = step.views[hit.0].shape();
        Some((hit.0, shape.unflat(hit.1)[..shape.rank()].to_vec()))
    }
}
