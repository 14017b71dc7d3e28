//! A value that is made once: at once, or in the background while somebody watches.

use std::sync::{Arc, OnceLock};

/// The place of a value.
#[derive(Debug)]
pub enum Slot<T> {
    /// It is there.
    Ready(Arc<T>),
    /// A thread makes it; `None` where there turned out to be none.
    Coming(Arc<OnceLock<Option<Arc<T>>>>),
}

/// What is in a slot now.
#[derive(Debug)]
pub enum Seen<T> {
    /// The value.
    Made(Arc<T>),
    /// Nothing yet.
    Coming,
    /// There is no such value.
    Nothing,
}

impl<T> Seen<T> {
    /// The value, where it is there.
    pub fn made(self) -> Option<Arc<T>> {
        match self {
            Seen::Made(value) => Some(value),
            Seen::Coming | Seen::Nothing => None,
        }
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        match self {
            Slot::Ready(value) => Slot::Ready(Arc::clone(value)),
            Slot::Coming(cell) => Slot::Coming(Arc::clone(cell)),
        }
    }
}

impl<T: Send + Sync + 'static> Slot<T> {
    /// Makes a value, in the background or at once; `None` where there is none.
    pub fn new(background: bool, make: impl FnOnce() -> Option<T> + Send + 'static) -> Option<Self> {
        if !background {
            return make().map(|value| Slot::Ready(Arc::new(value)));
        }
        let cell = Arc::new(OnceLock::new());
        let own = Arc::clone(&cell);
        rayon::spawn(move || {
            let _ = own.set(make().map(Arc::new));
        });
        Some(Slot::Coming(cell))
    }

    /// What is in it now.
    pub fn look(&self) -> Seen<T> {
        match self {
            Slot::Ready(value) => Seen::Made(Arc::clone(value)),
            Slot::Coming(cell) => match cell.get() {
                Some(Some(value)) => Seen::Made(Arc::clone(value)),
                Some(None) => Seen::Nothing,
                None => Seen::Coming,
            },
        }
    }
}
