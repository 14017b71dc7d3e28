//! The `:` command line: completion and history. Parsing is [`Action::parse`], shared with the keymap.

use std::collections::VecDeque;

use super::action::{self, Action, SPECS};
use super::args::Completes;
use crate::text::{Lang, Msg};

/// Names that only the loaded scenario knows, offered where a command takes a place.
pub trait Names {
    /// Symbols and paths that begin with `prefix`, most useful first, at most `limit`.
    fn places(&self, prefix: &str, limit: usize) -> Vec<String>;
    /// Names of the runs.
    fn runs(&self) -> Vec<String> {
        Vec::new()
    }
    /// Where a search would lead: how many places, and the first ones as label and line.
    fn hits(&self, _text: &str, _lang: Lang, _limit: usize) -> Option<(usize, Vec<(String, String)>)> {
        None
    }
}

impl Names for () {
    fn places(&self, _: &str, _: usize) -> Vec<String> {
        Vec::new()
    }
}

/// One way to complete a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The whole line with it.
    pub line: String,
    /// What to show in the list.
    pub label: String,
    /// Catalogue key of a description; empty for none.
    pub about: &'static str,
}

/// Most completions that are offered.
const LIMIT: usize = 64;

/// Words of breakpoints and conditions.
const WORDS: [&str; 16] = [
    "if", "not", "once", "count", "op:", "phase:", "run:", "any nan", "any inf", "changed", "before", "it", "and",
    "or", "depth", "most",
];

/// Ways to complete the last word of an expression.
fn in_expression(spec: &action::Spec, argument: &str, names: &dyn Names) -> Vec<Completion> {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '\'' | '′' | '∂');
    let start =
        argument.char_indices().rev().take_while(|(_, c)| in_name(*c)).last().map_or(argument.len(), |(i, _)| i);
    let (before, word) = argument.split_at(start);
    let plain = |name: &String| name.chars().all(in_name) && !name.starts_with(|c: char| c.is_ascii_digit());
    let quoted = |name: String| {
        if plain(&name) { name } else { format!("\"{name}\"") }
    };
    let functions = crate::debug::expr::FUNCTIONS.iter().map(|f| f.0);
    let words = functions.chain(WORDS).filter(|w| !word.is_empty() && w.starts_with(word));
    let places = names.places(word, LIMIT).into_iter().map(quoted);
    places
        .chain(words.map(str::to_owned))
        .filter(|w| w != word)
        .take(LIMIT)
        .map(|label| Completion { line: format!("{} {before}{label}", spec.name), label, about: "" })
        .collect()
}

/// Ways to complete `line`, with `names` from the scenario.
pub fn complete(line: &str, names: &dyn Names) -> Vec<Completion> {
    let line = line.trim_start();
    let Some((name, argument)) = line.split_once(char::is_whitespace) else {
        return SPECS
            .iter()
            .filter(|s| s.name.starts_with(line))
            .chain(
                // Then those that hold the word elsewhere: `layer` finds `next-layer`.
                SPECS.iter().filter(|s| !s.name.starts_with(line) && s.name.contains(line)),
            )
            .take(LIMIT)
            .map(|s| Completion {
                line: if s.usage.is_empty() { s.name.to_owned() } else { format!("{} ", s.name) },
                label: s.name.to_owned(),
                about: s.key,
            })
            .collect();
    };
    let Some(spec) = action::spec(name) else {
        return Vec::new();
    };
    let argument = argument.trim_start();
    if spec.completes == Completes::Expression {
        return in_expression(spec, argument, names);
    }
    let mut words = (spec.words)();
    if spec.completes == Completes::Runs {
        words.extend(names.runs());
    }
    // Between words one blank is as good as several.
    let mut typed = argument.split_whitespace().collect::<Vec<_>>().join(" ");
    if argument.ends_with(char::is_whitespace) && !typed.is_empty() {
        typed.push(' ');
    }
    words.retain(|w| w.starts_with(&typed));
    let begun = if words.is_empty() { argument } else { &typed };
    if spec.completes == Completes::Places {
        words.extend(names.places(argument, LIMIT));
    }
    // `:set ` offers settings before values.
    let stop =
        |w: &str| w.match_indices(' ').map(|(at, _)| at).find(|at| *at >= begun.len()).map_or(w.len(), |at| at + 1);
    let mut seen: Vec<Completion> = Vec::new();
    for word in &words {
        let word = &word[..stop(word)];
        if word != argument && seen.last().is_none_or(|c| c.label != word) {
            seen.push(Completion { line: format!("{} {word}", spec.name), label: word.to_owned(), about: "" });
        }
    }
    seen.truncate(LIMIT);
    seen
}

