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
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};

/// Whether the terminal is ours now.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether the mouse is to be captured while the terminal is ours.
static MOUSE: AtomicBool = AtomicBool::new(false);
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
        leave();
    }
    taken
}

/// Gives the terminal back as it was.
pub fn leave() {
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

/// Makes a panic give the terminal back before it is told. To be called before anything else takes the terminal.
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

/// Leaves for good: the process is about to end. Waits for a frame that is being written, but not for ever, as
/// writing may hang where the terminal is gone.
pub fn leave_for_good() {
    for _ in 0..50 {
        match WRITING.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(4)),
            lock => {
                leave();
                // Kept locked, so that no frame follows.
                std::mem::forget(lock);
                return;
            }
        }
    }
    leave();
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
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        match ratatui::Terminal::new(CrosstermBackend::new(out)) {
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
        queue!(self.inner.backend_mut(), BeginSynchronizedUpdate)?;
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
        let size = self.inner.size()?;
        self.inner.resize(Rect::from((Position::ORIGIN, size)))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}
