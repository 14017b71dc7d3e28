//! The numbered steps: what a user pages through.
//!
//! A [`Step`] has a number, a section, a phase, a title, a note and views; a [`View`] is a node, a slice of it and a
//! symbol. Steps come from the scenario or from [`plan`]; any step [`expand`]s into sub-steps, down to primitives.

mod backward;
mod expand;
mod names;
mod plan;
mod update;

use std::fmt::Write as _;
use std::sync::Arc;

use crate::program::{Name, NodeId, Program, Role as Quantity, Site};
use crate::tensor::slice::{Pick, ResolvedSlice, Slice};
use crate::tensor::{Axis, Shape};
use crate::text::{Lang, Msg};
use crate::trace::derive::Cell;

pub use backward::{Start, backward_plan};
pub use expand::expand;
pub use names::{Location, phase_name, short_title};
pub use plan::{Detail, plan, title_of};
pub use update::update_plan;

/// Text from the scenario or from the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalizedText {
    /// None.
    Empty,
    /// From the scenario, in both languages. Untrusted.
    Given {
        /// English.
        en: Arc<str>,
        /// Chinese.
        zh: Arc<str>,
    },
    /// From the catalogue.
    Message(Msg),
    /// From the catalogue, with where a node stands.
    At(Msg, Location),
    /// One after the other.
    Joined(Vec<LocalizedText>),
}

impl LocalizedText {
    /// These words and then a message.
    #[must_use]
    pub fn and(self, msg: Msg) -> Self {
        match self {
            LocalizedText::Empty => LocalizedText::Message(msg),
            words => LocalizedText::Joined(vec![words, LocalizedText::Message(msg)]),
        }
    }

    /// The text in `lang`; the other language where a scenario gives only one.
    pub fn render(&self, lang: Lang) -> String {
        match self {
            LocalizedText::Empty => String::new(),
            LocalizedText::Given { en, zh } => {
                let (first, second) = if lang == Lang::Zh { (zh, en) } else { (en, zh) };
                if first.is_empty() { second.to_string() } else { first.to_string() }
            }
            LocalizedText::Message(msg) => msg.render(lang),
            LocalizedText::At(msg, place) => msg.clone().arg("where", place.render(lang)).render(lang),
            LocalizedText::Joined(parts) => {
                let texts: Vec<String> = parts.iter().map(|p| p.render(lang)).collect();
                texts.join(if lang == Lang::Zh { "" } else { " " })
            }
        }
    }
}

/// What a view is in its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A result of the step.
    Result,
    /// A number on the way to it: exp, sums, means.
    Auxiliary,
}

/// A tensor of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Symbol, such as `score1`.
    pub symbol: String,
    /// Which run, by its place in the session.
    pub run: usize,
    /// The node.
    pub node: NodeId,
    /// The slice as written; empty for the whole.
    pub slice: Slice,
    /// The slice, batch axes of 1 and the like left out.
    pub cells: ResolvedSlice,
    /// What it is in the step.
    pub role: Role,
    /// What the symbol names, where that is more than this view: `PE` of a step that shows its second row only. Cells
    /// are counted in it.
    pub whole: Option<ResolvedSlice>,
}

impl View {
    /// A view of `slice` of `node`.
    ///
    /// # Errors
    /// Where the slice does not fit the node's shape.
    pub fn new(
        program: &Program,
        run: usize,
        node: NodeId,
        symbol: impl Into<String>,
        slice: Slice,
    ) -> Result<Self, Msg> {
        let cells = Self::cells_of(&slice, &program.node(node).shape)?;
        let role = if is_auxiliary(&program.node(node).name) { Role::Auxiliary } else { Role::Result };
        Ok(Self { symbol: symbol.into(), run, node, slice, cells, role, whole: None })
    }

    /// The cells of a slice of a tensor, batch axes of 1 and the like left out.
    ///
    /// # Errors
    /// Where the slice does not fit the shape.
    pub fn cells_of(slice: &Slice, shape: &Shape) -> Result<ResolvedSlice, Msg> {
        Ok(shown(slice, shape).resolve(shape)?)
    }

