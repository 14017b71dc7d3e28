//! The logit lens: what the output head would say after each stage of the residual stream.

mod model;

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::args::Place;
use crate::app::views::{Context, Hint, ViewState};
use crate::text::number::exact;
use crate::text::{Msg, escape};

pub use model::{Lens, Stage};

/// The cell looked at: stage and position; `None` for the last ones.
#[derive(Debug, Default)]
pub struct State {
    at: Option<(usize, usize)>,
}

impl State {
    /// Stage and position of the cursor.
    pub fn at(&self, lens: &Lens) -> (usize, usize) {
        let last = (lens.stages.len().saturating_sub(1), lens.tokens.saturating_sub(1));
        self.at.map_or(last, |(stage, token)| (stage.min(last.0), token.min(last.1)))
    }
}

impl ViewState for State {
    const TAKES_KEYS: bool = true;

    fn hints() -> Vec<Hint> {
        vec![
            (vec![Action::Up, Action::Down], "tui.hint.stage"),
            (vec![Action::Left, Action::Right], "tui.hint.position"),
            (vec![Action::Follow], "tui.hint.exact"),
            (vec![Action::Next], "tui.hint.step"),
            (vec![Action::Help], "tui.hint.help"),
        ]
    }

    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        let Some(lens) = Lens::of(cx.nav) else { return false };
        let (stage, token) = self.at(&lens);
        let (rows, cols) = (cx.page.rows.max(1), cx.page.cols.max(1));
        let to = match action {
            Action::Up => (stage.saturating_sub(1), token),
            Action::Down => (stage + 1, token),
            Action::Left => (stage, token.saturating_sub(1)),
            Action::Right => (stage, token + 1),
            Action::PageUp => (stage.saturating_sub(rows), token),
            Action::PageDown => (stage + rows, token),
            Action::HalfUp => (stage.saturating_sub(rows.div_ceil(2)), token),
            Action::HalfDown => (stage + rows.div_ceil(2), token),
            Action::PageLeft => (stage, token.saturating_sub(cols)),
            Action::PageRight => (stage, token + cols),
            Action::Top => (0, token),
            Action::Bottom => (usize::MAX, token),
            Action::RowStart => (stage, 0),
            Action::RowEnd => (stage, usize::MAX),
            Action::Follow => {
                if let Some(answer) = numbers(&lens, cx, (stage, token)) {
                    cx.ui.answer(answer);
                }
                return true;
            }
            _ => return false,
        };
        self.at = Some(to);
        self.at = Some(self.at(&lens));
        true
    }
}

/// The words of a cell with all digits, and the way to the tensor.
fn numbers(lens: &Lens, cx: &Context<'_>, (stage, token): (usize, usize)) -> Option<Answer> {
    let nav = &*cx.nav;
    let lang = cx.ui.settings.lang;
    let table = lens.table(nav)?;
    let guesses = table.at.get(stage)?.get(lens.row(token))?;
    let of = &lens.stages[stage];
    let title = Msg::new("tui.lens.exact").arg("stage", of.name(lang)).arg("token", lens.token(nav, token));
    let mut answer = Answer::new(title);
    for (i, guess) in guesses.top.iter().enumerate() {
        let word = escape(&lens.word(nav, guess.id)).into_owned();
        answer.push(Row::plain(format!("{:>2}  {word:<16} {}", i + 1, exact(guess.p))));
    }
    let path = &nav.session.runs[lens.run].program.node(of.node).path;
    let name = format!("{}:{path}", nav.session.runs[lens.run].name);
    let go = Row::new(Msg::new("tui.lens.to_step").arg("path", path));
    answer.push(go.action(Action::Go(Place { name, index: Vec::new() })));
    Some(answer)
}
