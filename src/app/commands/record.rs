//! `record PATH`: the session's runs as a trace folder, or the run looked at as one file.

use std::path::PathBuf;
use std::sync::Arc;

use crate::app::app::App;
use crate::app::args::FileName;
use crate::app::effect::{Effect, Recorded};

/// `record [PATH]`: a folder, or a file whose name ends in `.safetensors` or `.npz`.
pub fn record(app: &mut App, FileName(name): &FileName) {
    let path = if name.is_empty() { format!("{}.trace", app.ui.export_stem) } else { name.clone() };
    let session = Arc::clone(&app.nav.session);
    let run = app.nav.run_here();
    let what = Recorded { session, run, rounding: app.nav.round() };
    app.ui.effects.push(Effect::Record { path: PathBuf::from(path), what, overwrite: false });
}
