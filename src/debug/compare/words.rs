//! A comparison in words: where a difference is, and what may be its cause.

use super::report::{Checked, Difference, Place};
use crate::text::{Lang, Msg, NumberFormat, escape};

/// Paths and names in a line.
const MAX_NAMES: usize = 8;

/// The first difference, the last match, what lies between: one line each.
pub fn verdict(d: &Difference, lang: Lang) -> Vec<Msg> {
    let mut lines = vec![Msg::new("compare.first").arg("place", place(&d.place, lang))];
    lines.push(match &d.last_match {
        Some(last) => Msg::new("compare.last").arg("place", place(last, lang)),
        None if d.between.is_empty() && d.given.is_empty() => Msg::new("compare.is_given"),
        None => Msg::new("compare.no_last"),
    });
    if !d.between.is_empty() {
        let paths = list(d.between.iter().map(|p| p.path.as_str()), lang);
        let steps = steps(&d.between);
        lines.push(if steps.is_empty() {
            Msg::new("compare.between").arg("places", paths)
        } else {
            let msg = Msg::new("compare.between_steps").arg("steps", steps);
            msg.arg("places", paths)
        });
    }
    if !d.given.is_empty() {
        let paths = list(d.given.iter().map(|p| p.path.as_str()), lang);
        lines.push(Msg::new("compare.given").arg("places", paths));
    }
    lines
}

fn place(place: &Place, lang: Lang) -> String {
    match &place.step {
        Some(step) => Msg::new("compare.place").arg("step", &step.label).arg("path", escape(&place.path)).render(lang),
        None => escape(&place.path).into_owned(),
    }
}

/// Numbers of the steps of these places: `42–43, 47`.
fn steps(places: &[Place]) -> String {
    let mut all: Vec<(usize, &str)> =
        (places.iter()).filter_map(|p| p.step.as_ref()).map(|s| (s.position, s.label.as_str())).collect();
    all.sort_unstable();
    all.dedup();
    let mut parts: Vec<String> = Vec::new();
    let mut i = 0;
    while i < all.len() {
        let mut end = i;
        while end + 1 < all.len() && all[end + 1].0 == all[end].0 + 1 {
            end += 1;
        }
        parts.push(if end == i { all[i].1.to_owned() } else { format!("{}–{}", all[i].1, all[end].1) });
        i = end + 1;
    }
    parts.join(", ")
}

/// Names with commas, the first ones where there are many.
pub fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>, lang: Lang) -> String {
    let left = names.len().saturating_sub(MAX_NAMES);
    let reported: Vec<String> = names.take(MAX_NAMES).map(|n| escape(n).into_owned()).collect();
    let reported = reported.join(", ");
    if left == 0 {
        return reported;
    }
    Msg::new("compare.list_more").arg("names", reported).arg("count", left).render(lang)
}

/// The cell of a node that differs most, or both shapes where they do not fit.
pub fn worst(c: &Checked, number: NumberFormat) -> Msg {
    let against = c.against.as_ref();
    match against.and_then(|a| a.cells.first()) {
        Some(cell) => Msg::new("compare.cell")
            .arg("index", format!("{:?}", cell.index))
            .arg("ours", number.format(cell.ours))
            .arg("theirs", number.format(cell.theirs)),
        None => Msg::new("compare.shape")
            .arg("ours", format!("{:?}", c.shape))
            .arg("theirs", against.map_or_else(String::new, |a| format!("{:?}", a.shape))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::StepAt;
    use super::*;
    use crate::program::NodeId;

    #[test]
    fn neighbouring_steps_are_ranges() {
        let at = |position: usize, label: &str| Place {
            node: NodeId(0),
            path: label.to_owned(),
            step: Some(StepAt { run: 0, position, label: label.to_owned() }),
        };
        let places = [at(6, "47"), at(1, "42"), at(2, "43"), at(2, "43"), at(7, "48")];
        assert_eq!(steps(&places), "42–43, 47–48");
        assert_eq!(steps(&places[..1]), "47");
        assert_eq!(steps(&[]), "");
        let names: Vec<String> = (0..10).map(|i| format!("n{i}")).collect();
        let reported = list(names.iter().map(String::as_str), Lang::En);
        assert_eq!(reported, "n0, n1, n2, n3, n4, n5, n6, n7 and 2 more");
    }
}
