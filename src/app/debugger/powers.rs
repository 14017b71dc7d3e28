//! The commands that answer with a list. One file a topic; this one only says which.

use super::{Debugger, Spot};
use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::{Arg, StepTarget};
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::ui::Ui;
use crate::text::{Lang, Msg};

impl Debugger {
    pub(super) fn power(&mut self, action: &Action, ui: &mut Ui, _effects: &mut Vec<Effect>) {
        match action {
            Action::Bookmarks => ui.answer(self.bookmark_list(ui.settings.lang)),
            _ => ui.say(Level::Info, Msg::new("tui.said.not_here")),
        }
    }

    fn bookmark_list(&self, lang: Lang) -> Answer {
        let spots = self.bookmarks.all();
        let title = if spots.is_empty() {
            "tui.said.no_bookmark"
        } else {
            "tui.bookmarks.title"
        };
        let mut answer = Answer::new(Msg::new(title));
        for spot in spots {
            let Some((label, name)) = self.name_of(spot, lang) else {
                continue;
            };
            let mut row = Row::new(
                Msg::new("tui.bookmarks.row")
                    .arg("step", &label)
                    .arg("title", name),
            );
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
            let program = &self.session.runs[step.run].program;
            step = crate::walkthrough::expand(program, &step)
                .into_iter()
                .nth(*at)?;
        }
        Some((step.label(), step.title.render(lang)))
    }
}
