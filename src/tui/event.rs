//! What wakes the event loop.

use std::io;

use crate::app::input::Input;

/// What wakes the loop.
#[derive(Debug)]
pub enum Event {
    /// The person did something, or the terminal changed.
    Input(Input),
    /// Asked from outside to stop (`SIGTSTP`).
    Suspend,
    /// Continued after having been stopped.
    Continued,
    /// The terminal is gone.
    Closed(io::Error),
}
