//! What is wrong with a file, where, and how to fix it.

use std::fmt::Write as _;

use super::place;
use crate::text::{Lang, Msg, escape, tr, width};

/// Something wrong at a place of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path in the data, such as `model.heads` or `weights.values."embed.weight"`.
    pub at: String,
    /// What is wrong.
    pub msg: Msg,
    /// How to fix it.
    pub help: Option<Msg>,
    /// Text that stands near the place in the source, to find its line.
    pub anchor: Option<String>,
}

impl Problem {
    /// A problem at `at`, with the help that the catalogue has for it.
    pub fn new(at: impl Into<String>, msg: Msg) -> Self {
        Self { at: at.into(), help: msg.help(), msg, anchor: None }
    }

    /// With another way to fix it.
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
    /// How to fix it.
    pub help: Option<Msg>,
    /// The line of the source.
    pub source: Option<String>,
}

impl Diagnostic {
    /// Something wrong with the file as a whole.
    pub fn whole(file: &str, msg: Msg, help: Option<Msg>) -> Self {
        Self { file: file.to_owned(), place: None, at: String::new(), msg, help, source: None }
    }

    /// A problem, located in the source text: where its path leads, else where its anchor stands, else as near as the
    /// path goes.
    pub fn located(file: &str, text: &str, problem: Problem) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let found = place::find(text, &problem.at);
        let byte = match (found, &problem.anchor) {
            (Some((byte, true)), _) => Some(byte),
            (near, Some(anchor)) => text.find(anchor).or(near.map(|n| n.0)),
            (near, None) => near.map(|n| n.0),
        };
        let place = byte.map(|b| place::line_column(text, b));
        Self::placed(file, text, place, problem)
    }

    /// A problem at a known line and column.
    pub fn placed(file: &str, text: &str, place: Option<(usize, usize)>, problem: Problem) -> Self {
        let source = place.and_then(|(line, _)| text.lines().nth(line.checked_sub(1)?)).map(str::to_owned);
        Self { file: file.to_owned(), place, at: problem.at, msg: problem.msg, help: problem.help, source }
    }

    /// The whole text, with the line of the source and a caret under the place.
    pub fn render(&self, lang: Lang) -> String {
        let mut out = format!("{}: {}", tr(lang, "diagnostic.error"), self.msg.render(lang));
        let _ = write!(out, "\n  --> {}", escape(&self.file));
        if let Some((line, column)) = self.place {
            let _ = write!(out, ":{line}:{column}");
        }
        if !self.at.is_empty() {
            let _ = write!(out, "\n   {} {}", tr(lang, "diagnostic.at"), escape(&self.at));
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
            let _ = write!(out, "\n {gap} |\n {number} | {before}{after}\n {gap} | {}^", " ".repeat(width(&before)));
        }
        if let Some(help) = &self.help {
            let _ = write!(out, "\n   {} {}", tr(lang, "diagnostic.help"), help.render(lang));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The caret's cell, and the cell at which `needle` begins in the line of the source.
    fn cells(shown: &str, needle: &str) -> (usize, usize) {
        let lines: Vec<&str> = shown.lines().collect();
        let is_caret = |l: &&str| l.contains(" | ") && l.trim_end().ends_with('^');
        let at = lines.iter().position(is_caret).expect("a caret");
        let (source, caret) = (lines[at - 1], lines[at]);
        let cell = |line: &str, needle: &str| {
            let at = line.find(needle).unwrap_or_else(|| panic!("no {needle}: {line}"));
            width(&line[..at])
        };
        (cell(caret, "^"), cell(source, needle))
    }

    #[test]
    fn the_caret_stands_under_the_place_also_after_chinese() {
        let text = "(\r\n  model: (词: \"我爱\", heads: 3),\r\n)";
        let d = Diagnostic::located("a.ron", text, Problem::new("model.heads", Msg::new("diagnostic.error")));
        assert_eq!(d.place, Some((2, 20)));
        let (caret, heads) = cells(&d.render(Lang::En), "heads");
        assert_eq!(caret, heads);
        let far = format!("(model: ({}heads: 3))", "水: 1, ".repeat(60));
        let problem = Problem::new("model.heads", Msg::new("diagnostic.error"));
        let (caret, heads) = cells(&Diagnostic::located("a.ron", &far, problem).render(Lang::Zh), "heads");
        assert_eq!(caret, heads);
    }

    #[test]
    fn a_caret_may_stand_past_the_end_of_a_line_but_not_of_the_file() {
        let placed = |place| {
            let problem = Problem::new("", Msg::new("diagnostic.error"));
            Diagnostic::placed("a.ron", "(a: 水\n", Some(place), problem).render(Lang::En)
        };
        let (caret, water) = cells(&placed((1, 6)), "水");
        assert_eq!(caret, water + 2);
        assert!(!placed((7, 1)).contains('^'));
    }

    #[test]
    fn an_anchor_helps_where_the_path_is_not_written() {
        let problem = Problem::new("weights", Msg::new("diagnostic.error")).near("\"w\"");
        let d = Diagnostic::located("a.ron", "(a: 1,\n names: {\"w\": 2})", problem);
        assert_eq!(d.place, Some((2, 10)));
    }
}
