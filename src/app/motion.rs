//! A result cell that is computed before one's eyes: its terms appear one after another, then its value.

use std::time::Duration;

/// Frames of a cell.
const FRAMES: u8 = 10;
/// Time of a frame: all of them take 400 ms.
pub const FRAME: Duration = Duration::from_millis(40);

/// How far it is. It ends by itself, and with any key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Motion {
    frame: u8,
}

impl Motion {
    /// The next frame; `None` after the last one.
    pub fn next(self) -> Option<Self> {
        (self.frame + 1 < FRAMES).then_some(Self { frame: self.frame + 1 })
    }

    /// How many of `n` terms are there by now: all of them before the value is.
    pub fn of(self, n: usize) -> usize {
        (n * (usize::from(self.frame) + 1)).div_ceil(usize::from(FRAMES) - 1).min(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_terms_are_there_before_the_end_and_it_ends_in_time() {
        let mut frames = vec![Motion::default()];
        while let Some(next) = frames.last().and_then(|m| m.next()) {
            frames.push(next);
        }
        assert!(FRAME * frames.len() as u32 <= Duration::from_millis(400));
        for n in [1, 2, 4, 768] {
            let seen: Vec<usize> = frames.iter().map(|m| m.of(n)).collect();
            assert!(seen.is_sorted() && seen[0] >= 1 && seen[frames.len() - 2] == n, "{seen:?}");
        }
    }
}
