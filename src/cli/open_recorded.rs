//! Opening what was computed before: a file of tensors, a trace folder.

use std::io::{self, Write};
use std::path::Path;

use super::Failure;
use crate::session::{Options, Session, open_recording, open_trace};
use crate::source::recording::{Recording, is_file_of_tensors};
use crate::source::trace::{Folder, MANIFEST, is_trace_folder};
use crate::text::{Lang, Msg, escape};

/// Parts of a trace that a message names.
const MAX_NAMED: usize = 20;

/// Opens a file of tensors or a trace folder; `None` where `arg` is neither. What of it cannot be read goes to `notes`.
pub(super) fn open(arg: &Path, options: Options, lang: Lang, notes: &mut Vec<Msg>) -> Option<Result<Session, Failure>> {
    if options.update > 1 && (is_trace_folder(arg) || is_file_of_tensors(arg)) {
        return Some(Err(Msg::new("trace.update").into()));
    }
    if is_trace_folder(arg) {
        Some(trace(arg, options, lang, notes))
    } else if is_file_of_tensors(arg) {
        Some(recording(arg, options, lang, notes))
    } else {
        None
    }
}

/// Whether `arg` is a trace folder or a file of tensors.
pub(super) fn is_recording(arg: &Path) -> bool {
    is_trace_folder(arg) || is_file_of_tensors(arg)
}

fn recording(arg: &Path, options: Options, lang: Lang, notes: &mut Vec<Msg>) -> Result<Session, Failure> {
    let recording = Recording::open(arg)?;
    if let Some((name, why)) = recording.unreadable.first() {
        let count = recording.unreadable.len();
        let msg = Msg::new("recording.unreadable")
            .arg("file", escape(&recording.name))
            .arg("count", count)
            .arg("name", escape(name))
            .arg("why", escape(why))
            .arg("more", if count > 1 { ", …" } else { "" });
        notes.push(msg);
    }
    open_recording(recording, options).map_err(|problems| {
        let parts: Vec<String> = problems.into_iter().map(|p| p.msg.render(lang)).collect();
        Failure::Diagnostic(parts.join("\n"))
    })
}

fn trace(arg: &Path, options: Options, lang: Lang, notes: &mut Vec<Msg>) -> Result<Session, Failure> {
    let (session, damaged) = open_trace(arg, options)?;
    for part in damaged.iter().take(MAX_NAMED) {
        let msg = Msg::new("trace.damaged").arg("file", escape(&part.file)).arg("why", part.why.render(lang));
        notes.push(msg);
    }
    Ok(session)
}

/// What verifying a trace folder found.
#[derive(Debug)]
pub(super) struct Verified {
    /// Parts, and parameters in files of their own, whose checksums are right.
    right: usize,
    /// The others, and why.
    damaged: Vec<(String, Msg)>,
    /// Whether the recording came to its end.
    complete: bool,
}

impl Verified {
    /// Verifies a trace folder; nothing for another source.
    ///
    /// # Errors
    /// A folder without a manifest.
    pub(super) fn of(arg: &Path) -> Result<Option<Self>, Failure> {
        if !is_trace_folder(arg) {
            return Ok(None);
        }
        let folder = Folder::open(arg)?;
        let (right, damaged) = folder.verify();
        let mut damaged: Vec<(String, Msg)> = damaged.into_iter().map(|d| (d.file, d.why)).collect();
        // The manifest has no checksum: the programs say what it has to list.
        let opened = open_trace(arg, Options::default()).map(|(_, damaged)| damaged).unwrap_or_default();
        damaged.extend(opened.into_iter().filter(|d| d.file == MANIFEST).map(|d| (d.file, d.why)));
        Ok(Some(Self { right, damaged, complete: folder.manifest.complete }))
    }

    /// Whether nothing is damaged.
    pub(super) fn good(&self) -> bool {
        self.damaged.is_empty()
    }

    /// What was found, a line each.
    pub(super) fn write_text(&self, out: &mut impl Write, lang: Lang) -> io::Result<()> {
        let all = self.right + self.damaged.len();
        let msg = Msg::new("trace.verified").arg("right", self.right).arg("all", all);
        writeln!(out, "{}", msg.render(lang))?;
        for (file, why) in &self.damaged {
            let msg = Msg::new("trace.damaged").arg("file", escape(file)).arg("why", why.render(lang));
            writeln!(out, "{}", msg.render(lang))?;
        }
        if !self.complete {
            writeln!(out, "{}", Msg::new("trace.incomplete").render(lang))?;
        }
        Ok(())
    }

    /// For programs.
    pub(super) fn to_json(&self, lang: Lang) -> serde_json::Value {
        let damaged =
            self.damaged.iter().map(|(file, why)| serde_json::json!({ "file": file, "why": why.render(lang) }));
        serde_json::json!({
            "right": self.right,
            "damaged": damaged.collect::<Vec<_>>(),
            "complete": self.complete,
        })
    }
}