    /// Shape of what is seen.
    pub fn shape(&self) -> Shape {
        self.cells.shape()
    }

    /// The cell at `index` of the view.
    pub fn cell(&self, index: &[usize]) -> Cell {
        Cell { node: self.node, flat: self.cells.flat(index) }
    }

    /// The index in the view of a cell, where it is inside.
    pub fn index_of(&self, cell: Cell) -> Option<Vec<usize>> {
        if cell.node == self.node { self.cells.index_of(cell.flat) } else { None }
    }

    /// What the symbol names: these cells, or a tensor that they are a part of.
    pub fn named(&self) -> &ResolvedSlice {
        self.whole.as_ref().unwrap_or(&self.cells)
    }

    /// `symbol[i][j]` for the cell at `index` of the view, counted in what the symbol names.
    pub fn cell_name(&self, index: &[usize]) -> String {
        let mut name = self.symbol.clone();
        let in_whole = self.whole.as_ref().and_then(|whole| whole.index_of(self.cells.flat(index)));
        for i in in_whole.as_deref().unwrap_or(index) {
            let _ = write!(name, "[{i}]");
        }
        name
    }
}

/// A batch axis of 1, and leading axes of 1, are not shown unless a slice asks for them.
fn shown(slice: &Slice, shape: &Shape) -> Slice {
    let mut out = slice.clone();
    let named = |axis: Axis| slice.picks().iter().any(|(a, _)| *a == axis);
    for (axis, n) in shape.iter().take(shape.rank().saturating_sub(2)) {
        if n == 1 && matches!(axis, Axis::Batch | Axis::One) && !named(axis) {
            out = out.and(axis, Pick::At(0));
        }
    }
    // [batch, token] of one sequence is a row of tokens.
    if shape.rank() == 2 && shape.axes()[0] == Axis::Batch && shape.dims()[0] == 1 && !named(Axis::Batch) {
        out = out.and(Axis::Batch, Pick::At(0));
    }
    out
}

/// Whether a node is a number on the way: exp and sums of a softmax, μ and σ² of a norm.
pub fn is_auxiliary(name: &Name) -> bool {
    match name.last() {
        Quantity::Mean => !name.is_gradient() && name.site != Site::Loss,
        Quantity::Max
        | Quantity::Shift
        | Quantity::Exp
        | Quantity::Sum
        | Quantity::Var
        | Quantity::MeanSquare
        | Quantity::ScoresRaw
        | Quantity::Mask
        | Quantity::MaskBias => !name.is_gradient(),
        _ => false,
    }
}

/// A numbered step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Number; sub-steps have more than one entry (40.1 is `[40, 1]`).
    pub number: Vec<u32>,
    /// Section, such as `5.10`.
    pub section: String,
    /// Phase, such as `encoder.1`.
    pub phase: String,
    /// Which run, by its place in the session.
    pub run: usize,
    /// Title.
    pub title: LocalizedText,
    /// Note.
    pub note: LocalizedText,
    /// Formula; empty to have it written from the program.
    pub formula: String,
    /// Tensors, in reading order.
    pub views: Vec<View>,
}

/// The number of a step as it is written: `40`, or `40.1` for a sub-step. `None` where it is none.
pub fn step_number(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|part| part.trim().parse().ok()).collect()
}

impl Step {
    /// `40.1`.
    pub fn label(&self) -> String {
        self.number.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
    }

    /// Its results; all views where none is marked.
    pub fn results(&self) -> impl Iterator<Item = &View> {
        let any = self.views.iter().any(|v| v.role == Role::Result);
        self.views.iter().filter(move |v| !any || v.role == Role::Result)
    }

    /// The view that holds `cell`, results before auxiliaries.
    pub fn view_of(&self, run: usize, cell: Cell) -> Option<(usize, Vec<usize>)> {
        let find = |role: Role| {
            self.views
                .iter()
                .enumerate()
                .filter(|(_, v)| v.run == run && v.role == role)
                .find_map(|(i, v)| v.index_of(cell).map(|at| (i, at)))
        };
        find(Role::Result).or_else(|| find(Role::Auxiliary))
    }
}
