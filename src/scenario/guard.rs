//! Everything that is read from disk comes through here: regular files only (a pipe waits for a writer, a device has
//! no end), up to a size, into memory that is there; and what kind of file it is, where it is not what is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::text::{Msg, escape};

/// Largest file of tensors: 64 GiB.
pub const MAX_TENSORS: u64 = 64 << 30;
/// Largest text: a scenario, a script, a table of names, a configuration. 64 MiB.
pub const MAX_TEXT: u64 = 64 << 20;

/// Whether there is a regular file of at most `most` bytes, which may be read or mapped.
///
/// # Errors
/// Where there is none, it is a folder, a pipe or a device, or it is larger.
pub fn regular(path: &Path, most: u64) -> Result<(), Msg> {
    let name = escape(&path.to_string_lossy()).into_owned();
    let meta = std::fs::metadata(path).map_err(|e| Msg::new("scenario.unreadable").arg("file", &name).arg("why", e))?;
    fits(&name, &meta, most)
}

fn fits(name: &str, meta: &std::fs::Metadata, most: u64) -> Result<(), Msg> {
    let key = if meta.is_dir() { "file.folder" } else { "file.not_regular" };
    match meta.is_file() {
        false => Err(Msg::new(key).arg("file", name)),
        true if meta.len() > most => Err(too_large(name, meta.len(), most)),
        true => Ok(()),
    }
}

/// The bytes of a regular file of at most `most` bytes.
///
/// # Errors
/// As [`regular`], and where there is no memory for it.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, Msg> {
    // Before it is opened: opening a pipe waits already.
    regular(path, most)?;
    let name = escape(&path.to_string_lossy()).into_owned();
    let unreadable = |e: io::Error| Msg::new("scenario.unreadable").arg("file", &name).arg("why", e);
    let file = File::open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    fits(&name, &meta, most)?;
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(meta.len() as usize).is_err() {
        return Err(Msg::new("file.no_memory").arg("file", &name).arg("bytes", meta.len()));
    }
    // A file may grow while it is read.
    file.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > most { Err(too_large(&name, bytes.len() as u64, most)) } else { Ok(bytes) }
}

/// Text from a file, which may also be a pipe (`<(…)` of a shell) or a device: at most [`MAX_TEXT`] bytes.
///
/// # Errors
/// Where it cannot be read, is larger, or is no UTF-8.
pub fn read_text(path: &Path) -> Result<String, Msg> {
    let name = path.to_string_lossy();
    let opened = File::open(path);
    let unreadable = |e| Msg::new("scenario.unreadable").arg("file", escape(&name)).arg("why", e);
    text_of(opened.map_err(unreadable)?, &name)
}

/// Text from `source`, which is called `name`.
///
/// # Errors
/// As [`read_text`].
pub fn text_of(source: impl Read, name: &str) -> Result<String, Msg> {
    let name = escape(name).into_owned();
    let mut bytes = Vec::new();
    let unreadable = |e| Msg::new("scenario.unreadable").arg("file", &name).arg("why", e);
    source.take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(too_large(&name, bytes.len() as u64, MAX_TEXT));
    }
    if let Some(kind) = kind(&name, &bytes).filter(|k| k.is_binary()) {
        return Err(kind.msg(&name));
    }
    String::from_utf8(bytes).map_err(|_| Msg::new("file.not_text").arg("file", &name))
}

fn too_large(name: &str, bytes: u64, most: u64) -> Msg {
    Msg::new("file.too_large").arg("file", name).arg("bytes", bytes).arg("most", most)
}

/// A kind of file that people have, by its first bytes, or by its name where these say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Tensors, as transformers stores them.
    Safetensors,
    /// An archive of NumPy.
    Npz,
    /// One array of NumPy.
    Npy,
    /// A checkpoint of llama.cpp.
    Gguf,
    /// A pickle of `PyTorch`, bare or in a zip.
    Torch,
    /// The table of a checkpoint's shards.
    Index,
    /// The settings of a checkpoint.
    Config,
    /// A table of Hugging Face's tokenizers.
    Tokenizer,
    /// HDF5, as Keras stores weights.
    Hdf5,
    /// A graph in ONNX.
    Onnx,
    /// Flax's msgpack.
    Msgpack,
    /// A compressed file.
    Compressed,
    /// Another zip.
    Zip,
}

