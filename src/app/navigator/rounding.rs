//! Rounding as one goes: where somebody watches, a run is computed anew in the background, and its exact numbers are
//! shown until then.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use super::Navigator;
use crate::session::Session;

/// A rounded run that is being computed.
#[derive(Debug)]
pub(super) struct Rounding {
    session: Arc<Session>,
    run: usize,
    digits: u8,
    /// Hears of the end; gone where the run cannot be computed.
    done: Option<Receiver<()>>,
}

impl Rounding {
    fn begin(session: &Arc<Session>, run: usize, digits: u8) -> Self {
        let (told, done) = channel();
        let own = Arc::clone(session);
        thread::spawn(move || {
            if own.rounded(run, digits).is_ok() {
                // Nobody may wait any more.
                let _ = told.send(());
            }
        });
        Self { session: Arc::clone(session), run, digits, done: Some(done) }
    }

    fn is_of(&self, session: &Arc<Session>, run: usize, digits: u8) -> bool {
        Arc::ptr_eq(&self.session, session) && (self.run, self.digits) == (run, digits)
    }
}

impl Navigator {
    /// Rounds what is shown to so many decimals as one goes, or no more.
    pub fn round_to(&mut self, digits: Option<u8>) {
        let run = self.view().map(|v| v.run);
        let (Some(digits), Some(run), true) = (digits, run, self.live) else {
            self.round = digits;
            self.rounding = None;
            return;
        };
        if self.session.has_rounded(run, digits) {
            self.round = Some(digits);
            self.rounding = None;
            return;
        }
        self.round = None;
        match &mut self.rounding {
            Some(going) if going.is_of(&self.session, run, digits) => {
                let news = going.done.as_ref().map(Receiver::try_recv);
                if news == Some(Err(TryRecvError::Disconnected)) {
                    going.done = None;
                }
            }
            _ => self.rounding = Some(Rounding::begin(&self.session, run, digits)),
        }
    }

    /// The decimals of a rounded run that is being computed.
    pub fn is_rounding(&self) -> Option<u8> {
        let going = self.rounding.as_ref()?;
        going.done.as_ref().map(|_| going.digits)
    }
}
