//! Shapes and cost of every op of the run, or of its steps; by the order of computation or by time.

mod model;

use crate::app::action::Action;
use crate::app::args::Place;
use crate::app::view::View;
use crate::app::views::{Context, Hint, ViewState};

pub use model::{Costs, Row};

/// Whether the ops are summed up by step, and which row is chosen.
#[derive(Debug, Default)]
pub struct State {
    /// A row for each step.
    pub folded: bool,
    /// The visit and the row that was chosen in it; elsewhere it is the op looked at.
    at: Option<(u64, usize)>,
}

impl State {
    /// The chosen row.
    pub fn at(&self, costs: &Costs, arrivals: u64) -> usize {
        let chosen = self.at.filter(|(visit, _)| *visit == arrivals).map(|(_, row)| row);
        chosen.unwrap_or(costs.here).min(costs.rows.len().saturating_sub(1))
    }
}

impl ViewState for State {
    const TAKES_KEYS: bool = true;
    const OF_STEP: bool = true;

    fn hints() -> Vec<Hint> {
        vec![
            (vec![Action::Up, Action::Down], "tui.hint.choose"),
            (vec![Action::SortBars], "tui.hint.by_time"),
            (vec![Action::NextTable], "tui.hint.by_step"),
            (vec![Action::Follow], "tui.hint.go"),
            (vec![Action::Next], "tui.hint.step"),
            (vec![Action::Help], "tui.hint.help"),
        ]
    }

    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        if matches!(action, Action::NextTable | Action::PrevTable | Action::Toggle) {
            self.folded = !self.folded;
            self.at = None;
            return true;
        }
        let Some(costs) = Costs::of(cx.nav, self.folded, cx.ui.settings.sorted) else { return false };
        let (at, page) = (self.at(&costs, cx.nav.arrivals()), cx.page.rows.max(1));
        let to = match action {
            Action::Up => at.saturating_sub(1),
            Action::Down => at + 1,
            Action::PageUp => at.saturating_sub(page),
            Action::PageDown => at + page,
            Action::HalfUp => at.saturating_sub(page.div_ceil(2)),
            Action::HalfDown => at + page.div_ceil(2),
            Action::Top | Action::RowStart => 0,
            Action::Bottom | Action::RowEnd => usize::MAX,
            Action::Follow => {
                if let Some(row) = costs.rows.get(at) {
                    let run = &cx.nav.session.runs[costs.run];
                    let name = format!("{}:{}", run.name, run.program.node(row.node).path);
                    cx.nav.leave();
                    if cx.nav.to_place(&Place { name, index: Vec::new() }).is_ok() {
                        cx.ui.view = View::Step;
                    }
                }
                return true;
            }
            _ => return false,
        };
        self.at = Some((cx.nav.arrivals(), to.min(costs.rows.len().saturating_sub(1))));
        true
    }
}
