//! A safetensors file written as its tensors come: the header first, then one tensor after the other, none of them all
//! in memory at once.

use std::collections::BTreeMap;
use std::io::{self, Write};

use safetensors::Dtype;
use serde_json::{Map, Value as Json, json};

/// A tensor to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// The type of its numbers.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<usize>,
}

impl Described {
    /// Its bytes in the file.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bitsize() / 8
    }
}

/// Writes the header of a file of `tensors`. Their bytes follow in the same order.
///
/// # Errors
/// Those of `out`.
pub fn write_header(out: &mut dyn Write, tensors: &[Described], metadata: &BTreeMap<String, String>) -> io::Result<()> {
    let mut header = Map::new();
    if !metadata.is_empty() {
        header.insert("__metadata__".to_owned(), json!(metadata));
    }
    let mut at = 0;
    for t in tensors {
        let end = at + t.bytes();
        header.insert(t.name.clone(), json!({"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, end]}));
        at = end;
    }
    let mut header = Json::from(header).to_string().into_bytes();
    // The data begins at a multiple of 8.
    header.resize(header.len().next_multiple_of(8), b' ');
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)
}
