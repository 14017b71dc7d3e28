//! Writing a trace folder: parts of bounded size, each whole before it has its name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{JOURNAL, PartEntry};
use crate::tensor::{DType, Precision, Real, Shape, Value};

/// Bytes that are turned into the file's order of bytes at once.
const CHUNK: usize = 1 << 20;

/// The type of element of a part: all its tensors have the same one, so that each is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// binary32.
    F32,
    /// binary64.
    F64,
    /// 64-bit integers.
    I64,
    /// One byte, 0 or 1.
    Bool,
    /// One byte: reasons of a mask.
    U8,
}

impl Class {
    /// That of a value.
    pub fn of(dtype: DType, precision: Precision) -> Self {
        match (dtype, precision) {
            (DType::Float, Precision::F32) => Class::F32,
            (DType::Float, Precision::F64) => Class::F64,
            (DType::Int, _) => Class::I64,
            (DType::Bool, _) => Class::Bool,
        }
    }

    /// Its name in a header.
    pub fn name(self) -> &'static str {
        match self {
            Class::F32 => "F32",
            Class::F64 => "F64",
            Class::I64 => "I64",
            Class::Bool => "BOOL",
            Class::U8 => "U8",
        }
    }

    /// Bytes an element.
    pub fn size(self) -> usize {
        match self {
            Class::F32 => 4,
            Class::F64 | Class::I64 => 8,
            Class::Bool | Class::U8 => 1,
        }
    }
}

/// A tensor of a part that is to be written.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Shape,
}

/// A part being written. Its header is known from the start, and written when all the data is there.
#[derive(Debug)]
pub struct PartWriter {
    file: File,
    temporary: PathBuf,
    name: String,
    header: Vec<u8>,
    class: Class,
    left: usize,
    tensors: usize,
    crc: crc32fast::Hasher,
    written: u64,
    buffer: Vec<u8>,
}

/// A folder being written.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    journal: File,
    /// Finished parts.
    pub parts: Vec<PartEntry>,
}

impl Writer {
    /// Begins in an empty folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        let journal = OpenOptions::new().create_new(true).append(true).open(folder.join(JOURNAL))?;
        Ok(Self { folder: folder.to_owned(), journal, parts: Vec::new() })
    }

    /// Writes a small file whole: under another name first.
    ///
    /// # Errors
    /// Those of the system.
    pub fn file(&mut self, name: &str, text: &impl Serialize) -> io::Result<PartEntry> {
        let bytes = serde_json::to_vec(text)?;
        let temporary = self.folder.join(format!("{name}.part"));
        let mut file = File::create(&temporary)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, self.folder.join(name))?;
        Ok(PartEntry { file: name.to_owned(), bytes: bytes.len() as u64, crc32: crc32fast::hash(&bytes), tensors: 0 })
    }

    /// Begins a part that holds `tensors`, in this order.
    ///
    /// # Errors
    /// Those of the system.
    pub fn part(&self, name: &str, class: Class, tensors: &[Planned]) -> io::Result<PartWriter> {
        let name = format!("{name}.{}.safetensors", class.name().to_lowercase());
        let mut at = 0;
        let mut entries = serde_json::Map::new();
        for tensor in tensors {
            let end = at + tensor.shape.len() * class.size();
            let entry = serde_json::json!({
                "dtype": class.name(), "shape": tensor.shape.dims(), "data_offsets": [at, end],
            });
            entries.insert(tensor.name.clone(), entry);
            at = end;
        }
        let mut text = serde_json::to_vec(&entries)?;
        text.resize(text.len().next_multiple_of(8), b' ');
        let mut header = (text.len() as u64).to_le_bytes().to_vec();
        header.extend(text);
        let temporary = self.folder.join(format!("{name}.part"));
        let mut file = File::create(&temporary)?;
        file.seek(SeekFrom::Start(header.len() as u64))?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header);
        let written = header.len() as u64;
        let tensors = tensors.len();
        Ok(PartWriter {
            file,
            temporary,
            name,
            header,
            class,
            left: tensors,
            tensors,
            crc,
            written,
            buffer: Vec::with_capacity(CHUNK),
        })
    }

    /// Ends a part: its data is there, its header is written, and it gets its name; then it is listed.
    ///
    /// # Errors
    /// Those of the system; tensors that were planned and not written.
    pub fn finish(&mut self, part: PartWriter) -> io::Result<PartEntry> {
        let PartWriter { mut file, temporary, name, header, left, tensors, crc, written, .. } = part;
        if left > 0 {
            return Err(io::Error::other(format!("{name}: {left} tensors were not written")));
        }
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header)?;
        drop(file);
        fs::rename(&temporary, self.folder.join(&name))?;
        let entry = PartEntry { file: name, bytes: written, crc32: crc.finalize(), tensors };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.journal.write_all(&line)?;
        self.parts.push(entry.clone());
        Ok(entry)
    }
}

impl PartWriter {
    /// The name that it will have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether all its tensors are written.
    pub fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Writes the next tensor.
    ///
    /// # Errors
    /// Those of the system.
    pub fn value<T: Real>(&mut self, value: &Value<T>) -> io::Result<()> {
        match value {
            Value::Float(t) if T::PRECISION == Precision::F32 => {
                self.elements(t.data(), |x| (x.bits() as u32).to_le_bytes())
            }
            Value::Float(t) => self.elements(t.data(), |x| x.bits().to_le_bytes()),
            Value::Int(t) => self.elements(t.data(), |x| x.to_le_bytes()),
            Value::Bool(t) => self.elements(t.data(), |x| [u8::from(*x)]),
        }
    }

    /// Writes the next tensor from elements.
    ///
    /// # Errors
    /// Those of the system.
    pub fn elements<E, const N: usize>(&mut self, data: &[E], bytes: impl Fn(&E) -> [u8; N]) -> io::Result<()> {
        debug_assert_eq!(N, self.class.size());
        for chunk in data.chunks(CHUNK / N) {
            self.buffer.clear();
            self.buffer.extend(chunk.iter().flat_map(&bytes));
            self.crc.update(&self.buffer);
            self.file.write_all(&self.buffer)?;
            self.written += self.buffer.len() as u64;
        }
        self.left = self.left.saturating_sub(1);
        Ok(())
    }
}
