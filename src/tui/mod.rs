//! The debugger on a terminal: taking and giving back the terminal, events in, frames out.

mod effects;
pub mod event_loop;
pub mod input;
mod signals;
pub mod terminal;
