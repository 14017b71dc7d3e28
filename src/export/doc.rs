//! What is exported: plain data, the same for every format.

/// One step, ready to be written.
#[derive(Clone, Debug, PartialEq)]
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
    /// The step's tensors.
    pub tensors: Vec<TensorDoc>,
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
