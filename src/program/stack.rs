//! The two halves of a model: the stacks of layers, and the side that each reads.

use serde::{Deserialize, Serialize};

/// The source or the target of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Side {
    /// What the encoder reads.
    Source,
    /// What the decoder reads.
    Target,
}

impl Side {
    /// `source` or `target`: its name in paths.
    pub fn name(self) -> &'static str {
        match self {
            Side::Source => "source",
            Side::Target => "target",
        }
    }
}

/// A stack of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stack {
    /// Reads the source.
    Encoder,
    /// Reads the target.
    Decoder,
}

impl Stack {
    /// `encoder` or `decoder`.
    pub fn as_str(self) -> &'static str {
        match self {
            Stack::Encoder => "encoder",
            Stack::Decoder => "decoder",
        }
    }

    /// The side it reads.
    pub fn side(self) -> Side {
        match self {
            Stack::Encoder => Side::Source,
            Stack::Decoder => Side::Target,
        }
    }
}
