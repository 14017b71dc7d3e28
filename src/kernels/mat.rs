//! Matrices as strided views.

/// A view of a matrix: element `(i, j)` is `data[i·row_stride + j·col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a, T> {
    /// The elements, from `(0, 0)` on.
    pub data: &'a [T],
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Distance between rows, in elements.
    pub row_stride: usize,
    /// Distance between columns, in elements.
    pub col_stride: usize,
}

impl<'a, T> Mat<'a, T> {
    /// A contiguous matrix.
    pub fn row_major(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// Its transpose: the same memory read the other way.
    #[must_use]
    pub fn t(self) -> Self {
        Self {
            data: self.data,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// Whether every element lies inside `data`.
    pub(super) fn is_inside(&self) -> bool {
        self.rows == 0 || self.cols == 0 || {
            let last = (self.rows - 1)
                .checked_mul(self.row_stride)
                .zip((self.cols - 1).checked_mul(self.col_stride))
                .and_then(|(r, c)| r.checked_add(c));
            last.is_some_and(|last| last < self.data.len())
        }
    }
}

/// Products are accumulated in blocks of this many along `k`.
pub const BLOCK: usize = 256;
