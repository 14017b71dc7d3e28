//! What was read of a file of tensors: their numbers, and the types that these are stored in.

use std::collections::{BTreeMap, BTreeSet};

use crate::tensor::{Real, Tensor};

/// The type of a tensor's elements in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// Integers of 32 or 64 bits.
    Int,
    /// True and false, unsigned and short integers: ids, masks, or codes of quantised weights, which are no numbers by
    /// themselves. The name of the type.
    Small(&'static str),
}

/// The tensors of a file.
#[derive(Clone, Debug)]
pub struct Tensors<T: Real> {
    /// Those of numbers, by name.
    pub numbers: BTreeMap<String, Tensor<T>>,
    /// The type in the file of each of these.
    pub stored: BTreeMap<String, Stored>,
    /// The others: their type or shape, by name.
    pub unreadable: BTreeMap<String, String>,
    /// Those that were not read, as nobody wants them.
    pub skipped: BTreeSet<String>,
}

impl<T: Real> Default for Tensors<T> {
    fn default() -> Self {
        Self {
            numbers: BTreeMap::new(),
            stored: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            skipped: BTreeSet::new(),
        }
    }
}

impl<T: Real> Tensors<T> {
    /// The names of all tensors of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.numbers.keys().chain(self.unreadable.keys()).chain(&self.skipped).map(String::as_str)
    }
}
