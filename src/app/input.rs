//! What reaches the application from outside, already normalised.

use super::key::Key;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed (or repeats).
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// The mouse did something.
    Mouse(Mouse),
    /// The terminal has a new size, in cells.
    Resize(u16, u16),
    /// Time for the next step of auto-play.
    Tick,
    /// A watched file changed on disk.
    Changed,
}

/// What the mouse did, where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// What.
    pub kind: MouseKind,
    /// Column, from 0.
    pub x: u16,
    /// Row, from 0.
    pub y: u16,
}

/// Kinds of mouse events that mean something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    /// Left button down.
    Press,
    /// Left button held while moving.
    Drag,
    /// Right button down.
    Menu,
    /// Wheel up.
    ScrollUp,
    /// Wheel down.
    ScrollDown,
    /// Wheel to the left.
    ScrollLeft,
    /// Wheel to the right.
    ScrollRight,
}
