//! What a search looks for, and where a step has it.

use std::ops::{Bound, RangeBounds as _};

use super::navigator::{MAX_SCANNED, Navigator};
use crate::text::{Lang, Msg, NumberFormat, escape};
use crate::walkthrough::Step;

/// What is looked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
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
    pub fn parse(text: &str) -> Result<Self, Msg> {
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

/// Whether a step has the text, and in which view.
pub fn text_in(nav: &Navigator, step: &Step, wanted: &str) -> (bool, Option<usize>) {
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
pub fn value_in(
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

/// Cells that are looked through while one types.
const MAX_TYPED: usize = 1 << 18;

/// The steps that have what is typed, from the one after the current on: how many, and the first ones as label and as
/// what would find them. `None` while it is no search yet, or where too many numbers would have to be read.
pub fn hits(nav: &Navigator, text: &str, lang: Lang, most: usize) -> Option<(usize, Vec<(String, String)>)> {
    let wanted = Wanted::parse(text).ok().filter(|_| !text.trim().is_empty())?;
    let list = nav.steps.list();
    let number = match &wanted {
        // As the screen prints them is not known here.
        Wanted::Printed(_) => return None,
        Wanted::Range(..) => {
            let cells = |s: &Step| s.views.iter().map(|v| v.shape().len().min(MAX_SCANNED)).sum::<usize>();
            (list.iter().map(cells).sum::<usize>() <= MAX_TYPED).then(NumberFormat::default)?
        }
        Wanted::Words(_) => NumberFormat::default(),
    };
    let (mut count, mut first) = (0, Vec::new());
    for by in 1..=list.len() {
        let at = (nav.position() + by) % list.len();
        let step = &list[at];
        let (found, view) = if let Wanted::Words(words) = &wanted {
            text_in(nav, step, words)
        } else {
            let hit = value_in(nav, at, &wanted, true, false, number);
            (hit.is_some(), hit.map(|(view, _)| view))
        };
        if !found {
            continue;
        }
        count += 1;
        if first.len() < most {
            let title = step.title.render(lang);
            let symbol = view.map_or_else(String::new, |v| format!(" · {}", step.views[v].symbol));
            let line = if matches!(wanted, Wanted::Words(_)) { title.clone() } else { text.to_owned() };
            first.push((format!("{:>4}  {title}{symbol}", step.label()), line));
        }
    }
    Some((count, first))
}
