//! What is wrong with an expression, and where.

use std::ops::Range;

use crate::text::{Lang, Msg, escape, width};

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It cannot be read.
    Syntax,
    /// A name that is nowhere.
    Name,
    /// A name that has no value yet at this step.
    NotYet,
    /// Shapes or kinds that do not fit, an index outside, too large.
    Value,
}

/// Something wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// What kind.
    pub fault: Fault,
    /// Which part of the text, in characters from 0.
    pub at: Range<usize>,
    /// What is wrong.
    pub msg: Msg,
    /// How to fix it.
    pub help: Option<Msg>,
}

impl ExprError {
    /// With the help that the catalogue has for `msg`.
    pub fn new(fault: Fault, at: Range<usize>, msg: Msg) -> Self {
        Self { fault, at, help: msg.help(), msg }
    }

    /// With another way to fix it.
    #[must_use]
    pub fn help(mut self, help: Msg) -> Self {
        self.help = Some(help);
        self
    }

    /// The same in a longer text that has `by` characters before this one.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> Self {
        self.at = self.at.start + by..self.at.end + by;
        self
    }

    /// First column that is wrong, in characters from 1.
    pub fn column(&self) -> usize {
        self.at.start + 1
    }

    /// The text, escaped, and under it a line with carets at the wrong part; wide characters count as two columns.
    pub fn marked(&self, text: &str) -> (String, String) {
        let shown: Vec<String> = text.chars().map(|c| escape(&c.to_string()).into_owned()).collect();
        let columns = |r: Range<usize>| -> usize {
            let r = r.start.min(shown.len())..r.end.min(shown.len());
            shown[r].iter().map(|s| width::width(s)).sum()
        };
        let before = columns(0..self.at.start);
        let carets = columns(self.at.clone()).max(1);
        (shown.concat(), format!("{}{}", " ".repeat(before), "^".repeat(carets)))
    }

    /// All of it in lines: what, the text, the carets, the help.
    pub fn lines(&self, text: &str, lang: Lang) -> Vec<String> {
        let (shown, carets) = self.marked(text);
        let what = Msg::new("expr.at_column").arg("column", self.column()).arg("what", self.msg.render(lang));
        let mut lines = vec![what.render(lang), format!("  {shown}"), format!("  {carets}")];
        if let Some(help) = &self.help {
            lines.push(help.render(lang));
        }
        lines
    }
}

/// English, for logs.
impl std::fmt::Display for ExprError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.column(), self.msg)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}
