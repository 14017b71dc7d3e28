//! What several views draw: the tables of a step, tensors as maps, tables of words.

pub mod following;
pub mod grid;
mod layout;
pub mod maps;
pub mod source;
pub mod stage;
mod stairs;
pub mod sum;
pub mod thumbnails;
pub mod words;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::{Look, put};
use crate::text::tr;

/// Says that there is nothing to show.
pub fn nothing(area: Rect, buf: &mut Buffer, key: &str, look: &Look) {
    put(buf, area, (area.x, area.y), tr(look.lang, key), area.width, look.theme.dim, look);
}
