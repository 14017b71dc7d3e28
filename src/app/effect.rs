//! What the application wants done outside of itself. Updating never does I/O: it returns these.

use std::path::PathBuf;
use std::sync::Arc;

use crate::text::Msg;

/// One thing to do outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Stop, as the shell's Ctrl-Z does.
    Suspend,
    /// Draw everything anew (another program wrote over the screen).
    Redraw,
    /// Capture the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Send text to the clipboard; `what` names it in the message.
    Copy {
        /// The text.
        text: String,
        /// What it is.
        what: Msg,
    },
    /// Write a file, whole or not at all.
    Write {
        /// Where.
        path: PathBuf,
        /// What; shared, as a question before overwriting keeps it.
        bytes: Arc<Vec<u8>>,
        /// Whether an existing file may be replaced.
        overwrite: bool,
    },
    /// Open the command line with this text.
    Prompt(String),
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// It was done; tell so.
    Done(Msg),
    /// It failed; tell so.
    Failed(Msg),
    /// The file exists: ask, then do this.
    Exists(PathBuf, Effect),
}
