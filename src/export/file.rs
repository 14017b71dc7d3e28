//! Files written whole or not at all.
//!
//! A new file is written next to the old one, synced, and renamed over it: a full disk, an error or a kill
//! leaves what was there before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::text::{Msg, escape};

/// Where output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl Target {
    /// Standard output for no path and for `-`, else the file.
    pub fn new(path: Option<&Path>) -> Self {
        match path {
            None => Self::Stdout,
            Some(p) if p == Path::new("-") => Self::Stdout,
            Some(p) => Self::File(p.to_owned()),
        }
    }

    /// Gives `body` a buffered sink. A file is there afterwards only if all went well, and an existing one is
    /// replaced only with `overwrite`.
    ///
    /// # Errors
    /// See [`write_file`]. On standard output, a reader that went away is [`Error::is_broken_pipe`].
    pub fn write(&self, overwrite: bool, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        match self {
            Self::File(path) => write_file(path, overwrite, body),
            Self::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                body(&mut out).and_then(|()| out.flush()).map_err(|source| Error {
                    msg: Msg::new("export.file.stdout").arg("error", &source),
                    source: Some(source),
                })
            }
        }
    }
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
#[error("{msg}")]
pub struct Error {
    /// For the reader.
    pub msg: Msg,
    /// What the system said, where it said something.
    pub source: Option<io::Error>,
}

impl Error {
    /// Whether the reader of standard output went away, which is no fault.
    pub fn is_broken_pipe(&self) -> bool {
        self.source.as_ref().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    }

    fn plain(key: &'static str, path: &Path) -> Self {
        Self { msg: Msg::new(key).arg("path", escape(&path.to_string_lossy())), source: None }
    }

    fn io(path: &Path, source: io::Error) -> Self {
        let name = escape(&path.to_string_lossy()).into_owned();
        let key = match source.kind() {
            io::ErrorKind::PermissionDenied => "export.file.denied",
            io::ErrorKind::StorageFull => "export.file.full",
            io::ErrorKind::ReadOnlyFilesystem => "export.file.read_only",
            _ => "export.file.failed",
        };
        let mut msg = Msg::new(key).arg("path", name);
        if key == "export.file.failed" {
            msg = msg.arg("error", &source);
        }
        Self { msg, source: Some(source) }
    }
}

/// Writes a file whole or not at all.
///
/// A link is followed: what it points to is replaced. A device or pipe (`/dev/null`) is written to directly.
/// The permissions of a replaced file are kept.
///
/// # Errors
/// Where the file exists and `overwrite` is false, its folder does not exist, the path is a folder, the system
/// refuses, or `body` fails. Then nothing has changed.
pub fn write_file(
    path: &Path,
    overwrite: bool,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let fail = |e| Error::io(path, e);
    let old = match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return Err(Error::plain("export.file.is_folder", path)),
        Ok(meta) if !meta.is_file() => return write_device(path, body).map_err(fail),
        Ok(_) if !overwrite => return Err(Error::plain("export.file.exists", path)),
        Ok(meta) => Some(meta.permissions()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(fail(e)),
    };
    let target = if old.is_some() { fs::canonicalize(path).map_err(fail)? } else { path.to_owned() };
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(Error::plain("export.file.no_folder", folder));
    }
    signals::listen();
    let mut temporary = new_beside(folder, &target).map_err(fail)?;
    let _listed = signals::Listed::new(temporary.path());
    {
        let mut out = BufWriter::new(temporary.as_file_mut());
        body(&mut out).and_then(|()| out.flush()).map_err(fail)?;
    }
    if let Some(permissions) = old {
        fs::set_permissions(temporary.path(), permissions).map_err(fail)?;
    }
    temporary.as_file().sync_all().map_err(fail)?;
    let renamed = if overwrite { temporary.persist(&target) } else { temporary.persist_noclobber(&target) };
    match renamed {
        Ok(_) => {}
        // Someone made the file while we wrote ours.
        Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Error::plain("export.file.exists", path));
        }
        Err(e) => return Err(fail(e.error)),
    }
    sync_folder(folder);
    Ok(())
}

const SUFFIX: &str = ".part";

/// How the names of unfinished files of `target` begin, in any process.
fn prefix_of(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default();
    let bytes = name.as_encoded_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    format!(".tui-transformer-{hash:016x}-")
}

