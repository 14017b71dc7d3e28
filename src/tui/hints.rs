//! What the line at the bottom says of keys: those of what lies on top, the most needed first.

use crate::app::action::Action;
use crate::app::app::App;
use crate::app::args::{ExportArgs, Text};
use crate::app::overlay::Overlay;
use crate::app::ui::Focus;
use crate::app::views::Hint as Keys;
use crate::text::tr;
use crate::tui::draw::Look;
use crate::tui::widgets::status::Hint;

/// The hints of what has the keys now.
pub(super) fn hints(app: &App, look: &Look) -> Vec<Hint> {
    if let Some(top) = app.ui.overlays.last() {
        return of(overlay(top), look);
    }
    let own = app.ui.view.hints();
    of(if own.is_empty() { base(app.ui.focus) } else { own }, look)
}

fn of(keys: Vec<Keys>, look: &Look) -> Vec<Hint> {
    let hint = |(actions, key)| Hint { actions, word: tr(look.lang, key) };
    keys.into_iter().map(hint).collect()
}

fn base(focus: Focus) -> Vec<Keys> {
    let step = (vec![Action::Prev, Action::Next], "tui.hint.step");
    let own = match focus {
        Focus::Steps => vec![step],
        Focus::Stage => vec![
            (vec![Action::Left, Action::Down, Action::Up, Action::Right], "tui.hint.cell"),
            (vec![Action::NextTable], "tui.hint.table"),
            step,
        ],
        Focus::Text => vec![(vec![Action::PrevTerm, Action::NextTerm], "tui.hint.number"), step],
    };
    let export = ExportArgs { format: None, range: None, path: None };
    let all = [
        (Action::Follow, "tui.hint.follow"),
        (Action::Back, "tui.hint.back"),
        (Action::Help, "tui.hint.help"),
        (Action::Quit, "tui.hint.quit"),
        (Action::FocusNext, "tui.hint.focus"),
        (Action::NextView, "tui.hint.view"),
        (Action::StepIn, "tui.hint.in"),
        (Action::Search(Text(String::new())), "tui.hint.search"),
        (Action::Export(export), "tui.hint.export"),
    ];
    let all = all.map(|(action, key)| (vec![action], key));
    own.into_iter().chain(all).collect()
}

fn overlay(overlay: &Overlay) -> Vec<Keys> {
    let close = (vec![Action::Cancel], "tui.hint.close");
    let lines = |key| (vec![Action::Up, Action::Down], key);
    let accept = |key| (vec![Action::Accept], key);
    let field = |key| (vec![Action::FocusNext], key);
    match overlay {
        Overlay::Help { .. } | Overlay::Messages { .. } | Overlay::Text { .. } => {
            vec![close, lines("tui.hint.scroll"), (vec![Action::PageUp, Action::PageDown], "tui.hint.page")]
        }
        Overlay::List { .. } => vec![close, lines("tui.hint.choose"), accept("tui.hint.go")],
        Overlay::Palette(_) => vec![close, lines("tui.hint.choose"), accept("tui.hint.run")],
        Overlay::Prompt(_) => vec![close, accept("tui.hint.run"), field("tui.hint.complete")],
        Overlay::Export(_) => vec![close, field("tui.hint.field"), accept("tui.hint.write")],
        Overlay::Confirm { .. } => vec![accept("tui.hint.yes"), (vec![Action::Cancel], "tui.hint.no")],
    }
}
