//! Small files of a checkpoint: looked at before they are read, and no larger than such files are.

use std::io::Read;
use std::path::Path;

use serde_json::Value as Json;

use crate::text::{Msg, escape};

/// Largest configuration: 16 MiB.
const LARGEST: u64 = 16 << 20;

/// The text of a small file.
///
/// # Errors
/// Where it cannot be read, is no text, or too large.
pub fn text(path: &Path) -> Result<String, Msg> {
    let file = path.to_string_lossy();
    let unreadable = |why: &str| Msg::new("scenario.unreadable").arg("file", escape(&file)).arg("why", escape(why));
    let meta = std::fs::metadata(path).map_err(|e| unreadable(&e.to_string()))?;
    // A pipe would wait for a writer.
    if !meta.is_file() {
        return Err(Msg::new("checkpoint.no_file").arg("file", escape(&file)));
    }
    let mut text = String::new();
    let opened = std::fs::File::open(path).map_err(|e| unreadable(&e.to_string()))?;
    opened.take(LARGEST + 1).read_to_string(&mut text).map_err(|e| unreadable(&e.to_string()))?;
    if text.len() as u64 > LARGEST {
        return Err(Msg::new("checkpoint.too_large").arg("file", escape(&file)).arg("most", LARGEST));
    }
    Ok(text)
}

/// A JSON object in a small file.
///
/// # Errors
/// Where it is none; the message says where.
pub fn object(path: &Path) -> Result<serde_json::Map<String, Json>, Msg> {
    let text = text(path)?;
    let file = path.to_string_lossy();
    let broken = |why: &str| Msg::new("checkpoint.json").arg("file", escape(&file)).arg("why", escape(why));
    match serde_json::from_str(&text) {
        Ok(Json::Object(map)) => Ok(map),
        Ok(_) => Err(broken("not an object")),
        Err(e) => Err(broken(&e.to_string())),
    }
}
