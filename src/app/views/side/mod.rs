//! Two runs side by side, stepping together by path.

mod select;
mod state;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use crate::app::action::Action;
use crate::app::args::Sides;
use crate::app::effect::Effect;
use crate::app::measure::AT_ONCE;
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::app::of_session::OfSession;
use crate::app::slot::in_background;
use crate::app::view::View;
use crate::app::views::{Context, Hint, ViewState};
use crate::debug::side::{Mapping, next_difference, previous_difference};
use crate::session::Session;
use crate::text::Msg;
use crate::trace::derive::Cell;

use select::turn_right;
pub(in crate::app) use select::{Here, select};
pub use state::{Pair, Pane, Ranges, Side};

/// What is side by side, or what the scenario lacks for it.
#[derive(Debug, Default)]
pub struct State {
    side: OfSession<Option<Result<Side, Msg>>>,
    /// What a thread puts side by side.
    coming: OfSession<Option<Receiver<Result<Side, Msg>>>>,
}

impl State {
    /// Puts something side by side.
    pub(in crate::app) fn put(&mut self, nav: &Navigator, side: Side) {
        *self.side.get_mut(&nav.session) = Some(Ok(side));
    }

    /// Whether a thread is putting something side by side.
    pub fn is_coming(&self, nav: &Navigator) -> bool {
        self.coming.get(&nav.session).is_some_and(Option::is_some)
    }

    /// Puts side by side what `make` gives, in a thread where that is `long`.
    fn begin(
        &mut self,
        session: &Arc<Session>,
        long: bool,
        make: impl FnOnce() -> Option<Result<Side, Msg>> + Send + 'static,
    ) {
        if !long {
            if let Some(made) = make() {
                *self.side.get_mut(session) = Some(made);
            }
            return;
        }
        let (sender, coming) = channel();
        *self.coming.get_mut(session) = Some(coming);
        in_background(move || {
            if let Some(made) = make() {
                // Nobody may wait any more.
                let _ = sender.send(made);
            }
        });
    }

    /// What is side by side.
    ///
    /// # Errors
    /// What the scenario lacks for it.
    pub fn side(&self, nav: &Navigator) -> Option<Result<&Side, &Msg>> {
        self.side.get(&nav.session)?.as_ref().map(Result::as_ref)
    }
}

impl ViewState for State {
    const TAKES_KEYS: bool = true;

    fn hints() -> Vec<Hint> {
        vec![
            (vec![Action::Prev, Action::Next], "tui.hint.path"),
            (vec![Action::PrevDiff, Action::NextDiff], "tui.hint.difference"),
            (vec![Action::PrevTerm, Action::NextTerm], "tui.hint.cell"),
            (vec![Action::NextTable], "tui.hint.other"),
            (vec![Action::Follow], "tui.hint.to_step"),
            (vec![Action::Cancel], "tui.hint.close"),
            (vec![Action::Help], "tui.hint.help"),
        ]
    }

    /// The usual two, where none were chosen.
    fn prepare(&mut self, cx: &mut Context<'_>, shown: bool) {
        let session = Arc::clone(&cx.nav.session);
        let news = self.coming.get_mut(&session).as_ref().map(Receiver::try_recv);
        match news {
            Some(Ok(made)) => {
                *self.side.get_mut(&session) = Some(made);
                *self.coming.get_mut(&session) = None;
            }
            Some(Err(TryRecvError::Disconnected)) => *self.coming.get_mut(&session) = None,
            Some(Err(TryRecvError::Empty)) => return,
            None => {}
        }
        if shown && self.side.get_mut(&session).is_none() {
            let here = Here::of(cx.nav);
            let long = cx.ui.interactive && here.cells() > AT_ONCE;
            self.begin(&session, long, move || Some(select(&here, &Sides::Usual)));
        }
    }

    fn is_busy(&self) -> bool {
        self.coming.any().is_some()
    }

    fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
        let session = Arc::clone(&cx.nav.session);
        let s = session.as_ref();
        let Some(Ok(shown)) = self.side.get_mut(&session) else {
            return false;
        };
        let side = &mut *shown;
        let (page_rows, page_cols) = (cx.page.rows.max(1) as i64, cx.page.cols.max(1) as i64);
        let last = side.pairs.len().saturating_sub(1);
        let mut say = |key| cx.ui.messages.push(Level::Info, Msg::new(key));
        match action {
            Action::Next => side.go((side.at + 1).min(last), s),
            Action::Prev => side.go(side.at.saturating_sub(1), s),
            Action::First => side.go(0, s),
            Action::Last => side.go(last, s),
            Action::NextPhase | Action::NextLayer => side.jump_to_part(true, s),
            Action::PrevPhase | Action::PrevLayer => side.jump_to_part(false, s),
            Action::NextDiff => match next_difference(&side.pairs, side.at) {
                Some(to) => side.go(to, s),
                None => say("side.no_next"),
            },
            Action::PrevDiff => match previous_difference(&side.pairs, side.at) {
                Some(to) => side.go(to, s),
                None => say("side.no_previous"),
            },
            Action::NextTerm | Action::PrevTerm => {
                if !side.jump_to_cell(*action == Action::NextTerm, s) {
                    say("side.no_cell");
                }
            }
            Action::Left => side.step(0, -1, s),
            Action::Right => side.step(0, 1, s),
            Action::Up => side.step(1, -1, s),
            Action::Down => side.step(1, 1, s),
            Action::PageLeft => side.step(0, -page_cols, s),
            Action::PageRight => side.step(0, page_cols, s),
            Action::PageUp => side.step(1, -page_rows, s),
            Action::PageDown => side.step(1, page_rows, s),
            Action::HalfUp => side.step(1, -(page_rows + 1) / 2, s),
            Action::HalfDown => side.step(1, (page_rows + 1) / 2, s),
            Action::RowStart => side.step(0, i64::MIN / 2, s),
            Action::RowEnd => side.step(0, i64::MAX / 2, s),
            Action::Top => side.step(1, i64::MIN / 2, s),
            Action::Bottom => side.step(1, i64::MAX / 2, s),
            Action::AxisNext => side.turn(1, s),
            Action::AxisPrev => side.turn(-1, s),
            Action::NextTable | Action::PrevTable => {
                if side.mapping == Mapping::Same {
                    say("side.nothing_to_turn");
                    return true;
                }
                let (now, here, forward) = (side.clone(), Here::of(cx.nav), *action == Action::NextTable);
                let long = cx.ui.interactive && here.cells() > AT_ONCE;
                let own = Arc::clone(&session);
                self.begin(&session, long, move || {
                    let turned = turn_right(&here, &now, forward)?.map(|mut side| {
                        // The same path, where the other right side has it too.
                        let path = now.pairs.get(now.at).map(|p| &p.path);
                        let at = side.pairs.iter().position(|p| Some(&p.path) == path);
                        side.go(at.unwrap_or(side.at), &own);
                        side
                    });
                    // What cannot be turned stays as it was.
                    turned.ok().map(Ok)
                });
            }
            Action::CopyCell => {
                let text = side.pair(s).map(|seen| {
                    let exact = crate::text::number::exact;
                    let [l, r] = &seen.values;
                    let (l, r) = (l.get(seen.cell.left), r.get(seen.cell.right));
                    format!("{}\t{}", exact(l), exact(r))
                });
                if let Some(text) = text {
                    let done = Msg::new("tui.sent.cell");
                    cx.ui.effects.push(Effect::Copy { text, done });
                }
            }
            Action::Follow => {
                let pane = side.panes[0].clone();
                let found = side.pair(s).and_then(|seen| {
                    let path = &seen.pair.path;
                    let node = s.runs[pane.run].program.find(path)?;
                    let same = s.runs[pane.run].program.node(node).shape;
                    let flat = seen.cell.left;
                    (same.same_dims(seen.values[0].shape())).then_some(Cell { node, flat })
                });
                match found {
                    Some(cell) => {
                        cx.nav.leave();
                        if !cx.nav.steps.list().iter().any(|step| step.run == pane.run) {
                            cx.nav.choose_run(Some(pane.run));
                        }
                        cx.nav.show_cell(pane.run, cell);
                        cx.ui.view = View::Step;
                    }
                    None => say("side.not_in_steps"),
                }
            }
            _ => return false,
        }
        true
    }
}