/// Removes what processes that were killed left of the same target. Whoever still writes holds a lock.
fn sweep(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix)
            && name.ends_with(SUFFIX)
            && let Ok(file) = OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn new_beside(folder: &Path, target: &Path) -> io::Result<tempfile::NamedTempFile> {
    let prefix = prefix_of(target);
    sweep(folder, &prefix);
    // Another process may sweep it away before it is locked: then once more.
    loop {
        let file = new_part(folder, &prefix)?;
        // Where a file system has no locks, nothing is swept away either.
        if file.as_file().try_lock().is_err() || file.path().exists() {
            return Ok(file);
        }
    }
}

fn new_part(folder: &Path, prefix: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(SUFFIX);
    #[cfg(unix)]
    {
        // As any new file: the process's umask decides, not the private mode of a temporary file.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

fn write_device(path: &Path, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
    body(&mut out)?;
    out.flush()
}

/// Unfinished files do not outlive a signal that ends the process.
pub mod signals {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    /// Files that are being written.
    static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    /// Whether this process wants its signals taken care of here.
    static WANTED: AtomicBool = AtomicBool::new(false);

    /// A file on the list, as long as this lives.
    pub(super) struct Listed(PathBuf);

    impl Listed {
        pub(super) fn new(path: &Path) -> Self {
            UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
            Self(path.to_owned())
        }
    }

    impl Drop for Listed {
        fn drop(&mut self) {
            UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|p| *p != self.0);
        }
    }

    /// Says whether a signal that ends the process removes unfinished files here; a program that catches these signals
    /// itself calls [`abandon`] in their place.
    pub fn want(wanted: bool) {
        WANTED.store(wanted, Ordering::SeqCst);
    }

    /// Removes unfinished files: the process is about to end.
    pub fn abandon() {
        if let Ok(paths) = UNFINISHED.try_lock() {
            for path in paths.iter() {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Listens from the first file on.
    pub(super) fn listen() {
        static ONCE: std::sync::Once = std::sync::Once::new();
        if WANTED.load(Ordering::SeqCst) {
            ONCE.call_once(start);
        }
    }

    #[cfg(unix)]
    fn start() {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGXCPU]) else {
            return;
        };
        let wait = move || {
            if let Some(signal) = signals.forever().next() {
                abandon();
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                std::process::exit(128 + signal);
            }
        };
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
    }

    #[cfg(not(unix))]
    fn start() {}
}

/// Makes the rename itself last. The file is already whole: a system that cannot do this loses nothing.
fn sync_folder(folder: &Path) {
    if cfg!(unix)
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"hello")
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn writes_and_refuses_to_overwrite() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("课.csv");
        write_file(&path, false, hello).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        let again = write_file(&path, false, |_| panic!("the old file is not asked for"));
        assert_eq!(again.unwrap_err().msg.key, "export.file.exists");
        write_file(&path, true, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["课.csv"]);
    }

    #[test]
    fn a_failure_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let full = write_file(&path, true, |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(full.unwrap_err().msg.key, "export.file.full");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["a.json"]);
    }

    #[test]
    fn a_file_made_meanwhile_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.md");
        let raced = write_file(&path, false, |out| {
            fs::write(&path, "theirs")?;
            hello(out)
        });
        assert_eq!(raced.unwrap_err().msg.key, "export.file.exists");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn what_a_killed_process_left_goes_with_the_next_save() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.md");
        let left = dir.path().join(format!("{}dead{SUFFIX}", prefix_of(&path)));
        let other = dir.path().join(format!("{}dead{SUFFIX}", prefix_of(Path::new("b.md"))));
        let held = dir.path().join(format!("{}alive{SUFFIX}", prefix_of(&path)));
        for file in [&left, &other, &held] {
            fs::write(file, "half").unwrap();
        }
        let lock = OpenOptions::new().write(true).open(&held).unwrap();
        lock.lock().unwrap();
        write_file(&path, true, hello).unwrap();
        assert!(!left.exists() && other.exists() && held.exists());
    }

    #[test]
    fn clear_errors() {
        let dir = tempfile::tempdir().unwrap();
        let key = |path: &Path| write_file(path, true, hello).unwrap_err().msg.key;
        assert_eq!(key(dir.path()), "export.file.is_folder");
        assert_eq!(key(&dir.path().join("missing").join("a.md")), "export.file.no_folder");
    }

    #[cfg(unix)]
    #[test]
    fn links_devices_and_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        write_file(&link, true, hello).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"hello");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write_file(Path::new("/dev/null"), false, hello).unwrap();
    }

    #[test]
    fn a_dash_is_standard_output() {
        assert_eq!(Target::new(Some(Path::new("-"))), Target::Stdout);
        assert_eq!(Target::new(None), Target::Stdout);
        let file = Path::new("a.md");
        assert_eq!(Target::new(Some(file)), Target::File(file.to_owned()));
    }
}
