//! How much the last frame showed, so that pages have its size.

/// Rows and columns a page moves by; the screen knows better and says so.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Rows of a table that are seen.
    pub rows: usize,
    /// Columns of a table that are seen.
    pub cols: usize,
    /// Rows of the step list that are seen.
    pub list: usize,
    /// The last line that a table of words can begin with.
    pub last_line: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self { rows: 8, cols: 8, list: 16, last_line: 0 }
    }
}
