//! The cursor: from cell to cell, table to table, number to number of the derivation.

use super::Navigator;
use crate::walkthrough::View;

impl Navigator {
    /// Puts the cursor on cell `index` of view `view`.
    pub fn select(&mut self, view: usize, index: &[usize]) {
        let Some(step) = self.step() else { return };
        let view = view.min(step.views.len().saturating_sub(1));
        let Some(shape) = step.views.get(view).map(View::shape) else {
            return;
        };
        self.index = (0..shape.rank())
            .map(|d| index.get(d).copied().unwrap_or(0).min(shape.dims()[d].saturating_sub(1)))
            .collect();
        self.view = view;
        self.term = None;
    }

    /// To the next (or previous) table of the step.
    pub fn to_table(&mut self, forward: bool) {
        let Some(n) = self.step().map(|s| s.views.len()).filter(|n| *n > 0) else {
            return;
        };
        let view = if forward { (self.view + 1) % n } else { (self.view + n - 1) % n };
        let index = self.index.clone();
        self.select(view, &index);
    }

    /// Moves the cursor along an axis counted from the last (0: columns, 1: rows).
    pub fn move_cursor(&mut self, from_last: usize, by: i64) {
        let Some(shape) = self.view().map(View::shape) else {
            return;
        };
        let Some(axis) = self.index.len().checked_sub(from_last + 1) else {
            return;
        };
        let last = shape.dims()[axis].saturating_sub(1) as i64;
        let to = (self.index[axis] as i64).saturating_add(by).clamp(0, last);
        self.index[axis] = to as usize;
        self.term = None;
    }

    /// One cell along an axis counted from the last; from the edge of a table to the one next to it, in the same row or
    /// column where it has one. There is none beyond the last.
    pub fn step_cursor(&mut self, from_last: usize, by: i64) {
        let before = (self.view, self.index.clone());
        self.move_cursor(from_last, by);
        let tables = self.step().map_or(0, |s| s.views.len());
        let to = if by < 0 { self.view.checked_sub(1) } else { Some(self.view + 1).filter(|to| *to < tables) };
        let Some(to) = to.filter(|_| before == (self.view, self.index.clone())) else {
            return;
        };
        let shape = self.step().map(|s| s.views[to].shape());
        let mut index = vec![0; shape.map_or(0, |s| s.rank())];
        for (slot, at) in index.iter_mut().rev().zip(before.1.iter().rev()) {
            *slot = *at;
        }
        if let Some(slot) = index.iter_mut().rev().nth(from_last) {
            // Select keeps it inside the table.
            *slot = if by < 0 { usize::MAX } else { 0 };
        }
        self.select(to, &index);
    }

    /// Turns the leading axis (head, batch) of the view.
    pub fn turn_axis(&mut self, by: i64) {
        let rank = self.index.len();
        for from_last in 2..rank {
            let axis = rank - 1 - from_last;
            let n = self.view().map_or(1, |v| v.shape().dims()[axis]) as i64;
            if n > 1 {
                self.index[axis] = (self.index[axis] as i64 + by).rem_euclid(n) as usize;
                self.term = None;
                return;
            }
        }
        // The axis may be sliced away: the same place in the sibling view of another head.
        self.to_table(by > 0);
    }

    /// Axes of the view that its table does not show: name, length, place.
    pub fn turned_axes(&self) -> Vec<(&'static str, usize, usize)> {
        let Some(shape) = self.view().map(View::shape) else {
            return Vec::new();
        };
        let leading = self.index.len().saturating_sub(2);
        let axes = shape.iter().zip(&self.index).take(leading);
        axes.map(|((axis, n), at)| (axis.name(), n, *at)).collect()
    }

    /// Goes to place `at` of such an axis; false where there is none.
    pub fn set_axis(&mut self, name: &str, at: usize) -> bool {
        let axes = self.turned_axes();
        let Some(axis) = axes.iter().position(|(n, len, _)| *n == name && at < *len) else {
            return false;
        };
        self.index[axis] = at;
        self.term = None;
        true
    }

    /// Puts the cursor on a row and column of the plane that is shown of a view.
    pub fn select_in_plane(&mut self, view: usize, at: &[usize]) {
        let rank = self.step().and_then(|s| s.views.get(view)).map_or(0, |v| v.shape().rank());
        let mut index = if view == self.view { self.index.clone() } else { vec![0; rank] };
        for (slot, i) in index.iter_mut().rev().zip(at.iter().rev()) {
            *slot = *i;
        }
        self.select(view, &index);
    }

    /// Chooses a number of the derivation.
    pub fn choose_term(&mut self, term: usize) {
        self.term = Some(term);
    }
}
