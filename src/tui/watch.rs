//! Notices that files changed on disk. They are looked at from time to time: that also notices editors that put a new
//! file in the old one's place, and works on every file system.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::event::Event;
use crate::app::input::Input;

/// Time between looks: soon enough after a save, seldom enough to cost nothing.
const LOOK: Duration = Duration::from_millis(250);

/// What a file looks like from outside; nothing where it is not there.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// A file, what it looked like when it was last reported (or first seen), and at the last look.
#[derive(Clone, Debug)]
struct Watched {
    path: PathBuf,
    known: Stamp,
    last: Stamp,
}

impl Watched {
    fn new(path: PathBuf) -> Self {
        let known = stamp(&path);
        Self { path, known, last: known }
    }

    /// Looks again; true once the file is another and stays so for two looks: it is not written to any more.
    fn look(&mut self) -> bool {
        let now = stamp(&self.path);
        let settled = now == self.last;
        self.last = now;
        let changed = settled && now.is_some() && now != self.known;
        if changed {
            self.known = now;
        }
        changed
    }
}

/// Watches files in a thread of its own.
#[derive(Debug)]
pub(super) struct Watcher {
    files: Arc<Mutex<Vec<Watched>>>,
    sender: Sender<Event>,
    runs: bool,
}

impl Watcher {
    /// Watches nothing yet.
    pub(super) fn new(sender: Sender<Event>) -> Self {
        Self { files: Arc::default(), sender, runs: false }
    }

    /// Watches these files, and no others.
    pub(super) fn set(&mut self, paths: &[PathBuf]) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.iter().map(|f| &f.path).eq(paths) {
            return;
        }
        let kept = |path: &PathBuf| files.iter().find(|f| f.path == *path).cloned();
        let next = paths.iter().map(|p| kept(p).unwrap_or_else(|| Watched::new(p.clone()))).collect();
        *files = next;
        drop(files);
        if !self.runs && !paths.is_empty() {
            self.runs = self.start();
        }
    }

    fn start(&self) -> bool {
        let (files, sender) = (Arc::downgrade(&self.files), self.sender.clone());
        let run = move || {
            loop {
                std::thread::sleep(LOOK);
                let Some(files) = files.upgrade() else { return };
                let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                // Every file is looked at: one that changes with another is reported once.
                let changed = files.iter_mut().filter_map(|f| f.look().then_some(())).count();
                drop(files);
                if changed > 0 && sender.send(Event::Input(Input::Changed)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("watch".to_owned()).spawn(run).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_reported_once_it_is_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.ron");
        std::fs::write(&path, "a").expect("written");
        let mut file = Watched::new(path.clone());
        assert!(!file.look(), "nothing happened");
        std::fs::write(&path, "ab").expect("written");
        assert!(!file.look(), "it may still be written to");
        assert!(file.look(), "it stays");
        assert!(!file.look(), "once");
        std::fs::remove_file(&path).expect("removed");
        assert!(!file.look() && !file.look(), "an editor puts a new file in its place");
        std::fs::write(&path, "abc").expect("written");
        assert!(!file.look() && file.look());
    }
}
