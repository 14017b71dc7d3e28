//! The jump stack: where one came from, and where one went back from. Bookmarks.

/// Places visited, as a browser keeps them.
#[derive(Clone, Debug)]
pub struct Jumps<T> {
    back: Vec<T>,
    forward: Vec<T>,
}

impl<T> Default for Jumps<T> {
    fn default() -> Self {
        Self { back: Vec::new(), forward: Vec::new() }
    }
}

/// Most places that are kept.
const KEPT: usize = 1000;

impl<T: PartialEq> Jumps<T> {
    /// Notes that one leaves `here` by a jump.
    pub fn leave(&mut self, here: T) {
        self.forward.clear();
        if self.back.last() != Some(&here) {
            if self.back.len() == KEPT {
                self.back.remove(0);
            }
            self.back.push(here);
        }
    }

    /// Where to return to; `here` becomes the way forward.
    pub fn back(&mut self, here: T) -> Option<T> {
        let to = self.back.pop()?;
        self.forward.push(here);
        Some(to)
    }

    /// Where one went back from.
    pub fn forward(&mut self, here: T) -> Option<T> {
        let to = self.forward.pop()?;
        self.back.push(here);
        Some(to)
    }

    /// The same trail with other places; those that are no more are left out.
    #[must_use]
    pub fn map(&self, to: impl Fn(&T) -> Option<T>) -> Self {
        Self {
            back: self.back.iter().filter_map(&to).collect(),
            forward: self.forward.iter().filter_map(&to).collect(),
        }
    }

    /// Places on the way back, oldest first.
    pub fn trail(&self) -> &[T] {
        &self.back
    }
}

/// Marked places, in order.
#[derive(Clone, Debug)]
pub struct Bookmarks<T> {
    marks: Vec<T>,
}

impl<T> Default for Bookmarks<T> {
    fn default() -> Self {
        Self { marks: Vec::new() }
    }
}

impl<T: Ord + Clone> Bookmarks<T> {
    /// Sets or takes away the mark at `place`; true where it is set now.
    pub fn toggle(&mut self, place: T) -> bool {
        match self.marks.binary_search(&place) {
            Ok(at) => {
                self.marks.remove(at);
                false
            }
            Err(at) => {
                self.marks.insert(at, place);
                true
            }
        }
    }

    /// The same marks at other places; those that are no more are left out.
    #[must_use]
    pub fn map(&self, to: impl Fn(&T) -> Option<T>) -> Self {
        let mut marks: Vec<T> = self.marks.iter().filter_map(to).collect();
        marks.sort_unstable();
        marks.dedup();
        Self { marks }
    }

    /// Whether `place` is marked.
    pub fn has(&self, place: &T) -> bool {
        self.marks.binary_search(place).is_ok()
    }

    /// The next (or previous) mark from `place`, around.
    pub fn next(&self, place: &T, forward: bool) -> Option<&T> {
        if forward {
            self.marks.iter().find(|m| *m > place).or(self.marks.first())
        } else {
            self.marks.iter().rfind(|m| *m < place).or(self.marks.last())
        }
    }

    /// All marks, in order.
    pub fn all(&self) -> &[T] {
        &self.marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_and_forward() {
        let mut j = Jumps::default();
        j.leave(1);
        j.leave(2);
        assert_eq!(j.back(3), Some(2));
        assert_eq!(j.back(2), Some(1));
        assert_eq!(j.back(1), None);
        assert_eq!(j.forward(1), Some(2));
        j.leave(2);
        assert_eq!(j.forward(9), None, "a new jump drops the way forward");
        assert_eq!(j.trail(), [1, 2]);
    }

    #[test]
    fn marks_in_order_around() {
        let mut b = Bookmarks::default();
        for n in [30, 10, 20] {
            assert!(b.toggle(n));
        }
        assert!(!b.toggle(20));
        assert_eq!(b.all(), [10, 30]);
        assert_eq!(b.next(&10, true), Some(&30));
        assert_eq!(b.next(&30, true), Some(&10));
        assert_eq!(b.next(&10, false), Some(&30));
        assert!(b.has(&10) && !b.has(&20));
    }
}
