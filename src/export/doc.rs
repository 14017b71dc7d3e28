//! What is exported: plain data, the same for every format.

use std::collections::BTreeMap;
use std::io;

pub use crate::session::Table;
use crate::text::NumberFormat;
use crate::text::number::{exact, exact_f32};

/// One step, ready to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepDoc {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the run.
    pub run: String,
    /// Number of the step; sub-steps have more than one entry (40.1 is `[40, 1]`).
    pub step: Vec<u32>,
    /// Section, such as `5.10`; may be empty.
    pub section: String,
    /// Phase, such as `encoder.1`.
    pub phase: String,
    /// Title in the reader's language.
    pub title: String,
    /// Formula, such as `score1 = Q1 · K1ᵀ / √2`; may be empty.
    pub formula: String,
    /// Note in the reader's language; may be empty.
    pub note: String,
    /// What the step's tensors are computed from, for people; never in JSON, CSV, TSV.
    pub inputs: Vec<TensorDoc>,
    /// The step's tensors.
    pub tensors: Vec<TensorDoc>,
    /// A table of texts, where the step compares runs instead of showing tensors. Untrusted text.
    pub table: Option<Table>,
    /// One line a cell.
    pub derivations: Vec<DerivationDoc>,
    /// Cells whose derivation was left out because the step is too large; 0 where all are there.
    pub derivations_left_out: usize,
}

/// One tensor of a step: any rank, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorDoc {
    /// Symbol, such as `score1`.
    pub symbol: String,
    /// Path, such as `encoder.0.self_attn.scores`.
    pub path: String,
    /// Slice of the path, such as `head=0`; empty for the whole.
    pub slice: String,
    /// Shape of the slice.
    pub shape: Vec<usize>,
    /// Names of the axes.
    pub axes: Vec<&'static str>,
    /// Labels of the rows (second last axis); empty where there are none. Untrusted text.
    pub rows: Vec<String>,
    /// Labels of the columns (last axis); empty where there are none. Untrusted text.
    pub columns: Vec<String>,
    /// The values, row-major, at full precision.
    pub values: CellValues,
    /// Masked scores: values below −1e8 are shown as −∞ in tables for people (never in JSON, CSV, TSV).
    pub masked: bool,
    /// Labels of rows and columns of each sentence, where the tensor is of several (first axis); empty otherwise.
    pub sentences: Vec<(Vec<String>, Vec<String>)>,
    /// Words that ids denote, row-major, for people; empty where the values are no ids. Untrusted text.
    pub names: Vec<String>,
    /// Cells that tables for people leave blank, and the number of each blank (worksheets).
    pub blanks: BTreeMap<usize, usize>,
    /// The same cells in a recording that the run is laid next to.
    pub reference: Option<ReferenceDoc>,
}

/// What a recording has where a tensor of ours is.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceDoc {
    /// Its name there. Untrusted text.
    pub name: String,
    /// Its values as ours lie; NaN where it has no such cell.
    pub values: CellValues,
    /// Ours, computed from the recording's operands.
    pub recomputed: CellValues,
}

/// Values of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValues {
    /// Numbers computed in f64.
    F64(Vec<f64>),
    /// Numbers computed in f32 (they print shortest as f32).
    F32(Vec<f32>),
    /// Integers.
    Int(Vec<i64>),
    /// Masks, true where masked.
    Bool(Vec<bool>),
}

/// The derivation of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivationDoc {
    /// Symbol of the tensor.
    pub symbol: String,
    /// Index of the cell in the slice.
    pub index: Vec<usize>,
    /// The line.
    pub text: String,
    /// Its value, at full precision.
    pub value: f64,
}

/// One cell of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// Computed in f64.
    F64(f64),
    /// Computed in f32.
    F32(f32),
    /// An integer.
    Int(i64),
    /// Masked or not.
    Bool(bool),
}

/// Scores below this were hidden by a mask: a table for people shows them as −∞.
const MASKED_BELOW: f64 = -1e8;

impl StepDoc {
    /// Its number as text: `40`, or `40.1` for a sub-step.
    pub fn number(&self) -> String {
        let parts: Vec<String> = self.step.iter().map(u32::to_string).collect();
        parts.join(".")
    }

    /// Checks what every writer relies on: each tensor has as many values as its shape says.
    ///
    /// # Errors
    /// `InvalidInput`, naming the tensor.
    pub(super) fn check(&self) -> io::Result<()> {
        for tensor in &self.tensors {
            let cells = tensor.shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(d));
            if cells != Some(tensor.values.len()) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!(
                        "step {}: {} has shape {:?} and {} values",
                        self.number(),
                        tensor.path,
                        tensor.shape,
                        tensor.values.len()
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl TensorDoc {
    /// Path and slice: `encoder.0.self_attn.scores[head=0]`.
    pub fn place(&self) -> String {
        if self.slice.is_empty() { self.path.clone() } else { format!("{}[{}]", self.path, self.slice) }
    }

    /// Lengths and names of the axes: `query 4 × key 4`; empty for a scalar.
    pub fn shape_text(&self) -> String {
        let axes: Vec<String> = self
            .shape
            .iter()
            .enumerate()
            .map(|(i, n)| match self.axes.get(i) {
                Some(&name) if name != "dim" && !name.is_empty() => format!("{name} {n}"),
                _ => n.to_string(),
            })
            .collect();
        axes.join(" × ")
    }

    /// Whether `x` is a score that a mask hid.
    pub fn hides(&self, x: f64) -> bool {
        self.masked && x < MASKED_BELOW
    }

    /// A cell as a user reads it. `flat` is its row-major position.
    pub fn shown(&self, flat: usize, number: NumberFormat) -> String {
        if let Some(blank) = self.blanks.get(&flat) {
            return format!("({blank}) ……");
        }
        match self.values.get(flat) {
            Some(cell) if self.hides(cell.to_f64()) => number.format(f64::NEG_INFINITY),
            Some(Cell::F64(x)) => number.format(x),
            Some(Cell::F32(x)) => number.format_f32(x),
            Some(Cell::Int(i)) => i.to_string(),
            Some(Cell::Bool(b)) => u8::from(b).to_string(),
            None => String::new(),
        }
    }
}

impl CellValues {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::Int(v) => v.len(),
            Self::Bool(v) => v.len(),
        }
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cell at row-major position `flat`.
    pub fn get(&self, flat: usize) -> Option<Cell> {
        match self {
            Self::F64(v) => v.get(flat).copied().map(Cell::F64),
            Self::F32(v) => v.get(flat).copied().map(Cell::F32),
            Self::Int(v) => v.get(flat).copied().map(Cell::Int),
            Self::Bool(v) => v.get(flat).copied().map(Cell::Bool),
        }
    }
}

impl Cell {
    /// The value as a number; a mask is 1 or 0.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::F64(x) => x,
            Self::F32(x) => f64::from(x),
            Self::Int(i) => i as f64,
            Self::Bool(b) => f64::from(u8::from(b)),
        }
    }

    /// For a program, at full precision: shortest that reads back, `nan`, `inf`, `-inf`, `true`, `false`.
    pub fn exact(self) -> String {
        match self {
            Self::F64(x) => exact(x),
            Self::F32(x) => exact_f32(x),
            Self::Int(i) => i.to_string(),
            Self::Bool(b) => b.to_string(),
        }
    }
}
