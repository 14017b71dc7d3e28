//! What happened: messages shown once in the footer and kept in the log.

use std::collections::VecDeque;

use crate::text::Msg;

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For information.
    Info,
    /// Something was done that a person asked for.
    Done,
    /// Something is not as it should be.
    Warning,
    /// Something could not be done.
    Error,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// How much it matters.
    pub level: Level,
    /// The text. Untrusted parts are escaped where it is drawn.
    pub text: Msg,
    /// How often it came in a row.
    pub times: u32,
}

/// The log.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    entries: VecDeque<Message>,
    fresh: bool,
}

/// Most messages that are kept.
const KEPT: usize = 500;

impl Messages {
    /// Adds a message and shows it.
    pub fn push(&mut self, level: Level, text: Msg) {
        self.fresh = true;
        if let Some(last) = self.entries.back_mut()
            && last.level == level
            && last.text == text
        {
            last.times += 1;
            return;
        }
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(Message {
            level,
            text,
            times: 1,
        });
    }

    /// The message to show in the footer, until the next key.
    pub fn current(&self) -> Option<&Message> {
        self.entries.back().filter(|_| self.fresh)
    }

    /// A key was pressed: the footer is free again.
    pub fn seen(&mut self) {
        self.fresh = false;
    }

    /// All messages, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_and_old_ones_go() {
        let mut m = Messages::default();
        for _ in 0..3 {
            m.push(Level::Info, Msg::new("a"));
        }
        assert_eq!(m.current().unwrap().times, 3);
        m.seen();
        assert_eq!(m.current(), None);
        for n in 0..600 {
            m.push(Level::Info, Msg::new("b").arg("n", n));
        }
        assert_eq!(m.all().len(), KEPT);
    }
}
