//! What happened: messages shown once in the footer and kept in the log.

use std::collections::VecDeque;

use super::navigator::NavState;
pub use crate::report::Level;
use crate::text::Msg;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// How much it matters.
    pub level: Level,
    /// The text. Untrusted parts are escaped where it is drawn.
    pub text: Msg,
    /// How often it came in a row.
    pub times: u32,
    /// Where one was then.
    pub place: Option<NavState>,
}

impl Message {
    /// A message of nowhere.
    pub fn new(level: Level, text: Msg) -> Self {
        Self { level, text, times: 1, place: None }
    }
}

/// The log.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    entries: VecDeque<Message>,
    fresh: bool,
    said: u64,
}

/// Most messages that are kept.
const KEPT: usize = 500;

impl Messages {
    /// Adds a message and shows it.
    pub fn push(&mut self, level: Level, text: Msg) {
        self.fresh = true;
        self.said += 1;
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
        self.entries.push_back(Message::new(level, text));
    }

    /// Adds a line to the log only: what it is about is on the screen.
    pub fn note(&mut self, level: Level, text: Msg, place: NavState) {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.fresh = false;
        self.entries.push_back(Message { place: Some(place), ..Message::new(level, text) });
    }

    /// The message to show in the footer, until the next key.
    pub fn current(&self) -> Option<&Message> {
        self.entries.back().filter(|_| self.fresh)
    }

    /// How many there were in all, repeats and old ones included.
    pub fn said(&self) -> u64 {
        self.said
    }

    /// Those that came after there were `said`, a repeated one once.
    pub fn since(&self, said: u64) -> Vec<Message> {
        let new = usize::try_from(self.said - said).unwrap_or(usize::MAX);
        // A repeat adds no entry: going back by what entries denote finds where the new ones begin.
        let mut left = new;
        let mut out = Vec::new();
        for message in self.entries.iter().rev() {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(message.times as usize);
            out.push(message.clone());
        }
        out.reverse();
        out
    }

    /// Those that came after there were `said` happened at this place.
    pub fn happened_at(&mut self, said: u64, place: &NavState) {
        let new = self.since(said).len();
        for message in self.entries.iter_mut().rev().take(new) {
            message.place = Some(place.clone());
        }
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
        let said = m.said();
        assert!(m.since(said).is_empty());
        m.push(Level::Info, Msg::new("a"));
        m.push(Level::Info, Msg::new("c"));
        let new: Vec<_> = m.since(said).iter().map(|m| m.text.key).collect();
        assert_eq!(new, ["a", "c"]);
        m.seen();
        assert_eq!(m.current(), None);
        for n in 0..600 {
            m.push(Level::Info, Msg::new("b").arg("n", n));
        }
        assert_eq!(m.all().len(), KEPT);
    }
}
