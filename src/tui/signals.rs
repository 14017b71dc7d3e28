//! Signals: those that end the process give the terminal back first; stopping and continuing reach the event loop.

use std::io;
use std::sync::mpsc::Sender;

use super::event::Event;
#[cfg(unix)]
use super::terminal;
#[cfg(unix)]
use crate::export::file;

/// Listens in a thread of its own, so that a long computation does not hold up leaving.
///
/// # Errors
/// The handlers cannot be installed.
#[cfg(unix)]
pub fn listen(events: Sender<Event>) -> io::Result<()> {
    use signal_hook::consts::{
        SIGABRT, SIGALRM, SIGBUS, SIGCONT, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP,
        SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
    };
    use signal_hook::iterator::Signals;

    // All that end the process unless they are caught, and can be.
    const ENDING: [i32; 15] = [
        SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGALRM, SIGBUS, SIGPROF, SIGSYS, SIGTRAP, SIGUSR1, SIGUSR2,
        SIGVTALRM, SIGXCPU, SIGXFSZ,
    ];
    // Files that are being written go with the process, too.
    file::signals::want(false);
    let mut signals = Signals::new(ENDING.into_iter().chain([SIGTSTP, SIGCONT]))?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in &mut signals {
                let event = match signal {
                    SIGTSTP => Event::Suspend,
                    SIGCONT => Event::Continued,
                    ending => {
                        terminal::leave_for_good();
                        file::signals::abandon();
                        // Ends as the signal would have ended us, so that the parent sees which it was.
                        let _ = signal_hook::low_level::emulate_default_handler(ending);
                        std::process::exit(128 + ending);
                    }
                };
                if events.send(event).is_err() {
                    return;
                }
            }
        })
        .map(|_| ())
}

/// Stops the process as Ctrl-Z does in a shell; comes back when it is continued.
#[cfg(unix)]
pub fn stop() {
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
}

/// Raw mode sends Ctrl-C as a key there, and closing the window ends the process with its terminal: nothing to do.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn listen(_events: Sender<Event>) -> io::Result<()> {
    Ok(())
}

/// Processes cannot be stopped there.
#[cfg(not(unix))]
pub fn stop() {}
