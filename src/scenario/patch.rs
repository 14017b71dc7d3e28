//! A changed scenario in the text of its file: what did not change stays as it was written, comments included.
//!
//! What changed is found between two texts that [`write`](super::write) wrote, so that the same data are the same text;
//! each change is then made where the file has that place.

use std::fmt::Write as _;
use std::ops::Range;

use super::place::{self, Parts, Written};
use super::schema::Scenario;
use super::{syntax, write};

/// One change of a value.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// The value at this path is this text, as it is indented there.
    Set(String, String),
    /// What is at this path is not there any more.
    Remove(String),
}

/// The text of `new`, made from `text`, the scenario that was changed. Where the changes cannot be made in it, all of
/// `new` is written anew.
pub fn patched(text: &str, new: &Scenario) -> String {
    let Ok(old) = syntax::read("", text) else { return write(new) };
    // Without a vocabulary there is no output head, whether the file says so or not.
    let mut new = new.clone();
    if old.vocabulary.is_none() {
        new.model.output.none = old.model.output.none;
        for (run, was) in new.runs.iter_mut().zip(&old.runs) {
            if let (Some(model), Some(was)) = (&mut run.with_mut().model, &was.with().model) {
                model.output.none = was.output.none;
            }
        }
    }
    let (before, after) = (write(&old), write(&new));
    let mut changes = Vec::new();
    differences((&before, place::whole(&before)), (&after, place::whole(&after)), "", &mut changes);
    // What is read back decides. Choices called `None` are written `r#None` where they could be taken for a field that
    // is not given: the plain word is tried first.
    let right = |out: &String| syntax::read("", out).is_ok_and(|back| write(&back) == after);
    let plain = |value: &str| value.replace("r#None", "None");
    let short = |style: &dyn Fn(&str) -> String| changed(text, &changes, None, style);
    let long = |style: &dyn Fn(&str) -> String| changed(text, &changes, Some(&after), style);
    let tries: [&dyn Fn() -> String; 3] = [&|| short(&plain), &|| long(&plain), &|| long(&str::to_owned)];
    tries.iter().map(|text| text()).find(right).unwrap_or(after)
}

/// The text with the changes, each value written as `style` has it. A struct that the text lacks is put in as it is in
/// `after`, or, without that, with the changed fields alone.
fn changed(text: &str, changes: &[Change], after: Option<&str>, style: &dyn Fn(&str) -> String) -> String {
    let mut out = text.to_owned();
    for change in changes {
        if let Change::Set(path, value) = change
            && let Some(next) = set(&out, path, &style(value), after)
        {
            out = next;
        }
    }
    // Elements are counted as they were: what goes away does so last, from the end.
    for change in changes.iter().rev() {
        if let Change::Remove(path) = change {
            out = remove(&out, path);
        }
    }
    out
}

fn differences(old: (&str, Range<usize>), new: (&str, Range<usize>), path: &str, out: &mut Vec<Change>) {
    let ((old_text, old_at), (new_text, new_at)) = (old, new);
    let (was, is) = (&old_text[old_at.clone()], &new_text[new_at.clone()]);
    if was == is {
        return;
    }
    let whole = |out: &mut Vec<Change>| out.push(Change::Set(path.to_owned(), indented(new_text, &new_at)));
    let (Some(a), Some(b)) = (place::parts(old_text, old_at), place::parts(new_text, new_at.clone())) else {
        return whole(out);
    };
    if a.head != b.head || a.open != b.open {
        return whole(out);
    }
    match (a.is_keyed(), b.is_keyed()) {
        (true, true) => {
            for (key, at) in &b.children {
                let key = key.as_deref().unwrap_or_default();
                let path = below(path, key);
                match a.get(key) {
                    Some(was) => differences((old_text, was), (new_text, at.clone()), &path, out),
                    None => out.push(Change::Set(path, indented(new_text, at))),
                }
            }
            for (key, _) in &a.children {
                let key = key.as_deref().unwrap_or_default();
                if b.get(key).is_none() {
                    out.push(Change::Remove(below(path, key)));
                }
            }
        }
        (false, false) if a.children.len() == b.children.len() => {
            for (i, ((_, was), (_, is))) in a.children.iter().zip(&b.children).enumerate() {
                // The one value of a variant is no step of a path.
                let path = if a.is_variant() { path.to_owned() } else { format!("{path}[{i}]") };
                differences((old_text, was.clone()), (new_text, is.clone()), &path, out);
            }
        }
        (false, false) if a.open == b'[' => match left_out((old_text, &a), (new_text, &b)) {
            Some(gone) => out.extend(gone.into_iter().map(|i| Change::Remove(format!("{path}[{i}]")))),
            None => whole(out),
        },
        _ => whole(out),
    }
}

/// The elements of the first list that the second lacks, where it is the first without them.
fn left_out(old: (&str, &Parts<'_>), new: (&str, &Parts<'_>)) -> Option<Vec<usize>> {
    let mut kept = new.1.children.iter().peekable();
    let mut gone = Vec::new();
    for (i, (_, at)) in old.1.children.iter().enumerate() {
        let same = kept.peek().is_some_and(|(_, k)| new.0[k.clone()] == old.0[at.clone()]);
        if same {
            kept.next();
        } else {
            gone.push(i);
        }
    }
    kept.peek().is_none().then_some(gone)
}

