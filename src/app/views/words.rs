//! Tables of words, as several views show them: made once, scrolled line by line.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::app::action::Action;
use crate::app::navigator::Navigator;
use crate::app::of_session::OfSession;
use crate::app::page::Page;
use crate::session::Table;
use crate::text::{Lang, Msg};

/// A table with what is said above it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderedTable {
    /// Said above; empty for nothing.
    pub head: String,
    /// The table.
    pub table: Table,
    /// Lines of numbers that go with the rows, by name: drawn where there is room.
    pub lines: Vec<(String, Vec<f64>)>,
    /// Staircases, each under its title: drawn where there is room.
    pub stairs: Vec<(String, Vec<Stair>)>,
}

/// A step of a staircase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stair {
    /// Which call or position.
    pub label: String,
    /// The tokens that are read.
    pub tokens: Vec<String>,
    /// How many of them the step before read already.
    pub old: usize,
    /// What must come next, and whether it is what was predicted.
    pub next: Vec<(String, bool)>,
    /// What is predicted.
    pub note: String,
}

/// A table, or why there is none.
pub type TableResult = Result<Arc<RenderedTable>, Msg>;

/// Tokens that a position sees, as far as they are written out.
pub const MAX_SEEN: usize = 12;

/// Tokens in a row; of many, the last ones.
pub fn last_tokens(tokens: &[String]) -> String {
    match tokens.len().checked_sub(MAX_SEEN) {
        None | Some(0) => tokens.join(" "),
        Some(left) => format!("… {} ({})", tokens[left..].join(" "), tokens.len()),
    }
}

/// Makes the table of a run.
pub type Make = fn(&Navigator, usize, Lang) -> Result<RenderedTable, Msg>;

/// The tables of a view, and the line it is scrolled to.
#[derive(Debug, Default)]
pub struct Words {
    made: RefCell<OfSession<HashMap<(usize, Lang), TableResult>>>,
    /// The visit of a step that was scrolled in, and the line.
    scrolled: (u64, usize),
}

impl Words {
    /// The table of a run, made when it is first needed.
    ///
    /// # Errors
    /// What the scenario lacks for it, or why a run cannot run.
    pub fn table(&self, nav: &Navigator, run: usize, lang: Lang, make: Make) -> TableResult {
        if let Some(made) = self.made.borrow().get(&nav.session).and_then(|m| m.get(&(run, lang))) {
            return made.clone();
        }
        let made = make(nav, run, lang).map(Arc::new);
        self.made.borrow_mut().get_mut(&nav.session).insert((run, lang), made.clone());
        made
    }

    /// The first line shown; arriving is at the top.
    pub fn line(&self, nav: &Navigator) -> usize {
        if self.scrolled.0 == nav.arrivals() { self.scrolled.1 } else { 0 }
    }

    /// Scrolls; false where the action is another one.
    pub fn scroll(&mut self, action: &Action, nav: &Navigator, page: Page) -> bool {
        let height = page.rows.max(2) - 1;
        let now = self.line(nav).min(page.last_line);
        let to = match action {
            Action::Up => now.saturating_sub(1),
            Action::Down => now + 1,
            Action::PageUp => now.saturating_sub(height),
            Action::PageDown => now + height,
            Action::HalfUp => now.saturating_sub(height.div_ceil(2)),
            Action::HalfDown => now + height.div_ceil(2),
            Action::Top | Action::RowStart => 0,
            Action::Bottom | Action::RowEnd => page.last_line,
            _ => return false,
        };
        self.scrolled = (nav.arrivals(), to.min(page.last_line));
        true
    }
}
