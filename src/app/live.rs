//! The source that is open: opened again where its files changed on disk, or another one in its place. What could be
//! opened last stays while what is on disk has an error.

use std::path::PathBuf;

use crate::session::Session;
use crate::text::Msg;

/// What an [`Opener`] opened.
#[derive(Debug)]
pub struct Opened {
    /// The session.
    pub session: Session,
    /// What it is called in messages.
    pub name: String,
    /// What was assumed on the way.
    pub notes: Vec<Msg>,
}

/// Opens sources; how is known where the program was started.
pub trait Opener {
    /// Opens what `line` names (a source and its inputs, as on the command line), or without a line the source that is
    /// open.
    ///
    /// # Errors
    /// What is wrong with it, a line each: what and where first.
    fn open(&mut self, line: Option<&str>) -> Result<Opened, Vec<String>>;
}

/// The source that is open.
#[derive(Default)]
pub struct Live {
    /// Opens it again; nothing where the session has no source.
    pub opener: Option<Box<dyn Opener>>,
    /// Whether it is opened again by itself when its files change.
    pub watch: bool,
    /// What is wrong with what is on disk, where what is shown is from before.
    pub broken: Option<String>,
}

impl Live {
    /// The files that are watched; none where nothing is.
    pub fn files(&self, session: &Session) -> Vec<PathBuf> {
        if self.watch && self.opener.is_some() { session.files() } else { Vec::new() }
    }
}
