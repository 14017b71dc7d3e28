//! What is wrong with a file, where, and how to mend it.

use std::fmt::Write as _;

use crate::text::{Lang, Msg, escape, tr, width};

/// Something wrong at a place of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path in the data, such as `model.heads` or `weights.values."embed.weight"`.
    pub at: String,
    /// What is wrong.
    pub msg: Msg,
    /// How to mend it.
    pub help: Option<Msg>,
    /// Text that stands near the place in the source, to find its line.
    pub anchor: Option<String>,
}

impl Problem {
    /// A problem at `at`.
    pub fn new(at: impl Into<String>, msg: Msg) -> Self {
        Self {
            at: at.into(),
            msg,
            help: None,
            anchor: None,
        }
    }

    /// With a way to mend it.
    #[must_use]
    pub fn help(mut self, help: Msg) -> Self {
        self.help = Some(help);
        self
    }

    /// With text that stands near the place in the source.
    #[must_use]
    pub fn near(mut self, anchor: impl Into<String>) -> Self {
        self.anchor = Some(anchor.into());
        self
    }
}

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, as the person named it.
    pub file: String,
    /// Line and column, from 1; the column counts characters.
    pub place: Option<(usize, usize)>,
    /// Path in the data; empty where the file as a whole is meant.
    pub at: String,
    /// What is wrong.
    pub msg: Msg,
    /// How to mend it.
    pub help: Option<Msg>,
    /// The line of the source.
    pub source: Option<String>,
}

impl Diagnostic {
    /// Something wrong with the file as a whole.
    pub fn whole(file: &str, msg: Msg, help: Option<Msg>) -> Self {
        Self {
            file: file.to_owned(),
            place: None,
            at: String::new(),
            msg,
            help,
            source: None,
        }
    }

    /// A problem, located in the source text where its anchor stands.
    pub fn located(file: &str, text: &str, problem: Problem) -> Self {
        let place = problem
            .anchor
            .as_deref()
            .and_then(|a| find(text, a))
            .or_else(|| find_key(text, &problem.at));
        Self::placed(file, text, place, problem)
    }

    /// A problem at a known line and column.
    pub fn placed(file: &str, text: &str, place: Option<(usize, usize)>, problem: Problem) -> Self {
        let source = place
            .and_then(|(line, _)| text.lines().nth(line.checked_sub(1)?))
            .map(str::to_owned);
        Self {
            file: file.to_owned(),
            place,
            at: problem.at,
            msg: problem.msg,
            help: problem.help,
            source,
        }
    }

    /// The whole text, with the line of the source and a caret under the place.
    pub fn render(&self, lang: Lang) -> String {
        let mut out = format!(
            "{}: {}",
            tr(lang, "diagnostic.error"),
            self.msg.render(lang)
        );
        let _ = write!(out, "\n  --> {}", escape(&self.file));
        if let Some((line, column)) = self.place {
            let _ = write!(out, ":{line}:{column}");
        }
        if !self.at.is_empty() {
            let _ = write!(
                out,
                "\n   {} {}",
                tr(lang, "diagnostic.at"),
                escape(&self.at)
            );
        }
        if let (Some((line, column)), Some(source)) = (self.place, &self.source) {
            // A long line is shown around the place only.
            let chars: Vec<char> = source.chars().collect();
            let at = (column - 1).min(chars.len());
            let from = at.saturating_sub(60);
            let before: String = chars[from..at].iter().collect();
            let after: String = chars[at..(at + 60).min(chars.len())].iter().collect();
            let (before, after) = (escape(&before).into_owned(), escape(&after).into_owned());
            let number = line.to_string();
            let gap = " ".repeat(number.len());
            let _ = write!(
                out,
                "\n {gap} |\n {number} | {before}{after}\n {gap} | {}^",
                " ".repeat(width(&before))
            );
        }
        if let Some(help) = &self.help {
            let _ = write!(
                out,
                "\n   {} {}",
                tr(lang, "diagnostic.help"),
                help.render(lang)
            );
        }
        out
    }
}

/// Line and column of `needle`, both from 1.
fn find(text: &str, needle: &str) -> Option<(usize, usize)> {
    let at = text.find(needle)?;
    let line = text[..at].matches('\n').count() + 1;
    let column = text[at - text[..at].rfind('\n').map_or(at, |n| at - n - 1)..at]
        .chars()
        .count()
        + 1;
    Some((line, column))
}

/// Line and column of the last field of a path such as `model.attention.window`, looked for after those before it.
fn find_key(text: &str, at: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    let mut found = None;
    for part in at
        .split(['.', '[', ']', '"'])
        .filter(|p| !p.is_empty() && p.parse::<usize>().is_err())
    {
        let key = format!("{part}:");
        let mut search = from;
        let hit = loop {
            let Some(i) = text[search..].find(&key).map(|i| i + search) else {
                break None;
            };
            let own = text[..i]
                .chars()
                .next_back()
                .is_none_or(|c| !c.is_alphanumeric() && c != '_');
            if own {
                break Some(i);
            }
            search = i + key.len();
        };
        if let Some(i) = hit {
            found = Some(i);
            from = i;
        }
    }
    let i = found?;
    let line = text[..i].matches('\n').count() + 1;
    let start = text[..i].rfind('\n').map_or(0, |n| n + 1);
    Some((line, text[start..i].chars().count() + 1))
}

/// The name nearest to `name` among `known`, if it is near enough to be a slip.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let lower = name.to_lowercase();
    known
        .into_iter()
        .map(|k| (distance(&lower, &k.to_lowercase()), k))
        .filter(|(d, k)| *d <= 1 + k.chars().count().max(name.chars().count()) / 3)
        .min()
        .map(|(_, k)| k)
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (corner + usize::from(x != *y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_place_also_after_chinese() {
        let text = "(\n  词: \"我爱\", heads: 3,\n)";
        let d = Diagnostic::located(
            "a.ron",
            text,
            Problem::new("model.heads", Msg::new("diagnostic.error")),
        );
        assert_eq!(d.place, Some((2, 12)));
        let shown = d.render(Lang::En);
        let lines: Vec<&str> = shown.lines().collect();
        let source = lines.iter().find(|l| l.contains("词")).expect("the line");
        let caret = lines
            .iter()
            .find(|l| l.trim_end().ends_with('^'))
            .expect("a caret");
        assert_eq!(
            width(&caret[..caret.find('^').expect("a caret")]),
            width(&source[..source.find("heads").expect("there")])
        );
    }

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        assert_eq!(nearest("d_modle", ["d_model", "heads"]), Some("d_model"));
        assert_eq!(nearest("Realu", ["Relu", "Gelu"]), Some("Relu"));
        assert_eq!(nearest("banana", ["d_model", "heads"]), None);
    }
}
