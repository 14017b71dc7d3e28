//! The drawings of the views, one file each; states and models are in `app::views`.

mod cache;
mod compare;
mod costs;
mod counts;
mod debug;
mod heads;
mod layers;
mod lens;
mod log;
mod map;
mod positions;
mod probs;
mod side;
mod stages;
mod step;
mod teacher;
mod token;
mod training;

pub(in crate::tui) use map::{block as map_block, hottest, legend as map_legend};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::Look;
use super::shown::Shown;
use crate::app::app::App;
use crate::app::view::{View, view_table};

macro_rules! define_drawing {
    ($($view:ident $module:ident [$($key:literal),*],)*) => {
        /// Draws the view that is shown.
        pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
            match app.ui.view {
                $(View::$view => $module::draw(app, area, buf, look, shown),)*
            }
        }
    };
}
view_table!(define_drawing);
