//! Search over titles, symbols and paths, and over values: `/=0.5261`, `/=1..2`, `/> 0.9`.

use std::ops::{Bound, RangeBounds as _};

use crate::app::app::App;
use crate::app::args::{StepTarget, Text};
use crate::app::messages::Level;
use crate::app::navigator::{MAX_SCANNED, Navigator};
use crate::text::{Lang, Msg, NumberFormat, escape};
use crate::walkthrough::Step;

/// What is looked for.
#[derive(Clone, Debug, PartialEq)]
enum Wanted {
    /// Part of a title, symbol, path or section, lower case.
    Words(String),
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
            return Ok(Wanted::Words(text.to_lowercase()));
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

/// Whether a step has the text, and in which view.
fn text_in(nav: &Navigator, step: &Step, wanted: &str) -> (bool, Option<usize>) {
    let view = step.views.iter().position(|v| {
        v.symbol.to_lowercase().contains(wanted)
            || nav.session.runs[v.run].program.node(v.node).path.to_lowercase().contains(wanted)
    });
    let titled = step.section == wanted
        || step.phase.to_lowercase().contains(wanted)
        || [Lang::En, Lang::Zh].iter().any(|l| step.title.render(*l).to_lowercase().contains(wanted));
    (view.is_some() || titled, view)
}

/// A cell of a step that has the value; where one is in the step, the one after (or before) the cursor.
fn value_in(
    nav: &Navigator,
    at: usize,
    wanted: &Wanted,
    forward: bool,
    after_cursor: bool,
    number: NumberFormat,
) -> Option<(usize, Vec<usize>)> {
    let step = &nav.steps.list()[at];
    let mut hits: Vec<(usize, usize)> = Vec::new();
    for (v, view) in step.views.iter().enumerate() {
        let Some(value) = nav.trace(view.run).and_then(|t| t.get(view.node)) else {
            continue;
        };
        for (i, flat) in view.cells.flats().take(MAX_SCANNED).enumerate() {
            let x = value.get(flat);
            let fits = match wanted {
                Wanted::Printed(text) => number.format(x) == *text,
                Wanted::Range(from, to) => (*from, *to).contains(&x),
                Wanted::Words(_) => false,
            };
            if fits {
                hits.push((v, i));
            }
        }
    }
    let here = after_cursor.then(|| {
        let shape = step.views.get(nav.view_position()).map(crate::walkthrough::View::shape).unwrap_or_default();
        (nav.view_position(), if shape.rank() == nav.index().len() { shape.flat(nav.index()) } else { 0 })
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
