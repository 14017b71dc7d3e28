//! What the application wants done outside of itself. Updating never does I/O: it returns these.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::debug::compare::alias::Table;
use crate::debug::compare::{Mode, Options, Reference, Tolerance, Unopened};
use crate::export::file;
use crate::export::recording::{self, Kind};
use crate::session::{RecordOptions, Session};
use crate::text::{Msg, escape};
use crate::trace::{Rounding, RunError};

/// One thing to do outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Stop, as the shell's Ctrl-Z does.
    Suspend,
    /// Draw everything anew (another program wrote over the screen).
    Redraw,
    /// Capture the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Send text to the clipboard.
    Copy {
        /// The text.
        text: String,
        /// What is said then.
        done: Msg,
    },
    /// Write a file, whole or not at all.
    Write {
        /// Where.
        path: PathBuf,
        /// What; shared, as a question before overwriting keeps it.
        bytes: Arc<Vec<u8>>,
        /// Whether an existing file may be replaced.
        overwrite: bool,
    },
    /// Open the source again, or the one that the line names.
    Open(Option<String>),
    /// Read what a run is to be compared with.
    Reference(Wanted),
    /// Keep runs in a folder, or one in a file.
    Record {
        /// Where.
        path: PathBuf,
        /// What.
        what: Recorded,
        /// Whether what is there may be replaced.
        overwrite: bool,
    },
}

/// Runs that are kept.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Of which session.
    pub session: Arc<Session>,
    /// The run, where only one fits.
    pub run: usize,
    /// How its numbers are rounded.
    pub rounding: Option<Rounding>,
}

impl PartialEq for Recorded {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.session, &other.session) && (self.run, self.rounding) == (other.run, other.rounding)
    }
}

impl Recorded {
    /// Keeps them.
    pub fn write(self, path: PathBuf, overwrite: bool) -> Report {
        let shown = escape(&path.to_string_lossy()).into_owned();
        let done = match Kind::of_path(&path) {
            Some(kind) => self.file(kind, &path, overwrite),
            None if self.rounding.is_some() => Err(Msg::new("record.rounded_folder")),
            None => {
                let options = RecordOptions { overwrite, ..RecordOptions::default() };
                self.session.record(&path, &options).map(|written| {
                    Msg::new("record.done")
                        .arg("folder", &shown)
                        .arg("nodes", written.nodes)
                        .arg("parts", written.parts)
                        .arg("bytes", written.bytes)
                        .arg("referred", written.referred)
                })
            }
        };
        match done {
            Ok(done) => Report::Done(done),
            Err(why) if why.key == "export.file.exists" && !overwrite => {
                Report::Exists { why, again: Effect::Record { path, what: self, overwrite: true } }
            }
            Err(why) => Report::Failed(why),
        }
    }

    /// The run as one file, as it is shown.
    fn file(&self, kind: Kind, path: &Path, overwrite: bool) -> Result<Msg, Msg> {
        let cannot = |e: &RunError| Msg::new("compare.cannot_run").arg("why", escape(&e.to_string()));
        let exact = self.session.trace(self.run).map_err(cannot)?;
        let rounded = self.rounding.map(|r| self.session.rounded(self.run, r)).transpose().map_err(|e| cannot(&e))?;
        let trace = rounded.as_deref().unwrap_or(exact);
        let nodes: Vec<_> = trace.program().nodes().filter(|(id, _)| trace.reached(*id)).map(|(id, _)| id).collect();
        let mut bytes = 0;
        let body = |out: &mut dyn Write| {
            let mut counted = Counted { out, bytes: 0 };
            recording::write(kind, trace, &nodes, &mut counted)?;
            bytes = counted.bytes;
            Ok(())
        };
        file::write_file(path, overwrite, body).map_err(|e| e.msg)?;
        let shown = escape(&path.to_string_lossy()).into_owned();
        Ok(Msg::new("tui.said.written").arg("path", shown).arg("bytes", bytes))
    }
}

/// Counts what is written.
struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.out.write(data)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Effect {
    /// Writes a file that does not exist yet.
    pub fn write(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        Self::Write { path: path.into(), bytes: Arc::new(bytes.into()), overwrite: false }
    }
}

/// A reference that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// A file of tensors, or a scenario.
    pub path: PathBuf,
    /// The run that is compared, by its place in the session.
    pub run: usize,
    /// Its name; a scenario's run of that name is compared with.
    pub name: String,
    /// What is computed from.
    pub mode: Mode,
    /// How near.
    pub tolerance: Tolerance,
    /// How our side rounds every number.
    pub rounding: Option<Rounding>,
    /// A file with a user's table of names.
    pub map: Option<PathBuf>,
}

impl Wanted {
    /// Reads it; a checkpoint reads what the run of `session` does.
    pub fn read(self, session: &Session) -> Report {
        let names = match self.map.as_deref().map(Table::open).transpose() {
            Ok(names) => names,
            Err(msg) => return Report::Failed(msg),
        };
        match Reference::open(&self.path, &self.name, false, None, &Reference::inputs(session, self.run)) {
            Ok(reference) => Report::Reference(Box::new(Found {
                reference,
                run: self.run,
                options: Options { mode: self.mode, tolerance: self.tolerance, names, rounding: self.rounding },
            })),
            Err(Unopened::Said(msg)) => Report::Failed(msg),
            Err(Unopened::Wrong(all)) => Report::Failed(match all.into_iter().next() {
                Some(first) => first.msg,
                None => Msg::new("compare.none_yet"),
            }),
        }
    }
}

/// A reference that was read.
#[derive(Clone, Debug)]
pub struct Found {
    /// The reference.
    pub reference: Reference,
    /// The run that is compared, by its place in the session.
    pub run: usize,
    /// How.
    pub options: Options,
}

/// What became of an effect.
#[derive(Clone, Debug)]
pub enum Report {
    /// It was done, and there is nothing to say.
    Silent,
    /// It was done; say so.
    Done(Msg),
    /// It failed; say so.
    Failed(Msg),
    /// The file exists: ask, then do this.
    Exists {
        /// What is said where no question can be put.
        why: Msg,
        /// What yes does.
        again: Effect,
    },
    /// A reference was read: compare.
    Reference(Box<Found>),
}
