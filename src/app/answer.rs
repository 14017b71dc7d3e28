//! What a command found: a list that one can go on from. The screen shows it as a list to choose from; a script
//! gets the same lines.

use super::action::Action;
use super::args::{Place, StepTarget};
use super::messages::Level;
use super::overlay::{Item, Overlay};
use crate::report::{About, Line};
use crate::text::{Lang, Msg};

/// One line of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// How much it matters.
    pub level: Level,
    /// What it says. Untrusted parts are escaped where it is drawn or printed.
    pub text: Msg,
    /// What choosing it does, such as going to the place it speaks of.
    pub action: Option<Action>,
    /// What Delete does to it.
    pub delete: Option<Action>,
    /// The share that it has of the whole, with its sign: a bar on the screen.
    pub bar: Option<f64>,
}

impl Row {
    /// A line that only informs.
    pub fn new(text: Msg) -> Self {
        Self { level: Level::Info, text, action: None, delete: None, bar: None }
    }

    /// A line of words that are the same in every language: symbols, paths, figures.
    pub fn plain(text: impl Into<String>) -> Self {
        Line::plain(text).into()
    }

    /// With another level.
    #[must_use]
    pub fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// With a bar.
    #[must_use]
    pub fn bar(self, share: Option<f64>) -> Self {
        Self { bar: share, ..self }
    }

    /// With what choosing it does.
    #[must_use]
    pub fn action(self, action: Action) -> Self {
        Self { action: Some(action), ..self }
    }

    /// With what Delete does to it.
    #[must_use]
    pub fn delete(self, action: Action) -> Self {
        Self { delete: Some(action), ..self }
    }
}

impl From<Line> for Row {
    /// Choosing it goes to what it is about.
    fn from(line: Line) -> Self {
        let go = |about: About| match about {
            About::Node { run: Some(run), path, index } => Action::Go(Place { name: format!("{run}:{path}"), index }),
            About::Node { run: None, path, index } => Action::Go(Place { name: path, index }),
            About::Step(number) => Action::Step(StepTarget::Number(number)),
        };
        Self { action: line.about.map(go), ..Self::new(line.text).level(line.level) }
    }
}

/// What a command found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was looked for.
    pub title: Msg,
    /// What was found; none says so in the title.
    pub rows: Vec<Row>,
}

impl Answer {
    /// An answer without lines yet.
    pub fn new(title: Msg) -> Self {
        Self { title, rows: Vec::new() }
    }

    /// Of the lines of a report.
    pub fn of(title: Msg, lines: impl IntoIterator<Item = Line>) -> Self {
        Self { title, rows: lines.into_iter().map(Row::from).collect() }
    }

    /// With one more line.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// As a list over the screen.
    pub fn overlay(&self, lang: Lang) -> Overlay {
        let item = |row: &Row| Item {
            label: row.text.render(lang),
            level: row.level,
            action: row.action.clone(),
            delete: row.delete.clone(),
            bar: row.bar,
        };
        Overlay::List { title: self.title.clone(), items: self.rows.iter().map(item).collect(), selected: 0 }
    }
}
