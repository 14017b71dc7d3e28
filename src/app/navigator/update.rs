//! What an action does to the debugger.

use super::Navigator;
use crate::app::action::Action;
use crate::app::args::Text;
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::ui::{Focus, Ui};
use crate::text::Msg;

/// Rows and columns a page moves by; the screen knows better and says so.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Rows of a table that are seen.
    pub rows: usize,
    /// Columns of a table that are seen.
    pub cols: usize,
    /// Rows of the step list that are seen.
    pub list: usize,
    /// The last line that a table of words can begin with.
    pub last_line: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self { rows: 8, cols: 8, list: 16, last_line: 0 }
    }
}

/// Longest sum in the derivation on the screen.
pub const MAX_TERMS: usize = 64;

/// How far a page, or half of one, goes where `seen` lines are seen.
fn paged(action: &Action, seen: usize) -> i64 {
    let lines = seen.max(1);
    let half = matches!(action, Action::HalfUp | Action::HalfDown);
    let by = if half { lines.div_ceil(2) } else { lines } as i64;
    if matches!(action, Action::PageUp | Action::HalfUp) { -by } else { by }
}

impl Navigator {
    /// Does what concerns the trace.
    pub fn update(&mut self, action: &Action, ui: &mut Ui, page: Page, effects: &mut Vec<Effect>) {
        if self.panel(action, ui, page, effects) {
            return;
        }
        let in_list = ui.focus == Focus::Steps;
        let number = ui.settings.digits;
        let mut say = |key: &'static str| ui.messages.push(Level::Info, Msg::new(key));
        match action {
            Action::Next => {
                if !self.go_by(1) {
                    say("tui.said.last");
                }
            }
            Action::Prev => {
                if !self.go_by(-1) {
                    say("tui.said.first");
                }
            }
            Action::StepIn => {
                if !self.step_in() {
                    say("tui.said.primitive");
                }
            }
            Action::StepOver => {
                self.go_by(1);
            }
            Action::StepOut => {
                if !self.step_out() {
                    say("tui.said.outermost");
                }
            }
            Action::NextPhase => {
                self.to_phase(true);
            }
            Action::PrevPhase => {
                self.to_phase(false);
            }
            Action::NextLayer => {
                self.to_layer(true);
            }
            Action::PrevLayer => {
                self.to_layer(false);
            }
            Action::First => self.to_end(false),
            Action::Last => self.to_end(true),
            Action::Step(target) => {
                if !self.to_step(target) {
                    ui.say(Level::Error, self.no_step(target));
                }
            }
            Action::Go(place) => match self.to_place(place) {
                Ok(None) => {}
                Ok(Some(others)) => ui.say(Level::Info, others),
                Err(why) => ui.say(Level::Error, why),
            },
            Action::Run(Text(name)) => {
                if name.is_empty() {
                    // The next one, around.
                    let n = self.session.runs.len();
                    let next = self.run.map_or(0, |r| r + 1);
                    self.choose_run((next < n).then_some(next));
                } else if let Some(run) = self.session.run_named(name) {
                    self.choose_run(Some(run));
                } else {
                    ui.say(Level::Error, Msg::new("tui.said.no_run").arg("name", crate::text::escape(name)));
                }
            }
            Action::Bookmark => {
                let here = self.spot();
                say(if self.bookmarks.toggle(here) { "tui.said.marked" } else { "tui.said.unmarked" });
            }
            Action::NextBookmark | Action::PrevBookmark => {
                match self.bookmarks.next(&self.spot(), *action == Action::NextBookmark).cloned() {
                    Some(spot) => {
                        self.leave();
                        self.restore(&spot);
                    }
                    None => say("tui.said.no_bookmark"),
                }
            }
            Action::Up | Action::Down if in_list => {
                self.go_by(if *action == Action::Up { -1 } else { 1 });
            }
            Action::Up => self.step_cursor(1, -1),
            Action::Down => self.step_cursor(1, 1),
            Action::Left => self.step_cursor(0, -1),
            Action::Right => self.step_cursor(0, 1),
            Action::RowStart => self.move_cursor(0, i64::MIN / 2),
            Action::RowEnd => self.move_cursor(0, i64::MAX / 2),
            Action::PageUp | Action::PageDown | Action::HalfUp | Action::HalfDown if in_list => {
                let by = paged(action, page.list);
                let last = self.steps.list().len().saturating_sub(1) as i64;
                let to = (self.position() as i64 + by).clamp(0, last) - self.position() as i64;
                self.go_by(to);
            }
            Action::PageUp | Action::PageDown | Action::HalfUp | Action::HalfDown => {
                self.move_cursor(1, paged(action, page.rows));
            }
            Action::PageLeft => self.move_cursor(0, -(page.cols.max(1) as i64)),
            Action::PageRight => self.move_cursor(0, page.cols.max(1) as i64),
            Action::Top if in_list => self.to_end(false),
            Action::Bottom if in_list => self.to_end(true),
            Action::Top => self.move_cursor(1, i64::MIN / 2),
            Action::Bottom => self.move_cursor(1, i64::MAX / 2),
            Action::NextTable => self.to_table(true),
            Action::PrevTable => self.to_table(false),
            Action::AxisNext => self.turn_axis(1),
            Action::AxisPrev => self.turn_axis(-1),
            Action::Toggle => self.toggle_fold(),
            Action::FoldAll => self.fold_all(true),
            Action::UnfoldAll => self.fold_all(false),
            Action::Follow => {
                let went = self.line(number, usize::MAX).is_some_and(|line| self.follow(&line));
                if !went {
                    say("tui.said.given");
                }
            }
            Action::NextTerm | Action::PrevTerm => {
                if let Some(line) = self.line(number, MAX_TERMS) {
                    self.turn_term(*action == Action::NextTerm, &line);
                }
            }
            Action::Back => {
                let here = self.spot();
                match self.jumps.back(here) {
                    Some(spot) => self.restore(&spot),
                    None => say("tui.said.no_way_back"),
                }
            }
            Action::Forward => {
                let here = self.spot();
                match self.jumps.forward(here) {
                    Some(spot) => self.restore(&spot),
                    None => say("tui.said.no_way_forward"),
                }
            }
            Action::Search(Text(text)) | Action::SearchBack(Text(text)) => {
                self.look_for(text, matches!(action, Action::Search(_)), ui);
            }
            Action::SearchNext | Action::SearchPrev => match ui.last_search.clone() {
                Some((text, forward)) => {
                    self.look_for(&text, forward == (*action == Action::SearchNext), ui);
                }
                None => say("tui.said.no_search"),
            },
            Action::CopyCell => {
                if let Some((run, cell)) = self.cell()
                    && let Some(value) = self.trace(run).and_then(|t| t.get(cell.node))
                {
                    let text = crate::text::number::exact(value.get(cell.flat));
                    effects.push(Effect::Copy { text, done: Msg::new("tui.sent.cell") });
                }
            }
            Action::CopyLine => {
                if let Some(line) = self.line(number, usize::MAX) {
                    effects.push(Effect::Copy { text: line.text(), done: Msg::new("tui.sent.line") });
                }
            }
            Action::CopyTable => {
                if let Some(text) = self.table_text() {
                    effects.push(Effect::Copy { text, done: Msg::new("tui.sent.table") });
                }
            }
            other => self.power(other, ui, effects),
        }
    }

