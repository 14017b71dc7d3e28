//! What was found out about the numbers of large tensors, kept next to them so that it is not made again.
//!
//! An entry is a list of tallies of blocks of cells, one file each in a folder `measures` of a trace folder, or
//! `NAME.measures` next to a file of tensors. It is written under another name and renamed, and begins with the key of what
//! it was made from: an entry of a tensor that has changed since, a damaged one, a link or anything else that is there is
//! as good as none. So is a folder that cannot be written.
//!
//! ```text
//! "tt-meas1"  length of the key (u32)  key  number of tallies (u32)  tallies (10 × 8 bytes each)  CRC-32 of all before
//! ```

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::trace::stats::Tally;

/// The name of the folder, and the end of its name next to a file.
pub const MEASURES: &str = "measures";

/// How an entry begins.
const MAGIC: &[u8; 8] = b"tt-meas1";

/// Bytes of a tally.
const TALLY: usize = 80;

/// Entries that a folder has, at most.
const MAX_ENTRIES: usize = 4096;

/// The place of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelf {
    /// The folder; made when something is written.
    pub folder: PathBuf,
    /// Which numbers: two with one name take each other's place.
    pub what: String,
    /// What they were made from.
    pub made_from: String,
}

impl Shelf {
    fn path(&self) -> PathBuf {
        self.folder.join(format!("{:08x}.tally", crc32fast::hash(self.what.as_bytes())))
    }

    /// Everything before the tallies.
    fn head(&self, count: usize) -> Vec<u8> {
        let key = format!("{}\n{}", self.what, self.made_from);
        let mut head = MAGIC.to_vec();
        head.extend((key.len() as u32).to_le_bytes());
        head.extend(key.as_bytes());
        head.extend((count as u32).to_le_bytes());
        head
    }

    /// The `count` tallies that were kept; `None` where there are none for these numbers, or they are damaged.
    pub fn read(&self, count: usize) -> Option<Vec<Tally>> {
        let head = self.head(count);
        let length = head.len() + count * TALLY + 4;
        is_folder(&self.folder).then_some(())?;
        let path = self.path();
        // A link may lead anywhere, and a pipe never ends.
        let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        (meta.len() == length as u64).then_some(())?;
        let mut bytes = Vec::with_capacity(length);
        fs::File::open(&path).ok()?.take(length as u64).read_to_end(&mut bytes).ok()?;
        let (all, crc) = bytes.split_last_chunk::<4>()?;
        let tallies = all.strip_prefix(&head[..])?;
        (crc32fast::hash(all) == u32::from_le_bytes(*crc)).then_some(())?;
        let (each, rest) = tallies.as_chunks::<TALLY>();
        (rest.is_empty() && each.len() == count).then(|| each.iter().map(tally).collect())
    }

    /// Keeps tallies, where the folder can be written.
    pub fn write(&self, tallies: &[Tally]) {
        // What cannot be kept is made again next time.
        let _ = self.try_write(tallies);
    }

    fn try_write(&self, tallies: &[Tally]) -> io::Result<()> {
        if fs::symlink_metadata(&self.folder).is_err() {
            fs::create_dir(&self.folder)?;
        }
        if !is_folder(&self.folder) || fs::read_dir(&self.folder)?.count() >= MAX_ENTRIES {
            return Ok(());
        }
        let mut bytes = self.head(tallies.len());
        bytes.extend(tallies.iter().flat_map(numbers));
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let path = self.path();
        let temporary = path.with_extension(format!("{}.part", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        file.write_all(&bytes)
            .and_then(|()| fs::rename(&temporary, &path))
            .inspect_err(|_| drop(fs::remove_file(&temporary)))
    }
}

/// The folder for a file of tensors.
pub fn next_to(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(MEASURES);
    file.with_file_name(name)
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())
}

fn numbers(t: &Tally) -> Vec<u8> {
    let counts = [t.finite, t.nan, t.pos_inf, t.neg_inf, t.masked, t.zeros];
    let sizes = [t.min, t.max, t.sum, t.squares].map(f64::to_bits);
    counts.into_iter().chain(sizes).flat_map(u64::to_le_bytes).collect()
}

fn tally(bytes: &[u8; TALLY]) -> Tally {
    let count = |i: usize| {
        let (words, _) = bytes.as_chunks::<8>();
        u64::from_le_bytes(words[i])
    };
    let size = |i: usize| f64::from_bits(count(i));
    Tally {
        finite: count(0),
        nan: count(1),
        pos_inf: count(2),
        neg_inf: count(3),
        masked: count(4),
        zeros: count(5),
        min: size(6),
        max: size(7),
        sum: size(8),
        squares: size(9),
    }
}
