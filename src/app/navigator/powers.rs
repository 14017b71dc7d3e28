//! The commands that answer with a list. One file a topic; this one only says which.

use super::{Navigator, Spot};
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::{Arg, StepTarget, Text};
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::debug::breaks::Direction;
use crate::debug::nan::Bad;
use crate::debug::tree::Way;
use crate::text::{Lang, Msg};

/// Most places of an axis in its list.
const MAX_PLACES: usize = 256;

/// How expressions and breakpoints are written.
fn grammar() -> Answer {
    Answer {
        title: crate::debug::grammar::title(),
        rows: crate::debug::grammar::lines().into_iter().map(Row::new).collect(),
    }
}

impl Navigator {
    pub(super) fn power(&mut self, action: &Action, ui: &mut Ui, effects: &mut Vec<Effect>) {
        match action {
            Action::Edit(_)
            | Action::EditCell
            | Action::Ablate(_)
            | Action::Undo
            | Action::Redo
            | Action::SaveAs(_) => self.edit(action, ui, effects),
            Action::AxisPick(Text(text)) => self.axis_pick(text, ui),
            Action::SideBySide(what) => self.side_by_side(what, ui),
            Action::Train(what) => self.train(*what, ui),
            Action::Update(number) => self.update_command(number.0, ui),
            Action::Compare(Text(text)) => self.compare(text, ui, effects),
            Action::NextDiff => self.go_to_difference(true, ui),
            Action::PrevDiff => self.go_to_difference(false, ui),
            Action::Break(Text(text)) => self.set_break(text, false, ui),
            Action::TBreak(Text(text)) => self.set_break(text, true, ui),
            Action::Breaks => ui.answer(self.break_list(ui.settings.digits)),
            Action::Delete(Text(text)) => self.delete_break(text, ui),
            Action::Continue => self.run_on(Direction::Forward, ui),
            Action::ReverseContinue => self.run_on(Direction::Back, ui),
            Action::Watch(Text(text)) => self.set_watch(text, ui),
            Action::Unwatch(Text(text)) => self.unset_watch(text, ui),
            Action::Print(Text(text)) => self.print(text, ui),
            Action::Quiz(Text(text)) => self.quiz_command(text, ui, effects),
            Action::Answer(Text(text)) => self.answer_quiz(text, ui),
            Action::Tour => self.tour(ui),
            Action::Grammar => ui.answer(grammar()),
            Action::Why(Text(text)) => self.tree_of(text, Way::Up, ui),
            Action::WhereTo(Text(text)) => self.tree_of(text, Way::Down, ui),
            Action::FirstNan(Text(text)) => self.first_bad(text, Bad::Nan, ui),
            Action::FirstInf(Text(text)) => self.first_bad(text, Bad::Inf, ui),
            Action::Checks => self.checks(ui),
            Action::NextFailed | Action::PrevFailed => {
                self.go_to_failed(*action == Action::NextFailed, ui);
            }
            Action::Bookmarks => ui.answer(self.bookmark_list(ui.settings.lang)),
            _ => ui.say(Level::Info, Msg::new("tui.said.not_here")),
        }
    }

    /// Sets an axis that the table does not show (`head 3`), or lists the places of all of them.
    fn axis_pick(&mut self, text: &str, ui: &mut Ui) {
        let axes = self.turned_axes();
        if text.is_empty() {
            let title = if axes.is_empty() { "tui.axis.none" } else { "tui.axis.title" };
            let mut answer = Answer::new(Msg::new(title));
            for (name, n, at) in axes {
                for i in 0..n.min(MAX_PLACES) {
                    let line = format!("{name} {i}");
                    let mark = if i == at { " ←" } else { "" };
                    let row = Row::plain(format!("{line}{mark}"));
                    answer.push(row.action(Action::AxisPick(Text(line))));
                }
            }
            return ui.answer(answer);
        }
        let set = text.rsplit_once([' ', '=']).and_then(|(name, at)| {
            let at: usize = at.trim().parse().ok()?;
            self.set_axis(name.trim(), at).then_some(())
        });
        if set.is_none() {
            let names: Vec<String> = axes.iter().map(|(name, n, _)| format!("{name} 0..{n}")).collect();
            ui.say(
                Level::Error,
                Msg::new("tui.axis.wrong").arg("text", crate::text::escape(text)).arg("all", names.join(", ")),
            );
        }
    }

    fn bookmark_list(&self, lang: Lang) -> Answer {
        let spots = self.bookmarks.all();
        let title = if spots.is_empty() { "tui.said.no_bookmark" } else { "tui.bookmarks.title" };
        let mut answer = Answer::new(Msg::new(title));
        for spot in spots {
            let Some((label, name)) = self.name_of(spot, lang) else {
                continue;
            };
            let mut row = Row::new(Msg::new("tui.bookmarks.row").arg("step", &label).arg("title", name));
            if let Ok(target) = StepTarget::parse(&label) {
                row = row.action(Action::Step(target));
            }
            answer.push(row);
        }
        answer
    }

    /// Where one is, as a line: `23 · 5.10 · title`.
    pub fn place(&self, lang: Lang) -> Option<String> {
        let step = self.step()?;
        let mut parts = vec![step.label()];
        if !step.section.is_empty() {
            parts.push(step.section.clone());
        }
        parts.push(step.title.render(lang));
        Some(parts.join(" · "))
    }

    /// Number and title of the step at a place of the steps listed.
    fn name_of(&self, spot: &Spot, lang: Lang) -> Option<(String, String)> {
        let mut step = self.steps.list().get(spot.at)?.clone();
        for at in &spot.inner {
            step = self.session.expand(&step).into_iter().nth(*at)?;
        }
        Some((step.label(), step.title.render(lang)))
    }
}
