//! What the commands do: one function each, named in the table of [`super::action`].

mod bookmarks;
mod breakpoints;
pub(super) mod compare;
mod copy;
mod cursor;
mod export;
mod numerics;
mod print;
mod quiz;
mod record;
mod runs;
mod search;
mod session;
mod source;
mod tables;
mod terms;
mod walk;
mod what_if;
mod why;

use super::action::{Action, action_table};
use super::app::App;
use super::args::{
    BreakSpec, Change, Choice, CompareArgs, ExportArgs, Expression, FileName, Mode, Place, RunName, Sentence, Setting,
    Sides, SourceLine, Speed, StepTarget, Text, Train, TreeArgs, UpdateNumber,
};
use super::breakpoints::list;
use super::navigator::Part;
use super::view::View;
use crate::debug::breaks::Direction;

macro_rules! dispatch {
    ($($group:ident { $($variant:ident $(($arg:ty))? $name:literal $(=> $run:expr)?;)* })*) => {
        /// Does what concerns the trace; what the interface does itself was done before.
        pub fn perform(app: &mut App, action: &Action) {
            match action {
                $($( dispatch!(@pattern $variant, arg $(, $arg)?) => dispatch!(@run app, arg, [$($arg)?] $(, $run)?), )*)*
            }
        }
    };
    (@pattern $variant:ident, $arg:ident) => { Action::$variant };
    (@pattern $variant:ident, $arg:ident, $type:ty) => { Action::$variant($arg) };
    (@run $app:ident, $arg:ident, []) => { {} };
    (@run $app:ident, $arg:ident, [$type:ty]) => { { let _: &$type = $arg; } };
    (@run $app:ident, $arg:ident, [], $run:expr) => { { let run: fn(&mut App) = $run; run($app) } };
    (@run $app:ident, $arg:ident, [$type:ty], $run:expr) => { { let run: fn(&mut App, &$type) = $run; run($app, $arg) } };
}
action_table!(dispatch);
