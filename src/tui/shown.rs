//! What a frame showed, and where.

use ratatui::layout::Rect;

use crate::app::navigator::TreeRow;
use crate::app::page::Page;
use crate::program::NodeId;

/// Something on the screen that the mouse can hit.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A row of the step list.
    Row(TreeRow),
    /// A cell of a view of the step.
    Cell(usize, Vec<usize>),
    /// A number of the derivation.
    Term(usize),
}

/// A table on the stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownTable {
    /// Its run.
    pub run: usize,
    /// Its node.
    pub node: NodeId,
    /// Where it is.
    pub area: Rect,
}

/// What a frame says with `=`: that these tables, joined by their signs, are the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The run.
    pub run: usize,
    /// The tables before the sign.
    pub tables: Vec<NodeId>,
    /// What is written between them.
    pub signs: Vec<&'static str>,
    /// What is done to all of it at the end, `/ 1.4142`; empty for nothing.
    pub after: String,
    /// The table behind it.
    pub result: NodeId,
}

/// What a frame showed.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Sizes of pages.
    pub page: Page,
    /// What lies where.
    pub hits: Vec<(Rect, Target)>,
    /// Tables of the stage.
    pub tables: Vec<ShownTable>,
    /// What was claimed to be equal.
    pub claims: Vec<Claim>,
    /// Inside of the frame of the view.
    pub main: Rect,
}
