//! Numbers that stay in a mapped file: nothing is read before it is looked at.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use super::elem::{Elem, Plain};

/// Maps a whole regular file for reading.
///
/// # Errors
/// Where it cannot be opened, or is no regular file (a pipe would wait, a device has no end).
pub fn map_file(path: &Path) -> io::Result<Arc<Mmap>> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let file = File::open(path)?;
    // SAFETY: the mapping is private and read only. As with every mapped file, another process must not shorten it
    // meanwhile; our own writers replace files and never shorten them.
    let map = unsafe { Mmap::map(&file)? };
    Ok(Arc::new(map))
}

/// Lets the memory go that a part of a mapped file took; it is read again where it is looked at again.
#[cfg(target_os = "linux")]
pub fn forget(map: &Mmap, range: std::ops::Range<usize>) {
    if range.start < range.end && range.end <= map.len() {
        // SAFETY: the mapping is of a file, read only: nothing was written to it that could be lost, and pages that are
        // dropped are read from the file again, with the same bytes.
        let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len()) };
    }
}

/// Lets the memory go that a part of a mapped file took: here the system decides alone.
#[cfg(not(target_os = "linux"))]
pub fn forget(_map: &Mmap, _range: std::ops::Range<usize>) {}

/// Elements of a mapped file, in the number type and byte order that the machine has.
#[derive(Clone, Debug)]
pub struct Mapped<E> {
    map: Arc<Mmap>,
    start: usize,
    len: usize,
    kind: PhantomData<E>,
}

impl<E: Plain> Mapped<E> {
    /// `len` elements from byte `start`; `None` where they are not inside the file, not aligned, or where the machine
    /// has another order of bytes than the file (little endian).
    pub fn new(map: &Arc<Mmap>, start: usize, len: usize) -> Option<Self> {
        let bytes = len.checked_mul(size_of::<E>())?;
        let inside = start.checked_add(bytes).is_some_and(|end| end <= map.len());
        let aligned = (map.as_ptr() as usize + start).is_multiple_of(align_of::<E>());
        let fits = inside && aligned && cfg!(target_endian = "little");
        fits.then(|| Self { map: Arc::clone(map), start, len, kind: PhantomData })
    }
}

impl<E: Elem> Mapped<E> {
    /// The elements.
    pub(crate) fn as_slice(&self) -> &[E] {
        // SAFETY: `new` is the only constructor; it asks for a `Plain` element (every bit pattern is a value) and has
        // checked that the range lies inside the mapping and is aligned. The mapping lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.start).cast::<E>(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn numbers_are_read_where_they_are() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        for x in [1.5f32, -2.0, f32::NAN] {
            file.write_all(&x.to_le_bytes()).expect("written");
        }
        file.flush().expect("written");
        let map = map_file(file.path()).expect("mapped");
        let all = Mapped::<f32>::new(&map, 0, 3).expect("inside");
        assert_eq!(all.as_slice()[..2], [1.5, -2.0]);
        assert!(all.as_slice()[2].is_nan());
        assert!(Mapped::<f32>::new(&map, 4, 3).is_none(), "past the end");
        assert!(Mapped::<f32>::new(&map, 2, 1).is_none(), "not aligned");
        assert!(Mapped::<f64>::new(&map, 0, usize::MAX).is_none(), "too many");
        assert!(map_file(file.path().parent().expect("a folder")).is_err(), "a folder is no file");
    }
}
