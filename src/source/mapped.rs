//! A regular file mapped into memory.

use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use crate::text::{Msg, escape};

/// The bytes of a file, read by the system as they are looked at.
#[derive(Clone, Debug)]
pub struct Mapped {
    path: Arc<PathBuf>,
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Arc<Mmap>>,
}

impl Mapped {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// Where it is not there, cannot be read, or is no regular file (a folder, a pipe, a device).
    pub fn open(path: &Path) -> Result<Self, Msg> {
        let failed = |why: &dyn std::fmt::Display| {
            Msg::new("source.unreadable").arg("file", escape(&path.to_string_lossy())).arg("why", why)
        };
        // Asked before opening: to open a pipe would wait for who writes to it.
        let kind = std::fs::metadata(path).map_err(|e| failed(&e))?;
        if !kind.is_file() {
            return Err(Msg::new("source.not_a_file").arg("file", escape(&path.to_string_lossy())));
        }
        let file = File::open(path).map_err(|e| failed(&e))?;
        let len = file.metadata().map_err(|e| failed(&e))?.len();
        let map = if len == 0 {
            None
        } else {
            // SAFETY: the map is only read, and only as bytes. A process that changes or truncates the file meanwhile
            // can change those bytes (all of them are valid) or end this process with SIGBUS, as with every mapped file;
            // checkpoints are written once and then only read.
            #[allow(unsafe_code, reason = "mapping a file has no safe form")]
            let map = unsafe { Mmap::map(&file) }.map_err(|e| failed(&e))?;
            Some(Arc::new(map))
        };
        Ok(Self { path: Arc::new(path.to_owned()), map })
    }

    /// The map itself; `None` for an empty file.
    pub fn map(&self) -> Option<&Arc<Mmap>> {
        self.map.as_ref()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path, escaped for messages.
    pub fn name(&self) -> String {
        escape(&self.path.to_string_lossy()).into_owned()
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_ref().map_or(&[], |m| m)
    }
}
