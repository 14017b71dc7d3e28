//! A tensor as the header of its file describes it.

use std::fmt;
use std::ops::Range;

use safetensors::Dtype;

use super::ggml::GgmlType;

/// How the numbers of a tensor are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// A type of safetensors files.
    Plain(Dtype),
    /// A type of GGUF files.
    Ggml(GgmlType),
}

impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(t) => write!(f, "{t:?}"),
            Self::Ggml(t) => write!(f, "{t}"),
        }
    }
}

/// A tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the file.
    pub name: String,
    /// Its shape, outermost axis first.
    pub shape: Vec<usize>,
    /// How its numbers are stored.
    pub number_type: NumberType,
    /// Its bytes in the file.
    pub range: Range<usize>,
}
