//! The terminal, taken and given back.
//!
//! [`enter`] and [`leave`] may be called at any time and any number of times. Leaving is used by a normal exit, an
//! error, a panic ([`install_panic_hook`]), suspending and signals; nothing in it can fail or panic.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Frame;
use ratatui::backend::Backend;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect, Size};
use ratatui::{TerminalOptions, Viewport};

/// Whether the terminal is ours now.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether the mouse is to be captured while the terminal is ours.
static MOUSE: AtomicBool = AtomicBool::new(false);
/// Whether it was left for good: it is never taken again.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Held while something is written, so that a signal does not leave in the middle of a frame.
static WRITING: Mutex<()> = Mutex::new(());

fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the terminal: raw mode, alternate screen, bracketed paste, and the mouse where it is wanted.
///
/// # Errors
/// There is no terminal to take. What was taken already is given back.
pub fn enter() -> io::Result<()> {
    let lock = writing();
    if CLOSED.load(Ordering::SeqCst) {
        drop(lock);
        // Another thread has left for good and ends the process.
        loop {
            std::thread::park();
        }
    }
    if ACTIVE.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    let taken = enable_raw_mode().and_then(|()| {
        let mut out = io::stdout();
        queue!(out, EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        if MOUSE.load(Ordering::SeqCst) {
            queue!(out, EnableMouseCapture)?;
        }
        out.flush()
    });
    if taken.is_err() {
        give_back();
    }
    taken
}

/// Gives the terminal back as it was. Waits for what is being written, but not for ever: a panic may come out of
/// drawing itself, and writing may hang where the terminal is gone.
pub fn leave() {
    let _lock = patiently();
    give_back();
}

/// The lock for writing, where it can be had within a moment.
fn patiently() -> Option<MutexGuard<'static, ()>> {
    for _ in 0..50 {
        match WRITING.try_lock() {
            Ok(lock) => return Some(lock),
            Err(TryLockError::Poisoned(lock)) => return Some(lock.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(4)),
        }
    }
    None
}

fn give_back() {
    if !ACTIVE.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // Each on its own: where one cannot be written, the others still count.
    let _ = queue!(out, EndSynchronizedUpdate);
    let _ = queue!(out, DisableMouseCapture);
    let _ = queue!(out, DisableBracketedPaste);
    let _ = queue!(out, LeaveAlternateScreen, cursor::Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// Captures the mouse, or leaves it to the terminal (which can then select text).
///
/// # Errors
/// The terminal cannot be written to.
pub fn set_mouse(on: bool) -> io::Result<()> {
    MOUSE.store(on, Ordering::SeqCst);
    if !ACTIVE.load(Ordering::SeqCst) {
        return Ok(());
    }
    let _lock = writing();
    if on { execute!(io::stdout(), EnableMouseCapture) } else { execute!(io::stdout(), DisableMouseCapture) }
}

/// Writes a control sequence that draws nothing (such as one for the clipboard).
///
/// # Errors
/// The terminal cannot be written to.
pub fn send(sequence: &str) -> io::Result<()> {
    let _lock = writing();
    let mut out = io::stdout();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}

/// Makes a panic give the terminal back before it is reported. To be called before anything else takes the terminal.
pub fn install_panic_hook() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            leave();
            tell(info);
        }));
    });
}

/// Runs `f` with the terminal left, then takes it again where it was ours.
///
/// # Errors
/// The terminal cannot be taken again.
pub fn without<T>(f: impl FnOnce() -> T) -> io::Result<T> {
    let was = ACTIVE.load(Ordering::SeqCst);
    leave();
    let value = f();
    if was {
        enter()?;
    }
    Ok(value)
}

/// Takes the terminal again after the process was stopped and continued from outside: a shell may have reset it.
///
/// # Errors
/// The terminal cannot be taken again.
pub fn retake() -> io::Result<()> {
    // Leaving first, as raw mode is not set again where it is thought to be set.
    without(|| ())
}

/// Leaves for good: the process is about to end, and nothing takes the terminal again. Waits for a frame that is being
/// written, but not for ever, as writing may hang where the terminal is gone.
pub fn leave_for_good() {
    CLOSED.store(true, Ordering::SeqCst);
    let lock = patiently();
    give_back();
    // Kept locked, so that no frame follows.
    std::mem::forget(lock);
}

/// Cells beyond which a terminal is not believed: some report 65,535 × 65,535, whose frames no memory holds.
const MAX_CELLS: u32 = 1 << 20;
/// A side that is believed where the cells together are too many.
const MAX_SIDE: u16 = 1000;

/// The part of a screen that is drawn.
fn believed(size: Size) -> Rect {
    let side = |n: u16| {
        if u32::from(size.width) * u32::from(size.height) > MAX_CELLS { n.min(MAX_SIDE) } else { n }
    };
    Rect::from((Position::ORIGIN, Size::new(side(size.width), side(size.height))))
}

/// The terminal while it is ours. Dropping it gives the terminal back.
pub struct Screen {
    inner: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// There is none, or it cannot be written to.
    pub fn open() -> io::Result<Self> {
        install_panic_hook();
        enter()?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        let opened = backend.size().and_then(|size| {
            // Resized by hand: a terminal that is not believed must not decide how large a frame is.
            let viewport = Viewport::Fixed(believed(size));
            ratatui::Terminal::with_options(backend, TerminalOptions { viewport })
        });
        match opened {
            Ok(inner) => Ok(Self { inner }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }

    /// Draws one frame: only what changed is written, and the terminal shows it at once.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        let _lock = writing();
        let area = believed(self.inner.size()?);
        queue!(self.inner.backend_mut(), BeginSynchronizedUpdate)?;
        if area != self.inner.get_frame().area() {
            self.inner.resize(area)?;
        }
        let drawn = self.inner.draw(draw).map(|_| ());
        // Also where drawing failed: a terminal that waits for the end shows nothing.
        execute!(self.inner.backend_mut(), EndSynchronizedUpdate)?;
        drawn
    }

    /// Makes the next frame be drawn whole: something else wrote over the screen.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn forget(&mut self) -> io::Result<()> {
        let _lock = writing();
        // `Terminal::clear` asks the terminal where its cursor is, and the answer would race with the reader of keys.
        let area = believed(self.inner.size()?);
        self.inner.resize(area)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_of_impossible_size_is_not_believed() {
        assert_eq!(believed(Size::new(65_535, 65_535)), Rect::new(0, 0, MAX_SIDE, MAX_SIDE));
        assert_eq!(believed(Size::new(65_535, 2)), Rect::new(0, 0, 65_535, 2));
        assert_eq!(believed(Size::new(200, 60)), Rect::new(0, 0, 200, 60));
        assert_eq!(believed(Size::new(0, 0)), Rect::new(0, 0, 0, 0));
    }
}
