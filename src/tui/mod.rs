//! The debugger on a terminal: taking and giving back the terminal, events in, frames out; widgets, colours, glyphs.

pub mod colour;
pub mod draw;
mod effects;
mod event;
pub mod event_loop;
pub mod glyphs;
mod hints;
pub mod input;
pub mod overlays;
mod pane;
mod pictures;
pub mod run;
pub mod scale;
pub mod screen;
pub mod shown;
mod signals;
pub mod snapshot;
pub mod terminal;
pub mod theme;
mod views;
mod watch;
pub mod widgets;
