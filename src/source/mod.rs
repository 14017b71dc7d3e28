//! Files that models come from: tensors in safetensors and GGUF files, mapped and widened once, and tokenizers; what
//! other programs recorded; runs that were kept in a folder.
//!
//! Knows file formats and nothing of models: names are the files' own.

mod entry;
pub mod ggml;
pub mod gguf;
mod gguf_vocab;
pub mod mapped;
pub mod measures;
pub mod recording;
pub mod tensor_file;
pub mod tokenizer;
pub mod trace;

pub use entry::{Entry, NumberType};
pub use gguf::Gguf;
pub use mapped::Mapped;
pub use tensor_file::TensorFile;
pub use tokenizer::{Encoding, Tokenizer};
