//! The views: a folder each, with its state, its keys and its model (what to show, as plain data). Drawings are in
//! `tui::views`, one file each. All are registered in `view_table`.

pub mod cache;
pub mod compare;
pub mod costs;
pub mod counts;
pub mod debug;
pub mod heads;
pub mod layers;
pub mod lens;
pub mod log;
pub mod map;
pub mod positions;
pub mod probs;
pub mod side;
pub mod stages;
pub mod stairs;
pub mod step;
pub mod teacher;
pub mod token;
pub mod training;
pub mod words;

use super::action::Action;
use super::navigator::Navigator;
use super::page::Page;
use super::ui::Ui;
use super::view::{View, view_table};

/// Keys and the catalogue key of the word for what they do, as the line at the bottom shows them.
pub type Hint = (Vec<Action>, &'static str);

/// What a view may use while it acts.
pub struct Context<'a> {
    /// Where one is.
    pub nav: &'a mut Navigator,
    /// Settings, focus, messages, effects.
    pub ui: &'a mut Ui,
    /// What the last frame showed.
    pub page: Page,
}

/// The state of a view, and what it does with keys.
pub trait ViewState: Default {
    /// Whether keys move in the view itself, wherever the focus was.
    const TAKES_KEYS: bool = false;
    /// Whether it shows something of the current step: then the heading says which.
    const OF_STEP: bool = false;

    /// Key hints, where they are not the usual ones.
    fn hints() -> Vec<Hint> {
        Vec::new()
    }

    /// Does an action that the view takes for itself while it is shown; false where it does not take it.
    fn act(&mut self, _action: &Action, _cx: &mut Context<'_>) -> bool {
        false
    }

    /// Brings the state up to date after every event; `shown` says whether the view is the one shown.
    fn prepare(&mut self, _cx: &mut Context<'_>, _shown: bool) {}

    /// One step on while playing; false at the end.
    fn tick(&mut self, cx: &mut Context<'_>) -> bool {
        cx.nav.go_by(1)
    }

    /// Whether work goes on in the background.
    fn is_busy(&self) -> bool {
        false
    }

    /// Stops work that goes on; false where there is none.
    fn stop(&mut self) -> bool {
        false
    }
}

macro_rules! define_states {
    ($($view:ident $module:ident [$($key:literal),*],)*) => {
        /// The states of all views.
        #[derive(Debug, Default)]
        pub struct Views {
            $(#[doc = concat!("Of the view `", stringify!($module), "`.")] pub $module: $module::State,)*
        }

        impl Views {
            /// As [`ViewState::act`], of the view shown.
            pub(super) fn act(&mut self, action: &Action, cx: &mut Context<'_>) -> bool {
                match cx.ui.view { $(View::$view => self.$module.act(action, cx),)* }
            }

            /// As [`ViewState::prepare`], of all views.
            pub(super) fn prepare(&mut self, cx: &mut Context<'_>) {
                $(
                    let shown = cx.ui.view == View::$view;
                    self.$module.prepare(cx, shown);
                )*
            }

            /// As [`ViewState::tick`], of the view shown.
            pub(super) fn tick(&mut self, cx: &mut Context<'_>) -> bool {
                match cx.ui.view { $(View::$view => self.$module.tick(cx),)* }
            }

            /// Whether any view works in the background.
            pub fn is_busy(&self) -> bool {
                false $(|| ViewState::is_busy(&self.$module))*
            }

            /// Stops all work that goes on; false where there is none.
            pub(super) fn stop(&mut self) -> bool {
                let mut any = false;
                $(any |= self.$module.stop();)*
                any
            }
        }

        impl View {
            /// Whether keys move in the view itself, wherever the focus was.
            pub fn takes_keys(self) -> bool {
                match self { $(View::$view => <$module::State as ViewState>::TAKES_KEYS,)* }
            }

            /// Whether it shows something of the current step.
            pub fn is_of_step(self) -> bool {
                match self { $(View::$view => <$module::State as ViewState>::OF_STEP,)* }
            }

            /// Its own key hints; empty where it has the usual ones.
            pub fn hints(self) -> Vec<Hint> {
                match self { $(View::$view => <$module::State as ViewState>::hints(),)* }
            }
        }
    };
}
view_table!(define_states);
