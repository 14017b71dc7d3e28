//! The views: a folder each, with its state, its keys and its model (what to show, as plain data). Drawings are in
//! `tui::views`, one file each. All are registered in `view_table`.

pub mod cache;
pub mod compare;
pub mod costs;
pub mod debug;
pub mod heads;
pub mod layers;
pub mod log;
pub mod map;
pub mod positions;
pub mod probs;
pub mod side;
pub mod stages;
pub mod step;
pub mod teacher;
pub mod token;
pub mod training;

use super::action::Action;
use super::view::{View, view_table};

/// Keys and the catalogue key of the word for what they do, as the line at the bottom shows them.
pub type Hint = (Vec<Action>, &'static str);

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
}

macro_rules! define_states {
    ($($view:ident $module:ident [$($key:literal),*],)*) => {
        /// The states of all views.
        #[derive(Debug, Default)]
        pub struct Views {
            $(#[doc = concat!("Of the view `", stringify!($module), "`.")] pub $module: $module::State,)*
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