fn below(path: &str, key: &str) -> String {
    let mut segments = place::segments(path);
    segments.push(place::Segment::Key(key.to_owned()));
    place::path(&segments)
}

/// A value of a text; its further lines begin as far from the left as its first line does.
fn indented(text: &str, at: &Range<usize>) -> String {
    let margin = margin(text, at.start);
    let mut out = String::new();
    for (i, line) in text[at.clone()].lines().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += if i == 0 { line } else { line.strip_prefix(margin).unwrap_or(line) };
    }
    out
}

/// The white space at the beginning of the line of byte `at`.
fn margin(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The text with a value at `path`. Where the text lacks the struct that it belongs to, see [`changed`].
fn set(text: &str, path: &str, value: &str, after: Option<&str>) -> Option<String> {
    let with_margin = |value: &str, margin: &str| value.replace('\n', &format!("\n{margin}"));
    match place::value(text, path) {
        Some(Written::There(at)) => {
            let value = with_margin(value, margin(text, at.start));
            Some(format!("{}{value}{}", &text[..at.start], &text[at.end..]))
        }
        Some(Written::Absent(at)) => {
            let Some(place::Segment::Key(name)) = place::segments(path).pop() else { return None };
            let rest = &text[at..];
            let own_lines = rest.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
            let mut out = text[..at].to_owned();
            if own_lines {
                let margin = format!("{}    ", margin(text, at));
                let _ = write!(out, "\n{margin}{name}: {},", with_margin(value, &margin));
            } else {
                let more = if rest.trim_start().starts_with(')') { "" } else { ", " };
                let _ = write!(out, "{name}: {}{more}", with_margin(value, margin(text, at)));
            }
            Some(out + rest)
        }
        None => {
            let mut segments = place::segments(path);
            let own = segments.pop()?;
            let parent = place::path(&segments);
            if let Some(whole) = after {
                let Some(Written::There(at)) = place::value(whole, &parent) else { return None };
                return set(text, &parent, &indented(whole, &at), after);
            }
            let place::Segment::Key(name) = own else { return None };
            set(text, &parent, &format!("({name}: {value})"), after)
        }
    }
}

/// The text without the field or element at `path`, if it has it.
fn remove(text: &str, path: &str) -> String {
    let (Some((start, true)), Some(Written::There(value))) = (place::find(text, path), place::value(text, path)) else {
        return text.to_owned();
    };
    let rest = &text[value.end..];
    let comma = rest.trim_start().starts_with(',');
    let end = if comma { value.end + rest.find(',').unwrap_or(0) + 1 } else { value.end };
    let line = text[..start].rfind('\n').map_or(0, |n| n + 1);
    let alone = text[line..start].trim().is_empty();
    let after = text[end..].find('\n').map_or(text.len(), |n| end + n + 1);
    if alone && text[end..after].trim().is_empty() {
        return format!("{}{}", &text[..line], &text[after..]);
    }
    format!("{}{}", &text[..start], text[end..].trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"// A scenario with comments.
(
    name: "commented", // its name
    vocabulary: Words(["a", "b"]),
    /* the model */
    model: (
        d_model: 2, // narrow
        heads: 1, d_ff: 1,
        norm: (kind: None),
        encoder: (layers: [(has_ffn: false)]),
    ),
    weights: (values: {
        // Rows are words.
        "embed.weight": OutIn([
            [1, 0], // a
            [0, 1], // b
        ]),
    }, init: [(with: Xavier)]),
    source: (text: ["a b"]),
    runs: [Encode()],
    expected: [
        // of the first word
        (path: "embed.source.out", values: [1, 0, 0, 1]),
        // of the layer
        (path: "encoder.0.residual1", values: [1, 0, 0, 1]),
    ],
)
"#;

    fn saved(change: impl FnOnce(&mut Scenario)) -> String {
        let mut new = syntax::read("", TEXT).expect("a scenario");
        change(&mut new);
        let text = patched(TEXT, &new);
        assert_eq!(write(&syntax::read("", &text).expect("reads back")), write(&new), "{text}");
        text
    }

    #[test]
    fn nothing_changed_is_the_same_text() {
        assert_eq!(saved(|_| ()), TEXT);
    }

    #[test]
    fn a_number_a_setting_and_an_edit_change_their_own_place_only() {
        let text = saved(|s| {
            let embed = s.weights.values.get_mut("embed.weight").expect("given");
            let crate::scenario::schema::WeightValue::OutIn(rows) = embed else { panic!("rows") };
            rows[1][0] = 0.5;
            s.model.norm.eps = 1e-6;
            s.model.attention.window = Some(2);
            s.edits = vec![crate::scenario::edit::Edit::Head {
                attention: "encoder.0.self_attn".to_owned(),
                head: 0,
                run: None,
            }];
        });
        for comment in
            ["// A scenario", "// its name", "/* the model */", "// narrow", "// Rows are", "// a\n", "// b\n"]
        {
            assert!(text.contains(comment), "{comment}: {text}");
        }
        assert!(text.contains("[0.5, 1], // b") && text.contains("eps: 1e-6") && text.contains("window: 2"), "{text}");
        assert!(text.lines().count() < TEXT.lines().count() + 12, "{text}");
    }

    #[test]
    fn what_goes_away_takes_its_line() {
        let text = saved(|s| {
            s.expected.remove(0);
        });
        assert!(text.contains("// of the layer") && !text.contains("embed.source.out"), "{text}");
    }
}
