//! Something that was computed from a session. With another session it is gone by itself: nothing needs to remember
//! to forget it.

use std::sync::{Arc, Weak};

use crate::session::Session;

/// A value that belongs to one session.
#[derive(Debug, Default)]
pub struct OfSession<T> {
    of: Weak<Session>,
    value: T,
}

impl<T: Default> OfSession<T> {
    fn is_of(&self, session: &Arc<Session>) -> bool {
        std::ptr::eq(self.of.as_ptr(), Arc::as_ptr(session))
    }

    /// The value, if it belongs to `session`.
    pub fn get(&self, session: &Arc<Session>) -> Option<&T> {
        self.is_of(session).then_some(&self.value)
    }

    /// The value, whichever session it belongs to.
    pub fn any(&self) -> &T {
        &self.value
    }

    /// The value of `session`; a new one where it belonged to another session.
    pub fn get_mut(&mut self, session: &Arc<Session>) -> &mut T {
        if !self.is_of(session) {
            *self = Self { of: Arc::downgrade(session), value: T::default() };
        }
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;
    use crate::session::{Options, open};

    #[test]
    fn another_session_has_nothing_yet() {
        let session = || {
            let loaded = scenario::load(std::path::Path::new("encoder_char")).expect("embedded");
            Arc::new(open(loaded.scenario, None, Options::default()).expect("opens"))
        };
        let (one, other) = (session(), session());
        let mut kept: OfSession<Vec<u8>> = OfSession::default();
        assert_eq!(kept.get(&one), None);
        kept.get_mut(&one).push(1);
        assert_eq!(kept.get(&one), Some(&vec![1]));
        assert_eq!(kept.get(&other), None);
        assert!(kept.get_mut(&other).is_empty());
        assert_eq!(kept.get(&one), None);
    }
}