/// Lines typed before, newest last.
#[derive(Clone, Debug, Default)]
pub struct History {
    lines: VecDeque<String>,
    /// Position while paging, counted from the newest; 0 is the line being typed.
    at: usize,
    draft: String,
}

/// Most lines that are kept.
const KEPT: usize = 200;

impl History {
    /// Adds a line; one equal to the newest is not added again.
    pub fn push(&mut self, line: &str) {
        self.at = 0;
        if line.trim().is_empty() || self.lines.back().is_some_and(|l| l == line) {
            return;
        }
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_owned());
    }

    /// The line before (or after) the one shown; `current` is kept as the draft to come back to.
    pub fn page(&mut self, back: bool, current: &str) -> Option<&str> {
        if self.at == 0 {
            current.clone_into(&mut self.draft);
        }
        self.at = if back {
            if self.at == self.lines.len() {
                return None;
            }
            self.at + 1
        } else {
            self.at.checked_sub(1)?
        };
        Some(match self.at {
            0 => &self.draft,
            n => &self.lines[self.lines.len() - n],
        })
    }

    /// Forgets the position while paging.
    pub fn rewind(&mut self) {
        self.at = 0;
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

/// Reads a file of commands, one a line; blank lines and `#` comments are skipped.
///
/// # Errors
/// The number of the first bad line (from 1) and what is wrong with it.
pub fn script(text: &str, lang: Lang) -> Result<Vec<Action>, (usize, Msg)> {
    text.lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l.trim().trim_start_matches(':')))
        .filter(|(_, l)| !l.is_empty() && !l.starts_with('#'))
        .map(|(i, l)| Action::parse(l).map_err(|slip| (i, slip.message(l, lang))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;
    impl Names for Two {
        fn places(&self, prefix: &str, _: usize) -> Vec<String> {
            ["Q1", "Q2", "K1"].iter().filter(|n| n.starts_with(prefix)).map(|n| (*n).to_owned()).collect()
        }
    }

    fn labels(line: &str) -> Vec<String> {
        complete(line, &Two).into_iter().map(|c| c.label).collect()
    }

    #[test]
    fn completes_names_words_and_places() {
        assert_eq!(labels("exp"), ["export"]);
        assert_eq!(labels("layer"), ["layer", "next-layer", "prev-layer"]);
        assert_eq!(labels("go Q"), ["Q1", "Q2"]);
        assert_eq!(labels("view he"), ["heads"]);
        assert_eq!(labels("set l"), ["lang ", "log "]);
        assert_eq!(labels("set lang "), ["lang en", "lang zh"]);
        assert_eq!(labels("set lang z"), ["lang zh"]);
        assert_eq!(labels("set  lang  "), ["lang en", "lang zh"]);
        // Of an expression the last word.
        let lines = |line: &str| -> Vec<String> { complete(line, &Two).into_iter().map(|c| c.line).collect() };
        assert_eq!(lines("print max(abs(Q1 - K"), ["print max(abs(Q1 - K1"]);
        assert_eq!(labels("break Q1 if ze"), ["zeros"]);
        assert_eq!(lines("eval ent"), ["print entropy"]);
        assert_eq!(labels("why "), ["Q1", "Q2", "K1"]);
        assert!(labels("quit now").is_empty());
        assert!(labels("zzz").is_empty());
        assert_eq!(complete("", &()).len(), LIMIT.min(SPECS.len()));
    }

    #[test]
    fn every_whole_completion_of_a_word_parses() {
        for spec in SPECS {
            for word in (spec.words)() {
                let line = format!("{} {word}", spec.name);
                assert!(Action::parse(&line).is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn history_pages_back_and_returns_to_the_draft() {
        let mut h = History::default();
        for l in ["a", "b", "b", " "] {
            h.push(l);
        }
        assert_eq!(h.page(true, "dra"), Some("b"));
        assert_eq!(h.page(true, "b"), Some("a"));
        assert_eq!(h.page(true, "a"), None);
        assert_eq!(h.page(false, "a"), Some("b"));
        assert_eq!(h.page(false, "b"), Some("dra"));
        assert_eq!(h.page(false, "dra"), None);
    }

    #[test]
    fn scripts_name_the_bad_line() {
        let ok = script("# to the softmax\n:step 23\n\nfollow\n", Lang::En).unwrap();
        assert_eq!(ok.len(), 2);
        assert_eq!(script("next\nnxet", Lang::En).unwrap_err().0, 2);
    }
}