    fn look_for(&mut self, text: &str, forward: bool, ui: &mut Ui) {
        let missing = || Msg::new("tui.said.not_found").arg("text", crate::text::escape(text));
        match self.search(text, forward, ui.settings.digits) {
            Ok(true) => {}
            Ok(false) => ui.say(Level::Error, missing()),
            Err(why) => ui.say(Level::Error, why),
        }
    }

    fn toggle_fold(&mut self) {
        let list = self.steps.list();
        let Some(phase) = list.get(self.at).map(|s| &s.phase) else {
            return;
        };
        let first = (0..=self.at).rev().take_while(|i| list[*i].phase == *phase).last().unwrap_or(self.at);
        self.fold(first);
    }

    fn fold_all(&mut self, fold: bool) {
        self.folded.clear();
        if fold {
            let list = self.steps.list();
            self.folded = (0..list.len()).filter(|&i| i == 0 || list[i].phase != list[i - 1].phase).collect();
        }
    }

    /// The table under the cursor, tab-separated, at full precision.
    fn table_text(&self) -> Option<String> {
        let view = self.view()?;
        let plane = super::Plane::of_view(view, &self.index);
        let value = self.trace(view.run)?.get(view.node)?;
        if plane.rows * plane.cols > super::facts::MAX_SCANNED {
            return None;
        }
        let row = |r: usize| -> String {
            let cells: Vec<String> =
                (0..plane.cols).map(|c| crate::text::number::exact(value.get(plane.flat(r, c)))).collect();
            cells.join("\t")
        };
        Some((0..plane.rows).map(row).collect::<Vec<_>>().join("\n"))
    }
}