/// The kind of a file called `name` that begins with `bytes`; `None` where nothing says.
pub fn kind(name: &str, bytes: &[u8]) -> Option<Kind> {
    let lower = name.to_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|e| lower.ends_with(e));
    let torch = ends(&[".pt", ".pth", ".bin", ".ckpt", ".pkl"]);
    let head = &bytes[..bytes.len().min(4096)];
    let has = |what: &[u8]| head.windows(what.len()).any(|w| w == what);
    match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(Kind::Npy),
        [b'G', b'G', b'U', b'F', ..] => Some(Kind::Gguf),
        [0x89, b'H', b'D', b'F', ..] => Some(Kind::Hdf5),
        // Any two bytes may be the first ones of the length of a header.
        [a, b, c, d, e, f, g, h, b'{', ..]
            if usize::try_from(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]))
                .is_ok_and(|n| n <= bytes.len() - 8) =>
        {
            Some(Kind::Safetensors)
        }
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [b'B', b'Z', b'h', ..] => Some(Kind::Compressed),
        [b'P', b'K', 3 | 5, 4 | 6, ..] if torch || has(b"data.pkl") => Some(Kind::Torch),
        [b'P', b'K', 3 | 5, 4 | 6, ..] if ends(&[".npz"]) || has(b".npy") => Some(Kind::Npz),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Kind::Zip),
        [0x80, 2..=5, ..] => Some(Kind::Torch),
        _ if head.trim_ascii_start().starts_with(b"{") => {
            if ends(&[".index.json"]) || has(b"\"weight_map\"") {
                Some(Kind::Index)
            } else if ends(&["tokenizer.json"]) || has(b"\"added_tokens\"") {
                Some(Kind::Tokenizer)
            } else if ends(&["config.json"]) || has(b"\"model_type\"") || has(b"\"architectures\"") {
                Some(Kind::Config)
            } else {
                None
            }
        }
        _ if torch => Some(Kind::Torch),
        _ if ends(&[".onnx"]) => Some(Kind::Onnx),
        _ if ends(&[".msgpack"]) => Some(Kind::Msgpack),
        _ => None,
    }
}

impl Kind {
    /// Whether it is certainly no text.
    fn is_binary(self) -> bool {
        !matches!(self, Kind::Index | Kind::Config | Kind::Tokenizer)
    }

    /// What `file` is, and what to do with it.
    pub fn msg(self, file: &str) -> Msg {
        let key = match self {
            Kind::Safetensors => "file.kind.safetensors",
            Kind::Npz => "file.kind.npz",
            Kind::Npy => "file.kind.npy",
            Kind::Gguf => "file.kind.gguf",
            Kind::Torch => "file.kind.torch",
            Kind::Index => "file.kind.index",
            Kind::Config => "file.kind.config",
            Kind::Tokenizer => "file.kind.tokenizer",
            Kind::Hdf5 => "file.kind.hdf5",
            Kind::Onnx => "file.kind.onnx",
            Kind::Msgpack => "file.kind.msgpack",
            Kind::Compressed => "file.kind.compressed",
            Kind::Zip => "file.kind.zip",
        };
        Msg::new(key).arg("file", escape(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_bytes_and_by_name() {
        let header = b"{}      ";
        let tensors = [&8_u64.to_le_bytes()[..], header].concat();
        for (name, bytes, want) in [
            ("a", &b"\x93NUMPY\x01\x00"[..], Some(Kind::Npy)),
            ("a", b"GGUF\x03\0\0\0", Some(Kind::Gguf)),
            ("m.pt", b"PK\x03\x04rubbish", Some(Kind::Torch)),
            ("m.zip", b"PK\x03\x04rubbish", Some(Kind::Zip)),
            ("a.npz", b"PK\x03\x04rubbish", Some(Kind::Npz)),
            ("m.bin", b"\x80\x02}q", Some(Kind::Torch)),
            ("m.bin", b"nothing", Some(Kind::Torch)),
            ("x", &tensors, Some(Kind::Safetensors)),
            ("x.index.json", b"{}", Some(Kind::Index)),
            ("x.json", b" {\"metadata\":{}, \"weight_map\": {}}", Some(Kind::Index)),
            ("config.json", b"{}", Some(Kind::Config)),
            ("a.ron", b"(name: \"x\")", None),
            ("a.ron", b"{\"a\": 1}", None),
            ("a", b"", None),
        ] {
            assert_eq!(kind(name, bytes), want, "{name}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path(), 10).unwrap_err().key, "file.folder");
        let file = folder.path().join("a");
        std::fs::write(&file, "0123456789a").unwrap();
        assert_eq!(read(&file, 10).unwrap_err().key, "file.too_large");
        assert_eq!(read(&file, 11), Ok(b"0123456789a".to_vec()));
        assert_eq!(read(&folder.path().join("b"), 10).unwrap_err().key, "scenario.unreadable");
        if cfg!(unix) {
            assert_eq!(read(Path::new("/dev/zero"), 10).unwrap_err().key, "file.not_regular");
            assert_eq!(text_of(io::repeat(b' '), "-").unwrap_err().key, "file.too_large");
        }
    }
}
